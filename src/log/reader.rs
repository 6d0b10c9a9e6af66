//! Readers: any number, in the writer's process or another, never in the writer's way.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::{
    cursor::{Batches, OwnedRecords, Records},
    follow::Follower,
    shared::{Shared, Wait},
};
use crate::{
    config::{deadline_in, is_past},
    error::{Error, Result},
    offset::{Offset, Timestamp},
    record::{BatchHeader, BatchRef, HEADER_BYTES, OwnedRecord, Scratch},
    segment::{Located, Segment, Window, corruption},
    sys::{self, File, FileSlice},
};

/// How a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// How far. Default: everything written.
    pub follow: Follow,
    /// Check each batch's CRC before its bytes are handed out. Default: yes. Slices are never checked.
    pub verify_crc: bool,
    /// What the kernel is told about the reads to come.
    pub access: Access,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { follow: Follow::default(), verify_crc: true, access: Access::default() }
    }
}

/// Which end a reader follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Follow {
    /// Everything written: a power cut may take the newest of it back.
    #[default]
    Written,
    /// Only what survives a power cut.
    Durable,
}

/// How a log will be read, for the kernel's read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Access {
    /// The kernel finds out by itself.
    #[default]
    Normal,
    /// From front to back.
    Sequential,
    /// Here and there.
    Random,
}

/// Where a reader stands: the offset of the next record, and the leader epoch of the last batch read, by which a cut
/// under the reader is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The next offset to be read.
    pub offset: Offset,
    /// The leader epoch of the batch before it, if one was read.
    pub leader_epoch: Option<i32>,
}

impl From<Offset> for Position {
    fn from(offset: Offset) -> Self {
        Self { offset, leader_epoch: None }
    }
}

/// What [`LogReader::read`] put into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOutcome {
    /// The offset after the last batch read: where to go on.
    pub next: Offset,
    /// How many bytes were read; 0 where nothing is there yet.
    pub bytes: usize,
}

/// One segment, as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Its first offset.
    pub base_offset: Offset,
    /// The offset after its last record.
    pub next_offset: Offset,
    /// Bytes of batches in its `.log`.
    pub size_bytes: u64,
    /// The largest timestamp, where it is known without reading.
    pub max_timestamp: Option<Timestamp>,
    /// Its `.log` file.
    pub path: PathBuf,
    /// False for the one that is being written.
    pub sealed: bool,
}

/// Numbers about a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStats {
    /// The first readable offset.
    pub start: Offset,
    /// The end of what survives a power cut.
    pub durable_end: Offset,
    /// The end of what is written.
    pub end: Offset,
    /// How many segments there are.
    pub segments: usize,
    /// Bytes of batches in all of them.
    pub bytes: u64,
    /// How many of them have their files open.
    pub open_segments: usize,
}

/// How long a reader of another process sleeps between two looks.
const SHORTEST_NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(10);
/// How often an operation is tried again because segments came or went under it.
pub(super) const RETRIES: usize = 8;

/// Reads a log. Cheap to clone; all clones share open files and what they know of the log.
#[derive(Clone, Debug)]
pub struct LogReader {
    pub(super) inner: Arc<Inner>,
    options: ReadOptions,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    /// For a log that another process writes.
    follower: Option<Follower>,
    /// The writer's policy never makes anything durable by itself.
    is_never_durable: bool,
    /// Windows and scratch memory of look-ups, kept for the next.
    spare: Mutex<Vec<(Window, Scratch)>>,
}

impl LogReader {
    /// Opens a directory to read, without the lock and without changing anything, whether or not it is being written.
    ///
    /// [`Error::NotFound`] where there is no log.
    pub fn open(dir: impl AsRef<Path>, options: ReadOptions) -> Result<Self> {
        let (shared, follower) = Follower::open(dir.as_ref())?;
        Ok(Self::over(Arc::new(shared), Some(follower), false).with_options(options))
    }

    pub(super) fn of_writer(shared: Arc<Shared>, is_never_durable: bool) -> Self {
        Self::over(shared, None, is_never_durable)
    }

    fn over(shared: Arc<Shared>, follower: Option<Follower>, is_never_durable: bool) -> Self {
        let inner = Inner { shared, follower, is_never_durable, spare: Mutex::default() };
        Self { inner: Arc::new(inner), options: ReadOptions::default() }
    }

    /// The same reader with other options.
    #[must_use]
    pub fn with_options(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self
    }

    /// How this reader reads.
    pub fn options(&self) -> ReadOptions {
        self.options
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.shared().dir.path()
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    pub(super) fn is_following(&self) -> bool {
        self.inner.follower.is_some()
    }

    /// The first readable offset.
    pub fn start(&self) -> Offset {
        self.shared().start()
    }

    /// The end that this reader follows: the offset after the last record it may see.
    pub fn end(&self) -> Offset {
        match self.options.follow {
            Follow::Written => self.shared().written(),
            Follow::Durable => self.shared().durable(),
        }
    }

    /// The end of what survives a power cut.
    pub fn durable_end(&self) -> Offset {
        self.shared().durable()
    }

    /// The end of what is written, whichever end this reader follows.
    pub fn written_end(&self) -> Offset {
        self.shared().written()
    }

    fn check_follow(&self) -> Result<()> {
        if self.inner.is_never_durable && self.options.follow == Follow::Durable {
            return Err(Error::NeverDurable);
        }
        Ok(())
    }

    /// Looks again at a log that another process writes, and returns the end. For a reader of the writer's own process
    /// there is nothing to look at.
    pub fn refresh(&self) -> Result<Offset> {
        if let Some(follower) = &self.inner.follower {
            follower.refresh(self.shared())?;
        }
        Ok(self.end())
    }

    /// The place in the set of the segment that would hold `offset`.
    pub(super) fn floor(segments: &[Arc<Segment>], offset: Offset) -> usize {
        segments.partition_point(|segment| segment.base() <= offset).saturating_sub(1)
    }

    fn check_range(&self, from: Offset) -> Result<()> {
        let (start, end) = (self.start(), self.shared().written());
        if from < start || from > end {
            return Err(Error::OffsetOutOfRange { requested: from, start, end });
        }
        Ok(())
    }

    /// Finds the first batch whose last offset is `from` or later, in any segment. Segments that retention took away
    /// under the search are skipped by looking again.
    pub(super) fn locate(
        &self,
        from: Offset,
        window: &mut Window,
    ) -> Result<Option<(Arc<Segment>, Located)>> {
        for _ in 0..RETRIES {
            let segments = self.shared().segments();
            let mut vanished = false;
            for segment in &segments[Self::floor(&segments, from)..] {
                match self.with_segment(segment, |segment| segment.locate(from, window)) {
                    Ok(Some(located)) => {
                        if located.header.base_offset() > from {
                            // Offsets were left out, or retention took the segment away: the start was moved first.
                            self.check_range(from)?;
                        }
                        return Ok(Some((Arc::clone(segment), located)));
                    }
                    Ok(None) => window.clear(),
                    Err(error) if is_gone(&error) => {
                        vanished = true;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            self.check_range(from)?;
            if !vanished {
                return Ok(None);
            }
            self.refresh()?;
            self.check_range(from)?;
        }
        Ok(None)
    }

    /// Uses a segment's files, and lets go of others' where too many are open.
    pub(super) fn with_segment<T>(
        &self,
        segment: &Arc<Segment>,
        use_it: impl FnMut(&Segment) -> Result<T>,
    ) -> Result<T> {
        self.shared().with_segment(segment, use_it)
    }

    pub(super) fn borrow_memory<T>(&self, use_it: impl FnOnce(&mut Window, &mut Scratch) -> T) -> T {
        let spare = self.inner.spare.lock().pop();
        let (mut window, mut scratch) = spare.unwrap_or_else(|| (Window::new(0), Scratch::new()));
        window.clear();
        let result = use_it(&mut window, &mut scratch);
        let mut spares = self.inner.spare.lock();
        if spares.len() < 4 {
            spares.push((window, scratch));
        }
        result
    }

    /// Where in a segment the log ends for this reader: a position between two batches.
    pub(super) fn bound(&self, segment: &Arc<Segment>, end: Offset, window: &mut Window) -> Result<u32> {
        let here = segment.end();
        if here.next <= end {
            return Ok(here.position);
        }
        let first_beyond = self.with_segment(segment, |segment| segment.locate(end, window))?;
        Ok(first_beyond.map_or(here.position, |located| located.position))
    }

    /// The bytes from the batch that holds `from` on, as a piece of a file to be sent: at most `max_bytes`, but the first
    /// batch always whole. It may end inside a batch and begin before `from`; nothing is read or checked. `None` where
    /// nothing is there yet.
    pub fn slice(&self, from: Offset, max_bytes: u32) -> Result<Option<FileSlice>> {
        self.check_follow()?;
        self.check_range(from)?;
        let end = self.end();
        if from >= end {
            return Ok(None);
        }
        self.borrow_memory(|window, _| {
            let Some((segment, located)) = self.locate(from, window)? else { return Ok(None) };
            if located.header.base_offset() >= end {
                return Ok(None);
            }
            let bound = self.bound(&segment, end, window)?;
            let len = max_bytes.max(located.header.size_bytes()).min(bound - located.position);
            let log = Arc::clone(&segment.open()?.log);
            Ok(Some(FileSlice::new(log, u64::from(located.position), len)))
        })
    }

    /// Reads whole batches from the one that holds `from` on: at most `max_bytes`, but the first always. `into` is
    /// emptied first.
    pub fn read(&self, from: Offset, max_bytes: u32, into: &mut Vec<u8>) -> Result<ReadOutcome> {
        into.clear();
        let Some(slice) = self.slice(from, max_bytes)? else {
            return Ok(ReadOutcome { next: from, bytes: 0 });
        };
        into.resize(usize::try_from(slice.len()).unwrap_or(usize::MAX), 0);
        let (file, at) = (slice.file(), slice.position());
        slice.read_into(into).map_err(|source| sys::Error::new("read", file.path(), source))?;
        let damaged =
            |bytes: usize, offset, reason| corruption(file, at + bytes as u64, Some(offset), reason);
        let (mut bytes, mut next) = (0, from);
        while let Ok(batch) = BatchRef::parse(&into[bytes..]) {
            if self.options.verify_crc {
                batch.check_crc().map_err(|error| damaged(bytes, batch.base_offset(), error.to_string()))?;
            }
            bytes += batch.as_bytes().len();
            next = batch.next_offset().unwrap_or(Offset::MAX);
        }
        if bytes == 0 {
            return Err(damaged(0, from, "no batch can be read here".to_owned()).into());
        }
        into.truncate(bytes);
        Ok(ReadOutcome { next, bytes })
    }

    /// The batches from the one that holds `from` on. The walk owns one buffer and lends each batch from it; at the end
    /// it returns `None`, and more once there is more.
    pub fn batches(&self, from: impl Into<Position>) -> Batches {
        Batches::new(self.clone(), from.into())
    }

    /// The records from `from` on, lent one by one. Control records are left out.
    pub fn records(&self, from: impl Into<Position>) -> Records {
        Records::new(self.clone(), from.into())
    }

    /// The records from `from` on to the end, each with its own memory.
    pub fn owned_records(&self, from: impl Into<Position>) -> OwnedRecords {
        OwnedRecords::new(self.records(from))
    }

    /// One record. `None` where none has this offset: it was compacted away, or is a control record.
    pub fn record(&self, offset: Offset) -> Result<Option<OwnedRecord>> {
        self.with_record(offset, |record, header| OwnedRecord::new(record, header))
    }

    /// Looks at one record without copying it.
    pub fn with_record<T>(
        &self,
        offset: Offset,
        look: impl FnOnce(&crate::record::RecordRef<'_>, &BatchHeader) -> T,
    ) -> Result<Option<T>> {
        self.check_follow()?;
        let (start, end) = (self.start(), self.end());
        if offset < start || offset >= end {
            return Err(Error::OffsetOutOfRange { requested: offset, start, end });
        }
        self.borrow_memory(|window, scratch| {
            let Some((segment, located)) = self.locate(offset, window)? else { return Ok(None) };
            let Located { position, header } = located;
            if header.base_offset() > offset || header.is_control() {
                return Ok(None);
            }
            let log = Arc::clone(&segment.open()?.log);
            let bytes = batch_bytes(&log, &located, segment.end().position, window)?;
            let damaged =
                |error: String| corruption(&log, u64::from(position), Some(header.base_offset()), error);
            let batch = BatchRef::parse(bytes).map_err(|error| damaged(error.to_string()))?;
            if self.options.verify_crc {
                batch.check_crc().map_err(|error| damaged(error.to_string()))?;
            }
            for record in batch.records(scratch).map_err(|error| damaged(error.to_string()))? {
                let record = record.map_err(|error| damaged(error.to_string()))?;
                if record.offset() == offset {
                    return Ok(Some(look(&record, &header)));
                }
                if record.offset() > offset {
                    break;
                }
            }
            Ok(None)
        })
    }

    /// The first record, in the order of offsets, whose timestamp is `at` or later; `None` where there is none. A
    /// negative timestamp is none ([`Timestamp::NONE`]), so a record that has one is never the answer.
    pub fn offset_for_timestamp(&self, at: Timestamp) -> Result<Option<(Offset, Timestamp)>> {
        self.check_follow()?;
        let at = at.max(Timestamp::from_millis(0));
        let end = self.end();
        self.borrow_memory(|window, scratch| {
            for _ in 0..RETRIES {
                match self.find_timestamp(at, (window, scratch)) {
                    Err(error) if is_gone(&error) => {
                        self.refresh()?;
                    }
                    found => return Ok(found?.filter(|found| found.0 < end)),
                }
            }
            Ok(None)
        })
    }

    fn find_timestamp(
        &self,
        at: Timestamp,
        (window, scratch): (&mut Window, &mut Scratch),
    ) -> Result<Option<(Offset, Timestamp)>> {
        let segments = self.shared().segments();
        let start = self.start();
        for segment in &segments[Self::floor(&segments, start)..] {
            window.clear();
            let found = self.with_segment(segment, |segment| {
                // Timestamps are no larger than the largest, so most segments are passed over unread.
                if segment.largest()?.is_none_or(|(largest, _)| largest < at) {
                    return Ok(None);
                }
                segment.find_timestamp(at, start, (&mut *window, &mut *scratch))
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The largest timestamp in the log and the offset of the first record that has it.
    pub fn max_timestamp(&self) -> Result<Option<(Timestamp, Offset)>> {
        self.check_follow()?;
        let (start, end) = (self.start(), self.end());
        let segments = self.shared().segments();
        let mut largest: Option<Timestamp> = None;
        for segment in &segments[Self::floor(&segments, start)..] {
            let found = self.with_segment(segment, Segment::largest)?.map(|(timestamp, _)| timestamp);
            if found <= largest {
                continue;
            }
            let is_visible = segment.base() >= start && segment.end().next <= end;
            let found = if is_visible { found } else { self.largest_in(segment, (start, end))? };
            largest = largest.max(found);
        }
        let Some(largest) = largest else { return Ok(None) };
        Ok(self.offset_for_timestamp(largest)?.map(|(offset, timestamp)| (timestamp, offset)))
    }

    /// The largest timestamp of those records of a segment that lie in the range, by looking at each.
    fn largest_in(&self, segment: &Segment, (start, end): (Offset, Offset)) -> Result<Option<Timestamp>> {
        let (from, to) = (start.max(segment.base()), end.min(segment.end().next));
        let mut records = self.records(from).include_control(true);
        let mut largest = None;
        while let Some(record) = records.next_record()?.filter(|record| record.offset() < to) {
            largest = largest.max(Some(record.timestamp()));
        }
        Ok(largest.filter(|largest| *largest > Timestamp::NONE))
    }

    /// Where the last `count` records begin (all records where there are fewer): counted from batch headers, walking
    /// back from the end by as many offsets as are missing, so that gaps cost a few steps and not a scan of the log.
    pub fn last_records_from(&self, count: u64) -> Result<Offset> {
        let (start, end) = (self.start(), self.end());
        let mut from = end;
        let mut counted = 0;
        let mut step = count;
        while counted < count && from > start {
            let lower = from.saturating_sub(step).max(start);
            counted += self.count_records(lower, from)?;
            from = lower;
            step = step.saturating_mul(2).max(1);
        }
        self.skip_records(from, counted.saturating_sub(count))
    }

    /// How many records there are in `from..to`.
    fn count_records(&self, from: Offset, to: Offset) -> Result<u64> {
        let mut batches = self.batches(from);
        let mut scratch = Scratch::new();
        let mut count = 0;
        while let Some(batch) = batches.next_batch()? {
            if batch.base_offset() >= to {
                break;
            }
            if batch.is_control() {
                continue;
            }
            if batch.base_offset() >= from && batch.last_offset() < to {
                count += u64::from(batch.record_count().unsigned_abs());
                continue;
            }
            // Only some of its records lie in the range.
            for record in batch.records(&mut scratch)? {
                let offset = record?.offset();
                count += u64::from(offset >= from && offset < to);
            }
        }
        Ok(count)
    }

    fn skip_records(&self, from: Offset, count: u64) -> Result<Offset> {
        if count == 0 {
            return Ok(from);
        }
        let mut records = self.records(from);
        let mut at = from;
        for _ in 0..count {
            let Some(record) = records.next_record()? else { break };
            at = record.offset().next().unwrap_or(Offset::MAX);
        }
        Ok(at)
    }

    /// The largest leader epoch not above `epoch` and the offset where it ends; `None` where that is not known.
    pub fn end_offset_for_epoch(&self, epoch: i32) -> Option<(i32, Offset)> {
        self.shared().epochs.read().end_offset_for(epoch, self.shared().written())
    }

    /// Which leader epoch began at which offset, oldest first.
    pub fn leader_epochs(&self) -> Vec<(i32, Offset)> {
        self.shared().epochs.read().entries().to_vec()
    }

    /// Where the records that `at` was told by were cut, if they were.
    pub(super) fn cut_below(&self, at: Position) -> Option<Offset> {
        if !self.is_following() {
            return None;
        }
        // Who has read nothing has nothing to lose: an offset past the end is only out of range then.
        let epoch = at.leader_epoch?;
        let end = self.shared().written();
        let cut = self.end_offset_for_epoch(epoch).map(|(_, end)| end);
        cut.filter(|cut| *cut < at.offset).or((at.offset > end).then_some(end))
    }

    /// Sleeps until there is a record at or past `at`, or the deadline.
    pub fn wait_past(&self, at: impl Into<Position>, deadline: Instant) -> Wait {
        let at = at.into();
        let mut nap = SHORTEST_NAP;
        loop {
            if let Some(done) = self.look(at) {
                return done;
            }
            if !self.is_following() {
                let moved = self.shared().waiters().wait_until(deadline, || self.look(at).is_some());
                return if moved { self.look(at).unwrap_or(Wait::TimedOut) } else { Wait::TimedOut };
            }
            if is_past(deadline) {
                return Wait::TimedOut;
            }
            let until = deadline.min(deadline_in(nap));
            self.shared().waiters().wait_until(until, || false);
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }

    /// The same for a task that must not block: ready, or woken once there may be more. A reader of another process has
    /// nobody to wake it and is told to look again at once.
    pub fn poll_past(&self, at: impl Into<Position>, context: &mut Context<'_>) -> Poll<Wait> {
        let at = at.into();
        self.shared().waiters().register(context.waker());
        match self.look(at) {
            Some(done) => Poll::Ready(done),
            None => {
                if self.is_following() {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }

    fn look(&self, at: Position) -> Option<Wait> {
        if self.end() > at.offset && !self.is_following() {
            return Some(Wait::Advanced);
        }
        if let Err(error) = self.refresh() {
            tracing::debug!(%error, "refresh");
        }
        if let Some(end) = self.cut_below(at) {
            return Some(Wait::Truncated { end });
        }
        if self.end() > at.offset {
            return Some(Wait::Advanced);
        }
        (!self.is_following() && self.shared().is_over()).then_some(Wait::Closed)
    }

    /// The segments, oldest first.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let segments = self.shared().segments();
        let info = |segment: &Arc<Segment>| {
            let end = segment.end();
            SegmentInfo {
                base_offset: segment.base(),
                next_offset: end.next,
                size_bytes: u64::from(end.position),
                max_timestamp: segment.known_largest().flatten().map(|(timestamp, _)| timestamp),
                path: self.path().join(segment.log_name()),
                sealed: segment.is_sealed(),
            }
        };
        segments.iter().map(info).collect()
    }

    /// Numbers about the log.
    pub fn stats(&self) -> LogStats {
        let segments = self.shared().segments();
        LogStats {
            start: self.start(),
            durable_end: self.durable_end(),
            end: self.written_end(),
            segments: segments.len(),
            bytes: segments.iter().map(|segment| u64::from(segment.end().position)).sum(),
            open_segments: segments.iter().filter(|segment| segment.is_open()).count(),
        }
    }

    pub(super) fn advise(&self, file: &File) {
        match self.options.access {
            Access::Normal => {}
            Access::Sequential => file.advise(sys::Access::Sequential),
            Access::Random => file.advise(sys::Access::Random),
        }
    }
}

/// All bytes of a batch whose header was just looked at.
fn batch_bytes<'w>(log: &File, located: &Located, end: u32, window: &'w mut Window) -> Result<&'w [u8]> {
    let size = usize::try_from(located.header.size_bytes()).unwrap_or(usize::MAX).max(HEADER_BYTES);
    Ok(window.bytes(log, u64::from(located.position), size, u64::from(end))?)
}

/// True where a file that a list names is not there any more.
pub(super) fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}
