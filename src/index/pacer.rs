//! When an index entry is due: one rule for appending and for rebuilding, so that both give the same files.

use super::TimeEntry;
use crate::offset::{Offset, Timestamp};

/// What the indexes need to know of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchAt {
    pub(crate) last_offset: Offset,
    pub(crate) max_timestamp: Timestamp,
    /// Where it begins in the log.
    pub(crate) position: u32,
    pub(crate) size_bytes: u32,
}

/// Entries to add now: the batch's own, and the largest timestamp up to it (none while no record had one).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) last_offset: Offset,
    pub(crate) position: u32,
    pub(crate) time: Option<TimeEntry>,
}

/// Kafka's rule (`LogSegment.append`): for each batch, first take its timestamp into the running maximum; then, if *more*
/// than the interval of bytes went by since the last entry, index it; then count its bytes.
///
/// So the first batch of a segment is never indexed, and with interval 0 every other one is. Copy it before an append that
/// may fail, and put the copy back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexPacer {
    interval_bytes: u32,
    bytes_since_entry: u64,
    largest: Option<TimeEntry>,
}

impl IndexPacer {
    /// For an empty segment.
    pub(crate) fn new(interval_bytes: u32) -> Self {
        Self { interval_bytes, bytes_since_entry: 0, largest: None }
    }

    /// For a segment that is gone on with: Kafka takes the running maximum from the last time entry and counts from 0.
    pub(crate) fn resume(interval_bytes: u32, last: Option<TimeEntry>) -> Self {
        Self {
            interval_bytes,
            bytes_since_entry: 0,
            largest: last.filter(|last| last.timestamp > Timestamp::NONE),
        }
    }

    /// The same rule after a cut that left `last` as the last time entry.
    #[must_use]
    pub(super) fn restart_from(&self, last: Option<TimeEntry>) -> Self {
        Self::resume(self.interval_bytes, last)
    }

    /// Takes the next batch of the segment into account.
    pub(crate) fn observe(&mut self, batch: &BatchAt) -> Option<Due> {
        // Only a larger one counts, so the earliest batch of those with the maximum is named. No timestamp is -1.
        if batch.max_timestamp > self.largest.map_or(Timestamp::NONE, |largest| largest.timestamp) {
            self.largest = Some(TimeEntry { timestamp: batch.max_timestamp, offset: batch.last_offset });
        }
        let due = (self.bytes_since_entry > u64::from(self.interval_bytes)).then_some(Due {
            last_offset: batch.last_offset,
            position: batch.position,
            time: self.largest,
        });
        if due.is_some() {
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry = self.bytes_since_entry.saturating_add(u64::from(batch.size_bytes));
        due
    }

    /// The largest timestamp so far and where it is: the entry that ends a time index.
    pub(crate) fn largest(&self) -> Option<TimeEntry> {
        self.largest
    }
}
