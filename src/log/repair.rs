//! Dropping what cannot be read: segments are written anew without it, and it is kept aside.
//!
//! Not what opening does by itself: below what was known durable that one cuts nothing and serves the rest, since a
//! damaged batch is a loss that somebody has to look at. Whoever asks for a repair has looked.
//!
//! The order for each segment: the bad bytes are copied aside, the good ones to a private name, both synced -> the
//! indexes go, which name positions of the old file -> the new file takes the old one's place -> the directory is synced.
//! Before the first of them the recovery points are taken back, ours and a broker's: they vouch for files that are in
//! doubt. A crash in between leaves some segments mended and the others as they were.

use std::{ops::Range, path::Path, sync::Arc};

use super::{
    buffer::append_pool,
    checkpoint::{Checkpoint, Found},
    epochs::Epochs,
    examine::{Dropped, Examined, RepairOptions, copy, examine_all},
    keeper, open,
    open_segments::OpenSegments,
    producers::snapshot_flaw,
    summary::SUMMARY_NAME,
    survey::{PRIVATE_PREFIX, Survey},
    writer::{LogWriter, Parts},
};
use crate::{
    config::LogConfig,
    error::{Error, Result},
    offset::Offset,
    segment::{FileKind, file_name},
    sys::{Dir, File, Open},
};

const BLOCK_BYTES: usize = 1 << 20;
/// A segment's new file. Left by a crash it goes with the next open.
const MENDED_NAME: &str = ".stratalog-repair.new";

impl LogWriter {
    /// Opens the log without what cannot be read in it. Every batch that can be read stays, at its offset, those behind
    /// the damage too; bytes before the first damage are not touched; what is dropped is kept in the directory
    /// ([`RecoveryReport::dropped`](crate::RecoveryReport::dropped)). Damage at the log's very end is cut, as by any
    /// open: the next record takes that offset, in a new leader epoch. Indexes and leader epochs are made to fit.
    ///
    /// Records that were durable and are dropped leave a gap in the offsets. Reads every batch of the log, twice.
    pub fn open_repaired(dir: impl AsRef<Path>, config: LogConfig) -> Result<Self> {
        Self::open_repaired_with(dir, config, &RepairOptions::default())
    }

    /// The same, doing more where that is asked for. [`repair_plan`](crate::repair_plan) tells beforehand.
    ///
    /// [`Error::InvalidConfig`] where the log's last batch is asked for: [`LogWriter::open_cut`] cuts it.
    pub fn open_repaired_with(
        dir: impl AsRef<Path>,
        config: LogConfig,
        options: &RepairOptions,
    ) -> Result<Self> {
        config.validate()?;
        let parts = open_repaired(dir.as_ref(), &config, options)?;
        Ok(Self::over(parts, append_pool(&config), config))
    }
}

fn open_repaired(path: &Path, config: &LogConfig, options: &RepairOptions) -> Result<Parts> {
    let (dir, locks) = open::lock_existing(path, config)?;
    let stored = match Checkpoint::load(&dir)? {
        Found::Valid(checkpoint) => Some(checkpoint),
        _ => None,
    };
    if stored.as_ref().is_some_and(|checkpoint| checkpoint.cut.is_some()) {
        // The cut first: what it takes away need not be mended.
        let parts = open::open_locked(&dir, locks, &OpenSegments::of_one_log(), config)?;
        let dir = Arc::clone(&parts.shared.dir);
        return repair(&dir, parts.locks, config, options);
    }
    repair(&dir, locks, config, options)
}

fn repair(dir: &Arc<Dir>, locks: open::Locks, config: &LogConfig, options: &RepairOptions) -> Result<Parts> {
    let mut examined = examine_all(dir, options)?;
    if examined.iter().rfind(|examined| examined.removed.is_none()).is_some_and(Examined::drops_its_end) {
        let reason = "the log's last batch is cut, not dropped".to_owned();
        return Err(Error::InvalidConfig { name: "drop_batches", reason });
    }
    let strays: Vec<Examined> = examined.extract_if(.., |examined| examined.removed.is_some()).collect();
    let end = examined.last().map(|last| last.end);
    examined.retain(|examined| !examined.bad.is_empty() || examined.base != examined.log.base);
    let mut dropped = Vec::new();
    // Nothing is believed but the batches: everything is scanned, and what does not fit them is built anew.
    keeper::begin_changes(dir, locks.data_dir.as_ref(), config)?;
    if let Some(data_dir) = &locks.data_dir {
        data_dir.lower_recovery_point(Offset::ZERO)?;
    }
    // The checkpoint speaks of none of them: without them it is as true as before.
    dropped.extend(remove(dir, config, strays, end)?);
    if let Found::Valid(mut checkpoint) = Checkpoint::load(dir)? {
        // It keeps the start, and the end below which no offset is given again.
        checkpoint.point = None;
        checkpoint.sealed.clear();
        checkpoint.producers = None;
        checkpoint.store(dir, config.file_mode)?;
    }
    // A segment that becomes shorter may grow to the length that they know it by.
    dir.remove(SUMMARY_NAME)?;
    remove_hints(dir, options)?;
    for segment in &mut examined {
        rename(dir, segment)?;
        mend(dir, config, segment)?;
        dropped.extend(segment.bad.drain(..).filter(|bad| bad.kept_in.is_some()));
    }
    let mut parts = open::open_locked(dir, locks, &OpenSegments::of_one_log(), config)?;
    parts.is_untouched = false;
    parts.report.dropped = dropped;
    rebuild_epochs(&mut parts, config)?;
    Ok(parts)
}

/// Opening holds the leader epochs against the last batch only.
fn rebuild_epochs(parts: &mut Parts, config: &LogConfig) -> Result<()> {
    let shared = &parts.shared;
    let known = shared.epochs.read().clone();
    let range = (shared.start(), parts.end.offset);
    let found = open::epochs_of_batches(&shared.segments(), range, &known)?;
    if found == known || found.latest().is_none() {
        return Ok(());
    }
    let latest = shared.change_epochs(config.file_mode, |epochs| {
        *epochs = found;
        true
    })?;
    parts.epoch = parts.epoch.max(latest.unwrap_or(0));
    Ok(())
}

/// Snapshots that cannot be read, and indexes that are to be built anew.
fn remove_hints(dir: &Dir, options: &RepairOptions) -> Result<()> {
    for (base, kind) in Survey::take(dir)?.sidecars {
        let goes = match kind {
            FileKind::Snapshot => snapshot_flaw(dir, base).is_some(),
            FileKind::Index | FileKind::TimeIndex => options.rebuild_indexes,
            _ => false,
        };
        if goes {
            dir.remove(file_name(base, kind))?;
        }
    }
    Ok(())
}

/// Takes whole segments away, and keeps what is in them. What comes to stand where the log ends without them is of a new
/// leader epoch: their names may have been given out.
fn remove(dir: &Dir, config: &LogConfig, strays: Vec<Examined>, end: Option<Offset>) -> Result<Vec<Dropped>> {
    let ends_log = |end: &Offset| strays.last().is_some_and(|last| last.log.base > *end);
    if let Some(end) = end.filter(ends_log) {
        let mut epochs = Epochs::load(dir).unwrap_or_default();
        if let Some(latest) = epochs.latest() {
            epochs.truncate_from_end(end);
            epochs.assign(latest.saturating_add(1), end);
            epochs.store(dir, config.file_mode)?;
        }
    }
    let mut kept = Vec::new();
    for stray in strays {
        let Some(mut removed) = stray.removed else { continue };
        let base = stray.log.base;
        let name = file_name(base, FileKind::Log);
        for kind in FileKind::SIDECARS {
            dir.remove(file_name(base, kind))?;
        }
        if removed.bytes == 0 {
            dir.remove(&name)?;
        } else {
            let to = free_name(dir, base, 0)?;
            dir.rename_new(&name, &to)?;
            removed.kept_in = Some(dir.path_of(to));
            kept.push(removed);
        }
        dir.sync()?;
        tracing::warn!(segment = %name, "a segment that fits nowhere was taken away");
    }
    Ok(kept)
}

/// Gives a segment the name that its batches say. Its indexes count from the old one.
fn rename(dir: &Dir, segment: &mut Examined) -> Result<()> {
    let (from, to) = (segment.log.base, segment.base);
    if from == to {
        return Ok(());
    }
    for kind in FileKind::SIDECARS {
        dir.remove(file_name(from, kind))?;
        dir.remove(file_name(to, kind))?;
    }
    dir.sync()?;
    dir.rename_new(file_name(from, FileKind::Log), file_name(to, FileKind::Log))?;
    dir.sync()?;
    segment.log.base = to;
    tracing::warn!(from = from.value(), to = to.value(), "a segment was renamed to its first offset");
    Ok(())
}

/// Writes the segment anew without what is bad in it. Damage at the very end of the log is left to recovery, which
/// begins a new epoch there.
fn mend(dir: &Dir, config: &LogConfig, segment: &mut Examined) -> Result<()> {
    let going = segment.bad.iter_mut().filter(|bad| bad.next.is_some());
    let base = segment.log.base;
    let name = file_name(base, FileKind::Log);
    let from = dir.open_file(&name, Open::Read)?;
    let mut tail = None;
    let mut count = 0;
    for bad in going {
        let kept = keep(dir, config, &from, base, bad)?;
        bad.kept_in = Some(dir.path_of(kept));
        count += 1;
    }
    if let Some(last) = segment.bad.last().filter(|bad| bad.next.is_none()) {
        tail = Some(last.position..last.position.saturating_add(last.bytes));
    }
    if count == 0 {
        return Ok(());
    }
    dir.remove(MENDED_NAME)?;
    let mode = match from.stat()?.mode {
        0 => config.file_mode,
        mode => mode,
    };
    let to = dir.open_file(MENDED_NAME, Open::CreateNew { mode })?;
    let mut at = 0;
    for range in segment.good.iter().chain(&tail) {
        at += copy(&to, &from, range, at)?;
    }
    to.sync_all()?;
    // With the names of what is kept.
    dir.sync()?;
    dir.remove(file_name(base, FileKind::Index))?;
    dir.remove(file_name(base, FileKind::TimeIndex))?;
    dir.sync()?;
    dir.rename(MENDED_NAME, &name)?;
    dir.sync()?;
    tracing::warn!(segment = %name, places = count, "written anew without what cannot be read");
    Ok(())
}

/// Copies bad bytes to a file of their own, durably but for its name.
fn keep(dir: &Dir, config: &LogConfig, from: &File, base: Offset, bad: &Dropped) -> Result<String> {
    let range = bad.position..bad.position.saturating_add(bad.bytes);
    let plain = dropped_name(base, bad.position);
    // A repair before this one may not have come to the end.
    if dir.stat(&plain)?.is_some_and(|stat| stat.len == bad.bytes)
        && is_same(&dir.open_file(&plain, Open::Read)?, from, &range)?
    {
        dir.open_file(&plain, Open::ReadWrite)?.sync_all()?;
        return Ok(plain);
    }
    let name = free_name(dir, base, bad.position)?;
    let to = dir.open_file(&name, Open::CreateNew { mode: config.file_mode })?;
    copy(&to, from, &range, 0)?;
    to.sync_all()?;
    Ok(name)
}

fn dropped_name(base: Offset, position: u64) -> String {
    format!("{PRIVATE_PREFIX}dropped-{:020}-from-{position}", base.value())
}

/// A name for what is dropped at a place. The same place may have been mended before.
fn free_name(dir: &Dir, base: Offset, position: u64) -> Result<String> {
    let plain = dropped_name(base, position);
    let mut name = plain.clone();
    let mut nth = 1;
    while dir.exists(&name)? {
        nth += 1;
        name = format!("{plain}-{nth}");
    }
    Ok(name)
}

/// True where a file holds just the bytes of a range of another.
fn is_same(kept: &File, from: &File, range: &Range<u64>) -> Result<bool> {
    let (mut one, mut other) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    let mut at = 0;
    while range.start + at < range.end {
        let left = usize::try_from(range.end - range.start - at).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        let counts =
            (kept.read_at(&mut one[..left], at)?, from.read_at(&mut other[..left], range.start + at)?);
        if counts != (left, left) || one[..left] != other[..left] {
            return Ok(false);
        }
        at += left as u64;
    }
    Ok(true)
}
