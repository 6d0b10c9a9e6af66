//! Which batches of a log fit together: the largest number of them whose offsets rise from one to the next, within what the
//! names of the segments say.
//!
//! An offset lies outside its batch's checksum, and a file's name outside everything. One batch, or one segment, that
//! contradicts all the others is the one that is wrong, so it is counted and not believed by the order in which it comes.

use crate::{
    error::Result,
    offset::Offset,
    segment::{Scan, Tail, fits_segment, unsupported},
    sys::File,
};

/// What lies in a segment's file, in its order.
#[derive(Debug)]
pub(super) enum Piece {
    Batch(Run),
    Bad { from: u64, to: u64, reason: String },
}

/// A batch; or many, one behind the other, of a segment in which nothing is out of order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) first: Offset,
    /// The offset after the last.
    pub(super) next: Offset,
    pub(super) count: u64,
}

/// All that lies in a segment's file.
#[derive(Debug)]
pub(super) struct Pieces {
    /// The base offset from which its batches count.
    pub(super) base: Offset,
    pub(super) all: Vec<Piece>,
    /// From where on there are only zeros to the file's end.
    pub(super) zeros: Option<u64>,
}

/// Offsets that a segment may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) low: Offset,
    /// Exclusive; `None` for the last segment.
    pub(super) high: Option<Offset>,
}

impl Pieces {
    /// Reads the whole file. Damage hides nothing behind it, and an offset of a batch does not either.
    pub(super) fn read(file: &File, base: Offset) -> Result<Self> {
        let mut scan = Scan::new(file, base, 0, base)?.in_any_order();
        let mut found = Self { base, all: Vec::new(), zeros: None };
        loop {
            let from = scan.position();
            match scan.next_batch()? {
                Ok(batch) if batch.header.is_legacy() => {
                    return Err(unsupported(file, batch.header.magic()));
                }
                Ok(batch) => {
                    let to = batch.end();
                    found.all.push(match batch.header.next_offset() {
                        Some(next) => {
                            Piece::Batch(Run { from, to, first: batch.header.base_offset(), next, count: 1 })
                        }
                        None => {
                            Piece::Bad { from, to, reason: "no offset follows the batch's last".to_owned() }
                        }
                    });
                }
                Err(Tail::Clean) => return Ok(found),
                Err(Tail::Zeros) => {
                    found.zeros = Some(from);
                    return Ok(found);
                }
                Err(Tail::Bad(reason)) => {
                    let goes_on = scan.resync()?;
                    let to = if goes_on { scan.position() } else { file.len()? };
                    found.all.push(Piece::Bad { from, to, reason });
                    if !goes_on {
                        return Ok(found);
                    }
                }
            }
        }
    }

    fn runs(&self) -> impl Iterator<Item = (usize, &Run)> {
        let runs = self.all.iter().enumerate();
        runs.filter_map(|(at, piece)| if let Piece::Batch(run) = piece { Some((at, run)) } else { None })
    }

    /// True where all batches fit.
    pub(super) fn all_fit(&self, bounds: Bounds) -> bool {
        let mut next = bounds.low;
        self.runs().all(|(_, run)| {
            let fits = run.first >= next && self.may_hold(run, bounds);
            next = run.next;
            fits
        })
    }

    fn may_hold(&self, run: &Run, bounds: Bounds) -> bool {
        let last = run.next.saturating_sub(1);
        run.first >= bounds.low
            && bounds.high.is_none_or(|high| run.next <= high)
            && fits_segment(self.base, last)
    }

    /// Makes one piece of batches that lie one behind the other, where all fit: a large log is not held in memory batch by
    /// batch. Says whether it did.
    pub(super) fn fold(&mut self, bounds: Bounds) -> bool {
        if !self.all_fit(bounds) {
            return false;
        }
        let mut folded: Vec<Piece> = Vec::new();
        for piece in self.all.drain(..) {
            match (folded.last_mut(), piece) {
                (Some(Piece::Batch(before)), Piece::Batch(run)) if before.to == run.from => {
                    (before.to, before.next, before.count) = (run.to, run.next, before.count + run.count);
                }
                (_, piece) => folded.push(piece),
            }
        }
        self.all = folded;
        true
    }

    /// The numbers of the pieces that are the most batches that fit together. Of as many, those that end first.
    pub(super) fn most(&self, bounds: Bounds) -> Vec<usize> {
        if self.all_fit(bounds) {
            return self.runs().map(|(at, _)| at).collect();
        }
        // The least end of a chain, by its length, and the piece that it ends with; the piece before each.
        let mut ends: Vec<(Offset, usize)> = Vec::new();
        let mut before: Vec<(usize, Option<usize>)> = Vec::new();
        for (at, run) in self.runs().filter(|(_, run)| self.may_hold(run, bounds)) {
            let length = ends.partition_point(|(end, _)| *end <= run.first);
            let previous =
                length.checked_sub(1).and_then(|shorter| ends.get(shorter)).map(|(_, chain)| *chain);
            let this = before.len();
            match ends.get_mut(length) {
                Some(end) if run.next < end.0 => *end = (run.next, this),
                Some(_) => continue,
                None => ends.push((run.next, this)),
            }
            before.push((at, previous));
        }
        let mut chosen = Vec::with_capacity(ends.len());
        let mut link = ends.last().map(|(_, chain)| *chain);
        while let Some((at, previous)) = link.and_then(|chain| before.get(chain)) {
            chosen.push(*at);
            link = *previous;
        }
        chosen.reverse();
        chosen
    }

    /// How many batches these pieces are, and the offset after them.
    pub(super) fn sum(&self, chosen: &[usize]) -> (u64, Option<Offset>) {
        let runs = chosen.iter().filter_map(|at| match self.all.get(*at) {
            Some(Piece::Batch(run)) => Some(run),
            _ => None,
        });
        runs.fold((0, None), |(count, _), run| (count + run.count, Some(run.next)))
    }

    pub(super) fn has_batches(&self) -> bool {
        self.runs().next().is_some()
    }
}
