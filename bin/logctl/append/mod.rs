//! `logctl append`: records from standard input or files into a log or a broker's topic.
//!
//! Lives here: the verb and its loop (`mod.rs`), its options (`options.rs`), the thread that reads input (`input.rs`),
//! records out of bytes (`records.rs`, `layout/`), batches out of records (`batches.rs`) and where they go (`sink.rs`):
//! into a log, with the acknowledgements (`acknowledge.rs`), or to brokers (`brokers.rs`). Not here: how a log is written,
//! how a broker is asked. Holds always: what is printed or counted as appended is in the
//! log, at the level that `--sync` promises; nothing read after the first error is appended.

mod acknowledge;
mod batches;
mod brokers;
mod input;
mod layout;
mod options;
mod records;
mod sink;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use stratalog::{Error, LogWriter};

use crate::{
    broker::{Patience, Place},
    failure::{Code, Failure},
    globals::Globals,
    output::{Output, counted},
    recovered::tell_recovery,
    stop::Stop,
    target::Target,
};
use acknowledge::Total;
use batches::Batches;
use input::{Event, Input};
pub(crate) use options::Args;
use options::Sync;
use records::{Placed, Records};
use sink::{LogSink, Sink};

/// Input that stays away this long is a pause: what has come is appended and made durable.
const PAUSE: Duration = Duration::from_millis(50);
/// A record waits no longer than this to be appended, even where the input never pauses.
const HELD_AT_MOST: Duration = Duration::from_millis(200);
/// How often retention and due syncs are looked at.
const MAINTAIN_EVERY: Duration = Duration::from_secs(1);

/// Runs the verb.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    if let Some(place) = Place::find(&args.broker, globals, args.target.as_deref(), Patience::new)? {
        return brokers::run(args, globals, &place);
    }
    if args.acks.is_some() {
        return Err(Failure::usage(
            "--acks is what brokers promise: --sync says when a directory's records are durable",
        ));
    }
    let records = Records::new(args)?;
    let target = Target::directory(globals, args.target.as_deref())?;
    if !args.create {
        target.must_exist(globals)?;
    }
    let config = args.log_config()?;
    let stop = globals.stop();
    let writer =
        LogWriter::open(&target.path, config).map_err(|e| add_create_hint(Failure::from(e), args))?;
    tell_recovery(writer.recovery(), globals);
    if let Some(expected) = args.expect.filter(|expected| *expected != writer.end()) {
        // Also where no input comes that could meet it.
        return Err(Error::UnexpectedOffset { expected, end: writer.end() }.into());
    }
    let output = args.report.is_some().then(|| globals.stdout()).transpose()?;
    let sink = Sink::Log(Box::new(LogSink::new(args, &target, writer, output)));
    let mut job = Job::new(args, globals, &stop, 1, sink)?;
    let copied = job.run(records, args, matches!(args.sync, Sync::Interval(_)));
    let Sink::Log(log) = job.sink else { return copied.map(|()| ExitCode::SUCCESS) };
    let retains = args.retention_bytes.is_some() || args.retention_age.is_some();
    finish(*log, copied, retains, globals)
}

/// An append on its way.
struct Job<'j> {
    globals: &'j Globals,
    stop: &'j Stop,
    /// One for each partition.
    lanes: Vec<Batches>,
    /// Which of them is the next of a record without a key.
    turn: usize,
    sink: Sink<'j>,
    pace: Option<Pace>,
    /// How long a record waits for others; `None`: as long as the input does not pause.
    linger: Option<Duration>,
    tee: Option<Output>,
}

impl<'j> Job<'j> {
    fn new(
        args: &'j Args,
        globals: &'j Globals,
        stop: &'j Stop,
        lanes: usize,
        sink: Sink<'j>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            globals,
            stop,
            lanes: (0..lanes).map(|lane| Batches::new(args, lane)).collect(),
            turn: 0,
            sink,
            pace: args.rate.map(Pace::new),
            linger: args.linger,
            tee: args.tee.then(|| globals.stdout()).transpose()?,
        })
    }

    /// Appends the input.
    fn run(&mut self, records: Records, args: &Args, syncs_by_time: bool) -> Result<(), Failure> {
        let copied = self.copy(records, &Input::start(&args.file, self.globals), syncs_by_time);
        if self.sink.check().is_err() {
            return copied;
        }
        // What was read before a mistake or a signal is whole and stays; after a failed append nothing is left here.
        copied.and(self.commit())
    }

    /// Moves records from the input into batches until the input ends, or there is a reason to stop.
    fn copy(&mut self, mut records: Records, input: &Input, syncs_by_time: bool) -> Result<(), Failure> {
        let mut maintained = Instant::now();
        let held_at_most = self.linger.unwrap_or(HELD_AT_MOST);
        let patience = held_at_most.clamp(Duration::from_millis(1), PAUSE);
        loop {
            self.stop.check()?;
            self.sink.check()?;
            match input.next(patience) {
                Event::Bytes(block) => {
                    records.feed(block.bytes(), &mut |record, line| self.push(record, line))?;
                    if let Some(tee) = &mut self.tee {
                        tee.foreign(block.bytes())?;
                        tee.flush()?;
                    }
                    input.give_back(block);
                }
                Event::EndOfFile => records.end_of_file(&mut |record, line| self.push(record, line))?,
                Event::Pause => {
                    if self.linger.is_none() {
                        self.commit()?;
                    }
                    if syncs_by_time {
                        self.sink.maintain(self.globals)?;
                    }
                }
                Event::End => return Ok(()),
                Event::Failed(failure) => return Err(failure),
            }
            if self.lanes.iter().any(|lane| lane.held_for() >= held_at_most) {
                self.commit()?;
            }
            if maintained.elapsed() >= MAINTAIN_EVERY {
                self.sink.maintain(self.globals)?;
                maintained = Instant::now();
            }
        }
    }

    #[inline]
    fn push(&mut self, record: Placed<'_>, line: u64) -> Result<(), Failure> {
        let lane = match self.lanes.as_mut_slice() {
            [only] => only,
            several => {
                let missing = || Failure::other("no partition to append to");
                let lane = brokers::lane_of(record.0.key, several.len(), self.turn);
                let full = several
                    .get_mut(lane)
                    .filter(|lane| record.0.key.is_none() && lane.is_full_for(&record.0));
                if let Some(full) = full {
                    full.commit(&mut self.sink)?;
                    self.turn = self.turn.wrapping_add(1);
                }
                let lane = brokers::lane_of(record.0.key, several.len(), self.turn);
                several.get_mut(lane).ok_or_else(missing)?
            }
        };
        lane.push(record, line, &mut self.sink)?;
        if self.pace.is_some() { self.keep_pace() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), Failure> {
        // The next records without a key go to another partition: all of a batch to one.
        self.turn = self.turn.wrapping_add(1);
        self.lanes.iter_mut().try_for_each(|lane| lane.commit(&mut self.sink))
    }

    /// Counts a record against `--rate`, and waits where it is early.
    #[inline(never)]
    fn keep_pace(&mut self) -> Result<(), Failure> {
        let Some(due) = self.pace.as_mut().and_then(Pace::one_more) else { return Ok(()) };
        self.commit()?;
        while let Some(early) = due.checked_duration_since(Instant::now()).filter(|early| !early.is_zero()) {
            self.stop.check()?;
            std::thread::sleep(early.min(PAUSE));
        }
        Ok(())
    }
}

/// Waits for the acknowledgements, closes the log, and says what came of it all. `retains`: old segments are to go.
fn finish(
    mut log: LogSink<'_>,
    copied: Result<(), Failure>,
    retains: bool,
    globals: &Globals,
) -> Result<ExitCode, Failure> {
    // Also on a full disk, for which this may be the way out.
    let retained = if retains { log.maintain(globals) } else { Ok(()) };
    let LogSink { writer, acknowledger, has_appended, .. } = log;
    let (total, acknowledged) = acknowledger.finish();
    let durable_end = writer.durable_end();
    let closed = writer.close().map_err(Failure::from);
    tell_total(&total, closed.is_ok() || durable_end >= total.end, globals);
    // A failed sync is worse than why the input ended, and that worse than a report that nobody reads.
    let outcome = match acknowledged {
        Err(failure) if !failure.is_quiet() => Err(failure),
        Err(failure) => copied.and(Err(failure)),
        Ok(()) => copied.and(closed).and(retained),
    };
    match outcome {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(failure) if failure.is_quiet() => Err(failure),
        // An input that was not even opened has nothing to do with the log.
        Err(failure) if !has_appended => Err(failure),
        Err(failure) => Err(failure.note(format!("records below offset {durable_end} are durable"))),
    }
}

/// `--rate`: so many records a second, ten commits a second at most.
struct Pace {
    per_second: u64,
    per_commit: u64,
    started: Instant,
    count: u64,
}

impl Pace {
    fn new(per_second: u64) -> Self {
        Self { per_second, per_commit: (per_second / 10).max(1), started: Instant::now(), count: 0 }
    }

    /// Counts a record; when it is time to commit, tells when the next record is due.
    fn one_more(&mut self) -> Option<Instant> {
        self.count += 1;
        if !self.count.is_multiple_of(self.per_commit) {
            return None;
        }
        let due_ms = self.count.saturating_mul(1000) / self.per_second;
        self.started.checked_add(Duration::from_millis(due_ms))
    }
}

fn add_create_hint(failure: Failure, args: &Args) -> Failure {
    if failure.code == Code::NotFound && !args.create { failure.hint("--create makes it") } else { failure }
}

fn tell_total(total: &Total, is_durable: bool, globals: &Globals) {
    let level = if is_durable { "durable" } else { "written, not all durable" };
    globals.note(if total.first.is_none() {
        "appended nothing".to_owned()
    } else {
        let (records, bytes) = (counted(total.records, "record"), counted(total.bytes, "byte"));
        format!("appended {records}, {bytes} of keys and values, {}, {level}", total.offsets())
    });
}
