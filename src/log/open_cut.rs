//! Opening a log and cutting its newest records off, published ones too, because somebody asks for it.

use std::{path::Path, sync::Arc};

use super::{
    buffer::append_pool,
    checkpoint::{CHECKPOINT_NAME, Checkpoint, CutRecord, Found, Point},
    control::ControlPage,
    cut, keeper, open,
    open_segments::OpenSegments,
    recovery::mark_of,
    report::Cut,
    writer::{LogWriter, Parts},
};
use crate::{
    config::LogConfig,
    error::{Error, Result},
    offset::Offset,
    segment::{Scan, Tail, corruption, unsupported},
    sys::Open,
};

impl LogWriter {
    /// Opens the log and cuts everything from `end` on, published and durable records too. A new leader epoch begins, by
    /// which readers that had passed the cut are told ([`Error::Truncated`]); what they have open they can go on reading.
    ///
    /// What is cut is kept in the directory ([`RecoveryReport::cut`](crate::RecoveryReport::cut) names the files). After a
    /// crash at any moment the log is as it was before, or the cut is finished by the next open. `end` must lie between
    /// two batches ([`Error::InsideBatch`]) and within the log ([`Error::OffsetOutOfRange`]); the log's end itself cuts
    /// nothing. Where offsets are missing before `end`, the log ends with the last record before them. Fails with
    /// [`Error::StorageFull`] and nothing changed where there is no room to copy what is kept and what is cut of the
    /// segment that holds `end`.
    pub fn open_cut(dir: impl AsRef<Path>, config: LogConfig, end: Offset) -> Result<Self> {
        config.validate()?;
        let parts = open_cut(dir.as_ref(), &config, end)?;
        Ok(Self::over(parts, append_pool(&config), config))
    }
}

/// Opens the log as always, with everything from `end` on cut off.
fn open_cut(path: &Path, config: &LogConfig, end: Offset) -> Result<Parts> {
    let mut parts = open::open(path, config)?;
    let (start, old_end) = (parts.shared.start(), parts.end.offset);
    if end == old_end {
        return Ok(parts);
    }
    if end < start || end > old_end {
        return Err(Error::OffsetOutOfRange { requested: end, start, end: old_end });
    }
    let place = border_at(&parts, end)?;
    if place.offset < start {
        // A gap at the start: the log would end before it begins.
        return Err(Error::OffsetOutOfRange { requested: end, start, end: old_end });
    }
    let Found::Valid(mut checkpoint) = Checkpoint::load(&parts.shared.dir)? else {
        return Err(no_point(&parts));
    };
    if checkpoint.point.is_none_or(|point| point.offset != old_end) {
        return Err(no_point(&parts));
    }
    let record = CutRecord {
        offset: place.offset,
        epoch: parts.epoch.saturating_add(1),
        base: place.base,
        position: place.position,
        replaces: true,
    };
    let dir = Arc::clone(&parts.shared.dir);
    if parts.is_untouched {
        keeper::begin_changes(&dir, parts.locks.data_dir.as_ref(), config)?;
        checkpoint.clean = false;
    }
    if let Some(data_dir) = &parts.locks.data_dir {
        data_dir.lower_recovery_point(place.offset)?;
    }
    // Says `opening`: readers of other processes keep what they saw.
    let control = ControlPage::open(&dir, config.file_mode);
    let cut = cut::begin_replacing(&dir, config, (&mut checkpoint, &control), record, place)?;
    tracing::info!(dir = %path.display(), offset = %cut.offset, bytes = cut.bytes, "log cut");
    let mut report = std::mem::take(&mut parts.report);
    let mut parts = open::open_locked(&dir, parts.locks, &OpenSegments::of_one_log(), config)?;
    if let Some(first) = report.cut.replace(cut) {
        let Cut { bytes, offset, reason, was_asked_for, .. } = first;
        let what = if was_asked_for { "" } else { " did not check and" };
        report
            .warnings
            .push(format!("{bytes} bytes from offset {offset} on{what} were cut before: {reason}"));
    }
    report.rebuilt.append(&mut parts.report.rebuilt);
    report.warnings.append(&mut parts.report.warnings);
    report.clean = false;
    parts.report = report;
    parts.is_untouched = false;
    Ok(parts)
}

/// The place between two batches at which everything from `end` on begins.
fn border_at(parts: &Parts, end: Offset) -> Result<Point> {
    let segments = parts.shared.segments();
    let holder = segments.partition_point(|segment| segment.base() <= end).saturating_sub(1);
    let Some(segment) = segments.get(holder) else { return Err(Error::Closed) };
    let base = segment.base();
    let mut place = Point { offset: base, base, position: 0, batch: None };
    if end == base {
        return Ok(place);
    }
    let file = parts.shared.dir.open_file(segment.log_name(), Open::Read)?;
    let mut scan = Scan::new(&file, base, 0, base)?.until(u64::from(segment.end().position));
    while place.offset < end {
        match scan.next_batch()? {
            Ok(batch) if batch.header.is_legacy() => return Err(unsupported(&file, batch.header.magic())),
            Ok(batch) if batch.header.base_offset() >= end => break,
            Ok(batch) if batch.header.last_offset() >= end => {
                let (first, last) = (batch.header.base_offset(), batch.header.last_offset());
                return Err(Error::InsideBatch { offset: end, first, last });
            }
            Ok(batch) => {
                let batch_mark = Some(mark_of(&batch.header));
                place = Point { offset: scan.next_offset(), base, position: batch.end(), batch: batch_mark };
            }
            Err(Tail::Clean | Tail::Zeros) => break,
            // Where it ends is not known.
            Err(Tail::Bad(reason)) => {
                return Err(corruption(&file, scan.position(), Some(scan.next_offset()), reason).into());
            }
        }
    }
    Ok(place)
}

/// A cut needs a recovery point at the end, and none could be written.
fn no_point(parts: &Parts) -> Error {
    let path = parts.shared.dir.path_of(CHECKPOINT_NAME);
    let source = std::io::Error::other(parts.report.warnings.join("; "));
    Error::Io { op: "rely on", path, source }
}
