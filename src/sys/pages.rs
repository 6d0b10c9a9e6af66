//! Page-aligned memory, and a pool of it that is bounded in bytes.

use memmap2::{MmapMut, MmapOptions};
use parking_lot::Mutex;

use super::{Error, Result};

/// The page size buffers are aligned to and direct reads are made of. Linux has no smaller page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Anonymous memory that begins on a page boundary and is a whole number of pages long.
///
/// Zero when first handed out by the kernel; a buffer from a pool holds whatever its last user left.
#[derive(Debug)]
pub(crate) struct PageBuf {
    map: MmapMut,
}

impl PageBuf {
    /// At least `capacity_bytes` (and at least one page) of zeros, of which the kernel gives memory when touched.
    pub(crate) fn new(capacity_bytes: usize) -> Result<Self> {
        let len = capacity_bytes.max(1).checked_next_multiple_of(PAGE_BYTES).unwrap_or(usize::MAX);
        let map = MmapOptions::new()
            .len(len)
            .map_anon()
            .map_err(|source| Error::new("allocate", "(page buffer)", source))?;
        Ok(Self { map })
    }

    /// The size in bytes, a multiple of [`PAGE_BYTES`].
    pub(crate) fn capacity(&self) -> usize {
        self.map.len()
    }

    /// All of it.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.map
    }

    /// All of it, to write.
    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }
}

/// Buffers that came back, kept for the next user, never more than `keep_bytes` of them.
#[derive(Debug)]
pub(crate) struct PagePool {
    keep_bytes: usize,
    free: Mutex<Vec<PageBuf>>,
}

impl PagePool {
    /// An empty pool.
    pub(crate) const fn new(keep_bytes: usize) -> Self {
        Self { keep_bytes, free: Mutex::new(Vec::new()) }
    }

    /// The smallest kept buffer that is large enough, or a new one.
    pub(crate) fn take(&self, capacity_bytes: usize) -> Result<PageBuf> {
        let kept = {
            let mut free = self.free.lock();
            let best = free
                .iter()
                .enumerate()
                .filter(|(_, buf)| buf.capacity() >= capacity_bytes)
                .min_by_key(|(_, buf)| buf.capacity())
                .map(|(at, _)| at);
            best.map(|at| free.swap_remove(at))
        };
        kept.map_or_else(|| PageBuf::new(capacity_bytes), Ok)
    }

    /// Hands a buffer back; it is freed where keeping it would exceed the bound.
    pub(crate) fn give(&self, buf: PageBuf) {
        let mut free = self.free.lock();
        let held: usize = free.iter().map(PageBuf::capacity).sum();
        if held.saturating_add(buf.capacity()) <= self.keep_bytes {
            free.push(buf);
        }
    }

    /// Frees every kept buffer.
    pub(crate) fn trim(&self) {
        drop(std::mem::take(&mut *self.free.lock()));
    }

    /// How many bytes are kept for later use.
    #[cfg(test)]
    pub(crate) fn retained_bytes(&self) -> usize {
        self.free.lock().iter().map(PageBuf::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_whole_pages_on_a_page_boundary() {
        for (asked, got) in [(0, 4096), (1, 4096), (4096, 4096), (4097, 8192)] {
            let mut buf = PageBuf::new(asked).unwrap();
            assert_eq!(buf.capacity(), got);
            assert_eq!(buf.as_slice().as_ptr() as usize % PAGE_BYTES, 0);
            assert!(buf.as_slice().iter().all(|byte| *byte == 0));
            buf.as_mut()[got - 1] = 7;
            assert_eq!(buf.as_slice()[got - 1], 7);
        }
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(PageBuf::new(usize::MAX).is_err());
    }

    #[test]
    fn a_pool_keeps_no_more_than_its_bound() {
        let pool = PagePool::new(3 * 4096);
        let (small, large) = (pool.take(4096).unwrap(), pool.take(8192).unwrap());
        let extra = pool.take(4096).unwrap();
        assert_eq!(pool.retained_bytes(), 0);
        pool.give(small);
        pool.give(large);
        pool.give(extra);
        assert_eq!(pool.retained_bytes(), 3 * 4096);
        assert_eq!(pool.take(100).unwrap().capacity(), 4096, "the smallest that fits");
        assert_eq!(pool.take(4097).unwrap().capacity(), 8192);
        assert_eq!(pool.retained_bytes(), 0);
        pool.give(PageBuf::new(4096).unwrap());
        pool.trim();
        assert_eq!(pool.retained_bytes(), 0);
        let none = PagePool::new(0);
        none.give(PageBuf::new(1).unwrap());
        assert_eq!(none.retained_bytes(), 0);
    }
}
