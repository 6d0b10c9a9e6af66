//! The log's end of an import: batches gathered and appended with their offsets, records made into batches.

use std::path::Path;

use stratalog::{
    AppendOptions, LogReader, LogWriter, Offset, Offsets, ReadOptions, Timestamp,
    record::{BatchBuilder, BatchOptions, BatchRef, Compression, Record, TimestampType},
};

use super::{Args, stored::Stored};
use crate::{
    export::noted_start,
    failure::{Code, Failure},
};

/// So much is appended in one call, at most.
const GATHER_BYTES: usize = 1 << 20;

/// A record with all that is to be kept of it.
pub(super) struct Placed<'r> {
    pub(super) record: Record<'r>,
    pub(super) offset: Offset,
    pub(super) timestamp: Timestamp,
    pub(super) timestamp_type: TimestampType,
    /// `None`: the log's.
    pub(super) leader_epoch: Option<i32>,
}

/// What was imported.
#[derive(Default)]
pub(super) struct Total {
    pub(super) first: Option<Offset>,
    pub(super) end: Offset,
    pub(super) batches: u64,
    pub(super) bytes: u64,
    /// Bytes of batches, or of keys and values, that were in the log already.
    pub(super) proved: u64,
    pub(super) converted: u64,
}

/// Where batches and records go.
pub(super) struct Sink {
    /// None in a dry run.
    writer: Option<LogWriter>,
    /// The log's end with all that was gathered.
    end: Offset,
    /// What is there, while the input has not passed it.
    stored: Option<Stored>,
    log_end: Offset,
    was_empty: bool,
    start: Option<Offset>,
    /// What an export noted beside its stream.
    noted_start: Option<Offset>,
    resumes: bool,
    gathered: Vec<u8>,
    gathered_count: u64,
    gathered_first: Option<Offset>,
    builder: BatchBuilder,
    /// The offset that the next record of the growing batch must have.
    grown_to: Offset,
    epoch: i32,
    batch_bytes: u64,
    limit_bytes: u64,
    /// What is appended in one call lies in one segment.
    gather_bytes: usize,
    compression: Compression,
    first_seen: Option<Offset>,
    total: Total,
}

impl Sink {
    pub(super) fn new(args: &Args, writer: LogWriter) -> Self {
        let reader = writer.reader();
        let epoch = writer.leader_epoch();
        Self::over(args, Some(writer), Some(reader), epoch)
    }

    /// Over a log that is only looked at.
    pub(super) fn dry(args: &Args, path: &Path) -> Result<Self, Failure> {
        let reader = match LogReader::open(path, ReadOptions::default()) {
            Ok(reader) => Some(reader),
            Err(stratalog::Error::NotFound { .. }) if args.create => None,
            Err(error) => return Err(super::add_create_hint(error.into(), args)),
        };
        Ok(Self::over(args, None, reader, 0))
    }

    fn over(args: &Args, writer: Option<LogWriter>, reader: Option<LogReader>, epoch: i32) -> Self {
        let end = reader.as_ref().map_or(Offset::ZERO, LogReader::end);
        let was_empty = reader.as_ref().is_none_or(|reader| reader.start() == end);
        Self {
            writer,
            end,
            stored: reader.filter(|_| args.resume && !was_empty).map(Stored::new),
            log_end: end,
            was_empty,
            start: args.start,
            noted_start: args.from.first().and_then(|file| noted_start(file)),
            resumes: args.resume,
            gathered: Vec::new(),
            gathered_count: 0,
            gathered_first: None,
            builder: BatchBuilder::new(BatchOptions::default()),
            grown_to: Offset::ZERO,
            epoch,
            batch_bytes: u64::from(args.batch_size.min(args.limit_bytes())),
            limit_bytes: u64::from(args.limit_bytes()),
            gather_bytes: usize::try_from(args.segment_bytes).unwrap_or(usize::MAX).min(GATHER_BYTES),
            compression: args.batch_compression,
            first_seen: None,
            total: Total { end, ..Total::default() },
        }
    }

    /// The offset that comes next.
    pub(super) fn end(&self) -> Offset {
        self.end
    }

    pub(super) fn note_converted(&mut self) {
        self.total.converted += 1;
    }

    /// Takes a batch with its offsets, or finds it in the log.
    pub(super) fn batch(&mut self, batch: &BatchRef<'_>) -> Result<(), Failure> {
        self.grow_no_more()?;
        self.first_seen.get_or_insert(batch.base_offset());
        if let Some(stored) = &mut self.stored {
            if stored.has_batch(batch, self.log_end)? {
                self.total.proved += u64::from(batch.size_bytes());
                return Ok(());
            }
            self.stored = None;
        }
        self.gather(batch.as_bytes())
    }

    /// Takes a record with its offset, or finds it in the log.
    pub(super) fn record(&mut self, placed: &Placed<'_>) -> Result<(), Failure> {
        self.first_seen.get_or_insert(placed.offset);
        if let Some(stored) = &mut self.stored {
            if stored.has_record(placed, self.log_end)? {
                let length = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len) as u64;
                self.total.proved += length(placed.record.key) + length(placed.record.value);
                return Ok(());
            }
            self.stored = None;
        }
        if placed.offset < self.end.max(if self.builder.is_empty() { Offset::ZERO } else { self.grown_to }) {
            return Err(self.goes_back(placed.offset));
        }
        let mut record = placed.record;
        record.timestamp = Some(placed.timestamp);
        let epoch = placed.leader_epoch.unwrap_or(self.epoch);
        let options = self.builder.options();
        let is_like = options.leader_epoch == epoch
            && options.timestamp_type == placed.timestamp_type
            && (placed.timestamp_type == TimestampType::CreateTime
                || options.append_time == placed.timestamp);
        let continues = !self.builder.is_empty() && placed.offset == self.grown_to && is_like;
        if !continues || self.builder.is_full(&record, self.batch_bytes) {
            self.grow_no_more()?;
            self.builder.reset(BatchOptions {
                base_offset: placed.offset,
                leader_epoch: epoch,
                compression: self.compression,
                timestamp_type: placed.timestamp_type,
                append_time: placed.timestamp,
                ..BatchOptions::default()
            });
            let size = self.builder.size_with(&record);
            if size > self.limit_bytes {
                let limit = self.limit_bytes;
                let what =
                    format!("a batch of this record alone has {size} bytes, where {limit} are the most");
                return Err(Failure::other(what).hint("raise --max-batch-bytes and --segment-bytes"));
            }
        }
        self.builder.push(record).map_err(|error| Failure::other(error.to_string()))?;
        self.grown_to = placed.offset.next().unwrap_or(Offset::MAX);
        Ok(())
    }

    /// The batch that grows is whole.
    fn grow_no_more(&mut self) -> Result<(), Failure> {
        if self.builder.is_empty() {
            return Ok(());
        }
        let made = self.builder.finish().map_err(|error| Failure::other(error.to_string()))?.to_vec();
        self.builder.reset(BatchOptions::default());
        self.gather(&made)
    }

    fn goes_back(&self, offset: Offset) -> Failure {
        let end = self.end.max(self.grown_to);
        let failure = Failure::other(format!("offset {offset} comes where the log ends at {end}"));
        if self.resumes || self.total.first.is_some() || self.gathered_first.is_some() {
            return failure
                .hint("offsets rise from batch to batch: the parts are not in order, or come twice");
        }
        failure.hint("--resume proves that what is there is the input's first part, and goes on behind it")
    }

    fn gather(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let batch = BatchRef::parse(bytes).map_err(|error| Failure::other(error.to_string()))?;
        let (first, last) = (batch.base_offset(), batch.last_offset());
        if first < self.end {
            return Err(self.goes_back(first));
        }
        // One call's batches lie in one segment, whose indexes count 31 bits.
        let is_far =
            self.gathered_first.is_some_and(|from| last.since(from) > i32::MAX.unsigned_abs().into());
        if is_far || self.gathered.len() + bytes.len() > self.gather_bytes.max(bytes.len()) {
            self.append()?;
        }
        self.gathered.extend_from_slice(bytes);
        self.gathered_count += 1;
        self.gathered_first.get_or_insert(first);
        self.end = batch.next_offset().unwrap_or(Offset::MAX);
        Ok(())
    }

    /// Appends all that was gathered, of records too.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.grow_no_more()?;
        self.append()
    }

    fn append(&mut self) -> Result<(), Failure> {
        let Some(first) = self.gathered_first.take() else { return Ok(()) };
        if let Some(writer) = &mut self.writer {
            let options = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
            if let Err(error) = writer.append(&self.gathered, options) {
                self.gathered.clear();
                self.end = writer.end();
                return Err(not_appended(error));
            }
        }
        self.total.first.get_or_insert(first);
        self.total.end = self.end;
        self.total.batches += self.gathered_count;
        self.total.bytes += self.gathered.len() as u64;
        self.gathered.clear();
        self.gathered.shrink_to(2 * GATHER_BYTES);
        self.gathered_count = 0;
        Ok(())
    }

    /// The input has ended: the log must not hold more than it.
    pub(super) fn check_end(&mut self) -> Result<(), Failure> {
        match &mut self.stored {
            Some(stored) => stored.check_passed(self.log_end),
            None => Ok(()),
        }
    }

    /// Closes the log: all of it is durable then. `is_whole`: the input was read to its end.
    pub(super) fn close(mut self, is_whole: bool) -> (Total, Result<(), Failure>) {
        let Some(mut writer) = self.writer.take() else { return (self.total, Ok(())) };
        let told = self.noted_start.or(self.first_seen).filter(|_| self.was_empty || self.resumes);
        let begins_at = self.start.or(told);
        let moved = match begins_at.filter(|_| is_whole) {
            Some(start) if start > writer.start() => writer.advance_start(start).map_err(|error| {
                let failure = Failure::from(error);
                if failure.code == Code::NotFound { failure.at("--start") } else { failure }
            }),
            _ => Ok(()),
        };
        let closed = writer.close().map_err(Failure::from);
        (self.total, moved.and(closed))
    }
}

/// Options of `append` are not ours.
fn not_appended(error: stratalog::Error) -> Failure {
    match error {
        stratalog::Error::TooLarge { .. } => Failure::other(error.to_string())
            .hint("raise --segment-bytes and --max-batch-bytes, or lower --batch-size"),
        error => error.into(),
    }
}
