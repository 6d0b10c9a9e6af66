//! Bytes of one file, read in blocks: positioned reads only, nothing mapped, nothing written.

use std::{io, path::Path};

use crate::{
    error::{Error, Result},
    sys::{Access, Dir, File, Open},
};

/// How much is read at once: large enough that the system call costs little beside the copy, small enough that the checksum
/// finds the bytes in the cache of its processor.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// The same for index files, which are small.
pub(super) const INDEX_BLOCK_BYTES: usize = 64 << 10;

/// A file opened read-only, with the length it had then.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    len_bytes: u64,
}

impl Source {
    /// Opens a regular file, and only that: no link, no FIFO.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.file_name().ok_or_else(|| Error::Io {
            op: "open",
            path: path.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"),
        })?;
        let dir = Dir::open(path.parent().unwrap_or(Path::new("")))?;
        let file = dir.open_file(name, Open::Read)?;
        let len_bytes = file.len()?;
        file.advise(Access::Sequential);
        Ok(Self { file, len_bytes })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(super) const fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Fills `into` from `position` on as far as the file goes; how many bytes that were.
    pub(super) fn read_at(&self, position: u64, into: &mut [u8]) -> Result<usize> {
        Ok(self.file.read_at(into, position)?)
    }
}

/// The part of a file that is in memory: one block, or one batch where that is larger.
#[derive(Debug)]
pub(super) struct Window<'f> {
    source: &'f Source,
    block_bytes: usize,
    buffer: Vec<u8>,
    /// The position of the first byte of the buffer.
    at: u64,
    /// How many bytes of the buffer are the file's.
    filled: usize,
}

impl<'f> Window<'f> {
    /// `block_bytes` are read at once, or the whole file where that is less.
    pub(super) fn new(source: &'f Source, block_bytes: usize) -> Self {
        Self::within(source, block_bytes, Vec::new())
    }

    /// The same in memory that another window has used.
    pub(super) fn within(source: &'f Source, block_bytes: usize, buffer: Vec<u8>) -> Self {
        let block_bytes = usize::try_from(source.len_bytes).unwrap_or(block_bytes).min(block_bytes);
        Self { source, block_bytes, buffer, at: 0, filled: 0 }
    }

    /// The memory, for the next window.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// True where these bytes are in memory.
    pub(super) fn holds(&self, position: u64, count: u64) -> bool {
        position >= self.at && position.saturating_add(count) <= self.at.saturating_add(self.filled as u64)
    }

    #[cfg(test)]
    pub(super) const fn len_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Exactly the bytes `position..position + count`. The caller has checked the range against the file's length and has reason to
    /// believe `count`, since that much memory is used. An error where the file has become shorter.
    pub(super) fn bytes(&mut self, position: u64, count: u64) -> Result<&[u8]> {
        let count = usize::try_from(count).map_err(|_| self.shrunk())?;
        let start = self.load(position, count)?;
        match self.buffer.get(start..start + count).filter(|_| start + count <= self.filled) {
            Some(bytes) => Ok(bytes),
            None => Err(self.shrunk()),
        }
    }

    /// Some bytes from `position` on, at most `limit`: what is in memory or the next block. At least 61 where the file has them.
    pub(super) fn block(&mut self, position: u64, limit: u64) -> Result<&[u8]> {
        let wanted = limit.min(64);
        let start = self.load(position, usize::try_from(wanted).unwrap_or(0))?;
        let end = usize::try_from(limit).ok().and_then(|limit| start.checked_add(limit));
        let end = end.map_or(self.filled, |end| end.min(self.filled));
        Ok(self.buffer.get(start..end).unwrap_or_default())
    }

    /// The first position in `from..end` with a byte that is not zero.
    pub(super) fn first_non_zero(&mut self, from: u64, end: u64) -> Result<Option<u64>> {
        let mut at = from;
        while at < end {
            let block = self.block(at, end - at)?;
            if block.is_empty() {
                return Err(self.shrunk());
            }
            // By whole words first: a preallocated segment ends in a gigabyte of zeros.
            let (words, _) = block.as_chunks::<64>();
            let zeros =
                64 * words.iter().take_while(|word| word.iter().fold(0, |all, &b| all | b) == 0).count();
            if let Some(found) = block.iter().skip(zeros).position(|&b| b != 0) {
                return Ok(Some(at + (zeros + found) as u64));
            }
            at += block.len() as u64;
        }
        Ok(None)
    }

    /// The last position below `end` with a byte that is not zero.
    pub(super) fn last_non_zero(&mut self, end: u64) -> Result<Option<u64>> {
        let mut end = end;
        while end > 0 {
            let from = end.saturating_sub(self.block_bytes as u64);
            let block = self.bytes(from, end - from)?;
            if let Some(found) = block.iter().rposition(|&b| b != 0) {
                return Ok(Some(from + found as u64));
            }
            end = from;
        }
        Ok(None)
    }

    /// Sees that `count` bytes from `position` are in the buffer, as far as the file has them; where they begin in it.
    fn load(&mut self, position: u64, count: usize) -> Result<usize> {
        let start = position
            .checked_sub(self.at)
            .and_then(|start| usize::try_from(start).ok())
            .filter(|&start| start <= self.filled);
        if let Some(start) = start
            && self.filled - start >= count
        {
            return Ok(start);
        }
        let kept = match start {
            Some(start) => {
                self.buffer.copy_within(start..self.filled, 0);
                self.filled - start
            }
            None => 0,
        };
        self.at = position;
        self.filled = kept;
        let room = count.max(self.block_bytes);
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let rest = self.buffer.get_mut(kept..room).unwrap_or_default();
        self.filled += self.source.read_at(position + kept as u64, rest)?;
        Ok(0)
    }

    fn shrunk(&self) -> Error {
        let source =
            io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter while it was read");
        Error::Io { op: "read", path: self.source.path().to_owned(), source }
    }
}
