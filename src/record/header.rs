//! The header of a batch of message format 2: where each field lies, read and written.

use super::{
    BatchError, Codec,
    legacy::{self, is_legacy},
};
use crate::offset::{Offset, Timestamp};

/// Where the base offset lies, `i64`. Every place here counts bytes from the start of the batch.
pub const BASE_OFFSET_AT: usize = 0;
/// Where the length lies, `i32`: how many bytes follow it.
pub const BATCH_LENGTH_AT: usize = BASE_OFFSET_AT + size_of::<i64>();
/// What comes before the bytes that the length counts: a batch's size is its length plus this.
pub const LOG_OVERHEAD_BYTES: usize = BATCH_LENGTH_AT + size_of::<i32>();
/// Where the leader epoch lies, `i32`.
pub const LEADER_EPOCH_AT: usize = LOG_OVERHEAD_BYTES;
/// Where the message format's number lies, `i8`; the same in every format.
pub const MAGIC_AT: usize = LEADER_EPOCH_AT + size_of::<i32>();
/// How many bytes tell the base offset, size and format of whatever stands there ([`probe`]).
pub const PROBE_BYTES: usize = MAGIC_AT + size_of::<i8>();
/// Where the CRC-32C lies, `u32`.
pub const CRC_AT: usize = PROBE_BYTES;
/// The first byte that the CRC covers; it covers all from here to the batch's end.
pub const CRC_START: usize = CRC_AT + size_of::<u32>();
const ATTRIBUTES_AT: usize = CRC_START;
const LAST_OFFSET_DELTA_AT: usize = ATTRIBUTES_AT + size_of::<i16>();
const BASE_TIMESTAMP_AT: usize = LAST_OFFSET_DELTA_AT + size_of::<i32>();
const MAX_TIMESTAMP_AT: usize = BASE_TIMESTAMP_AT + size_of::<i64>();
const PRODUCER_ID_AT: usize = MAX_TIMESTAMP_AT + size_of::<i64>();
const PRODUCER_EPOCH_AT: usize = PRODUCER_ID_AT + size_of::<i64>();
const BASE_SEQUENCE_AT: usize = PRODUCER_EPOCH_AT + size_of::<i16>();
const RECORD_COUNT_AT: usize = BASE_SEQUENCE_AT + size_of::<i32>();
/// The size of the header; the records follow it.
pub const HEADER_BYTES: usize = RECORD_COUNT_AT + size_of::<i32>();

/// The smallest length that any message format has (format 0 without key and value).
pub const MIN_LENGTH: i32 = 14;
/// The smallest length of a batch of format 2: a header and no records.
pub const MIN_BATCH_LENGTH: i32 = 49;
/// The largest size of a batch: positions in a segment are 31 bits wide.
pub const MAX_BATCH_BYTES: u32 = i32::MAX.cast_unsigned();
/// The largest length field of a batch within [`MAX_BATCH_BYTES`].
const MAX_LENGTH: i32 = i32::MAX - 12;

const _: () = assert!(HEADER_BYTES == 61 && LOG_OVERHEAD_BYTES == 12 && PROBE_BYTES == 17 && CRC_START == 21);

/// The attribute bits.
pub(super) const CODEC_BITS: i16 = 0b111;
pub(super) const LOG_APPEND_TIME_BIT: i16 = 1 << 3;
pub(super) const TRANSACTIONAL_BIT: i16 = 1 << 4;
pub(super) const CONTROL_BIT: i16 = 1 << 5;
const DELETE_HORIZON_BIT: i16 = 1 << 6;

/// Whose clock a batch's timestamps come from (attribute bit 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer's: each record has its own.
    #[default]
    CreateTime,
    /// The log's, at the append: every record of the batch has the batch's max timestamp.
    LogAppendTime,
}

impl TimestampType {
    /// Kafka's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateTime => "CreateTime",
            Self::LogAppendTime => "LogAppendTime",
        }
    }
}

impl std::fmt::Display for TimestampType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What the first 17 bytes tell of whatever batch or message stands there, whichever its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The base offset as stored (formats 0 and 1: the message's own offset, the last where it wraps others).
    pub base_offset: i64,
    /// The whole size: 12 more than the stored length; at most [`MAX_BATCH_BYTES`].
    pub size_bytes: u32,
    /// The message format: 0, 1 or 2.
    pub magic: i8,
}

/// Reads the first 17 bytes of a batch; `None` when there are fewer.
///
/// [`BatchError::BadLength`] when no batch has the stored length (zeros, as preallocated blocks read, are such),
/// [`BatchError::UnsupportedMagic`] when the format's number is not 0, 1 or 2.
#[inline]
pub fn probe(head: &[u8]) -> Result<Option<Probe>, BatchError> {
    let Some((base_offset, rest)) = head.split_first_chunk() else { return Ok(None) };
    let Some((length, rest)) = rest.split_first_chunk() else { return Ok(None) };
    let Some((_epoch, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let Some(([magic], _)) = rest.split_first_chunk() else { return Ok(None) };
    let length = i32::from_be_bytes(*length);
    if !(MIN_LENGTH..=MAX_LENGTH).contains(&length) {
        return Err(BatchError::BadLength { length });
    }
    let magic = magic.cast_signed();
    if !(0..=2).contains(&magic) {
        return Err(BatchError::UnsupportedMagic { magic });
    }
    Ok(Some(Probe {
        base_offset: i64::from_be_bytes(*base_offset),
        size_bytes: size_of_length(length),
        magic,
    }))
}

/// The size of a batch from its length, which is in range.
const fn size_of_length(length: i32) -> u32 {
    (length + 12).cast_unsigned()
}

/// Copies `value` to `at` in a header.
#[inline]
pub(super) fn put<const N: usize>(header: &mut [u8; HEADER_BYTES], at: usize, value: [u8; N]) {
    if let Some(field) = header.get_mut(at..).and_then(|tail| tail.first_chunk_mut::<N>()) {
        *field = value;
    } else {
        debug_assert!(false, "no field of {N} bytes at {at}");
    }
}

/// Writes the two fields that a log sets when it appends a batch and that lie outside the CRC.
#[inline]
pub fn stamp_header(header: &mut [u8; HEADER_BYTES], base: Offset, epoch: i32) {
    put(header, BASE_OFFSET_AT, base.value().to_be_bytes());
    put(header, LEADER_EPOCH_AT, epoch.to_be_bytes());
}

/// A batch's header, read from its first 61 bytes, whether or not the rest is at hand.
///
/// Its structure is checked (format, length, range of offsets, count not negative), its CRC is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    pub(super) base_offset: Offset,
    pub(super) length: i32,
    pub(super) leader_epoch: i32,
    pub(super) crc: u32,
    /// 2, but for what [`BatchHeader::parse_stored`] read of a message of format 0 or 1.
    pub(super) magic: i8,
    pub(super) attributes: i16,
    pub(super) last_offset_delta: i32,
    pub(super) base_timestamp: i64,
    pub(super) max_timestamp: i64,
    pub(super) producer_id: i64,
    pub(super) producer_epoch: i16,
    pub(super) base_sequence: i32,
    pub(super) record_count: i32,
}

impl BatchHeader {
    /// Reads and checks the header at the front of `head`, which may be longer.
    #[inline]
    pub fn parse(head: &[u8]) -> Result<Self, BatchError> {
        let Some(header) = head.first_chunk::<HEADER_BYTES>() else {
            return Err(Self::short(head));
        };
        let magic = i8::from_be_bytes(take(header, MAGIC_AT));
        if magic != 2 {
            return Err(BatchError::UnsupportedMagic { magic });
        }
        let length = i32::from_be_bytes(take(header, BATCH_LENGTH_AT));
        if !(MIN_BATCH_LENGTH..=MAX_LENGTH).contains(&length) {
            return Err(BatchError::BadLength { length });
        }
        let base_offset = i64::from_be_bytes(take(header, BASE_OFFSET_AT));
        let last_offset_delta = i32::from_be_bytes(take(header, LAST_OFFSET_DELTA_AT));
        let last_offset = base_offset.checked_add(i64::from(last_offset_delta));
        let (Some(base_offset), 0.., Some(_)) = (Offset::new(base_offset), last_offset_delta, last_offset)
        else {
            return Err(BatchError::BadOffsets { base_offset, last_offset_delta });
        };
        let record_count = i32::from_be_bytes(take(header, RECORD_COUNT_AT));
        if record_count < 0 {
            return Err(BatchError::BadCount { count: record_count, last_offset_delta });
        }
        Ok(Self {
            base_offset,
            length,
            leader_epoch: i32::from_be_bytes(take(header, LEADER_EPOCH_AT)),
            magic,
            crc: u32::from_be_bytes(take(header, CRC_AT)),
            attributes: i16::from_be_bytes(take(header, ATTRIBUTES_AT)),
            last_offset_delta,
            base_timestamp: i64::from_be_bytes(take(header, BASE_TIMESTAMP_AT)),
            max_timestamp: i64::from_be_bytes(take(header, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(take(header, PRODUCER_ID_AT)),
            producer_epoch: i16::from_be_bytes(take(header, PRODUCER_EPOCH_AT)),
            base_sequence: i32::from_be_bytes(take(header, BASE_SEQUENCE_AT)),
            record_count,
        })
    }

    /// The same for whatever stands at the front of `head`, which for messages of formats 0 and 1 may be shorter.
    ///
    /// Of those the header says what the message itself does: one offset, its own, although a message that wraps others
    /// ends with it and begins before ([`BatchHeader::reaching_back_to`]); no epoch, no producer, and for a wrapper no
    /// count. Its bytes are not what [`BatchHeader::to_bytes`] gives.
    #[inline]
    pub(crate) fn parse_stored(head: &[u8]) -> Result<Self, BatchError> {
        match Self::parse(head) {
            Err(BatchError::UnsupportedMagic { magic }) if is_legacy(magic) => legacy::header(head),
            parsed => parsed,
        }
    }

    /// The message format of what the header was read from: 2 in every batch that is lent.
    pub(crate) const fn magic(&self) -> i8 {
        self.magic
    }

    /// True for what was read of a message of format 0 or 1.
    #[inline]
    pub(crate) const fn is_legacy(&self) -> bool {
        is_legacy(self.magic)
    }

    /// The same header, which for a message that wraps others begins at `next`, where the offsets before it end: only
    /// unpacking it would tell where it really begins.
    pub(crate) fn reaching_back_to(self, next: Offset) -> Self {
        let is_wrapper = self.is_legacy() && self.attributes & CODEC_BITS != 0;
        match i32::try_from(self.base_offset.since(next)) {
            Ok(last_offset_delta) if is_wrapper && next < self.base_offset => {
                Self { base_offset: next, last_offset_delta, ..self }
            }
            _ => self,
        }
    }

    /// What is wrong with fewer than 61 bytes: what the probe finds, or just that they are too few.
    #[cold]
    fn short(head: &[u8]) -> BatchError {
        match probe(head) {
            Err(error) => error,
            Ok(Some(Probe { magic, .. })) if magic != 2 => BatchError::UnsupportedMagic { magic },
            Ok(_) => {
                BatchError::TooShort { needed_bytes: HEADER_BYTES as u64, available_bytes: head.len() as u64 }
            }
        }
    }

    /// The same batch with its first record at `base` and another leader epoch; both lie outside the CRC. Fails where
    /// its offsets would run past the largest.
    pub fn placed(self, base: Offset, epoch: i32) -> Result<Self, BatchError> {
        let placed = Self { base_offset: base, leader_epoch: epoch, ..self };
        if base.value().checked_add(i64::from(self.last_offset_delta)).is_none() {
            let (base_offset, last_offset_delta) = (base.value(), self.last_offset_delta);
            return Err(BatchError::BadOffsets { base_offset, last_offset_delta });
        }
        Ok(placed)
    }

    /// The header's 61 bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        put(&mut header, BASE_OFFSET_AT, self.base_offset.value().to_be_bytes());
        put(&mut header, BATCH_LENGTH_AT, self.length.to_be_bytes());
        put(&mut header, LEADER_EPOCH_AT, self.leader_epoch.to_be_bytes());
        put(&mut header, MAGIC_AT, [2]);
        put(&mut header, CRC_AT, self.crc.to_be_bytes());
        put(&mut header, ATTRIBUTES_AT, self.attributes.to_be_bytes());
        put(&mut header, LAST_OFFSET_DELTA_AT, self.last_offset_delta.to_be_bytes());
        put(&mut header, BASE_TIMESTAMP_AT, self.base_timestamp.to_be_bytes());
        put(&mut header, MAX_TIMESTAMP_AT, self.max_timestamp.to_be_bytes());
        put(&mut header, PRODUCER_ID_AT, self.producer_id.to_be_bytes());
        put(&mut header, PRODUCER_EPOCH_AT, self.producer_epoch.to_be_bytes());
        put(&mut header, BASE_SEQUENCE_AT, self.base_sequence.to_be_bytes());
        put(&mut header, RECORD_COUNT_AT, self.record_count.to_be_bytes());
        header
    }

    /// The size of the whole batch in bytes, header included.
    pub const fn size_bytes(&self) -> u32 {
        size_of_length(self.length)
    }

    /// The offset of the batch's first record (as it was made: compaction may have removed that record).
    pub const fn base_offset(&self) -> Offset {
        self.base_offset
    }

    /// The offset of the batch's last record, inclusive; compaction keeps it even where it removed that record.
    pub fn last_offset(&self) -> Offset {
        let delta = u64::from(self.last_offset_delta.unsigned_abs());
        self.base_offset.checked_add(delta).unwrap_or(Offset::MAX)
    }

    /// The offset after the batch's last; `None` where there is none, which no log can hold.
    pub fn next_offset(&self) -> Option<Offset> {
        self.last_offset().next()
    }

    /// The leader epoch that the batch was appended in; -1 = none.
    pub const fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// The stored CRC-32C.
    pub const fn crc(&self) -> u32 {
        self.crc
    }

    /// The attribute bits as stored, unknown ones too.
    pub const fn attributes(&self) -> i16 {
        self.attributes
    }

    /// The codec that the records are compressed with.
    pub fn codec(&self) -> Result<Codec, BatchError> {
        let [_, bits] = (self.attributes & CODEC_BITS).to_be_bytes();
        Codec::from_id(bits).ok_or(BatchError::UnknownCodec { id: bits })
    }

    /// Whose clock the timestamps come from.
    pub const fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME_BIT == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// True where the batch belongs to a transaction.
    pub const fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    /// True where the batch holds control records, which no application is given.
    pub const fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// True where the base timestamp's field holds a delete horizon.
    pub const fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON_BIT != 0
    }

    /// From when on compaction may drop the batch's tombstones.
    pub const fn delete_horizon(&self) -> Option<Timestamp> {
        if self.has_delete_horizon() { Some(self.base_timestamp()) } else { None }
    }

    /// The last offset less the base offset, not negative.
    pub const fn last_offset_delta(&self) -> i32 {
        self.last_offset_delta
    }

    /// What the records' timestamp deltas count from: the first record's timestamp, or the delete horizon.
    pub const fn base_timestamp(&self) -> Timestamp {
        Timestamp::from_millis(self.base_timestamp)
    }

    /// The largest timestamp of the records, or the time of the append under [`TimestampType::LogAppendTime`].
    pub const fn max_timestamp(&self) -> Timestamp {
        Timestamp::from_millis(self.max_timestamp)
    }

    /// The producer's id; -1 = none.
    pub const fn producer_id(&self) -> i64 {
        self.producer_id
    }

    /// The producer's epoch; -1 = none.
    pub const fn producer_epoch(&self) -> i16 {
        self.producer_epoch
    }

    /// The sequence number of the batch's first record; -1 = none.
    pub const fn base_sequence(&self) -> i32 {
        self.base_sequence
    }

    /// The sequence number of the batch's last record; -1 = none. It goes on from `i32::MAX` at 0.
    pub const fn last_sequence(&self) -> i32 {
        sequence_after(self.base_sequence, self.last_offset_delta)
    }

    /// How many records the batch holds, not negative; 0 is possible after compaction.
    pub const fn record_count(&self) -> i32 {
        self.record_count
    }
}

/// The sequence number `count` after `base` (which is -1 for none), going on from `i32::MAX` at 0.
pub(super) const fn sequence_after(base: i32, count: i32) -> i32 {
    if base < 0 { -1 } else { base.wrapping_add(count) & i32::MAX }
}

/// The `N` bytes at `at` in a header.
#[inline]
fn take<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    match header.get(at..).and_then(|tail| tail.first_chunk::<N>()) {
        Some(field) => *field,
        None => [0; N],
    }
}
