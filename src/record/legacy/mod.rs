//! The message formats before 2, which brokers wrote until 0.11 and leave in place: read and checked, never written.
//!
//! Lives here: messages of formats 0 and 1, those that they wrap, and making batches of format 2 of them.
//! Not here: looking for them in files (segment, inspect), and anything that would write one.
//! Holds always: no input panics or unpacks to more than its limit; a batch made of a message has its last offset, and the
//! records that it is or wraps.
//!
//! | at | field | type |
//! | ---: | --- | --- |
//! | 0 | offset | i64 |
//! | 8 | size of what follows | i32 |
//! | 12 | CRC-32 of all that follows it | u32 |
//! | 16 | magic, 0 or 1 | i8 |
//! | 17 | attributes: codec in bits 0-2, timestamp type in bit 3 (format 1) | i8 |
//! | 18 | timestamp (format 1 only) | i64 |
//! | 18 or 26 | key, then value: length (-1 = null) and so many bytes | i32, bytes |
//!
//! Compression wraps: the value of a compressed message unpacks to messages one after the other, which are not
//! compressed again. In format 0 they carry their own offsets; in format 1 the first has 0, and the wrapper's offset is that
//! of the last. (Kafka: `LegacyRecord`, `AbstractLegacyRecordBatch`.)

mod convert;
mod lz4;
#[cfg(test)]
mod tests;

use std::fmt;

use super::{
    BatchError, BatchHeader, CRC_AT, Codec, LOG_OVERHEAD_BYTES, MAGIC_AT, PROBE_BYTES, Probe, Scratch,
    TimestampType, crc32,
    header::{CODEC_BITS, LOG_APPEND_TIME_BIT},
    probe,
};
use crate::offset::{Offset, Timestamp};

pub(super) use convert::unpack_as_batch;

/// Where the checksum of an old message stands, and where what it covers begins.
const OLD_CRC_AT: usize = LOG_OVERHEAD_BYTES;
const OLD_CRC_START: usize = OLD_CRC_AT + size_of::<u32>();
const OLD_ATTRIBUTES_AT: usize = MAGIC_AT + size_of::<i8>();
/// Where the timestamp of format 1 and the key of format 0 stand.
const OLD_BODY_AT: usize = OLD_ATTRIBUTES_AT + size_of::<i8>();
/// What the wrapped messages of one wrapper take at least, each.
const MIN_MESSAGE_BYTES: usize = OLD_BODY_AT + 2 * size_of::<i32>();

const _: () = assert!(OLD_CRC_START == MAGIC_AT && OLD_CRC_AT < CRC_AT && OLD_BODY_AT > PROBE_BYTES);

/// True for message formats 0 and 1, which Kafka wrote before 0.11.
pub const fn is_legacy(magic: i8) -> bool {
    matches!(magic, 0 | 1)
}

/// Whose message format has this number, for people.
pub fn message_format(magic: i8) -> &'static str {
    match magic {
        0 => "of Kafka before 0.10",
        1 => "of Kafka 0.10",
        2 => "of Kafka since 0.11",
        _ => "unknown",
    }
}

/// The probe of an old message and its fields before the key, whether or not the rest is there.
fn fields(head: &[u8]) -> Result<(Probe, Fields, &[u8]), BatchError> {
    let short = || BatchError::TooShort {
        needed_bytes: MIN_MESSAGE_BYTES as u64,
        available_bytes: head.len() as u64,
    };
    let found = probe(head)?.ok_or_else(short)?;
    if !is_legacy(found.magic) {
        return Err(BatchError::UnsupportedMagic { magic: found.magic });
    }
    let crc = head.get(OLD_CRC_AT..).and_then(|rest| rest.first_chunk()).ok_or_else(short)?;
    let (attributes, rest) = head.get(OLD_ATTRIBUTES_AT..).and_then(<[u8]>::split_first).ok_or_else(short)?;
    let (timestamp, body) = if found.magic == 0 {
        (Timestamp::NONE.millis(), rest)
    } else {
        let (timestamp, body) = rest.split_first_chunk().ok_or_else(short)?;
        (i64::from_be_bytes(*timestamp), body)
    };
    let attributes = i16::from(*attributes);
    Ok((found, Fields { crc: u32::from_be_bytes(*crc), attributes, timestamp }, body))
}

struct Fields {
    crc: u32,
    attributes: i16,
    timestamp: i64,
}

impl Fields {
    const fn is_append_time(&self, magic: i8) -> bool {
        magic > 0 && self.attributes & LOG_APPEND_TIME_BIT != 0
    }
}

/// What an old message says in the words of a batch header; see [`BatchHeader::parse_stored`].
#[cold]
pub(super) fn header(head: &[u8]) -> Result<BatchHeader, BatchError> {
    let (found, fields, _) = fields(head)?;
    let base = found.base_offset;
    let wrong = BatchError::BadOffsets { base_offset: base, last_offset_delta: 0 };
    let base_offset = Offset::new(base).ok_or(wrong)?;
    let mut header = BatchHeader::first(base_offset, -1, Timestamp::from_millis(fields.timestamp));
    // Bounded by the probe.
    header.length = i32::try_from(found.size_bytes).unwrap_or(i32::MAX) - 12;
    header.crc = fields.crc;
    header.magic = found.magic;
    let known = if found.magic == 0 { CODEC_BITS } else { CODEC_BITS | LOG_APPEND_TIME_BIT };
    header.attributes = fields.attributes & known;
    if header.attributes & CODEC_BITS != 0 {
        header.record_count = 0;
    }
    Ok(header)
}

/// A whole message of format 0 or 1. Its structure was checked; its CRC is checked on demand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OldMessage<'a> {
    bytes: &'a [u8],
    magic: i8,
    crc: u32,
    attributes: i16,
    offset: Offset,
    timestamp: i64,
    timestamp_type: Option<TimestampType>,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
}

impl fmt::Debug for OldMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OldMessage")
            .field("magic", &self.magic)
            .field("offset", &self.offset)
            .field("size_bytes", &self.bytes.len())
            .field("attributes", &self.attributes)
            .field("timestamp", &self.timestamp)
            .finish_non_exhaustive()
    }
}

impl<'a> OldMessage<'a> {
    /// The message at the front of `bytes`, which may go on after it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let (found, _, _) = fields(bytes)?;
        let whole = usize::try_from(found.size_bytes).ok().and_then(|size| bytes.get(..size));
        let bytes = whole.ok_or(BatchError::TooShort {
            needed_bytes: u64::from(found.size_bytes),
            available_bytes: bytes.len() as u64,
        })?;
        let malformed = |reason| BatchError::BadMessage { reason };
        // Once more, of the message alone: a field must not reach into what follows it.
        let (_, fields, body) = fields(bytes).map_err(|_| malformed("it is too short for its fields"))?;
        let (key, body) = field(body).ok_or(malformed("its key's length is wrong"))?;
        let (value, body) = field(body).ok_or(malformed("its value's length is wrong"))?;
        if !body.is_empty() {
            return Err(malformed("bytes are left over at its end"));
        }
        let wrong = BatchError::BadOffsets { base_offset: found.base_offset, last_offset_delta: 0 };
        let timestamp_type = match (found.magic, fields.is_append_time(found.magic)) {
            (0, _) => None,
            (_, false) => Some(TimestampType::CreateTime),
            (_, true) => Some(TimestampType::LogAppendTime),
        };
        Ok(Self {
            bytes,
            magic: found.magic,
            crc: fields.crc,
            attributes: fields.attributes,
            offset: Offset::new(found.base_offset).ok_or(wrong)?,
            timestamp: fields.timestamp,
            timestamp_type,
            key,
            value,
        })
    }

    /// The message's bytes, all of them and no more.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The message format: 0 or 1.
    pub const fn magic(&self) -> i8 {
        self.magic
    }

    /// Its offset; where it wraps others, that of the last of them.
    pub const fn offset(&self) -> Offset {
        self.offset
    }

    /// Its timestamp; [`Timestamp::NONE`] in format 0. Where it wraps others, the largest of theirs.
    pub const fn timestamp(&self) -> Timestamp {
        Timestamp::from_millis(self.timestamp)
    }

    /// Whose clock the timestamp comes from; `None` in format 0.
    pub const fn timestamp_type(&self) -> Option<TimestampType> {
        self.timestamp_type
    }

    /// The attribute bits as stored.
    pub const fn attributes(&self) -> i16 {
        self.attributes
    }

    /// What the value is compressed with. Any codec but none makes the message a wrapper of others. Zstandard came
    /// with format 2.
    pub fn codec(&self) -> Result<Codec, BatchError> {
        let [_, bits] = (self.attributes & CODEC_BITS).to_be_bytes();
        let codec = Codec::from_id(bits).filter(|codec| *codec != Codec::Zstd);
        codec.ok_or(BatchError::UnknownCodec { id: bits })
    }

    /// The key; `None` is null, not empty.
    pub const fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    /// The value; `None` is null, not empty. Where the message wraps others, they are in it, compressed.
    pub const fn value(&self) -> Option<&'a [u8]> {
        self.value
    }

    /// The stored CRC-32.
    pub const fn crc(&self) -> u32 {
        self.crc
    }

    /// The CRC-32 (the one of gzip, not CRC-32C) of the bytes as they are.
    pub fn computed_crc(&self) -> u32 {
        computed_crc(self.bytes)
    }

    /// Fails where the stored CRC is not that of the bytes.
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let (stored, computed) = (self.crc, self.computed_crc());
        if stored == computed { Ok(()) } else { Err(BatchError::CrcMismatch { stored, computed }) }
    }

    /// The messages that it wraps, unpacked into `scratch` within its limit, with their offsets in the log and the
    /// timestamps that they are read with; or the message itself where it wraps none.
    ///
    /// Their CRCs are checked on demand, everything else as they are reached.
    pub fn messages<'s>(&self, scratch: &'s mut Scratch) -> Result<OldMessages<'s>, BatchError>
    where
        'a: 's,
    {
        let codec = self.codec()?;
        if codec == Codec::None {
            return Ok(OldMessages::of(*self));
        }
        let (unpacked, _) = self.unpack(codec, scratch)?;
        OldMessages::wrapped(self, unpacked)
    }

    /// What the value unpacks to, and the memory beside it.
    fn unpack<'s>(
        &self,
        codec: Codec,
        scratch: &'s mut Scratch,
    ) -> Result<(&'s [u8], &'s mut Vec<u8>), BatchError> {
        let reason = "it wraps other messages and its value is null";
        let value = self.value.ok_or(BatchError::BadMessage { reason })?;
        if self.magic == 0 && codec == Codec::Lz4 {
            return scratch.unpack_wrapped(codec, &lz4::with_right_checksum(value));
        }
        scratch.unpack_wrapped(codec, value)
    }
}

/// The CRC-32 of what the checksum of a whole message covers.
pub(super) fn computed_crc(message: &[u8]) -> u32 {
    crc32(message.get(OLD_CRC_START..).unwrap_or_default())
}

/// Takes a length and so many bytes off the front; length -1 is null.
fn field(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    match i32::from_be_bytes(*length) {
        -1 => Some((None, rest)),
        length => {
            let (taken, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some((Some(taken), rest))
        }
    }
}

/// The messages of a message: those that it wraps, or itself.
///
/// Offsets rise and end at the wrapper's. After an error there is nothing more.
#[derive(Clone, Debug)]
pub struct OldMessages<'a> {
    alone: Option<OldMessage<'a>>,
    rest: &'a [u8],
    index: u32,
    magic: i8,
    /// What is added to an offset to have it in the log.
    base: i64,
    /// The wrapper's, which none goes past.
    last: Offset,
    previous: Option<Offset>,
    timestamp_type: Option<TimestampType>,
    append_time: Option<i64>,
}

impl<'a> OldMessages<'a> {
    const fn of(message: OldMessage<'a>) -> Self {
        Self {
            alone: Some(message),
            rest: &[],
            index: 0,
            magic: message.magic,
            base: 0,
            last: message.offset,
            previous: None,
            timestamp_type: message.timestamp_type,
            append_time: None,
        }
    }

    fn wrapped(wrapper: &OldMessage<'_>, unpacked: &'a [u8]) -> Result<Self, BatchError> {
        let base = match (wrapper.magic, last_inner_offset(unpacked)?) {
            (0, _) => 0,
            (_, last) => wrapper.offset.value().checked_sub(last).filter(|base| *base >= 0).ok_or(
                BatchError::BadMessage { reason: "it wraps messages with offsets larger than its own" },
            )?,
        };
        let is_append_time = wrapper.timestamp_type == Some(TimestampType::LogAppendTime);
        Ok(Self {
            alone: None,
            rest: unpacked,
            index: 0,
            magic: wrapper.magic,
            base,
            last: wrapper.offset,
            previous: None,
            timestamp_type: wrapper.timestamp_type,
            append_time: is_append_time.then_some(wrapper.timestamp),
        })
    }

    fn read(&mut self) -> Result<OldMessage<'a>, &'static str> {
        let message = OldMessage::parse(self.rest).map_err(|error| match error {
            BatchError::BadMessage { reason } => reason,
            BatchError::BadOffsets { .. } => "its offset is no offset",
            BatchError::TooShort { .. } => "it runs past the end of what wraps it",
            BatchError::BadLength { .. } => "its length is none that a message has",
            _ => "it is of another message format than what wraps it",
        })?;
        if message.magic != self.magic {
            return Err("it is of another message format than what wraps it");
        }
        if message.attributes & CODEC_BITS != 0 {
            return Err("it is compressed once more");
        }
        let offset = message.offset.value().checked_add(self.base).and_then(Offset::new);
        let offset = offset.ok_or("its offset is past the largest there is")?;
        if self.previous.is_some_and(|previous| offset <= previous) {
            return Err("its offset is not after the one before it");
        }
        if offset > self.last {
            return Err("its offset is past that of what wraps it");
        }
        self.rest = self.rest.get(message.bytes.len()..).unwrap_or_default();
        self.previous = Some(offset);
        Ok(OldMessage {
            offset,
            timestamp: self.append_time.unwrap_or(message.timestamp),
            timestamp_type: self.timestamp_type,
            ..message
        })
    }
}

impl<'a> Iterator for OldMessages<'a> {
    type Item = Result<OldMessage<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(message) = self.alone.take() {
            return Some(Ok(message));
        }
        if self.rest.is_empty() {
            return None;
        }
        let index = self.index;
        self.index = index.saturating_add(1);
        Some(self.read().map_err(|reason| {
            self.rest = &[];
            BatchError::BadRecord { index, reason }
        }))
    }
}

impl std::iter::FusedIterator for OldMessages<'_> {}

/// The offset that the last of the messages in `unpacked` has, as stored.
fn last_inner_offset(unpacked: &[u8]) -> Result<i64, BatchError> {
    let mut rest = unpacked;
    let mut last = None;
    while let Ok(Some(found)) = probe(rest) {
        let size = usize::try_from(found.size_bytes).unwrap_or(usize::MAX);
        let Some(after) = rest.get(size..) else { break };
        last = Some(found.base_offset);
        rest = after;
    }
    // What is wrong with the rest is told when it is reached.
    last.ok_or(BatchError::BadMessage { reason: "it wraps no message" })
}
