//! From what a caller hands in to bytes past the end of the active segment: checked, placed, stamped, written.
//!
//! One call's batches lie side by side in one segment, and become visible together once all of them are written.

use std::sync::Arc;

use super::{
    buffer::AppendBuffer,
    producers::{self, Claim, Marker, Producer},
};
use crate::{
    config::LogConfig,
    error::{Error, Result},
    offset::{Offset, Timestamp},
    record::{
        BatchBuilder, BatchError, BatchHeader, BatchMut, BatchOptions, BatchRef, Codec, HEADER_BYTES,
        ProducerStamp, Record, TimestampType, batch_size_bound, encode_batch, encoded_record_size,
        stamp_header,
    },
    segment::{Incoming, fits_segment, may_stand},
    sys::{File, PagePool},
};

/// How an append is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendOptions {
    /// Append only if the log ends exactly here; [`Error::UnexpectedOffset`] otherwise.
    pub expected: Option<Offset>,
    /// Whose offsets the records get.
    pub offsets: Offsets,
    /// Who appends the records, so that a call that is made again is recognised. For records only: whole batches say it
    /// themselves ([`LogWriter::append`](crate::LogWriter::append) refuses it with [`Error::InvalidConfig`]).
    /// `expected` is looked at first: with both, a call that is made again is an [`Error::UnexpectedOffset`].
    pub producer: Option<Producer>,
}

impl AppendOptions {
    /// Whole batches name their producer themselves.
    pub(super) fn check_for_batches(&self) -> Result<()> {
        if self.producer.is_none() {
            return Ok(());
        }
        let reason = "whole batches name their producer themselves".to_owned();
        Err(Error::InvalidConfig { name: "producer", reason })
    }

    pub(super) fn check_for_records(&self) -> Result<()> {
        match self.producer {
            Some(Producer { id, epoch, sequence }) if id < 0 || epoch < 0 || sequence < 0 => {
                Err(BatchError::BadProducer { producer_id: id, epoch, sequence }.into())
            }
            _ => Ok(()),
        }
    }
}

/// Whose offsets appended batches get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offsets {
    /// The log's next ones, without gaps; the log's leader epoch is stamped with them.
    #[default]
    Assign,
    /// Those that the batches have: for copies of another log, compacted ones and control batches included. They must
    /// rise and begin at the log's end or later. Offsets and leader epochs are kept, nothing is stamped, and what producers
    /// numbered is taken as it is (Kafka's followers do the same). Where they jump
    /// farther than a segment can name, a new one begins at the first of them, durably, before the batches are written:
    /// should that write fail, the log ends there, without them.
    Preserve,
}

/// What an append is told before it is placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) end: Offset,
    pub(super) epoch: i32,
    pub(super) offsets: Offsets,
    pub(super) producer: Option<Producer>,
    pub(super) now: Timestamp,
    /// Bytes that fit into the active segment yet.
    pub(super) room_bytes: u64,
}

/// What a call brings, measured and checked; where it goes is not decided yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) incoming: Incoming,
    pub(super) first_offset: Offset,
    /// True where producers numbered any of it.
    pub(super) has_producers: bool,
}

/// Records that go into one batch.
#[derive(Clone, Copy, Debug)]
struct Run {
    records: usize,
    /// The batch's size, or somewhat more.
    bytes: u64,
}

/// Reused from call to call.
#[derive(Debug)]
pub(super) struct Stage {
    pool: Arc<PagePool>,
    builder: Option<BatchBuilder>,
    /// Batches that had to be made before they could be measured.
    pub(super) made: Vec<u8>,
    /// The batches that a call's records are divided into.
    runs: Vec<Run>,
    /// The headers of the call's batches as they are written.
    pub(super) headers: Vec<BatchHeader>,
    /// What the control batches among them say, by their places.
    pub(super) markers: Vec<(usize, Marker)>,
    /// What producers claim of the call's batches.
    pub(super) claims: Vec<Claim>,
}

impl Stage {
    /// Takes its buffers from `pool`, which other logs may share.
    pub(super) fn new(pool: Arc<PagePool>) -> Self {
        Self {
            pool,
            builder: None,
            made: Vec::new(),
            runs: Vec::new(),
            headers: Vec::new(),
            markers: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// Frees what an idle log does not need.
    pub(super) fn rest(&mut self) {
        if Arc::strong_count(&self.pool) == 1 {
            self.pool.trim();
        }
        self.made = Vec::new();
        self.claims = Vec::new();
        self.builder = None;
    }

    /// Checks whole batches that a caller hands in: lengths, checksums, counts, order.
    pub(super) fn measure_batches(
        &mut self,
        batches: &[u8],
        target: &Target,
        config: &LogConfig,
    ) -> Result<Measured> {
        self.headers.clear();
        self.markers.clear();
        self.claims.clear();
        let mut rest = batches;
        let mut next = target.end;
        let mut first_offset = None;
        let mut max_timestamp = Timestamp::NONE;
        while !rest.is_empty() {
            let batch = BatchRef::parse(rest)?;
            check_size("batch", u64::from(batch.size_bytes()), config.batch_limit())?;
            let mut header = *batch.header();
            match target.offsets {
                Offsets::Assign => {
                    batch.validate_for_append()?;
                    header = header.placed(next, target.epoch)?;
                }
                Offsets::Preserve => {
                    batch.validate_for_preserve()?;
                    may_stand(&header, header.base_offset(), next)?;
                }
            }
            if config.timestamp_type == TimestampType::LogAppendTime && target.offsets == Offsets::Assign {
                max_timestamp = target.now;
            }
            max_timestamp = max_timestamp.max(header.max_timestamp());
            first_offset = first_offset.or(Some(header.base_offset()));
            next = header.next_offset().ok_or(BatchError::BadOffsets {
                base_offset: header.base_offset().value(),
                last_offset_delta: header.last_offset_delta(),
            })?;
            if header.is_control() && header.producer_id() >= 0 {
                let marker = producers::marker_of(&batch);
                self.markers.extend(marker.map(|marker| (self.headers.len(), marker)));
            }
            self.headers.push(header);
            rest = &rest[batch.as_bytes().len()..];
        }
        let Some(first_offset) = first_offset else { return Err(BatchError::NoRecords.into()) };
        self.measured(batches.len() as u64, first_offset, max_timestamp, config)
    }

    /// Divides records into batches that keep the limits, and says what they will take.
    pub(super) fn measure_records(
        &mut self,
        records: &[Record<'_>],
        target: &Target,
        config: &LogConfig,
    ) -> Result<Measured> {
        if records.is_empty() {
            return Err(BatchError::NoRecords.into());
        }
        if config.compression.codec() != Codec::None {
            self.make_compressed(records, target, config)?;
            let made = std::mem::take(&mut self.made);
            let measured = self.measure_made(&made, target, config);
            self.made = made;
            return measured;
        }
        self.headers.clear();
        self.markers.clear();
        self.claims.clear();
        self.runs.clear();
        let options = options(target, config);
        let (limit_name, limit) = config.batch_limit();
        let (mut bytes, mut from) = (0, 0);
        // Exact sizes cost a second look at every record: only where a bound comes near a limit.
        let bound = batch_size_bound(records);
        if bound <= u64::from(limit).min(target.room_bytes) {
            self.runs.push(Run { records: records.len(), bytes: bound });
            (bytes, from) = (bound, records.len());
        }
        while from < records.len() {
            let run = run_within(&records[from..], &options, u64::from(limit));
            check_size("record", run.bytes, (limit_name, limit))?;
            self.runs.push(run);
            bytes += run.bytes;
            from += run.records;
        }
        let max_timestamp = match config.timestamp_type {
            TimestampType::LogAppendTime => target.now,
            TimestampType::CreateTime => records
                .iter()
                .map(|record| record.timestamp.unwrap_or(target.now))
                .max()
                .unwrap_or(target.now),
        };
        let last = last_of(target.end, records.len())?;
        check_size("append", bytes, ("segment_bytes", config.segment_bytes))?;
        let batches = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        let incoming = Incoming { bytes, batches, last_offset: last, max_timestamp };
        if let Some(mut stamp) = options.producer {
            for run in &self.runs {
                self.claims.push(Claim {
                    producer_id: stamp.id,
                    epoch: stamp.epoch,
                    first_sequence: stamp.base_sequence,
                    delta: count_of(run.records) - 1,
                    is_transactional: false,
                });
                stamp = stamp_after(stamp, run.records);
            }
        }
        Ok(Measured { incoming, first_offset: target.end, has_producers: options.producer.is_some() })
    }

    fn make_compressed(&mut self, records: &[Record<'_>], target: &Target, config: &LogConfig) -> Result<()> {
        self.made.clear();
        let limit = u64::from(config.batch_limit().1);
        let mut options = options(target, config);
        let mut builder = self.builder.take().unwrap_or_else(|| BatchBuilder::new(options));
        builder.reset(options);
        for record in records {
            if builder.is_full(record, limit) {
                let count = u64::from(builder.count());
                self.made.extend_from_slice(builder.finish()?);
                options.base_offset =
                    options.base_offset.checked_add(count).ok_or_else(|| past_end(target.end))?;
                options.producer = options
                    .producer
                    .map(|stamp| stamp_after(stamp, usize::try_from(count).unwrap_or(usize::MAX)));
                builder.reset(options);
            }
            builder.push(*record)?;
        }
        self.made.extend_from_slice(builder.finish()?);
        self.builder = Some(builder);
        Ok(())
    }

    fn measure_made(&mut self, made: &[u8], target: &Target, config: &LogConfig) -> Result<Measured> {
        // Ours, and placed already: only the bounds remain to be looked at.
        self.headers.clear();
        self.markers.clear();
        self.claims.clear();
        let mut rest = made;
        let mut max_timestamp = Timestamp::NONE;
        while !rest.is_empty() {
            let batch = BatchRef::parse(rest)?;
            check_size("record", u64::from(batch.size_bytes()), config.batch_limit())?;
            let header = *batch.header();
            max_timestamp = max_timestamp.max(header.max_timestamp());
            self.headers.push(header);
            rest = &rest[batch.as_bytes().len()..];
        }
        self.measured(made.len() as u64, target.end, max_timestamp, config)
    }

    pub(super) fn measured(
        &mut self,
        bytes: u64,
        first_offset: Offset,
        max_timestamp: Timestamp,
        config: &LogConfig,
    ) -> Result<Measured> {
        check_size("append", bytes, ("segment_bytes", config.segment_bytes))?;
        let last_offset = self.headers.last().map_or(first_offset, BatchHeader::last_offset);
        if !fits_segment(first_offset, last_offset) {
            // Appended as one, they lie in one segment, and its indexes could not name the last.
            let last_offset_delta = i32::try_from(last_offset.since(first_offset)).unwrap_or(i32::MAX);
            return Err(
                BatchError::BadOffsets { base_offset: first_offset.value(), last_offset_delta }.into()
            );
        }
        let batches = u32::try_from(self.headers.len()).unwrap_or(u32::MAX);
        let incoming = Incoming { bytes, batches, last_offset, max_timestamp };
        let has_producers = self.headers.iter().any(|header| header.producer_id() >= 0);
        if has_producers {
            self.claims.clear();
            self.claims.extend(self.headers.iter().map(Claim::of));
        }
        Ok(Measured { incoming, first_offset, has_producers })
    }

    /// Writes measured batches at `position`.
    pub(super) fn write_batches(
        &mut self,
        batches: &[u8],
        target: &Target,
        (file, position): (&File, u64),
        config: &LogConfig,
    ) -> Result<()> {
        let room = buffer_room(batches.len(), config);
        let mut buffer = AppendBuffer::take(&self.pool, position, room)?;
        let written = self.copy_batches(batches, target, (file, &mut buffer), config);
        buffer.give_back(&self.pool);
        written
    }

    fn copy_batches(
        &mut self,
        batches: &[u8],
        target: &Target,
        (file, buffer): (&File, &mut AppendBuffer),
        config: &LogConfig,
    ) -> Result<()> {
        let stamps = target.offsets == Offsets::Assign;
        let stamps_time = stamps && config.timestamp_type == TimestampType::LogAppendTime;
        let mut rest = batches;
        for header in &mut self.headers {
            let size = usize::try_from(header.size_bytes()).unwrap_or(usize::MAX);
            let (batch, after) = rest.split_at(size.min(rest.len()));
            rest = after;
            if buffer.spare().len() < size {
                buffer.flush(file)?;
            }
            if buffer.spare().len() < size && !stamps_time {
                // Larger than the buffer: a stamped header and the caller's own bytes, in one gathered write.
                let head = if stamps { header.to_bytes() } else { BatchHeader::parse(batch)?.to_bytes() };
                file.write_all_vectored_at(&[&head, &batch[HEADER_BYTES..]], buffer.end())?;
                buffer.begin(buffer.end() + size as u64);
                continue;
            }
            let mut alone = Vec::new();
            let room = if buffer.spare().len() < size {
                alone.resize(size, 0);
                &mut alone[..]
            } else {
                &mut buffer.spare()[..size]
            };
            room.copy_from_slice(batch);
            if stamps {
                stamp(room, header, stamps_time.then_some(target.now))?;
            }
            if alone.is_empty() {
                buffer.advance(size);
            } else {
                file.write_all_at(&alone, buffer.end())?;
                buffer.begin(buffer.end() + size as u64);
            }
        }
        Ok(buffer.flush(file)?)
    }

    /// Encodes measured records right where they will be written from, and writes them at `position`.
    pub(super) fn write_records(
        &mut self,
        records: &[Record<'_>],
        target: &Target,
        (file, position): (&File, u64),
        bytes: u64,
        config: &LogConfig,
    ) -> Result<()> {
        if config.compression.codec() != Codec::None {
            let made = std::mem::take(&mut self.made);
            let kept = Target { offsets: Offsets::Preserve, ..*target };
            let written = self.write_batches(&made, &kept, (file, position), config);
            self.made = made;
            return written;
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // One batch must fit whole: it is encoded in place.
        let room = buffer_room(bytes, config)
            .max(bytes.min(usize::try_from(config.batch_limit().1).unwrap_or(bytes)));
        let mut buffer = AppendBuffer::take(&self.pool, position, room)?;
        let written = self
            .encode_records(records, target, (Some(file), &mut buffer), config)
            .and_then(|()| Ok(buffer.flush(file)?));
        buffer.give_back(&self.pool);
        written
    }

    /// Encodes measured records into the buffer. Without a file to flush to it must have room for all of them.
    pub(super) fn encode_records(
        &mut self,
        records: &[Record<'_>],
        target: &Target,
        (file, buffer): (Option<&File>, &mut AppendBuffer),
        config: &LogConfig,
    ) -> Result<()> {
        let mut options = options(target, config);
        let mut from = 0;
        for run in &self.runs {
            let records = &records[from..from + run.records];
            // Only with several batches in the call can the room be used up by those before.
            if let Some(file) = file.filter(|_| from > 0 && run.bytes > buffer.spare().len() as u64) {
                buffer.flush(file)?;
            }
            let header = encode_batch(records, &options, buffer.spare())?;
            buffer.advance(usize::try_from(header.size_bytes()).unwrap_or(usize::MAX));
            options.base_offset = header.next_offset().ok_or_else(|| past_end(target.end))?;
            options.producer = options.producer.map(|stamp| stamp_after(stamp, run.records));
            self.headers.push(header);
            from += run.records;
        }
        Ok(())
    }
}

/// Stamps a whole batch as its header says, and with the append's time, where the log stamps its own.
pub(super) fn stamp(
    batch: &mut [u8],
    header: &mut BatchHeader,
    append_time: Option<Timestamp>,
) -> Result<()> {
    if let Some(now) = append_time {
        let mut stamped = BatchMut::parse(batch)?;
        stamped.set_base_offset(header.base_offset())?;
        stamped.set_leader_epoch(header.leader_epoch());
        stamped.set_log_append_time(now);
        *header = *stamped.header();
    } else if let Some(head) = batch.first_chunk_mut::<HEADER_BYTES>() {
        stamp_header(head, header.base_offset(), header.leader_epoch());
    }
    Ok(())
}

/// How much of the longest buffer a call of `bytes` needs.
fn buffer_room(bytes: usize, config: &LogConfig) -> usize {
    bytes.min(usize::try_from(config.append_buffer_bytes).unwrap_or(bytes))
}

fn options(target: &Target, config: &LogConfig) -> BatchOptions {
    BatchOptions {
        base_offset: target.end,
        leader_epoch: target.epoch,
        compression: config.compression,
        timestamp_type: config.timestamp_type,
        append_time: target.now,
        producer: target.producer.map(|producer| ProducerStamp {
            id: producer.id,
            epoch: producer.epoch,
            base_sequence: producer.sequence,
        }),
        ..BatchOptions::default()
    }
}

/// How a producer numbers what follows so many records.
fn stamp_after(stamp: ProducerStamp, records: usize) -> ProducerStamp {
    let base_sequence = stamp.base_sequence.wrapping_add(count_of(records)) & i32::MAX;
    ProducerStamp { base_sequence, ..stamp }
}

/// A batch's number of records; more than a batch holds is refused when it is encoded.
fn count_of(records: usize) -> i32 {
    i32::try_from(records).unwrap_or(i32::MAX)
}

/// The longest run of records from the first on whose batch keeps the limit, one record at least.
fn run_within(records: &[Record<'_>], options: &BatchOptions, limit: u64) -> Run {
    let stamp = |record: &Record<'_>| record.timestamp.unwrap_or(options.append_time).millis();
    let first = records.first().map_or(0, stamp);
    let mut size = HEADER_BYTES as u64;
    for (run, (record, delta)) in records.iter().zip(0..).enumerate() {
        let with = size.saturating_add(encoded_record_size(record, stamp(record).wrapping_sub(first), delta));
        if with > limit && run > 0 {
            return Run { records: run, bytes: size };
        }
        size = with;
    }
    Run { records: records.len(), bytes: size }
}

fn last_of(end: Offset, count: usize) -> Result<Offset> {
    // The end after the last must be an offset too.
    let after = end.checked_add(count as u64).ok_or_else(|| past_end(end))?;
    Ok(after.saturating_sub(1))
}

fn past_end(end: Offset) -> Error {
    BatchError::BadOffsets { base_offset: end.value(), last_offset_delta: i32::MAX }.into()
}

fn check_size(what: &'static str, size_bytes: u64, (limit, limit_bytes): (&'static str, u32)) -> Result<()> {
    let limit_bytes = u64::from(limit_bytes);
    if size_bytes <= limit_bytes {
        return Ok(());
    }
    Err(Error::TooLarge { what, size_bytes, limit, limit_bytes })
}
