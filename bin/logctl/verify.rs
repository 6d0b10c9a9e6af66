//! `logctl verify`: is every byte of a log what was written, and does every index tell the truth.
//!
//! Reads only, takes no lock, and works beside a writer: an end that is not whole yet is looked at twice.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use stratalog::{
    LogReader, ReadOptions,
    inspect::{
        Finding, FindingKind, Partition, SegmentReport, Severity, VerifyOptions, VerifyReport, base_offset_of,
    },
};

use crate::{
    failure::{Code, Failure},
    globals::Globals,
    output::{Output, counted},
    progress::Progress,
    target::Target,
};

/// Check every batch and index of a log; exit code 0 where nothing is damaged, 4 where something is
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  logctl verify data/orders-0
  logctl verify data/orders-0 --deep
  logctl verify data/orders-0 -J | jq 'select(.severity==\"damage\")'

One line for each finding: notes are legal (so is room behind the end of a log that is in use or
was not closed), warnings lose nothing (a missing index, room in a log that was closed), damage
is damage.")]
pub(crate) struct Args {
    /// A partition directory, or one .log file of it
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// Unpack and read every record too
    #[arg(long)]
    deep: bool,
    /// Check the .log files only
    #[arg(long)]
    no_indexes: bool,
    /// How many segments at once [default: as many as there are processors]
    #[arg(long, value_name = "N")]
    parallel: Option<std::num::NonZeroUsize>,
    /// JSON lines: an object for each finding, and one that sums up
    #[arg(short = 'J', long)]
    json: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let target = Target::existing(globals, args.target.as_deref())?;
    let mut options = VerifyOptions::default();
    options.deep = args.deep;
    options.indexes = !args.no_indexes;
    let directory = if target.is_file {
        target.path.parent().map_or_else(PathBuf::new, Path::to_path_buf)
    } else {
        target.path.clone()
    };
    let partition = Partition::open(&directory)?;
    let mut report = if target.is_file {
        let name = target.path.display();
        let number = base_offset_of(&target.path).and_then(|base| partition.segment_at(base));
        let is_log = target.path.extension().is_some_and(|suffix| suffix == "log");
        let (Some(number), true) = (number, is_log) else {
            return Err(Failure::usage(format!("{name}: not the .log file of a segment"))
                .hint("name a .log file or its directory; `logctl dump` reads other files"));
        };
        let reports = check(&partition, number..number + 1, args, globals, &options)?;
        reports.into_iter().next().map(SegmentReport::into_report).unwrap_or_default()
    } else {
        let reports = check(&partition, 0..partition.segment_count(), args, globals, &options)?;
        partition.conclude(reports, &options)
    };
    if report.segments == 0 && report.is_clean() {
        return Err(Failure::not_found(format!("no log at {}", target.path.display()))
            .hint("a log is a directory with .log files in it"));
    }
    excuse_room(&mut report, &directory);
    let mut out = globals.report(args.json)?;
    print(&mut out, &target, globals, &report)?;
    out.finish()?;
    if !report.is_clean() {
        return Err(Failure::quiet(Code::Corrupt));
    }
    if report.unchecked_bytes > 0 {
        return Err(Failure::other(format!("{} bytes could not be checked", report.unchecked_bytes)));
    }
    if report.unread > 0 {
        let what = format!("{} files or batches could not be read and were not checked", report.unread);
        return Err(Failure::other(what).hint("the findings `unreadable` and `unread` name them"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks segments, several at a time.
fn check(
    partition: &Partition,
    segments: std::ops::Range<usize>,
    args: &Args,
    globals: &Globals,
    options: &VerifyOptions,
) -> Result<Vec<SegmentReport>, Failure> {
    let threads = args.parallel.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
    let threads = threads.min(segments.len()).max(1);
    let (next, done_bytes, is_over) =
        (AtomicUsize::new(segments.start), AtomicU64::new(0), AtomicBool::new(false));
    let stop = globals.stop();
    let mut progress = Progress::new(globals, "verify", partition.total_bytes());
    let mut reports = Vec::with_capacity(segments.len());
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, done_bytes, is_over, segments) = (&next, &done_bytes, &is_over, &segments);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if !segments.contains(&number) || is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let mut tell = |bytes: u64| {
                        done_bytes.fetch_add(bytes, Ordering::Relaxed);
                    };
                    if let Some(report) = partition.check_segment(number, options, &mut tell)
                        && sender.send(report).is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(Duration::from_millis(100)) {
                Ok(report) => reports.push(report),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            progress.update(done_bytes.load(Ordering::Relaxed));
            if let Err(failure) = stop.check() {
                is_over.store(true, Ordering::Relaxed);
                return Err(failure);
            }
        }
    })?;
    Ok(reports)
}

/// Room behind the end is what a writer works in, and what it leaves where it did not come to close the log.
fn excuse_room(report: &mut VerifyReport, directory: &Path) {
    let is_room =
        |finding: &Finding| finding.kind == FindingKind::Untrimmed && finding.severity == Severity::Warning;
    if !report.findings.iter().any(is_room) {
        return;
    }
    match LogReader::open(directory, ReadOptions::default()) {
        Ok(reader) if !reader.stats().clean => {}
        // A log that cannot be opened has worse findings than this.
        _ => return,
    }
    for finding in report.findings.iter_mut().filter(|finding| is_room(finding)) {
        finding.severity = Severity::Note;
        report.warning_count = report.warning_count.saturating_sub(1);
    }
}

fn print(out: &mut Output, target: &Target, globals: &Globals, report: &VerifyReport) -> Result<(), Failure> {
    for finding in &report.findings {
        if out.is_json() {
            json_finding(out, finding);
            out.spill()?;
        } else {
            out.foreign(finding.to_string().as_bytes())?;
            out.line("")?;
        }
    }
    if report.findings_left_out > 0 && !out.is_json() {
        out.line(format!("and {} more findings", report.findings_left_out))?;
    }
    let state = match (report.damage_count, report.unchecked_bytes, report.unread) {
        (0, 0, 0) => "clean",
        (0, _, _) => "unchecked",
        _ => "damaged",
    };
    // In the documents "clean" is a log that was closed, which this does not say.
    let state_text = if state == "clean" { "no damage" } else { state };
    if out.is_json() {
        out.object("summary")
            .text("path", &target.path.to_string_lossy())
            .text("state", state)
            .bare("segments", report.segments)
            .bare("batches", report.batches)
            .bare("records", report.records)
            .bare("bytes", report.bytes)
            .bare("unchecked_bytes", report.unchecked_bytes)
            .bare("unread", report.unread)
            .maybe("start", report.start)
            .maybe("end", report.end)
            .bare("damage", report.damage_count)
            .bare("warnings", report.warning_count)
            .bare("findings_left_out", report.findings_left_out)
            .end();
    } else if !globals.quiet {
        let range = match (report.start, report.end) {
            (Some(start), Some(end)) => format!(", offsets {start} up to {end}"),
            _ => String::new(),
        };
        out.line(format!(
            "{}: {state_text}: {}, {}, {}, {}{range}; {} damaged, {}",
            target.path.display(),
            counted(report.segments, "segment"),
            counted(report.batches, "batch"),
            counted(report.records, "record"),
            counted(report.bytes, "byte"),
            report.damage_count,
            counted(report.warning_count, "warning"),
        ))?;
    }
    Ok(())
}

fn json_finding(out: &mut Output, finding: &Finding) {
    out.object("finding")
        .text("severity", &finding.severity.to_string())
        .text("file", &finding.file.to_string_lossy())
        .maybe("position", finding.position)
        .maybe("offset", finding.offset)
        .text("kind", finding.kind.as_str())
        .bare("repairable", finding.repairable)
        .text("detail", &finding.detail)
        .end();
}
