//! Opening a directory for writing, step by step: directory, locks, control page, recovery, segments.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    buffer::append_pool,
    checkpoint::{CHECKPOINT_NAME, Point},
    control::{ControlPage, ControlView},
    epochs::{EPOCHS_NAME, Epochs},
    kafka_files::{self, DataDir},
    keeper::{self, Keeper},
    open_segments::OpenSegments,
    producers::{self, Opening},
    recovery::{self, Recovered},
    report::RecoveryReport,
    scanned::ScannedSegment,
    shared::Shared,
    store_files::StoreFiles,
    summary::{self, SegmentSummary},
    survey::PRIVATE_PREFIX,
    writer::Parts,
};
use crate::{
    config::{LogConfig, OpenMode},
    error::{Error, Result},
    offset::Offset,
    record::{BatchHeader, HEADER_BYTES},
    segment::{
        FileKind, Pace, Segment, SegmentEnd, SegmentFileName, SegmentWriter, Window, file_name, settings,
    },
    sys::{self, Dir, DirLock, LOCK_NAME, Open, PagePool, ParentLock, UNFINISHED_COPY},
};

/// Held for the writer's life, let go in this order.
#[derive(Debug)]
pub(super) struct Locks {
    #[expect(dead_code, reason = "held, not used")]
    own: DirLock,
    pub(super) data_dir: Option<DataDir>,
}

/// What a store hands down to its logs: its right to the data directory, and what they share.
#[derive(Debug)]
pub(crate) struct StoreRight {
    pub(crate) files: Arc<StoreFiles>,
    pub(crate) open_segments: Arc<OpenSegments>,
    pub(crate) pool: Arc<PagePool>,
}

impl StoreRight {
    /// The right to the data directory whose whole lock the caller holds. At most `open_segments` sealed segments have
    /// their files open at a time, over all logs.
    pub(crate) fn new(files: StoreFiles, open_segments: u64, config: &LogConfig) -> Self {
        Self {
            files: Arc::new(files),
            open_segments: OpenSegments::at_most(open_segments),
            pool: append_pool(config),
        }
    }
}

pub(super) fn open(path: &Path, config: &LogConfig) -> Result<Parts> {
    let (dir, shared_above) = open_dir(path, config)?;
    let dir = Arc::new(dir);
    let locks = lock(&dir, config)?;
    drop(shared_above);
    open_locked(&dir, locks, &OpenSegments::of_one_log(), config)
}

/// A directory that is there, and its locks.
pub(super) fn lock_existing(path: &Path, config: &LogConfig) -> Result<(Arc<Dir>, Locks)> {
    let (dir, _) = open_dir(path, &LogConfig { open: OpenMode::MustExist, ..config.clone() })?;
    let dir = Arc::new(dir);
    let locks = lock(&dir, config)?;
    Ok((dir, locks))
}

/// The same for a partition in a store's directory: the store's lock stands for the share in it.
pub(super) fn open_in(
    right: &StoreRight,
    name: &str,
    topic: (&str, i32),
    config: &LogConfig,
) -> Result<Parts> {
    let root = right.files.dir();
    let not_found = || Error::NotFound { path: root.path_of(name) };
    let opened = root.subdir(name);
    let dir = opened.map_err(|error| if error.is_not_found() { not_found() } else { error.into() })?;
    let own = lock_own(&dir, config)?;
    let data_dir = DataDir::in_store(&right.files, topic.0, topic.1, config.file_mode);
    open_locked(&Arc::new(dir), Locks { own, data_dir: Some(data_dir) }, &right.open_segments, config)
}

pub(super) fn open_locked(
    dir: &Arc<Dir>,
    locks: Locks,
    open_segments: &Arc<OpenSegments>,
    config: &LogConfig,
) -> Result<Parts> {
    let previous = ControlView::read(dir);
    let control = ControlPage::open(dir, config.file_mode);
    let mut is_untouched = true;
    let mut begin_changes = || -> Result<()> {
        if std::mem::take(&mut is_untouched) {
            keeper::begin_changes(dir, locks.data_dir.as_ref(), config)?;
        }
        Ok(())
    };
    let mut recovered =
        recovery::recover(dir, config, locks.data_dir.as_ref(), (previous, &control), &mut begin_changes)?;
    let mut litter = recovered.survey.orphans();
    litter.append(&mut recovered.survey.leftovers);
    for name in litter {
        // Nothing of the log: the clean marks stay.
        dir.remove(&name)?;
    }
    let was_clean = recovered.report.clean;
    let of_kind = |kind: FileKind| {
        let sidecars = recovered.survey.sidecars.iter();
        sidecars.filter(|sidecar| sidecar.1 == kind).map(|sidecar| sidecar.0).collect()
    };
    let opening = Opening {
        is_clean: was_clean,
        scanned: recovered.scanned.iter().map(|segment| (segment.base, segment.has_producers)).collect(),
        points: recovered.producers.take(),
        snapshots: of_kind(FileKind::Snapshot),
        txn_indexes: of_kind(FileKind::TxnIndex),
    };
    let has_point = was_clean || recovered.is_at_own_point;
    let (segments, active) = build(dir, config, &mut recovered, &mut begin_changes)?;
    let range = (recovered.start, recovered.end.offset);
    recovered.epochs_changed |= restore_epochs(&segments, range, &mut recovered.epochs)?;
    if recovered.epochs_changed {
        begin_changes()?;
        recovered.epochs.store(dir, config.file_mode)?;
    }
    let (producers, points) =
        producers::rebuild(dir, &segments, opening, config, (&mut recovered.report, &mut begin_changes))?;
    let end = recovered.end;
    control.finish_opening(recovered.start, end.offset, &end);
    let ends = (recovered.start, end.offset, end.offset);
    let epoch = recovered.epochs.latest().unwrap_or(0);
    let shared = Shared::new(Arc::clone(dir), segments, ends, recovered.epochs, control);
    let shared = Arc::new(shared.bounded_by(open_segments));
    let mut keeper = Keeper::new(recovered.known_end, has_point.then_some(end), points, config);
    if !has_point {
        // What was just verified and synced need not be scanned again, and above it what a power cut leaves can be told
        // from damage. On a full disk the first roll makes good for it.
        match keeper.checkpoint_at(end, &shared, config) {
            Ok(()) => {}
            // Without the point the next open would take the jump to this end for a hole, and cut what is acknowledged.
            Err(error) if recovered.report.lost.is_some() => return Err(error),
            Err(error) => recovered.report.warnings.push(format!("no recovery point written: {error}")),
        }
    }
    report(dir.path(), &recovered.report);
    Ok(Parts { shared, end, active, keeper, producers, epoch, report: recovered.report, is_untouched, locks })
}

/// The directory, and where it had to be made, what keeps a broker out of the one above until it is locked itself.
fn open_dir(path: &Path, config: &LogConfig) -> Result<(Dir, Option<ParentLock>)> {
    let mut opened = Dir::open(path);
    let mut shared_above = None;
    if config.open == OpenMode::CreateIfMissing && opened.as_ref().is_err_and(sys::Error::is_not_found) {
        if let Some((parent, ..)) = kafka_files::data_dir_above(path)? {
            shared_above = Some(share(&parent)?);
        }
        opened = Dir::create_all(path, config.dir_mode);
    }
    let not_found = || Error::NotFound { path: path.to_owned() };
    let dir = opened.map_err(|error| if error.is_not_found() { not_found() } else { error.into() })?;
    if dir.exists("meta.properties")? {
        let what = "a data directory of many partitions; name one of the directories in it".to_owned();
        return Err(Error::UnsupportedVersion { path: path.to_owned(), what });
    }
    if config.open == OpenMode::MustExist && holds_only_others_files(&dir)? {
        return Err(not_found());
    }
    Ok((dir, shared_above))
}

/// True where there are files and none of them is a log's: nobody said that one is to be made here.
fn holds_only_others_files(dir: &Dir) -> Result<bool> {
    if dir.exists(CHECKPOINT_NAME)? {
        return Ok(false);
    }
    let is_a_logs = |name: &OsStr| {
        let known = [EPOCHS_NAME, LOCK_NAME, "partition.metadata", "lost+found"];
        let is_private = name.as_encoded_bytes().starts_with(PRIVATE_PREFIX.as_bytes());
        is_private || SegmentFileName::parse(name).is_some() || known.iter().any(|known| name == *known)
    };
    let entries = dir.list()?;
    Ok(!entries.is_empty() && !entries.iter().any(|entry| is_a_logs(&entry.name)))
}

fn share(parent: &Dir) -> Result<ParentLock> {
    ParentLock::try_shared(parent).map_err(|error| Error::not_locked(parent.path_of(LOCK_NAME), error))
}

/// The data directory's lock first, shared: with a broker running over it nothing below is touched.
fn lock(dir: &Dir, config: &LogConfig) -> Result<Locks> {
    let data_dir = match kafka_files::data_dir_of(dir)? {
        None => None,
        Some((parent, topic, partition)) => {
            let lock = share(&parent)?;
            Some(DataDir::new(parent, lock, topic, partition, config.file_mode))
        }
    };
    Ok(Locks { own: lock_own(dir, config)?, data_dir })
}

fn lock_own(dir: &Dir, config: &LogConfig) -> Result<DirLock> {
    let own =
        DirLock::try_exclusive(dir).map_err(|error| Error::not_locked(dir.path_of(LOCK_NAME), error))?;
    // With the lock held nobody is finishing it.
    refuse_unfinished_copy(dir)?;
    own.leave_note(&format!("pid {} since {}\n", std::process::id(), config.clock.now().utc_text()));
    Ok(own)
}

/// More is no path.
const MARK_BYTES: usize = 64 << 10;

/// What the directory says that it is an unfinished copy of; `None` where it is none.
pub(crate) fn unfinished_copy_of(dir: &Dir) -> Result<Option<PathBuf>> {
    let of = dir.read_small(UNFINISHED_COPY, MARK_BYTES)?;
    Ok(of.map(|of| PathBuf::from(OsString::from_vec(of))))
}

/// Whoever finishes the copy would write over what is appended to it.
pub(crate) fn refuse_unfinished_copy(dir: &Dir) -> Result<()> {
    let refuse = |dir: &Dir| match unfinished_copy_of(dir)? {
        Some(of) => Err(Error::UnfinishedCopy { path: dir.path_of(UNFINISHED_COPY), of }),
        None => Ok(()),
    };
    refuse(dir)?;
    // A partition of a data directory's copy is copied anew with it. One above that cannot be opened is nobody's copy.
    dir.parent().ok().flatten().map_or(Ok(()), |parent| refuse(&parent))
}

type Built = (Vec<Arc<Segment>>, SegmentWriter);

/// Segments of what recovery found, the last one ready to be written to.
fn build(
    dir: &Arc<Dir>,
    config: &LogConfig,
    recovered: &mut Recovered,
    begin_changes: &mut dyn FnMut() -> Result<()>,
) -> Result<Built> {
    let summaries = summary::load(dir);
    let scanned = std::mem::take(&mut recovered.scanned);
    let mut pace = Pace { first_timestamp: None, begun: config.clock.now() };
    let bases: Vec<Offset> = recovered.survey.logs.iter().map(|log| log.base).collect();
    let mut segments = Vec::with_capacity(bases.len() + 1);
    for (index, log) in recovered.survey.logs.iter().enumerate() {
        let following = bases.get(index + 1).copied().unwrap_or(recovered.end.offset);
        let seen = scanned.iter().find(|segment| segment.base == log.base);
        let known = known_summary(&summaries, log.base, log.len);
        let next = seen.map(|seen| seen.next).or(known.and_then(SegmentSummary::next)).unwrap_or(following);
        let position = u32::try_from(log.len).unwrap_or(u32::MAX);
        let segment =
            Segment::new(Arc::clone(dir), log.base, SegmentEnd { position, next }, settings(config));
        segment.trust_times();
        if let Some(largest) = known.and_then(SegmentSummary::largest) {
            segment.set_largest(largest, position);
        }
        if let Some(seen) = seen {
            pace.first_timestamp = seen.first_timestamp;
            put_indexes(dir, &segment, seen, &mut recovered.report, begin_changes)?;
        }
        segments.push(Arc::new(segment));
    }
    drop_below_start(dir, recovered.start, &mut segments, begin_changes)?;
    if let Some(last) = segments.last().filter(|_| !recovered.needs_new_segment) {
        if pace.first_timestamp.is_none() {
            pace.first_timestamp = first_timestamp(dir, last)?;
        }
        let active = SegmentWriter::resume(dir, Arc::clone(last), pace, config)?;
        return Ok((segments, active));
    }
    begin_changes()?;
    if keeper::first_epoch(&mut recovered.epochs, recovered.end.offset) {
        recovered.epochs_changed = true;
    }
    let active = SegmentWriter::create(dir, recovered.end.offset, config)?;
    dir.sync()?;
    recovered.end = Point { offset: recovered.end.offset, base: active.base(), position: 0, batch: None };
    recovered.start = if segments.is_empty() { recovered.end.offset } else { recovered.start };
    segments.push(Arc::clone(active.segment()));
    Ok((segments, active))
}

fn known_summary(summaries: &[SegmentSummary], base: Offset, len: u64) -> Option<&SegmentSummary> {
    let at = summaries.binary_search_by_key(&base, SegmentSummary::base).ok()?;
    summaries.get(at).filter(|summary| summary.length == len)
}

/// Writes the indexes of a segment that was scanned, unless the files hold just that already.
fn put_indexes(
    dir: &Dir,
    segment: &Segment,
    scanned: &ScannedSegment,
    report: &mut RecoveryReport,
    begin_changes: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    let mut indexes = scanned.indexes.clone();
    indexes.finish();
    let largest = indexes.largest().map(|largest| (largest.timestamp, largest.offset));
    segment.set_largest(largest, segment.end().position);
    let (offsets, times) = indexes.to_bytes();
    let is_right = |kind: FileKind, bytes: &[u8]| -> Result<bool> {
        let name = file_name(segment.base(), kind);
        match dir.stat(&name)? {
            Some(stat) if stat.len == bytes.len() as u64 => {
                Ok(dir.read_small(&name, bytes.len())?.is_some_and(|found| found == bytes))
            }
            _ => Ok(false),
        }
    };
    let right = (is_right(FileKind::Index, &offsets)?, is_right(FileKind::TimeIndex, &times)?);
    if right == (true, true) {
        return Ok(());
    }
    begin_changes()?;
    let (offsets, times) = segment.put_indexes(indexes)?;
    for (kind, right) in [(FileKind::Index, right.0), (FileKind::TimeIndex, right.1)] {
        if !right {
            report.rebuilt.push(dir.path_of(file_name(segment.base(), kind)));
        }
    }
    segment.adopt_indexes(&scanned.file, offsets, times);
    Ok(())
}

/// Segments wholly below the start are what a deletion left.
fn drop_below_start(
    dir: &Dir,
    start: Offset,
    segments: &mut Vec<Arc<Segment>>,
    begin_changes: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    while segments.get(1).is_some_and(|second| second.base() <= start) {
        begin_changes()?;
        for name in segments[0].file_names() {
            dir.remove(&name)?;
        }
        segments.remove(0);
    }
    Ok(())
}

/// Where the file of epochs is gone or another time's, the batches say what it must hold: it has to name the last
/// one's epoch at its place. True where anything changed.
fn restore_epochs(
    segments: &[Arc<Segment>],
    (start, end): (Offset, Offset),
    epochs: &mut Epochs,
) -> Result<bool> {
    let Some(last) = segments.iter().rev().find(|segment| segment.end().position > 0) else {
        return Ok(false);
    };
    let located = last.locate(last.end().next.saturating_sub(1), &mut Window::new(0));
    // A last batch that cannot be read has been reported, and its epoch is not to be had.
    let Ok(Some(located)) = located else { return Ok(false) };
    let (base, epoch) = (located.header.base_offset(), located.header.leader_epoch());
    let named = epochs.entries().iter().rfind(|(_, start)| *start <= base);
    if epoch < 0 || named.is_some_and(|named| named.0 == epoch) {
        return Ok(false);
    }
    let found = epochs_of_batches(segments, (start, end), epochs)?;
    if found == *epochs {
        return Ok(false);
    }
    tracing::warn!(segment = %last.log_name(), "leader epochs do not fit the batches: taken from them");
    *epochs = found;
    Ok(true)
}

/// What the file of epochs of these batches has to hold. `known` may have one that no batch carries yet.
pub(super) fn epochs_of_batches(
    segments: &[Arc<Segment>],
    (start, end): (Offset, Offset),
    known: &Epochs,
) -> Result<Epochs> {
    let mut found = Epochs::default();
    for segment in segments {
        segment.visit_headers(0, |header| {
            found.follow(header.leader_epoch(), header.base_offset());
        })?;
    }
    // Epochs only rise: one that no batch has is the next one's.
    if let Some(latest) = known.latest().filter(|latest| found.latest().is_none_or(|found| *latest > found)) {
        found.assign(latest, end);
    }
    found.truncate_from_start(start);
    Ok(found)
}

fn first_timestamp(dir: &Dir, segment: &Segment) -> Result<Option<crate::offset::Timestamp>> {
    if segment.end().position == 0 {
        return Ok(None);
    }
    let mut head = [0; HEADER_BYTES];
    dir.open_file(segment.log_name(), Open::Read)?.read_at(&mut head, 0)?;
    Ok(BatchHeader::parse(&head).ok().map(|header| header.max_timestamp()))
}

fn report(path: &Path, report: &RecoveryReport) {
    for warning in &report.warnings {
        tracing::warn!(dir = %path.display(), "{warning}");
    }
    tracing::debug!(dir = %path.display(), clean = report.clean, scanned_bytes = report.scanned_bytes, "opened");
}

/// The epochs as a reader of another process finds them.
pub(super) fn epochs_of(dir: &Dir) -> Epochs {
    Epochs::load(dir).unwrap_or_default()
}
