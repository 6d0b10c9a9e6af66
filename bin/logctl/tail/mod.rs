//! `logctl tail`: the last records, and those that are still to come.

mod begin;
mod brokers;
mod kept;

use std::{
    os::unix::fs::MetadataExt,
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use stratalog::{
    Access, Error, LogReader, Offset, Position, Timestamp, Wait,
    record::{BatchRef, Scratch},
};

use crate::{
    broker::{BrokerArgs, Patience, Place},
    damage::Damage,
    failure::{Code, Failure},
    filter::FilterArgs,
    globals::{Globals, warn},
    grammar,
    output::{Output, check_reader},
    printer::{PrintArgs, Printer, Window},
    source::{Source, tell_tail},
    stop::Stop,
    target::Target,
};
use begin::begin;
use kept::{Kept, KeptArgs};

/// How long a follower waits for records before it looks whether it is to stop, and whether the directory is still there.
const STEP: Duration = Duration::from_millis(50);
/// How long `-F` waits before it looks for the directory again.
const ABSENT_STEP: Duration = Duration::from_millis(50);
/// How often in a row `-F` meets a directory without the files that it had, as in the middle of its removal.
const ABSENT_TRIES: u32 = 100;
/// How often in a row the same cut may be told.
const SAME_CUT_TRIES: u32 = 3;

/// Print the last records; with -f also those that come
///
/// Unlike kcat it follows only with -f. A writer that ends, crashes, recovers, rolls or deletes old segments does not end
/// it: what had to be left out is told on standard error, with the offsets (with --strict it is a failure, exit code 3).
///
/// With a cursor it goes on where it ended, and prints each record at least once: the place is kept after the records
/// were written to standard output, at the end, on a signal, when it has caught up, and at least after each MiB or 100 ms
/// of output. Killed or cut off from power it prints again what it printed since.
///
/// With -b TARGET is a topic of a broker: the last records of each of its partitions, and with -f those that come in any of
/// them. Brokers that are away for a while do not end it; -F waits for them, and for the topic, as long as it takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl tail ./data/orders-0 -n 20 -f --format '%d{strftime[%F %T]} %p:%o %k=%v\\n'
  logctl tail ./data/orders-0 --since -15m -J
  logctl tail ./data/orders-0 -f --csv --columns time,key,value
  logctl tail ./data/orders-0 -f --grep error --where 'offset > 100 and key is not null'
  logctl tail ./data/orders-0 -F -n all --cursor billing -J | ./bill
  logctl tail -b localhost:9092 orders -n 20 -f --format '%d{strftime[%F %T]} %p:%o %k=%v\\n'")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    /// Partition directory, or one .log file; with -b a topic
    target: Option<PathBuf>,
    /// How many of the last records (that a filter lets through); 0: none; all: from the start; default: 10, or with --since all since then
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    lines: Option<u64>,
    /// Go on with the records that come (in cat and get -f is a template; here write --format)
    #[arg(short = 'f', long)]
    follow: bool,
    /// Like -f, but wait for the directory where it is missing, and begin again with a new one that takes its name
    #[arg(short = 'F', long)]
    follow_name: bool,
    /// Only from the first record that is not older than this: 15m or -15m (ago), today, yesterday,
    /// 2026-11-30T08:00:00Z; an @ before it is allowed
    #[arg(long, value_name = "TIME", value_parser = grammar::time_or_ago, allow_hyphen_values = true)]
    since: Option<Timestamp>,
    /// Only up to the first record that is as new as this: a time as --since takes it; +15m: in 15 minutes
    #[arg(long, value_name = "TIME", value_parser = grammar::time_or_ago, allow_hyphen_values = true)]
    until: Option<Timestamp>,
    #[command(flatten)]
    kept: KeptArgs,
    /// Fail with exit code 3 where records were deleted or cut before they were printed
    #[arg(long)]
    strict: bool,
    /// Pass over what is damaged: tell on standard error which offsets it was, go on behind it, end with exit code 4
    #[arg(long)]
    skip_damaged: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    broker: BrokerArgs,
}

/// A number of records; more than can be counted is all of them.
fn count(text: &str) -> Result<u64, String> {
    if text == "all" {
        return Ok(u64::MAX);
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("`{text}` is not a number of records"));
    }
    Ok(text.parse().unwrap_or(u64::MAX))
}

/// Runs the verb.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let stop = globals.stop();
    let follows = args.follow || args.follow_name;
    if let Some(place) = Place::find(&args.broker, globals, args.target.as_deref(), Patience::new)? {
        return brokers::run(args, globals, &place, &stop);
    }
    let (target, source) = open(args, globals, &stop)?;
    let mut output = globals.stdout()?;
    let mut printer = Printer::new(&args.print, None, args.filter.filter()?, &target, &mut output)?;
    printer.look_at(&source)?;
    let kept = Kept::open(&args.kept, &target)?;
    let at = match kept.as_ref().and_then(Kept::position) {
        Some(position) => position,
        None => begin(args, &source, &printer, &stop)?.into(),
    };
    let damage = Damage::new(args.skip_damaged);
    let scratch = Scratch::new();
    let (output, cuts) = (&mut output, Cuts::default());
    let mut tail = Tail { args, globals, stop: &stop, printer, output, scratch, at, kept, damage, cuts };
    // The first place is kept too: a `-n 0` that is killed before a record comes must not begin at a later end.
    tail.settle()?;
    let outcome = match source {
        Source::Log(reader) if follows => tail.follow(reader, &target),
        Source::Log(reader) => tail.once(&reader),
        Source::File(_) if follows => Err(Failure::usage("a single segment file cannot be followed")
            .hint("name the partition directory that it lies in")),
        other => tail.file(&other),
    };
    // Whatever ended it: what was printed is written, and no place is kept that lies behind what was.
    let settled = tail.settle();
    outcome.and(settled).map(|()| tail.damage.exit_code())
}

/// Opens the target; with `-F` waits until there is one.
fn open(args: &Args, globals: &Globals, stop: &Stop) -> Result<(Target, Source), Failure> {
    let mut told = false;
    loop {
        let opened = Target::existing(globals, args.target.as_deref()).and_then(|target| {
            Source::open(&target, Access::Sequential, args.print.isolation()).map(|source| (target, source))
        });
        match opened {
            Err(failure) if args.follow_name && failure.code == Code::NotFound => {
                if !told {
                    globals.note("waiting for the log to appear");
                    told = true;
                }
                stop.check()?;
                check_reader(std::io::stdout())?;
                thread::sleep(ABSENT_STEP);
            }
            opened => return opened,
        }
    }
}

struct Tail<'t> {
    args: &'t Args,
    globals: &'t Globals,
    stop: &'t Stop,
    printer: Printer<'t>,
    output: &'t mut Output,
    scratch: Scratch,
    /// Where to go on: all before it was printed, or is told to be missing.
    at: Position,
    kept: Option<Kept>,
    damage: Damage,
    cuts: Cuts,
}

/// The last cut, so that nothing is printed for ever where the log tells of the same one again and again.
#[derive(Debug, Default)]
struct Cuts {
    /// Where, and the log's last leader epoch then: each cut begins another.
    last: Option<(Offset, Option<(i32, Offset)>)>,
    times: u32,
}

impl Cuts {
    /// Notes one. True where it was met too often.
    fn is_the_same_again(&mut self, end: Offset, epoch: Option<(i32, Offset)>) -> bool {
        self.times = if self.last == Some((end, epoch)) { self.times + 1 } else { 1 };
        self.last = Some((end, epoch));
        self.times > SAME_CUT_TRIES
    }
}

impl Tail<'_> {
    /// What a single file holds.
    fn file(&mut self, source: &Source) -> Result<(), Failure> {
        let (from, to) = (self.at.offset, self.bounded_end(source.end(), |at| source.first_not_before(at))?);
        let window = Window { from, to, most: u64::MAX };
        if from < to {
            source.visit_over(&mut self.damage, from, self.stop, &mut |batch| {
                if batch.base_offset() >= to {
                    return Ok(std::ops::ControlFlow::Break(()));
                }
                self.printer.batch(batch, window, &mut self.scratch, self.output)?;
                Ok(std::ops::ControlFlow::Continue(()))
            })?;
        }
        self.output.flush()?;
        tell_tail(source, self.globals)
    }

    /// What is there now.
    fn once(&mut self, reader: &LogReader) -> Result<(), Failure> {
        let first_not_before = |at| Ok(reader.offset_for_timestamp(at)?.map(|(offset, _)| offset));
        let to = self.bounded_end(reader.end(), first_not_before)?;
        while let Err(failure) = self.read(reader, to) {
            self.overcome(failure, reader)?;
        }
        Ok(())
    }

    fn bounded_end(
        &self,
        end: Offset,
        first_not_before: impl FnOnce(Timestamp) -> Result<Option<Offset>, Failure>,
    ) -> Result<Offset, Failure> {
        Ok(match self.args.until {
            Some(until) => first_not_before(until)?.unwrap_or(end),
            None => end,
        })
    }

    /// What is there, and what comes.
    fn follow(&mut self, mut reader: LogReader, target: &Target) -> Result<(), Failure> {
        let mut place = identity(target);
        let mut absent = 0;
        loop {
            self.stop.check()?;
            let step = self.read(&reader, Offset::MAX).and_then(|is_over| {
                self.settle()?;
                let is_over = is_over || self.args.until.is_some_and(is_past);
                if !is_over {
                    self.wait(&reader)?;
                }
                Ok(is_over)
            });
            match &step {
                Ok(true) => return Ok(()),
                // A signal, the time limit, or standard output: nothing that the log could be the reason of.
                Err(failure) if failure.source().is_none() => return step.map(drop),
                _ => {}
            }
            let there = identity(target);
            if there != place {
                // A directory that was only renamed still has what was not read yet; of one that was removed files fail.
                match self.read(&reader, Offset::MAX) {
                    Err(failure) if failure.source().is_none() => return Err(failure),
                    _ => self.output.flush()?,
                }
                // A cursor that was removed with its log needs no place any more.
                match self.settle() {
                    Err(failure) if !is_absent(&failure) => return Err(failure),
                    _ => {}
                }
                reader = self.next_log(target)?;
                place = identity(target);
            } else if let Err(failure) = step {
                if self.args.follow_name && is_absent(&failure) && absent < ABSENT_TRIES {
                    absent += 1;
                    thread::sleep(ABSENT_STEP);
                    continue;
                }
                self.overcome(failure, &reader)?;
            }
            absent = 0;
        }
    }

    /// Prints what there is from `at` on and before `end`; true once `--until` is reached.
    fn read(&mut self, reader: &LogReader, end: Offset) -> Result<bool, Failure> {
        self.printer.look_at_log(reader)?;
        let mut batches = reader.batches(self.at).include_control(true);
        loop {
            let next = batches.position().offset;
            let batch = match batches.next_batch() {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(error) => {
                    self.damage.met(next, error.into()).map_err(with_way_on)?;
                    continue;
                }
            };
            self.stop.check()?;
            self.damage.ends_at(batch.base_offset());
            if batch.base_offset() >= end {
                return Ok(false);
            }
            let until = self.args.until;
            let to = until.and_then(|until| first_since(&batch, until, self.at.offset, &mut self.scratch));
            let to = to.map_or(end, |to| to.min(end));
            let window = Window { from: self.at.offset, to, most: u64::MAX };
            let behind = batch.next_offset().unwrap_or(Offset::MAX);
            if let Err(failure) = self.printer.batch(&batch, window, &mut self.scratch, self.output) {
                self.damage.met(batch.base_offset(), failure).map_err(with_way_on)?;
                self.damage.ends_at(behind);
            }
            self.at = Position { offset: behind.min(to), leader_epoch: Some(batch.leader_epoch()) };
            if (to < end && to < behind) || behind >= end {
                return Ok(to < end);
            }
            if self.kept.as_ref().is_some_and(|kept| kept.is_due(self.output.printed_bytes())) {
                self.settle()?;
            }
        }
        if batches.position().offset > self.at.offset {
            // What was aborted is behind us too.
            self.at = batches.position();
        }
        if self.damage.ends_at(reader.end()) {
            // Nothing behind it yet: it is not to be met again.
            self.at.offset = self.at.offset.max(reader.end());
        }
        Ok(false)
    }

    /// Hands what was printed to the kernel, and only then keeps the place behind it.
    fn settle(&mut self) -> Result<(), Failure> {
        self.output.flush()?;
        match &mut self.kept {
            Some(kept) => kept.commit(self.at, self.output.printed_bytes()),
            None => Ok(()),
        }
    }

    /// Waits until there may be more.
    fn wait(&self, reader: &LogReader) -> Result<(), Failure> {
        // As `head` does once it has enough: the next record may be a long way off.
        self.output.check_reader()?;
        let deadline = self.stop.no_later_than(Instant::now() + STEP);
        match reader.wait_past(self.at, deadline) {
            Wait::Advanced | Wait::TimedOut => Ok(()),
            Wait::Truncated { end } => Err(Error::Truncated { end }.into()),
            // Nobody writes now; somebody may, later.
            _ => {
                thread::sleep(deadline.saturating_duration_since(Instant::now()));
                Ok(reader.refresh().map(drop)?)
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
        if self.kept.as_ref().is_some_and(Kept::is_beside_the_log) {
            self.kept = None;
        }
        let (_, Source::Log(next)) = open(self.args, self.globals, self.stop)? else {
            return Err(Failure::other("a file has taken the place of the directory"));
        };
        self.at = next.start().into();
        if self.kept.is_none() {
            self.kept = Kept::open(&self.args.kept, target)?;
            // One that came with the directory, as from a backup.
            self.at = self.kept.as_ref().and_then(Kept::position).unwrap_or(self.at);
        }
        Ok(next)
    }

    /// Goes on where that makes sense: behind deleted records, or at a cut.
    fn overcome(&mut self, failure: Failure, reader: &LogReader) -> Result<(), Failure> {
        match failure.source() {
            Some(Error::OffsetOutOfRange { requested, start, .. }) if *requested < *start => {
                let (last, count) = (start.saturating_sub(1), start.since(*requested));
                self.leave_out(
                    format!(
                        "offsets {requested} to {last} were deleted before they were read: {count} skipped"
                    ),
                    *start,
                )
            }
            Some(Error::Truncated { end }) => {
                if self.cuts.is_the_same_again(*end, reader.leader_epochs().last().copied()) {
                    return Err(failure.hint(
                        "told again and again of the same cut: `logctl verify` tells whether the leader epochs fit, `logctl repair` builds them anew",
                    ));
                }
                self.leave_out(format!("the log was cut: records from offset {end} on are new ones"), *end)
            }
            Some(Error::OffsetOutOfRange { requested, end, .. }) => self.leave_out(
                format!("the log ends at {end}, before offset {requested} up to which it was read"),
                *end,
            ),
            _ => Err(failure),
        }
    }

    /// Tells what is missing and goes on at `next`; with `--strict` that is the end.
    fn leave_out(&mut self, what: String, next: Offset) -> Result<(), Failure> {
        self.output.flush()?;
        if self.args.strict {
            return Err(
                Failure::not_found(what).hint(format!("without --strict it goes on at offset {next}"))
            );
        }
        warn(&what);
        self.at = next.into();
        Ok(())
    }
}

/// The first record of a batch, from an offset on, that is as new as `until`. What cannot be read is met when it is printed.
fn first_since(
    batch: &BatchRef<'_>,
    until: Timestamp,
    from: Offset,
    scratch: &mut Scratch,
) -> Option<Offset> {
    if batch.max_timestamp() < until {
        return None;
    }
    let mut records = batch.records(scratch).ok()?.map_while(Result::ok);
    records
        .find(|record| record.timestamp() >= until && record.offset() >= from)
        .map(|record| record.offset())
}

fn with_way_on(failure: Failure) -> Failure {
    if failure.code != Code::Corrupt {
        return failure;
    }
    failure.hint("--skip-damaged goes on behind it; `logctl verify` lists everything that is damaged")
}

/// True where a file is not there.
fn is_absent(failure: &Failure) -> bool {
    match failure.source() {
        Some(Error::Io { source, .. }) => source.kind() == std::io::ErrorKind::NotFound,
        Some(Error::NotFound { .. }) => true,
        _ => false,
    }
}

fn is_past(until: Timestamp) -> bool {
    grammar::time("now").is_ok_and(|now| now >= until)
}

/// What tells a directory from another that takes its name; `None` where there is none.
fn identity(target: &Target) -> Option<(u64, u64)> {
    std::fs::metadata(&target.path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_cut_is_met_three_times_and_others_for_ever() {
        let at = |offset| Offset::new(offset).unwrap_or(Offset::ZERO);
        let mut cuts = Cuts::default();
        for epoch in 1..20 {
            assert!(
                !cuts.is_the_same_again(at(7), Some((epoch, at(7)))),
                "a writer that is cut off again and again"
            );
        }
        for _ in 1..SAME_CUT_TRIES {
            assert!(!cuts.is_the_same_again(at(7), Some((19, at(7)))));
        }
        assert!(cuts.is_the_same_again(at(7), Some((19, at(7)))));
        assert!(!cuts.is_the_same_again(at(9), Some((19, at(7)))));
    }
}
