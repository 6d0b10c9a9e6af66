//! The segment at the end of a log that another process writes, and how far it is known.

use std::sync::Arc;

use super::{
    checkpoint::{BatchMark, Checkpoint, Found, Point},
    recovery::mark_of,
};
use crate::{
    error::Result,
    offset::Offset,
    record::{BatchHeader, HEADER_BYTES},
    segment::{FileKind, Scan, Segment, SegmentEnd, SegmentSettings, Tail as BadTail, file_name},
    sys::{Dir, File, Open},
};

/// What Kafka's defaults say; only used where an index has to be built in memory.
pub(super) const SETTINGS: SegmentSettings =
    SegmentSettings { index_interval_bytes: 4096, index_bytes: 10 << 20, file_mode: 0, may_write: false };

/// Indexes are copied again when the segment has grown by so much: a look-up walks over less than that.
const COPY_AGAIN_BYTES: u64 = 1 << 20;

/// The last segment, and how far it may be read.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) segment: Arc<Segment>,
    file: File,
    end: TailEnd,
    /// Where it ended when the indexes were let go of last.
    copied_at: u64,
}

/// A place between two batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TailEnd {
    pub(super) position: u64,
    pub(super) next: Offset,
    /// The last batch before it, and where it begins, where that was read: if it is not there any more, the log was cut.
    mark: Option<(u64, BatchMark)>,
}

impl TailEnd {
    /// As a writer published it.
    pub(super) fn published(end: SegmentEnd) -> Self {
        Self { position: u64::from(end.position), next: end.next, mark: None }
    }

    fn after(position: u64, header: &BatchHeader) -> Self {
        Self {
            position: position + u64::from(header.size_bytes()),
            next: header.next_offset().unwrap_or(Offset::MAX),
            mark: Some((position, mark_of(header))),
        }
    }

    /// Where a recovery point says.
    fn at(point: &Point) -> Self {
        let mark =
            point.batch.and_then(|mark| Some((point.position.checked_sub(u64::from(mark.size))?, mark)));
        Self { position: point.position, next: point.offset, mark }
    }

    fn of_segment(self) -> SegmentEnd {
        SegmentEnd { position: u32::try_from(self.position).unwrap_or(u32::MAX), next: self.next }
    }
}

impl Tail {
    /// The segment at `base`, nothing of it read.
    pub(super) fn open(dir: &Arc<Dir>, base: Offset) -> Result<Self> {
        let file = dir.open_file(file_name(base, FileKind::Log), Open::Read)?;
        let end = SegmentEnd { position: 0, next: base };
        let segment = Arc::new(Segment::new(Arc::clone(dir), base, end, SETTINGS));
        segment.set_sealed(false);
        Ok(Self { segment, file, end: TailEnd::published(end), copied_at: 0 })
    }

    pub(super) fn base(&self) -> Offset {
        self.segment.base()
    }

    /// Moves the end, for whoever reads the segment too.
    pub(super) fn set_end(&mut self, end: TailEnd) {
        self.end = end;
        self.segment.publish(end.of_segment());
        if end.position >= self.copied_at + COPY_AGAIN_BYTES {
            self.copied_at = end.position;
            self.segment.forget_copies();
        }
    }

    /// True where the file still holds what was read of it, and is still the segment's: a cut of published records puts
    /// another in its place.
    pub(super) fn is_intact(&self, dir: &Dir) -> Result<bool> {
        let (own, now) = (self.file.stat()?, dir.stat(self.segment.log_name())?);
        let is_in_place = now.is_some_and(|now| (now.device, now.inode) == (own.device, own.inode));
        if !is_in_place || own.len < self.end.position {
            return Ok(false);
        }
        let Some((position, mark)) = self.end.mark else { return Ok(true) };
        let mut head = [0; HEADER_BYTES];
        let read = self.file.read_at(&mut head, position)?;
        let head = head.get(..read).unwrap_or_default();
        Ok(BatchHeader::parse_stored(head).is_ok_and(|header| mark_of(&header) == mark))
    }

    /// The end behind the last batch from here on that checks and ends at or before `limit`. Changes nothing.
    pub(super) fn scan(&self, limit: Option<Offset>) -> Result<TailEnd> {
        let begin = if self.end.position == 0 { self.indexed()?.unwrap_or(self.end) } else { self.end };
        if limit.is_some_and(|limit| begin.next > limit) {
            // Beyond what the index names: from the front.
            return self.scan_from(self.end, limit);
        }
        self.scan_from(begin, limit)
    }

    /// The same where more is known of the log than its batches tell: what was durable once is passed over where it is
    /// damaged, as recovery does, and is the readers' to report. `own` is a place that the log surely reaches, `kafka` a
    /// broker's word, which says nothing true where the batches end before it.
    pub(super) fn scan_past_damage(
        &self,
        limit: Option<Offset>,
        own: Option<&Point>,
        kafka: Option<Offset>,
    ) -> Result<TailEnd> {
        let mut end = self.scan(limit)?;
        let is_within = |at: Offset| limit.is_none_or(|limit| at <= limit);
        let own = own.filter(|point| point.base == self.base() && is_within(point.offset));
        if let Some(point) = own.filter(|point| point.offset > end.next) {
            end = self.scan_from(TailEnd::at(point), limit)?;
        }
        if let Some(floor) = kafka.filter(|floor| *floor > end.next && is_within(*floor)) {
            let passed = self.scan_passing(end, limit, floor)?;
            if passed.next >= floor {
                end = passed;
            }
        }
        Ok(end)
    }

    fn scan_from(&self, begin: TailEnd, limit: Option<Offset>) -> Result<TailEnd> {
        self.scan_passing(begin, limit, Offset::ZERO)
    }

    /// Damage below `floor` is passed over.
    fn scan_passing(&self, begin: TailEnd, limit: Option<Offset>, floor: Offset) -> Result<TailEnd> {
        if limit.is_some_and(|limit| begin.next >= limit) {
            return Ok(begin);
        }
        let mut scan = Scan::new(&self.file, self.base(), begin.position, begin.next)?;
        let mut last = None;
        loop {
            match scan.next_batch()? {
                Ok(batch) if limit.is_some_and(|limit| batch.header.last_offset() >= limit) => break,
                Ok(batch) => last = Some(batch),
                Err(BadTail::Bad(_)) if scan.next_offset() < floor && scan.resync()? => {}
                Err(_) => break,
            }
        }
        Ok(last.map_or(begin, |batch| TailEnd::after(batch.position, &batch.header)))
    }

    /// The end of the last batch that the index names and that is really there.
    fn indexed(&self) -> Result<Option<TailEnd>> {
        let Ok(opened) = self.segment.open() else { return Ok(None) };
        let mut at = opened.offsets.entries();
        // The last entries may speak of batches that are not whole yet, or were cut.
        for _ in 0..4 {
            let Some(entry) = at.checked_sub(1).and_then(|last| opened.offsets.entry(last)) else {
                return Ok(None);
            };
            at -= 1;
            let position = u64::from(entry.position);
            let mut scan = Scan::new(&self.file, self.base(), position, self.base())?;
            if let Ok(batch) = scan.next_batch()?
                && batch.header.last_offset() == entry.offset
            {
                return Ok(Some(TailEnd::after(position, &batch.header)));
            }
        }
        Ok(None)
    }

    /// A log that was closed, and not changed since, has a time index that speaks of all of the segment.
    pub(super) fn trust_if_closed(&self, dir: &Dir) {
        if let Ok(Found::Valid(Checkpoint { clean: true, point: Some(point), .. })) = Checkpoint::load(dir)
            && point.base == self.base()
            && point.position == self.end.position
        {
            self.segment.trust_times();
        }
    }

    /// The segment now that another follows it: its indexes are complete and may be mapped. What in it is no batch up to
    /// where the next one begins is damage, and the readers' to report.
    pub(super) fn sealed(&self, dir: &Arc<Dir>, following: Offset) -> Result<Arc<Segment>> {
        let end = self.scan(None)?;
        let len = self.file.len()?;
        let end =
            if end.position < len { TailEnd { position: len, next: following, mark: None } } else { end };
        Ok(Arc::new(Segment::new(Arc::clone(dir), self.base(), end.of_segment(), SETTINGS)))
    }
}
