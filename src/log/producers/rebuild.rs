//! The producers of a log that is opened: from a snapshot that is known to be right, and the batches after it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{ProducerPoint, ProducerPoints, Producers, State, marker_of, points, snapshot};
use crate::{
    config::LogConfig,
    error::Result,
    log::{report::RecoveryReport, txn_index, writer::millis},
    offset::Offset,
    record::BatchHeader,
    segment::{FileKind, Place, Segment, Step, Window, file_name},
    sys::Dir,
};

/// What a transaction index is written under before it has its name.
const TEMPORARY_NAME: &str = ".stratalog-txnindex.tmp";

/// What opening found out before.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The files were exactly those of a clean close: nothing was scanned, and nothing is written.
    pub(crate) is_clean: bool,
    /// The segments that were scanned, and whether they have a batch that a producer numbered.
    pub(crate) scanned: BTreeMap<Offset, bool>,
    /// What our checkpoint says, where it speaks of this log.
    pub(crate) points: Option<Vec<ProducerPoint>>,
    pub(crate) snapshots: BTreeSet<Offset>,
    /// The segments that have a transaction index.
    pub(crate) txn_indexes: BTreeSet<Offset>,
}

/// Builds the state as of the log's end.
///
/// What is believed, in this order:
///
/// - our checkpoint, where its recovery point (or its clean mark) counts. It names a snapshot by offset and CRC, or says that
///   nobody was known at an offset. A snapshot that is not exactly that one is not believed, and no other is;
/// - where we have no such checkpoint (the directory is a broker's): the newest snapshot at or below the first segment that was scanned
///   whose CRC is right, whose every last batch is in the log with that producer, epoch and sequence (as far as the log
///   still has that offset), and which misses no producer of the segment before it;
/// - else nothing: the headers of the whole log are read.
pub(crate) fn rebuild(
    dir: &Dir,
    segments: &[Arc<Segment>],
    mut opening: Opening,
    config: &LogConfig,
    (report, begin_changes): (&mut RecoveryReport, &mut dyn FnMut() -> Result<()>),
) -> Result<(Producers, ProducerPoints)> {
    let end = segments.last().map_or(Offset::ZERO, |segment| segment.end().next);
    // From here on batches are looked at in any case: what is believed must not lie further on.
    let base = opening.scanned.keys().next().copied().unwrap_or(end);
    let resumed = match &opening.points {
        Some(points) => points::resume(dir, points, base, |below| {
            opening.scanned.range(..below).any(|(_, has_producers)| *has_producers)
        })
        .unwrap_or_else(|what| {
            report.warnings.push(format!("{what}: producers are taken from the batches"));
            None
        }),
        None => newest_plausible(dir, segments, &opening, base, config),
    };
    let mut known = match &resumed {
        Some((_, point)) if opening.points.is_some() => vec![*point],
        _ => Vec::new(),
    };
    if opening.is_clean {
        known = opening.points.clone().unwrap_or_default();
    }
    let mut fresh = None;
    let (mut state, from) = match resumed {
        Some((state, point)) => {
            // A broker's, and judged: to be relied on from now on.
            fresh = point.snapshot_crc.filter(|_| opening.points.is_none()).map(|crc| (point.offset, crc));
            (state, point.offset)
        }
        None => (State::default(), Offset::ZERO),
    };
    let is_partial = !state.is_empty();
    for (index, segment) in segments.iter().enumerate() {
        let is_whole = segment.base() >= from;
        if !is_whole && segment.end().next <= from {
            continue;
        }
        if index + 1 == segments.len() && is_whole && segment.base() > from && !opening.is_clean {
            let stored =
                store_snapshot(dir, segment.base(), &state, &mut opening.snapshots, config, begin_changes);
            fresh = stored?.or(fresh);
        }
        let mut aborted = Vec::new();
        if opening.scanned.get(&segment.base()) != Some(&false) {
            let was_open = segment.is_open();
            replay(segment, from, &mut state, &mut aborted)?;
            if !was_open && index + 1 < segments.len() {
                segment.close_files();
            }
        }
        if is_whole && !opening.is_clean {
            let has_file = opening.txn_indexes.contains(&segment.base());
            let is_right = is_txn_index_right(dir, segment.base(), &aborted, has_file);
            if !is_right {
                begin_changes()?;
                match put_txn_index(dir, segment.base(), &aborted, config) {
                    Ok(name) => report.rebuilt.push(dir.path_of(name)),
                    Err(error) => {
                        report.warnings.push(format!("a transaction index was not written: {error}"));
                    }
                }
            }
        }
    }
    state.expire(config.clock.now(), millis(config.producer_expiration));
    let mut points = ProducerPoints::new(known, state.is_empty());
    if let Some((offset, crc)) = fresh {
        points.note_snapshot(offset, crc);
    }
    let producers = Producers {
        recall_below: is_partial.then_some(from),
        files: opening.snapshots,
        swept: config.clock.monotonic(),
        aborted: Vec::new(),
        state,
    };
    Ok((producers, points))
}

/// The state at the beginning of the segment being written, so that the next open need not look before it.
fn store_snapshot(
    dir: &Dir,
    base: Offset,
    state: &State,
    snapshots: &mut BTreeSet<Offset>,
    config: &LogConfig,
    begin_changes: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<(Offset, u32)>> {
    if state.is_empty() && snapshots.is_empty() {
        return Ok(None);
    }
    let (_, crc) = snapshot::encode(state);
    if let Some(Ok((_, found))) = snapshot::load(dir, base)
        && found == crc
    {
        return Ok(Some((base, crc)));
    }
    begin_changes()?;
    match snapshot::store(dir, base, state, config.file_mode) {
        Ok(crc) => {
            snapshots.insert(base);
            Ok(Some((base, crc)))
        }
        Err(error) => {
            tracing::warn!(%error, "producers not written down");
            Ok(None)
        }
    }
}

/// Takes in the batches of a segment from an offset on, and notes the transactions that were aborted in it.
fn replay(
    segment: &Segment,
    from: Offset,
    state: &mut State,
    aborted: &mut Vec<txn_index::AbortedTransaction>,
) -> Result<()> {
    let mut place = Place { position: 0, next: segment.base() };
    // Where that place is damaged the look begins at the front.
    if segment.base() < from
        && let Ok(Some(located)) = segment.locate(from, &mut Window::new(0))
    {
        place = Place { position: located.position, next: located.header.base_offset() };
    }
    segment.visit_batches(&mut place, |batch| {
        let header = *batch.header;
        if header.producer_id() < 0 || header.last_offset() < from {
            return Ok(Step::Next);
        }
        let marker = if header.is_control() {
            let Some(batch) = batch.checked()? else { return Ok(Step::Damaged) };
            marker_of(&batch)
        } else {
            None
        };
        aborted.extend(state.apply(&header, marker));
        Ok(Step::Next)
    })?;
    Ok(())
}

fn is_txn_index_right(
    dir: &Dir,
    base: Offset,
    aborted: &[txn_index::AbortedTransaction],
    has_file: bool,
) -> bool {
    if aborted.is_empty() || !has_file {
        return aborted.is_empty() && !has_file;
    }
    matches!(txn_index::load(dir, base), Ok(Some(Ok(found))) if found == aborted)
}

/// Makes the segment's transaction index say what its markers say. Returns its name.
fn put_txn_index(
    dir: &Dir,
    base: Offset,
    aborted: &[txn_index::AbortedTransaction],
    config: &LogConfig,
) -> Result<String> {
    let name = file_name(base, FileKind::TxnIndex);
    if aborted.is_empty() {
        dir.remove(&name)?;
    } else {
        let bytes = txn_index::encode(aborted);
        dir.replace(name.as_ref(), TEMPORARY_NAME.as_ref(), &bytes, config.file_mode, true)?;
    }
    Ok(name)
}

/// The newest snapshot of a broker's that the log does not contradict.
fn newest_plausible(
    dir: &Dir,
    segments: &[Arc<Segment>],
    opening: &Opening,
    base: Offset,
    config: &LogConfig,
) -> Option<(State, ProducerPoint)> {
    for offset in opening.snapshots.range(..=base).rev().copied() {
        let found = match snapshot::load(dir, offset)? {
            Ok((state, crc)) => is_plausible(segments, &state, offset, config)
                .map(|()| (state, ProducerPoint { offset, snapshot_crc: Some(crc) })),
            Err(what) => Err(what),
        };
        match found {
            Ok(found) => return Some(found),
            Err(what) => tracing::warn!(%offset, what, "a snapshot of producers is not believed"),
        }
    }
    None
}

fn is_plausible(
    segments: &[Arc<Segment>],
    state: &State,
    offset: Offset,
    config: &LogConfig,
) -> Result<(), String> {
    let start = segments.first().map_or(offset, |segment| segment.base());
    let holder = |offset: Offset| segments.iter().rfind(|segment| segment.base() <= offset);
    for (id, entry) in state.sorted() {
        let Some(last) = entry.last() else { continue };
        if last.last_offset >= offset {
            return Err(format!("producer {id} is further on than the snapshot"));
        }
        if last.last_offset < start {
            continue;
        }
        let located = holder(last.last_offset).map(|segment| {
            segment.locate(last.last_offset, &mut Window::new(0)).map_err(|error| error.to_string())
        });
        let stands = located.transpose()?.flatten().is_some_and(|found| {
            let header = &found.header;
            (header.producer_id(), header.producer_epoch()) == (id, entry.epoch)
                && header.last_offset() == last.last_offset
                && header.last_sequence() == last.last_sequence
        });
        if !stands {
            return Err(format!("producer {id} has no such batch at {}", last.last_offset));
        }
    }
    let Some(before) = segments.iter().rfind(|segment| segment.base() < offset) else { return Ok(()) };
    let mut newest: HashMap<i64, BatchHeader> = HashMap::new();
    let visited = before.visit_headers(0, |header| {
        if header.producer_id() >= 0 && !header.is_control() && header.last_offset() < offset {
            newest.insert(header.producer_id(), *header);
        }
    });
    visited.map_err(|error| error.to_string())?;
    let (now, after_ms) = (config.clock.now().millis(), millis(config.producer_expiration));
    for (id, header) in newest {
        let is_known = state.entry(id).is_some_and(|entry| {
            entry.epoch > header.producer_epoch()
                || entry.last().is_some_and(|last| last.last_offset >= header.last_offset())
        });
        // Whoever wrote it may have forgotten a producer that has expired by now.
        let is_expired = now.saturating_sub(header.max_timestamp().millis()) >= after_ms;
        if !is_known && !is_expired {
            return Err(format!("it misses producer {id}"));
        }
    }
    Ok(())
}
