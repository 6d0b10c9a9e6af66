//! Words in memory that files share: the only `unsafe` of the crate.
//!
//! What is handed out are atomics, never `&[u8]` and never `&mut`: another process, or another thread through another
//! map, may store into the same page at any time, and only atomics may be looked at then.
//!
//! A touch beyond the end of a mapped file is a signal, not an error. Three things keep it from happening:
//! 1. a map knows how much of it is *reserved*, that is: lies within the file, with blocks behind it; nothing past that is
//!    ever touched, by any method here;
//! 2. [`MappedWords::extend_reserved`] asks the file for its length before it believes the caller;
//! 3. no one who respects the lock shortens a mapped file below what is published. Who truncates files under a running
//!    program from outside is told in the documentation that this ends the program.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use memmap2::{MmapMut, MmapOptions, MmapRaw};

use super::{Error, File, Result, recorder::Tap};

/// A map of a file (or of nothing, then of memory only), seen as words.
#[derive(Debug)]
pub(crate) struct MappedWords {
    /// `None` for zero bytes, which the kernel does not map.
    map: Option<MmapRaw>,
    reserved: AtomicUsize,
    is_writable: bool,
    tap: Tap,
}

impl MappedWords {
    /// Maps the first `len_bytes` of `file`, of which the first `reserved_bytes` may be touched for now.
    ///
    /// The map may be longer than the file, so that a growing file needs one map only. `reserved_bytes` must lie within
    /// the file, and for a writable map have blocks behind it.
    pub(crate) fn map(
        file: &File,
        len_bytes: usize,
        reserved_bytes: usize,
        is_writable: bool,
    ) -> Result<Self> {
        let mut options = MmapOptions::new();
        options.len(len_bytes);
        let map = match (len_bytes, is_writable) {
            (0, _) => None,
            (_, true) => Some(options.map_raw(file)),
            (_, false) => Some(options.map_raw_read_only(file)),
        };
        let map = map.transpose().map_err(|source| file.error("map", source))?;
        let words = Self { map, reserved: AtomicUsize::new(0), is_writable, tap: file.tap().clone() };
        words.extend_reserved(file, reserved_bytes)?;
        Ok(words)
    }

    /// Memory of this process alone, zero, all of it reserved: stands in where a file cannot be mapped.
    pub(crate) fn anonymous(len_bytes: usize) -> Result<Self> {
        let map = if len_bytes == 0 {
            None
        } else {
            let map =
                MmapMut::map_anon(len_bytes).map_err(|source| Error::new("allocate", "(words)", source))?;
            Some(MmapRaw::from(map))
        };
        Ok(Self { map, reserved: AtomicUsize::new(len_bytes), is_writable: true, tap: Tap::none() })
    }

    /// Allows touching the first `bytes` from now on: they lie within the file and, if this map is written, have blocks.
    ///
    /// # Errors
    /// `UnexpectedEof` where the file or the map is shorter than that.
    pub(crate) fn extend_reserved(&self, file: &File, bytes: usize) -> Result<()> {
        if bytes as u64 > file.len()? || bytes > self.len_bytes() {
            return Err(file.error("map", std::io::Error::from(std::io::ErrorKind::UnexpectedEof)));
        }
        self.reserved.fetch_max(bytes, Ordering::Release);
        Ok(())
    }

    /// Takes the end of the reserved part back to `bytes`, before the file is cut there.
    ///
    /// The caller knows that nobody looks past `bytes` any more: readers stop at a published count that lies below.
    pub(crate) fn shrink_reserved(&self, bytes: usize) {
        self.reserved.fetch_min(bytes, Ordering::Release);
    }

    /// The size of the map.
    pub(crate) fn len_bytes(&self) -> usize {
        self.map.as_ref().map_or(0, MmapRaw::len)
    }

    /// How much of it may be touched.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserved.load(Ordering::Acquire)
    }

    /// The reserved part as 4-byte words. Empty for a read-only map: its memory faults on a store, and atomics can be
    /// stored to; use [`MappedWords::load32`].
    pub(crate) fn words32(&self) -> &[AtomicU32] {
        if self.is_writable { self.cells32() } else { &[] }
    }

    /// The reserved part as 8-byte words; empty for a read-only map, as [`MappedWords::words32`].
    pub(crate) fn words64(&self) -> &[AtomicU64] {
        if self.is_writable { self.cells64() } else { &[] }
    }

    /// A word; `None` past the reserved part.
    ///
    /// Relaxed, the only order that read-only memory allows: who needs more adds a fence, or takes its count of
    /// published words with acquire first.
    pub(crate) fn load32(&self, index: usize) -> Option<u32> {
        Some(self.cells32().get(index)?.load(Ordering::Relaxed))
    }

    /// An 8-byte word, as [`MappedWords::load32`].
    pub(crate) fn load64(&self, index: usize) -> Option<u64> {
        Some(self.cells64().get(index)?.load(Ordering::Relaxed))
    }

    /// Stores a word (relaxed: publish it by a later store with release). False past the reserved part, or where the
    /// map is read-only; nothing is stored then.
    #[must_use]
    #[expect(clippy::host_endian_bytes, reason = "what is noted is memory as it is")]
    pub(crate) fn store32(&self, index: usize, value: u32) -> bool {
        let Some(cell) = self.words32().get(index) else { return false };
        cell.store(value, Ordering::Relaxed);
        self.tap.note_store(index * 4, || value.to_ne_bytes().to_vec());
        true
    }

    /// Stores an 8-byte word, as [`MappedWords::store32`], with the order given.
    #[must_use]
    #[expect(clippy::host_endian_bytes, reason = "what is noted is memory as it is")]
    pub(crate) fn store64(&self, index: usize, value: u64, order: Ordering) -> bool {
        let Some(cell) = self.words64().get(index) else { return false };
        cell.store(value, order);
        self.tap.note_store(index * 8, || value.to_ne_bytes().to_vec());
        true
    }

    #[expect(
        unsafe_code,
        clippy::cast_ptr_alignment,
        reason = "a raw map has no other way to its memory; the contract stands at the block"
    )]
    fn cells32(&self) -> &[AtomicU32] {
        let Some(map) = &self.map else { return &[] };
        // SAFETY: the pointer is page-aligned and valid for the length of the map as long as `self.map` lives, which
        // the returned borrow ensures. Only the reserved part is covered: it lies within the map and was within the
        // file when reserved (`extend_reserved`), and lock holders never shorten a file below what is in use, so no
        // access faults. The memory is only ever accessed through atomics, so that changes by others are no data race.
        // A read-only map is only loaded from, relaxed (`words32` gives it out for writable maps alone).
        unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<AtomicU32>(), self.reserved_bytes() / 4) }
    }

    #[expect(
        unsafe_code,
        clippy::cast_ptr_alignment,
        reason = "a raw map has no other way to its memory; the contract stands at the block"
    )]
    fn cells64(&self) -> &[AtomicU64] {
        let Some(map) = &self.map else { return &[] };
        // SAFETY: as in `cells32`; a page boundary is aligned for 8 bytes too. One map is used in words of one size.
        unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<AtomicU64>(), self.reserved_bytes() / 8) }
    }
}
