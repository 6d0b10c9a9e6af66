//! `.index` and `.timeindex` files read from outside, entry by entry, as the bytes have them: nothing is believed.

use std::path::Path;

use super::{
    log_file::base_offset_of,
    source::{INDEX_BLOCK_BYTES, Source, Window},
};
use crate::{
    error::Result,
    offset::{Offset, Timestamp},
};

/// One entry of an `.index` file: the batch that ends with `offset` begins at `log_position`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffsetIndexEntry {
    /// Where the entry stands in the index file.
    pub position: u64,
    /// The offset less the segment's base offset, as stored; never negative in a sound index.
    pub relative_offset: i32,
    /// The position in the `.log` file, as stored; never negative in a sound index.
    pub log_position: i32,
}

/// One entry of a `.timeindex` file: up to the batch that ends with the offset, no record is later than `timestamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeIndexEntry {
    /// Where the entry stands in the index file.
    pub position: u64,
    /// The timestamp.
    pub timestamp: Timestamp,
    /// The offset less the segment's base offset, as stored; never negative in a sound index.
    pub relative_offset: i32,
}

/// The entries of a kind of index file have one size and one meaning.
pub trait IndexEntry: Sized {
    /// The size of an entry in the file.
    const BYTES: u64;

    /// An entry from its bytes; `None` where they are too few.
    fn decode(position: u64, bytes: &[u8]) -> Option<Self>;

    /// Where the entry stands in the index file.
    fn position(&self) -> u64;

    /// The stored offset, relative to the segment's base offset.
    fn relative_offset(&self) -> i32;
}

impl IndexEntry for OffsetIndexEntry {
    const BYTES: u64 = 8;

    fn decode(position: u64, bytes: &[u8]) -> Option<Self> {
        let (relative_offset, rest) = bytes.split_first_chunk()?;
        let log_position = rest.first_chunk()?;
        Some(Self {
            position,
            relative_offset: i32::from_be_bytes(*relative_offset),
            log_position: i32::from_be_bytes(*log_position),
        })
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn relative_offset(&self) -> i32 {
        self.relative_offset
    }
}

impl IndexEntry for TimeIndexEntry {
    const BYTES: u64 = 12;

    fn decode(position: u64, bytes: &[u8]) -> Option<Self> {
        let (timestamp, rest) = bytes.split_first_chunk()?;
        let relative_offset = rest.first_chunk()?;
        Some(Self {
            position,
            timestamp: Timestamp::from_millis(i64::from_be_bytes(*timestamp)),
            relative_offset: i32::from_be_bytes(*relative_offset),
        })
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn relative_offset(&self) -> i32 {
        self.relative_offset
    }
}

/// An index file for reading.
#[derive(Debug)]
pub struct IndexFile {
    source: Source,
    base_offset: Option<Offset>,
}

impl IndexFile {
    /// Opens the file read-only; only regular files are opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { source: Source::open(path.as_ref())?, base_offset: base_offset_of(path.as_ref()) })
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

    /// All entries in the order of the file, reserved room included.
    pub fn entries<E: IndexEntry>(&self) -> Entries<'_, E> {
        self.entries_from(0)
    }

    /// The entries from the one that stands at `position`, or across it, on.
    pub fn entries_from<E: IndexEntry>(&self, position: u64) -> Entries<'_, E> {
        let (at, end) = (position / E::BYTES * E::BYTES, self.len_bytes() / E::BYTES * E::BYTES);
        Entries {
            window: Window::new(&self.source, INDEX_BLOCK_BYTES),
            at,
            end,
            entry: std::marker::PhantomData,
        }
    }

    /// How many bytes at the end are no whole entry, unless they are zeros: those are room like any other.
    pub fn odd_bytes<E: IndexEntry>(&self) -> Result<u64> {
        let whole = self.len_bytes() / E::BYTES * E::BYTES;
        let odd = self.len_bytes() - whole;
        let mut window = Window::new(&self.source, INDEX_BLOCK_BYTES);
        Ok(if window.bytes(whole, odd)?.iter().all(|&b| b == 0) { 0 } else { odd })
    }

    /// How many bytes of the file are entries: without the zeros at its end, and without what is left of a whole entry.
    ///
    /// 0 for a file of zeros only, though its first entry can be meant (the first batch, ending with the base offset).
    pub fn used_bytes<E: IndexEntry>(&self) -> Result<u64> {
        let whole = self.len_bytes() / E::BYTES * E::BYTES;
        let used =
            Window::new(&self.source, INDEX_BLOCK_BYTES).last_non_zero(whole)?.map_or(0, |last| last + 1);
        Ok(used.div_ceil(E::BYTES) * E::BYTES)
    }
}

/// The entries of an index file, read in blocks.
#[derive(Debug)]
pub struct Entries<'f, E> {
    window: Window<'f>,
    at: u64,
    end: u64,
    entry: std::marker::PhantomData<E>,
}

impl<E: IndexEntry> Iterator for Entries<'_, E> {
    type Item = Result<E>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let position = self.at;
        let entry = match self.window.bytes(position, E::BYTES) {
            Ok(bytes) => E::decode(position, bytes).map(Ok),
            Err(error) => Some(Err(error)),
        };
        // After an error the walk is over: the file is not what it was.
        self.at = if matches!(entry, Some(Ok(_))) { position + E::BYTES } else { self.end };
        entry
    }
}
