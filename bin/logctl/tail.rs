//! `logctl tail`: the last records, and those that are still to come.
//!
//! A log that another process writes is followed by looking again every few milliseconds.

use std::{
    ops::ControlFlow,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use stratalog::{Access, Error, LogReader, Offset, Position, Timestamp, Wait, record::Scratch};

use crate::{
    failure::{Code, Failure},
    globals::Globals,
    grammar,
    output::Output,
    printer::{PrintArgs, Printer, Window},
    source::{Source, tell_tail},
    stop::Stop,
    target::Target,
};

/// How long a follower waits before it looks again.
const STEP: Duration = Duration::from_millis(20);
/// How long `-F` waits before it looks for the directory again.
const ABSENT_STEP: Duration = Duration::from_millis(50);

/// Prints the last records; with -f also those that come
///
/// Unlike kcat it follows only with -f. A writer that crashes, recovers, rolls or deletes old segments does not end it:
/// what had to be left out is told on standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  logctl tail ./data/orders-0 -n 20 -f --format '%d{strftime[%F %T]} %p:%o %k=%v\\n'
  logctl tail ./data/orders-0 --since -15m -J")]
pub(crate) struct Args {
    /// Partition directory, or one .log file
    target: Option<PathBuf>,
    /// How many of the last records; 0: none; default: 10, or with --since all since then
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    lines: Option<u64>,
    /// Go on with the records that come (in cat and get -f is a template; here write --format)
    #[arg(short = 'f', long)]
    follow: bool,
    /// Like -f, and wait for the directory where it is missing
    #[arg(short = 'F', long)]
    follow_name: bool,
    /// Only from the first record that is not older than this: -15m, today, yesterday, 2026-11-30T08:00:00Z; an @ before
    /// it is allowed
    #[arg(long, value_name = "TIME", value_parser = grammar::time, allow_hyphen_values = true)]
    since: Option<Timestamp>,
    /// Only up to the first record that is as new as this
    #[arg(long, value_name = "TIME", value_parser = grammar::time, allow_hyphen_values = true)]
    until: Option<Timestamp>,
    #[command(flatten)]
    print: PrintArgs,
}

/// A number of records; more than can be counted is all of them.
fn count(text: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("`{text}` is not a number of records"));
    }
    Ok(text.parse().unwrap_or(u64::MAX))
}

/// Runs the verb.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let stop = globals.stop();
    let follows = args.follow || args.follow_name;
    let (target, source) = open(args, globals, &stop)?;
    let mut output = globals.stdout()?;
    let printer = Printer::new(&args.print, None, &target, &output)?;
    let from = begin(args, &source, &stop)?;
    let mut tail = Tail { args, globals, stop: &stop, printer, output: &mut output, scratch: Scratch::new() };
    let outcome = match source {
        Source::Log(reader) if follows => tail.follow(reader, &target, from),
        _ if follows => Err(Failure::usage("a single segment file cannot be followed")
            .hint("name the partition directory that it lies in")),
        source => tail.bounded(&source, from),
    };
    let flushed = tail.output.flush();
    outcome.and(flushed).map(|()| ExitCode::SUCCESS)
}

/// Opens the target; with `-F` waits until there is one.
fn open(args: &Args, globals: &Globals, stop: &Stop) -> Result<(Target, Source), Failure> {
    let mut told = false;
    loop {
        let opened = Target::existing(globals, args.target.as_deref())
            .and_then(|target| Source::open(&target, Access::Sequential).map(|source| (target, source)));
        match opened {
            Err(failure) if args.follow_name && failure.code == Code::NotFound => {
                if !told {
                    globals.note("waiting for the log to appear");
                    told = true;
                }
                stop.check()?;
                thread::sleep(ABSENT_STEP);
            }
            opened => return opened,
        }
    }
}

fn begin(args: &Args, source: &Source, stop: &Stop) -> Result<Offset, Failure> {
    let since = match args.since {
        None => None,
        Some(at) => Some(source.first_not_before(at)?.unwrap_or_else(|| source.end())),
    };
    let last = match (args.lines, since) {
        (None, Some(_)) => None,
        (lines, _) => Some(source.last_records_from(lines.unwrap_or(10), stop)?),
    };
    Ok(since.max(last).unwrap_or_else(|| source.start()))
}

struct Tail<'t> {
    args: &'t Args,
    globals: &'t Globals,
    stop: &'t Stop,
    printer: Printer<'t>,
    output: &'t mut Output,
    scratch: Scratch,
}

impl Tail<'_> {
    /// What is there now.
    fn bounded(&mut self, source: &Source, from: Offset) -> Result<(), Failure> {
        let mut to = source.end();
        if let Some(until) = self.args.until {
            to = source.first_not_before(until)?.unwrap_or(to);
        }
        let window = Window { from, to, most: u64::MAX };
        if from < to {
            source.visit(from, self.stop, &mut |batch| {
                if batch.base_offset() >= to {
                    return Ok(ControlFlow::Break(()));
                }
                self.printer.batch(batch, window, &mut self.scratch, self.output)?;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        tell_tail(source, self.globals)
    }

    /// What is there, and what comes.
    fn follow(&mut self, mut reader: LogReader, target: &Target, from: Offset) -> Result<(), Failure> {
        let mut at = Position { offset: from, leader_epoch: None };
        let mut place = identity(target);
        loop {
            self.stop.check()?;
            match self.read(&reader, &mut at) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => self.overcome(error, &mut at)?,
            }
            self.output.flush()?;
            if self.args.until.is_some_and(|until| grammar::time("now").is_ok_and(|now| now >= until)) {
                return Ok(());
            }
            if let Err(error) = self.wait(&reader, at) {
                self.overcome(error.into(), &mut at)?;
            }
            if identity(target) != place {
                reader = self.next_log(target)?;
                place = identity(target);
                at = Position { offset: reader.start(), leader_epoch: None };
            }
        }
    }

    /// Prints what there is from `at` on; true once `--until` is reached.
    fn read(&mut self, reader: &LogReader, at: &mut Position) -> Result<bool, Failure> {
        let mut batches = reader.batches(*at);
        while let Some(batch) = batches.next_batch()? {
            self.stop.check()?;
            let mut to = Offset::MAX;
            if let Some(until) = self.args.until
                && batch.max_timestamp() >= until
            {
                for record in batch.records(&mut self.scratch).map_err(|e| Failure::other(e.to_string()))? {
                    let record = record.map_err(|e| Failure::other(e.to_string()))?;
                    if record.timestamp() >= until && record.offset() >= at.offset {
                        to = record.offset();
                        break;
                    }
                }
            }
            let window = Window { from: at.offset, to, most: u64::MAX };
            self.printer.batch(&batch, window, &mut self.scratch, self.output)?;
            if to < Offset::MAX {
                return Ok(true);
            }
            *at = Position {
                offset: batch.next_offset().unwrap_or(Offset::MAX),
                leader_epoch: Some(batch.leader_epoch()),
            };
        }
        Ok(false)
    }

    /// Waits until there may be more.
    fn wait(&self, reader: &LogReader, at: Position) -> Result<(), Error> {
        let deadline = self.stop.no_later_than(Instant::now() + STEP);
        match reader.wait_past(at, deadline) {
            Wait::Advanced => Ok(()),
            Wait::Truncated { end } => Err(Error::Truncated { end }),
            _ => {
                let left = deadline.saturating_duration_since(Instant::now());
                thread::sleep(left);
                reader.refresh().map(drop)
            }
        }
    }

    /// The directory was removed, or another took its place: with `-F` the log that has its name next.
    fn next_log(&mut self, target: &Target) -> Result<LogReader, Failure> {
        let gone = format!("{} was removed while it was followed", target.path.display());
        if !self.args.follow_name {
            return Err(Failure::not_found(gone).hint("tail -F goes on with a new one of the same name"));
        }
        warn(&gone);
        match open(self.args, self.globals, self.stop)? {
            (_, Source::Log(next)) => Ok(next),
            _ => Err(Failure::other("a file has taken the place of the directory")),
        }
    }

    /// Goes on where that makes sense: behind deleted records, or at a cut.
    fn overcome(&mut self, failure: Failure, at: &mut Position) -> Result<(), Failure> {
        self.output.flush()?;
        match failure.source() {
            Some(Error::OffsetOutOfRange { requested, start, .. }) if *requested < *start => {
                warn(&format!(
                    "offsets {requested} to {} were deleted before they were read: {} skipped",
                    start.saturating_sub(1),
                    start.since(*requested)
                ));
                *at = Position { offset: *start, leader_epoch: None };
                Ok(())
            }
            Some(Error::Truncated { end }) => {
                warn(&format!("the log was cut: records from offset {end} on are new ones"));
                *at = Position { offset: *end, leader_epoch: None };
                Ok(())
            }
            Some(Error::OffsetOutOfRange { end, .. }) => {
                warn(&format!("the log ends at {end} now, before the records already printed"));
                *at = Position { offset: *end, leader_epoch: None };
                Ok(())
            }
            _ => Err(failure),
        }
    }
}

/// What tells a directory from another that takes its name; `None` where there is none.
fn identity(target: &Target) -> Option<(u64, u64)> {
    std::fs::metadata(&target.path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Data was left out: that is told also with `-q`.
fn warn(text: &str) {
    crate::globals::eprint(&format!("warning: {text}"));
}
