//! Append buffers: page-aligned memory in which batches take the shape they have on the disk.
//!
//! A buffer's bytes lie at the same distance from a page boundary as they will in the file, so the kernel copies whole
//! pages onto whole pages. Buffers come from a bounded pool and go back to it with the append that used them.

use std::sync::Arc;

use crate::{
    config::LogConfig,
    sys::{self, File, PAGE_BYTES, PageBuf, PagePool},
};

/// How many buffers a pool keeps, for one log or for all logs of a store.
const KEPT_BUFFERS: usize = 2;

/// A pool of append buffers of the size that the settings say.
pub(super) fn append_pool(config: &LogConfig) -> Arc<PagePool> {
    let bytes = usize::try_from(config.append_buffer_bytes).unwrap_or(0);
    Arc::new(PagePool::new(KEPT_BUFFERS.saturating_mul(bytes)))
}

/// `flushed <= filled <= capacity`, asserted where they change.
#[derive(Debug)]
pub(super) struct AppendBuffer {
    pages: PageBuf,
    /// Where in the file the first byte of `pages` would lie: a page boundary.
    origin: u64,
    flushed: usize,
    filled: usize,
}

impl AppendBuffer {
    /// A buffer for what comes at `position`, with room for `bytes` there.
    pub(super) fn take(pool: &PagePool, position: u64, bytes: usize) -> sys::Result<Self> {
        let mut buffer = Self { pages: pool.take(bytes + PAGE_BYTES)?, origin: 0, flushed: 0, filled: 0 };
        buffer.begin(position);
        Ok(buffer)
    }

    /// Empties the buffer and puts it at `position`.
    pub(super) fn begin(&mut self, position: u64) {
        let into_page = usize::try_from(position % PAGE_BYTES as u64).unwrap_or(0);
        self.origin = position - into_page as u64;
        self.flushed = into_page;
        self.filled = into_page;
    }

    /// The room that is left.
    pub(super) fn spare(&mut self) -> &mut [u8] {
        let filled = self.filled;
        &mut self.pages.as_mut()[filled..]
    }

    /// Takes over `count` bytes that were put at the front of the room.
    pub(super) fn advance(&mut self, count: usize) {
        self.filled += count;
        debug_assert!(self.flushed <= self.filled && self.filled <= self.pages.capacity());
    }

    /// The bytes that are not in the file yet.
    pub(super) fn pending(&self) -> &[u8] {
        &self.pages.as_slice()[self.flushed..self.filled]
    }

    /// The same, to be stamped.
    pub(super) fn pending_mut(&mut self) -> &mut [u8] {
        &mut self.pages.as_mut()[self.flushed..self.filled]
    }

    /// How much memory it is.
    pub(super) fn capacity(&self) -> usize {
        self.pages.capacity()
    }

    /// Where in the file the next byte goes.
    pub(super) fn end(&self) -> u64 {
        self.origin + self.filled as u64
    }

    /// Hands what is pending to the kernel in one positioned write, and empties the buffer.
    pub(super) fn flush(&mut self, file: &File) -> sys::Result<()> {
        if self.filled > self.flushed {
            file.write_all_at(self.pending(), self.origin + self.flushed as u64)?;
            self.begin(self.end());
        }
        Ok(())
    }

    /// Gives the memory back.
    pub(super) fn give_back(self, pool: &PagePool) {
        pool.give(self.pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Dir, Open};

    #[test]
    fn bytes_lie_as_they_will_in_the_file() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open(temp.path()).unwrap();
        let file = dir.open_file("f", Open::CreateNew { mode: 0o600 }).unwrap();
        let pool = PagePool::new(1 << 20);
        file.write_all_at(&[1; 5000], 0).unwrap();
        let mut buffer = AppendBuffer::take(&pool, 5000, 9000).unwrap();
        buffer.spare()[..7].copy_from_slice(b"stratal");
        buffer.advance(7);
        assert_eq!(buffer.pending().as_ptr() as usize % PAGE_BYTES, 5000 % PAGE_BYTES);
        assert_eq!(buffer.pending(), b"stratal");
        buffer.flush(&file).unwrap();
        assert!(buffer.pending().is_empty());
        assert!(buffer.spare().len() >= 9000 - 7, "a flush makes room again");
        assert_eq!(buffer.end(), 5007);
        buffer.give_back(&pool);
        let mut back = vec![0; 5007];
        file.read_exact_at(&mut back, 0).unwrap();
        assert_eq!((&back[4999..], back[0]), (&b"\x01stratal"[..], 1));
        assert!(pool.retained_bytes() > 0);
    }
}
