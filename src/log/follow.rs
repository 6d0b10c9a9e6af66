//! A log that another process writes, seen through its files: no lock, nothing changed, looked at again on demand.
//!
//! While a writer holds the directory and its control page is of this boot, the page says how far the log is written, so
//! nothing is seen that was not published. Elsewhere the batches say so: one at the end that does not check is one that is
//! not there yet. (The page of a writer that is gone says nothing of what a broker appended since.)

use std::{path::Path, sync::Arc};

use parking_lot::Mutex;

use super::{
    checkpoint::{BatchMark, Checkpoint, Found},
    control::{ControlPage, ControlState, ControlView},
    kafka_files,
    open::epochs_of,
    reader::{RETRIES, is_gone},
    recovery::mark_of,
    shared::Shared,
    summary::{self, SegmentSummary},
    survey::{LogFile, Survey},
};
use crate::{
    error::{Error, Result},
    offset::Offset,
    record::{BatchHeader, HEADER_BYTES},
    segment::{self, FileKind, Scan, Segment, SegmentEnd, SegmentSettings, file_name, unsupported},
    sys::{Dir, DirLock, File, Open},
};

/// What Kafka's defaults say; only used where an index has to be built in memory.
const SETTINGS: SegmentSettings =
    SegmentSettings { index_interval_bytes: 4096, index_bytes: 10 << 20, file_mode: 0, may_write: false };

#[derive(Debug)]
pub(super) struct Follower {
    tail: Mutex<Tail>,
}

/// The segment that is being written, read up to here.
#[derive(Debug)]
struct Tail {
    segment: Arc<Segment>,
    file: File,
    position: u64,
    next: Offset,
    /// The last batch read, and where it begins: if it is not there any more, the log was cut.
    mark: Option<(u64, BatchMark)>,
    /// The control page at the last look: where it says the same again, nothing has changed.
    seen: Option<ControlView>,
}

impl Follower {
    pub(super) fn open(path: &Path) -> Result<(Shared, Self)> {
        again_if_gone(|| Self::attach(path))
    }

    fn attach(path: &Path) -> Result<(Shared, Self)> {
        let not_found = || Error::NotFound { path: path.to_owned() };
        let dir =
            Dir::open(path).map_err(|error| if error.is_not_found() { not_found() } else { error.into() })?;
        let dir = Arc::new(dir);
        let survey = Survey::take_while_written(&dir)?;
        let (Some(first), Some(last)) = (survey.logs.first(), survey.logs.last()) else {
            return Err(not_found());
        };
        let (first, last) = (first.base, *last);
        let control = ControlView::read(&dir);
        let mut tail = Tail::open(&dir, last)?;
        tail.seen = control;
        tail.read_on(limit_of(&dir, control))?;
        tail.trust_if_closed(&dir);
        let segments = segments_of(&dir, &survey, &[], &tail);
        let (start, durable) = bounds(&dir, control, first, tail.next);
        let epochs = epochs_of(&dir);
        let shared = Shared::new(dir, segments, (start, durable, tail.next), epochs, ControlPage::none());
        Ok((shared, Self { tail: Mutex::new(tail) }))
    }

    /// Looks at the directory again.
    pub(super) fn refresh(&self, shared: &Shared) -> Result<()> {
        again_if_gone(|| self.look(shared))
    }

    fn look(&self, shared: &Shared) -> Result<()> {
        let mut tail = self.tail.lock();
        let control = ControlView::read(&shared.dir);
        if control.is_some_and(|view| view.state == ControlState::Opening) && DirLock::is_held(&shared.dir) {
            // A writer is recovering: the last view stands until it says where the log ends. One that died of it never
            // will.
            return Ok(());
        }
        let published = limit_of(&shared.dir, control);
        if control == tail.seen && published == Some(tail.next) {
            return Ok(());
        }
        let generation = |view: Option<ControlView>| view.map(|view| view.generation);
        if generation(control) != generation(tail.seen) || published.is_none() {
            *shared.epochs.write() = epochs_of(&shared.dir);
        }
        let survey = Survey::take_while_written(&shared.dir)?;
        let (Some(first), Some(last)) = (survey.logs.first(), survey.logs.last()) else { return Ok(()) };
        let is_same_file = survey.logs.iter().any(|log| log.base == tail.segment.base());
        let is_intact = is_same_file && tail.is_in_place(&shared.dir)? && tail.is_intact()?;
        if is_intact {
            // The rest of what was the last segment, before what follows it.
            let limit = if last.base == tail.segment.base() { published } else { None };
            tail.read_on(limit)?;
        }
        // The start before the segments: who finds one gone looks at the start again.
        shared.raise_start(bounds(&shared.dir, control, first.base, tail.next).0);
        let known = shared.segments();
        let mut changed = !is_intact || known.len() != survey.logs.len() || known[0].base() != first.base;
        if !is_intact || last.base != tail.segment.base() {
            let sealed = is_intact.then(|| tail.sealed(&shared.dir));
            *tail = Tail::open(&shared.dir, *last)?;
            tail.read_on(published)?;
            let kept: Vec<_> =
                if is_intact { known.iter().cloned().chain(sealed).collect() } else { Vec::new() };
            shared.publish_segments(segments_of(&shared.dir, &survey, &kept, &tail));
            changed = false;
        }
        if changed {
            shared.publish_segments(segments_of(&shared.dir, &survey, &known, &tail));
        }
        tail.seen = control;
        let (start, durable) = bounds(&shared.dir, control, first.base, tail.next);
        shared.follow(start, durable, tail.next);
        Ok(())
    }
}

impl Tail {
    fn open(dir: &Arc<Dir>, log: LogFile) -> Result<Self> {
        let file = dir.open_file(file_name(log.base, FileKind::Log), Open::Read)?;
        let end = SegmentEnd { position: 0, next: log.base };
        let segment = Arc::new(Segment::new(Arc::clone(dir), log.base, end, SETTINGS));
        segment.set_sealed(false);
        let mut tail = Self { segment, file, position: 0, next: log.base, mark: None, seen: None };
        tail.skip_indexed()?;
        Ok(tail)
    }

    /// Begins at the last batch that the index names and that is really there.
    fn skip_indexed(&mut self) -> Result<()> {
        let Ok(opened) = self.segment.open() else { return Ok(()) };
        let mut at = opened.offsets.entries();
        // The last entries may speak of batches that are not whole yet, or were cut.
        for _ in 0..4 {
            let Some(entry) = at.checked_sub(1).and_then(|last| opened.offsets.entry(last)) else {
                return Ok(());
            };
            at -= 1;
            let position = u64::from(entry.position);
            let mut scan = Scan::new(&self.file, self.segment.base(), position, self.segment.base())?;
            if let Ok(batch) = scan.next_batch()?
                && batch.header.last_offset() == entry.offset
            {
                self.take(position, &batch.header);
                self.publish();
                return Ok(());
            }
        }
        Ok(())
    }

    fn take(&mut self, position: u64, header: &BatchHeader) {
        self.mark = Some((position, mark_of(header)));
        self.position = position + u64::from(header.size_bytes());
        self.next = header.next_offset().unwrap_or(Offset::MAX);
    }

    fn publish(&self) {
        let position = u32::try_from(self.position).unwrap_or(u32::MAX);
        self.segment.publish(SegmentEnd { position, next: self.next });
    }

    /// True where the file that is read is still the segment's: a cut puts another in its place.
    fn is_in_place(&self, dir: &Dir) -> Result<bool> {
        let now = dir.stat(self.segment.log_name())?;
        let own = self.file.stat()?;
        Ok(now.is_some_and(|now| (now.device, now.inode) == (own.device, own.inode)))
    }

    /// True where the last batch read is still where it was.
    fn is_intact(&self) -> Result<bool> {
        let Some((position, mark)) = self.mark else { return Ok(true) };
        let mut head = [0; HEADER_BYTES];
        let read = self.file.read_at(&mut head, position)?;
        Ok(read == HEADER_BYTES && BatchHeader::parse(&head).is_ok_and(|header| mark_of(&header) == mark))
    }

    /// Reads on to the last batch that checks and ends at or before `limit`.
    fn read_on(&mut self, limit: Option<Offset>) -> Result<()> {
        if limit.is_some_and(|limit| self.next >= limit) {
            return Ok(());
        }
        let mut scan = Scan::new(&self.file, self.segment.base(), self.position, self.next)?;
        let mut last = None;
        loop {
            match scan.next_batch()? {
                Ok(batch) if limit.is_some_and(|limit| batch.header.last_offset() >= limit) => break,
                Ok(batch) => last = Some(batch),
                Err(segment::Tail::Old(magic)) => return Err(unsupported(&self.file, magic)),
                Err(_) => break,
            }
        }
        if let Some(batch) = last {
            self.take(batch.position, &batch.header);
            self.publish();
        }
        Ok(())
    }

    /// A log that was closed, and not changed since, has a time index that speaks of all of the segment.
    fn trust_if_closed(&self, dir: &Dir) {
        if let Ok(Found::Valid(Checkpoint { clean: true, point: Some(point), .. })) = Checkpoint::load(dir)
            && point.base == self.segment.base()
            && point.position == self.position
        {
            self.segment.trust_times();
        }
    }

    /// The segment now that another follows it: its indexes are complete and may be mapped.
    fn sealed(&self, dir: &Arc<Dir>) -> Arc<Segment> {
        Arc::new(Segment::new(Arc::clone(dir), self.segment.base(), self.segment.end(), SETTINGS))
    }
}

/// Retention may take a file between its listing and its opening: then the directory is listed again.
fn again_if_gone<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 0..RETRIES {
        match look() {
            Err(error) if is_gone(&error) => {}
            done => return done,
        }
    }
    look()
}

/// How far the writer has published, where there is one and its page can be believed.
fn limit_of(dir: &Dir, control: Option<ControlView>) -> Option<Offset> {
    let is_writing = |view: &ControlView| matches!(view.state, ControlState::Open | ControlState::Poisoned);
    control.filter(is_writing).filter(|_| DirLock::is_held(dir)).map(|view| view.written)
}

/// One segment for each file, those already known kept.
fn segments_of(dir: &Arc<Dir>, survey: &Survey, known: &[Arc<Segment>], tail: &Tail) -> Vec<Arc<Segment>> {
    let point = match Checkpoint::load(dir) {
        Ok(Found::Valid(checkpoint)) => checkpoint.point,
        _ => None,
    };
    let trusted_below = point.map_or(Offset::ZERO, |point| point.base);
    let summaries = summary::load(dir);
    let mut segments = Vec::with_capacity(survey.logs.len());
    for (index, log) in survey.logs.iter().enumerate() {
        let Some(following) = survey.logs.get(index + 1) else {
            segments.push(Arc::clone(&tail.segment));
            continue;
        };
        // The latest first: a segment that was the last may be known twice.
        let same = known.iter().rev().find(|segment| segment.base() == log.base && segment.is_sealed());
        if let Some(segment) = same {
            segments.push(Arc::clone(segment));
            continue;
        }
        let summary =
            summaries.iter().find(|summary| summary.base() == log.base && summary.length == log.len);
        let next = summary.and_then(SegmentSummary::next).unwrap_or(following.base);
        let end = SegmentEnd { position: u32::try_from(log.len).unwrap_or(u32::MAX), next };
        let segment = Segment::new(Arc::clone(dir), log.base, end, SETTINGS);
        if let Some(largest) = summary.and_then(SegmentSummary::largest) {
            segment.set_largest(largest, end.position);
        }
        if log.base < trusted_below {
            segment.trust_times();
        }
        segments.push(Arc::new(segment));
    }
    segments
}

/// The first readable offset and the end of what is durable, as far as anything says so.
fn bounds(dir: &Dir, control: Option<ControlView>, first: Offset, end: Offset) -> (Offset, Offset) {
    let checkpoint = match Checkpoint::load(dir) {
        Ok(Found::Valid(checkpoint)) => Some(checkpoint),
        _ => None,
    };
    let hints = kafka_files::hints_for(dir);
    let starts =
        [control.map(|view| view.start), checkpoint.as_ref().map(|stored| stored.start), hints.log_start];
    let start = starts.into_iter().flatten().filter(|start| *start <= end).fold(first, Offset::max);
    let durable = match (control, checkpoint.and_then(|stored| stored.point)) {
        (Some(view), _) => view.durable,
        (None, Some(point)) => point.offset,
        (None, None) if hints.clean => end,
        (None, None) => hints.recovery_point.unwrap_or(start),
    };
    (start, durable.clamp(start, end.max(start)))
}
