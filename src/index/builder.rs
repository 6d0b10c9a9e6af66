//! Both indexes of a segment, built anew while its log is walked.

use std::{ffi::OsStr, sync::Arc};

use super::{
    BatchAt, IndexPacer, OffsetEntry, OffsetIndex, TimeEntry, TimeIndex, file::replace, offset, time,
};
use crate::{
    offset::Offset,
    sys::{Dir, Result},
};

/// Collects in memory what appending the same batches would have written.
#[derive(Debug, Clone)]
pub(crate) struct IndexBuilder {
    base: Offset,
    max_bytes: u32,
    pacer: IndexPacer,
    offsets: Vec<[u32; 2]>,
    times: Vec<[u32; 3]>,
}

impl IndexBuilder {
    /// For the segment that begins at `base`, whose index files may grow to `max_bytes` each.
    pub(crate) fn new(base: Offset, interval_bytes: u32, max_bytes: u32) -> Self {
        Self {
            base,
            max_bytes,
            pacer: IndexPacer::new(interval_bytes),
            offsets: Vec::new(),
            times: Vec::new(),
        }
    }

    /// Takes the next batch of the log into account.
    pub(crate) fn observe(&mut self, batch: &BatchAt) {
        let Some(due) = self.pacer.observe(batch) else { return };
        if self.offsets.len() < self.slots(8)
            && let Some(entry) =
                offset::encode(self.base, self.offsets.last().copied(), due.last_offset, due.position)
        {
            self.offsets.push(entry);
        }
        if let Some(time) = due.time {
            self.push_time(time, 1);
        }
    }

    /// Forgets what it saw of offsets from `end` on. The running maximum falls back to the last entry that is left, as
    /// Kafka's does.
    #[cfg_attr(not(test), expect(dead_code, reason = "cutting rebuilds the index instead"))]
    pub(crate) fn truncate_to(&mut self, end: Offset) {
        let is_below =
            |relative: u32| self.base.checked_add(u64::from(relative)).is_some_and(|offset| offset < end);
        self.offsets.retain(|[relative, _]| is_below(*relative));
        self.times.retain(|[_, _, relative]| is_below(*relative));
        let last = self.times.last().and_then(|entry| time::decode(self.base, *entry));
        self.pacer = self.pacer.restart_from(last);
    }

    /// The state in which appending to the segment goes on.
    #[cfg_attr(not(test), expect(dead_code, reason = "resuming reads the file instead"))]
    pub(crate) fn pacer(&self) -> IndexPacer {
        self.pacer
    }

    /// The largest timestamp seen and where.
    pub(crate) fn largest(&self) -> Option<TimeEntry> {
        self.pacer.largest()
    }

    /// The last offset entry.
    #[cfg_attr(not(test), expect(dead_code, reason = "looked at by tests"))]
    pub(crate) fn last_offset_entry(&self) -> Option<OffsetEntry> {
        let [relative, position] = self.offsets.last().copied()?;
        Some(OffsetEntry { offset: self.base.checked_add(u64::from(relative))?, position })
    }

    /// Adds the entry that ends the time index, as sealing does. Kafka ends recovery with it for every segment.
    pub(crate) fn finish(&mut self) {
        if let Some(largest) = self.pacer.largest() {
            self.push_time(largest, 0);
        }
    }

    /// The bytes of both files.
    pub(crate) fn to_bytes(&self) -> (Vec<u8>, Vec<u8>) {
        let offsets = self.offsets.iter().flatten().flat_map(|word| word.to_be_bytes()).collect();
        let times = self.times.iter().flatten().flat_map(|word| word.to_be_bytes()).collect();
        (offsets, times)
    }

    /// Writes both files under private names and renames them over the old ones; with `sync` their bytes are durable, their
    /// names after a sync of the directory.
    pub(crate) fn write(
        &self,
        dir: &Dir,
        offset_name: impl AsRef<OsStr>,
        time_name: impl AsRef<OsStr>,
        mode: u32,
        sync: bool,
    ) -> Result<()> {
        let (offsets, times) = self.to_bytes();
        replace(dir, offset_name.as_ref(), &offsets, mode, sync)?;
        replace(dir, time_name.as_ref(), &times, mode, sync)
    }

    /// Both indexes without files, where the disk has no room for them: the log can be read and written to all the same,
    /// and sealing tries to write them again.
    pub(crate) fn into_memory(
        self,
        dir: &Arc<Dir>,
        offset_name: impl AsRef<OsStr>,
        time_name: impl AsRef<OsStr>,
        mode: u32,
    ) -> Result<(OffsetIndex, TimeIndex)> {
        let (base, max_bytes) = (self.base, self.max_bytes);
        Ok((
            OffsetIndex::in_memory(dir, offset_name.as_ref(), base, max_bytes, mode, &self.offsets)?,
            TimeIndex::in_memory(dir, time_name.as_ref(), base, max_bytes, mode, &self.times)?,
        ))
    }

    fn push_time(&mut self, entry: TimeEntry, spare: usize) {
        if self.times.len() < self.slots(12).saturating_sub(spare)
            && let Ok(Some(entry)) =
                time::encode(self.base, self.times.last().copied(), entry.timestamp, entry.offset)
        {
            self.times.push(entry);
        }
    }

    fn slots(&self, entry_bytes: u32) -> usize {
        usize::try_from(self.max_bytes / entry_bytes).unwrap_or(usize::MAX)
    }
}
