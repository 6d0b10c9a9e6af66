//! Batches out of records, and into the log.

use std::time::{Duration, Instant};

use stratalog::{
    AppendOptions, Error, LogWriter, Offset, Offsets,
    record::{BatchBuilder, BatchOptions, BatchRef, Compression, Record, Scratch},
};

use super::{
    acknowledge::{Acknowledger, Handed, Promise},
    options::{Args, Sync},
    records::Placed,
};
use crate::{
    decode::TextStyle,
    failure::Failure,
    target::Target,
    template::Template,
    view::{BatchView, Ends, View},
};

/// What a record without headers takes beside its key and value, at most: five varints of five bytes, one of ten, and
/// one byte of attributes.
const RECORD_OVERHEAD_BYTES: u64 = 40;

/// The batch that is growing, and how to append it.
pub(super) struct Batches<'a> {
    builder: BatchBuilder,
    compression: Compression,
    target: &'a Target,
    report: Option<&'a Template>,
    style: TextStyle,
    batch_bytes: u64,
    limit_bytes: u64,
    waits_for_sync: bool,
    expect: Option<Offset>,
    /// Where the records that keep their offsets go on.
    next_offset: Option<Offset>,
    /// Bytes of keys and values in the batch.
    payload_bytes: u64,
    first_line: u64,
    /// When the first record of the batch came.
    begun: Instant,
    has_appended: bool,
    reported: u64,
}

impl<'a> Batches<'a> {
    /// `escape`: reports go to a terminal.
    pub(super) fn new(args: &'a Args, target: &'a Target, escape: bool) -> Self {
        let limit = args.batch_limit();
        Self {
            builder: BatchBuilder::new(BatchOptions::default()),
            compression: args.compression,
            target,
            report: args.report.as_ref(),
            style: TextStyle { escape, ..TextStyle::default() },
            batch_bytes: u64::from(args.batch_size.min(limit)),
            limit_bytes: u64::from(limit),
            waits_for_sync: args.sync == Sync::Batch,
            expect: args.expect,
            next_offset: None,
            payload_bytes: 0,
            first_line: 0,
            begun: Instant::now(),
            has_appended: false,
            reported: 0,
        }
    }

    /// Adds a record; appends the batch first where it is full.
    #[inline]
    pub(super) fn push(
        &mut self,
        (record, offset): Placed<'_>,
        line: u64,
        writer: &mut LogWriter,
        acknowledger: &Acknowledger,
    ) -> Result<(), Failure> {
        let length = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len) as u64;
        let payload_bytes = length(record.key) + length(record.value);
        if self.builder.is_empty() {
            self.begin(offset, line, writer);
        } else if offset != self.next_offset || !self.has_room(&record, payload_bytes) {
            self.commit(writer, acknowledger)?;
            self.begin(offset, line, writer);
        }
        if self.builder.is_empty() {
            self.check_size(record, line)?;
        }
        self.builder.push(record).map_err(|e| Failure::other(format!("line {line}: {e}")))?;
        self.payload_bytes += payload_bytes;
        self.next_offset = offset.and_then(Offset::next);
        Ok(())
    }

    /// Whether the record fits into the batch. Most records are told by a bound, and only the last of a batch exactly.
    #[inline]
    fn has_room(&self, record: &Record<'_>, payload_bytes: u64) -> bool {
        let bound = self.builder.len_bytes() + payload_bytes + RECORD_OVERHEAD_BYTES;
        (record.headers.is_empty() && bound <= self.batch_bytes)
            || !self.builder.is_full(record, self.batch_bytes)
    }

    fn begin(&mut self, offset: Option<Offset>, line: u64, writer: &LogWriter) {
        self.builder.reset(BatchOptions {
            base_offset: offset.unwrap_or(Offset::ZERO),
            // Stamped over unless the offsets are kept.
            leader_epoch: writer.leader_epoch(),
            compression: self.compression,
            append_time: stratalog::Clock::system().now(),
            ..BatchOptions::default()
        });
        self.payload_bytes = 0;
        self.first_line = line;
        self.begun = Instant::now();
    }

    /// How long the oldest record waits that is not appended yet; zero where there is none.
    pub(super) fn held_for(&self) -> Duration {
        if self.builder.is_empty() { Duration::ZERO } else { self.begun.elapsed() }
    }

    /// Whether anything was appended in this run.
    pub(super) fn has_appended(&self) -> bool {
        self.has_appended
    }

    /// The first record of a batch may be larger than `--batch-size`, but not than what the log takes.
    fn check_size(&self, record: Record<'_>, line: u64) -> Result<(), Failure> {
        let size = self.builder.size_with(&record);
        if size <= self.limit_bytes {
            return Ok(());
        }
        Err(Failure::other(format!(
            "line {line}: a batch of this record alone has {size} bytes, more than the {} that the log takes",
            self.limit_bytes
        ))
        .hint("raise --max-batch-bytes, and --segment-bytes if that is smaller; the lines before this one are appended"))
    }

    /// Appends what there is.
    pub(super) fn commit(
        &mut self,
        writer: &mut LogWriter,
        acknowledger: &Acknowledger,
    ) -> Result<(), Failure> {
        if self.builder.is_empty() {
            return Ok(());
        }
        let records = u64::from(self.builder.count());
        let keeps_offsets = self.next_offset.is_some();
        let line = self.first_line;
        let failed = |e: Error| go_on_from(line, e).at(format_args!("line {line} and on were not appended"));
        let batch = self.builder.finish().map_err(|e| Failure::other(e.to_string()))?;
        let offsets = if keeps_offsets { Offsets::Preserve } else { Offsets::Assign };
        let options = AppendOptions { expected: self.expect.take(), offsets, ..AppendOptions::default() };
        let (base, promise) = if self.waits_for_sync {
            let pending = writer.append_deferred(batch, options).map_err(failed)?;
            (pending.base_offset(), Promise::Pending(pending))
        } else {
            let appended = writer.append(batch, options).map_err(failed)?;
            (appended.base_offset, Promise::Kept)
        };
        self.has_appended = true;
        let mut report = Vec::new();
        if let Some(template) = self.report {
            let stable =
                if template.wants_stable_end() { writer.reader().last_stable_offset()?.value() } else { -1 };
            let ends = Ends { start: writer.start().value(), stable, end: writer.end().value() };
            let place = (base, writer.leader_epoch(), ends);
            render((template, &self.style), self.target, batch, place, &mut self.reported, &mut report)
                .map_err(|e| Failure::other(e.to_string()))?;
        }
        acknowledger.hand(Handed { promise, line, base, records, bytes: self.payload_bytes, report })
    }
}

/// The failure of an append or of its sync; running it all again would append the lines before this one twice.
pub(super) fn go_on_from(line: u64, error: Error) -> Failure {
    let is_full = matches!(error, Error::StorageFull { .. });
    let failure = Failure::from(error);
    if is_full { failure.hint(format!("make room and go on from line {line}")) } else { failure }
}

/// Prints the records of a batch as they are in the log.
fn render(
    (template, style): (&Template, &TextStyle),
    target: &Target,
    batch: &[u8],
    (base, leader_epoch, ends): (Offset, i32, Ends),
    count: &mut u64,
    out: &mut Vec<u8>,
) -> Result<(), stratalog::record::BatchError> {
    let batch = BatchRef::parse(batch)?;
    let common = BatchView { base_offset: base, leader_epoch, ..BatchView::new(&batch) };
    let mut scratch = Scratch::new();
    for record in batch.records(&mut scratch)? {
        let record = record?;
        let mut view = View::new(target, common, &record);
        view.offset = base.checked_add(u64::from(record.offset_delta().unsigned_abs())).unwrap_or(base);
        *count += 1;
        view.ends = ends;
        template.render(&view, *count, style, out);
    }
    Ok(())
}
