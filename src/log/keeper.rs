//! Keeps the hints beside the log: our checkpoint, the summaries, durable sidecars, the clean marks.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::{
    checkpoint::{Checkpoint, Point},
    epochs::Epochs,
    kafka_files::DataDir,
    producers::ProducerPoints,
    shared::Shared,
    summary::{self, SegmentSummary},
    sync::Syncer,
};
use crate::{
    config::LogConfig,
    error::{Error, Result},
    offset::Offset,
    segment::{FileKind, Segment, SegmentWriter, file_name},
    sys::{Dir, Open},
};

/// A recovery point is due after so much was made durable, or so much time.
const DUE_BYTES: u64 = 64 << 20;
const DUE_AFTER: Duration = Duration::from_secs(1);
/// And is written by the append itself only when it is so long overdue.
const OVERDUE_BYTES: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct Keeper {
    known_end: Offset,
    /// Sealed segments whose sidecars are not durable yet.
    unsynced: Vec<Arc<Segment>>,
    /// Segments whose transaction indexes are not.
    unsynced_txn: BTreeSet<Offset>,
    producers: ProducerPoints,
    /// Where the last recovery point was, in bytes made durable, and when.
    at_bytes: u64,
    at: Duration,
    at_point: Option<Point>,
}

impl Keeper {
    /// `point` is the recovery point that the directory's checkpoint has, if it has this one.
    pub(super) fn new(
        known_end: Offset,
        point: Option<Point>,
        producers: ProducerPoints,
        config: &LogConfig,
    ) -> Self {
        Self {
            known_end,
            unsynced: Vec::new(),
            unsynced_txn: BTreeSet::new(),
            producers,
            at_bytes: 0,
            at: config.clock.monotonic(),
            at_point: point,
        }
    }

    /// What the next recovery point says of the producers.
    pub(super) fn producer_points(&mut self) -> &mut ProducerPoints {
        &mut self.producers
    }

    /// The transaction index of a segment was added to.
    pub(super) fn note_txn_index(&mut self, base: Offset) {
        self.unsynced_txn.insert(base);
    }

    /// A segment was sealed: its sidecars belong to the next recovery point.
    pub(super) fn note_sealed(&mut self, segment: &Arc<Segment>) {
        self.unsynced.push(Arc::clone(segment));
    }

    /// The segment that holds the recovery point.
    pub(super) fn point_base(&self) -> Option<Offset> {
        self.at_point.map(|point| point.base)
    }

    /// True where this writer's recovery point could not be written yet.
    pub(super) fn has_no_point(&self) -> bool {
        self.at_point.is_none()
    }

    /// True where a recovery point is due.
    pub(super) fn is_due(&self, syncer: &Syncer, now: Duration) -> bool {
        let point = syncer.synced();
        if self.at_point == Some(point) {
            return false;
        }
        let rolled = self.at_point.is_none_or(|at| at.base != point.base);
        rolled
            || syncer.synced_bytes() - self.at_bytes >= DUE_BYTES
            || now.saturating_sub(self.at) >= DUE_AFTER
    }

    /// Writes a recovery point from inside an append where nobody else has for long. A failure changes nothing but the
    /// cost of the next open.
    pub(super) fn checkpoint_if_overdue(&mut self, shared: &Shared, syncer: &Syncer, config: &LogConfig) {
        if syncer.synced_bytes() - self.at_bytes < OVERDUE_BYTES {
            return;
        }
        self.at_bytes = syncer.synced_bytes();
        if let Err(error) = self.checkpoint(shared, syncer, config) {
            tracing::warn!(%error, "recovery point not written");
        }
    }

    /// Makes the last sync's end the recovery point.
    pub(super) fn checkpoint(&mut self, shared: &Shared, syncer: &Syncer, config: &LogConfig) -> Result<()> {
        self.at_bytes = syncer.synced_bytes();
        self.checkpoint_at(syncer.synced(), shared, config)
    }

    /// Makes `point` the recovery point: sidecars of the segments sealed below it first, then the checkpoint.
    pub(super) fn checkpoint_at(&mut self, point: Point, shared: &Shared, config: &LogConfig) -> Result<()> {
        self.checkpoint_over(&shared.segments(), point, shared, config)
    }

    /// The same, with other segments below the point than those that are published.
    pub(super) fn checkpoint_over(
        &mut self,
        segments: &[Arc<Segment>],
        point: Point,
        shared: &Shared,
        config: &LogConfig,
    ) -> Result<()> {
        self.write(segments, point, (false, shared.start()), shared, config)
    }

    /// The same, with a start that is not published yet.
    pub(super) fn checkpoint_with_start(
        &mut self,
        start: Offset,
        shared: &Shared,
        syncer: &Syncer,
        config: &LogConfig,
    ) -> Result<()> {
        self.at_bytes = syncer.synced_bytes();
        let moved = self.write(&shared.segments(), syncer.synced(), (false, start), shared, config);
        match moved {
            // On a full disk the start alone: what is dropped below it makes room for the next checkpoint.
            Err(Error::StorageFull { .. }) if Checkpoint::amend_in_place(&shared.dir, start)? => Ok(()),
            moved => moved,
        }
    }

    /// The last recovery point of a log that is closed: everything is durable, and the clean flag says so.
    pub(super) fn close(&mut self, shared: &Shared, syncer: &Syncer, config: &LogConfig) -> Result<()> {
        self.write(&shared.segments(), syncer.synced(), (true, shared.start()), shared, config)
    }

    fn write(
        &mut self,
        segments: &[Arc<Segment>],
        point: Point,
        (clean, start): (bool, Offset),
        shared: &Shared,
        config: &LogConfig,
    ) -> Result<()> {
        // Segments that retention dropped, or is about to, have no sidecars any more.
        let is_kept = |segment: &Segment| segment.base() >= start || segment.end().next > start;
        self.unsynced
            .retain(|segment| is_kept(segment) && segments.iter().any(|live| Arc::ptr_eq(live, segment)));
        // One that cannot be synced stays listed: no later point may pass over it.
        while let Some(at) = self.unsynced.iter().position(|segment| clean || segment.base() < point.base) {
            shared.with_segment(&self.unsynced[at], SegmentWriter::sync_sidecars)?;
            self.unsynced.remove(at);
        }
        self.sync_txn_indexes(point.base, clean, &shared.dir)?;
        if clean {
            // The last names: whatever was created or trimmed is durable before anything says "clean".
            shared.dir.sync()?;
        }
        self.known_end = self.known_end.max(shared.durable()).max(point.offset);
        let below: Vec<_> = segments.iter().filter(|segment| segment.base() < point.base).collect();
        if !below.is_empty() && (self.at_point.is_none_or(|at| at.base != point.base) || clean) {
            let summaries: Vec<_> = below.iter().map(|segment| summary_of(segment)).collect();
            if let Err(error) = summary::store(&shared.dir, config.file_mode, &summaries) {
                tracing::warn!(%error, "summary not written");
            }
        }
        let checkpoint = Checkpoint {
            clean,
            start,
            known_end: self.known_end,
            point: Some(point),
            cut: None,
            is_after_cut: false,
            producers: Some(self.producers.for_checkpoint((point.offset, point.base), clean, &shared.dir)),
            sealed: below.iter().map(|segment| (segment.base(), u64::from(segment.end().position))).collect(),
        };
        checkpoint.store(&shared.dir, config.file_mode)?;
        (self.at_point, self.at) = (Some(point), config.clock.monotonic());
        Ok(())
    }
}

impl Keeper {
    /// Those of the segments sealed below a recovery point, at a clean end all.
    fn sync_txn_indexes(&mut self, base: Offset, clean: bool, dir: &Dir) -> Result<()> {
        while let Some(first) = self.unsynced_txn.first().copied().filter(|first| clean || *first < base) {
            match dir.open_file(file_name(first, FileKind::TxnIndex), Open::Read) {
                Ok(file) => file.sync_data()?,
                // Its segment was dropped.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
            self.unsynced_txn.remove(&first);
        }
        Ok(())
    }
}

/// Takes the clean marks away: a broker's first, then ours, each durably. The log may be changed after this.
pub(super) fn begin_changes(dir: &Dir, data_dir: Option<&DataDir>, config: &LogConfig) -> Result<()> {
    if let Some(data_dir) = data_dir {
        data_dir.remove_clean_marker()?;
    }
    if let super::checkpoint::Found::Valid(mut checkpoint) = Checkpoint::load(dir)?
        && checkpoint.clean
    {
        checkpoint.clean = false;
        return match checkpoint.store(dir, config.file_mode) {
            // Whoever wants to make room begins here as well.
            Err(Error::StorageFull { .. }) => Checkpoint::amend_in_place(dir, checkpoint.start).map(drop),
            stored => stored,
        };
    }
    Ok(())
}

/// The epochs of a log that has none yet begin with 0, as a broker's do.
pub(super) fn first_epoch(epochs: &mut Epochs, end: Offset) -> bool {
    epochs.latest().is_none() && epochs.assign(0, end)
}

fn summary_of(segment: &Segment) -> SegmentSummary {
    let end = segment.end();
    SegmentSummary::new(segment.base(), u64::from(end.position), end.next, segment.known_largest())
}
