//! `.timeindex`: from a timestamp to an offset, near before its first record.

use std::{ffi::OsStr, sync::Arc};

use super::{Append, IndexProblem, file::IndexFile};
use crate::{
    offset::{Offset, Timestamp},
    sys::{Dir, Result},
};

/// The largest timestamp up to some batch, and the last offset of the first batch that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp: Timestamp,
    pub(crate) offset: Offset,
}

/// The time index of one segment.
#[derive(Debug)]
pub(crate) struct TimeIndex {
    base: Offset,
    file: IndexFile<3>,
}

impl TimeIndex {
    /// A new, empty file that may grow to `max_bytes`. Reserves nothing.
    pub(crate) fn create(
        dir: &Arc<Dir>,
        name: impl AsRef<OsStr>,
        base: Offset,
        max_bytes: u32,
        mode: u32,
    ) -> Result<Self> {
        Ok(Self { base, file: IndexFile::create(dir, name.as_ref(), max_bytes, mode)? })
    }

    /// An existing file, to append to. What it holds is believed, but for a tail of zeros; nothing is changed before the
    /// first reservation.
    pub(crate) fn open_active(
        dir: &Arc<Dir>,
        name: impl AsRef<OsStr>,
        base: Offset,
        max_bytes: u32,
        mode: u32,
    ) -> Result<Self> {
        Ok(Self { base, file: IndexFile::open_active(dir, name.as_ref(), max_bytes, mode)? })
    }

    /// The file of a sealed segment, opened and mapped when first used. Missing or unreadable, it answers as an empty one.
    pub(crate) fn open_sealed(dir: &Arc<Dir>, name: impl AsRef<OsStr>, base: Offset) -> Self {
        Self { base, file: IndexFile::open_sealed(dir, name.as_ref()) }
    }

    /// A copy of the file of a segment that another process is writing: as many entries as increase.
    pub(crate) fn read_copy(dir: &Arc<Dir>, name: impl AsRef<OsStr>, base: Offset) -> Result<Self> {
        let follows = |before: Option<[u32; 3]>, entry: [u32; 3]| {
            timestamp_of(entry) >= 0
                && before
                    .is_none_or(|before| timestamp_of(entry) > timestamp_of(before) && entry[2] >= before[2])
        };
        Ok(Self { base, file: IndexFile::read_copy(dir, name.as_ref(), follows)? })
    }

    pub(super) fn in_memory(
        dir: &Arc<Dir>,
        name: &OsStr,
        base: Offset,
        max_bytes: u32,
        mode: u32,
        entries: &[[u32; 3]],
    ) -> Result<Self> {
        Ok(Self { base, file: IndexFile::in_memory(dir, name, max_bytes, mode, entries)? })
    }

    /// Makes room for this many more entries and the final one, so that adding them cannot fail. A full disk shows here.
    pub(crate) fn reserve(&self, more_entries: u32) -> Result<()> {
        self.file.reserve(more_entries)
    }

    /// Adds an entry if its timestamp is larger than the last one's; leaves the slot for the final entry free.
    pub(crate) fn append(&self, timestamp: Timestamp, offset: Offset) -> Append {
        self.push(timestamp, offset, false)
    }

    /// Adds the entry that ends the index, with the segment's largest timestamp: Kafka believes the last entry alone.
    pub(crate) fn append_final(&self, timestamp: Timestamp, offset: Offset) -> Append {
        self.push(timestamp, offset, true)
    }

    /// True where only the slot for the final entry is left: the segment has to roll.
    pub(crate) fn is_full(&self) -> bool {
        self.file.is_full()
    }

    /// Looks whether the file can be read; without it the index answers as an empty one.
    pub(crate) fn load(&self) -> Result<()> {
        self.file.load()
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> u32 {
        self.file.entries()
    }

    /// An entry; `None` past the last, and where its offset cannot exist.
    pub(crate) fn entry(&self, at: u32) -> Option<TimeEntry> {
        self.decode(self.file.entry(at)?)
    }

    /// The last entry: what the index believes to be the segment's largest timestamp.
    pub(crate) fn last(&self) -> Option<TimeEntry> {
        self.entry(self.entries().checked_sub(1)?)
    }

    /// The last entry at or before `at`, else no timestamp at the segment's base: every record up to and including that
    /// offset but the batch that ends there is older, so a scan for the first record at or after `at` may begin there.
    pub(crate) fn lookup(&self, at: Timestamp) -> TimeEntry {
        let found = self.file.partition_point(|entry| timestamp_of(entry) <= at.millis()).checked_sub(1);
        found
            .and_then(|found| self.entry(found))
            .unwrap_or(TimeEntry { timestamp: Timestamp::NONE, offset: self.base })
    }

    /// Whether every entry can be true of a log that ends before `end`. Reads the whole index.
    #[cfg_attr(not(test), expect(dead_code, reason = "looked at by tests; verify reads the bytes itself"))]
    pub(crate) fn check(&self, end: Offset) -> Result<(), IndexProblem> {
        self.file.load()?;
        let mut last: Option<[u32; 3]> = None;
        for at in 0..self.entries() {
            let Some(entry) = self.file.entry(at) else { break };
            let Some(TimeEntry { timestamp, offset }) = self.decode(entry) else {
                return Err(IndexProblem::at(at, "its offset cannot exist"));
            };
            if i32::try_from(entry[2]).is_err() || timestamp.millis() < 0 {
                return Err(IndexProblem::at(at, "it has a negative number"));
            }
            if last.is_some_and(|before| timestamp_of(entry) <= timestamp_of(before)) {
                return Err(IndexProblem::at(
                    at,
                    format!("timestamp {timestamp} is not above the one before"),
                ));
            }
            if last.is_some_and(|before| entry[2] < before[2]) {
                return Err(IndexProblem::at(at, format!("offset {offset} is below the one before")));
            }
            if offset >= end {
                return Err(IndexProblem::at(at, format!("offset {offset} is not below the end {end}")));
            }
            last = Some(entry);
        }
        Ok(())
    }

    /// Gives the file its final size. Not durable before [`TimeIndex::sync`].
    pub(crate) fn seal(&self) -> Result<()> {
        self.file.seal()
    }

    /// Makes the file durable as it is.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    /// Gives the descriptor back, once sealed and synced; look-ups go on.
    pub(crate) fn release_file(&self) {
        self.file.release_file();
    }

    fn push(&self, timestamp: Timestamp, offset: Offset, is_final: bool) -> Append {
        let last = self.file.entries().checked_sub(1).and_then(|at| self.file.entry(at));
        match encode(self.base, last, timestamp, offset) {
            Ok(Some(entry)) => self.file.push(entry, is_final),
            Ok(None) => Append::Unchanged,
            Err(OutOfOrder) => Append::OutOfOrder,
        }
    }

    fn decode(&self, entry: [u32; 3]) -> Option<TimeEntry> {
        decode(self.base, entry)
    }
}

/// The entry; `None` where its offset cannot exist.
pub(super) fn decode(base: Offset, entry: [u32; 3]) -> Option<TimeEntry> {
    Some(TimeEntry {
        timestamp: Timestamp::from_millis(timestamp_of(entry)),
        offset: base.checked_add(u64::from(entry[2]))?,
    })
}

/// The entry's offset is below the last one's, or does not fit.
pub(super) struct OutOfOrder;

/// An entry that may follow `last`; `None` where there is nothing new in it.
pub(super) fn encode(
    base: Offset,
    last: Option<[u32; 3]>,
    timestamp: Timestamp,
    offset: Offset,
) -> Result<Option<[u32; 3]>, OutOfOrder> {
    let millis = timestamp.millis();
    if millis <= last.map_or(Timestamp::NONE.millis(), timestamp_of) {
        return Ok(None);
    }
    let relative = offset.value().checked_sub(base.value()).and_then(|relative| i32::try_from(relative).ok());
    let relative = relative.and_then(|relative| u32::try_from(relative).ok()).ok_or(OutOfOrder)?;
    if last.is_some_and(|before| relative < before[2]) {
        return Err(OutOfOrder);
    }
    let bits = millis.cast_unsigned();
    let (Ok(high), Ok(low)) = (u32::try_from(bits >> 32), u32::try_from(bits & u64::from(u32::MAX))) else {
        return Err(OutOfOrder);
    };
    Ok(Some([high, low, relative]))
}

fn timestamp_of([high, low, _]: [u32; 3]) -> i64 {
    (u64::from(high) << 32 | u64::from(low)).cast_signed()
}
