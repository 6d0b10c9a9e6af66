//! What a recovery point says of the producers: from where on the batches have to be read again.

use super::snapshot;
use crate::{
    offset::Offset,
    segment::{FileKind, file_name},
    sys::{Dir, Open},
};

/// What is known of the producers as of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducerPoint {
    pub(crate) offset: Offset,
    /// The CRC in the snapshot of that offset; `None` where no producer is left from before.
    pub(crate) snapshot_crc: Option<u32>,
}

impl ProducerPoint {
    pub(crate) fn nobody(offset: Offset) -> Self {
        Self { offset, snapshot_crc: None }
    }

    /// True where reading may begin at `base` or earlier: nobody is left from before the point, so nobody that counts is
    /// from before `base` either.
    pub(crate) fn serves(&self, base: Offset) -> bool {
        self.offset <= base || self.snapshot_crc.is_none()
    }
}

/// The points that the next checkpoint can name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProducerPoints {
    /// Durable, by rising offset.
    known: Vec<ProducerPoint>,
    /// Snapshots that were written and not synced.
    fresh: Vec<ProducerPoint>,
    /// Nobody is known now.
    is_nobody: bool,
}

impl ProducerPoints {
    pub(crate) fn new(known: Vec<ProducerPoint>, is_nobody: bool) -> Self {
        Self { known, fresh: Vec::new(), is_nobody }
    }

    /// Nobody is known any more, or somebody is.
    pub(crate) fn note_nobody(&mut self, is_nobody: bool) {
        self.is_nobody = is_nobody;
    }

    /// A snapshot was written.
    pub(crate) fn note_snapshot(&mut self, offset: Offset, crc: u32) {
        self.fresh.retain(|point| point.offset != offset);
        self.known.retain(|point| point.offset != offset);
        self.fresh.push(ProducerPoint { offset, snapshot_crc: Some(crc) });
    }

    /// True where the last checkpoint names the snapshot of `offset`.
    pub(crate) fn names(&self, offset: Offset) -> bool {
        self.known.iter().any(|point| point.offset == offset)
    }

    /// What a checkpoint at `offset` in the segment `base` says: the latest point from which an open that scans that
    /// segment can go on, and at a clean end the one that needs no reading. Snapshots that it names are synced first; one
    /// that cannot be is not named.
    pub(crate) fn for_checkpoint(
        &mut self,
        (offset, base): (Offset, Offset),
        is_clean: bool,
        dir: &Dir,
    ) -> Vec<ProducerPoint> {
        // Those of an earlier time, when there was nobody either, say less.
        self.known.retain(|point| !self.is_nobody || point.snapshot_crc.is_some());
        let (due, later): (Vec<_>, Vec<_>) = self.fresh.drain(..).partition(|point| point.offset <= offset);
        self.fresh = later;
        let mut is_new = false;
        for point in due {
            let name = file_name(point.offset, FileKind::Snapshot);
            match dir.open_file(&name, Open::Read).and_then(|file| file.sync_data()) {
                Ok(()) => {
                    self.known.push(point);
                    is_new = true;
                }
                Err(error) => tracing::warn!(%error, "a snapshot of producers is not durable: not relied on"),
            }
        }
        if is_new && let Err(error) = dir.sync() {
            // Without its name the next open reads more; it believes nothing wrong.
            tracing::warn!(%error, "a snapshot's name is not durable");
        }
        self.known.sort_by_key(|point| point.offset);
        let serving = self.known.iter().rposition(|point| point.serves(base));
        let at_end = self.known.iter().rposition(|point| is_clean && point.offset == offset);
        let keep = |(at, point): (usize, &ProducerPoint)| {
            (Some(at) == serving || Some(at) == at_end).then_some(*point)
        };
        self.known = self.known.iter().enumerate().filter_map(keep).collect();
        if self.is_nobody {
            // The last, so it goes before the others.
            self.known.push(ProducerPoint::nobody(offset));
        }
        self.known.clone()
    }
}

/// The state that the latest usable one of `points` names, for a log that is read again from `base` on, and where to
/// begin. `Err` says what is wrong with the snapshot that was relied on.
///
/// That nobody is left at an offset does not tell who was there before: whoever expired meanwhile may have begun a
/// transaction that ends behind `base`. So it serves only where none of the batches from there up to it is a producer's,
/// which `has_producers` says.
pub(super) fn resume(
    dir: &Dir,
    points: &[ProducerPoint],
    base: Offset,
    has_producers: impl Fn(Offset) -> bool,
) -> Result<Option<(super::State, ProducerPoint)>, String> {
    let is_usable = |point: &&ProducerPoint| {
        point.serves(base)
            && (point.offset <= base || point.snapshot_crc.is_some() || !has_producers(point.offset))
    };
    let Some(point) = points.iter().rfind(is_usable) else { return Ok(None) };
    let Some(crc) = point.snapshot_crc else {
        return Ok(Some((super::State::default(), ProducerPoint::nobody(point.offset.min(base)))));
    };
    let name = file_name(point.offset, FileKind::Snapshot);
    match snapshot::load(dir, point.offset) {
        Some(Ok((state, found))) if found == crc => Ok(Some((state, *point))),
        Some(Ok(_)) => Err(format!("{name} is not the one that was written")),
        Some(Err(what)) => Err(what),
        None => Err(format!("{name} is not there")),
    }
}
