//! `.index`: from an offset to a position in the log, near before it.

use std::{ffi::OsStr, sync::Arc};

use super::{Append, IndexProblem, file::IndexFile};
use crate::{
    offset::Offset,
    sys::{Dir, Result},
};

/// The last offset of a batch, and the position where that batch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    pub(crate) offset: Offset,
    pub(crate) position: u32,
}

/// The offset index of one segment.
#[derive(Debug)]
pub(crate) struct OffsetIndex {
    base: Offset,
    file: IndexFile<2>,
}

impl OffsetIndex {
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
        let follows = |before: Option<[u32; 2]>, [relative, position]: [u32; 2]| match before {
            Some([last, last_position]) => relative > last && position > last_position,
            None => position > 0,
        };
        Ok(Self { base, file: IndexFile::read_copy(dir, name.as_ref(), follows)? })
    }

    pub(super) fn in_memory(
        dir: &Arc<Dir>,
        name: &OsStr,
        base: Offset,
        max_bytes: u32,
        mode: u32,
        entries: &[[u32; 2]],
    ) -> Result<Self> {
        Ok(Self { base, file: IndexFile::in_memory(dir, name, max_bytes, mode, entries)? })
    }

    /// Makes room for this many more entries, so that adding them cannot fail. A full disk shows here.
    pub(crate) fn reserve(&self, more_entries: u32) -> Result<()> {
        self.file.reserve(more_entries)
    }

    /// Adds the last offset of the batch that begins at `position`.
    pub(crate) fn append(&self, last_offset: Offset, position: u32) -> Append {
        let last = self.file.entries().checked_sub(1).and_then(|at| self.file.entry(at));
        match encode(self.base, last, last_offset, position) {
            Some(entry) => self.file.push(entry, false),
            None => Append::OutOfOrder,
        }
    }

    /// True where no further entry fits: the segment has to roll.
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
    pub(crate) fn entry(&self, at: u32) -> Option<OffsetEntry> {
        self.decode(self.file.entry(at)?)
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<OffsetEntry> {
        self.entry(self.entries().checked_sub(1)?)
    }

    /// The number of the last entry at or below `target`.
    pub(crate) fn floor(&self, target: Offset) -> Option<u32> {
        if target < self.base {
            return None;
        }
        let relative = u32::try_from(target.since(self.base)).unwrap_or(u32::MAX);
        self.file.partition_point_near(relative).checked_sub(1)
    }

    /// Where to begin scanning for `target`: the last entry at or below it, else the segment's beginning. What the entry
    /// says has to be checked against the batch at its position.
    #[cfg_attr(not(test), expect(dead_code, reason = "look-ups go by floor and entry"))]
    pub(crate) fn lookup(&self, target: Offset) -> OffsetEntry {
        self.floor(target)
            .and_then(|at| self.entry(at))
            .unwrap_or(OffsetEntry { offset: self.base, position: 0 })
    }

    /// The position of the entry after `at` (`None`: of the first), which bounds a read for a batch found from there.
    #[cfg_attr(not(test), expect(dead_code, reason = "look-ups go by floor and entry"))]
    pub(crate) fn next_position_after(&self, at: Option<u32>) -> Option<u32> {
        let next = at.map_or(Some(0), |at| at.checked_add(1))?;
        self.file.entry(next).map(|[_, position]| position)
    }

    /// The first indexed position at or past `position`: where a read of at least that much may end on a batch.
    #[cfg_attr(not(test), expect(dead_code, reason = "look-ups go by floor and entry"))]
    pub(crate) fn position_from(&self, position: u32) -> Option<u32> {
        let at = self.file.partition_point(|[_, indexed]| indexed < position);
        self.file.entry(at).map(|[_, position]| position)
    }

    /// Whether every entry can be true of a log of `log_bytes` that ends before `end`. Reads the whole index.
    #[cfg_attr(not(test), expect(dead_code, reason = "looked at by tests; verify reads the bytes itself"))]
    pub(crate) fn check(&self, log_bytes: u64, end: Offset) -> Result<(), IndexProblem> {
        self.file.load()?;
        let mut last: Option<[u32; 2]> = None;
        for at in 0..self.entries() {
            let Some(entry @ [relative, position]) = self.file.entry(at) else { break };
            let offset =
                self.decode(entry).ok_or_else(|| IndexProblem::at(at, "its offset cannot exist"))?.offset;
            if i32::try_from(relative).is_err() || i32::try_from(position).is_err() {
                return Err(IndexProblem::at(at, "it has a negative number"));
            }
            if last.is_some_and(|[before, _]| relative <= before) {
                return Err(IndexProblem::at(at, format!("offset {offset} is not above the one before")));
            }
            if last.is_some_and(|[_, before]| position <= before) {
                return Err(IndexProblem::at(at, format!("position {position} is not above the one before")));
            }
            if u64::from(position) >= log_bytes {
                return Err(IndexProblem::at(
                    at,
                    format!("position {position} is past the log's {log_bytes} bytes"),
                ));
            }
            if offset >= end {
                return Err(IndexProblem::at(at, format!("offset {offset} is not below the end {end}")));
            }
            last = Some(entry);
        }
        Ok(())
    }

    /// Gives the file its final size. Not durable before [`OffsetIndex::sync`].
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

    fn decode(&self, [relative, position]: [u32; 2]) -> Option<OffsetEntry> {
        Some(OffsetEntry { offset: self.base.checked_add(u64::from(relative))?, position })
    }
}

/// An entry that may follow `last`; `None` where it may not, or does not fit.
pub(super) fn encode(
    base: Offset,
    last: Option<[u32; 2]>,
    offset: Offset,
    position: u32,
) -> Option<[u32; 2]> {
    let relative = i32::try_from(offset.value().checked_sub(base.value())?).ok()?;
    let relative = u32::try_from(relative).ok()?;
    i32::try_from(position).ok()?;
    let in_order =
        last.is_none_or(|[before, before_position]| relative > before && position > before_position);
    in_order.then_some([relative, position])
}
