//! The writer: one for each directory, holding its lock.

use std::{path::Path, sync::Arc, time::Duration};

use super::{
    append::{AppendOptions, Measured, Offsets, Stage, Target},
    buffer::append_pool,
    checkpoint::Point,
    kafka_files::DataDir,
    keeper::{self, Keeper},
    open::{self, Locks, StoreRight},
    pending::{Appended, Durability, Pending},
    producers::Producers,
    reader::LogReader,
    recovery::mark_of,
    report::RecoveryReport,
    retention::LastPass,
    shared::Shared,
    store_files::Progress,
    sync::{Lag, Syncer},
};
use crate::{
    config::{FsyncPolicy, LogConfig},
    error::{Error, Result},
    offset::{Offset, Timestamp},
    record::{BatchHeader, Record, TimestampType},
    segment::{Segment, SegmentWriter},
    sys::PagePool,
};

/// The one writer of a log. It holds the directory's lock from open to close (or drop).
///
/// Dropping it without [`LogWriter::close`] loses nothing that was acknowledged and is what a crash looks like to the
/// next open: that one scans what was not known durable.
#[derive(Debug)]
pub struct LogWriter {
    pub(super) shared: Arc<Shared>,
    pub(super) syncer: Arc<Syncer>,
    pub(super) config: LogConfig,
    pub(super) active: SegmentWriter,
    pub(super) keeper: Keeper,
    /// The leader epoch that appended batches are stamped with.
    epoch: i32,
    /// The file of epochs does not name it: batches of lower ones came since it began, and it begins behind them.
    is_epoch_behind: bool,
    pub(super) stage: Stage,
    /// True until the first change: the clean marks still stand.
    pub(super) is_untouched: bool,
    /// When retention last looked at the clocks.
    pub(super) last_pass: Option<LastPass>,
    /// An append happened since the last `maintain`.
    pub(super) is_busy: bool,
    pub(super) producers: Producers,
    report: RecoveryReport,
    pub(super) locks: Locks,
}

/// Everything that opening hands over.
pub(super) struct Parts {
    pub(super) shared: Arc<Shared>,
    pub(super) end: Point,
    pub(super) active: SegmentWriter,
    pub(super) keeper: Keeper,
    pub(super) producers: Producers,
    pub(super) epoch: i32,
    pub(super) report: RecoveryReport,
    pub(super) is_untouched: bool,
    pub(super) locks: Locks,
}

impl LogWriter {
    /// Locks the directory, recovers it and gets ready to append.
    ///
    /// Fails with [`Error::NotFound`] where there is nothing and [`OpenMode`](crate::OpenMode) does not allow creating,
    /// [`Error::Locked`] where another writer (of this process, of another, a Kafka broker) holds it,
    /// [`Error::UnfinishedCopy`] where it is one and whoever finishes it would write over what is appended, and
    /// [`Error::Corrupt`] where the damage is of a kind that [`RecoveryMode`](crate::RecoveryMode) refuses.
    pub fn open(dir: impl AsRef<Path>, config: LogConfig) -> Result<Self> {
        config.validate()?;
        let parts = open::open(dir.as_ref(), &config)?;
        Ok(Self::over(parts, append_pool(&config), config))
    }

    /// The same for the partition directory `name` of a data directory whose whole lock the caller holds.
    pub(crate) fn open_in(
        right: &StoreRight,
        name: &str,
        topic: (&str, i32),
        config: LogConfig,
    ) -> Result<Self> {
        config.validate()?;
        let parts = open::open_in(right, name, topic, &config)?;
        Ok(Self::over(parts, Arc::clone(&right.pool), config))
    }

    pub(super) fn over(parts: Parts, pool: Arc<PagePool>, config: LogConfig) -> Self {
        Self {
            syncer: Arc::new(Syncer::new(parts.end)),
            shared: parts.shared,
            stage: Stage::new(pool),
            active: parts.active,
            keeper: parts.keeper,
            epoch: parts.epoch,
            is_epoch_behind: false,
            is_untouched: parts.is_untouched,
            is_busy: false,
            producers: parts.producers,
            last_pass: Some(LastPass { wall: config.clock.now(), monotonic: config.clock.monotonic() }),
            report: parts.report,
            locks: parts.locks,
            config,
        }
    }

    /// Appends whole record batches, as one: all of them become visible, or none.
    ///
    /// Each is checked (length, format, CRC, counts) and, with [`Offsets::Assign`], stamped with its base offset and the
    /// leader epoch; nothing else in it changes, but for the timestamp under
    /// [`TimestampType::LogAppendTime`]. Together they must fit a segment. The acknowledgement says what the
    /// [`FsyncPolicy`] made of them. A failed call leaves the log as it was; after a failed *sync* the log is poisoned.
    ///
    /// Batches that a producer numbered must follow its last ([`Error::OutOfOrderSequence`], [`Error::ProducerFenced`],
    /// [`Error::TransactionOpen`]). If they are some of its last five, nothing is appended and the answer is the original's
    /// offsets, once the original is as safe as the policy asks ([`Appended::duplicate`]).
    pub fn append(&mut self, batches: &[u8], options: AppendOptions) -> Result<Appended> {
        let written = self.write_batches(batches, options)?;
        self.shared.wake();
        self.acknowledge(written)
    }

    /// Appends records, as one: all of them become visible, or none. They are put into as few batches as the limits
    /// allow, compressed as [`LogConfig::compression`] says, stamped with the time where they bring none.
    pub fn append_records(&mut self, records: &[Record<'_>], options: AppendOptions) -> Result<Appended> {
        let written = self.write_records(records, options)?;
        self.shared.wake();
        self.acknowledge(written)
    }

    /// Appends whole batches without waiting for anything: they are visible when this returns, and durable once the
    /// returned [`Pending`] was waited for.
    pub fn append_deferred(&mut self, batches: &[u8], options: AppendOptions) -> Result<Pending> {
        let written = self.write_batches(batches, options)?;
        self.shared.wake();
        Ok(self.defer(written))
    }

    /// Appends records without waiting for anything, like [`LogWriter::append_deferred`].
    pub fn append_records_deferred(
        &mut self,
        records: &[Record<'_>],
        options: AppendOptions,
    ) -> Result<Pending> {
        let written = self.write_records(records, options)?;
        self.shared.wake();
        Ok(self.defer(written))
    }

    /// Writes and publishes batches. Nobody is woken yet.
    pub(super) fn write_batches(&mut self, batches: &[u8], options: AppendOptions) -> Result<Appended> {
        options.check_for_batches()?;
        let target = self.target(options)?;
        let measured = self.stage.measure_batches(batches, &target, &self.config)?;
        // Copies of what another log took are taken as they are.
        if measured.has_producers
            && target.offsets == Offsets::Assign
            && let Some(duplicate) = self.admit_stage()?
        {
            return Ok(duplicate);
        }
        self.make_room(&measured)?;
        match target.offsets {
            Offsets::Preserve => self.learn_epochs()?,
            Offsets::Assign => self.note_epoch()?,
        }
        let place = (&**self.active.file(), self.active.position());
        let written = self.stage.write_batches(batches, &target, place, &self.config);
        self.publish(written, &measured, &target)
    }

    fn write_records(&mut self, records: &[Record<'_>], options: AppendOptions) -> Result<Appended> {
        options.check_for_records()?;
        let target = self.target(options)?;
        let measured = self.stage.measure_records(records, &target, &self.config)?;
        if measured.has_producers
            && let Some(duplicate) = self.admit_stage()?
        {
            return Ok(duplicate);
        }
        self.make_room(&measured)?;
        self.note_epoch()?;
        let place = (&**self.active.file(), self.active.position());
        let written =
            self.stage.write_records(records, &target, place, measured.incoming.bytes, &self.config);
        self.publish(written, &measured, &target)
    }

    pub(super) fn target(&self, options: AppendOptions) -> Result<Target> {
        self.target_at(self.end(), 0, options)
    }

    /// Checks what is asked of the log's end, which is `end` once `ahead` bytes before it are written.
    pub(super) fn target_at(&self, end: Offset, ahead: u64, options: AppendOptions) -> Result<Target> {
        self.shared.check_writable()?;
        if let Some(expected) = options.expected.filter(|expected| *expected != end) {
            return Err(Error::UnexpectedOffset { expected, end });
        }
        let room_bytes = u64::from(self.config.segment_bytes).saturating_sub(self.active.position() + ahead);
        Ok(Target {
            end,
            epoch: self.epoch,
            offsets: options.offsets,
            producer: options.producer,
            now: self.config.clock.now(),
            room_bytes,
        })
    }

    /// Rolls where the batches belong in another segment, and reserves what they need.
    pub(super) fn make_room(&mut self, measured: &Measured) -> Result<()> {
        self.begin_changes()?;
        if self.active.must_roll(&measured.incoming, &self.config) {
            let end = self.end();
            let reaches = crate::segment::fits_segment(end, measured.incoming.last_offset);
            self.roll_to(if reaches { end } else { measured.first_offset })?;
        }
        self.active.reserve(&measured.incoming, &self.shared.dir, &self.config)
    }

    /// What was written becomes visible: index entries, the segment's end, the log's end. The waiters are woken after it.
    pub(super) fn publish(
        &mut self,
        written: Result<()>,
        measured: &Measured,
        target: &Target,
    ) -> Result<Appended> {
        self.is_busy = true;
        if let Err(error) = written {
            self.active.abandon_write();
            return Err(error);
        }
        self.active.commit(&self.stage.headers);
        if measured.has_producers {
            self.take_in_producers();
        }
        let written = self.written_point(self.stage.headers.last());
        let bytes = self.stage.headers.iter().map(|header| u64::from(header.size_bytes())).sum();
        let bytes = (self.active.file(), bytes);
        let clock = &self.config.clock;
        self.syncer.publish(&self.shared, bytes, written, || clock.monotonic());
        Ok(self.appended(measured, target))
    }

    pub(super) fn appended(&self, measured: &Measured, target: &Target) -> Appended {
        let append_time = (self.config.timestamp_type == TimestampType::LogAppendTime
            && target.offsets == Offsets::Assign)
            .then_some(target.now);
        Appended {
            base_offset: measured.first_offset,
            last_offset: measured.incoming.last_offset,
            append_time,
            durability: Durability::Written,
            duplicate: false,
        }
    }

    /// Notes the epochs that batches bring, before they are written. An epoch that an open or a cut began, and that no batch
    /// carries yet, gives way to lower ones that come: it begins behind them, with the next batch stamped here.
    fn learn_epochs(&mut self) -> Result<()> {
        let known = self.shared.epochs.read().latest();
        let is_known =
            |header: &BatchHeader| header.leader_epoch() < 0 || Some(header.leader_epoch()) == known;
        if self.stage.headers.iter().all(is_known) {
            return Ok(());
        }
        let headers = &self.stage.headers;
        let latest = self.shared.change_epochs(self.config.file_mode, |epochs| {
            let mut changed = false;
            for header in headers {
                changed |= epochs.follow(header.leader_epoch(), header.base_offset());
            }
            changed
        })?;
        self.epoch = self.epoch.max(latest.unwrap_or(0));
        self.is_epoch_behind = latest != Some(self.epoch);
        Ok(())
    }

    /// Notes the log's own epoch at the end, where batches of lower ones came since it began.
    pub(super) fn note_epoch(&mut self) -> Result<()> {
        if self.is_epoch_behind {
            let (epoch, end) = (self.epoch, self.end());
            self.shared.change_epochs(self.config.file_mode, |epochs| epochs.assign(epoch, end))?;
            self.is_epoch_behind = false;
        }
        Ok(())
    }

    fn written_point(&self, last: Option<&BatchHeader>) -> Point {
        let end = self.active.end();
        Point {
            offset: end.next,
            base: self.active.base(),
            position: self.active.position(),
            batch: last.map(mark_of),
        }
    }

    fn acknowledge(&mut self, mut appended: Appended) -> Result<Appended> {
        if appended.duplicate && self.durable_end() > appended.last_offset {
            appended.durability = Durability::Durable;
            return Ok(appended);
        }
        let clock = &self.config.clock;
        if self.syncer.is_due(self.config.fsync, &self.shared, || clock.monotonic()) {
            self.sync_all()?;
            appended.durability = Durability::Durable;
        }
        Ok(appended)
    }

    fn defer(&self, appended: Appended) -> Pending {
        Pending::new(Arc::clone(&self.shared), Arc::clone(&self.syncer), self.config.sync_method, appended)
    }

    fn sync_all(&mut self) -> Result<Offset> {
        let end = self.syncer.sync(&self.shared, self.end(), self.config.sync_method)?;
        self.keeper.checkpoint_if_overdue(&self.shared, &self.syncer, &self.config);
        Ok(end)
    }

    /// Makes everything durable that was appended so far, whatever the policy. Returns the durable end.
    pub fn sync(&mut self) -> Result<Offset> {
        self.shared.check_writable()?;
        self.sync_all()
    }

    /// Closes the active segment and begins a new one at the log's end. An empty active segment is kept.
    pub fn roll(&mut self) -> Result<()> {
        self.shared.check_writable()?;
        if self.active.is_empty() {
            return Ok(());
        }
        self.begin_changes()?;
        self.roll_to(self.end())
    }

    /// Begins a new segment at `base`, which is the log's end or, where its offsets could not be named from there, later.
    ///
    /// Old segment first: final entries, trimmed. Then the new names. Then published. No sync here: the old file and the
    /// new name wait for the next one. Only a gap must be durable at once, or recovery would take it for a hole.
    pub(super) fn roll_to(&mut self, base: Offset) -> Result<()> {
        let end = self.end();
        if self.active.is_empty() && self.active.base() == base {
            return Ok(());
        }
        if self.keeper.has_no_point() {
            // Where no point is known only the last segment may be cut: after a power cut holes in this one would stay.
            self.keeper.checkpoint(&self.shared, &self.syncer, &self.config)?;
        }
        if let Err(error) = self.write_txn_index() {
            tracing::warn!(%error, "a transaction index is not complete yet");
        }
        self.active.seal()?;
        let replaces_empty = self.active.is_empty();
        let mut created = SegmentWriter::create(&self.shared.dir, base, &self.config)?;
        created.keep_pace_of(&self.active);
        if base > end {
            self.prove_gap(&created).inspect_err(|_| {
                for name in created.segment().file_names() {
                    let _ = self.shared.dir.remove(&name);
                }
            })?;
        }
        let old = std::mem::replace(&mut self.active, created);
        let old_file = Arc::clone(old.file());
        let old = old.retire();
        let mut segments: Vec<Arc<Segment>> = self.shared.segments().to_vec();
        if replaces_empty {
            segments.pop();
        }
        segments.push(Arc::clone(self.active.segment()));
        self.shared.publish_segments(segments);
        self.shared.note_opened();
        self.snapshot_producers(base);
        let written = Point { offset: end.max(base), base, position: 0, batch: None };
        self.syncer.note_roll(&self.shared, &old_file, written);
        tracing::debug!(dir = %self.shared.dir.path().display(), base = %base, "rolled");
        if replaces_empty {
            for name in old.file_names() {
                if let Err(error) = self.shared.dir.remove(&name) {
                    tracing::warn!(%error, "the file of an empty segment stays");
                }
            }
        } else {
            self.keeper.note_sealed(&old);
        }
        if base > end {
            // The syncer has to know of that point too, or the next one would lie before it.
            self.syncer.sync(&self.shared, self.end(), self.config.sync_method)?;
            if self.shared.segments().len() == 1 {
                // Nothing is below the first segment: the log begins with it, now as after the next open.
                self.move_start(base)?;
            }
        }
        Ok(())
    }

    /// Makes a gap before `next` durable, and a recovery point behind it, before anything is published: without the point
    /// the next open would take the gap for a hole, and cut what was acknowledged behind it.
    fn prove_gap(&mut self, next: &SegmentWriter) -> Result<()> {
        if !self.active.is_empty() {
            self.syncer.note_trim(self.active.file());
        }
        self.syncer.sync(&self.shared, self.end(), self.config.sync_method)?;
        self.active.sync_own_sidecars()?;
        self.shared.dir.sync()?;
        let segments = self.shared.segments();
        let staying = segments.len() - usize::from(self.active.is_empty());
        let point = Point { offset: next.base(), base: next.base(), position: 0, batch: None };
        self.keeper.checkpoint_over(&segments[..staying], point, &self.shared, &self.config)
    }

    /// Takes the clean marks away, before anything is changed. Once.
    pub(super) fn begin_changes(&mut self) -> Result<()> {
        if self.is_untouched {
            keeper::begin_changes(&self.shared.dir, self.locks.data_dir.as_ref(), &self.config)?;
            self.is_untouched = false;
        }
        Ok(())
    }

    /// Begins a new leader epoch with the next batch. Epochs only rise; the same one again changes nothing.
    pub fn set_leader_epoch(&mut self, epoch: i32) -> Result<()> {
        self.shared.check_writable()?;
        if epoch < self.epoch {
            let reason = format!("{epoch} is below the log's epoch {}; epochs only rise", self.epoch);
            return Err(Error::InvalidConfig { name: "leader_epoch", reason });
        }
        let end = self.end();
        self.begin_changes()?;
        self.shared.change_epochs(self.config.file_mode, |epochs| epochs.assign(epoch, end))?;
        self.epoch = epoch;
        self.is_epoch_behind = false;
        Ok(())
    }

    /// Changes settings for what is appended from now on. The directory's own (`open`, modes) do not matter any more.
    pub fn set_config(&mut self, config: LogConfig) -> Result<()> {
        config.validate()?;
        self.config = config;
        Ok(())
    }

    /// A reader of this log. It sees what is appended at once, and sleeps without polling.
    pub fn reader(&self) -> LogReader {
        LogReader::of_writer(Arc::clone(&self.shared), self.config.fsync == FsyncPolicy::Never)
    }

    /// What opening found and did.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.report
    }

    /// The settings in force.
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.shared.dir.path()
    }

    /// The first readable offset.
    pub fn start(&self) -> Offset {
        self.shared.start()
    }

    /// The offset that the next record gets.
    pub fn end(&self) -> Offset {
        self.active.end().next
    }

    /// Everything below it survives a power cut.
    pub fn durable_end(&self) -> Offset {
        self.shared.durable()
    }

    /// The leader epoch that batches are stamped with.
    pub fn leader_epoch(&self) -> i32 {
        self.epoch
    }

    /// How much is written and not durable.
    pub fn lag(&self) -> Lag {
        self.syncer.lag(&self.shared, self.now())
    }

    pub(super) fn now(&self) -> Duration {
        self.config.clock.monotonic()
    }

    pub(super) fn rest(&mut self) {
        self.stage.rest();
    }

    /// Closes the log: everything durable, all files at their real sizes, and a mark that nothing needs to be scanned.
    ///
    /// An error leaves the log as a crash would: nothing acknowledged is lost, the next open scans. The lock is freed in
    /// any case.
    pub fn close(mut self) -> Result<()> {
        self.shared.check_writable()?;
        if self.is_untouched && !self.wants_whole_close() {
            return Ok(());
        }
        self.begin_changes()?;
        self.close_files()
    }

    fn close_files(&mut self) -> Result<()> {
        self.write_txn_index()?;
        self.note_epoch()?;
        self.active.seal()?;
        self.syncer.sync(&self.shared, self.end(), self.config.sync_method)?;
        self.keeper.note_sealed(self.active.segment());
        if let Some(data_dir) = &self.locks.data_dir {
            data_dir.note_close(&self.progress(self.active.base()))?;
        }
        self.snapshot_producers(self.end());
        self.keeper.close(&self.shared, &self.syncer, &self.config)?;
        self.drop_snapshots(Offset::ZERO);
        Ok(())
    }

    fn wants_whole_close(&self) -> bool {
        self.locks.data_dir.as_ref().is_some_and(DataDir::wants_whole_close)
    }

    /// Tells the store that this log lies in, if any, how far it is.
    pub(super) fn note_progress(&self) {
        let point = self.keeper.point_base().filter(|_| !self.is_untouched);
        if let (Some(data_dir), Some(point)) = (&self.locks.data_dir, point) {
            data_dir.note_progress(&self.progress(point));
        }
    }

    fn progress(&self, recovery_point: Offset) -> Progress {
        let start = self.start();
        let first_base = self.shared.segments().first().map_or(start, |segment| segment.base());
        Progress { recovery_point, start, first_base, high_watermark: self.durable_end() }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.syncer.close(&self.shared);
    }
}

/// A time to compare records' times with.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A timestamp so much earlier.
pub(super) fn earlier(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_millis(now.millis().saturating_sub(millis(by)))
}
