//! Batches out of records.

use std::time::{Duration, Instant};

use stratalog::{
    Offset,
    record::{BatchBuilder, BatchOptions, Compression, Record},
};

use super::{
    options::Args,
    records::Placed,
    sink::{Full, Sink},
};
use crate::failure::Failure;

/// What a record without headers takes beside its key and value, at most: five varints of five bytes, one of ten, and
/// one byte of attributes.
const RECORD_OVERHEAD_BYTES: u64 = 40;

/// The batch of a partition that is growing.
pub(super) struct Batches {
    /// Which partition, counted from 0 among those that are appended to.
    lane: usize,
    builder: BatchBuilder,
    compression: Compression,
    batch_bytes: u64,
    limit_bytes: u64,
    /// Where the records that keep their offsets go on.
    next_offset: Option<Offset>,
    /// Bytes of keys and values in the batch.
    payload_bytes: u64,
    first_line: u64,
    /// When the first record of the batch came.
    begun: Instant,
}

impl Batches {
    pub(super) fn new(args: &Args, lane: usize) -> Self {
        let limit = args.batch_limit();
        Self {
            lane,
            builder: BatchBuilder::new(BatchOptions::default()),
            compression: args.compression,
            batch_bytes: u64::from(args.batch_size.min(limit)),
            limit_bytes: u64::from(limit),
            next_offset: None,
            payload_bytes: 0,
            first_line: 0,
            begun: Instant::now(),
        }
    }

    /// Adds a record; appends the batch first where it is full.
    #[inline]
    pub(super) fn push(
        &mut self,
        (record, offset): Placed<'_>,
        line: u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), Failure> {
        let length = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len) as u64;
        let payload_bytes = length(record.key) + length(record.value);
        if self.builder.is_empty() {
            self.begin(offset, line, sink);
        } else if offset != self.next_offset || !self.has_room(&record, payload_bytes) {
            self.commit(sink)?;
            self.begin(offset, line, sink);
        }
        if self.builder.is_empty() {
            self.check_size(record, line)?;
        }
        self.builder.push(record).map_err(|e| Failure::other(format!("line {line}: {e}")))?;
        self.payload_bytes += payload_bytes;
        self.next_offset = offset.and_then(Offset::next);
        Ok(())
    }

    /// Whether a batch was begun that has no room for this record.
    pub(super) fn is_full_for(&self, record: &Record<'_>) -> bool {
        let length = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len) as u64;
        !self.builder.is_empty() && !self.has_room(record, length(record.key) + length(record.value))
    }

    /// Whether the record fits into the batch. Most records are told by a bound, and only the last of a batch exactly.
    #[inline]
    fn has_room(&self, record: &Record<'_>, payload_bytes: u64) -> bool {
        let bound = self.builder.len_bytes() + payload_bytes + RECORD_OVERHEAD_BYTES;
        (record.headers.is_empty() && bound <= self.batch_bytes)
            || !self.builder.is_full(record, self.batch_bytes)
    }

    fn begin(&mut self, offset: Option<Offset>, line: u64, sink: &Sink<'_>) {
        self.builder.reset(BatchOptions {
            base_offset: offset.unwrap_or(Offset::ZERO),
            // Stamped over unless the offsets are kept.
            leader_epoch: sink.leader_epoch(),
            compression: self.compression,
            append_time: stratalog::Clock::system().now(),
            producer: sink.stamp(self.lane),
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
    pub(super) fn commit(&mut self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        if self.builder.is_empty() {
            return Ok(());
        }
        let (count, keeps_offsets) = (self.builder.count(), self.next_offset.is_some());
        let bytes = self.builder.finish().map_err(|e| Failure::other(e.to_string()))?;
        sink.take(&Full {
            lane: self.lane,
            bytes,
            count,
            payload_bytes: self.payload_bytes,
            line: self.first_line,
            keeps_offsets,
        })
    }
}
