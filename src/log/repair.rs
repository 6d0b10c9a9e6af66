//! Dropping what cannot be read: segments are written anew without it, and it is kept aside.
//!
//! Not what opening does by itself: below what was known durable that one cuts nothing and serves the rest, since a
//! damaged batch is a loss that somebody has to look at. Whoever asks for a repair has looked.
//!
//! The order for each segment: the bad bytes are copied aside, the good ones to a private name, both synced -> the
//! indexes go, which name positions of the old file -> the new file takes the old one's place -> the directory is synced.
//! Before the first of them the recovery points are taken back, ours and a broker's: they vouch for files that are in
//! doubt. A crash in between leaves some segments mended and the others as they were.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    buffer::append_pool,
    checkpoint::{Checkpoint, Found},
    keeper, open,
    open_segments::OpenSegments,
    summary::SUMMARY_NAME,
    survey::{LogFile, PRIVATE_PREFIX, Survey},
    writer::{LogWriter, Parts},
};
use crate::{
    config::LogConfig,
    error::{Error, Result},
    offset::Offset,
    segment::{FileKind, Scan, Tail, file_name, unsupported},
    sys::{self, Dir, File, Open},
};

/// A segment's new file. Left by a crash it goes with the next open.
const MENDED_NAME: &str = ".stratalog-repair.new";

/// Bytes of a `.log` that are no batch, or none that may stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// The file.
    pub path: PathBuf,
    /// Where they begin in it.
    pub position: u64,
    /// How many they are.
    pub bytes: u64,
    /// The first offset that they may have held.
    pub offset: Offset,
    /// The offset that follows them; `None` where nothing does, and the log ends with them.
    pub next: Option<Offset>,
    /// Why they are no batch.
    pub reason: String,
    /// The file that keeps them, once they were dropped.
    pub kept_in: Option<PathBuf>,
}

/// What there is of one segment.
struct Examined {
    log: LogFile,
    /// From where to where bytes are good.
    good: Vec<std::ops::Range<u64>>,
    bad: Vec<Dropped>,
}

/// What [`LogWriter::open_repaired`] would drop from the log in `dir`, and what it would cut from its end. Changes
/// nothing and takes no lock: with a writer at work, what it is just writing may look torn.
pub fn repair_plan(dir: impl AsRef<Path>) -> Result<Vec<Dropped>> {
    let path = dir.as_ref();
    let dir = Dir::open(path).map_err(|error| {
        if error.is_not_found() { Error::NotFound { path: path.to_owned() } } else { error.into() }
    })?;
    Ok(examine_all(&dir)?.into_iter().flat_map(|examined| examined.bad).collect())
}

impl LogWriter {
    /// Opens the log without what cannot be read in it. Every batch that can be read stays, at its offset, those behind
    /// the damage too; bytes before the first damage are not touched; what is dropped is kept in the directory
    /// ([`RecoveryReport::dropped`](crate::RecoveryReport::dropped)). Damage at the log's very end is cut, as by any
    /// open: the next record takes that offset, in a new leader epoch. Indexes and leader epochs are made to fit.
    ///
    /// Records that were durable and are dropped leave a gap in the offsets. Reads every batch of the log, twice.
    pub fn open_repaired(dir: impl AsRef<Path>, config: LogConfig) -> Result<Self> {
        config.validate()?;
        let parts = open_repaired(dir.as_ref(), &config)?;
        Ok(Self::over(parts, append_pool(&config), config))
    }
}

fn open_repaired(path: &Path, config: &LogConfig) -> Result<Parts> {
    let (dir, locks) = open::lock_existing(path, config)?;
    let stored = match Checkpoint::load(&dir)? {
        Found::Valid(checkpoint) => Some(checkpoint),
        _ => None,
    };
    if stored.as_ref().is_some_and(|checkpoint| checkpoint.cut.is_some()) {
        // The cut first: what it takes away need not be mended.
        let parts = open::open_locked(&dir, locks, &OpenSegments::of_one_log(), config)?;
        let dir = Arc::clone(&parts.shared.dir);
        return repair(&dir, parts.locks, config);
    }
    repair(&dir, locks, config)
}

fn repair(dir: &Arc<Dir>, locks: open::Locks, config: &LogConfig) -> Result<Parts> {
    let mut examined = examine_all(dir)?;
    examined.retain(|examined| !examined.bad.is_empty());
    let mut dropped = Vec::new();
    // Nothing is believed but the batches: everything is scanned, and what does not fit them is built anew.
    keeper::begin_changes(dir, locks.data_dir.as_ref(), config)?;
    if let Some(data_dir) = &locks.data_dir {
        data_dir.lower_recovery_point(Offset::ZERO)?;
    }
    if let Found::Valid(mut checkpoint) = Checkpoint::load(dir)? {
        // It keeps the start, and the end below which no offset is given again.
        checkpoint.point = None;
        checkpoint.sealed.clear();
        checkpoint.producers = None;
        checkpoint.store(dir, config.file_mode)?;
    }
    // A segment that becomes shorter may grow to the length that they know it by.
    dir.remove(SUMMARY_NAME)?;
    for segment in &mut examined {
        mend(dir, config, segment)?;
        dropped.extend(segment.bad.drain(..).filter(|bad| bad.kept_in.is_some()));
    }
    let mut parts = open::open_locked(dir, locks, &OpenSegments::of_one_log(), config)?;
    parts.is_untouched = false;
    parts.report.dropped = dropped;
    Ok(parts)
}

fn examine_all(dir: &Dir) -> Result<Vec<Examined>> {
    let survey = Survey::take(dir)?;
    let next_bases = survey.logs.iter().skip(1).map(|log| Some(log.base)).chain([None]);
    survey.logs.iter().zip(next_bases).map(|(log, next_base)| examine(dir, *log, next_base)).collect()
}

/// Reads a segment from front to back, over any damage.
fn examine(dir: &Dir, log: LogFile, next_base: Option<Offset>) -> Result<Examined> {
    let name = file_name(log.base, FileKind::Log);
    let file = dir.open_file(&name, Open::Read)?;
    let mut scan = Scan::new(&file, log.base, 0, log.base)?;
    let mut examined = Examined { log, good: Vec::new(), bad: Vec::new() };
    let bad = |position: u64, end: u64, offset: Offset, next: Option<Offset>, reason: String| Dropped {
        path: dir.path_of(&name),
        position,
        bytes: end.saturating_sub(position),
        offset,
        next,
        reason,
        kept_in: None,
    };
    loop {
        let (from, offset) = (scan.position(), scan.next_offset());
        match scan.next_batch()? {
            Ok(batch) if batch.header.is_legacy() => return Err(unsupported(&file, batch.header.magic())),
            Ok(batch) => {
                let base_offset = batch.header.base_offset();
                if let Some(open) = examined.bad.last_mut().filter(|last| last.next.is_none()) {
                    open.next = Some(base_offset);
                }
                if next_base.is_some_and(|next| batch.header.last_offset() >= next) {
                    let reason = "the batch reaches into the next segment".to_owned();
                    examined.bad.push(bad(from, batch.end(), base_offset, next_base, reason));
                    continue;
                }
                match examined.good.last_mut().filter(|last| last.end == from) {
                    Some(last) => last.end = batch.end(),
                    None => examined.good.push(from..batch.end()),
                }
            }
            // Room that was reserved: opening trims it.
            Err(Tail::Clean | Tail::Zeros) => return Ok(examined),
            Err(Tail::Bad(reason)) => {
                let goes_on = scan.resync()?;
                let end = if goes_on { scan.position() } else { file.len()? };
                let next = if goes_on { None } else { next_base };
                examined.bad.push(bad(from, end, offset, next, reason));
                if !goes_on {
                    return Ok(examined);
                }
            }
        }
    }
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

fn copy(to: &File, from: &File, range: &std::ops::Range<u64>, at: u64) -> Result<u64> {
    let count = range.end.saturating_sub(range.start);
    let copied = to.copy_range_from(from, range.start, at, count)?;
    if copied != count {
        let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        return Err(sys::Error::new("copy", from.path(), source).into());
    }
    Ok(count)
}

/// Copies bad bytes to a file of their own, durably but for its name.
fn keep(dir: &Dir, config: &LogConfig, from: &File, base: Offset, bad: &Dropped) -> Result<String> {
    let plain = format!("{PRIVATE_PREFIX}dropped-{:020}-from-{}", base.value(), bad.position);
    let mut name = plain.clone();
    let mut nth = 1;
    // The same place may have been mended before.
    while dir.exists(&name)? {
        nth += 1;
        name = format!("{plain}-{nth}");
    }
    let to = dir.open_file(&name, Open::CreateNew { mode: config.file_mode })?;
    copy(&to, from, &(bad.position..bad.position.saturating_add(bad.bytes)), 0)?;
    to.sync_all()?;
    Ok(name)
}
