//! What a check is asked and what it answers.

use std::{io, path::PathBuf};

use super::{
    epoch_check::EpochRuns,
    finding::{Finding, FindingKind, Severity},
    txn_check::Seen,
};
use crate::{error::Error, offset::Offset};

/// The most findings kept of one segment: random bytes make one for each entry, and nobody reads them all.
const MAX_FINDINGS: usize = 1000;

/// What to look at beside the batches, whose headers, CRCs and offsets are always checked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Unpack and read every record too.
    pub deep: bool,
    /// Hold the indexes against the batches.
    pub indexes: bool,
    /// From this offset on each segment must begin exactly where the one before ends (a log that was never compacted, above its
    /// writer's recovery point): a gap there is damage. Without it gaps are only noted.
    pub gapless_from: Option<Offset>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self { deep: false, indexes: true, gapless_from: None }
    }
}

/// What was found in a directory, and how much was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// What was found, in the order of the segments and of the bytes in them.
    pub findings: Vec<Finding>,
    /// Findings beyond the first thousand of a segment: counted, not kept.
    pub findings_left_out: u64,
    /// How many of all findings are damage.
    pub damage_count: u64,
    /// How many are warnings.
    pub warning_count: u64,
    /// Segments.
    pub segments: u64,
    /// Batches with a right CRC.
    pub batches: u64,
    /// Records in them, as their headers count them.
    pub records: u64,
    /// Bytes of `.log` files.
    pub bytes: u64,
    /// Bytes that were not checked: of segments that are larger than any log takes.
    pub unchecked_bytes: u64,
    /// Files that could not be opened for want of permission, and batches too large to be unpacked within the limit: not checked.
    pub unread: u64,
    /// The first offset of the first batch.
    pub start: Option<Offset>,
    /// The offset after the last whole batch, or the base offset of the last segment where that is empty.
    pub end: Option<Offset>,
}

impl VerifyReport {
    /// What some of a directory's segments say, each for itself: nothing of what shows only between them. For a check that
    /// was ended early.
    pub fn of_segments(reports: impl IntoIterator<Item = SegmentReport>) -> Self {
        let mut reports: Vec<SegmentReport> = reports.into_iter().collect();
        reports.sort_by_key(|report| report.base);
        let mut whole = Self {
            start: reports.iter().find_map(|report| report.start),
            end: reports.iter().map(|report| report.end.unwrap_or(report.base)).max(),
            ..Self::default()
        };
        for report in reports {
            whole.segments += 1;
            whole.add(report);
        }
        whole
    }

    /// True where nothing is damaged.
    pub const fn is_clean(&self) -> bool {
        self.damage_count == 0
    }

    /// Adds up what one segment's check counted and found.
    pub(super) fn add(&mut self, segment: SegmentReport) {
        self.batches += segment.batches;
        self.records += segment.records;
        self.bytes += segment.bytes;
        self.unchecked_bytes += segment.unchecked_bytes;
        self.take(segment.findings);
    }

    pub(super) fn take(&mut self, findings: Findings) {
        self.damage_count += findings.damage_count;
        self.warning_count += findings.warning_count;
        self.unread += findings.unread;
        self.findings_left_out += findings.left_out;
        self.findings.extend(findings.kept);
    }
}

/// What a check of one segment found; [`Partition::conclude`](super::Partition::conclude) puts them together.
#[derive(Debug)]
pub struct SegmentReport {
    pub(super) base: Offset,
    /// The first batch's offset.
    pub(super) start: Option<Offset>,
    /// The offset after the last sound batch.
    pub(super) end: Option<Offset>,
    pub(super) last_epoch: Option<i32>,
    pub(super) epochs: EpochRuns,
    pub(super) batches: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) unchecked_bytes: u64,
    /// True where damage was found that may have been a moment's view of a writer's work.
    pub(super) is_doubtful: bool,
    /// Offsets between two batches are no batch's: compaction left them out. How many, and after which offset and before
    /// which position the first.
    pub(super) gaps: Option<Gaps>,
    pub(super) transactions: Seen,
    pub(super) findings: Findings,
}

/// Offsets without records between the batches of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gaps {
    pub(super) count: u64,
    pub(super) offsets: u64,
    pub(super) first: Offset,
    pub(super) position: u64,
}

impl SegmentReport {
    /// What was found in this segment alone, as a report: for a segment without its directory.
    pub fn into_report(self) -> VerifyReport {
        VerifyReport::of_segments([self])
    }
}

/// A failed call, as a finding.
pub(super) fn unreadable(error: &Error) -> Finding {
    let (path, detail) = match error {
        Error::Io { op, path, source } => (path.clone(), format!("cannot {op}: {source}")),
        other => (PathBuf::new(), other.to_string()),
    };
    let mut finding = Finding::new(path, FindingKind::Unreadable, Severity::Damage, detail);
    match error {
        // Not being let in says nothing of the bytes.
        Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            finding.severity = Severity::Warning;
        }
        // It was there when the directory was listed: retention took it.
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            finding.severity = Severity::Note;
            finding.kind = FindingKind::Removed;
        }
        _ => {}
    }
    finding
}

/// Findings of one segment, bounded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    left_out: u64,
    damage_count: u64,
    warning_count: u64,
    unread: u64,
}

impl Findings {
    pub(super) const fn damage_count(&self) -> u64 {
        self.damage_count
    }

    pub(super) fn extend(&mut self, finding: Option<Finding>) {
        if let Some(finding) = finding {
            self.push(finding);
        }
    }

    pub(super) fn push(&mut self, finding: Finding) {
        match finding.severity {
            Severity::Damage => self.damage_count += 1,
            Severity::Warning => {
                self.warning_count += 1;
                let is_unread = matches!(finding.kind, FindingKind::Unreadable | FindingKind::Unread);
                self.unread += u64::from(is_unread);
            }
            Severity::Note => {}
        }
        if self.kept.len() < MAX_FINDINGS {
            self.kept.push(finding);
        } else {
            self.left_out += 1;
        }
    }
}
