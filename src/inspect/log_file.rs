//! One `.log` file, read from outside: opened read-only, walked batch by batch, damage included.

use std::path::Path;

use super::{
    pieces::{Piece, Pieces},
    source::Source,
};
use crate::{
    error::Result,
    offset::Offset,
    record::{BatchError, BatchHeader, HEADER_BYTES},
};

/// A `.log` file (or any file of record batches) for reading.
#[derive(Debug)]
pub struct LogFile {
    source: Source,
    base_offset: Option<Offset>,
}

impl LogFile {
    /// Opens the file read-only. Only regular files are opened: anything else is an [`Error::Io`](crate::Error::Io).
    ///
    /// The name's leading digits, where it has them, are the segment's base offset.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let source = Source::open(path.as_ref())?;
        Ok(Self { base_offset: base_offset_of(path.as_ref()), source })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The file's length when it was opened.
    pub const fn len_bytes(&self) -> u64 {
        self.source.len_bytes()
    }

    /// The base offset that the file's name gives.
    pub const fn base_offset(&self) -> Option<Offset> {
        self.base_offset
    }

    /// Everything in the file, in the order of its bytes.
    pub fn pieces(&self) -> Pieces<'_> {
        self.pieces_from(0, self.len_bytes())
    }

    /// Everything from the batch that begins at `position` up to `end` (at most the file's length).
    pub fn pieces_from(&self, position: u64, end: u64) -> Pieces<'_> {
        self.pieces_within(position, end, Vec::new())
    }

    /// The same in memory that another walk has used: [`Pieces::into_buffer`].
    pub(super) fn pieces_within(&self, position: u64, end: u64, buffer: Vec<u8>) -> Pieces<'_> {
        Pieces::new(&self.source, self.base_offset, position, end.min(self.len_bytes()), buffer)
    }

    /// The first offset of the first batch or message whose CRC is right, looked for in the first `within_bytes` of the file;
    /// `None` where there is none, as in a file that holds something else.
    pub fn first_offset(&self, within_bytes: u64) -> Result<Option<Offset>> {
        let mut pieces = self.pieces_from(0, within_bytes);
        while let Some(piece) = pieces.next_piece()? {
            match piece {
                Piece::Batch(entry) if entry.crc_ok() => return Ok(Some(entry.header.base_offset())),
                Piece::Old(entry) if entry.crc_ok() => return Ok(Some(entry.message.offset())),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The header of the batch that begins at `position`; the inner error says why none does.
    ///
    /// The header's fields are checked for sense, and that the batch ends within the file; its CRC is not.
    ///
    /// Of a message of format 0 or 1 the header says what the message itself does: its offset (the last, where it wraps
    /// others) as first and last, no epoch and no producer.
    pub fn header_at(&self, position: u64) -> Result<Result<BatchHeader, BatchError>> {
        let mut head = [0; HEADER_BYTES];
        // Positions come from indexes, so from anywhere.
        let count = if position < self.len_bytes() { self.source.read_at(position, &mut head)? } else { 0 };
        let head = head.get(..count).unwrap_or_default();
        Ok(BatchHeader::parse_stored(head).and_then(|header| {
            let available_bytes = self.len_bytes().saturating_sub(position);
            let needed_bytes = u64::from(header.size_bytes());
            if needed_bytes <= available_bytes {
                Ok(header)
            } else {
                Err(BatchError::TooShort { needed_bytes, available_bytes })
            }
        }))
    }
}

/// The number that a segment file's name begins with, up to its first dot.
pub fn base_offset_of(path: &Path) -> Option<Offset> {
    let digits = path.file_name()?.to_str()?.split('.').next()?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().and_then(Offset::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_offset_stands_in_the_name() {
        let base = |name: &str| base_offset_of(Path::new(name)).map(Offset::value);
        assert_eq!(base("a/00000000000000000042.log"), Some(42));
        assert_eq!(base("00000000000000000042.log.deleted"), Some(42));
        assert_eq!(base("notes.log"), None);
        assert_eq!(base("+5.log"), None);
        assert_eq!(base(".log"), None);
        assert_eq!(base("99999999999999999999.log"), None);
    }
}
