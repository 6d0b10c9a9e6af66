//! What a repair would do, found by reading every segment from front to back. Changes nothing.
//!
//! The largest number of batches that fit together stays (`fit.rs`), over all segments: a segment is passed over where its
//! batches, or its name, would cost the others more than it holds. A file without one whole batch is never believed about
//! offsets.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    checkpoint::{Checkpoint, Found},
    fit::{Bounds, Piece, Pieces, Run},
    survey::{LogFile, Survey},
};
use crate::{
    error::{Error, Result},
    offset::Offset,
    record::{BatchHeader, HEADER_BYTES},
    segment::{FileKind, Scan, file_name},
    sys::{Dir, File, Open},
};

/// What to do beside what damage asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairOptions {
    /// Sound batches to drop all the same: each goes that holds one of these offsets. For batches whose checksum is right and
    /// whose records cannot be read. The log's last batch is no such one: to cut it is
    /// [`LogWriter::open_cut`](crate::LogWriter::open_cut)'s work.
    pub drop_batches: Vec<Offset>,
    /// Build every index anew, the right ones too.
    pub rebuild_indexes: bool,
}

/// What a repair would do to the files of segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairPlan {
    /// What would be dropped, or cut off the end, in the order of the log.
    pub dropped: Vec<Dropped>,
    /// Segments of which nothing can stay: without one whole batch and under a name that the others contradict, or of which
    /// no batch fits between those of the others. Their whole files go.
    pub removed: Vec<Dropped>,
    /// Segments whose name is not what their batches say, with the name that they would get.
    pub renamed: Vec<(PathBuf, PathBuf)>,
    /// Offsets of [`RepairOptions::drop_batches`] that no sound batch holds.
    pub not_found: Vec<Offset>,
    /// Where the log ends before the repair, what may be cut there not counted.
    pub end: Offset,
}

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
    /// True for a sound batch that goes because it was asked for.
    pub asked_for: bool,
    /// The file that keeps them, once they were dropped.
    pub kept_in: Option<PathBuf>,
}

/// What there is of one segment.
#[derive(Debug)]
pub(super) struct Examined {
    pub(super) log: LogFile,
    /// The base offset that its name should say.
    pub(super) base: Offset,
    /// From where to where bytes are good.
    pub(super) good: Vec<Range<u64>>,
    pub(super) bad: Vec<Dropped>,
    /// The whole file goes.
    pub(super) removed: Option<Dropped>,
    /// The offset after the last good batch.
    pub(super) end: Offset,
}

/// What [`LogWriter::open_repaired`](crate::LogWriter::open_repaired) would drop from the log in `dir`, and what it would
/// cut from its end. Changes nothing and takes no lock: with a writer at work, what it is just writing may look torn.
pub fn repair_plan(dir: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairPlan> {
    let path = dir.as_ref();
    let dir = Dir::open(path).map_err(|error| {
        if error.is_not_found() { Error::NotFound { path: path.to_owned() } } else { error.into() }
    })?;
    let examined = examine_all(&dir, options)?;
    let mut plan = RepairPlan::default();
    for segment in examined {
        if let Some(removed) = segment.removed {
            plan.removed.push(removed);
            continue;
        }
        plan.end = plan.end.max(segment.end);
        if segment.base != segment.log.base {
            let [from, to] =
                [segment.log.base, segment.base].map(|base| dir.path_of(file_name(base, FileKind::Log)));
            plan.renamed.push((from, to));
        }
        plan.dropped.extend(segment.bad);
    }
    let is_held = |asked: &&Offset| {
        let mut asked_for = plan.dropped.iter().filter(|dropped| dropped.asked_for);
        asked_for.any(|dropped| **asked >= dropped.offset && dropped.next.is_some_and(|next| **asked < next))
    };
    plan.not_found = options.drop_batches.iter().filter(|asked| !is_held(asked)).copied().collect();
    Ok(plan)
}

/// One segment, read once.
struct Segment {
    log: LogFile,
    /// The base offset that its name says, or its batches where it says too much.
    base: Offset,
    /// Where two batches that follow one another say that it begins.
    first: Option<Offset>,
    found: Pieces,
    is_folded: bool,
    /// The most batches of it that fit together, and the offset after them.
    most: u64,
    end: Offset,
}

impl Segment {
    fn read(dir: &Dir, log: LogFile, before: Offset, folds: bool) -> Result<Self> {
        let first = first_offset(dir, log)?;
        let base = match first {
            Some(first) if first < log.base && first >= before => {
                if dir.exists(file_name(first, FileKind::Log))? { log.base } else { first }
            }
            _ => log.base,
        };
        let file = dir.open_file(file_name(log.base, FileKind::Log), Open::Read)?;
        let found = Pieces::read(&file, base)?;
        let mut segment = Self { log, base, first, found, is_folded: false, most: 0, end: base };
        let bounds = Bounds { low: segment.low(), high: None };
        let (most, end) = segment.found.sum(&segment.found.most(bounds));
        (segment.most, segment.end) = (most, end.unwrap_or(base));
        segment.is_folded = folds && segment.found.fold(bounds);
        Ok(segment)
    }

    /// The least offset that it may hold: a name that says less than is in the file would cost the segment before it its
    /// last batches.
    fn low(&self) -> Offset {
        self.first.map_or(self.base, |first| first.max(self.base))
    }

    /// The most batches that fit together below an offset; they are read anew where they are not held one by one.
    fn most_below(&mut self, dir: &Dir, high: Option<Offset>) -> Result<u64> {
        if high.is_none_or(|high| self.end <= high) && self.is_folded {
            return Ok(self.most);
        }
        self.unfold(dir)?;
        let bounds = Bounds { low: self.low(), high };
        Ok(self.found.sum(&self.found.most(bounds)).0)
    }

    fn unfold(&mut self, dir: &Dir) -> Result<()> {
        if std::mem::take(&mut self.is_folded) {
            let file = dir.open_file(file_name(self.log.base, FileKind::Log), Open::Read)?;
            self.found = Pieces::read(&file, self.base)?;
        }
        Ok(())
    }
}

/// Reads all segments.
pub(super) fn examine_all(dir: &Dir, options: &RepairOptions) -> Result<Vec<Examined>> {
    let vouched = Vouched::load(dir);
    let survey = Survey::take(dir)?;
    let mut segments: Vec<Segment> = Vec::with_capacity(survey.logs.len());
    let mut before = Offset::ZERO;
    for log in &survey.logs {
        let segment = Segment::read(dir, *log, before, options.drop_batches.is_empty())?;
        if segment.most > 0 {
            before = before.max(segment.end);
        }
        segments.push(segment);
    }
    let stays = which_stay(dir, &mut segments)?;
    let mut all: Vec<Examined> = Vec::with_capacity(segments.len());
    // Where what stays ends, and whether that is known.
    let mut end: Option<(Offset, bool)> = None;
    for index in 0..segments.len() {
        let following = (index + 1..segments.len()).find(|next| stays.contains(next));
        let high = following.and_then(|next| segments.get(next)).map(Segment::low);
        let Some(segment) = segments.get_mut(index) else { break };
        let name = segment.log.base;
        if !stays.contains(&index) {
            let is_empty_end = segment.log.len == 0 && high.is_none();
            let may_stay = segment.most == 0
                && !segment.found.has_batches()
                && name.next().is_some()
                && end.is_none_or(|(end, is_known)| {
                    let is_above = name >= end;
                    name == end || is_above && (!is_known || vouched.says(name, is_empty_end))
                });
            if !may_stay {
                all.push(gone(dir, segment, end.map_or(name, |(end, _)| end)));
                continue;
            }
        } else if high.is_some_and(|high| segment.end > high) {
            segment.unfold(dir)?;
        }
        let before = end.map_or(Offset::ZERO, |(end, _)| end);
        let base = match segment.first {
            Some(first) if before > name && first >= before && stays.contains(&index) => {
                if dir.exists(file_name(first, FileKind::Log))? { segment.base } else { first }
            }
            _ => segment.base,
        };
        let examined = settle(dir, segment, base, high, options);
        let is_known = examined.bad.last().is_none_or(|bad| bad.position < examined.good_end());
        end = Some((examined.end, is_known));
        all.push(examined);
    }
    Ok(all)
}

/// What our own checkpoint says of the segments that there are.
struct Vouched {
    names: Option<Vec<Offset>>,
}

impl Vouched {
    fn load(dir: &Dir) -> Self {
        let names = match Checkpoint::load(dir) {
            Ok(Found::Valid(checkpoint)) => checkpoint.point.map(|point| {
                let sealed = checkpoint.sealed.iter().map(|(base, _)| *base);
                sealed.chain([point.base]).collect()
            }),
            _ => None,
        };
        Self { names }
    }

    /// True for a segment that it names. Where it names none, a compaction may have left an empty one at the end.
    fn says(&self, name: Offset, is_empty_end: bool) -> bool {
        self.names.as_ref().map_or(is_empty_end, |names| names.contains(&name))
    }
}

/// The segments, by their numbers, that hold the most batches together: each up to where the next of them begins.
fn which_stay(dir: &Dir, segments: &mut [Segment]) -> Result<Vec<usize>> {
    let with_batches: Vec<usize> =
        (0..segments.len()).filter(|at| segments.get(*at).is_some_and(|segment| segment.most > 0)).collect();
    // For each, from the last one back: the most batches from it on, and the next of them; the best of all behind it.
    let mut best: Vec<(usize, u64, Option<usize>)> = Vec::new();
    let mut best_behind: Vec<u64> = vec![0];
    for at in with_batches.into_iter().rev() {
        let Some(most) = segments.get(at).map(|segment| segment.most) else { continue };
        let (mut count, mut link) = (0, None);
        for (place, (next, behind, _)) in best.iter().enumerate().rev() {
            let rest = best_behind.get(place + 1).copied().unwrap_or(0);
            if count >= most.saturating_add(rest) {
                break;
            }
            let high = segments.get(*next).map(Segment::low);
            let Some(segment) = segments.get_mut(at) else { break };
            let own = segment.most_below(dir, high)?;
            let with = own.saturating_add(*behind);
            if own > 0 && with > count {
                (count, link) = (with, Some(place));
            }
        }
        if most > count {
            (count, link) = (most, None);
        }
        best_behind.push(best_behind.last().copied().unwrap_or(0).max(count));
        best.push((at, count, link));
    }
    let mut stays = Vec::new();
    // Of as many, what begins first.
    let largest = best.iter().map(|(_, count, _)| *count).max();
    let mut place = best.iter().rposition(|(_, count, _)| Some(*count) == largest);
    while let Some((at, _, link)) = place.and_then(|place| best.get(place)) {
        stays.push(*at);
        place = *link;
    }
    Ok(stays)
}

/// A segment whose whole file goes.
fn gone(dir: &Dir, segment: &Segment, end: Offset) -> Examined {
    let reason = match (segment.log.len, segment.found.has_batches()) {
        (0, _) => format!("an empty segment whose name contradicts the others; the one before ends at {end}"),
        (_, false) => {
            format!("no batch in it, and its name contradicts the others; the one before ends at {end}")
        }
        (_, true) => "its batches lie at offsets that other segments hold".to_owned(),
    };
    let removed = Dropped {
        path: dir.path_of(file_name(segment.log.base, FileKind::Log)),
        position: 0,
        bytes: segment.log.len,
        offset: end,
        next: Some(end),
        reason,
        asked_for: false,
        kept_in: None,
    };
    let (log, base) = (segment.log, segment.log.base);
    Examined { log, base, good: Vec::new(), bad: Vec::new(), removed: Some(removed), end }
}

/// Decides about each piece of a segment that stays.
fn settle(
    dir: &Dir,
    segment: &Segment,
    base: Offset,
    high: Option<Offset>,
    options: &RepairOptions,
) -> Examined {
    let log = segment.log;
    let path = dir.path_of(file_name(log.base, FileKind::Log));
    let chosen = segment.found.most(Bounds { low: segment.low(), high });
    let mut chosen = chosen.into_iter().peekable();
    let mut examined = Examined { log, base, good: Vec::new(), bad: Vec::new(), removed: None, end: base };
    // The last of the bad ones waits for the batch after it.
    let bad = |examined: &mut Examined, (from, to): (u64, u64), offset, reason| {
        let bytes = to.saturating_sub(from);
        match examined.bad.last_mut().filter(|last| last.next.is_none() && last.position + last.bytes == from)
        {
            Some(last) => last.bytes += bytes,
            None => examined.bad.push(Dropped {
                path: path.clone(),
                position: from,
                bytes,
                offset,
                next: None,
                reason,
                asked_for: false,
                kept_in: None,
            }),
        }
    };
    for (at, piece) in segment.found.all.iter().enumerate() {
        let run = match piece {
            Piece::Bad { from, to, reason } => {
                let offset = examined.end;
                bad(&mut examined, (*from, *to), offset, reason.clone());
                continue;
            }
            Piece::Batch(run) => run,
        };
        if chosen.next_if_eq(&at).is_none() {
            let (offset, reason) = misfit(run, examined.end, high);
            bad(&mut examined, (run.from, run.to), offset, reason);
            continue;
        }
        if let Some(open) = examined.bad.last_mut().filter(|last| last.next.is_none()) {
            open.next = Some(run.first);
        }
        let is_asked = |asked: &Offset| *asked >= run.first && *asked < run.next;
        if options.drop_batches.iter().any(is_asked) {
            examined.bad.push(Dropped {
                path: dir.path_of(file_name(log.base, FileKind::Log)),
                position: run.from,
                bytes: run.to.saturating_sub(run.from),
                offset: run.first,
                next: Some(run.next),
                reason: "its checksum is right; it goes because that was asked for".to_owned(),
                asked_for: true,
                kept_in: None,
            });
        } else {
            match examined.good.last_mut().filter(|last| last.end == run.from) {
                Some(last) => last.end = run.to,
                None => examined.good.push(run.from..run.to),
            }
        }
        examined.end = run.next;
    }
    if let (Some(from), Some(high)) = (segment.found.zeros, high)
        && examined.end != high
    {
        // Room behind a segment that reaches the next one is trimmed by opening.
        let (offset, reason) = (examined.end, format!("zeros where offset {} belongs", examined.end));
        bad(&mut examined, (from, log.len), offset, reason);
    }
    if let Some(last) = examined.bad.last_mut().filter(|last| last.next.is_none()) {
        last.next = high;
    }
    examined
}

/// The first offset that a batch which does not fit may have held, and why it does not.
fn misfit(run: &Run, expected: Offset, high: Option<Offset>) -> (Offset, String) {
    let (first, last) = (run.first, run.next.saturating_sub(1));
    match high {
        Some(high) if run.next > high && first < high && first >= expected => {
            (first, "the batch reaches into the next segment".to_owned())
        }
        _ if first < expected => (
            expected,
            format!("offsets go back: the batch begins at {first}, those before it end at {expected}"),
        ),
        _ => (expected, format!("offsets {first} to {last} do not fit between the batches around them")),
    }
}

/// The offset of a segment's first batch, where two batches that follow one another agree on it: one alone may have lost its
/// own, which no checksum covers.
fn first_offset(dir: &Dir, log: LogFile) -> Result<Option<Offset>> {
    let file = dir.open_file(file_name(log.base, FileKind::Log), Open::Read)?;
    let mut head = [0; HEADER_BYTES];
    let count = file.read_at(&mut head, 0)?;
    let Ok(first) = BatchHeader::parse(head.get(..count).unwrap_or_default()) else { return Ok(None) };
    let base = first.base_offset();
    let mut scan = Scan::new(&file, base, 0, base)?;
    let (Ok(first), Ok(second)) = (scan.next_batch()?, scan.next_batch()?) else { return Ok(None) };
    Ok((first.header.next_offset() == Some(second.header.base_offset())).then_some(base))
}

impl Examined {
    /// Where the last good batch ends in the file.
    fn good_end(&self) -> u64 {
        self.good.last().map_or(0, |good| good.end)
    }

    /// True where a batch to be dropped has no sound one behind it: what follows would take its offsets.
    pub(super) fn drops_its_end(&self) -> bool {
        let end = self.good.last().map_or(0, |good| good.end);
        self.bad.iter().any(|bad| bad.asked_for && bad.position >= end)
    }
}

/// Copies a range of a file.
pub(super) fn copy(to: &File, from: &File, range: &Range<u64>, at: u64) -> Result<u64> {
    let count = range.end.saturating_sub(range.start);
    let copied = to.copy_range_from(from, range.start, at, count)?;
    if copied != count {
        let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        return Err(crate::sys::Error::new("copy", from.path(), source).into());
    }
    Ok(count)
}
