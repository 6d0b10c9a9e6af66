//! Readers: any number, in the writer's process or another, never in the writer's way.

use std::{path::Path, sync::Arc};

use parking_lot::Mutex;

use super::{
    checkpoint::{Checkpoint, Found},
    follow::Follower,
    shared::Shared,
    view::{Access, Follow, Isolation, LogStats, Position, ReadOptions, ReadOutcome, SegmentInfo},
    walk::{Batches, OwnedRecords, Records},
};
use crate::{
    error::{Error, Result},
    offset::Offset,
    record::{BatchHeader, Scratch, check_stored},
    segment::{Located, Segment, Window, corruption, may_follow},
    sys::{self, Event, File, FileSlice},
};

/// How much is read at a time where only headers are looked at.
const HEADERS_BYTES: usize = 8 << 10;
/// How often an operation is tried again because segments came or went under it.
pub(super) const RETRIES: usize = 8;

/// Reads a log. Cheap to clone; all clones share open files and what they know of the log.
///
/// ```
/// use stratalog::{AppendOptions, LogConfig, LogReader, LogWriter, OpenMode, ReadOptions, record::Record};
///
/// # let temp = tempfile::tempdir().unwrap();
/// # let dir = temp.path().join("orders-0");
/// # let mut config = LogConfig::default();
/// # config.open = OpenMode::CreateIfMissing;
/// # let mut log = LogWriter::open(&dir, config)?;
/// # let records = ["a", "b", "c"].map(|value| Record::value_only(value.as_bytes()));
/// # log.append_records(&records, AppendOptions::default())?;
/// // Beside the writer, or long after it: no lock is taken and no file changed.
/// let reader = LogReader::open(&dir, ReadOptions::default())?;
/// let mut values = Vec::new();
/// for record in reader.owned_records(reader.start()) {
///     values.extend(record?.value);
/// }
/// assert_eq!(values, ["a", "b", "c"]);
///
/// // One record by its offset, and where the last two begin.
/// let from = reader.last_records_from(2)?;
/// let record = reader.owned_records(from).next().expect("there are three")?;
/// assert_eq!((record.offset, reader.end().value()), (from, 3));
/// # Ok::<(), stratalog::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LogReader {
    pub(super) inner: Arc<Inner>,
    options: ReadOptions,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    /// For a log that another process writes.
    pub(super) follower: Option<Follower>,
    /// Whose descriptors others wait for: signalled as long as they are here.
    pub(super) events: Mutex<Vec<Arc<Event>>>,
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
        let events = Mutex::default();
        let inner = Inner { shared, follower, events, is_never_durable, spare: Mutex::default() };
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

    /// The end that this reader follows: the offset after the last record it may see. For committed reads the last stable
    /// offset; where that cannot be found ([`LogReader::last_stable_offset`] says why) the last that was known.
    pub fn end(&self) -> Offset {
        match self.options.isolation {
            Isolation::Uncommitted => self.followed_end(),
            Isolation::Committed => self.stable_end().unwrap_or_else(|_| self.known_stable_end()),
        }
    }

    /// The same; an error where it cannot be found.
    pub(super) fn visible_end(&self) -> Result<Offset> {
        self.visible().map(|(end, _)| end)
    }

    /// And the era of what is known of transactions up to there.
    pub(super) fn visible(&self) -> Result<(Offset, u64)> {
        match self.options.isolation {
            Isolation::Uncommitted => Ok((self.followed_end(), 0)),
            Isolation::Committed => self.stable_era(),
        }
    }

    pub(super) fn is_committed(&self) -> bool {
        self.options.isolation == Isolation::Committed
    }

    /// The end that this reader follows, whatever is committed.
    pub(super) fn followed_end(&self) -> Offset {
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

    pub(super) fn check_follow(&self) -> Result<()> {
        if self.inner.is_never_durable && self.options.follow == Follow::Durable {
            return Err(Error::NeverDurable);
        }
        Ok(())
    }

    /// Looks again at a log that another process writes, and returns the end. For a reader of the writer's own process
    /// there is nothing to look at.
    pub fn refresh(&self) -> Result<Offset> {
        self.look_again()?;
        self.visible_end()
    }

    pub(super) fn look_again(&self) -> Result<()> {
        match &self.inner.follower {
            Some(follower) => follower.refresh(self.shared()),
            None => Ok(()),
        }
    }

    /// Which set of segments this is. What fails under one is looked at again under the next: another process may have cut,
    /// rolled or dropped something just then.
    pub(super) fn set_number(&self) -> u64 {
        self.inner.follower.as_ref().map_or(0, Follower::sets)
    }

    /// True where a log that another process writes is not what it was: then nothing that was read may be called damaged.
    pub(super) fn has_other_set(&self, number: u64) -> bool {
        self.is_following() && (self.refresh().is_err() || self.set_number() != number)
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
            let number = self.set_number();
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
                    Err(error)
                        if is_gone(&error) || (error.is_corruption() && self.has_other_set(number)) =>
                    {
                        window.clear();
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
            self.look_again()?;
            self.check_range(from)?;
        }
        // Its files go and nothing takes their place: the log was deleted.
        Err(Error::NotFound { path: self.path().to_owned() })
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
        window.set_largest(HEADERS_BYTES);
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
    /// nothing is there yet. For committed reads it ends at the last stable offset; what was aborted is in it
    /// ([`LogReader::aborted_transactions`] tells it apart).
    pub fn slice(&self, from: Offset, max_bytes: u32) -> Result<Option<FileSlice>> {
        Ok(self.slice_of_segment(from, max_bytes)?.map(|(slice, _)| slice))
    }

    /// The same, and where the offsets of its segment end.
    fn slice_of_segment(&self, from: Offset, max_bytes: u32) -> Result<Option<(FileSlice, Offset)>> {
        self.check_follow()?;
        self.check_range(from)?;
        let end = self.visible_end()?;
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
            let slice = FileSlice::new(log, u64::from(located.position), len);
            Ok(Some((slice, segment.end().next)))
        })
    }

    /// Reads whole batches from the one that holds `from` on: at most `max_bytes`, but the first always. `into` is
    /// emptied first. Aborted transactions and markers are among them, as in [`LogReader::slice`]; messages
    /// of formats 0 and 1 as they are stored.
    pub fn read(&self, from: Offset, max_bytes: u32, into: &mut Vec<u8>) -> Result<ReadOutcome> {
        for _ in 0..RETRIES {
            let number = self.set_number();
            match self.read_once(from, max_bytes, into) {
                Err(error) if error.is_corruption() && self.has_other_set(number) => {}
                done => return done,
            }
        }
        self.read_once(from, max_bytes, into)
    }

    fn read_once(&self, from: Offset, max_bytes: u32, into: &mut Vec<u8>) -> Result<ReadOutcome> {
        into.clear();
        let Some((slice, offsets_end)) = self.slice_of_segment(from, max_bytes)? else {
            return Ok(ReadOutcome { next: from, bytes: 0 });
        };
        into.resize(usize::try_from(slice.len()).unwrap_or(usize::MAX), 0);
        let (file, at) = (slice.file(), slice.position());
        let damaged =
            |bytes: usize, offset, reason| corruption(file, at + bytes as u64, Some(offset), reason);
        match slice.read_into(into) {
            Err(source) if source.kind() == std::io::ErrorKind::UnexpectedEof && self.is_following() => {
                return Err(damaged(0, from, "the file is shorter than it was".to_owned()).into());
            }
            done => done.map_err(|source| sys::Error::new("read", file.path(), source))?,
        }
        let (mut bytes, mut next) = (0, from);
        while let Some(header) = whole_batch(&into[bytes..]) {
            if bytes > 0 && may_follow(&header, next, offsets_end).is_err() {
                // The next read begins there, and says what is wrong.
                break;
            }
            if self.options.verify_crc {
                check_stored(&header, &into[bytes..])
                    .map_err(|error| damaged(bytes, header.base_offset(), error.to_string()))?;
            }
            bytes += usize::try_from(header.size_bytes()).unwrap_or(usize::MAX);
            next = header.next_offset().unwrap_or(Offset::MAX);
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
        let checkpoint = match Checkpoint::load(&self.shared().dir) {
            Ok(Found::Valid(checkpoint)) => Some(checkpoint),
            _ => None,
        };
        LogStats {
            start: self.start(),
            durable_end: self.durable_end(),
            end: self.written_end(),
            segments: segments.len(),
            bytes: segments.iter().map(|segment| u64::from(segment.end().position)).sum(),
            open_segments: segments.iter().filter(|segment| segment.is_open()).count(),
            clean: checkpoint.as_ref().is_some_and(|stored| stored.clean),
            recovery_point: checkpoint.and_then(|stored| stored.point).map(|point| point.offset),
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

/// The header of the batch at the front of `bytes`, if all of the batch is there.
fn whole_batch(bytes: &[u8]) -> Option<BatchHeader> {
    let header = BatchHeader::parse_stored(bytes).ok()?;
    (u64::from(header.size_bytes()) <= bytes.len() as u64).then_some(header)
}

/// True where a file that a list names is not there any more.
pub(super) fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}
