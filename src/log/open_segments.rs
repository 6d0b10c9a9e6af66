//! How many sealed segments may have their files open, over one log or over all logs of a store.
//!
//! An open segment has a descriptor and two maps. The log that opens one too many lets go of those used longest ago,
//! whosever they are.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::{Mutex, RwLock};

use super::shared::SegmentSet;
use crate::segment::Segment;

/// The bound for a log by itself.
const OF_ONE_LOG: u64 = 128;

/// A bound on open sealed segments and the logs that share it.
#[derive(Debug)]
pub(crate) struct OpenSegments {
    most: u64,
    /// Counts uses of segments: the later, the higher.
    uses: AtomicU64,
    /// How many were opened, those included that were let go of since they were last counted.
    open_count: AtomicU64,
    logs: Mutex<Vec<Weak<RwLock<SegmentSet>>>>,
}

impl OpenSegments {
    /// The bound of a log that shares it with no other.
    pub(crate) fn of_one_log() -> Arc<Self> {
        Self::at_most(OF_ONE_LOG)
    }

    /// At most so many, over all logs that join.
    pub(crate) fn at_most(most: u64) -> Arc<Self> {
        Arc::new(Self {
            most,
            uses: AtomicU64::new(1),
            open_count: AtomicU64::new(0),
            logs: Mutex::default(),
        })
    }

    /// A log's segments come under the bound, for as long as the log is there.
    pub(crate) fn join(&self, segments: &Arc<RwLock<SegmentSet>>) {
        let mut logs = self.logs.lock();
        if logs.len() == logs.capacity() {
            logs.retain(|log| log.strong_count() > 0);
        }
        logs.push(Arc::downgrade(segments));
    }

    /// The segment was used.
    pub(crate) fn touch(&self, segment: &Segment) {
        segment.touch(self.uses.fetch_add(1, Ordering::Relaxed));
    }

    /// One more segment has its files open.
    pub(crate) fn note_opened(&self) {
        if self.open_count.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.close_idle(self.most / 2);
        }
    }

    /// Lets go of the files of all sealed segments but so many, those used last.
    pub(crate) fn close_idle(&self, most: u64) {
        let logs = self.logs.lock().clone();
        let mut open = Vec::new();
        for log in logs.iter().filter_map(Weak::upgrade) {
            let segments = Arc::clone(&log.read());
            open.extend(segments.iter().filter(|segment| segment.is_open() && segment.is_sealed()).cloned());
        }
        open.sort_unstable_by_key(|segment| segment.used());
        let surplus = open.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        for segment in &open[..surplus] {
            segment.close_files();
        }
        self.open_count.store((open.len() - surplus) as u64, Ordering::Relaxed);
    }
}
