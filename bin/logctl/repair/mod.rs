//! `logctl repair`: puts right what can be put right, keeps what it drops, and proves its work with a check.
//!
//! Lives here: the verb and what it prints. Not here: what would be done (`plan.rs`), doing it (the library).
//! Holds always: all plans are printed before the first byte changes; a data directory goes partition by partition, and
//! one that fails hides none of the others.

mod plan;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use stratalog::{
    LogConfig, LogWriter, Offset, RecoveryReport, Store, StoreConfig,
    inspect::{Finding, Partition, Severity, VerifyOptions, VerifyReport, verify_data_directory},
};

use crate::{
    check::Check,
    consent::Consent,
    failure::{Code, Failure},
    globals::Globals,
    lock::{holder_of, tell_locked},
    output::{Output, counted},
    scope::Scope,
    target::Target,
    truncate::Kept,
    verify::excuse_room,
};
use plan::{Plan, Step};

/// Put right what is damaged in a log, or in all logs of a data directory
///
/// Drops what cannot be read and keeps every batch that can be, before and behind the damage; builds indexes and leader
/// epochs anew; gives a segment with a wrong name the right one; cuts off room that was reserved. Bytes before the first
/// bad batch are not touched, and what is dropped is kept in the directory. Refused while a writer or a broker holds the
/// log.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "a flag each")]
#[command(after_long_help = "\
Exit code 0: nothing is damaged any more (or was); 4: something is that cannot be repaired;
8: some partitions of a data directory could not be worked on.

Examples:
  logctl repair data/orders-0                         # shows what would be done
  logctl repair data/orders-0 --yes
  logctl repair data/orders-0 --truncate-tail --yes   # end the log at the first bad batch
  logctl repair data/orders-0 --drop-batch 1337 --yes # a batch that no consumer gets past
  logctl repair data --deep --yes --backup /var/backups/data
  logctl verify data/orders-0 || logctl repair data/orders-0 --yes --backup /var/backups/orders")]
pub(crate) struct Args {
    /// Partition directory, or a data directory
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// End the log at the first batch that cannot be read: what lies behind it is cut as well
    #[arg(long)]
    truncate_tail: bool,
    /// Build all indexes anew, the right ones too
    #[arg(long)]
    rebuild_index: bool,
    /// Drop the batch that holds this offset, although its checksum is right; may be repeated
    #[arg(long, value_name = "OFFSET", value_parser = offset, conflicts_with = "truncate_tail")]
    drop_batch: Vec<Offset>,
    /// Unpack and read every record too, and drop the batches whose records cannot be read
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    consent: Consent,
    /// JSON lines: an object for each step of the plan, one for each file kept, and one that sums up
    #[arg(short = 'J', long)]
    json: bool,
}

fn offset(text: &str) -> Result<Offset, String> {
    text.parse().ok().and_then(Offset::new).ok_or_else(|| "not an offset".to_owned())
}

/// A partition, what was found there, and what would be done.
struct Subject<'t> {
    target: &'t Target,
    found: VerifyReport,
    plan: Plan,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let scope = Scope::find(globals, args.target.as_deref())?;
    if scope.is_many() && !args.drop_batch.is_empty() {
        let what = "--drop-batch is for one partition";
        return Err(Failure::usage(what).hint("name it with --topic and --partition"));
    }
    if let Some(file) = scope.targets.iter().find(|target| target.is_file) {
        return Err(Failure::usage(format!("{}: a file", file.path.display()))
            .hint("a log is changed as a whole: name its directory"));
    }
    let mut work = Work { args, globals, failed: 0, left: 0, out: globals.report(args.json)? };
    let root = match &scope.directory {
        Some(directory) => verify_data_directory(directory)?,
        None => Vec::new(),
    };
    let root_steps = plan::of_data_directory(&root);
    let subjects = work.plan_all(&scope)?;
    for step in root_steps.iter().chain(subjects.iter().flat_map(|subject| &subject.plan.steps)) {
        print_step(&mut work.out, step)?;
    }
    if args.consent.only_plans() {
        for target in &scope.targets {
            tell_locked(target, &mut work.out)?;
        }
    }
    work.out.flush()?;
    let has_work = |subject: &Subject<'_>| !subject.plan.steps.is_empty();
    if (subjects.iter().any(has_work) || !root_steps.is_empty()) && !args.consent.is_given()? {
        work.out.finish()?;
        return work.end();
    }
    args.kept.prepare()?;
    if let Some(directory) = scope.directory.as_deref().filter(|_| !root_steps.is_empty()) {
        work.tell(rebuild_checkpoints(directory), directory, true)?;
    }
    let stop = globals.stop();
    for (nth, subject) in subjects.iter().enumerate() {
        if let Err(stopped) = stop.check() {
            let count = counted(subjects.len() as u64, "partition");
            globals.note(format!("stopped: {nth} of {count} were done, and these wholly"));
            work.out.finish()?;
            return Err(stopped);
        }
        let done = if has_work(subject) { work.repair(&scope, subject) } else { Ok(None) };
        let concluded = done.and_then(|after| {
            let report = after.as_ref().unwrap_or(&subject.found);
            work.conclude(subject.target, report)
        });
        work.tell(concluded, &subject.target.path, scope.is_many())?;
    }
    work.out.finish()?;
    work.end()
}

/// Files of a data directory that cannot be read are written anew, without the lines that they had.
fn rebuild_checkpoints(directory: &Path) -> Result<(), Failure> {
    let store = Store::open(directory, StoreConfig::default())?;
    store.close()?;
    Ok(())
}

struct Work<'a> {
    args: &'a Args,
    globals: &'a Globals,
    out: Output,
    /// Partitions that could not be worked on.
    failed: u64,
    /// Partitions in which damage is left.
    left: u64,
}

impl Work<'_> {
    /// Of many partitions a failure is told and the others go on.
    fn tell(&mut self, done: Result<(), Failure>, path: &Path, is_many: bool) -> Result<(), Failure> {
        match done {
            Err(failure) if is_many && !matches!(failure.code, Code::ClosedPipe | Code::Signal(_)) => {
                self.failed += 1;
                self.globals.complain(&failure.at(path.display()));
                Ok(())
            }
            done => done,
        }
    }

    fn end(&self) -> Result<ExitCode, Failure> {
        match (self.left, self.failed) {
            (0, 0) => Ok(ExitCode::SUCCESS),
            (0, _) => Err(Failure::quiet(Code::Partly)),
            _ => Err(Failure::quiet(Code::Corrupt)),
        }
    }

    fn options(&self) -> VerifyOptions {
        let mut options = VerifyOptions::default();
        options.deep = self.args.deep;
        options
    }

    /// Checks every partition, all in one pool of threads, and decides.
    fn plan_all<'t>(&mut self, scope: &'t Scope) -> Result<Vec<Subject<'t>>, Failure> {
        let mut opened = Vec::new();
        let mut partitions = Vec::new();
        for target in &scope.targets {
            match Partition::open(&target.path).map_err(Failure::from) {
                Ok(partition) => {
                    opened.push(target);
                    partitions.push(partition);
                }
                Err(failure) => self.tell(Err(failure), &target.path, scope.is_many())?,
            }
        }
        let segments = |(number, partition): (usize, &Partition)| {
            (0..partition.segment_count()).map(move |segment| (number, segment)).collect::<Vec<_>>()
        };
        let work: Vec<(usize, usize)> = partitions.iter().enumerate().flat_map(segments).collect();
        let options = self.options();
        let check = Check { label: "check", options: &options, threads: None, globals: self.globals };
        let checked = check.run(&partitions, &work);
        if let Some(stopped) = checked.stopped {
            self.globals.note("stopped: nothing was changed");
            return Err(stopped);
        }
        let mut subjects = Vec::new();
        for ((target, partition), reports) in opened.into_iter().zip(&partitions).zip(checked.reports) {
            let mut found = partition.conclude(reports, &options);
            if self.args.consent.only_plans() && holder_of(target)?.is_some() {
                // A writer works in it. Who says --yes is refused by its lock.
                excuse_room(&mut found, &target.path);
            }
            match self.plan(target, &found) {
                Ok(plan) => subjects.push(Subject { target, found, plan }),
                Err(failure) => self.tell(Err(failure), &target.path, scope.is_many())?,
            }
        }
        Ok(subjects)
    }

    fn plan(&self, target: &Target, found: &VerifyReport) -> Result<Plan, Failure> {
        if found.segments == 0 && found.is_clean() {
            return Err(Failure::not_found(format!("no log at {}", target.path.display()))
                .hint("a log is a directory with .log files in it"));
        }
        let asked =
            plan::Asked { truncate_tail: self.args.truncate_tail, rebuild_index: self.args.rebuild_index };
        plan::of_partition(&target.path, found, &self.args.drop_batch, &asked)
    }

    /// Does what the plan of one partition says; what a check finds afterwards.
    fn repair(&mut self, scope: &Scope, subject: &Subject<'_>) -> Result<Option<VerifyReport>, Failure> {
        let path = &subject.target.path;
        let mut kept = Vec::new();
        if let Some(end) = subject.plan.cut_at.filter(|_| !subject.plan.cuts_last) {
            kept.extend(cut(path, end)?);
        }
        let mut writer =
            LogWriter::open_repaired_with(path, LogConfig::default(), &subject.plan.repair_options())?;
        kept.extend(kept_files(writer.recovery()));
        writer.sync()?;
        writer.close()?;
        if let Some(end) = subject.plan.cut_at.filter(|_| subject.plan.cuts_last) {
            kept.extend(cut(path, end)?);
        }
        let name = path.file_name().filter(|_| scope.is_many());
        for file in self.args.kept.within(name).settle(kept)? {
            let size = std::fs::metadata(&file).ok().map(|found| found.len());
            if self.out.is_json() {
                self.out.object("kept").text("file", &file.to_string_lossy()).maybe("bytes", size).end();
            } else {
                let size = size.map_or_else(String::new, |size| format!(" ({})", counted(size, "byte")));
                self.out.foreign(format!("kept: {}{size}\n", file.display()).as_bytes())?;
            }
        }
        let options = self.options();
        let check = Check { label: "check", options: &options, threads: None, globals: self.globals };
        let checked = check.whole(Partition::open(path)?);
        if checked.as_ref().is_err_and(Failure::ends_all) {
            let path = path.display();
            self.globals.note(format!("stopped: {path} was put right; what was not done is the check of it"));
        }
        checked.map(Some)
    }

    /// Tells how a log is now, and what is left that nothing can be done about here.
    fn conclude(&mut self, target: &Target, report: &VerifyReport) -> Result<(), Failure> {
        let out = &mut self.out;
        for finding in report.findings.iter().filter(|finding| finding.severity != Severity::Note) {
            print_left(out, finding)?;
        }
        if out.is_json() {
            out.object("summary")
                .text("path", &target.path.to_string_lossy())
                .text("state", if report.is_clean() { "clean" } else { "damaged" })
                .bare("records", report.records)
                .maybe("start", report.start)
                .maybe("end", report.end)
                .bare("damage", report.damage_count)
                .bare("warnings", report.warning_count)
                .end();
        } else if !self.globals.quiet {
            let state = if report.is_clean() { "no damage" } else { "damaged" };
            let text = format!(
                "{}: {state}: {}, {}\n",
                target.path.display(),
                counted(report.batches, "batch"),
                counted(report.records, "record")
            );
            out.foreign(text.as_bytes())?;
        }
        out.flush()?;
        self.left += u64::from(!report.is_clean());
        Ok(())
    }
}

/// Ends a log; the files that keep what was cut.
fn cut(path: &Path, end: Offset) -> Result<Vec<PathBuf>, Failure> {
    let mut writer = LogWriter::open_cut(path, LogConfig::default(), end)?;
    let kept = kept_files(writer.recovery());
    writer.sync()?;
    writer.close()?;
    Ok(kept)
}

fn kept_files(report: &RecoveryReport) -> Vec<PathBuf> {
    let dropped = report.dropped.iter().filter_map(|dropped| dropped.kept_in.clone());
    dropped.chain(report.cut.iter().flat_map(|cut| cut.kept_in.clone())).collect()
}

fn print_left(out: &mut Output, finding: &Finding) -> Result<(), Failure> {
    if out.is_json() {
        out.object("left")
            .text("severity", &finding.severity.to_string())
            .text("file", &finding.file.to_string_lossy())
            .maybe("position", finding.position)
            .maybe("offset", finding.offset)
            .text("kind", finding.kind.as_str())
            .text("detail", &finding.detail)
            .end();
        return out.spill();
    }
    out.foreign(format!("left: {finding}\n").as_bytes())
}

fn print_step(out: &mut Output, step: &Step) -> Result<(), Failure> {
    if out.is_json() {
        out.object("step")
            .text("action", step.action)
            .text("file", &step.file.to_string_lossy())
            .maybe("position", step.position)
            .maybe("offset", step.offset)
            .bare("bytes", step.bytes)
            .maybe("records", step.behind.map(|behind| behind.records))
            .maybe("next", step.behind.map(|behind| behind.next))
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
    let mut text = format!("{} {}{place}: {}", step.action, step.file.display(), step.why);
    if let Some(behind) = step.behind {
        let from = step.offset.unwrap_or_default();
        let _ = write!(
            text,
            "; all that follows goes too, offsets {from} up to {}: {} among it can be read, which repair without \
             --truncate-tail keeps",
            behind.next,
            counted(behind.records, "record")
        );
    }
    text.push('\n');
    out.foreign(text.as_bytes())
}
