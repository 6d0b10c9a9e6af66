//! Writing batches: in place where they will lie, or grown record by record and compressed.

use super::{
    BatchError, BatchHeader, CRC_AT, CRC_START, Compression, Compressor, HEADER_BYTES, LOG_OVERHEAD_BYTES,
    MAX_BATCH_BYTES, Record, TimestampType, crc32c,
    header::{CONTROL_BIT, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT},
    varint::{
        MAX_VARINT_BYTES, MAX_VARLONG_BYTES, groups, put_groups, varint_bytes, varlong_bytes, write_varint,
        write_varlong, zigzag, zigzag_long,
    },
};
use crate::offset::{Offset, Timestamp};

/// What a batch says of itself, apart from its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// The first record's offset; the others follow it one by one.
    pub base_offset: Offset,
    /// The leader epoch; -1 = none.
    pub leader_epoch: i32,
    /// What the records are compressed with. [`encode_batch`] never compresses.
    pub compression: Compression,
    /// Whose clock the timestamps come from.
    pub timestamp_type: TimestampType,
    /// The timestamp of records without one, and under [`TimestampType::LogAppendTime`] what all of them read as.
    pub append_time: Timestamp,
    /// Who made the records, for producers that number them.
    pub producer: Option<ProducerStamp>,
    /// True where the records belong to the producer's open transaction.
    pub transactional: bool,
}

impl Default for BatchOptions {
    /// Offset 0, no epoch, not compressed, `CreateTime`, no timestamp, no producer.
    fn default() -> Self {
        Self {
            base_offset: Offset::ZERO,
            leader_epoch: -1,
            compression: Compression::NONE,
            timestamp_type: TimestampType::CreateTime,
            append_time: Timestamp::NONE,
            producer: None,
            transactional: false,
        }
    }
}

/// The producer of a batch and the number of the batch's first record among those that it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerStamp {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// The first record's sequence number.
    pub base_sequence: i32,
}

impl BatchHeader {
    /// The header of a batch that holds one record so far and nothing special.
    pub(super) fn first(base_offset: Offset, leader_epoch: i32, timestamp: Timestamp) -> Self {
        Self {
            base_offset,
            length: 0,
            leader_epoch,
            crc: 0,
            magic: 2,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: timestamp.millis(),
            max_timestamp: timestamp.millis(),
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 1,
        }
    }

    /// The header of `count` records by what the options say; length and CRC are still open.
    fn of(options: &BatchOptions, count: i32, base_timestamp: i64, max_timestamp: i64) -> Self {
        let mut header =
            Self::first(options.base_offset, options.leader_epoch, Timestamp::from_millis(base_timestamp));
        header.record_count = count;
        header.last_offset_delta = count - 1;
        header.max_timestamp = max_timestamp;
        if options.timestamp_type == TimestampType::LogAppendTime {
            header.attributes |= LOG_APPEND_TIME_BIT;
            header.max_timestamp = options.append_time.millis();
        }
        if options.transactional {
            header.attributes |= TRANSACTIONAL_BIT;
        }
        if let Some(producer) = options.producer {
            header.producer_id = producer.id;
            header.producer_epoch = producer.epoch;
            header.base_sequence = producer.base_sequence;
        }
        header
    }

    /// Writes the header over the front of `batch`, which is the whole batch, with its length and CRC.
    pub(super) fn seal(mut self, batch: &mut [u8]) -> Result<Self, BatchError> {
        let size_bytes = batch.len() as u64;
        if size_bytes > u64::from(MAX_BATCH_BYTES) {
            return Err(BatchError::TooLarge { size_bytes });
        }
        self.length = i32::try_from(batch.len() - LOG_OVERHEAD_BYTES).unwrap_or(i32::MAX);
        if let Some(head) = batch.first_chunk_mut::<HEADER_BYTES>() {
            *head = self.to_bytes();
        }
        self.crc = crc32c(batch.get(CRC_START..).unwrap_or_default());
        if let Some(field) = batch.get_mut(CRC_AT..).and_then(|tail| tail.first_chunk_mut::<4>()) {
            *field = self.crc.to_be_bytes();
        }
        Ok(self)
    }
}

/// The size of a key or value with its length before it.
#[inline]
fn field_bytes(field: Option<&[u8]>) -> u64 {
    match field {
        None => 1,
        Some(bytes) => length_bytes(bytes.len()) + bytes.len() as u64,
    }
}

/// The size of a length's varint; lengths past `i32::MAX` are refused elsewhere.
#[inline]
fn length_bytes(length: usize) -> u64 {
    i32::try_from(length).map_or(5, varint_bytes_u64)
}

#[inline]
fn varint_bytes_u64(value: i32) -> u64 {
    varint_bytes(value) as u64
}

#[inline(never)]
fn headers_bytes(record: &Record<'_>) -> u64 {
    let each = record
        .headers
        .iter()
        .map(|header| field_bytes(Some(header.key.as_bytes())) + field_bytes(header.value));
    each.fold(length_bytes(record.headers.len()), u64::saturating_add)
}

/// The size of a record's body, which is what its length counts.
#[inline]
fn body_bytes(record: &Record<'_>, timestamp_delta: i64, offset_delta: i32) -> u64 {
    let headers = if record.headers.is_empty() { 1 } else { headers_bytes(record) };
    (1 + varlong_bytes(timestamp_delta) as u64 + varint_bytes(offset_delta) as u64)
        .saturating_add(field_bytes(record.key) + field_bytes(record.value))
        .saturating_add(headers)
}

/// The size of a record in a batch, its length's varint included, when its timestamp and offset lie so far after the
/// batch's.
pub fn encoded_record_size(record: &Record<'_>, timestamp_delta: i64, offset_delta: i32) -> u64 {
    let body = body_bytes(record, timestamp_delta, offset_delta);
    body.saturating_add(i32::try_from(body).map_or(5, varint_bytes_u64))
}

/// The exact size of the batch that [`encode_batch`] writes; more than [`MAX_BATCH_BYTES`] where none can be written.
pub fn batch_size(records: &[Record<'_>], options: &BatchOptions) -> u64 {
    let base = first_timestamp(records, options);
    let mut size = HEADER_BYTES as u64;
    for (offset_delta, record) in (0..).zip(records) {
        let delta = timestamp_of(record, options).wrapping_sub(base);
        size = size.saturating_add(encoded_record_size(record, delta, offset_delta));
    }
    if i32::try_from(records.len()).is_err() { u64::MAX } else { size }
}

/// No less than [`batch_size`], and sooner known: about what setting room aside for [`encode_batch`] should cost.
pub fn batch_size_bound(records: &[Record<'_>]) -> u64 {
    let field = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len) as u64;
    let each = records.iter().map(|record| {
        let headers = if record.headers.is_empty() { 1 } else { headers_bytes(record) };
        (NUMBERS_BYTES as u64).saturating_add(field(record.key) + field(record.value)).saturating_add(headers)
    });
    each.fold(HEADER_BYTES as u64, u64::saturating_add)
}

#[inline]
fn timestamp_of(record: &Record<'_>, options: &BatchOptions) -> i64 {
    record.timestamp.unwrap_or(options.append_time).millis()
}

fn first_timestamp(records: &[Record<'_>], options: &BatchOptions) -> i64 {
    records.first().map_or(Timestamp::NONE.millis(), |record| timestamp_of(record, options))
}

/// Writes a length and the bytes.
#[inline]
fn write_field<'o>(out: &'o mut [u8], field: Option<&[u8]>) -> Option<&'o mut [u8]> {
    let Some(bytes) = field else { return write_varint(out, -1) };
    let out = write_varint(out, i32::try_from(bytes.len()).ok()?)?;
    let (to, out) = out.split_at_mut_checked(bytes.len())?;
    to.copy_from_slice(bytes);
    Some(out)
}

#[inline(never)]
fn write_headers<'o>(mut out: &'o mut [u8], record: &Record<'_>) -> Option<&'o mut [u8]> {
    out = write_varint(out, i32::try_from(record.headers.len()).ok()?)?;
    for header in record.headers {
        out = write_field(out, Some(header.key.as_bytes()))?;
        out = write_field(out, header.value)?;
    }
    Some(out)
}

/// Why a record was not written.
#[derive(Clone, Copy)]
pub(super) enum Refused {
    NoRoom,
    TooLarge(u64),
}

/// Writes a record at the front of `out`; how many bytes it takes.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the loop over records is the hot path of every append")]
pub(super) fn write_record(
    out: &mut [u8],
    record: &Record<'_>,
    timestamp_delta: i64,
    offset_delta: i32,
) -> Result<usize, Refused> {
    match write_usual_record(out, record, timestamp_delta, offset_delta) {
        Some(written) => Ok(written),
        None => write_any_record(out, record, timestamp_delta, offset_delta),
    }
}

/// The most that a record's numbers before its key's or value's bytes take: three lengths, a timestamp, an offset, and
/// the attributes.
const NUMBERS_BYTES: usize = 4 * MAX_VARINT_BYTES + MAX_VARLONG_BYTES + 1;
/// Keys and values from here on are not what [`write_usual_record`] is quick for.
const USUAL_BYTES: usize = 1 << 24;
/// The least that is in a record's body beside key and value: attributes, four numbers, the header count.
const BODY_OVERHEAD_BYTES: usize = 6;

/// Writes a record as most are: a value, no headers, some room after it. Its length is written last, into as many bytes as it
/// most likely needs. `None` where that is wrong or the record is another: then write it by [`write_any_record`].
#[inline(always)]
#[expect(clippy::inline_always, reason = "the loop over records is the hot path of every append")]
fn write_usual_record(
    out: &mut [u8],
    record: &Record<'_>,
    timestamp_delta: i64,
    offset_delta: i32,
) -> Option<usize> {
    let value = record.value?;
    let key_length = record.key.map_or(0, <[u8]>::len);
    if !record.headers.is_empty() || key_length >= USUAL_BYTES || value.len() >= USUAL_BYTES {
        return None;
    }
    let body_at = groups(2 * (BODY_OVERHEAD_BYTES + key_length + value.len()) as u64);
    let numbers = out.first_chunk_mut::<NUMBERS_BYTES>()?;
    *numbers.get_mut(body_at)? = 0;
    let mut at = put_groups(numbers, body_at + 1, zigzag_long(timestamp_delta))?;
    at = put_groups(numbers, at, u64::from(zigzag(offset_delta)))?;
    at = match record.key {
        None => {
            // Zigzag for -1, which is null.
            let at = put_groups(numbers, at, 1)?;
            put_groups(numbers, at, 2 * value.len() as u64)?
        }
        Some(key) => {
            let at = put_groups(numbers, at, 2 * key.len() as u64)?;
            let end = at + key.len();
            out.get_mut(at..end)?.copy_from_slice(key);
            let number = out.get_mut(end..)?.first_chunk_mut::<MAX_VARINT_BYTES>()?;
            end + put_groups(number, 0, 2 * value.len() as u64)?
        }
    };
    let end = at + value.len();
    out.get_mut(at..end)?.copy_from_slice(value);
    *out.get_mut(end)? = 0;
    let body = end + 1 - body_at;
    let length_end = put_groups(out.first_chunk_mut::<MAX_VARINT_BYTES>()?, 0, 2 * body as u64)?;
    // Where the length took more bytes than were left for it, it lies over the body.
    (length_end == body_at).then_some(end + 1)
}

/// Writes a record of any kind.
#[inline(never)]
fn write_any_record(
    out: &mut [u8],
    record: &Record<'_>,
    timestamp_delta: i64,
    offset_delta: i32,
) -> Result<usize, Refused> {
    let size_bytes = body_bytes(record, timestamp_delta, offset_delta);
    let Ok(body) = i32::try_from(size_bytes) else { return Err(Refused::TooLarge(size_bytes)) };
    let room = out.len();
    let write = |out| {
        let out = write_varint(out, body)?;
        let (attributes, out) = out.split_first_mut()?;
        *attributes = 0;
        let out = write_varlong(out, timestamp_delta)?;
        let out = write_varint(out, offset_delta)?;
        let out = write_field(out, record.key)?;
        let out = write_field(out, record.value)?;
        write_headers(out, record)
    };
    let rest: Option<&mut [u8]> = write(out);
    rest.map(|rest| room - rest.len()).ok_or(Refused::NoRoom)
}

/// Writes a batch of these records, not compressed, at the front of `out`, which may be longer.
///
/// It takes exactly [`batch_size`] bytes. On an error (no records, [`BatchError::NoRoom`], [`BatchError::TooLarge`],
/// offsets past the largest) what is in `out` means nothing.
pub fn encode_batch(
    records: &[Record<'_>],
    options: &BatchOptions,
    out: &mut [u8],
) -> Result<BatchHeader, BatchError> {
    if records.is_empty() {
        return Err(BatchError::NoRecords);
    }
    let count = i32::try_from(records.len()).map_err(|_| BatchError::TooLarge { size_bytes: u64::MAX })?;
    check_offsets(options, count)?;
    let base = first_timestamp(records, options);
    let mut max = base;
    let mut filled = HEADER_BYTES;
    for (offset_delta, record) in (0..).zip(records) {
        let timestamp = match record.timestamp {
            Some(timestamp) => timestamp.millis(),
            None => options.append_time.millis(),
        };
        if timestamp > max {
            max = timestamp;
        }
        let available_bytes = out.len() as u64;
        let Some(room) = out.get_mut(filled..) else { return Err(BatchError::NoRoom { available_bytes }) };
        match write_record(room, record, timestamp.wrapping_sub(base), offset_delta) {
            Ok(written) => filled += written,
            Err(Refused::NoRoom) => return Err(BatchError::NoRoom { available_bytes }),
            Err(Refused::TooLarge(size_bytes)) => return Err(BatchError::TooLarge { size_bytes }),
        }
    }
    let batch = out.get_mut(..filled).unwrap_or_default();
    BatchHeader::of(options, count, base, max).seal(batch)
}

/// Fails where the last of `count` records would have an offset past the largest.
fn check_offsets(options: &BatchOptions, count: i32) -> Result<(), BatchError> {
    let last_offset_delta = count - 1;
    match options.base_offset.checked_add(u64::from(last_offset_delta.unsigned_abs())) {
        Some(_) => Ok(()),
        None => Err(BatchError::BadOffsets { base_offset: options.base_offset.value(), last_offset_delta }),
    }
}

/// The whole batch of one record whose header is as given but for length and CRC.
pub(super) fn single(record: &Record<'_>, header: BatchHeader) -> Vec<u8> {
    debug_assert!(header.attributes & CONTROL_BIT != 0);
    let size = HEADER_BYTES as u64 + encoded_record_size(record, 0, 0);
    let mut batch = vec![0; usize::try_from(size).unwrap_or(0)];
    let area = batch.get_mut(HEADER_BYTES..).unwrap_or_default();
    let written = write_record(area, record, 0, 0);
    let sealed = header.seal(&mut batch);
    debug_assert!(written.is_ok() && sealed.is_ok());
    batch
}

/// A batch that grows record by record, is compressed when it is finished, and then begun anew.
#[derive(Debug)]
pub struct BatchBuilder {
    options: BatchOptions,
    /// The header's room and the records, not compressed; `filled` of it counts, the rest is ready for more.
    plain: Vec<u8>,
    filled: usize,
    /// The finished batch where it is compressed.
    packed: Vec<u8>,
    compressor: Compressor,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// An empty batch.
    pub fn new(options: BatchOptions) -> Self {
        Self {
            options,
            plain: vec![0; HEADER_BYTES],
            filled: HEADER_BYTES,
            packed: Vec::new(),
            compressor: Compressor::default(),
            count: 0,
            base_timestamp: 0,
            max_timestamp: 0,
        }
    }

    /// What the batch says of itself.
    pub const fn options(&self) -> &BatchOptions {
        &self.options
    }

    /// Forgets the records and begins a batch with these options, in the same memory.
    pub fn reset(&mut self, options: BatchOptions) {
        self.options = options;
        self.clear();
    }

    /// Sets the first record's offset, also when there are records already.
    pub fn set_base_offset(&mut self, base_offset: Offset) {
        self.options.base_offset = base_offset;
    }

    /// Sets the time that records pushed from now on have when they bring none, and, under
    /// [`TimestampType::LogAppendTime`], that all records of the batch read as.
    pub fn set_append_time(&mut self, append_time: Timestamp) {
        self.options.append_time = append_time;
    }

    fn clear(&mut self) {
        self.filled = HEADER_BYTES;
        self.count = 0;
    }

    /// How many records there are.
    pub const fn count(&self) -> u32 {
        self.count.unsigned_abs()
    }

    /// True where there are no records yet.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The size in bytes of the batch so far, not compressed.
    pub const fn len_bytes(&self) -> u64 {
        self.filled as u64
    }

    /// The size in bytes that the batch would have with `record` too, not compressed.
    pub fn size_with(&self, record: &Record<'_>) -> u64 {
        let (delta, _) = self.place(record);
        self.len_bytes().saturating_add(encoded_record_size(record, delta, self.count))
    }

    /// True where the batch holds records and with `record` too would be larger than `limit_bytes`.
    pub fn is_full(&self, record: &Record<'_>, limit_bytes: u64) -> bool {
        !self.is_empty() && self.size_with(record) > limit_bytes
    }

    /// The record's timestamp less the batch's, and itself.
    fn place(&self, record: &Record<'_>) -> (i64, i64) {
        let timestamp = timestamp_of(record, &self.options);
        let base = if self.count == 0 { timestamp } else { self.base_timestamp };
        (timestamp.wrapping_sub(base), timestamp)
    }

    /// Adds a record. On an error ([`BatchError::TooLarge`]) the batch is as it was.
    #[inline]
    pub fn push(&mut self, record: Record<'_>) -> Result<(), BatchError> {
        let (delta, timestamp) = self.place(&record);
        if let Some(room) = self.plain.get_mut(self.filled..)
            && self.count < i32::MAX
            && let Some(written) = write_usual_record(room, &record, delta, self.count)
        {
            self.take_in(written, timestamp);
            return Ok(());
        }
        self.push_any(&record, delta, timestamp)
    }

    /// Adds a record of any kind, or one for which there is no room yet.
    #[inline(never)]
    fn push_any(&mut self, record: &Record<'_>, delta: i64, timestamp: i64) -> Result<(), BatchError> {
        let size_bytes = self.size_with(record);
        let too_large = BatchError::TooLarge { size_bytes };
        if size_bytes > u64::from(MAX_BATCH_BYTES) || self.count == i32::MAX {
            return Err(too_large);
        }
        let Ok(needed) = usize::try_from(size_bytes) else { return Err(too_large) };
        if needed > self.plain.len() {
            // What is there already is written over again and again: it is made zero once.
            self.plain.resize(needed.checked_next_power_of_two().unwrap_or(needed), 0);
        }
        let room = self.plain.get_mut(self.filled..).unwrap_or_default();
        let Ok(written) = write_any_record(room, record, delta, self.count) else { return Err(too_large) };
        self.take_in(written, timestamp);
        Ok(())
    }

    /// Counts a record that was written.
    #[inline]
    fn take_in(&mut self, written: usize, timestamp: i64) {
        if self.count == 0 {
            self.base_timestamp = timestamp;
            self.max_timestamp = timestamp;
        }
        if timestamp > self.max_timestamp {
            self.max_timestamp = timestamp;
        }
        self.filled += written;
        self.count += 1;
    }

    /// The finished batch, compressed as the options say; the builder is then empty and begins the next one.
    ///
    /// On an error (no records, offsets past the largest, codec missing) the records are still there.
    pub fn finish(&mut self) -> Result<&[u8], BatchError> {
        if self.count == 0 {
            return Err(BatchError::NoRecords);
        }
        check_offsets(&self.options, self.count)?;
        let mut header = BatchHeader::of(&self.options, self.count, self.base_timestamp, self.max_timestamp);
        let codec = self.options.compression.codec();
        header.attributes |= i16::from(codec.id());
        let batch = if codec == super::Codec::None {
            self.plain.get_mut(..self.filled).unwrap_or_default()
        } else {
            let records = self.plain.get(HEADER_BYTES..self.filled).unwrap_or_default();
            self.packed.clear();
            self.packed.resize(HEADER_BYTES, 0);
            self.compressor.compress(self.options.compression, records, &mut self.packed)?;
            self.packed.as_mut_slice()
        };
        header.seal(batch)?;
        let batch: &[u8] = batch;
        self.filled = HEADER_BYTES;
        self.count = 0;
        Ok(batch)
    }
}
