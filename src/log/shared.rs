//! What the writer and its readers share: the ends, the set of segments, and who waits for more.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::{Mutex, RwLock};

use super::{
    checkpoint::Point,
    control::{ControlPage, ControlState},
    ends::Ends,
    epochs::Epochs,
    open_segments::OpenSegments,
    transactions::Views,
    waiters::Waiters,
};
use crate::{
    error::{Error, Result},
    offset::Offset,
    segment::Segment,
    sys::Dir,
};

/// The segments of a log at one moment, by rising base offset. Never empty for a log that is open.
pub(crate) type SegmentSet = Arc<Vec<Arc<Segment>>>;

/// One log, as all its handles in this process see it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dir: Arc<Dir>,
    ends: Ends,
    segments: Arc<RwLock<SegmentSet>>,
    pub(crate) epochs: RwLock<Epochs>,
    pub(super) transactions: Views,
    pub(crate) control: ControlPage,
    waiters: Waiters,
    open_segments: Arc<OpenSegments>,
    closed: AtomicBool,
    /// Why the log is poisoned, once it is.
    poison: Mutex<Option<String>>,
    is_poisoned: AtomicBool,
}

/// What a wait for more records came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// There are records at or past the position.
    Advanced,
    /// The deadline came first.
    TimedOut,
    /// The writer was closed or poisoned, and nothing more will come.
    Closed,
    /// Records that were read before were cut: go on at `end`, with the leader epoch that the position had. By that a
    /// second cut is noticed before anything is read.
    Truncated {
        /// The first offset whose record may differ from what was read.
        end: Offset,
    },
}

impl Shared {
    pub(crate) fn new(
        dir: Arc<Dir>,
        segments: Vec<Arc<Segment>>,
        (start, durable, written): (Offset, Offset, Offset),
        epochs: Epochs,
        control: ControlPage,
    ) -> Self {
        let open_segments = OpenSegments::of_one_log();
        let segments = Arc::new(RwLock::new(Arc::new(segments)));
        open_segments.join(&segments);
        Self {
            dir,
            ends: Ends::new(start.to_u64(), durable.to_u64(), written.to_u64()),
            segments,
            open_segments,
            epochs: RwLock::new(epochs),
            transactions: Views::default(),
            control,
            waiters: Waiters::default(),
            closed: AtomicBool::new(false),
            poison: Mutex::new(None),
            is_poisoned: AtomicBool::new(false),
        }
    }

    /// Shares its bound on open segments with other logs.
    pub(crate) fn bounded_by(mut self, open_segments: &Arc<OpenSegments>) -> Self {
        open_segments.join(&self.segments);
        self.open_segments = Arc::clone(open_segments);
        self
    }

    pub(crate) fn start(&self) -> Offset {
        offset(self.ends.start())
    }

    pub(crate) fn durable(&self) -> Offset {
        offset(self.ends.durable())
    }

    pub(crate) fn written(&self) -> Offset {
        offset(self.ends.written())
    }

    /// Records up to there are in the page cache and in their segment's published end. [`Shared::wake`] comes after.
    pub(super) fn store_written(&self, end: &Point) {
        debug_assert!(end.offset >= self.written());
        self.ends.raise_written(end.offset.to_u64());
        self.control.set_written(end);
    }

    /// Wakes whoever waits for something to change, here and in other processes.
    pub(crate) fn wake(&self) {
        self.waiters.wake();
        self.control.wake();
    }

    /// Records up to `end` survive a power cut. [`Shared::wake`] comes after.
    pub(super) fn store_durable(&self, end: Offset) {
        debug_assert!(end <= self.written());
        self.ends.raise_durable(end.to_u64());
        self.control.set_durable(self.durable());
    }

    pub(crate) fn publish_start(&self, start: Offset) {
        debug_assert!(start <= self.durable() && start >= self.start());
        self.ends.raise_start(start.to_u64());
        self.control.set_start(start);
        self.wake();
    }

    /// Replaces all three ends: only for a reader that follows another process.
    pub(crate) fn follow(&self, start: Offset, durable: Offset, written: Offset) {
        if self.ends.follow(start.to_u64(), durable.to_u64(), written.to_u64()) {
            self.wake();
        }
    }

    /// Moves the start on, as far as the other ends allow: only for a reader that follows another process.
    pub(crate) fn raise_start(&self, start: Offset) {
        self.ends.raise_start(start.min(self.durable()).to_u64());
    }

    pub(crate) fn segments(&self) -> SegmentSet {
        Arc::clone(&self.segments.read())
    }

    /// Publishes another set. Readers that hold the old one keep its files.
    pub(crate) fn publish_segments(&self, segments: Vec<Arc<Segment>>) {
        *self.segments.write() = Arc::new(segments);
        self.control.bump_set_generation();
        // Nobody here waits for this.
        self.control.wake();
    }

    /// Changes the leader epochs: their file first, so that memory never knows what a next open would not. Returns the
    /// latest.
    pub(crate) fn change_epochs(
        &self,
        file_mode: u32,
        change: impl FnOnce(&mut Epochs) -> bool,
    ) -> Result<Option<i32>> {
        let mut epochs = self.epochs.write();
        let mut changed = epochs.clone();
        if change(&mut changed) {
            changed.store(&self.dir, file_mode)?;
            *epochs = changed;
            self.control.bump_set_generation();
        }
        Ok(epochs.latest())
    }

    /// Uses a segment's files, and lets go of others' where too many are open, or where the process may open no more.
    pub(crate) fn with_segment<T>(
        &self,
        segment: &Segment,
        mut use_it: impl FnMut(&Segment) -> Result<T>,
    ) -> Result<T> {
        self.open_segments.touch(segment);
        let was_open = segment.is_open();
        let result = match use_it(segment) {
            Err(error) if error.is_out_of_descriptors() => {
                self.open_segments.close_idle(0);
                use_it(segment)
            }
            done => done,
        };
        if !was_open && segment.is_open() {
            self.note_opened();
        }
        result
    }

    /// One more segment has its files open.
    pub(crate) fn note_opened(&self) {
        self.open_segments.note_opened();
    }

    pub(crate) fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// `Closed` or `Poisoned`, if the log is either.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.is_poisoned.load(Ordering::Acquire) {
            let reason = self.poison.lock().clone().unwrap_or_default();
            return Err(Error::Poisoned { durable_end: self.durable(), reason });
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        Ok(())
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Acquire)
    }

    /// A sync failed: nothing written since the durable end is to be trusted any more.
    pub(crate) fn poison(&self, reason: &str) {
        let mut why = self.poison.lock();
        if why.is_none() {
            tracing::error!(dir = %self.dir.path().display(), durable_end = %self.durable(), reason, "log poisoned");
            *why = Some(reason.to_owned());
        }
        self.is_poisoned.store(true, Ordering::Release);
        self.control.set_state(ControlState::Poisoned);
        drop(why);
        self.wake();
    }

    /// Nothing more comes. [`Shared::wake`] comes after.
    pub(super) fn close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) && !self.is_poisoned() {
            self.control.set_state(ControlState::Closed);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.is_poisoned()
    }
}

fn offset(end: u64) -> Offset {
    Offset::from_u64(end).unwrap_or(Offset::MAX)
}
