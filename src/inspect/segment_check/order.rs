//! Whether offsets and epochs follow one another from batch to batch.

use super::{
    super::{
        finding::{Finding, FindingKind, Severity},
        report::Gaps,
    },
    Check,
};
use crate::{
    offset::Offset,
    record::{BatchError, BatchHeader},
};

/// A batch that leaves out offsets: those behind it tell whether they are missing, or its own offset is wrong.
pub(super) struct Leap {
    position: u64,
    first: Offset,
    /// What was known without it.
    last: Option<Offset>,
    start: Option<Offset>,
    end: Option<Offset>,
}

impl Check<'_> {
    /// Offsets that nothing stands for, between two batches where no damage lies.
    pub(super) fn gap(&mut self, position: u64, header: &BatchHeader) {
        let Some(expected) = self.last.and_then(Offset::next) else {
            return;
        };
        if header.base_offset() <= expected {
            return;
        }
        let offsets = header.base_offset().since(expected);
        let gaps = self.report.gaps.get_or_insert(Gaps { count: 0, offsets: 0, first: expected, position });
        gaps.count += 1;
        gaps.offsets = gaps.offsets.saturating_add(offsets);
    }

    /// One note for all gaps: a compacted segment has thousands.
    pub(super) fn note_gaps(&mut self) {
        let Some(Gaps { count, offsets, first, position }) = self.report.gaps else { return };
        if self.report.findings.damage_count() > 0 {
            // What is damaged has been told, and is one of them.
            return;
        }
        let what = if count == 1 { "one place" } else { &format!("{count} places, the first") };
        let detail = format!("no records for {offsets} offsets between batches, in {what} at offset {first}");
        let finding = Finding::new(&self.files.log, FindingKind::OffsetGap, Severity::Note, detail);
        self.found(finding.at(position).with_offset(Some(first)));
    }

    /// Offsets, epochs and what the header says of itself.
    pub(super) fn order(&mut self, position: u64, header: &BatchHeader) {
        let (base, first, last) = (self.files.base, header.base_offset(), header.last_offset());
        let offset = Some(first);
        if first < base {
            let detail =
                format!("the batch begins at offset {first}, below the segment's base offset {base}");
            self.found(self.damage(FindingKind::BelowBase, position, offset, detail));
        }
        let fits_before =
            |leap: &Leap| first < leap.first && leap.last.map_or(first >= base, |last| first > last);
        if self.last.is_some_and(|before| first <= before)
            && let Some(leap) = self.leap.take().filter(fits_before)
        {
            // No checksum covers an offset, and without that batch all is in order.
            let Leap { position, first: wrong, .. } = leap;
            let detail = format!(
                "the batch begins at offset {wrong}, the one behind it at {first}, which fits what is before both"
            );
            self.found(self.damage(FindingKind::OffsetOrder, position, Some(wrong), detail));
            (self.last, self.report.start, self.report.end) = (leap.last, leap.start, leap.end);
        }
        if let Some(before) = self.last.filter(|&before| first <= before) {
            let detail = format!("the batch begins at offset {first}, the one before it ends at {before}");
            self.found(self.damage(FindingKind::OffsetOrder, position, offset, detail));
        }
        if last.since(base) > u64::from(i32::MAX.unsigned_abs()) || last.next().is_none() {
            let detail =
                format!("the batch ends at offset {last}, too far above the segment's base offset {base}");
            self.found(self.damage(FindingKind::OffsetRange, position, offset, detail));
        }
        if let Err(error) = header.codec() {
            self.found(self.damage(FindingKind::BadHeader, position, offset, error.to_string()));
        }
        let (count, last_offset_delta) = (header.record_count(), header.last_offset_delta());
        if i64::from(count) > i64::from(last_offset_delta) + 1 {
            let detail = BatchError::BadCount { count, last_offset_delta }.to_string();
            self.found(self.damage(FindingKind::BadHeader, position, offset, detail));
        }
        let epoch = header.leader_epoch();
        if epoch >= 0 {
            if let Some(before) = self.report.last_epoch.filter(|&before| epoch < before) {
                let detail = format!("leader epoch {epoch} follows {before}");
                let mut finding = self.damage(FindingKind::EpochOrder, position, offset, detail);
                finding.severity = Severity::Warning;
                self.found(finding);
            }
            self.report.last_epoch = Some(epoch);
            self.report.epochs.note(epoch, first, first);
        }
        let leaps = self.expected().is_some_and(|expected| first > expected);
        let (start, end) = (self.report.start, self.report.end);
        self.leap = leaps.then_some(Leap { position, first, last: self.last, start, end });
        self.report.start = start.or(offset);
        self.report.end = end.max(last.next());
        self.last = Some(last);
    }
}
