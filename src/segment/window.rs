//! One reused buffer over a `.log` file: what was read once is not read again while it is looked at from front to back.

use crate::sys::{self, File};

/// Bytes of a file, from `start` on.
#[derive(Debug)]
pub(crate) struct Window {
    buf: Vec<u8>,
    start: u64,
    filled: usize,
    block_bytes: usize,
    /// The most that is read at once, whatever block is asked for.
    largest_bytes: usize,
}

impl Window {
    /// A window that reads `block_bytes` at a time. It takes no memory before the first read.
    pub(crate) fn new(block_bytes: usize) -> Self {
        Self { buf: Vec::new(), start: 0, filled: 0, block_bytes, largest_bytes: usize::MAX }
    }

    /// Forgets what was read: another file, or the same after it changed.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Changes how much is read at a time from now on.
    pub(crate) fn set_block(&mut self, block_bytes: usize) {
        self.block_bytes = block_bytes.min(self.largest_bytes);
    }

    /// Bounds the blocks from now on: who looks at headers alone has no use for what follows them.
    pub(crate) fn set_largest(&mut self, largest_bytes: usize) {
        self.largest_bytes = largest_bytes;
    }

    /// The bytes from `position` on: at least `want` of them, or all there are before `end` or the end of the file.
    ///
    /// The buffer grows to `want`, so `want` must have been checked against what the file can hold.
    pub(crate) fn bytes(&mut self, file: &File, position: u64, want: usize, end: u64) -> sys::Result<&[u8]> {
        let room = usize::try_from(end.saturating_sub(position)).unwrap_or(usize::MAX);
        let want = want.min(room);
        if self.held_from(position) < want {
            self.fill(file, position, want, room)?;
        }
        let held = self.held_from(position).min(room);
        let at = self.index_of(position).unwrap_or(0);
        Ok(&self.buf[at..at + held])
    }

    /// The bytes from `position` on that are in memory already.
    pub(crate) fn held(&self, position: u64) -> &[u8] {
        match self.index_of(position) {
            Some(at) => &self.buf[at..self.filled],
            None => &[],
        }
    }

    fn index_of(&self, position: u64) -> Option<usize> {
        let at = usize::try_from(position.checked_sub(self.start)?).ok()?;
        (at < self.filled).then_some(at)
    }

    fn held_from(&self, position: u64) -> usize {
        self.index_of(position).map_or(0, |at| self.filled - at)
    }

    fn fill(&mut self, file: &File, position: u64, want: usize, room: usize) -> sys::Result<()> {
        let kept = match self.index_of(position) {
            Some(at) => {
                self.buf.copy_within(at..self.filled, 0);
                self.filled - at
            }
            None => 0,
        };
        self.start = position;
        self.filled = kept;
        let target = self.block_bytes.max(want).min(room);
        if self.buf.len() < target {
            self.buf.resize(target, 0);
        }
        if kept < target {
            self.filled += file.read_at(&mut self.buf[kept..target], position + kept as u64)?;
        }
        Ok(())
    }
}
