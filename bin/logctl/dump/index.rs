//! `.index` and `.timeindex` files: their entries, each held against the batch it speaks of.

use std::{iter::Peekable, path::Path};

use stratalog::{
    Timestamp,
    inspect::{Entries, IndexEntry, IndexFile, LogFile, OffsetIndexEntry, TimeIndexEntry},
    record::BatchHeader,
};

use super::{Dump, Stopped, companion, problems::shown};
use crate::json_line::ObjectLine;

impl Dump<'_> {
    pub(super) fn offset_index(&mut self, path: &Path) -> Result<(), Stopped> {
        let index = IndexFile::open(path)?;
        let log = self.log_beside(path)?;
        self.problems.dumped();
        let base = self.index_base(path, &index)?;
        if index.len_bytes() < OffsetIndexEntry::BYTES {
            return self.empty(path, &index);
        }
        if self.args.index_sanity_check {
            return self.offset_index_sanity(path, &index);
        }
        let mut end = index.len_bytes() / OffsetIndexEntry::BYTES * OffsetIndexEntry::BYTES;
        for entry in index.entries::<OffsetIndexEntry>() {
            let entry = entry?;
            self.stop.check()?;
            // A crash leaves room: Kafka's tool stops at the first entry without an offset, but for the very first.
            if entry.relative_offset == 0 && entry.position > 0 {
                end = entry.position;
                break;
            }
            let offset = base.wrapping_add(i64::from(entry.relative_offset));
            if let Some(log) = &log {
                self.check_offset_entry(path, log, &entry, offset)?;
            }
            if !self.args.verify_index_only {
                self.offset_entry(path, &entry, offset)?;
            }
        }
        self.rest_of_index::<OffsetIndexEntry>(path, &index, end)
    }

    fn offset_entry(&mut self, path: &Path, entry: &OffsetIndexEntry, offset: i64) -> Result<(), Stopped> {
        if self.args.is_json() {
            ObjectLine::new(self.out.buffer(), "index-entry")
                .text("file", &shown(path))
                .bare("position", entry.position)
                .bare("offset", offset)
                .bare("log_position", entry.log_position)
                .end();
            self.out.spill()?;
        } else {
            self.out.line(format!("offset: {offset} position: {}", entry.log_position))?;
        }
        Ok(())
    }

    fn check_offset_entry(
        &mut self,
        path: &Path,
        log: &LogFile,
        entry: &OffsetIndexEntry,
        offset: i64,
    ) -> Result<(), Stopped> {
        let place = u64::try_from(entry.log_position).ok();
        let header = match place {
            Some(place) => log.header_at(place)?.ok(),
            None => None,
        };
        match header {
            Some(header) if header.last_offset().value() == offset => Ok(()),
            // The entry that zeros at the very front would be: room that was never used.
            _ if entry.position == 0 && entry.relative_offset == 0 && entry.log_position == 0 => Ok(()),
            Some(header) => {
                let found = header.last_offset().value();
                let text = format!(
                    "the entry says offset {offset} for position {}, where the batch ends at {found}",
                    entry.log_position
                );
                if !self.args.is_json() {
                    self.problems.index_mismatch(path, offset, found);
                    return Ok(());
                }
                self.damage(path, "index-offset", entry.position, OffsetIndexEntry::BYTES, &text, true)
            }
            None => {
                let text = format!(
                    "the entry at byte {} (offset {offset}) says position {}, where no batch begins",
                    entry.position, entry.log_position
                );
                self.damage(path, "index-position", entry.position, OffsetIndexEntry::BYTES, &text, true)
            }
        }
    }

    fn offset_index_sanity(&mut self, path: &Path, index: &IndexFile) -> Result<(), Stopped> {
        let last = last_entry::<OffsetIndexEntry>(index)?;
        let wrong = if index.len_bytes().is_multiple_of(OffsetIndexEntry::BYTES) {
            last.filter(|last| last.relative_offset < 0).map(|last| {
                format!("its last offset lies {} below the base offset", last.relative_offset.unsigned_abs())
            })
        } else {
            Some(format!("its length of {} bytes is no multiple of 8", index.len_bytes()))
        };
        self.sanity(path, wrong)
    }

    pub(super) fn time_index(&mut self, path: &Path) -> Result<(), Stopped> {
        let index = IndexFile::open(path)?;
        let log = self.log_beside(path)?;
        self.problems.dumped();
        let base = self.index_base(path, &index)?;
        if self.args.index_sanity_check {
            return self.time_index_sanity(path, &index);
        }
        let beside = IndexFile::open(companion(path, "index")).ok();
        let mut lookup = Lookup::new(log.as_ref(), beside.as_ref(), base);
        let mut end = index.len_bytes() / TimeIndexEntry::BYTES * TimeIndexEntry::BYTES;
        let mut previous = Timestamp::NONE;
        for entry in index.entries::<TimeIndexEntry>() {
            let entry = entry?;
            self.stop.check()?;
            if entry.relative_offset == 0 && entry.position > 0 {
                end = entry.position;
                break;
            }
            let offset = base.wrapping_add(i64::from(entry.relative_offset));
            if log.is_some() && !is_unused(&entry) {
                let found = lookup.batch_holding(offset)?;
                self.check_time_entry(path, &entry, offset, previous, found)?;
            }
            previous = entry.timestamp;
            if !self.args.verify_index_only {
                self.time_entry(path, &entry, offset)?;
            }
        }
        self.rest_of_index::<TimeIndexEntry>(path, &index, end)
    }

    fn time_entry(&mut self, path: &Path, entry: &TimeIndexEntry, offset: i64) -> Result<(), Stopped> {
        if self.args.is_json() {
            ObjectLine::new(self.out.buffer(), "time-index-entry")
                .text("file", &shown(path))
                .bare("position", entry.position)
                .bare("timestamp", entry.timestamp)
                .bare("offset", offset)
                .end();
            self.out.spill()?;
        } else {
            self.out.line(format!("timestamp: {} offset: {offset}", entry.timestamp))?;
        }
        Ok(())
    }

    fn check_time_entry(
        &mut self,
        path: &Path,
        entry: &TimeIndexEntry,
        offset: i64,
        previous: Timestamp,
        found: Option<BatchHeader>,
    ) -> Result<(), Stopped> {
        let size = TimeIndexEntry::BYTES;
        let at = entry.position;
        let Some(batch) = found.filter(|batch| batch.last_offset().value() == offset) else {
            let found = found.map_or(-1, |batch| batch.last_offset().value());
            if self.args.is_json() {
                let text = format!("no batch ends at the entry's offset {offset}; the next ends at {found}");
                return self.damage(path, "time-index-offset", at, size, &text, true);
            }
            self.problems.offset_not_found(path, offset, found);
            return Ok(());
        };
        if batch.max_timestamp() != entry.timestamp {
            if self.args.is_json() {
                let text = format!(
                    "the entry says {}, the largest timestamp of its batch is {}",
                    entry.timestamp,
                    batch.max_timestamp()
                );
                self.damage(path, "time-index-timestamp", at, size, &text, true)?;
            } else {
                self.problems.time_mismatch(path, entry.timestamp.millis(), batch.max_timestamp().millis());
            }
        }
        if previous >= entry.timestamp {
            if self.args.is_json() {
                let text = format!("the entry says {}, the one before it {previous}", entry.timestamp);
                self.damage(path, "index-order", at, size, &text, true)?;
            } else {
                self.problems.time_order(path, entry.timestamp.millis(), previous.millis());
            }
        }
        Ok(())
    }

    fn time_index_sanity(&mut self, path: &Path, index: &IndexFile) -> Result<(), Stopped> {
        let first = index.entries::<TimeIndexEntry>().next().transpose()?;
        let last = last_entry::<TimeIndexEntry>(index)?;
        let wrong = match (first, last) {
            _ if !index.len_bytes().is_multiple_of(TimeIndexEntry::BYTES) => {
                Some(format!("its length of {} bytes is no multiple of 12", index.len_bytes()))
            }
            (Some(first), Some(last)) if last.timestamp < first.timestamp => Some(format!(
                "its last timestamp {} is before its first, {}",
                last.timestamp, first.timestamp
            )),
            (_, Some(last)) if last.relative_offset < 0 => Some(format!(
                "its last offset lies {} below the base offset",
                last.relative_offset.unsigned_abs()
            )),
            _ => None,
        };
        self.sanity(path, wrong)
    }

    fn sanity(&mut self, path: &Path, wrong: Option<String>) -> Result<(), Stopped> {
        match wrong {
            Some(reason) => {
                self.damage(path, "sanity", 0, 0, &format!("the sanity check failed: {reason}"), true)
            }
            None if self.args.is_json() => {
                ObjectLine::new(self.out.buffer(), "sane").text("file", &shown(path)).end();
                Ok(self.out.spill()?)
            }
            None => Ok(self.named_line(&format!("{} passed sanity check.", path.display()))?),
        }
    }

    fn empty(&mut self, path: &Path, index: &IndexFile) -> Result<(), Stopped> {
        if !self.args.is_json() {
            self.named_line(&format!("{} is empty.", path.display()))?;
        }
        self.rest_of_index::<OffsetIndexEntry>(path, index, 0)
    }

    /// What stands behind the last entry: nothing, reserved room, or bytes that are neither.
    fn rest_of_index<E: IndexEntry>(
        &mut self,
        path: &Path,
        index: &IndexFile,
        end: u64,
    ) -> Result<(), Stopped> {
        let used = index.used_bytes::<E>()?;
        let len = index.len_bytes();
        if used > end {
            let text = format!("from byte {end} on, entries without an offset have others behind them");
            return self.damage(path, "index-order", end, used - end, &text, true);
        }
        let odd = index.odd_bytes::<E>()?;
        if len - odd > end {
            self.damage(path, "untrimmed", end, len - odd - end, "zeros behind the last entry", false)?;
        }
        if odd > 0 {
            let text = "the last bytes are no whole entry";
            self.damage(path, "index-length", len - odd, odd, text, false)?;
        }
        Ok(())
    }

    /// The `.log` that the index belongs to. Without it entries are printed and not checked.
    fn log_beside(&mut self, path: &Path) -> Result<Option<LogFile>, Stopped> {
        let log = companion(path, "log");
        match LogFile::open(&log) {
            Ok(log) => Ok(Some(log)),
            Err(error) => {
                self.unreadable(&log, &error)?;
                Ok(None)
            }
        }
    }

    fn index_base(&mut self, path: &Path, index: &IndexFile) -> Result<i64, Stopped> {
        if self.args.is_json() {
            let base = index.base_offset();
            let line = ObjectLine::new(self.out.buffer(), "file").text("file", &shown(path));
            line.bare("size_bytes", index.len_bytes()).maybe("base_offset", base).end();
        }
        let Some(base) = index.base_offset() else {
            self.damage(path, "name", 0, 0, "the name does not begin with a base offset", true)?;
            return Ok(0);
        };
        Ok(base.value())
    }
}

/// A first entry of zeros only, with nothing behind it: reserved room rather than an entry.
fn is_unused(entry: &TimeIndexEntry) -> bool {
    entry.position == 0 && entry.relative_offset == 0 && entry.timestamp == Timestamp::from_millis(0)
}

/// The last whole entry of the file, as Kafka's sanity checks look at it: reserved room counts.
fn last_entry<E: IndexEntry>(index: &IndexFile) -> Result<Option<E>, Stopped> {
    Ok(index.entries_from::<E>(index.len_bytes().saturating_sub(E::BYTES)).next().transpose()?)
}

/// Finds the batch that holds an offset, for offsets that rise: through the `.index` where there is one, then from batch to
/// batch.
struct Lookup<'a> {
    log: Option<&'a LogFile>,
    index: Option<Peekable<Entries<'a, OffsetIndexEntry>>>,
    base: i64,
    /// Where the last found batch begins.
    position: u64,
}

impl<'a> Lookup<'a> {
    fn new(log: Option<&'a LogFile>, index: Option<&'a IndexFile>, base: i64) -> Self {
        Self { log, index: index.map(|index| index.entries().peekable()), base, position: 0 }
    }

    /// The first batch from the last one found on that does not end before `offset`; none where something else stands in the way.
    fn batch_holding(&mut self, offset: i64) -> Result<Option<BatchHeader>, Stopped> {
        let Some(log) = self.log else { return Ok(None) };
        if let Some(index) = &mut self.index {
            let base = self.base;
            let is_before = |entry: &OffsetIndexEntry| {
                let is_unused = entry.relative_offset == 0 && entry.position > 0;
                !is_unused && base.wrapping_add(i64::from(entry.relative_offset)) <= offset
            };
            while let Some(entry) = index.next_if(|entry| entry.as_ref().is_ok_and(is_before)) {
                let entry = entry?;
                let place = u64::try_from(entry.log_position).unwrap_or(0);
                // An index may lie: it is followed only to a batch that ends where it says.
                if place > self.position
                    && let Ok(header) = log.header_at(place)?
                    && header.last_offset().value() == base.wrapping_add(i64::from(entry.relative_offset))
                {
                    self.position = place;
                }
            }
        }
        while let Ok(header) = log.header_at(self.position)? {
            if header.last_offset().value() >= offset {
                return Ok(Some(header));
            }
            self.position += u64::from(header.size_bytes());
        }
        Ok(None)
    }
}
