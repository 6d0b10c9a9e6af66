//! A segment's end as its readers see it without a lock.

use crate::sys::sync::{AtomicU64, Ordering};

/// The end in one word, so that a reader never sees a half of it. Stored (release) after the bytes and index entries
/// below it are there, and before the log's own end.
#[derive(Debug)]
pub(crate) struct Published(AtomicU64);

impl Published {
    pub(crate) fn new(word: u64) -> Self {
        Self(AtomicU64::new(word))
    }

    pub(crate) fn store(&self, word: u64) {
        self.0.store(word, Ordering::Release);
    }

    pub(crate) fn load(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
