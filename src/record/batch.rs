//! A whole batch: read, checked, and stamped in place.

use super::{
    BatchError, BatchHeader, CRC_START, Codec, HEADER_BYTES, Records, Scratch, TimestampType, crc32c,
    crc32c_of,
    header::{self, LOG_APPEND_TIME_BIT, put},
    stamp_header,
};
use crate::offset::{Offset, Timestamp};

/// A whole batch of message format 2, of which the header's structure was checked. Its CRC is checked on demand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BatchRef<'a> {
    bytes: &'a [u8],
    header: BatchHeader,
}

impl std::fmt::Debug for BatchRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BatchRef").field(&self.header).finish()
    }
}

impl<'a> BatchRef<'a> {
    /// The batch at the front of `bytes`, which may go on after it.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let size = header.size_bytes();
        let whole = usize::try_from(size).ok().and_then(|size| bytes.get(..size));
        let Some(bytes) = whole else {
            return Err(BatchError::TooShort {
                needed_bytes: u64::from(size),
                available_bytes: bytes.len() as u64,
            });
        };
        Ok(Self { bytes, header })
    }

    /// The batch's bytes, all of them and no more.
    #[inline]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header.
    #[inline]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The records as they are stored, compressed or not.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// The CRC-32C of the bytes as they are.
    #[inline]
    pub fn computed_crc(&self) -> u32 {
        crc32c(self.bytes.get(CRC_START..).unwrap_or_default())
    }

    /// Fails where the stored CRC is not that of the bytes.
    #[inline]
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let (stored, computed) = (self.crc(), self.computed_crc());
        if stored == computed { Ok(()) } else { Err(BatchError::CrcMismatch { stored, computed }) }
    }

    /// What a log asks of a batch that a producer made and that gets its offsets from the log: CRC, at least one
    /// record, as many as offsets, no control batch, a codec that exists. The records themselves are not looked at
    /// ([`BatchRef::check_records`] does that).
    pub fn validate_for_append(&self) -> Result<(), BatchError> {
        self.check_crc()?;
        let (count, last_offset_delta) = (self.record_count(), self.last_offset_delta());
        if count == 0 {
            return Err(BatchError::NoRecords);
        }
        if i64::from(count) != i64::from(last_offset_delta) + 1 {
            return Err(BatchError::BadCount { count, last_offset_delta });
        }
        if self.is_control() {
            return Err(BatchError::ControlBatch);
        }
        self.codec()?;
        Ok(())
    }

    /// What a log asks of a batch that keeps the offsets it has, as copies of a log do: CRC, no more records than
    /// offsets (compaction leaves fewer, none even), a codec that exists, an offset after its last. Control batches
    /// are let in.
    pub fn validate_for_preserve(&self) -> Result<(), BatchError> {
        self.check_crc()?;
        let (count, last_offset_delta) = (self.record_count(), self.last_offset_delta());
        if i64::from(count) > i64::from(last_offset_delta) + 1 {
            return Err(BatchError::BadCount { count, last_offset_delta });
        }
        if self.next_offset().is_none() {
            return Err(BatchError::BadOffsets {
                base_offset: self.base_offset().value(),
                last_offset_delta,
            });
        }
        self.codec()?;
        Ok(())
    }

    /// The records; compressed ones are unpacked into `scratch` first, all at once, within its limit.
    pub fn records<'s>(&self, scratch: &'s mut Scratch) -> Result<Records<'s>, BatchError>
    where
        'a: 's,
    {
        Ok(Records::new(self.area(scratch)?, &self.header))
    }

    /// The records area, not compressed: the batch's own bytes, or what they unpack to in `scratch`.
    pub(crate) fn area<'s>(&self, scratch: &'s mut Scratch) -> Result<&'s [u8], BatchError>
    where
        'a: 's,
    {
        let payload = self.payload();
        match self.codec()? {
            Codec::None => Ok(payload),
            // Nothing in it, so there is no stream either.
            _ if payload.is_empty() && self.record_count() == 0 => Ok(payload),
            codec => scratch.unpack(codec, payload),
        }
    }

    /// Reads all records and fails at the first thing wrong with them.
    pub fn check_records(&self, scratch: &mut Scratch) -> Result<(), BatchError> {
        self.records(scratch)?.try_for_each(|record| record.map(drop))
    }

    /// See [`BatchHeader::size_bytes`].
    #[inline]
    pub const fn size_bytes(&self) -> u32 {
        self.header.size_bytes()
    }

    /// See [`BatchHeader::base_offset`].
    #[inline]
    pub const fn base_offset(&self) -> Offset {
        self.header.base_offset()
    }

    /// See [`BatchHeader::last_offset`].
    #[inline]
    pub fn last_offset(&self) -> Offset {
        self.header.last_offset()
    }

    /// See [`BatchHeader::next_offset`].
    #[inline]
    pub fn next_offset(&self) -> Option<Offset> {
        self.header.next_offset()
    }

    /// See [`BatchHeader::leader_epoch`].
    pub const fn leader_epoch(&self) -> i32 {
        self.header.leader_epoch()
    }

    /// See [`BatchHeader::crc`].
    #[inline]
    pub const fn crc(&self) -> u32 {
        self.header.crc()
    }

    /// See [`BatchHeader::attributes`].
    pub const fn attributes(&self) -> i16 {
        self.header.attributes()
    }

    /// See [`BatchHeader::codec`].
    #[inline]
    pub fn codec(&self) -> Result<Codec, BatchError> {
        self.header.codec()
    }

    /// See [`BatchHeader::timestamp_type`].
    pub const fn timestamp_type(&self) -> TimestampType {
        self.header.timestamp_type()
    }

    /// See [`BatchHeader::is_transactional`].
    pub const fn is_transactional(&self) -> bool {
        self.header.is_transactional()
    }

    /// See [`BatchHeader::is_control`].
    pub const fn is_control(&self) -> bool {
        self.header.is_control()
    }

    /// See [`BatchHeader::has_delete_horizon`].
    pub const fn has_delete_horizon(&self) -> bool {
        self.header.has_delete_horizon()
    }

    /// See [`BatchHeader::delete_horizon`].
    pub const fn delete_horizon(&self) -> Option<Timestamp> {
        self.header.delete_horizon()
    }

    /// See [`BatchHeader::last_offset_delta`].
    pub const fn last_offset_delta(&self) -> i32 {
        self.header.last_offset_delta()
    }

    /// See [`BatchHeader::base_timestamp`].
    pub const fn base_timestamp(&self) -> Timestamp {
        self.header.base_timestamp()
    }

    /// See [`BatchHeader::max_timestamp`].
    pub const fn max_timestamp(&self) -> Timestamp {
        self.header.max_timestamp()
    }

    /// See [`BatchHeader::producer_id`].
    pub const fn producer_id(&self) -> i64 {
        self.header.producer_id()
    }

    /// See [`BatchHeader::producer_epoch`].
    pub const fn producer_epoch(&self) -> i16 {
        self.header.producer_epoch()
    }

    /// See [`BatchHeader::base_sequence`].
    pub const fn base_sequence(&self) -> i32 {
        self.header.base_sequence()
    }

    /// See [`BatchHeader::last_sequence`].
    pub const fn last_sequence(&self) -> i32 {
        self.header.last_sequence()
    }

    /// See [`BatchHeader::record_count`].
    pub const fn record_count(&self) -> i32 {
        self.header.record_count()
    }
}

/// A whole batch that is stamped where it lies.
///
/// The base offset and the leader epoch lie outside the CRC and cost nothing; what changes a timestamp computes the
/// CRC anew, so check the old one first.
#[derive(Debug)]
pub struct BatchMut<'a> {
    head: &'a mut [u8; HEADER_BYTES],
    payload: &'a mut [u8],
    header: BatchHeader,
}

impl<'a> BatchMut<'a> {
    /// The batch at the front of `bytes`, which may go on after it; checked as by [`BatchRef::parse`].
    pub fn parse(bytes: &'a mut [u8]) -> Result<Self, BatchError> {
        let header = *BatchRef::parse(bytes)?.header();
        let available_bytes = bytes.len() as u64;
        let needed_bytes = u64::from(header.size_bytes());
        let short = BatchError::TooShort { needed_bytes, available_bytes };
        let whole = usize::try_from(needed_bytes).ok().and_then(|size| bytes.get_mut(..size));
        let Some((head, payload)) = whole.and_then(|batch| batch.split_first_chunk_mut()) else {
            return Err(short);
        };
        Ok(Self { head, payload, header })
    }

    /// The header as it is now.
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Sets the first record's offset, and with it the others'. Fails, and changes nothing, where the last one's
    /// would be past the largest offset.
    pub fn set_base_offset(&mut self, base: Offset) -> Result<(), BatchError> {
        let last_offset_delta = self.header.last_offset_delta;
        if base.checked_add(u64::from(last_offset_delta.unsigned_abs())).is_none() {
            return Err(BatchError::BadOffsets { base_offset: base.value(), last_offset_delta });
        }
        self.header.base_offset = base;
        stamp_header(self.head, base, self.header.leader_epoch);
        Ok(())
    }

    /// Sets the leader epoch.
    pub fn set_leader_epoch(&mut self, epoch: i32) {
        self.header.leader_epoch = epoch;
        stamp_header(self.head, self.header.base_offset, epoch);
    }

    /// Makes every record's timestamp that of the append.
    pub fn set_log_append_time(&mut self, at: Timestamp) {
        self.set_time(self.header.attributes | LOG_APPEND_TIME_BIT, at);
    }

    /// Gives the records the timestamps that they were made with, of which `max` is the largest.
    pub fn set_create_time(&mut self, max: Timestamp) {
        self.set_time(self.header.attributes & !LOG_APPEND_TIME_BIT, max);
    }

    /// Sets the largest timestamp and leaves open whose clock it comes from.
    pub fn set_max_timestamp(&mut self, max: Timestamp) {
        self.set_time(self.header.attributes, max);
    }

    fn set_time(&mut self, attributes: i16, max: Timestamp) {
        if attributes == self.header.attributes && max == self.header.max_timestamp() {
            return;
        }
        self.header.attributes = attributes;
        self.header.max_timestamp = max.millis();
        *self.head = self.header.to_bytes();
        let covered = self.head.get(CRC_START..).unwrap_or_default();
        self.header.crc = crc32c_of(&[covered, self.payload]);
        put(self.head, header::CRC_AT, self.header.crc.to_be_bytes());
    }
}
