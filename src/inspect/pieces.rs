//! Walking a `.log` file piece by piece: whole batches, and whatever lies between and behind them.
//!
//! Damage never hides what follows it: behind bytes that are no batch the walk looks for the next place at which a header
//! makes sense and its CRC fits.

use std::fmt;

use super::{
    finding::FindingKind,
    source::{BLOCK_BYTES, Source, Window},
};
use crate::{
    error::Result,
    offset::Offset,
    record::{
        BatchError, BatchHeader, BatchRef, CRC_START, Crc32c, HEADER_BYTES, MAGIC_AT, OldMessage,
        PROBE_BYTES, check_stored,
    },
};

/// Batches above this size are checked in pieces before memory is given to them.
const LARGE_BYTES: u64 = 4 << 20;

/// Why bytes are not a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing but zeros where a header should be.
    Zeroed,
    /// The bytes are not what a batch can be.
    Batch(BatchError),
}

impl Reason {
    /// The kind of damage that this is.
    pub const fn kind(&self) -> FindingKind {
        match self {
            Self::Zeroed => FindingKind::ZeroedBytes,
            Self::Batch(BatchError::CrcMismatch { .. }) => FindingKind::BadCrc,
            Self::Batch(BatchError::BadLength { .. } | BatchError::TooShort { .. }) => FindingKind::BadLength,
            Self::Batch(BatchError::UnsupportedMagic { .. }) => FindingKind::BadMagic,
            Self::Batch(_) => FindingKind::BadHeader,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeroed => f.write_str("zeros where a batch should begin"),
            Self::Batch(error) => error.fmt(f),
        }
    }
}

/// A batch with its whole length in the file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// Where it begins.
    pub position: u64,
    /// Its header.
    pub header: BatchHeader,
    /// The CRC of its bytes; [`BatchHeader::crc`] is the stored one.
    pub computed_crc: u32,
    /// The batch, for reading its records; `None` where the CRC does not fit and the batch is too large to be trusted with memory,
    /// or where only headers were asked for.
    pub batch: Option<BatchRef<'a>>,
}

impl Entry<'_> {
    /// True where the stored CRC is that of the bytes.
    pub const fn crc_ok(&self) -> bool {
        self.header.crc() == self.computed_crc
    }
}

/// A message of format 0 or 1 with its whole length in the file.
#[derive(Debug)]
#[non_exhaustive]
pub struct OldEntry<'a> {
    /// Where it begins.
    pub position: u64,
    /// The message.
    pub message: OldMessage<'a>,
    /// The CRC of its bytes; [`OldMessage::crc`] is the stored one.
    pub computed_crc: u32,
    pub(super) header: BatchHeader,
}

impl OldEntry<'_> {
    /// True where the stored CRC is that of the bytes.
    pub const fn crc_ok(&self) -> bool {
        self.message.crc() == self.computed_crc
    }

    /// Its size in bytes.
    pub const fn size_bytes(&self) -> u32 {
        self.header.size_bytes()
    }
}

/// What the walk meets.
#[derive(Debug)]
#[non_exhaustive]
pub enum Piece<'a> {
    /// A batch of message format 2. Its CRC may be wrong: [`Entry::crc_ok`].
    Batch(Entry<'a>),
    /// A message of format 0 or 1, which may wrap others. Its CRC may be wrong: [`OldEntry::crc_ok`].
    Old(OldEntry<'a>),
    /// Bytes that are no batch, up to the next that is.
    Bad {
        /// Where they begin.
        position: u64,
        /// How many they are.
        size_bytes: u64,
        /// Why they are no batch.
        reason: Reason,
    },
}

/// What lies behind the last whole batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tail {
    /// Nothing.
    Clean,
    /// The beginning of a batch, cut short by the end of the file.
    Partial {
        /// Where it begins.
        position: u64,
        /// How many bytes of it there are.
        size_bytes: u64,
    },
    /// Zeros up to the end: reserved room.
    Zeros {
        /// Where they begin.
        position: u64,
        /// How many.
        size_bytes: u64,
    },
    /// Bytes that are neither.
    Bad {
        /// Where they begin.
        position: u64,
        /// How many.
        size_bytes: u64,
        /// Why they are no batch.
        reason: Reason,
    },
}

impl Tail {
    /// Where the last whole batch ends, and how many bytes follow.
    pub const fn place(&self) -> Option<(u64, u64)> {
        match *self {
            Self::Clean => None,
            Self::Partial { position, size_bytes }
            | Self::Zeros { position, size_bytes }
            | Self::Bad { position, size_bytes, .. } => Some((position, size_bytes)),
        }
    }
}

/// The walk itself: a lending iterator that ends with a [`Tail`].
#[derive(Debug)]
pub struct Pieces<'f> {
    window: Window<'f>,
    base: Option<Offset>,
    position: u64,
    end: u64,
    last: Option<Offset>,
    tail: Option<Tail>,
    /// Whether the last batch was a message of format 0 or 1; `None` before the first.
    is_old: Option<bool>,
    /// Batches need not be in memory as a whole.
    is_by_headers: bool,
}

/// A piece before it borrows the window.
enum Step {
    Batch(BatchHeader, u32, bool),
    Old(BatchHeader),
    Bad(u64, Reason),
    End,
}

impl<'f> Pieces<'f> {
    pub(super) fn new(
        source: &'f Source,
        base: Option<Offset>,
        position: u64,
        end: u64,
        buffer: Vec<u8>,
    ) -> Self {
        Self {
            window: Window::within(source, BLOCK_BYTES, buffer),
            base,
            position,
            end,
            last: None,
            tail: None,
            is_old: None,
            is_by_headers: false,
        }
    }

    /// The records are not going to be read: of each batch but control batches only the header and the checksum are given.
    pub(super) const fn by_headers(mut self, is_by_headers: bool) -> Self {
        self.is_by_headers = is_by_headers;
        self
    }

    /// The memory, for the next walk.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.window.into_buffer()
    }

    /// Says whether the batch before the first piece is a message of format 0 or 1.
    pub(super) const fn behind_old(mut self, is_old: bool) -> Self {
        self.is_old = Some(is_old);
        self
    }

    /// Goes on at `position`, where a batch of message format 2 has just ended, whose last offset is `last`.
    pub(super) const fn skip_to(&mut self, position: u64, last: Option<Offset>) {
        self.position = position;
        self.last = last;
        self.is_old = Some(false);
    }

    /// Goes on at the next place at which a batch of message format 2 begins; false where there is none.
    pub(super) fn skip_to_batch(&mut self) -> Result<bool> {
        self.is_old = Some(false);
        let found = self.find_batch(self.position, None)?;
        self.position = found.unwrap_or(self.end);
        Ok(found.is_some())
    }

    /// Where the next piece begins.
    pub const fn position(&self) -> u64 {
        self.position
    }

    #[cfg(test)]
    pub(super) const fn window_bytes(&self) -> usize {
        self.window.len_bytes()
    }

    /// What lies behind the last piece; `None` until [`Pieces::next_piece`] has returned `None`.
    pub const fn tail(&self) -> Option<&Tail> {
        self.tail.as_ref()
    }

    /// The next piece; `None` at the end, where [`Pieces::tail`] says what is left. Never stops before the file does.
    pub fn next_piece(&mut self) -> Result<Option<Piece<'_>>> {
        let position = self.position;
        Ok(match self.step()? {
            Step::End => None,
            Step::Bad(size_bytes, reason) => {
                self.position += size_bytes;
                Some(Piece::Bad { position, size_bytes, reason })
            }
            Step::Old(header) => {
                let size_bytes = u64::from(header.size_bytes());
                self.position += size_bytes;
                self.last = Some(header.last_offset());
                self.is_old = Some(true);
                let message = OldMessage::parse(self.window.bytes(position, size_bytes)?)?;
                let computed_crc = message.computed_crc();
                Some(Piece::Old(OldEntry { position, message, computed_crc, header }))
            }
            Step::Batch(header, computed_crc, whole) => {
                let size_bytes = u64::from(header.size_bytes());
                self.position += size_bytes;
                self.last = Some(header.last_offset());
                self.is_old = Some(false);
                let is_wanted = header.is_control() || !self.is_by_headers;
                let batch = if whole && is_wanted {
                    let bytes = self.window.bytes(position, size_bytes)?;
                    BatchRef::parse(bytes).ok()
                } else {
                    None
                };
                Some(Piece::Batch(Entry { position, header, computed_crc, batch }))
            }
        })
    }

    fn step(&mut self) -> Result<Step> {
        let at = self.position;
        if self.tail.is_some() {
            return Ok(Step::End);
        }
        let available = self.end.saturating_sub(at);
        if available == 0 {
            self.tail = Some(Tail::Clean);
            return Ok(Step::End);
        }
        let head = self.head(at)?;
        let header = match BatchHeader::parse(head) {
            Ok(header) => header,
            Err(_) if head.iter().all(|&b| b == 0) => return self.no_batch(Reason::Zeroed),
            Err(error) => {
                return match self.old_message(at)? {
                    Ok(header) => Ok(Step::Old(header)),
                    // Nothing but old messages before it: what is wrong is told as of one.
                    Err(as_old) if self.is_old == Some(true) => self.no_batch(Reason::Batch(as_old)),
                    Err(_) => self.no_batch(Reason::Batch(error)),
                };
            }
        };
        let needed = u64::from(header.size_bytes());
        if needed > available {
            let short = BatchError::TooShort { needed_bytes: needed, available_bytes: available };
            return self.no_batch(Reason::Batch(short));
        }
        let computed = self.crc(at, needed)?;
        if computed == header.crc() {
            return Ok(Step::Batch(header, computed, true));
        }
        if self.length_is_right(at + needed, &header)? {
            return Ok(Step::Batch(header, computed, needed <= LARGE_BYTES));
        }
        self.no_batch(Reason::Batch(BatchError::CrcMismatch { stored: header.crc(), computed }))
    }

    /// Up to 61 bytes from `at`.
    fn head(&mut self, at: u64) -> Result<&[u8]> {
        let count = self.end.saturating_sub(at).min(HEADER_BYTES as u64);
        self.window.bytes(at, count)
    }

    /// The CRC of the `size` bytes of a batch at `at`.
    fn crc(&mut self, at: u64, size: u64) -> Result<u32> {
        // Bytes that lie across two blocks are moved together only for who is going to read them.
        let is_whole = !self.is_by_headers || self.window.holds(at, size);
        if size <= LARGE_BYTES && is_whole {
            let bytes = self.window.bytes(at, size)?;
            return Ok(crate::record::crc32c(bytes.get(CRC_START..).unwrap_or_default()));
        }
        let mut crc = Crc32c::new();
        let end = at + size;
        let mut at = at + CRC_START as u64;
        while at < end {
            let block = self.window.block(at, end - at)?;
            if block.is_empty() {
                break;
            }
            crc.update(block);
            at += block.len() as u64;
        }
        Ok(crc.value())
    }

    /// Whether what follows a batch with a wrong CRC shows that its length is right: the end, zeros up to the end, or a header that
    /// makes sense and carries on the offsets. Where it does not, the length itself may be the damage.
    fn length_is_right(&mut self, next: u64, header: &BatchHeader) -> Result<bool> {
        if next == self.end {
            return Ok(true);
        }
        let (end, base) = (self.end, self.base);
        let head = self.head(next)?;
        if head.iter().all(|&b| b == 0) {
            return Ok(self.window.first_non_zero(next, end)?.is_none());
        }
        let following =
            if header.is_legacy() { BatchHeader::parse_stored(head) } else { BatchHeader::parse(head) };
        Ok(following
            .is_ok_and(|following| plausible(&following, base, Some(header.last_offset()), end - next)))
    }

    /// The header of the message of format 0 or 1 at `at`, if its fields make sense, and its CRC fits or at least its
    /// length is right.
    fn old_message(&mut self, at: u64) -> Result<std::result::Result<BatchHeader, BatchError>> {
        let available_bytes = self.end.saturating_sub(at);
        let header = match BatchHeader::parse_stored(self.head(at)?) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error)),
        };
        let needed_bytes = u64::from(header.size_bytes());
        if needed_bytes > available_bytes {
            return Ok(Err(BatchError::TooShort { needed_bytes, available_bytes }));
        }
        // No broker took a message as large as this; memory is not given for a length alone.
        if needed_bytes > LARGE_BYTES * 16 {
            return Ok(Err(BatchError::TooLarge { size_bytes: needed_bytes }));
        }
        let bytes = self.window.bytes(at, needed_bytes)?;
        let checked = check_stored(&header, bytes);
        let parsed = OldMessage::parse(bytes).map(drop);
        let is_length_right = checked.is_ok()
            || (self.is_old == Some(true)
                && parsed.is_ok()
                && self.length_is_right(at + needed_bytes, &header)?);
        Ok(if is_length_right { parsed } else { checked }.map(|()| header))
    }

    /// Bytes at the position that are no batch: up to the next batch, or the tail.
    fn no_batch(&mut self, reason: Reason) -> Result<Step> {
        let (at, end) = (self.position, self.end);
        let size_bytes = end - at;
        if reason == Reason::Zeroed && self.window.first_non_zero(at, end)?.is_none() {
            self.tail = Some(Tail::Zeros { position: at, size_bytes });
            return Ok(Step::End);
        }
        // A batch that goes on with the offsets first, so that one inside a record's value is not taken for one of the log. But
        // the offsets so far may be what is damaged (they lie outside the CRC): then any batch of the segment will do.
        let mut next = self.find_batch(at + 1, self.last)?;
        if next.is_none() && self.last.is_some() {
            next = self.find_batch(at + 1, None)?;
        }
        if let Some(next) = next {
            return Ok(Step::Bad(next - at, reason));
        }
        self.tail = Some(match reason {
            Reason::Batch(BatchError::TooShort { .. }) => Tail::Partial { position: at, size_bytes },
            reason => Tail::Bad { position: at, size_bytes, reason },
        });
        Ok(Step::End)
    }

    /// The first position from `from` on at which a batch begins whose CRC fits, with offsets above `last`.
    ///
    /// Bytes made to look like headers could make this read the rest of the file once for each: there is a bound on how much
    /// is checked, past which the rest counts as bad.
    fn find_batch(&mut self, from: u64, last: Option<Offset>) -> Result<Option<u64>> {
        let mut budget = (self.end.saturating_sub(from)).saturating_mul(16).max(256 << 20);
        let mut at = from;
        let is_old = self.is_old != Some(false);
        // Old messages may be as short as the fields before their key.
        let least = if is_old { PROBE_BYTES } else { HEADER_BYTES };
        while at + least as u64 <= self.end {
            let block = self.window.block(at, self.end - at)?;
            // A header that the block cuts is tried with the next block.
            let is_rest = block.len() as u64 >= self.end - at;
            let kept = if is_rest { least } else { HEADER_BYTES };
            let Some(searched) = block.len().checked_sub(kept - 1).filter(|&n| n > 0) else { break };
            // The magic is the one byte of a header that is always the same.
            let found =
                block.get(MAGIC_AT..MAGIC_AT + searched).unwrap_or_default().iter().enumerate().find_map(
                    |(start, &magic)| {
                        if magic != 2 && (magic > 2 || !is_old) {
                            return None;
                        }
                        let header = BatchHeader::parse_stored(block.get(start..)?).ok()?;
                        let room = self.end - at - start as u64;
                        plausible(&header, self.base, last, room).then_some((start as u64, header))
                    },
                );
            let Some((start, header)) = found else {
                at += searched as u64;
                continue;
            };
            at += start;
            let size = u64::from(header.size_bytes());
            let Some(left) = budget.checked_sub(size) else { return Ok(None) };
            budget = left;
            let is_sound = if header.is_legacy() {
                self.old_message(at)?.is_ok()
            } else {
                self.crc(at, size)? == header.crc()
            };
            if is_sound {
                return Ok(Some(at));
            }
            at += 1;
        }
        Ok(None)
    }
}

/// Whether a header whose CRC is not known to be right can be one, by fields that the damage around it cannot have made.
fn plausible(header: &BatchHeader, base: Option<Offset>, last: Option<Offset>, room: u64) -> bool {
    const MIN_RECORD_BYTES: u64 = 7;
    let size = u64::from(header.size_bytes());
    let records = u64::from(header.record_count().unsigned_abs());
    let Ok(codec) = header.codec() else { return false };
    let records_fit = header.is_legacy()
        || codec != crate::record::Codec::None
        || records.saturating_mul(MIN_RECORD_BYTES) <= size.saturating_sub(HEADER_BYTES as u64);
    let in_segment = base.is_none_or(|base| {
        header.base_offset() >= base && header.last_offset().since(base) <= u64::from(i32::MAX.unsigned_abs())
    });
    size <= room
        && (!header.is_legacy() || size <= LARGE_BYTES * 16)
        && header.leader_epoch() >= -1
        && i64::from(header.record_count()) <= i64::from(header.last_offset_delta()) + 1
        && records_fit
        && in_segment
        && last.is_none_or(|last| header.base_offset() > last)
}
