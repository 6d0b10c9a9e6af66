//! One partition directory: what is in it, each segment checked by itself, and what only shows between them.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    epoch_check::{Contradiction, EpochRuns},
    finding::{Finding, FindingKind, Severity},
    log_file::LogFile,
    report::{Findings, SegmentReport, VerifyOptions, VerifyReport, unreadable},
    segment_check::{SegmentFiles, check_segment},
    sidecar::{EpochCheckpoint, LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, PartitionMetadata},
    small_file::{META_PROPERTIES, OFFSET_CHECKPOINTS, small_file},
    txn_check,
};
use crate::{
    error::{Error, Result},
    log::{CHECKPOINT_NAME, Checkpoint, Found, Point, hints_for, snapshot_flaw, unfinished_copy_of},
    offset::Offset,
    segment::{Fate, FileKind, SegmentFileName, file_name, newest_log},
    sys::{Dir, EntryKind, UNFINISHED_COPY},
};

/// The largest text file that is read: a leader epoch needs some 20 bytes.
const MAX_SIDECAR_BYTES: usize = 16 << 20;

/// A partition directory to be checked. Nothing is locked, nothing is changed.
///
/// The segments can be checked in any order and by several threads: [`Partition::check_segment`] for each, then
/// [`Partition::conclude`]. [`verify`] does it one after the other.
#[derive(Debug)]
pub struct Partition {
    dir: Dir,
    segments: Vec<SegmentFiles>,
    /// Findings of the listing.
    listed: Vec<Finding>,
    total_bytes: u64,
    /// Snapshots of the producers, by the offset in their names.
    snapshots: Vec<Offset>,
    /// What our own checkpoint knew to be durable before the directory was listed.
    known: Option<Checkpoint>,
}

/// What a name in a partition directory is.
enum Name {
    Segment(Offset, FileKind),
    /// Known, and checked elsewhere or not at all.
    Known,
    LeftOver(&'static str),
    Foreign,
}

impl Partition {
    /// Lists the directory. [`Error::NotFound`] where there is none.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        let path = dir.as_ref();
        let dir = Dir::open(path).map_err(|error| {
            if error.is_not_found() { Error::NotFound { path: path.to_owned() } } else { error.into() }
        })?;
        let (segments, mut listed, snapshots) = (Vec::new(), Vec::new(), Vec::new());
        let known = match Checkpoint::load(&dir) {
            Ok(Found::Valid(checkpoint)) => Some(checkpoint),
            Ok(Found::Absent) => None,
            Ok(Found::Damaged(detail)) => {
                let path = dir.path_of(CHECKPOINT_NAME);
                listed.push(Finding::new(path, FindingKind::Checkpoint, Severity::Warning, detail));
                None
            }
            // A newer version's.
            Err(error) => {
                let (path, detail) = (dir.path_of(CHECKPOINT_NAME), error.to_string());
                listed.push(Finding::new(path, FindingKind::Checkpoint, Severity::Warning, detail));
                None
            }
        };
        listed.extend(unfinished_copy(&dir));
        let mut partition = Self { dir, segments, listed, total_bytes: 0, snapshots, known };
        partition.list()?;
        Ok(partition)
    }

    fn list(&mut self) -> Result<()> {
        // A writer may begin segments meanwhile: those are not looked at.
        let newest = newest_log(&self.dir)?;
        let mut entries = self.dir.list()?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let mut logs = BTreeMap::new();
        let mut companions = BTreeMap::new();
        for entry in entries {
            let path = self.dir.path_of(&entry.name);
            match name(&entry.name) {
                Name::Segment(offset, FileKind::Snapshot) if entry.kind == EntryKind::File => {
                    self.snapshots.push(offset);
                }
                Name::Segment(base, kind) if entry.kind == EntryKind::File => {
                    if Some(base) > newest && self.dir.exists(file_name(base, FileKind::Log))? {
                        continue;
                    }
                    if kind == FileKind::Log {
                        self.total_bytes += self.dir.stat(&entry.name)?.map_or(0, |stat| stat.len);
                        logs.insert(base, path);
                    } else {
                        companions.insert((base, kind), path);
                    }
                }
                Name::Segment(_, kind) => {
                    // A link may lead to the segment's bytes: then they are missing here.
                    let is_lost = kind == FileKind::Log && entry.kind == EntryKind::Symlink;
                    let severity = if is_lost { Severity::Damage } else { Severity::Warning };
                    let what = match entry.kind {
                        EntryKind::Dir => "a directory",
                        EntryKind::Symlink => "a symbolic link",
                        _ => "no regular file",
                    };
                    let detail = format!("{what} where a segment's file belongs: not followed");
                    self.listed.push(Finding::new(path, FindingKind::NotAFile, severity, detail));
                }
                Name::Known => {}
                Name::LeftOver(what) => {
                    let detail = format!("{what}: not looked at");
                    self.listed.push(Finding::new(path, FindingKind::LeftOver, Severity::Note, detail));
                }
                Name::Foreign => {
                    let detail = "neither Kafka's nor ours: not looked at".to_owned();
                    self.listed.push(Finding::new(path, FindingKind::ForeignName, Severity::Note, detail));
                }
            }
        }
        let bases: Vec<Offset> = logs.keys().copied().collect();
        let mut next_bases = bases.iter().copied().skip(1);
        for (base, log) in logs {
            let mut take = |kind: FileKind| companions.remove(&(base, kind));
            let (index, time_index) = (take(FileKind::Index), take(FileKind::TimeIndex));
            take(FileKind::TxnIndex);
            self.segments.push(SegmentFiles { base, log, index, time_index, next_base: next_bases.next() });
        }
        for path in companions.into_values() {
            let detail = "there is no .log of this name".to_owned();
            self.listed.push(Finding::new(path, FindingKind::Orphan, Severity::Warning, detail));
        }
        Ok(())
    }

    /// How many segments there are.
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// The number of the segment with this base offset.
    pub fn segment_at(&self, base: Offset) -> Option<usize> {
        self.segments.iter().position(|files| files.base == base)
    }

    /// Up to where somebody has made sure of the log: our own recovery point, else a broker's in the data directory. `None`
    /// where nobody says so.
    pub fn recovery_point(&self) -> Option<Offset> {
        let own = self.known.as_ref().and_then(|known| known.point).map(|point| point.offset);
        own.or_else(|| hints_for(&self.dir).recovery_point)
    }

    /// The numbers of the segments that hold this offset or later ones, the last one always among them.
    pub fn segments_from(&self, offset: Offset) -> Range<usize> {
        let below = |files: &&SegmentFiles| files.next_base.is_some_and(|next| next <= offset);
        self.segments.iter().take_while(below).count()..self.segments.len()
    }

    /// The bytes of one segment's `.log`.
    pub fn segment_bytes(&self, number: usize) -> u64 {
        let name = self.segments.get(number).map(|files| file_name(files.base, FileKind::Log));
        name.and_then(|name| self.dir.stat(name).ok().flatten()).map_or(0, |stat| stat.len)
    }

    pub(super) fn segment(&self, number: usize) -> Option<&SegmentFiles> {
        self.segments.get(number)
    }

    /// The bytes of all `.log` files, for telling how far a check is.
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Checks the segment with this number, from 0 in the order of offsets; `None` past the last. `progress` is told, every few
    /// MiB, how many bytes were checked since it was last called.
    pub fn check_segment(
        &self,
        number: usize,
        options: &VerifyOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Option<SegmentReport> {
        let mut tell = |bytes: u64| {
            progress(bytes);
            true
        };
        check_segment(self.segments.get(number)?, options, None, &mut tell)
    }

    /// Puts the reports of all segments together and checks what only shows between them, and the small files beside.
    pub fn conclude(
        &self,
        reports: impl IntoIterator<Item = SegmentReport>,
        options: &VerifyOptions,
    ) -> VerifyReport {
        let mut reports: Vec<SegmentReport> = reports.into_iter().collect();
        reports.sort_by_key(|report| report.base);
        let mut whole = VerifyReport::default();
        let mut between = Findings::default();
        for finding in &self.listed {
            between.push(finding.clone());
        }
        let mut believed: Vec<&SegmentReport> = Vec::with_capacity(reports.len());
        for (number, report) in reports.iter().enumerate() {
            let before = believed.last().copied();
            if let Some(finding) = self.stray(before, report, reports.get(number + 1)) {
                between.push(finding);
                continue;
            }
            between.extend(before.and_then(|before| self.border(before, report, options)));
            believed.push(report);
        }
        let end = believed.iter().map(|report| report.end.unwrap_or(report.base)).max();
        if options.indexes {
            self.snapshots(&mut between);
            txn_check::check(&self.dir, &reports, &mut between);
        }
        whole.start = reports.iter().find_map(|report| report.start);
        whole.end = end;
        let mut epochs = EpochRuns::default();
        for report in reports {
            epochs.extend(&report.epochs);
            whole.segments += 1;
            whole.add(report);
        }
        between.extend(self.lost_end(whole.end));
        between.extend(self.pending_cut());
        self.sidecars(whole.end, &epochs, &mut between);
        whole.take(between);
        if whole.findings.iter().any(|finding| finding.kind == FindingKind::OldFormat) {
            // A log of the old message formats is read and never written, so no repair works on it.
            whole.findings.iter_mut().for_each(|finding| finding.repairable = false);
        }
        whole
    }

    /// A segment without one batch, whose name says what cannot be; or with batches that all lie where others have theirs.
    fn stray(
        &self,
        before: Option<&SegmentReport>,
        report: &SegmentReport,
        after: Option<&SegmentReport>,
    ) -> Option<Finding> {
        let (base, bytes) = (report.base, report.bytes);
        let found = |detail: String| {
            let path = self.dir.path_of(file_name(base, FileKind::Log));
            let finding = Finding::new(path, FindingKind::StraySegment, Severity::Damage, detail);
            Some(finding.with_offset(Some(base)))
        };
        if report.batches > 0 {
            let after = after.filter(|after| after.batches > 0)?;
            let start = report.start.filter(|start| *start >= after.base)?;
            let next = after.base;
            return found(format!("its batches begin at offset {start}, and the next segment at {next}"));
        }
        if report.unchecked_bytes > 0 {
            return None;
        }
        let is_last = after.is_none();
        let end = before.map(|before| before.end.unwrap_or(before.base));
        let is_unknown = |point: Point| {
            point.base != base
                && self.known.iter().all(|known| known.sealed.iter().all(|sealed| sealed.0 != base))
        };
        let point = self.known.as_ref().and_then(|known| known.point).filter(|_| is_last);
        let reason = match end {
            _ if base.next().is_none() => "no offset follows the one in its name".to_owned(),
            Some(end) if base < end => format!("the segment before it reaches to offset {end}"),
            Some(end) if base > end && point.is_some_and(is_unknown) => {
                format!("the log ends at offset {end}, and no writer began it")
            }
            _ => return None,
        };
        found(format!("no batch in its {bytes} bytes, and {reason}"))
    }

    /// Where the log is to end once a cut that was begun is finished; `None` where none was.
    pub fn pending_cut(&self) -> Option<Finding> {
        let cut = self.known.as_ref()?.cut?;
        let detail = format!(
            "the log is being cut at offset {}, and whoever began that did not finish it; the next open for writing does",
            cut.offset
        );
        let path = self.dir.path_of(CHECKPOINT_NAME);
        let finding = Finding::new(path, FindingKind::PendingCut, Severity::Warning, detail);
        Some(finding.with_offset(Some(cut.offset)))
    }

    /// What is wrong where one segment ends and the next begins.
    fn border(
        &self,
        before: &SegmentReport,
        after: &SegmentReport,
        options: &VerifyOptions,
    ) -> Option<Finding> {
        let path = |report: &SegmentReport| {
            let files = self.segments.iter().find(|files| files.base == report.base);
            files.map_or_else(PathBuf::new, |files| files.log.clone())
        };
        let end = before.end.unwrap_or(before.base);
        if end > after.base {
            let detail = format!("the segment reaches to offset {end}, the next begins at {}", after.base);
            let finding = Finding::new(path(before), FindingKind::SegmentsOverlap, Severity::Damage, detail);
            return Some(finding.with_offset(Some(after.base)));
        }
        if let (Some(then), Some(now)) = (before.last_epoch, after.last_epoch)
            && now < then
        {
            let detail = format!("the segment ends in leader epoch {now}, the one before it in {then}");
            let finding = Finding::new(path(after), FindingKind::EpochOrder, Severity::Warning, detail);
            return Some(finding.with_offset(Some(after.base)));
        }
        if end < after.base {
            let is_hole = options.gapless_from.is_some_and(|from| after.base > from)
                || self.is_listed_between(before, after);
            let severity = if is_hole { Severity::Damage } else { Severity::Note };
            let detail = format!("no records from offset {end} up to the next segment's {}", after.base);
            let finding = Finding::new(path(before), FindingKind::OffsetGap, severity, detail);
            return Some(finding.with_offset(Some(end)));
        }
        None
    }

    /// Records that our checkpoint knew to be durable, behind the end of what is there.
    fn lost_end(&self, end: Option<Offset>) -> Option<Finding> {
        let known = self.known.as_ref()?;
        let end = end.unwrap_or(Offset::ZERO);
        if end >= known.known_end {
            return None;
        }
        let path = self.segments.last().map_or_else(|| self.dir.path().to_owned(), |files| files.log.clone());
        let detail = format!("the log ends at offset {end}; records up to {} were durable", known.known_end);
        let finding = Finding::new(path, FindingKind::LostRecords, Severity::Damage, detail);
        Some(finding.with_offset(Some(end)))
    }

    /// True where our checkpoint lists a segment between these two, which are just as it lists them: then nobody has
    /// compacted here, and it is missing.
    fn is_listed_between(&self, before: &SegmentReport, after: &SegmentReport) -> bool {
        let Some(known) = &self.known else { return false };
        let is_as_listed = |report: &SegmentReport| {
            let stat = self.dir.stat(file_name(report.base, FileKind::Log)).ok().flatten();
            let listed =
                known.sealed.iter().find(|(base, _)| *base == report.base).map(|(_, length)| *length);
            let is_active = known.point.is_some_and(|point| point.base == report.base);
            is_active || (listed.is_some() && listed == stat.map(|stat| stat.len))
        };
        let missing = known.sealed.iter().any(|(base, _)| *base > before.base && *base < after.base);
        missing && is_as_listed(before) && is_as_listed(after)
    }

    /// Snapshots that cannot be read.
    fn snapshots(&self, findings: &mut Findings) {
        for offset in &self.snapshots {
            if let Some(detail) = snapshot_flaw(&self.dir, *offset) {
                let path = self.dir.path_of(file_name(*offset, FileKind::Snapshot));
                findings.push(Finding::new(path, FindingKind::Snapshot, Severity::Warning, detail));
            }
        }
    }

    /// The small files beside the segments.
    fn sidecars(&self, end: Option<Offset>, epochs: &EpochRuns, findings: &mut Findings) {
        if let Some(text) = self.read_small(LEADER_EPOCH_CHECKPOINT, findings) {
            let warn = |detail: String| {
                let path = self.dir.path_of(LEADER_EPOCH_CHECKPOINT);
                Finding::new(path, FindingKind::EpochCheckpoint, Severity::Warning, detail)
            };
            match EpochCheckpoint::parse(&text) {
                Err(reason) => findings.push(warn(reason)),
                Ok(checkpoint) => {
                    if let Some([(epoch, start), (next, next_start)]) = checkpoint.disorder() {
                        findings.push(warn(format!(
                            "epoch {next} from offset {next_start} stands behind epoch {epoch} from {start}"
                        )));
                    } else if let Some(found) = epochs.contradiction(&checkpoint.entries) {
                        let Contradiction { batch, epoch, named: (named, start) } = found;
                        let detail = format!(
                            "epoch {named} from offset {start} on, but the batch at {batch} is of epoch {epoch}"
                        );
                        findings.push(warn(detail).with_offset(Some(batch)));
                    }
                    let beyond =
                        checkpoint.entries.iter().find(|(_, start)| end.is_some_and(|end| *start > end));
                    if let (Some((epoch, start)), Some(end)) = (beyond, end) {
                        findings.push(warn(format!(
                            "epoch {epoch} begins at offset {start}, the log ends at {end}"
                        )));
                    }
                }
            }
        }
        if let Some(text) = self.read_small(PARTITION_METADATA, findings)
            && let Err(reason) = PartitionMetadata::parse(&text)
        {
            let path = self.dir.path_of(PARTITION_METADATA);
            findings.push(Finding::new(path, FindingKind::PartitionMetadata, Severity::Warning, reason));
        }
    }

    fn read_small(&self, name: &str, findings: &mut Findings) -> Option<Vec<u8>> {
        match self.dir.read_small(name, MAX_SIDECAR_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                let mut finding = unreadable(&error.into());
                finding.severity = Severity::Warning;
                findings.push(finding);
                None
            }
        }
    }
}

/// What is wrong with the small files of a data directory, which tell of its partitions. Nothing of the partitions themselves.
pub fn verify_data_directory(dir: impl AsRef<Path>) -> Result<Vec<Finding>> {
    let dir = Dir::open(dir.as_ref())?;
    let mut findings: Vec<_> = unfinished_copy(&dir).into_iter().collect();
    for name in OFFSET_CHECKPOINTS.into_iter().chain([META_PROPERTIES]) {
        let path = dir.path_of(name);
        let mut warn = |detail: String| {
            let mut finding = Finding::new(&path, FindingKind::Checkpoint, Severity::Warning, detail);
            finding.repairable = name != META_PROPERTIES;
            findings.push(finding);
        };
        if !dir.exists(name)? {
            continue;
        }
        match small_file(&path) {
            Ok(read) => read.and_then(|read| read.wrong).into_iter().for_each(&mut warn),
            Err(error) => warn(error.to_string()),
        }
    }
    Ok(findings)
}

/// Checks one file of record batches by itself, whatever its name: bytes that a repair cut off, a stream that was exported, a
/// segment without its directory. `None` where there is no whole batch in it.
///
/// What is only wrong beside other files does not show: indexes are not looked at, and nothing is told of the offsets before
/// the first batch. An error means that the file cannot be opened or read.
pub fn verify_file(path: impl AsRef<Path>, options: &VerifyOptions) -> Result<Option<VerifyReport>> {
    let path = path.as_ref();
    let Some(base) = LogFile::open(path)?.first_offset(u64::MAX)? else { return Ok(None) };
    let files = SegmentFiles { base, log: path.to_owned(), index: None, time_index: None, next_base: None };
    let options = VerifyOptions { indexes: false, ..options.clone() };
    Ok(check_segment(&files, &options, None, &mut |_| true).map(SegmentReport::into_report))
}

/// Checks a whole partition directory, one segment after the other.
///
/// Every class of damage is a finding and none stops the check; an error means that the directory itself cannot be read. `progress` is
/// told, every few MiB, how many bytes were checked since it was last called.
pub fn verify(
    dir: impl AsRef<Path>,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<VerifyReport> {
    let partition = Partition::open(dir)?;
    let mut reports = Vec::with_capacity(partition.segment_count());
    for number in 0..partition.segment_count() {
        reports.extend(partition.check_segment(number, options, progress));
    }
    Ok(partition.conclude(reports, options))
}

/// The mark of a copy that is not finished.
fn unfinished_copy(dir: &Dir) -> Option<Finding> {
    let detail = match unfinished_copy_of(dir) {
        Ok(of) => {
            format!("of {}: files of it may be missing; `logctl copy --resume` finishes it", of?.display())
        }
        Err(error) => error.to_string(),
    };
    let path = dir.path_of(UNFINISHED_COPY);
    Some(Finding::new(path, FindingKind::UnfinishedCopy, Severity::Damage, detail))
}

/// What a name says of the file.
fn name(name: &OsStr) -> Name {
    if let Some(file) = SegmentFileName::parse(name) {
        return match (file.fate, file.kind) {
            (None, kind) => Name::Segment(file.base, kind),
            (Some(Fate::Deleted), _) => Name::LeftOver("waits for its deletion"),
            (Some(Fate::Cleaned), _) => Name::LeftOver("a compaction that was not finished"),
            (Some(Fate::Swap), _) => Name::LeftOver(
                "a compaction's result, not yet in its place: Kafka takes it in at its next start",
            ),
        };
    }
    let Some(name) = name.to_str() else { return Name::Foreign };
    match name.rsplit_once('.').map(|(_, suffix)| suffix) {
        // Our own private files begin like this, and nothing of Kafka's does.
        _ if name.starts_with(".stratalog-") => Name::Known,
        _ if matches!(name, LEADER_EPOCH_CHECKPOINT | PARTITION_METADATA | ".lock" | "quorum-state") => {
            Name::Known
        }
        Some("tmp") => Name::LeftOver("a rewrite that was not finished"),
        // A snapshot of the cluster's metadata: `OFFSET-EPOCH.checkpoint`.
        Some("checkpoint") if name.starts_with(|c: char| c.is_ascii_digit()) => Name::Known,
        _ => Name::Foreign,
    }
}
