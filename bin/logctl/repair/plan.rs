//! What a repair would do, decided from what a check found and from what the library would drop.

use std::{
    fs,
    path::{Path, PathBuf},
};

use stratalog::{
    Offset, RepairOptions, RepairPlan,
    inspect::{Finding, FindingKind, LogFile, Piece, Severity, Tail, VerifyReport},
    repair_plan,
};

use crate::failure::Failure;

/// What was asked for beside what damage asks for.
pub(super) struct Asked {
    pub(super) truncate_tail: bool,
    pub(super) rebuild_index: bool,
}

/// What would be done to a partition.
pub(super) struct Plan {
    /// In the order of the log.
    pub(super) steps: Vec<Step>,
    /// The log is to end here.
    pub(super) cut_at: Option<Offset>,
    /// Only once the rest is done: an open for a cut would itself cut where one offset or name is wrong.
    pub(super) cuts_last: bool,
    /// Sound batches that go.
    drop_batches: Vec<Offset>,
    rebuild_index: bool,
}

/// One thing that would be done.
pub(super) struct Step {
    /// A stable word for scripts.
    pub(super) action: &'static str,
    pub(super) file: PathBuf,
    pub(super) position: Option<u64>,
    pub(super) offset: Option<i64>,
    pub(super) bytes: u64,
    /// What goes with it: of a cut that takes sound batches too.
    pub(super) behind: Option<Behind>,
    pub(super) why: String,
}

/// What is cut beside bytes that are no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Behind {
    /// Records that can be read.
    pub(super) records: u64,
    /// The offset after the last of them.
    pub(super) next: Offset,
}

impl Step {
    fn of_file(action: &'static str, file: impl Into<PathBuf>, why: String) -> Self {
        Self { action, file: file.into(), position: None, offset: None, bytes: 0, behind: None, why }
    }
}

impl Plan {
    /// What the library is to be told.
    pub(super) fn repair_options(&self) -> RepairOptions {
        let mut options = RepairOptions::default();
        options.drop_batches.clone_from(&self.drop_batches);
        options.rebuild_indexes = self.rebuild_index;
        options
    }
}

/// Decides about one partition. `drop_batches` are offsets that somebody named.
pub(super) fn of_partition(
    path: &Path,
    found: &VerifyReport,
    drop_batches: &[Offset],
    asked: &Asked,
) -> Result<Plan, Failure> {
    let unreadable = unreadable_batches(found)?;
    let mut options = RepairOptions::default();
    options.drop_batches = drop_batches.to_vec();
    options.drop_batches.extend(unreadable.iter().filter_map(|finding| finding.offset));
    options.rebuild_indexes = asked.rebuild_index;
    let drops = repair_plan(path, &options)?;
    if let Some(absent) = drops.not_found.iter().find(|offset| drop_batches.contains(offset)) {
        return Err(Failure::not_found(format!("{}: no batch holds offset {absent}", path.display()))
            .hint("`logctl get OFFSET --batch` and `logctl dump` show batches; what cannot be read goes without being named"));
    }
    let mut plan = Plan {
        steps: Vec::new(),
        cut_at: None,
        cuts_last: found.findings.iter().any(|finding| misleads(finding.kind)),
        drop_batches: Vec::new(),
        rebuild_index: asked.rebuild_index,
    };
    plan.cut_at = cut_at(&drops, found, asked.truncate_tail);
    for dropped in drops.dropped.iter().filter(|dropped| dropped.asked_for) {
        if plan.cut_at.is_none_or(|end| dropped.offset < end) {
            plan.drop_batches.push(dropped.offset);
        } else if drop_batches.iter().any(|named| *named >= dropped.offset) {
            let end = dropped.offset;
            return Err(Failure::usage(format!(
                "{}: the log's last batch is cut, not dropped",
                path.display()
            ))
            .hint(format!("`logctl truncate {} --to {end}` cuts it", path.display())));
        }
    }
    plan.steps = steps(found, &drops, &unreadable, plan.cut_at);
    let pending = found.findings.iter().find(|finding| finding.kind == FindingKind::PendingCut);
    if let Some(end) = pending.and_then(|finding| finding.offset) {
        // What lies behind goes with it.
        plan.steps.retain(|step| step.offset.is_none_or(|offset| offset < end.value()));
        plan.cut_at = plan.cut_at.filter(|cut| *cut < end);
    }
    if asked.truncate_tail {
        for step in plan.steps.iter_mut().filter(|step| step.action == "cut") {
            measure_cut(path, step)?;
        }
    }
    if asked.rebuild_index {
        plan.steps.push(Step::of_file("rebuild", path, "all indexes: that was asked for".to_owned()));
    }
    Ok(plan)
}

/// Of what makes an open take sound batches for ones that must not stand where they do.
const fn misleads(kind: FindingKind) -> bool {
    matches!(kind, FindingKind::OffsetOrder | FindingKind::SegmentsOverlap | FindingKind::StraySegment)
}

/// What would be done to the small files of a data directory.
pub(super) fn of_data_directory(findings: &[Finding]) -> Vec<Step> {
    let repairable = findings.iter().filter(|finding| finding.repairable);
    repairable
        .map(|finding| {
            let why = format!("{}: {}; what it said is lost", finding.kind, finding.detail);
            Step::of_file("rebuild", &finding.file, why)
        })
        .collect()
}

/// Batches whose checksum is right and that nobody can read: found by their headers, or by a deep check.
fn unreadable_batches(found: &VerifyReport) -> Result<Vec<&Finding>, Failure> {
    let mut unreadable = Vec::new();
    for finding in &found.findings {
        let is_of_records = matches!(finding.kind, FindingKind::BadHeader | FindingKind::BadRecords);
        let Some(position) =
            finding.position.filter(|_| is_of_records && finding.severity == Severity::Damage)
        else {
            continue;
        };
        // Bytes that are no batch at all can have a bad header too.
        let log = LogFile::open(&finding.file)?;
        let is_batch = matches!(
            log.pieces_from(position, log.len_bytes()).next_piece()?,
            Some(Piece::Batch(entry)) if entry.crc_ok() && Some(entry.header.base_offset()) == finding.offset
        );
        if is_batch {
            unreadable.push(finding);
        }
    }
    Ok(unreadable)
}

/// Where the log is to end: at the first batch that cannot be read, where that was asked for, be it that it is torn or that it
/// is gone; else at the first of the batches that would be dropped from its very end, whose offsets must not be given again
/// in the same epoch.
fn cut_at(drops: &RepairPlan, found: &VerifyReport, truncates: bool) -> Option<Offset> {
    if truncates {
        let is_short = found.findings.iter().any(|finding| finding.kind == FindingKind::LostRecords);
        let first = drops.dropped.first().map(|first| first.offset);
        return first.or(is_short.then_some(drops.end));
    }
    let mut end = drops.end;
    let mut cut = None;
    for dropped in drops.dropped.iter().rev().filter(|dropped| dropped.next.is_some()) {
        if !dropped.asked_for || dropped.next != Some(end) {
            break;
        }
        (end, cut) = (dropped.offset, Some(dropped.offset));
    }
    cut
}

/// Makes a cut tell all that goes: its own bytes, and those of everything behind them.
fn measure_cut(dir: &Path, step: &mut Step) -> Result<(), Failure> {
    let Some(position) = step.position else { return Ok(()) };
    let fail = |error| Failure::io("list", dir.display(), &error);
    let mut logs = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let digits = name.strip_suffix(".log").unwrap_or_default();
        let is_segment = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
        // Names of one length sort as their numbers.
        if is_segment && path.file_name() >= step.file.file_name() {
            logs.push(path);
        }
    }
    logs.sort();
    let begin = step.offset.and_then(Offset::new).unwrap_or_default();
    let (mut bytes, mut behind): (u64, Option<Behind>) = (0, None);
    for path in logs {
        let log = LogFile::open(&path)?;
        let from = if path.file_name() == step.file.file_name() { position } else { 0 };
        let is_first = path.file_name() == step.file.file_name();
        let mut pieces = log.pieces_from(from, log.len_bytes());
        while let Some(piece) = pieces.next_piece()? {
            let Piece::Batch(entry) = piece else { continue };
            let next = behind.map_or(begin, |behind| behind.next);
            // Not the bad one itself, whose checksum may be right, nor what stands at offsets that are taken.
            let is_bad = is_first && entry.position == position;
            if entry.crc_ok() && !is_bad && entry.header.base_offset() >= next {
                let found = behind.get_or_insert(Behind { records: 0, next });
                found.records += u64::from(entry.header.record_count().max(0).unsigned_abs());
                found.next = entry.header.last_offset().next().unwrap_or(next);
            }
        }
        let reserved = match pieces.tail() {
            Some(Tail::Zeros { size_bytes, .. }) => *size_bytes,
            _ => 0,
        };
        bytes += log.len_bytes().saturating_sub(from).saturating_sub(reserved);
    }
    (step.bytes, step.behind) = (bytes, behind);
    Ok(())
}

/// In the order of the log.
fn steps(
    found: &VerifyReport,
    drops: &RepairPlan,
    unreadable: &[&Finding],
    cut_at: Option<Offset>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for (from, to) in &drops.renamed {
        let to = to.file_name().unwrap_or_default().to_string_lossy();
        steps.push(Step::of_file("rename", from, format!("its batches begin at another offset: {to}")));
    }
    for stray in &drops.removed {
        let step = Step::of_file("remove", &stray.path, stray.reason.clone());
        steps.push(Step { bytes: stray.bytes, ..step });
    }
    for bad in &drops.dropped {
        let is_end = cut_at.is_some_and(|end| bad.offset >= end);
        let flaw = unreadable
            .iter()
            .find(|finding| finding.file == bad.path && finding.position == Some(bad.position));
        let reason = flaw.map_or(&bad.reason, |finding| &finding.detail);
        let why = match bad.next {
            Some(next) if !is_end && next > bad.offset && !bad.asked_for => {
                format!("{reason}; offsets {} up to {next} cannot be read", bad.offset)
            }
            _ => reason.clone(),
        };
        steps.push(Step {
            action: if is_end || bad.next.is_none() { "cut" } else { "drop" },
            file: bad.path.clone(),
            position: Some(bad.position),
            offset: Some(bad.offset.value()),
            bytes: bad.bytes,
            behind: None,
            why,
        });
        if is_end {
            break;
        }
    }
    let goes = |finding: &Finding| {
        drops.removed.iter().any(|stray| stray.path.file_stem() == finding.file.file_stem())
    };
    for finding in found.findings.iter().filter(|finding| !goes(finding)) {
        let action = match finding.kind {
            FindingKind::Untrimmed => "trim",
            FindingKind::IndexLength
            | FindingKind::IndexOrder
            | FindingKind::IndexPosition
            | FindingKind::IndexOffset
            | FindingKind::TimeIndexOffset
            | FindingKind::TimeIndexTimestamp
            | FindingKind::TimeIndexEnd
            | FindingKind::MissingIndex
            | FindingKind::TxnIndex
            | FindingKind::EpochCheckpoint
            | FindingKind::Checkpoint => "rebuild",
            FindingKind::Orphan | FindingKind::Snapshot => "remove",
            FindingKind::PendingCut => "finish-cut",
            // The log ends before them then, and a new epoch says so.
            FindingKind::LostRecords if cut_at.is_some() => "cut",
            FindingKind::LostRecords => "leave-gap",
            _ => continue,
        };
        if action == "cut" && steps.iter().any(|step| step.action == action) {
            continue;
        }
        let is_told = |step: &Step| step.action == action && step.file == finding.file;
        if finding.severity != Severity::Note && !steps.iter().any(is_told) {
            let why = format!("{}: {}", finding.kind, finding.detail);
            steps.push(Step::of_file(action, &finding.file, why));
        }
    }
    steps
}
