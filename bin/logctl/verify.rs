//! `logctl verify`: is every byte of a log what was written, and does every index tell the truth.
//!
//! Reads only, takes no lock, and works beside a writer: an end that is not whole yet is looked at twice.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
};

use stratalog::{
    LogReader, ReadOptions,
    inspect::{
        Finding, FindingKind, Partition, Severity, VerifyOptions, VerifyReport, base_offset_of,
        verify_data_directory, verify_file,
    },
};

use crate::{
    check::{Check, Checked},
    failure::{Code, Failure},
    globals::{self, Globals},
    output::{Output, counted},
    scope::{Scope, reachable},
    target::Target,
};

/// Check every batch and index of a log, or of all logs of a data directory
///
/// All segments are checked in one pool of threads, and a large one by several of them. Reads only, takes no lock, works
/// beside a writer. Exit code 0 where nothing is damaged, 4 where something is.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "a flag each")]
#[command(after_long_help = "\
A file that is no segment of a log, such as .stratalog-cut-* and what `export` wrote, is checked by
itself, without indexes.

Exit codes: 0 nothing is damaged; 1 something could not be checked; 2 a file without batches; 3 no
such log; 4 something is damaged; 8 of several partitions some could not be read; 124, 130, 143
ended early, with what was found until then.

One line for each finding: notes are legal (so is room behind the end of a log that is in use or
was not closed), warnings lose nothing (a missing index, room in a log that was closed), damage
is damage.

Examples:
  logctl verify data/orders-0
  logctl verify data --deep                     # every partition
  logctl verify data/orders-0 -J | jq -c .
  logctl verify data --since-checkpoint         # what was written since the last check")]
pub(crate) struct Args {
    /// A partition directory, one .log file of it, a data directory, or any file of batches
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// Unpack and read every record too
    #[arg(long)]
    deep: bool,
    /// Check the .log files only
    #[arg(long)]
    no_indexes: bool,
    /// Leave out the segments below the recovery point: ours, or a broker's
    #[arg(long)]
    since_checkpoint: bool,
    /// How many threads, at most 256 [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = threads)]
    parallel: Option<NonZeroUsize>,
    /// JSON lines: an object for each finding, and one for each partition that sums up
    #[arg(short = 'J', long)]
    json: bool,
}

/// A partition to be checked, or why it cannot be.
struct Subject<'t> {
    target: &'t Target,
    directory: PathBuf,
    /// Its number among those that could be opened.
    opened: Result<usize, Failure>,
    segments: std::ops::Range<usize>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let scope = Scope::find(globals, args.target.as_deref())?;
    let mut options = VerifyOptions::default();
    options.deep = args.deep;
    options.indexes = !args.no_indexes;
    if let [target] = scope.targets.as_slice()
        && target.is_file
        && !is_segment(target)
    {
        return loose_file(args, target, &options, globals);
    }
    let mut partitions = Vec::new();
    let mut subjects = Vec::new();
    for target in &scope.targets {
        let subject = args.subject(target, &mut partitions);
        match subject.opened {
            Err(failure) if !scope.is_many() => return Err(failure),
            _ => subjects.push(subject),
        }
    }
    let work: Vec<(usize, usize)> = subjects
        .iter()
        .filter_map(|subject| Some((*subject.opened.as_ref().ok()?, subject.segments.clone())))
        .flat_map(|(partition, segments)| segments.map(move |segment| (partition, segment)))
        .collect();
    let check = Check { label: "verify", options: &options, threads: args.parallel, globals };
    let mut checked = check.run(&partitions, &work);
    let mut out = globals.report(args.json)?;
    let mut totals = Totals::default();
    if let Some(directory) = &scope.directory {
        let findings = verify_data_directory(directory)?;
        totals.warnings += findings.len() as u64;
        print_findings(&mut out, &findings)?;
    }
    let ended = subjects.iter().try_for_each(|subject| {
        let ended =
            Args::conclude(subject, &partitions, &mut checked, &options, (&mut out, &mut totals, globals));
        match ended {
            Err(failure) if scope.is_many() && failure.code != Code::ClosedPipe => {
                totals.failed += 1;
                globals.complain(&failure.at(subject.target.path.display()));
                Ok(())
            }
            ended => ended,
        }
    });
    if scope.is_many() {
        totals.print(&mut out, scope.directory.as_deref(), globals)?;
    }
    out.finish()?;
    if let Some(stopped) = checked.stopped {
        let mib = |bytes: u64| bytes >> 20;
        globals.note(format!(
            "stopped: {} of {} MiB were checked, in them {} damaged",
            mib(checked.done_bytes),
            mib(checked.total_bytes),
            totals.damage
        ));
        return Err(stopped);
    }
    if totals.damage > 0 {
        return Err(Failure::quiet(Code::Corrupt));
    }
    ended?;
    if totals.failed > 0 {
        return Err(Failure::quiet(Code::Partly));
    }
    Ok(ExitCode::SUCCESS)
}

/// True for a file that is a segment of the log in its directory by its name.
fn is_segment(target: &Target) -> bool {
    let name = target.path.file_name().and_then(|name| name.to_str());
    base_offset_of(&target.path)
        .is_some_and(|base| name == Some(format!("{:020}.log", base.value()).as_str()))
}

/// Any other file, if there are batches in it: it is checked by itself.
fn loose_file(
    args: &Args,
    target: &Target,
    options: &VerifyOptions,
    globals: &Globals,
) -> Result<ExitCode, Failure> {
    let path = target.path.display();
    let Some(report) = verify_file(&target.path, options)? else {
        return Err(Failure::usage(format!("{path}: there is no whole batch in it"))
            .hint("name a file of batches or a directory of them; `logctl dump` reads other files"));
    };
    let mut out = globals.report(args.json)?;
    print(&mut out, target, globals, &report, (true, 0))?;
    out.finish()?;
    match (report.is_clean(), report.unread) {
        (false, _) => Err(Failure::quiet(Code::Corrupt)),
        (true, 0) => Ok(ExitCode::SUCCESS),
        (true, unread) => {
            Err(Failure::other(format!("{unread} batches could not be read and were not checked")))
        }
    }
}

impl Args {
    fn subject<'t>(&self, target: &'t Target, partitions: &mut Vec<Partition>) -> Subject<'t> {
        let directory = if target.is_file {
            target.path.parent().map_or_else(PathBuf::new, Path::to_path_buf)
        } else {
            target.path.clone()
        };
        let mut segments = 0..0;
        let found = reachable(&directory).and_then(|()| Ok(Partition::open(&directory)?));
        let opened = found.and_then(|partition| {
            segments = self.segments(target, &partition)?;
            partitions.push(partition);
            Ok(partitions.len() - 1)
        });
        Subject { target, directory, opened, segments }
    }

    /// Which of its segments are to be checked.
    fn segments(&self, target: &Target, partition: &Partition) -> Result<std::ops::Range<usize>, Failure> {
        if target.is_file {
            let number = base_offset_of(&target.path).and_then(|base| partition.segment_at(base));
            let is_log = target.path.extension().is_some_and(|suffix| suffix == "log");
            let (Some(number), true) = (number, is_log) else {
                let what = format!("{}: not the .log file of a segment", target.path.display());
                return Err(Failure::usage(what)
                    .hint("name a .log file or its directory; `logctl dump` reads other files"));
            };
            return Ok(number..number + 1);
        }
        let all = 0..partition.segment_count();
        if !self.since_checkpoint {
            return Ok(all);
        }
        let Some(point) = partition.recovery_point() else {
            globals::warn(&format!("{}: no recovery point is known: all is checked", target.path.display()));
            return Ok(all);
        };
        Ok(partition.segments_from(point))
    }

    /// Puts together what was found in one partition, and prints it.
    fn conclude(
        subject: &Subject<'_>,
        partitions: &[Partition],
        checked: &mut Checked,
        options: &VerifyOptions,
        (out, totals, globals): (&mut Output, &mut Totals, &Globals),
    ) -> Result<(), Failure> {
        let Subject { target, directory, opened, segments } = subject;
        let number = match opened {
            Ok(number) => *number,
            Err(failure) => return Err(Failure::new(failure.code, failure.what())),
        };
        let Some(partition) = partitions.get(number) else { return Ok(()) };
        let reports = checked.reports.get_mut(number).map(std::mem::take).unwrap_or_default();
        let is_whole = reports.len() == segments.len();
        let mut report = if target.is_file || !is_whole {
            VerifyReport::of_segments(reports)
        } else {
            partition.conclude(reports, options)
        };
        if !is_whole && report.segments == 0 {
            // Nothing was come to.
            return Ok(());
        }
        if report.segments == 0 && report.is_clean() {
            return Err(Failure::not_found(format!("no log at {}", target.path.display()))
                .hint("a log is a directory with .log files in it"));
        }
        excuse_room(&mut report, directory);
        totals.add(&report);
        let left_out = if target.is_file { 0 } else { segments.start };
        print(out, target, globals, &report, (is_whole, left_out))?;
        if report.unchecked_bytes > 0 && report.is_clean() {
            return Err(Failure::other(format!("{} bytes could not be checked", report.unchecked_bytes)));
        }
        if report.unread > 0 && report.is_clean() {
            let what = format!("{} files or batches could not be read and were not checked", report.unread);
            return Err(Failure::other(what).hint("the findings `unreadable` and `unread` name them"));
        }
        Ok(())
    }
}

/// What was found in all partitions.
#[derive(Default)]
struct Totals {
    partitions: u64,
    damaged: u64,
    failed: u64,
    segments: u64,
    batches: u64,
    records: u64,
    bytes: u64,
    damage: u64,
    warnings: u64,
}

impl Totals {
    fn add(&mut self, report: &VerifyReport) {
        self.partitions += 1;
        self.damaged += u64::from(!report.is_clean());
        self.segments += report.segments;
        self.batches += report.batches;
        self.records += report.records;
        self.bytes += report.bytes;
        self.damage += report.damage_count;
        self.warnings += report.warning_count;
    }

    fn print(&self, out: &mut Output, directory: Option<&Path>, globals: &Globals) -> Result<(), Failure> {
        let path = directory.map_or_else(String::new, |path| path.display().to_string());
        if out.is_json() {
            out.object("total")
                .text("path", &path)
                .bare("partitions", self.partitions)
                .bare("damaged", self.damaged)
                .bare("failed", self.failed)
                .bare("segments", self.segments)
                .bare("batches", self.batches)
                .bare("records", self.records)
                .bare("bytes", self.bytes)
                .bare("damage", self.damage)
                .bare("warnings", self.warnings)
                .end();
        } else if !globals.quiet {
            let text = format!(
                "{path}: {} of {} damaged: {}, {}, {}{}\n",
                self.damaged,
                counted(self.partitions, "partition"),
                counted(self.batches, "batch"),
                counted(self.records, "record"),
                counted(self.bytes, "byte"),
                found_text(self.damage, self.warnings),
            );
            out.foreign(text.as_bytes())?;
        }
        Ok(())
    }
}

/// Room behind the end is what a writer works in, and what it leaves where it did not come to close the log.
pub(crate) fn excuse_room(report: &mut VerifyReport, directory: &Path) {
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

fn print_findings(out: &mut Output, findings: &[Finding]) -> Result<(), Failure> {
    for finding in findings {
        if out.is_json() {
            json_finding(out, finding);
            out.spill()?;
        } else {
            out.foreign(finding.to_string().as_bytes())?;
            out.line("")?;
        }
    }
    Ok(())
}

/// The findings of a partition, and what they come to.
fn print(
    out: &mut Output,
    target: &Target,
    globals: &Globals,
    report: &VerifyReport,
    (is_whole, left_out): (bool, usize),
) -> Result<(), Failure> {
    print_findings(out, &report.findings)?;
    if report.findings_left_out > 0 && !out.is_json() {
        out.line(format!("and {} more findings", report.findings_left_out))?;
    }
    let state = match (report.damage_count, report.unchecked_bytes, report.unread) {
        (0, ..) if !is_whole => "stopped",
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
            .bare("segments_left_out", left_out)
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
        let left_out = match left_out {
            0 => String::new(),
            count => format!(" ({count} below the recovery point left out)"),
        };
        let text = format!(
            "{}: {state_text}: {}{left_out}, {}, {}, {}{range}{}\n",
            target.path.display(),
            counted(report.segments, "segment"),
            counted(report.batches, "batch"),
            counted(report.records, "record"),
            counted(report.bytes, "byte"),
            found_text(report.damage_count, report.warning_count),
        );
        out.foreign(text.as_bytes())?;
        // What a copy lacks is not to be repaired: who made it finishes it, and the finding says so.
        let is_copy = report.findings.iter().any(|finding| finding.kind == FindingKind::UnfinishedCopy);
        if report.damage_count > 0 && !target.is_file && !is_copy {
            let text = format!("`logctl repair {}` shows what can be done\n", target.path.display());
            out.foreign(text.as_bytes())?;
        }
    }
    Ok(())
}

/// A number of threads.
fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "write a number from 1 on".to_owned())
}

/// How many findings there are, where there are any.
fn found_text(damage: u64, warnings: u64) -> String {
    match (damage, warnings) {
        (0, 0) => String::new(),
        (0, warnings) => format!("; {}", counted(warnings, "warning")),
        (damage, 0) => format!("; {} of damage", counted(damage, "finding")),
        (damage, warnings) => {
            format!("; {} of damage, {}", counted(damage, "finding"), counted(warnings, "warning"))
        }
    }
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
