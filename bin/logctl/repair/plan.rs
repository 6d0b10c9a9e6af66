//! What a repair would do, decided from what a check found and from what the library would drop.

use std::path::{Path, PathBuf};

use stratalog::{
    Offset, RepairOptions, RepairPlan,
    inspect::{Finding, FindingKind, LogFile, Piece, Severity, VerifyReport},
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
    pub(super) why: String,
}

impl Step {
    fn of_file(action: &'static str, file: impl Into<PathBuf>, why: String) -> Self {
        Self { action, file: file.into(), position: None, offset: None, bytes: 0, why }
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
        drop_batches: Vec::new(),
        rebuild_index: asked.rebuild_index,
    };
    plan.cut_at = cut_at(&drops, asked.truncate_tail);
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
    if asked.rebuild_index {
        plan.steps.push(Step::of_file("rebuild", path, "all indexes: that was asked for".to_owned()));
    }
    Ok(plan)
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

/// Where the log is to end: at the first damage with something behind it, where that was asked for; else at the first of the
/// batches that would be dropped from its very end, whose offsets must not be given again in the same epoch.
fn cut_at(drops: &RepairPlan, truncates: bool) -> Option<Offset> {
    if truncates {
        return drops.dropped.first().filter(|first| first.next.is_some()).map(|first| first.offset);
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
    for bad in &drops.dropped {
        let is_end = cut_at.is_some_and(|end| bad.offset >= end);
        let flaw = unreadable
            .iter()
            .find(|finding| finding.file == bad.path && finding.position == Some(bad.position));
        let reason = flaw.map_or(&bad.reason, |finding| &finding.detail);
        let why = match bad.next {
            Some(_) if is_end && !bad.asked_for => format!("{reason}; all that follows goes too"),
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
            why,
        });
        if is_end {
            break;
        }
    }
    for finding in &found.findings {
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
            FindingKind::LostRecords => "note-loss",
            _ => continue,
        };
        let is_told = |step: &Step| step.action == action && step.file == finding.file;
        if finding.severity != Severity::Note && !steps.iter().any(is_told) {
            let why = format!("{}: {}", finding.kind, finding.detail);
            steps.push(Step::of_file(action, &finding.file, why));
        }
    }
    steps
}
