//! The three ends of a log, as its readers see them without a lock.

use crate::sys::sync::{AtomicU64, Ordering};

/// `start <= durable <= written`, which whoever raises them asserts (not here: the model checker would take a load right
/// before a store for the last that the store can race with).
///
/// Why readers may load them without a lock: each only grows while the log is open; the writer raises `written` before
/// `durable` before `start`, and a reader that needs several loads them in the opposite order. An end is stored (release)
/// after what it promises is there: the segment's own end, and all below that.
#[derive(Debug)]
pub(crate) struct Ends {
    start: AtomicU64,
    durable: AtomicU64,
    written: AtomicU64,
}

impl Ends {
    pub(crate) fn new(start: u64, durable: u64, written: u64) -> Self {
        debug_assert!(start <= durable && durable <= written);
        Self {
            start: AtomicU64::new(start),
            durable: AtomicU64::new(durable),
            written: AtomicU64::new(written),
        }
    }

    pub(crate) fn start(&self) -> u64 {
        self.start.load(Ordering::Acquire)
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn raise_written(&self, end: u64) {
        self.written.store(end, Ordering::Release);
    }

    pub(crate) fn raise_durable(&self, end: u64) {
        self.durable.fetch_max(end, Ordering::Release);
    }

    pub(crate) fn raise_start(&self, start: u64) {
        self.start.fetch_max(start, Ordering::Release);
    }

    /// Replaces all three, for a reader that follows another process. True where one of them changed.
    pub(crate) fn follow(&self, start: u64, durable: u64, written: u64) -> bool {
        let (start, durable) = (start.min(written), durable.min(written));
        let ends = [(&self.written, written), (&self.durable, durable), (&self.start, start)];
        ends.map(|(end, value)| end.swap(value, Ordering::AcqRel) != value) != [false; 3]
    }
}
