//! What a repair would do, found by reading every segment from front to back. Changes nothing.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use super::survey::{LogFile, Survey};
use crate::{
    error::{Error, Result},
    offset::Offset,
    record::{BatchHeader, HEADER_BYTES},
    segment::{FileKind, Scan, Tail, file_name, unsupported},
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
    /// The offset after the last good batch.
    end: Offset,
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

/// Reads all segments.
pub(super) fn examine_all(dir: &Dir, options: &RepairOptions) -> Result<Vec<Examined>> {
    let survey = Survey::take(dir)?;
    let firsts = survey.logs.iter().map(|log| first_offset(dir, *log)).collect::<Result<Vec<_>>>()?;
    let mut all: Vec<Examined> = Vec::with_capacity(survey.logs.len());
    for (index, log) in survey.logs.iter().enumerate() {
        let end = all.last().map_or(Offset::ZERO, |before| before.end);
        let following = survey.logs.get(index + 1).map(|next| next.base);
        // A name that says less than is in the file would cost the segment before it its last batches.
        let bound = following.map(|name| name.max(firsts.get(index + 1).copied().flatten().unwrap_or(name)));
        let base = match firsts.get(index).copied().flatten() {
            Some(first) if (first < log.base || end > log.base) && first >= end => first,
            _ => log.base,
        };
        let is_taken = base != log.base && dir.exists(file_name(base, FileKind::Log))?;
        let base = if is_taken { log.base } else { base };
        all.push(examine(dir, *log, base, bound, options)?);
    }
    Ok(all)
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

/// Reads a segment from front to back, over any damage.
fn examine(
    dir: &Dir,
    log: LogFile,
    base: Offset,
    next_base: Option<Offset>,
    options: &RepairOptions,
) -> Result<Examined> {
    let name = file_name(log.base, FileKind::Log);
    let file = dir.open_file(&name, Open::Read)?;
    let mut scan = Scan::new(&file, base, 0, base)?;
    let mut examined = Examined { log, base, good: Vec::new(), bad: Vec::new(), end: base };
    let bad = |position: u64, end: u64, offset: Offset, next: Option<Offset>, reason: String| Dropped {
        path: dir.path_of(&name),
        position,
        bytes: end.saturating_sub(position),
        offset,
        next,
        reason,
        asked_for: false,
        kept_in: None,
    };
    loop {
        let (from, offset) = (scan.position(), scan.next_offset());
        match scan.next_batch()? {
            Ok(batch) if batch.header.is_legacy() => return Err(unsupported(&file, batch.header.magic())),
            Ok(batch) => {
                let (first, last) = (batch.header.base_offset(), batch.header.last_offset());
                if let Some(open) = examined.bad.last_mut().filter(|last| last.next.is_none()) {
                    open.next = Some(first);
                }
                if next_base.is_some_and(|next| last >= next) {
                    let reason = "the batch reaches into the next segment".to_owned();
                    examined.bad.push(bad(from, batch.end(), first, next_base, reason));
                    continue;
                }
                if options.drop_batches.iter().any(|asked| (first..=last).contains(asked)) {
                    let reason = "its checksum is right; it goes because that was asked for".to_owned();
                    let dropped = bad(from, batch.end(), first, last.next(), reason);
                    examined.bad.push(Dropped { asked_for: true, ..dropped });
                    examined.end = last.next().unwrap_or(last);
                    continue;
                }
                examined.end = last.next().unwrap_or(last);
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

impl Examined {
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
