//! Whether indexes tell the truth: each entry held against the batches, in one pass beside the walk of the `.log`.
//!
//! Both checks are fed the batches in order and read their index just as far: memory is one block each.

use super::{
    finding::{Finding, FindingKind, Severity},
    index_file::{Entries, IndexEntry, IndexFile, OffsetIndexEntry, TimeIndexEntry},
    report::Findings,
};
use crate::{
    error::Result,
    offset::{Offset, Timestamp},
    record::BatchHeader,
};

/// Reads the entries that are used, one ahead.
struct Cursor<'f, E> {
    file: &'f IndexFile,
    entries: Entries<'f, E>,
    used_bytes: u64,
    next: Option<E>,
}

impl<'f, E: IndexEntry> Cursor<'f, E> {
    /// Reports what the length alone shows. `first_is_zero`: a file of nothing but zeros means its first entry.
    fn new(file: &'f IndexFile, first_is_zero: bool, findings: &mut Findings) -> Result<Self> {
        let mut used_bytes = file.used_bytes::<E>()?;
        let whole = file.len_bytes() / E::BYTES * E::BYTES;
        if used_bytes == 0 && first_is_zero && whole > 0 {
            used_bytes = E::BYTES;
        }
        let odd = file.odd_bytes::<E>()?;
        if odd > 0 {
            let detail = format!("the last {odd} bytes are no whole entry of {}", E::BYTES);
            findings.push(
                Finding::new(file.path(), FindingKind::IndexLength, Severity::Warning, detail).at(whole),
            );
        }
        let room = file.len_bytes() - used_bytes - odd;
        if room > 0 {
            let detail = format!("{room} bytes of zeros behind the last entry");
            findings.push(
                Finding::new(file.path(), FindingKind::Untrimmed, Severity::Warning, detail).at(used_bytes),
            );
        }
        let mut cursor = Self { file, entries: file.entries(), used_bytes, next: None };
        cursor.read()?;
        Ok(cursor)
    }

    fn read(&mut self) -> Result<()> {
        self.next = self.entries.next().transpose()?.filter(|entry| entry.position() < self.used_bytes);
        Ok(())
    }

    fn lie(&self, kind: FindingKind, position: u64, detail: String) -> Finding {
        Finding::new(self.file.path(), kind, Severity::Damage, detail).at(position)
    }
}

/// The check of an `.index`.
pub(super) struct OffsetIndexCheck<'f> {
    cursor: Cursor<'f, OffsetIndexEntry>,
    base: Offset,
    /// Offset and position of the last entry that was in order.
    last: Option<(i32, i32)>,
}

impl<'f> OffsetIndexCheck<'f> {
    pub(super) fn new(
        file: &'f IndexFile,
        base: Offset,
        first: Option<&BatchHeader>,
        findings: &mut Findings,
    ) -> Result<Self> {
        // Kafka never indexes the first batch; others may, and if it ends at the base offset its entry is all zeros.
        let first_is_zero = first.is_some_and(|header| header.last_offset() == base);
        let cursor =
            Cursor::new(file, first_is_zero && file.len_bytes() == OffsetIndexEntry::BYTES, findings)?;
        let mut check = Self { cursor, base, last: None };
        check.settle(findings)?;
        Ok(check)
    }

    /// A batch begins at `position`. `sound`: its CRC fits, so its offsets can be held against the index.
    pub(super) fn batch(
        &mut self,
        position: u64,
        header: &BatchHeader,
        sound: bool,
        findings: &mut Findings,
    ) -> Result<()> {
        while let Some(entry) = &self.cursor.next {
            let place = u64::from(entry.log_position.unsigned_abs());
            if place > position {
                break;
            }
            let offset = self.offset(entry);
            if place < position {
                let detail = format!(
                    "the entry (offset {}, position {place}) points into the middle of a batch",
                    shown(offset)
                );
                let finding =
                    self.cursor.lie(FindingKind::IndexPosition, entry.position, detail).with_offset(offset);
                findings.push(finding);
            } else if sound && offset != Some(header.last_offset()) {
                let detail = format!(
                    "the entry says that the batch at position {place} ends at offset {}; it ends at {}",
                    shown(offset),
                    header.last_offset()
                );
                let finding =
                    self.cursor.lie(FindingKind::IndexOffset, entry.position, detail).with_offset(offset);
                findings.push(finding);
            }
            self.advance(findings)?;
        }
        Ok(())
    }

    /// The bytes up to `end` are no batches: what points into them can be neither right nor wrong.
    pub(super) fn skip_to(&mut self, end: u64, findings: &mut Findings) -> Result<()> {
        while self
            .cursor
            .next
            .as_ref()
            .is_some_and(|entry| u64::from(entry.log_position.unsigned_abs()) < end)
        {
            self.advance(findings)?;
        }
        Ok(())
    }

    /// True where entries point behind the batches seen so far.
    pub(super) const fn has_more(&self) -> bool {
        self.cursor.next.is_some()
    }

    /// The batches end at `end`.
    pub(super) fn finish(mut self, end: u64, findings: &mut Findings) -> Result<()> {
        let Some(entry) = self.cursor.next else { return Ok(()) };
        let offset = self.offset(&entry);
        let mut count = 1_u64;
        self.advance(findings)?;
        while self.cursor.next.is_some() {
            count += 1;
            self.advance(findings)?;
        }
        let more = if count > 1 { format!(", and so do {} more", count - 1) } else { String::new() };
        let detail = format!(
            "the entry (offset {}, position {}) points past the last batch, which ends at {end}{more}",
            shown(offset),
            entry.log_position
        );
        findings
            .push(self.cursor.lie(FindingKind::IndexPosition, entry.position, detail).with_offset(offset));
        Ok(())
    }

    fn offset(&self, entry: &OffsetIndexEntry) -> Option<Offset> {
        u64::try_from(entry.relative_offset).ok().and_then(|relative| self.base.checked_add(relative))
    }

    fn advance(&mut self, findings: &mut Findings) -> Result<()> {
        self.cursor.read()?;
        self.settle(findings)
    }

    /// Passes over entries that are out of order, so that the walk beside the log only ever goes forward.
    fn settle(&mut self, findings: &mut Findings) -> Result<()> {
        while let Some(entry) = &self.cursor.next {
            let (offset, position) = (entry.relative_offset, entry.log_position);
            let negative = offset < 0 || position < 0;
            if !negative && self.last.is_none_or(|(o, p)| offset > o && position > p) {
                self.last = Some((offset, position));
                break;
            }
            let detail = match self.last {
                Some((o, p)) if !negative => format!(
                    "the entry (relative offset {offset}, position {position}) does not rise above the one before it ({o}, {p})"
                ),
                _ => format!("the entry (relative offset {offset}, position {position}) is negative"),
            };
            findings.push(self.cursor.lie(FindingKind::IndexOrder, entry.position, detail));
            self.cursor.read()?;
        }
        Ok(())
    }
}

/// The check of a `.timeindex`.
pub(super) struct TimeIndexCheck<'f> {
    cursor: Cursor<'f, TimeIndexEntry>,
    base: Offset,
    /// Timestamp and offset of the last entry that was in order.
    last: Option<(Timestamp, i32)>,
    /// The largest timestamp of the batches so far.
    largest: Option<Timestamp>,
    /// True after bytes that were no batch, until the next batch: offsets in between were in them, perhaps.
    blind: bool,
}

impl<'f> TimeIndexCheck<'f> {
    pub(super) fn new(
        file: &'f IndexFile,
        base: Offset,
        first: Option<&BatchHeader>,
        findings: &mut Findings,
    ) -> Result<Self> {
        let first_is_zero =
            first.is_some_and(|h| h.last_offset() == base && h.max_timestamp() == Timestamp::from_millis(0));
        let cursor = Cursor::new(file, first_is_zero, findings)?;
        let mut check = Self { cursor, base, last: None, largest: None, blind: false };
        check.settle(findings)?;
        Ok(check)
    }

    /// The next batch. `sound`: its CRC fits, so its timestamps can be held against the index.
    pub(super) fn batch(&mut self, header: &BatchHeader, sound: bool, findings: &mut Findings) -> Result<()> {
        while let Some(entry) = &self.cursor.next {
            let offset = self.offset(entry);
            if offset.is_some_and(|offset| offset > header.last_offset()) {
                break;
            }
            if let Some(finding) = self.judge(entry, offset, header, sound) {
                findings.push(finding.with_offset(offset));
            }
            self.advance(findings)?;
        }
        if sound {
            self.largest = self.largest.max(Some(header.max_timestamp()));
            self.blind = false;
        } else {
            self.blind = true;
        }
        Ok(())
    }

    /// What is wrong with an entry whose offset is not behind the batch.
    fn judge(
        &self,
        entry: &TimeIndexEntry,
        offset: Option<Offset>,
        header: &BatchHeader,
        sound: bool,
    ) -> Option<Finding> {
        let offset = offset?;
        if offset < header.base_offset() {
            let detail = format!("no batch ends at the entry's offset {offset}");
            return (!self.blind)
                .then(|| self.cursor.lie(FindingKind::TimeIndexOffset, entry.position, detail));
        }
        if !sound {
            return None;
        }
        if entry.timestamp != header.max_timestamp() {
            let detail = format!(
                "the entry says {} for the batch that ends at offset {}; its largest timestamp is {}",
                entry.timestamp,
                header.last_offset(),
                header.max_timestamp()
            );
            return Some(self.cursor.lie(FindingKind::TimeIndexTimestamp, entry.position, detail));
        }
        if self.largest.is_some_and(|largest| largest >= entry.timestamp) {
            let detail = format!(
                "the entry says that nothing before offset {offset} is as late as {}, but {} is",
                entry.timestamp,
                self.largest.unwrap_or(Timestamp::NONE)
            );
            return Some(self.cursor.lie(FindingKind::TimeIndexTimestamp, entry.position, detail));
        }
        if offset != header.last_offset() {
            // Searches by time still come out right; some versions of Kafka wrote the offset of the record itself.
            let detail = format!(
                "the entry's offset {offset} lies inside a batch, which ends at {}",
                header.last_offset()
            );
            let mut finding = self.cursor.lie(FindingKind::TimeIndexOffset, entry.position, detail);
            finding.severity = Severity::Warning;
            return Some(finding);
        }
        None
    }

    /// Bytes that are no batch were passed.
    pub(super) const fn skip(&mut self) {
        self.blind = true;
    }

    /// True where entries speak of offsets behind the batches seen so far.
    pub(super) const fn has_more(&self) -> bool {
        self.cursor.next.is_some()
    }

    /// The batches have ended. `sealed`: the index must name the segment's largest timestamp, since Kafka takes its last
    /// entry for it.
    pub(super) fn finish(mut self, sealed: bool, findings: &mut Findings) -> Result<()> {
        if let Some(entry) = self.cursor.next {
            let offset = self.offset(&entry);
            let detail = format!("the entry's offset {} lies past the last batch", shown(offset));
            if !self.blind {
                let lie = self.cursor.lie(FindingKind::TimeIndexOffset, entry.position, detail);
                findings.push(lie.with_offset(offset));
            }
            while self.cursor.next.is_some() {
                self.advance(findings)?;
            }
        }
        let largest = self.largest.filter(|&largest| largest > Timestamp::NONE);
        if let (true, Some(largest)) = (sealed, largest)
            && self.last.is_none_or(|(last, _)| last < largest)
        {
            let last =
                self.last.map_or_else(|| "is empty".to_owned(), |(last, _)| format!("ends with {last}"));
            let detail = format!("the index {last}, the segment's largest timestamp is {largest}");
            findings.push(self.cursor.lie(FindingKind::TimeIndexEnd, self.cursor.used_bytes, detail));
        }
        Ok(())
    }

    fn offset(&self, entry: &TimeIndexEntry) -> Option<Offset> {
        u64::try_from(entry.relative_offset).ok().and_then(|relative| self.base.checked_add(relative))
    }

    fn advance(&mut self, findings: &mut Findings) -> Result<()> {
        self.cursor.read()?;
        self.settle(findings)
    }

    fn settle(&mut self, findings: &mut Findings) -> Result<()> {
        while let Some(entry) = &self.cursor.next {
            let (timestamp, offset) = (entry.timestamp, entry.relative_offset);
            if offset >= 0 && self.last.is_none_or(|(t, o)| timestamp > t && offset >= o) {
                self.last = Some((timestamp, offset));
                break;
            }
            let detail = match self.last {
                Some((t, o)) if offset >= 0 => format!(
                    "the entry (timestamp {timestamp}, relative offset {offset}) does not rise above the one before it ({t}, {o})"
                ),
                _ => format!("the entry (timestamp {timestamp}, relative offset {offset}) is negative"),
            };
            findings.push(self.cursor.lie(FindingKind::IndexOrder, entry.position, detail));
            self.cursor.read()?;
        }
        Ok(())
    }
}

fn shown(offset: Option<Offset>) -> String {
    offset.map_or_else(|| "past the largest".to_owned(), |offset| offset.to_string())
}
