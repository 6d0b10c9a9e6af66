//! Cutting the newest records off, so that a crash at any point leaves the log before or after the cut, never between.
//!
//! Recovery cuts in place, under the lock and before any reader of this process exists, and only what was never published
//! as durable. What was published is cut when somebody asks for it (`LogWriter::open_cut`): then what is kept is copied to
//! a private name, which takes the place of the `.log`, so that whoever has the old file open reads what he read.
//!
//! The order: the tail is copied aside -> a record of the cut in our checkpoint, synced -> later segments get
//! private names, newest first -> the file is cut and synced, or replaced -> sidecars that speak of what is gone go -> the new leader
//! epoch -> the directory is synced -> the record is dropped. An open that finds the record does the rest first.

use std::path::PathBuf;

use super::{
    checkpoint::{Checkpoint, CutRecord, Point},
    control::ControlPage,
    epochs::Epochs,
    report::Cut,
    summary::SUMMARY_NAME,
    survey::{PRIVATE_PREFIX, Survey},
};
use crate::{
    config::LogConfig,
    error::{Error, Result},
    offset::Offset,
    segment::{FileKind, file_name},
    sys::{self, Dir, File, Open, PageBuf},
};

/// Bytes of a `.txnindex` entry, and where the last offset stands in it.
const TXN_ENTRY_BYTES: usize = 34;
const TXN_LAST_OFFSET: std::ops::Range<usize> = 18..26;
const MAX_TXN_INDEX_BYTES: usize = 256 << 20;
const DIRECT_BYTES: usize = 1 << 20;
/// What is kept of a segment that is replaced. Left by a crash before the cut was noted, it goes with the next open.
const PREPARED_NAME: &str = ".stratalog-cut.new";

/// Cuts the log at `record`. Fails with nothing changed where there is no room to keep what is cut.
pub(super) fn begin(
    dir: &Dir,
    config: &LogConfig,
    (checkpoint, control): (&mut Checkpoint, &ControlPage),
    record: CutRecord,
    reason: &str,
) -> Result<Cut> {
    keep_tail(dir, config, record)?;
    checkpoint.clean = false;
    checkpoint.cut = Some(record);
    checkpoint.store(dir, config.file_mode)?;
    finish(dir, config, (checkpoint, control), record, reason)
}

/// Cuts published records off a log that is durable and trimmed up to the checkpoint's point; `point` is where it ends
/// then. Fails with nothing changed where there is no room for what is cut and what is kept.
pub(super) fn begin_replacing(
    dir: &Dir,
    config: &LogConfig,
    (checkpoint, control): (&mut Checkpoint, &ControlPage),
    record: CutRecord,
    point: Point,
) -> Result<Cut> {
    keep_tail(dir, config, record)?;
    if let Err(error) = prepare(dir, config, record) {
        dir.remove(PREPARED_NAME)?;
        dir.remove(kept_tail(record))?;
        return Err(error);
    }
    // In one write: that a cut was begun, and what counts once it is done.
    checkpoint.clean = false;
    checkpoint.cut = Some(record);
    checkpoint.known_end = record.offset;
    checkpoint.point = Some(point);
    checkpoint.sealed.retain(|(base, _)| *base < record.base);
    if let Some(points) = &mut checkpoint.producers {
        points.retain(|known| known.offset <= record.offset);
    }
    checkpoint.store(dir, config.file_mode)?;
    finish(dir, config, (checkpoint, control), record, "asked for")
}

/// Copies what is kept of the segment, durably, unless all of it is.
fn prepare(dir: &Dir, config: &LogConfig, record: CutRecord) -> Result<()> {
    dir.remove(PREPARED_NAME)?;
    let from = dir.open_file(file_name(record.base, FileKind::Log), Open::Read)?;
    let stat = from.stat()?;
    if stat.len <= record.position {
        return Ok(());
    }
    let mode = if stat.mode == 0 { config.file_mode } else { stat.mode };
    let to = dir.open_file(PREPARED_NAME, Open::CreateNew { mode })?;
    let copied = to.copy_range_from(&from, 0, 0, record.position)?;
    if copied != record.position {
        let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        return Err(sys::Error::new("copy", from.path(), source).into());
    }
    to.sync_all()?;
    Ok(dir.sync()?)
}

/// Puts what was prepared in the place of the segment's file, unless that was done.
fn replace(dir: &Dir, config: &LogConfig, record: CutRecord) -> Result<()> {
    let name = file_name(record.base, FileKind::Log);
    if dir.stat(&name)?.is_some_and(|stat| stat.len <= record.position) {
        return Ok(());
    }
    if dir.stat(PREPARED_NAME)?.is_none_or(|stat| stat.len != record.position) {
        prepare(dir, config, record)?;
    }
    dir.rename(PREPARED_NAME, &name)?;
    Ok(dir.sync()?)
}

/// Does what is left of a cut that was begun.
pub(super) fn finish(
    dir: &Dir,
    config: &LogConfig,
    (checkpoint, control): (&mut Checkpoint, &ControlPage),
    record: CutRecord,
    reason: &str,
) -> Result<Cut> {
    let survey = Survey::take(dir)?;
    for log in survey.logs.iter().rev().filter(|log| log.base > record.base) {
        if log.len == 0 {
            dir.remove(file_name(log.base, FileKind::Log))?;
            continue;
        }
        dir.rename(file_name(log.base, FileKind::Log), kept_segment(record, log.base))?;
    }
    for (base, kind) in survey.sidecars.iter().rev() {
        let is_beyond = match kind {
            // A snapshot's name says how far it goes.
            FileKind::Snapshot => *base > record.offset,
            _ => *base > record.base,
        };
        if is_beyond {
            dir.remove(file_name(*base, *kind))?;
        }
    }
    dir.sync()?;
    let name = file_name(record.base, FileKind::Log);
    if record.replaces {
        replace(dir, config, record)?;
        // A segment may grow to the length that they know it by.
        dir.remove(SUMMARY_NAME)?;
        control.lower(dir, record.offset)?;
    } else if let Some(stat) = dir.stat(&name)? {
        let file = dir.open_file(&name, Open::ReadWrite)?;
        if stat.len > record.position {
            file.set_len(record.position)?;
        }
        // Also where an open before this one cut it, and did not live to sync it.
        file.sync_data()?;
    }
    // Rebuilt from the batches by whoever opens the segment; a map of the old ones keeps its file.
    dir.remove(file_name(record.base, FileKind::Index))?;
    dir.remove(file_name(record.base, FileKind::TimeIndex))?;
    shorten_txn_index(dir, config, record)?;
    let mut epochs = Epochs::load(dir).unwrap_or_default();
    epochs.truncate_from_end(record.offset);
    epochs.assign(record.epoch, record.offset);
    epochs.store(dir, config.file_mode)?;
    dir.sync()?;
    checkpoint.cut = None;
    checkpoint.is_after_cut = true;
    checkpoint.store(dir, config.file_mode)?;
    let (kept_in, bytes) = kept(dir, record)?;
    let reason = reason.to_owned();
    let was_asked_for = record.replaces;
    Ok(Cut { offset: record.offset, bytes, reason, kept_in, was_asked_for, readable: None })
}

fn kept_segment(record: CutRecord, base: Offset) -> String {
    format!("{PRIVATE_PREFIX}cut-{}-{:020}-log", record.epoch, base.value())
}

fn kept_tail(record: CutRecord) -> String {
    format!("{PRIVATE_PREFIX}cut-{}-{:020}-from-{}", record.epoch, record.base.value(), record.position)
}

/// Copies what is cut off the segment, its zeros left out, to a file of its own.
fn keep_tail(dir: &Dir, config: &LogConfig, record: CutRecord) -> Result<()> {
    let from = dir.open_file(file_name(record.base, FileKind::Log), Open::Read)?;
    let len = from.len()?.saturating_sub(record.position);
    if len == 0 {
        return Ok(());
    }
    let name = kept_tail(record);
    let copy = || -> sys::Result<u64> {
        let to = dir.open_file(&name, Open::CreateOrOpen { mode: config.file_mode })?;
        to.set_len(0)?;
        let copied = to.copy_data_from(&from, record.position, 0, len)?;
        if record.replaces {
            // Of a log that was trimmed every byte counts, zeros at the end too.
            to.set_len(len)?;
        }
        to.sync_data()?;
        Ok(copied.data_bytes)
    };
    match copy() {
        Ok(0) => {
            dir.remove(&name)?;
            Ok(())
        }
        Ok(_) => Ok(dir.sync()?),
        Err(error) => {
            dir.remove(&name)?;
            Err(error.into())
        }
    }
}

fn kept(dir: &Dir, record: CutRecord) -> Result<(Vec<PathBuf>, u64)> {
    let prefix = format!("{PRIVATE_PREFIX}cut-{}-", record.epoch);
    let (mut files, mut bytes) = (Vec::new(), 0);
    for entry in dir.list()? {
        let name = entry.name.to_string_lossy();
        if !name.starts_with(&prefix) {
            continue;
        }
        let stat = dir.stat(&*name)?;
        // A kept tail has holes where its zeros were.
        bytes += stat.map_or(0, |stat| stat.len.min(stat.blocks_bytes));
        files.push(dir.path_of(&*name));
    }
    files.sort();
    Ok((files, bytes))
}

/// Drops the entries that speak of markers at or beyond the end.
fn shorten_txn_index(dir: &Dir, config: &LogConfig, record: CutRecord) -> Result<()> {
    let name = file_name(record.base, FileKind::TxnIndex);
    let Some(bytes) = dir.read_small(&name, MAX_TXN_INDEX_BYTES)? else { return Ok(()) };
    let is_before = |entry: &[u8]| {
        let last = entry.get(TXN_LAST_OFFSET).and_then(|field| field.first_chunk::<8>());
        last.is_some_and(|last| i64::from_be_bytes(*last) < record.offset.value())
    };
    let kept = bytes.chunks(TXN_ENTRY_BYTES).take_while(|entry| is_before(entry)).count() * TXN_ENTRY_BYTES;
    if kept >= bytes.len() {
        return Ok(());
    }
    if kept == 0 {
        dir.remove(&name)?;
        return Ok(());
    }
    Ok(dir.write_replace(&name, &bytes[..kept], config.file_mode)?)
}

/// Makes the next reads of the file come from the disk, or be what the disk has.
pub(super) fn drop_from_cache(file: &File, len: u64) -> Result<()> {
    file.drop_cached(0, len)?;
    if file.is_cached(0, len)? != Some(true) {
        return Ok(());
    }
    // Pages that cannot be dropped are compared with the disk instead.
    compare_with_disk(file, len)
}

/// Fails where the page cache holds something else than the disk.
fn compare_with_disk(file: &File, len: u64) -> Result<()> {
    let differs = |what: &'static str| {
        Error::from(sys::Error::new("trust the page cache of", file.path(), std::io::Error::other(what)))
    };
    let Some(direct) = file.direct()? else {
        return Err(differs("its pages cannot be dropped, nor the disk be read past them"));
    };
    let mut disk = PageBuf::new(DIRECT_BYTES)?;
    let mut cached = vec![0; DIRECT_BYTES];
    let mut at = 0;
    while at < len {
        let count = direct.read_at(&mut disk, DIRECT_BYTES, at)?;
        let seen = file.read_at(&mut cached[..count], at)?;
        if count == 0 || seen != count || disk.as_slice()[..count] != cached[..count] {
            return Err(differs("it holds what the disk does not; restart the machine to read the disk"));
        }
        at += count as u64;
    }
    Ok(())
}
