//! `logctl repair`: puts right what can be put right, keeps what it drops, and proves its work with a check.

use std::{path::PathBuf, process::ExitCode};

use stratalog::{
    Dropped, LogConfig, LogWriter, RecoveryReport,
    inspect::{FindingKind, Severity, VerifyOptions, VerifyReport, verify},
};

use crate::{
    consent::Consent,
    failure::{Code, Failure},
    globals::Globals,
    output::{Output, counted},
    progress::Progress,
    target::Target,
    truncate::{Kept, partition_directory},
};

/// Put right what is damaged in a log
///
/// Drops what cannot be read and keeps every batch that can be, before and behind the damage; builds indexes and leader
/// epochs anew; cuts off room that was reserved. Bytes before the first bad batch are not touched, and what is dropped is
/// kept in the directory. Refused while a writer or a broker holds the log.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  logctl repair data/orders-0                         # shows what would be done
  logctl repair data/orders-0 --yes
  logctl repair data/orders-0 --truncate-tail --yes   # end the log at the first bad batch
  logctl verify data/orders-0 || logctl repair data/orders-0 --yes --backup /var/backups/orders

Exit code 0: nothing is damaged any more (or was); 4: something is that cannot be repaired.")]
pub(crate) struct Args {
    /// Partition directory
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// End the log at the first batch that cannot be read: what lies behind it is cut as well
    #[arg(long)]
    truncate_tail: bool,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    consent: Consent,
    /// JSON lines: an object for each step of the plan, one for each file kept, and one that sums up
    #[arg(short = 'J', long)]
    json: bool,
}

/// One thing that would be done.
struct Step {
    /// A stable word for scripts.
    action: &'static str,
    file: PathBuf,
    position: Option<u64>,
    offset: Option<i64>,
    bytes: u64,
    why: String,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let target = partition_directory(globals, args.target.as_deref())?;
    let before = check(&target, globals)?;
    let bad = stratalog::repair_plan(&target.path)?;
    let steps = plan(&before, &bad, args.truncate_tail);
    let mut out = globals.report(args.json)?;
    for step in &steps {
        Args::print_step(&mut out, step)?;
    }
    if steps.is_empty() {
        return Args::conclude(&mut out, &target, &before, globals);
    }
    out.flush()?;
    if !args.consent.is_given()? {
        return Ok(ExitCode::SUCCESS);
    }
    args.kept.prepare()?;
    let report = repair(&target, &bad, args.truncate_tail)?;
    let kept = args.kept.settle(kept_files(&report))?;
    for file in kept {
        if out.is_json() {
            out.object("kept").text("file", &file.to_string_lossy()).end();
        } else {
            out.foreign(format!("kept: {}\n", file.display()).as_bytes())?;
        }
    }
    let after = check(&target, globals)?;
    Args::conclude(&mut out, &target, &after, globals)
}

/// The proof, before and after. Reads every batch.
fn check(target: &Target, globals: &Globals) -> Result<VerifyReport, Failure> {
    let mut progress = Progress::new(globals, "check", 0);
    let mut done = 0;
    let report = verify(&target.path, &VerifyOptions::default(), &mut |bytes| {
        done += bytes;
        progress.update(done);
    })?;
    if report.segments == 0 && report.is_clean() {
        return Err(Failure::not_found(format!("no log at {}", target.path.display()))
            .hint("a log is a directory with .log files in it"));
    }
    Ok(report)
}

fn repair(target: &Target, bad: &[Dropped], truncates: bool) -> Result<RecoveryReport, Failure> {
    let config = LogConfig::default();
    let cut_at = bad.first().filter(|first| truncates && first.next.is_some()).map(|first| first.offset);
    let mut writer = match cut_at {
        Some(end) => LogWriter::open_cut(&target.path, config, end)?,
        None => LogWriter::open_repaired(&target.path, config)?,
    };
    let report = writer.recovery().clone();
    writer.sync()?;
    writer.close()?;
    Ok(report)
}

fn kept_files(report: &RecoveryReport) -> Vec<PathBuf> {
    let dropped = report.dropped.iter().filter_map(|dropped| dropped.kept_in.clone());
    dropped.chain(report.cut.iter().flat_map(|cut| cut.kept_in.clone())).collect()
}

/// What would be done, in the order of the log.
fn plan(found: &VerifyReport, bad: &[Dropped], truncates: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for (nth, bad) in bad.iter().enumerate() {
        let cuts = bad.next.is_none() || (truncates && nth == 0);
        let why = match bad.next {
            Some(next) if !cuts => {
                format!("{}; offsets {} up to {next} cannot be read", bad.reason, bad.offset)
            }
            _ if truncates && bad.next.is_some() => format!("{}; all that follows goes too", bad.reason),
            _ => bad.reason.clone(),
        };
        steps.push(Step {
            action: if cuts { "cut" } else { "drop" },
            file: bad.path.clone(),
            position: Some(bad.position),
            offset: Some(bad.offset.value()),
            bytes: bad.bytes,
            why,
        });
        if truncates {
            break;
        }
    }
    for finding in &found.findings {
        let action = match finding.kind {
            FindingKind::Untrimmed => "trim",
            FindingKind::IndexLength
            | FindingKind::IndexOrder
            | FindingKind::IndexPosition
            | FindingKind::IndexOffset
            | FindingKind::TimeIndexOffset
            | FindingKind::TimeIndexTimestamp
            | FindingKind::TimeIndexEnd
            | FindingKind::MissingIndex
            | FindingKind::TxnIndex
            | FindingKind::EpochCheckpoint => "rebuild",
            FindingKind::Orphan => "remove",
            FindingKind::LostRecords => "note-loss",
            _ => continue,
        };
        if finding.severity == Severity::Note
            || steps.iter().any(|step: &Step| step.action == action && step.file == finding.file)
        {
            continue;
        }
        steps.push(Step {
            action,
            file: finding.file.clone(),
            position: None,
            offset: None,
            bytes: 0,
            why: format!("{}: {}", finding.kind, finding.detail),
        });
    }
    steps
}

impl Args {
    fn print_step(out: &mut Output, step: &Step) -> Result<(), Failure> {
        if out.is_json() {
            out.object("step")
                .text("action", step.action)
                .text("file", &step.file.to_string_lossy())
                .maybe("position", step.position)
                .maybe("offset", step.offset)
                .bare("bytes", step.bytes)
                .text("why", &step.why)
                .end();
            return out.spill();
        }
        let place = match (step.position, step.offset) {
            (Some(position), Some(offset)) => {
                format!(" at byte {position} (offset {offset}), {}", counted(step.bytes, "byte"))
            }
            _ => String::new(),
        };
        out.foreign(format!("{} {}{place}: {}\n", step.action, step.file.display(), step.why).as_bytes())
    }

    fn conclude(
        out: &mut Output,
        target: &Target,
        report: &VerifyReport,
        globals: &Globals,
    ) -> Result<ExitCode, Failure> {
        let left = report.findings.iter().filter(|finding| finding.severity == Severity::Damage);
        if out.is_json() {
            out.object("summary")
                .text("path", &target.path.to_string_lossy())
                .text("state", if report.is_clean() { "clean" } else { "damaged" })
                .bare("records", report.records)
                .maybe("start", report.start)
                .maybe("end", report.end)
                .bare("damage", report.damage_count)
                .end();
        } else {
            for finding in left {
                out.foreign(format!("left: {finding}\n").as_bytes())?;
            }
            if !globals.quiet {
                let state = if report.is_clean() { "no damage" } else { "damaged" };
                let text = format!(
                    "{}: {state}: {}, {}\n",
                    target.path.display(),
                    counted(report.batches, "batch"),
                    counted(report.records, "record")
                );
                out.foreign(text.as_bytes())?;
            }
        }
        out.finish()?;
        if report.is_clean() { Ok(ExitCode::SUCCESS) } else { Err(Failure::quiet(Code::Corrupt)) }
    }
}
