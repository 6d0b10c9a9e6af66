//! One segment: a base offset and its files.
//!
//! Lives here: file names both ways, locating an offset or a time in a segment, writing and sealing the active segment,
//! scanning what lies on the disk.
//! Not here: which segment to use and when to begin another (log), what a batch means (record), system calls (sys).
//! Holds always: the published end is at most the file's length and lies between two batches; bytes below it never
//! change; an index entry is believed only where the batch at its position says the same.

mod locate;
mod name;
mod published;
mod scan;
mod window;
mod writer;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;

pub(crate) use locate::{Located, Place, Step, Visited};
pub(crate) use name::{Fate, FileKind, SegmentFileName, file_name, newest_log};
use published::Published;
pub(crate) use scan::{Scan, Tail, corruption, fits_segment, is_zero, may_follow, may_stand, unsupported};
pub(crate) use window::Window;
pub(crate) use writer::{Incoming, Pace, SegmentWriter, settings};

use crate::{
    error::{Error, Result},
    index::{BatchAt, IndexBuilder, OffsetIndex, TimeIndex},
    offset::{Offset, Timestamp},
    record::BatchHeader,
    sys::{Dir, File, Open},
};

/// The shared side of a segment: what any number of readers look at while one writer adds to it.
#[derive(Debug)]
pub(crate) struct Segment {
    dir: Arc<Dir>,
    base: Offset,
    settings: SegmentSettings,
    /// [`SegmentEnd::to_word`].
    published: Published,
    /// Where it is known. A segment that another process writes grows past it.
    largest: Mutex<Option<Largest>>,
    is_sealed: AtomicBool,
    /// True where the time index was built by this process or was made durable with the records it speaks of.
    trusts_times: AtomicBool,
    opened: Mutex<Option<Arc<Opened>>>,
    /// When it was last used, in steps of its log's counter.
    used: AtomicU64,
}

/// How a segment's sidecars are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentSettings {
    pub(crate) index_interval_bytes: u32,
    pub(crate) index_bytes: u32,
    pub(crate) file_mode: u32,
    /// True for the lock holder: an index that lies is written anew. Others rebuild it in memory.
    pub(crate) may_write: bool,
}

/// The files of a segment, open.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) log: Arc<File>,
    pub(crate) offsets: Arc<OffsetIndex>,
    pub(crate) times: Arc<TimeIndex>,
}

/// The largest timestamp of a segment up to a position, and the last offset of the earliest batch that has it; `None`
/// where no record has a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Largest {
    value: Option<(Timestamp, Offset)>,
    position: u32,
}

/// Where a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentEnd {
    pub(crate) position: u32,
    pub(crate) next: Offset,
}

impl SegmentEnd {
    /// One word of it: the offsets from `base` on in the upper half, the position in the lower.
    pub(crate) fn to_word(self, base: Offset) -> u64 {
        // 2^31 at most: an index can name no more, and appends are kept within it.
        let relative = self.next.since(base).min(1 << 31);
        relative << 32 | u64::from(self.position)
    }

    pub(crate) fn from_word(base: Offset, word: u64) -> Self {
        let next = base.checked_add(word >> 32).unwrap_or(Offset::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is the position")]
        Self { position: word as u32, next }
    }
}

impl Segment {
    /// A segment whose `.log` is `end.position` bytes long; its files are opened when they are needed.
    pub(crate) fn new(dir: Arc<Dir>, base: Offset, end: SegmentEnd, settings: SegmentSettings) -> Self {
        Self {
            dir,
            base,
            settings,
            published: Published::new(end.to_word(base)),
            largest: Mutex::new(None),
            is_sealed: AtomicBool::new(true),
            trusts_times: AtomicBool::new(false),
            opened: Mutex::new(None),
            used: AtomicU64::new(0),
        }
    }

    pub(crate) const fn base(&self) -> Offset {
        self.base
    }

    /// Where it ends now.
    pub(crate) fn end(&self) -> SegmentEnd {
        SegmentEnd::from_word(self.base, self.published.load())
    }

    /// Moves the end. Everything below it must be there.
    pub(crate) fn publish(&self, end: SegmentEnd) {
        self.published.store(end.to_word(self.base));
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.is_sealed.load(Ordering::Acquire)
    }

    pub(crate) fn set_sealed(&self, sealed: bool) {
        self.is_sealed.store(sealed, Ordering::Release);
    }

    pub(crate) fn trust_times(&self) {
        self.trusts_times.store(true, Ordering::Release);
    }

    pub(crate) fn log_name(&self) -> String {
        file_name(self.base, FileKind::Log)
    }

    /// When it was last used, by [`Segment::touch`].
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn touch(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.opened.lock().is_some()
    }

    /// Lets go of the files; who uses them keeps them. The next use opens them again.
    pub(crate) fn close_files(&self) {
        if self.is_sealed() {
            *self.opened.lock() = None;
        }
    }

    /// Lets go of the copies of indexes that another process goes on writing: the next use copies them anew.
    pub(crate) fn forget_copies(&self) {
        if !self.is_sealed() {
            *self.opened.lock() = None;
        }
    }

    /// Takes files that were opened elsewhere.
    pub(crate) fn set_opened(&self, opened: Arc<Opened>) {
        *self.opened.lock() = Some(opened);
    }

    /// Takes indexes that recovery built.
    pub(crate) fn adopt_indexes(&self, log: &Arc<File>, offsets: OffsetIndex, times: TimeIndex) {
        let (offsets, times) = (Arc::new(offsets), Arc::new(times));
        self.set_opened(Arc::new(Opened { log: Arc::clone(log), offsets, times }));
    }

    /// The files. Opens them where they are not; an index that is absent or cannot be right is built anew.
    pub(crate) fn open(&self) -> Result<Arc<Opened>> {
        let mut slot = self.opened.lock();
        if let Some(opened) = &*slot {
            return Ok(Arc::clone(opened));
        }
        let log = Arc::new(self.dir.open_file(self.log_name(), Open::Read)?);
        let length = u64::from(self.end().position);
        if log.len()? < length {
            let reason = format!("the file is shorter than the {length} bytes it had");
            return Err(corruption(&log, log.len()?, None, reason).into());
        }
        let opened = Arc::new(self.open_indexes(log)?);
        *slot = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn open_indexes(&self, log: Arc<File>) -> Result<Opened> {
        if !self.is_sealed() {
            return self.copy_indexes(log);
        }
        let offsets = OffsetIndex::open_sealed(&self.dir, file_name(self.base, FileKind::Index), self.base);
        let times = TimeIndex::open_sealed(&self.dir, file_name(self.base, FileKind::TimeIndex), self.base);
        if offsets.load().is_ok() && times.load().is_ok() && self.may_be_right(&offsets, &times) {
            return Ok(Opened { log, offsets: Arc::new(offsets), times: Arc::new(times) });
        }
        self.build_indexes(log, "absent, unreadable or not of this segment")
    }

    /// Another process is writing these: never mapped, since it may shorten them, and believed as far as they make sense.
    fn copy_indexes(&self, log: Arc<File>) -> Result<Opened> {
        let offsets = OffsetIndex::read_copy(&self.dir, file_name(self.base, FileKind::Index), self.base);
        let times = TimeIndex::read_copy(&self.dir, file_name(self.base, FileKind::TimeIndex), self.base);
        match (offsets, times) {
            (Ok(offsets), Ok(times)) => {
                Ok(Opened { log, offsets: Arc::new(offsets), times: Arc::new(times) })
            }
            _ => self.build_indexes(log, "absent or unreadable"),
        }
    }

    /// What can be seen without reading the log: the last entries lie within it, and the index reaches near its end.
    fn may_be_right(&self, offsets: &OffsetIndex, times: &TimeIndex) -> bool {
        let end = self.end();
        let fits = |offset: Offset| offset >= self.base && offset < end.next;
        let reached = match offsets.last() {
            Some(last) if !fits(last.offset) || last.position >= end.position => return false,
            Some(last) => last.position,
            None => 0,
        };
        // Further from the end than any batch and interval explain: it was cut short.
        let reach = u64::from(self.settings.index_interval_bytes.max(4096)) + LARGEST_USUAL_BATCH_BYTES;
        let is_long_enough = u64::from(end.position - reached) <= reach.saturating_mul(2);
        is_long_enough && times.last().is_none_or(|last| fits(last.offset))
    }

    /// Builds both indexes from the batches. The lock holder writes them, whole and then by name, over the old ones.
    pub(crate) fn rebuild(&self, why: &'static str) -> Result<Arc<Opened>> {
        let log = Arc::clone(&self.open()?.log);
        let opened = Arc::new(self.build_indexes(log, why)?);
        self.trust_times();
        *self.opened.lock() = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn build_indexes(&self, log: Arc<File>, why: &'static str) -> Result<Opened> {
        if self.settings.may_write {
            tracing::warn!(segment = %log.path().display(), why, "indexes rebuilt");
        } else {
            tracing::debug!(segment = %log.path().display(), why, "indexes rebuilt in memory");
        }
        let end = self.end();
        let mut scan = Scan::new(&log, self.base, 0, self.base)?
            .until(u64::from(end.position))
            .of_offsets_below(end.next);
        let mut builder =
            IndexBuilder::new(self.base, self.settings.index_interval_bytes, self.settings.index_bytes);
        loop {
            match scan.next_batch()? {
                Ok(batch) => builder.observe(&batch_at(batch.position, &batch.header)),
                Err(Tail::Bad(_)) if scan.resync()? => {}
                Err(_) => break,
            }
        }
        builder.finish();
        let largest = builder.largest().map(|largest| (largest.timestamp, largest.offset));
        self.set_largest(largest, u32::try_from(scan.position()).unwrap_or(u32::MAX));
        self.trust_times();
        let (offsets, times) = self.put_indexes(builder)?;
        Ok(Opened { log, offsets: Arc::new(offsets), times: Arc::new(times) })
    }

    /// Writes built indexes where that is allowed and possible; they serve from memory otherwise.
    pub(crate) fn put_indexes(&self, builder: IndexBuilder) -> Result<(OffsetIndex, TimeIndex)> {
        let (offset_name, time_name) =
            (file_name(self.base, FileKind::Index), file_name(self.base, FileKind::TimeIndex));
        let mode = self.settings.file_mode;
        if self.settings.may_write {
            match builder.write(&self.dir, &offset_name, &time_name, mode, true) {
                Ok(()) => {
                    let offsets = OffsetIndex::open_sealed(&self.dir, offset_name, self.base);
                    return Ok((offsets, TimeIndex::open_sealed(&self.dir, time_name, self.base)));
                }
                Err(error) => tracing::warn!(%error, "indexes kept in memory: they cannot be written"),
            }
        }
        builder.into_memory(&self.dir, offset_name, time_name, mode).map_err(Error::from)
    }

    /// The largest timestamp, and the last offset of the earliest batch that has it.
    ///
    /// Any beginning of a time index looks like a whole one, so its last entry is only where the look at the batches
    /// begins: what lies behind it is walked over, once.
    pub(crate) fn largest(&self) -> Result<Option<(Timestamp, Offset)>> {
        let known = *self.largest.lock();
        let from = match known {
            Some(known) if known.position >= self.end().position => return Ok(known.value),
            Some(known) => known,
            None => self.indexed_largest()?,
        };
        let (value, position) = self.largest_behind(from.position, from.value)?;
        if known.is_none() && self.is_sealed() && value != from.value {
            self.rebuild("the time index does not end with the largest timestamp")?;
        }
        self.set_largest(value, position);
        Ok(value)
    }

    /// What the time index ends with, if the batch that it names agrees.
    fn indexed_largest(&self) -> Result<Largest> {
        let opened = self.open()?;
        let is_trusted = self.trusts_times.load(Ordering::Acquire) || !self.is_sealed();
        let last = opened.times.last();
        if is_trusted && last.is_none() {
            return Ok(Largest { value: None, position: 0 });
        }
        if let Some(last) = last.filter(|_| is_trusted)
            && let Some(named) = self.locate(last.offset, &mut Window::new(0))?
            && named.header.last_offset() == last.offset
            && named.header.max_timestamp() == last.timestamp
        {
            let position = named.position.saturating_add(named.header.size_bytes());
            return Ok(Largest { value: Some((last.timestamp, last.offset)), position });
        }
        self.rebuild("the time index is not known to be whole")?;
        Ok(self.largest.lock().unwrap_or(Largest { value: None, position: 0 }))
    }

    /// The same where it is known without looking.
    #[expect(clippy::option_option, reason = "not known, known to be none, known")]
    pub(crate) fn known_largest(&self) -> Option<Option<(Timestamp, Offset)>> {
        let known = (*self.largest.lock())?;
        (known.position >= self.end().position).then_some(known.value)
    }

    /// Notes the largest timestamp of everything below `position`.
    pub(crate) fn set_largest(&self, value: Option<(Timestamp, Offset)>, position: u32) {
        let mut known = self.largest.lock();
        // Whoever looked further knows more.
        if known.is_none_or(|known| known.position <= position) {
            *known = Some(Largest { value, position });
        }
    }

    /// Names of all files that go when the segment goes, the `.log` last: without it the others are nobody's.
    pub(crate) fn file_names(&self) -> [String; 4] {
        [FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex, FileKind::Log]
            .map(|kind| file_name(self.base, kind))
    }
}

/// Kafka's default bound on a batch, with room: a sealed segment's index ends no further from its end than this.
const LARGEST_USUAL_BATCH_BYTES: u64 = 4 << 20;

/// What the indexes need to know of a batch at a position.
pub(crate) fn batch_at(position: u64, header: &BatchHeader) -> BatchAt {
    BatchAt {
        last_offset: header.last_offset(),
        max_timestamp: header.max_timestamp(),
        // A segment is kept below 2^31 bytes, so this is exact.
        position: u32::try_from(position).unwrap_or(u32::MAX),
        size_bytes: header.size_bytes(),
    }
}
