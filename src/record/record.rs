//! Records: as they are handed in, as they lie in a batch, and owned.

use bytes::{Bytes, BytesMut};

use super::{
    BatchError, BatchHeader, TimestampType,
    header::sequence_after,
    varint::{read_varint, read_varlong},
};
use crate::offset::{Offset, Timestamp};

/// A record to be written. Key and value may each be absent (null), which is not the same as empty.
///
/// ```
/// use stratalog::record::{Header, Record};
/// let record = Record::new().key(b"k").value(b"v").headers(&[Header { key: "trace", value: None }]);
/// assert_eq!(record.key, Some(&b"k"[..]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it happened; without one it gets the time of the append.
    pub timestamp: Option<Timestamp>,
    /// What it is about.
    pub key: Option<&'a [u8]>,
    /// What it says; a record without one deletes its key (a tombstone).
    pub value: Option<&'a [u8]>,
    /// Names and values beside it, in order; names may repeat.
    pub headers: &'a [Header<'a>],
}

impl<'a> Record<'a> {
    /// A record with nothing in it yet.
    pub const fn new() -> Self {
        Self { timestamp: None, key: None, value: None, headers: &[] }
    }

    /// A record with a value and no key.
    pub const fn value_only(value: &'a [u8]) -> Self {
        Self::new().value(value)
    }

    /// A record that deletes its key where the log is compacted.
    pub const fn tombstone(key: &'a [u8]) -> Self {
        Self::new().key(key)
    }

    /// With this key.
    #[must_use]
    pub const fn key(mut self, key: &'a [u8]) -> Self {
        self.key = Some(key);
        self
    }

    /// With this value.
    #[must_use]
    pub const fn value(mut self, value: &'a [u8]) -> Self {
        self.value = Some(value);
        self
    }

    /// With this timestamp.
    #[must_use]
    pub const fn timestamp(mut self, timestamp: Timestamp) -> Self {
        self.timestamp = Some(timestamp);
        self
    }

    /// With these headers.
    #[must_use]
    pub const fn headers(mut self, headers: &'a [Header<'a>]) -> Self {
        self.headers = headers;
        self
    }
}

/// A header to be written beside a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Its name; may be empty, may repeat.
    pub key: &'a str,
    /// Its value, absent (null) or not.
    pub value: Option<&'a [u8]>,
}

/// A header as it lies in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeaderRef<'a> {
    /// Its name: UTF-8 if its writer kept to the format.
    pub key: &'a [u8],
    /// Its value, absent (null) or not.
    pub value: Option<&'a [u8]>,
}

impl<'a> RecordHeaderRef<'a> {
    /// The name as text; `None` where it is not UTF-8.
    pub fn key_str(&self) -> Option<&'a str> {
        std::str::from_utf8(self.key).ok()
    }
}

/// The headers of one record, in order. They were checked when the record was read.
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    left: usize,
    rest: &'a [u8],
}

impl<'a> Iterator for Headers<'a> {
    type Item = RecordHeaderRef<'a>;

    fn next(&mut self) -> Option<RecordHeaderRef<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (header, rest) = read_header(self.rest)?;
        self.rest = rest;
        Some(header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Headers<'_> {}
impl std::iter::FusedIterator for Headers<'_> {}

/// A record as it lies in a batch; borrows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    offset: Offset,
    timestamp: Timestamp,
    offset_delta: i64,
    header_count: usize,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    header_bytes: &'a [u8],
}

impl<'a> RecordRef<'a> {
    /// Its offset in the log.
    #[inline]
    pub const fn offset(&self) -> Offset {
        self.offset
    }

    /// Its own timestamp, or the batch's under [`TimestampType::LogAppendTime`].
    #[inline]
    pub const fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// Its offset less the batch's base offset, not negative.
    #[inline]
    pub fn offset_delta(&self) -> i32 {
        i32::try_from(self.offset_delta).unwrap_or(i32::MAX)
    }

    /// Its key; `None` is null, not empty.
    #[inline]
    pub const fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    /// Its value; `None` is null, not empty.
    #[inline]
    pub const fn value(&self) -> Option<&'a [u8]> {
        self.value
    }

    /// Its headers, in order.
    #[inline]
    pub const fn headers(&self) -> Headers<'a> {
        Headers { left: self.header_count, rest: self.header_bytes }
    }

    /// How many headers it has.
    #[inline]
    pub const fn header_count(&self) -> usize {
        self.header_count
    }

    /// Its sequence number, from its batch's base sequence; -1 where the batch has none.
    pub fn sequence(&self, base_sequence: i32) -> i32 {
        sequence_after(base_sequence, self.offset_delta())
    }
}

/// A record that owns its bytes, in one allocation, with what its batch says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedRecord {
    /// Its offset in the log.
    pub offset: Offset,
    /// Its own timestamp, or the batch's under [`TimestampType::LogAppendTime`].
    pub timestamp: Timestamp,
    /// Whose clock the timestamp comes from.
    pub timestamp_type: TimestampType,
    /// The leader epoch that its batch was appended in; -1 = none.
    pub leader_epoch: i32,
    /// True for a control record, which no application is given.
    pub is_control: bool,
    /// Its key; `None` is null, not empty.
    pub key: Option<Bytes>,
    /// Its value; `None` is null, not empty.
    pub value: Option<Bytes>,
    /// Its headers, in order: name and value.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

impl OwnedRecord {
    /// A copy of `record`, which lies in a batch with this header.
    pub fn new(record: &RecordRef<'_>, batch: &BatchHeader) -> Self {
        let length = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        // The headers' bytes with their lengths are more than the headers alone: one allocation is enough.
        let total = length(record.key) + length(record.value) + record.header_bytes.len();
        let mut buffer = BytesMut::with_capacity(total);
        let mut own = |bytes: &[u8]| {
            buffer.extend_from_slice(bytes);
            buffer.split().freeze()
        };
        Self {
            offset: record.offset,
            timestamp: record.timestamp,
            timestamp_type: batch.timestamp_type(),
            leader_epoch: batch.leader_epoch(),
            is_control: batch.is_control(),
            key: record.key.map(&mut own),
            value: record.value.map(&mut own),
            headers: record.headers().map(|header| (own(header.key), header.value.map(&mut own))).collect(),
        }
    }
}

/// Where a walk over a batch's records stands, without holding on to their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordsPlace {
    consumed: usize,
    left: u32,
    previous_delta: i64,
}

impl RecordsPlace {
    /// Before the first record of a batch.
    pub(crate) fn first(batch: &BatchHeader) -> Self {
        Self { consumed: 0, left: batch.record_count.unsigned_abs(), previous_delta: -1 }
    }

    /// True where no record is left to read.
    pub(crate) const fn is_last(&self) -> bool {
        self.left == 0
    }
}

/// The records of one batch, in order; each is checked as it is reached.
///
/// After an error there is nothing more. Where the records do not fill the batch exactly, the last item is an error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    base_offset: Offset,
    base_timestamp: i64,
    append_time: Option<i64>,
    previous_delta: i64,
    last_offset_delta: i64,
    left: u32,
    declared: u32,
}

impl<'a> Records<'a> {
    /// The records in `area`, which is not compressed.
    #[inline]
    pub(super) fn new(area: &'a [u8], batch: &BatchHeader) -> Self {
        let declared = batch.record_count.unsigned_abs();
        Self {
            rest: area,
            base_offset: batch.base_offset,
            base_timestamp: batch.base_timestamp,
            append_time: match batch.timestamp_type() {
                TimestampType::CreateTime => None,
                TimestampType::LogAppendTime => Some(batch.max_timestamp),
            },
            previous_delta: -1,
            last_offset_delta: i64::from(batch.last_offset_delta),
            left: declared,
            declared,
        }
    }

    /// The same walk, gone on with where `place` says it stood.
    #[inline]
    pub(crate) fn resume(area: &'a [u8], batch: &BatchHeader, place: RecordsPlace) -> Self {
        let whole = Self::new(area, batch);
        let rest = area.get(place.consumed..).unwrap_or_default();
        Self { rest, left: place.left, previous_delta: place.previous_delta, ..whole }
    }

    /// Where the walk over `area` stands.
    #[inline]
    pub(crate) fn place(&self, area: &[u8]) -> RecordsPlace {
        let consumed = area.len().saturating_sub(self.rest.len());
        RecordsPlace { consumed, left: self.left, previous_delta: self.previous_delta }
    }

    /// How many records are still to come, if the batch is right.
    pub const fn left(&self) -> u32 {
        self.left
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "only inside the caller's loop do a record's parts stay in registers"
    )]
    fn read(&mut self) -> Result<RecordRef<'a>, &'static str> {
        let (length, rest) = read_varint(self.rest).ok_or("its length is cut or too long")?;
        let length = usize::try_from(length).map_err(|_| "its length is negative")?;
        let (body, rest) = rest.split_at_checked(length).ok_or("it runs past the end of the batch")?;
        let (_attributes, body) = body.split_first().ok_or("it is empty")?;
        let (timestamp_delta, body) = read_varlong(body).ok_or("its timestamp is cut or too long")?;
        let (offset_delta, body) = read_varint(body).ok_or("its offset is cut or too long")?;
        if offset_delta <= self.previous_delta {
            return Err("its offset is not after the one before it");
        }
        if offset_delta > self.last_offset_delta {
            return Err("its offset is past the batch's last");
        }
        let offset = self
            .base_offset
            .checked_add(offset_delta.unsigned_abs())
            .ok_or("its offset is past the largest there is")?;
        let (key, body) = read_bytes(body).ok_or("its key's length is wrong")?;
        let (value, body) = read_bytes(body).ok_or("its value's length is wrong")?;
        let (header_count, header_bytes) = read_varint(body).ok_or("its header count is cut or too long")?;
        let header_count = usize::try_from(header_count).map_err(|_| "its header count is negative")?;
        if header_count != 0 {
            check_headers(header_count, header_bytes)?;
        } else if !header_bytes.is_empty() {
            return Err("bytes are left over at its end");
        }
        self.rest = rest;
        self.previous_delta = offset_delta;
        Ok(RecordRef {
            offset,
            timestamp: Timestamp::from_millis(
                self.append_time.unwrap_or_else(|| self.base_timestamp.wrapping_add(timestamp_delta)),
            ),
            offset_delta,
            header_count,
            key,
            value,
            header_bytes,
        })
    }

    /// Nothing is left to read: an error, once, where bytes are.
    #[inline]
    fn end(&mut self) -> Option<Result<RecordRef<'a>, BatchError>> {
        if self.rest.is_empty() {
            return None;
        }
        self.rest = &[];
        Some(Err(BatchError::CountMismatch { declared: self.declared, found: self.declared }))
    }

    /// The error for the record that could not be read; nothing comes after it.
    #[cold]
    fn fail(&mut self, reason: &'static str) -> BatchError {
        let index = self.declared - self.left;
        let ended = self.rest.is_empty();
        self.rest = &[];
        self.left = 0;
        if ended {
            BatchError::CountMismatch { declared: self.declared, found: index }
        } else {
            BatchError::BadRecord { index, reason }
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordRef<'a>, BatchError>;

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "only inside the caller's loop do a record's parts stay in registers"
    )]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return self.end();
        }
        match self.read() {
            Ok(record) => {
                self.left -= 1;
                Some(Ok(record))
            }
            Err(reason) => Some(Err(self.fail(reason))),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // A record takes 7 bytes at least, so a count out of nowhere makes nobody allocate for it.
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.rest.len() / 7);
        (0, most.checked_add(1))
    }
}

impl std::iter::FusedIterator for Records<'_> {}

/// Takes a length and so many bytes off the front; length -1 is null.
#[inline]
fn read_bytes(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = read_varint(bytes)?;
    match usize::try_from(length) {
        Ok(length) => {
            let (taken, rest) = rest.split_at_checked(length)?;
            Some((Some(taken), rest))
        }
        Err(_) if length == -1 => Some((None, rest)),
        Err(_) => None,
    }
}

#[inline]
fn read_header(bytes: &[u8]) -> Option<(RecordHeaderRef<'_>, &[u8])> {
    let (key, rest) = read_bytes(bytes)?;
    let (value, rest) = read_bytes(rest)?;
    Some((RecordHeaderRef { key: key?, value }, rest))
}

/// Checks that `bytes` are exactly `count` headers.
#[inline(never)]
fn check_headers(count: usize, bytes: &[u8]) -> Result<(), &'static str> {
    if count > bytes.len() {
        return Err("its header count is larger than it");
    }
    let mut rest = bytes;
    for _ in 0..count {
        (_, rest) = read_header(rest).ok_or("a header's length is wrong")?;
    }
    if rest.is_empty() { Ok(()) } else { Err("bytes are left over at its end") }
}
