//! Walking the batches of a `.log` file as they lie on the disk, and telling what follows the last good one.

use crate::{
    error::{Corruption, Error},
    offset::Offset,
    record::{self, BatchError, BatchHeader, HEADER_BYTES, LOG_OVERHEAD_BYTES, PROBE_BYTES},
    sys::{self, File},
};

use super::window::Window;

/// How much is read at a time: large enough that the system call costs nothing beside the checksums.
const BLOCK_BYTES: usize = 1 << 20;

/// A walk over the batches of one file, from a position to the end of the file.
pub(crate) struct Scan<'a> {
    file: &'a File,
    window: Window,
    /// The segment's base offset.
    base: Offset,
    position: u64,
    end: u64,
    /// The least offset that the next batch may begin with.
    next: Offset,
    /// Behind damage a message of format 0 or 1 is looked for too: what came before was one, or nothing did.
    is_old: bool,
    /// Batches are told in whatever order they lie.
    in_any_order: bool,
    /// Where the segment's offsets end, for a segment of which that is known.
    offsets_end: Offset,
}

/// A batch that checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedBatch {
    pub(crate) position: u64,
    pub(crate) header: BatchHeader,
}

impl ScannedBatch {
    /// The position after it.
    pub(crate) fn end(&self) -> u64 {
        self.position + u64::from(self.header.size_bytes())
    }
}

/// What follows the last good batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing: the file ends there.
    Clean,
    /// Zeros to the end of the file: blocks that were reserved and not written.
    Zeros,
    /// Bytes that are no batch, or none that may stand there.
    Bad(String),
}

impl<'a> Scan<'a> {
    /// A walk from `position`, where a batch of `next` or later begins.
    pub(crate) fn new(file: &'a File, base: Offset, position: u64, next: Offset) -> sys::Result<Self> {
        let end = file.len()?;
        let is_old = position == 0;
        let window = Window::new(BLOCK_BYTES);
        Ok(Self {
            file,
            window,
            base,
            position,
            end,
            next,
            is_old,
            in_any_order: false,
            offsets_end: Offset::MAX,
        })
    }

    /// Stops the walk at `end`, as if the file ended there.
    pub(crate) fn until(mut self, end: u64) -> Self {
        self.end = self.end.min(end);
        self
    }

    /// Says whether the batch before the walk's beginning is a message of format 0 or 1.
    pub(crate) fn behind_old(mut self, is_old: bool) -> Self {
        self.is_old = is_old;
        self
    }

    /// Takes every batch whose checksum is right, whatever its offset. Behind damage only one that the segment could hold.
    pub(crate) fn in_any_order(mut self) -> Self {
        self.in_any_order = true;
        self
    }

    /// Says where the segment's offsets end: a batch that leaps there from below is damage.
    pub(crate) fn of_offsets_below(mut self, end: Offset) -> Self {
        self.offsets_end = end;
        self
    }

    /// The least offset that a batch behind damage may have.
    fn least(&self) -> Offset {
        if self.in_any_order { self.base } else { self.next }
    }

    /// Where the walk stands: behind the last batch returned.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The offset after the last batch returned.
    pub(crate) fn next_offset(&self) -> Offset {
        self.next
    }

    /// The next batch, its checksum checked; or what is there instead. After a tail the walk stands still.
    pub(crate) fn next_batch(&mut self) -> sys::Result<Result<ScannedBatch, Tail>> {
        if self.position >= self.end {
            return Ok(Err(Tail::Clean));
        }
        match self.read_batch()? {
            Ok(header) => {
                let batch = ScannedBatch { position: self.position, header };
                self.position = batch.end();
                self.is_old = header.is_legacy();
                self.next = header.next_offset().unwrap_or(Offset::MAX);
                Ok(Ok(batch))
            }
            Err(Tail::Bad(_)) if self.is_zero_from(self.position)? => Ok(Err(Tail::Zeros)),
            Err(tail) => Ok(Err(tail)),
        }
    }

    fn read_batch(&mut self) -> sys::Result<Result<BatchHeader, Tail>> {
        let head = self.window.bytes(self.file, self.position, HEADER_BYTES, self.end)?;
        let probe = match record::probe(head) {
            Ok(Some(probe)) => probe,
            Ok(None) => {
                let reason = format!("{} bytes are too few for a batch header", head.len());
                return Ok(Err(Tail::Bad(reason)));
            }
            Err(error) => return Ok(Err(Tail::Bad(error.to_string()))),
        };
        let left = self.end - self.position;
        if u64::from(probe.size_bytes) > left {
            let reason = format!("the batch declares {} bytes, {left} follow", probe.size_bytes);
            return Ok(Err(Tail::Bad(reason)));
        }
        // Checked just above: the file holds as much.
        let size = usize::try_from(probe.size_bytes).unwrap_or(usize::MAX);
        let bytes = self.window.bytes(self.file, self.position, size, self.end)?;
        if self.in_any_order {
            return Ok(check_alone(bytes).map_err(|error| Tail::Bad(error.to_string())));
        }
        Ok(check(bytes, self.base, self.next, self.offsets_end).map_err(|error| Tail::Bad(error.to_string())))
    }

    fn is_zero_from(&mut self, position: u64) -> sys::Result<bool> {
        is_zero(self.file, &mut self.window, position, self.end)
    }

    /// Goes on behind damage: at the end that the damaged batch declares if a good batch begins there, else at the next
    /// place where one does. False where none follows.
    pub(crate) fn resync(&mut self) -> sys::Result<bool> {
        let declared =
            record::probe(self.window.bytes(self.file, self.position, PROBE_BYTES, self.end)?).ok().flatten();
        let after = declared.map(|probe| self.position + u64::from(probe.size_bytes));
        let found = match after {
            Some(after) if self.is_batch_at(after)? => Some(after),
            _ => self.find_batch(self.position + 1)?,
        };
        match found {
            Some(position) => {
                self.position = position;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn is_batch_at(&mut self, position: u64) -> sys::Result<bool> {
        let head = self.window.bytes(self.file, position, HEADER_BYTES, self.end)?;
        let Ok(Some(probe)) = record::probe(head) else { return Ok(false) };
        if record::is_legacy(probe.magic) && !self.is_old {
            return Ok(false);
        }
        if u64::from(probe.size_bytes) > self.end.saturating_sub(position) {
            return Ok(false);
        }
        let size = usize::try_from(probe.size_bytes).unwrap_or(usize::MAX);
        let (least, offsets_end) = (self.least(), self.offsets_end);
        let bytes = self.window.bytes(self.file, position, size, self.end)?;
        Ok(check(bytes, self.base, least, offsets_end).is_ok())
    }

    /// Every byte is tried as the beginning of a batch. A false find would need a matching checksum.
    fn find_batch(&mut self, from: u64) -> sys::Result<Option<u64>> {
        let mut at = from;
        let (base, next) = (self.base, self.least());
        while at < self.end {
            let head = self.window.bytes(self.file, at, BLOCK_BYTES / 2, self.end)?;
            // Old messages may be as short as the fields before their key.
            let least = if self.is_old { PROBE_BYTES } else { HEADER_BYTES };
            if head.len() < least {
                return Ok(None);
            }
            let left = self.end - at;
            // A header that the block cuts is tried with the next block.
            let is_rest = head.len() as u64 == left;
            let tried = head.len() - if is_rest { least } else { HEADER_BYTES } + 1;
            let is_old = self.is_old;
            let plausible = (0..tried).find(|&index| {
                let room = left - index as u64;
                let magic = head[index + record::MAGIC_AT];
                (magic == 2 || magic < 2 && is_old) && is_plausible(&head[index..], base, next, room)
            });
            match plausible {
                Some(index) if self.is_batch_at(at + index as u64)? => return Ok(Some(at + index as u64)),
                Some(index) => at += index as u64 + 1,
                None => at += tried as u64,
            }
        }
        Ok(None)
    }
}

/// True where every byte from `position` to `end` is zero. Holes are not read.
pub(crate) fn is_zero(file: &File, window: &mut Window, position: u64, end: u64) -> sys::Result<bool> {
    let mut at = position;
    while at < end {
        let Some(data) = file.next_data(at, end)? else { return Ok(true) };
        at = at.max(data);
        let bytes = window.bytes(file, at, BLOCK_BYTES, end)?;
        if bytes.is_empty() {
            return Ok(true);
        }
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += bytes.len() as u64;
    }
    Ok(true)
}

fn is_plausible(head: &[u8], base: Offset, next: Offset, room: u64) -> bool {
    BatchHeader::parse_stored(head)
        .is_ok_and(|header| u64::from(header.size_bytes()) <= room && may_stand(&header, base, next).is_ok())
}

/// A whole batch that checks and may stand in the segment `base` behind offsets that end at `next`.
fn check(bytes: &[u8], base: Offset, next: Offset, end: Offset) -> Result<BatchHeader, BatchError> {
    let header = BatchHeader::parse_stored(bytes)?;
    may_stand(&header, base, next)?;
    may_follow(&header, next, end)?;
    record::check_stored(&header, bytes)?;
    Ok(header)
}

/// A whole batch that checks, wherever it may stand.
fn check_alone(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
    let header = BatchHeader::parse_stored(bytes)?;
    record::check_stored(&header, bytes)?;
    Ok(header)
}

/// Offsets rise, and stay within what the segment's indexes can name.
pub(crate) fn may_stand(header: &BatchHeader, base: Offset, next: Offset) -> Result<(), BatchError> {
    if header.base_offset() < next {
        return Err(BatchError::OffsetsGoBack {
            base_offset: header.base_offset().value(),
            end: next.value(),
        });
    }
    if header.next_offset().is_none() || !fits_segment(base, header.last_offset()) {
        return Err(BatchError::BadOffsets {
            base_offset: header.base_offset().value(),
            last_offset_delta: header.last_offset_delta(),
        });
    }
    Ok(())
}

/// No batch leaps over offsets to the end of its segment's, or past it: no checksum covers a base offset. One that goes on
/// without a gap is right, and the segment behind, which begins too early, is a stray one.
pub(crate) fn may_follow(header: &BatchHeader, next: Offset, end: Offset) -> Result<(), BatchError> {
    if header.base_offset() > next && header.last_offset() >= end && next <= end {
        return Err(BatchError::OffsetsLeap {
            base_offset: header.base_offset().value(),
            last_offset: header.last_offset().value(),
            end: end.value(),
        });
    }
    Ok(())
}

/// True where an index of the segment `base` can name `last` (its entries hold 31 bits).
pub(crate) fn fits_segment(base: Offset, last: Offset) -> bool {
    last >= base && last.since(base) <= u64::from(i32::MAX.unsigned_abs())
}

/// Says that a segment is of a message format that is not read here.
pub(crate) fn unsupported(file: &File, magic: i8) -> Error {
    let what = format!("message format {magic} ({})", record::message_format(magic));
    Error::UnsupportedVersion { path: file.path().to_owned(), what }
}

/// Damage at a place in a segment.
pub(crate) fn corruption(
    file: &File,
    position: u64,
    offset: Option<Offset>,
    reason: impl Into<String>,
) -> Corruption {
    Corruption { path: file.path().to_owned(), position, offset, reason: reason.into() }
}

const _: () = assert!(LOG_OVERHEAD_BYTES < PROBE_BYTES && PROBE_BYTES < HEADER_BYTES);
