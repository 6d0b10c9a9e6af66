//! Where batches go: into a directory's log, or to brokers.

use stratalog::{
    AppendOptions, Error, LogWriter, Offset, Offsets, Timestamp,
    record::{BatchRef, ProducerStamp, Scratch, TimestampType},
};

use super::{
    acknowledge::{Acknowledger, Handed, Promise},
    brokers::BrokerSink,
    options::{Args, Sync},
};
use crate::{
    decode::TextStyle,
    failure::Failure,
    globals::Globals,
    output::Output,
    target::Target,
    template::Template,
    view::{BatchView, Ends, View},
};

/// A whole batch.
pub(super) struct Full<'b> {
    /// Which partition, among those that are appended to.
    pub(super) lane: usize,
    pub(super) bytes: &'b [u8],
    pub(super) count: u32,
    /// Bytes of keys and values.
    pub(super) payload_bytes: u64,
    /// The line of its first record.
    pub(super) line: u64,
    /// The offsets in it are to stay.
    pub(super) keeps_offsets: bool,
}

/// What takes batches.
pub(super) enum Sink<'a> {
    Log(Box<LogSink<'a>>),
    Broker(BrokerSink),
}

impl Sink<'_> {
    /// For batches that keep their offsets.
    pub(super) fn leader_epoch(&self) -> i32 {
        match self {
            Self::Log(log) => log.writer.leader_epoch(),
            Self::Broker(_) => -1,
        }
    }

    /// The producer's number and that of the next record in a partition.
    pub(super) fn stamp(&self, lane: usize) -> Option<ProducerStamp> {
        match self {
            Self::Log(_) => None,
            Self::Broker(broker) => broker.stamp(lane),
        }
    }

    /// Takes a batch over.
    pub(super) fn take(&mut self, batch: &Full<'_>) -> Result<(), Failure> {
        match self {
            Self::Log(log) => log.take(batch),
            Self::Broker(broker) => broker.take(batch),
        }
    }

    /// `Err` once what was taken cannot be acknowledged; why is told in the end.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self {
            Self::Log(log) => log.acknowledger.check(),
            Self::Broker(broker) => broker.check(),
        }
    }

    /// What is due now and then.
    pub(super) fn maintain(&mut self, globals: &Globals) -> Result<(), Failure> {
        match self {
            Self::Log(log) => log.maintain(globals),
            Self::Broker(_) => Ok(()),
        }
    }
}

/// A log in a directory.
pub(super) struct LogSink<'a> {
    pub(super) writer: LogWriter,
    pub(super) acknowledger: Acknowledger,
    target: &'a Target,
    report: Option<&'a Template>,
    style: TextStyle,
    waits_for_sync: bool,
    expect: Option<Offset>,
    pub(super) has_appended: bool,
    reported: u64,
}

impl<'a> LogSink<'a> {
    /// `output`: where reports go.
    pub(super) fn new(args: &'a Args, target: &'a Target, writer: LogWriter, output: Option<Output>) -> Self {
        let escape = output.as_ref().is_some_and(Output::is_terminal);
        Self {
            writer,
            acknowledger: Acknowledger::start(output),
            target,
            report: args.report.as_ref(),
            style: TextStyle { escape, ..TextStyle::default() },
            waits_for_sync: args.sync == Sync::Batch,
            expect: args.expect,
            has_appended: false,
            reported: 0,
        }
    }

    fn take(&mut self, batch: &Full<'_>) -> Result<(), Failure> {
        let line = batch.line;
        let failed = |e: Error| go_on_from(line, e).at(format_args!("line {line} and on were not appended"));
        let offsets = if batch.keeps_offsets { Offsets::Preserve } else { Offsets::Assign };
        let options = AppendOptions { expected: self.expect.take(), offsets, ..AppendOptions::default() };
        let (base, promise) = if self.waits_for_sync {
            let pending = self.writer.append_deferred(batch.bytes, options).map_err(failed)?;
            (pending.base_offset(), Promise::Pending(pending))
        } else {
            let appended = self.writer.append(batch.bytes, options).map_err(failed)?;
            (appended.base_offset, Promise::Kept)
        };
        self.has_appended = true;
        let mut report = Vec::new();
        if let Some(template) = self.report {
            let writer = &self.writer;
            let stable =
                if template.wants_stable_end() { writer.reader().last_stable_offset()?.value() } else { -1 };
            let ends = Ends { start: writer.start().value(), stable, end: writer.end().value() };
            let place = Placed { base, leader_epoch: writer.leader_epoch(), ends, append_time: None };
            render((template, &self.style), self.target, batch.bytes, place, &mut self.reported, &mut report)
                .map_err(|e| Failure::other(e.to_string()))?;
        }
        let (records, bytes) = (u64::from(batch.count), batch.payload_bytes);
        self.acknowledger.hand(Handed { promise, line, base, records, bytes, report })
    }

    pub(super) fn maintain(&mut self, globals: &Globals) -> Result<(), Failure> {
        let done = self.writer.maintain()?;
        if done.clock_jumped {
            globals
                .note("warning: the clock jumped: deleting by age would delete everything, and is put off");
        }
        if done.dropped_segments > 0 && globals.verbose > 0 {
            globals.note(format!(
                "deleted {} old segments, {} bytes",
                done.dropped_segments, done.dropped_bytes
            ));
        }
        Ok(())
    }
}

/// The failure of an append or of its sync; running it all again would append the lines before this one twice.
pub(super) fn go_on_from(line: u64, error: Error) -> Failure {
    let is_full = matches!(error, Error::StorageFull { .. });
    let failure = Failure::from(error);
    if is_full { failure.hint(format!("make room and go on from line {line}")) } else { failure }
}

/// What became of a batch that is known only once it is in its log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) base: Offset,
    pub(super) leader_epoch: i32,
    pub(super) ends: Ends,
    /// The time that all its records got from the log instead of their own.
    pub(super) append_time: Option<Timestamp>,
}

/// Prints the records of a batch as they are in the log.
pub(super) fn render(
    (template, style): (&Template, &TextStyle),
    target: &Target,
    batch: &[u8],
    placed: Placed,
    count: &mut u64,
    out: &mut Vec<u8>,
) -> Result<(), stratalog::record::BatchError> {
    let batch = BatchRef::parse(batch)?;
    let Placed { base, leader_epoch, ends, append_time } = placed;
    let mut common = BatchView { base_offset: base, leader_epoch, ..BatchView::new(&batch) };
    if append_time.is_some() {
        common.timestamp_type = TimestampType::LogAppendTime;
    }
    let mut scratch = Scratch::new();
    for record in batch.records(&mut scratch)? {
        let record = record?;
        let mut view = View::new(target, common, &record);
        view.offset = base.checked_add(u64::from(record.offset_delta().unsigned_abs())).unwrap_or(base);
        view.timestamp = append_time.unwrap_or(view.timestamp);
        *count += 1;
        view.ends = ends;
        template.render(&view, *count, style, out);
    }
    Ok(())
}
