//! One log for many threads.

use std::{path::Path, sync::Arc};

use parking_lot::{Mutex, RwLock};

use super::{
    append::AppendOptions,
    group::{Group, Step, Work},
    pending::{Appended, Durability, Pending},
    producers::ProducerInfo,
    quota::{Quota, Share},
    reader::LogReader,
    report::RecoveryReport,
    request::{Input, Request, Workshop},
    retention::Maintenance,
    shared::Shared,
    sync::{Lag, Syncer},
    writer::LogWriter,
};
use crate::{
    config::{FsyncPolicy, LogConfig},
    error::{Error, Result},
    offset::Offset,
    record::Record,
};

/// The writer of a log, for many threads: clones append to the same log at the same time.
///
/// Appends are made ready by their own threads (checked, encoded, compressed, summed), then one of the threads writes all
/// that are ready in one call and syncs once for all of them. There is no timer and no thread of its own: the first to
/// come leads, and hands the lead on to the next.
///
/// ```
/// use stratalog::{AppendOptions, LogConfig, OpenMode, SharedWriter, record::Record};
///
/// # let temp = tempfile::tempdir().unwrap();
/// # let dir = temp.path().join("orders-0");
/// let mut config = LogConfig::default();
/// config.open = OpenMode::CreateIfMissing;
/// let log = SharedWriter::open(&dir, config)?;
/// std::thread::scope(|scope| {
///     for name in ["a", "b"] {
///         let log = log.clone();
///         scope.spawn(move || {
///             log.append_records(&[Record::value_only(name.as_bytes())], AppendOptions::default()).unwrap();
///         });
///     }
/// });
/// assert_eq!(log.end().value(), 2);
/// log.close()?;
/// # Ok::<(), stratalog::Error>(())
/// ```
///
/// # What holds
///
/// - Each call is whole or not there, for every reader, and has its own outcome: a neighbour that is refused changes
///   nothing. A thread's calls keep their order.
/// - What is being appended takes at most [`LogConfig::max_queued_bytes`] of memory; calls past that wait for their turn,
///   first come, first served.
/// - A failed write is told to those whose bytes it carried, and to nobody else. A failed sync poisons the log and is told
///   to everybody who waits.
/// - A thread that panics while it leads (in a waker or a `tracing` subscriber of the program, say) closes the log:
///   everybody gets [`Error::Closed`], nobody hangs. What was acknowledged is safe.
/// - When the last clone is dropped without [`SharedWriter::close`], the log is left as by a crash, as with
///   [`LogWriter`].
#[derive(Clone, Debug)]
pub struct SharedWriter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    group: Group<Log>,
    quota: Arc<Quota>,
    report: RecoveryReport,
}

/// What the group leads with.
#[derive(Debug)]
struct Log {
    /// `None` once closed.
    writer: Mutex<Option<LogWriter>>,
    shared: Arc<Shared>,
    syncer: Arc<Syncer>,
    workshop: Workshop,
    /// The writer's, for those who do not hold it.
    config: RwLock<Arc<LogConfig>>,
}

impl From<LogWriter> for SharedWriter {
    fn from(writer: LogWriter) -> Self {
        let config = writer.config().clone();
        let report = writer.recovery().clone();
        let log = Log {
            shared: Arc::clone(&writer.shared),
            syncer: Arc::clone(&writer.syncer),
            writer: Mutex::new(Some(writer)),
            workshop: Workshop::new(&config),
            config: RwLock::new(Arc::new(config)),
        };
        let quota = Arc::new(Quota::new(log.config().max_queued_bytes));
        Self { inner: Arc::new(Inner { group: Group::new(log), quota, report }) }
    }
}

impl SharedWriter {
    /// Opens a log as [`LogWriter::open`] does.
    pub fn open(dir: impl AsRef<Path>, config: LogConfig) -> Result<Self> {
        LogWriter::open(dir, config).map(Self::from)
    }

    /// Appends whole record batches, as one, like [`LogWriter::append`].
    pub fn append(&self, batches: &[u8], options: AppendOptions) -> Result<Appended> {
        self.submit(Input::Batches(batches), options, false)
    }

    /// Appends records, as one, like [`LogWriter::append_records`]. Records without a timestamp get the time of the call.
    pub fn append_records(&self, records: &[Record<'_>], options: AppendOptions) -> Result<Appended> {
        self.submit(Input::Records(records), options, false)
    }

    /// Appends whole batches and returns once they are visible, without waiting for a sync, like
    /// [`LogWriter::append_deferred`].
    ///
    /// It waits for room in the queue, and for others' writes, but for no sync that others lead. Nothing becomes durable by
    /// itself: somebody has to lead a sync, be it by [`Pending::wait`], an append that is not deferred,
    /// [`SharedWriter::sync`] or [`SharedWriter::maintain`]. [`Pending::poll`] only looks.
    pub fn append_deferred(&self, batches: &[u8], options: AppendOptions) -> Result<Pending> {
        self.submit(Input::Batches(batches), options, true).map(|appended| self.defer(appended))
    }

    /// Appends records like [`SharedWriter::append_deferred`].
    pub fn append_records_deferred(&self, records: &[Record<'_>], options: AppendOptions) -> Result<Pending> {
        self.submit(Input::Records(records), options, true).map(|appended| self.defer(appended))
    }

    fn submit(&self, input: Input<'_>, options: AppendOptions, is_deferred: bool) -> Result<Appended> {
        let log = self.log();
        log.shared.check_writable()?;
        let share = Quota::take(&self.inner.quota, input.bytes());
        let config = log.config();
        let workbench = log.workshop.make_ready(input, options, &config)?;
        let is_eager = is_deferred || config.fsync != FsyncPolicy::Commit;
        self.inner.group.submit(Request { options, is_deferred, share, workbench }, is_eager)
    }

    fn defer(&self, appended: Appended) -> Pending {
        let log = self.log();
        Pending::new(Arc::clone(&log.shared), Arc::clone(&log.syncer), log.config().sync_method, appended)
    }

    fn log(&self) -> &Log {
        self.inner.group.work()
    }

    /// Makes everything durable that was appended so far, whatever the policy. Returns the durable end.
    pub fn sync(&self) -> Result<Offset> {
        let log = self.log();
        log.shared.check_writable()?;
        log.syncer.sync(&log.shared, log.shared.written(), log.config().sync_method)
    }

    /// What an idle log needs from time to time, like [`LogWriter::maintain`]. A due sync is led beside the appends of
    /// others; while segments are dropped they wait.
    pub fn maintain(&self) -> Result<Maintenance> {
        self.maintain_by(LogWriter::maintain)
    }

    /// The same without retention, like [`LogWriter::tend`].
    pub fn tend(&self) -> Result<Maintenance> {
        self.maintain_by(LogWriter::tend)
    }

    fn maintain_by(
        &self,
        maintain: impl FnOnce(&mut LogWriter) -> Result<Maintenance>,
    ) -> Result<Maintenance> {
        let log = self.log();
        log.shared.check_writable()?;
        let is_due = log.is_due();
        if is_due {
            self.sync()?;
        }
        let mut done = log.with_writer(maintain)?;
        done.synced |= is_due;
        if log.syncer.lag(&log.shared, log.config().clock.monotonic()).bytes == 0 && self.queued_bytes() == 0
        {
            log.workshop.rest();
        }
        Ok(done)
    }

    /// Makes `start` the first readable offset, like [`LogWriter::advance_start`].
    pub fn advance_start(&self, start: Offset) -> Result<()> {
        self.log().with_writer(|writer| writer.advance_start(start))
    }

    /// Closes the active segment and begins a new one, like [`LogWriter::roll`].
    pub fn roll(&self) -> Result<()> {
        self.log().with_writer(LogWriter::roll)
    }

    /// Begins a new leader epoch with the next batch, like [`LogWriter::set_leader_epoch`].
    pub fn set_leader_epoch(&self, epoch: i32) -> Result<()> {
        self.log().with_writer(|writer| writer.set_leader_epoch(epoch))
    }

    /// A reader of this log. It sees what is appended at once, and sleeps without polling.
    pub fn reader(&self) -> LogReader {
        let log = self.log();
        LogReader::of_writer(Arc::clone(&log.shared), log.config().fsync == FsyncPolicy::Never)
    }

    /// How much is written and not durable.
    pub fn lag(&self) -> Lag {
        let log = self.log();
        log.syncer.lag(&log.shared, log.config().clock.monotonic())
    }

    /// How many bytes of appends are being made ready or wait to be written; at most [`LogConfig::max_queued_bytes`], or
    /// one append that is larger.
    pub fn queued_bytes(&self) -> u64 {
        self.inner.quota.taken()
    }

    /// What the log knows of its producers, like [`LogWriter::producers`].
    pub fn producers(&self) -> Result<Vec<ProducerInfo>> {
        self.log().with_writer(|writer| Ok(writer.producers()))
    }

    /// What opening found and did.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.inner.report
    }

    /// The settings in force.
    pub fn config(&self) -> Arc<LogConfig> {
        self.log().config()
    }

    /// Changes the settings, like [`LogWriter::set_config`]: for all clones, from the next append on. What is being appended
    /// meanwhile gets the old ones or the new ones. [`LogConfig::max_queued_bytes`] stays as it was when the log was opened.
    pub fn set_config(&self, config: LogConfig) -> Result<()> {
        let log = self.log();
        log.with_writer(|writer| {
            writer.set_config(config.clone())?;
            *log.config.write() = Arc::new(config);
            Ok(())
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.log().shared.dir.path()
    }

    /// The first readable offset.
    pub fn start(&self) -> Offset {
        self.log().shared.start()
    }

    /// The offset after the last record that is visible.
    pub fn end(&self) -> Offset {
        self.log().shared.written()
    }

    /// Everything below it survives a power cut.
    pub fn durable_end(&self) -> Offset {
        self.log().shared.durable()
    }

    /// True where a reader or a pending append of this process has a hand on the log.
    pub(crate) fn is_in_use(&self) -> bool {
        /// The writer and what the group leads with.
        const OUR_OWN: usize = 2;
        Arc::strong_count(&self.log().shared) > OUR_OWN
    }

    /// Closes the log for all clones, like [`LogWriter::close`]. Appends that were accepted before are written and made
    /// durable or fail with [`Error::Closed`]; later calls fail with it.
    pub fn close(&self) -> Result<()> {
        let log = self.log();
        let writer = log.writer.lock().take();
        match writer {
            Some(writer) => writer.close(),
            None => Err(log.over()),
        }
    }
}

impl Log {
    /// Does what only one may do at a time. A panic meanwhile closes the log: it may have left anything half done.
    fn with_writer<T>(&self, act: impl FnOnce(&mut LogWriter) -> Result<T>) -> Result<T> {
        let mut writer = self.writer.lock();
        let Some(writer) = writer.as_mut() else { return Err(self.over()) };
        let latch = Latch(self);
        let done = act(writer);
        std::mem::forget(latch);
        done
    }

    /// Why nothing can be done any more.
    fn over(&self) -> Error {
        self.shared.check_writable().err().unwrap_or(Error::Closed)
    }

    fn config(&self) -> Arc<LogConfig> {
        Arc::clone(&self.config.read())
    }

    fn is_due(&self) -> bool {
        let config = self.config();
        self.syncer.is_due(config.fsync, &self.shared, || config.clock.monotonic())
    }
}

/// Closes the log when it goes, which it only does with a thread that panics.
struct Latch<'a>(&'a Log);

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        self.0.latch();
    }
}

impl Work for Log {
    type Request = Request;
    type Answer = Result<Appended>;

    fn write(&self, mut requests: Vec<Request>) -> Vec<Step<Self::Answer>> {
        let outcomes = self.with_writer(|writer| Ok(writer.write_group(&mut requests)));
        let outcomes = outcomes.unwrap_or_else(|_| requests.iter().map(|_| Err(self.over())).collect());
        let is_due = requests.iter().any(|request| !request.is_deferred) && self.is_due();
        let steps = outcomes.into_iter().zip(&requests).map(|(outcome, request)| match outcome {
            Ok(appended) if request.is_deferred => Step::Done(Ok(appended)),
            // Durable already by somebody else's sync, or soon.
            Ok(appended) => match self.settle(&Ok(appended)) {
                Some(Ok(durable)) => Step::Done(Ok(durable)),
                _ if is_due => Step::Wait(Ok(appended)),
                _ => Step::Done(Ok(appended)),
            },
            Err(error) => Step::Done(Err(error)),
        });
        let steps = steps.collect();
        let mut shares: Option<Share> = None;
        self.workshop.give(requests.into_iter().map(|request| {
            match &mut shares {
                Some(shares) => shares.add(request.share),
                None => shares = Some(request.share),
            }
            request.workbench
        }));
        steps
    }

    fn announce(&self) {
        self.shared.wake();
    }

    fn sync(&self) -> Option<Self::Answer> {
        self.syncer.sync(&self.shared, self.shared.written(), self.config().sync_method).err().map(Err)
    }

    fn settle(&self, waiting: &Self::Answer) -> Option<Self::Answer> {
        let Ok(appended) = waiting else { return Some(Err(self.over())) };
        if appended.last_offset < self.shared.durable() {
            return Some(Ok(Appended { durability: Durability::Durable, ..*appended }));
        }
        self.shared.check_writable().err().map(Err)
    }

    fn latch(&self) {
        self.syncer.close(&self.shared);
    }

    fn lost(&self) -> Self::Answer {
        Err(self.over())
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;
    use crate::config::OpenMode;

    fn shared(dir: &Path, max_queued_bytes: u64) -> SharedWriter {
        let config = LogConfig {
            open: OpenMode::CreateIfMissing,
            fsync: FsyncPolicy::Never,
            max_queued_bytes,
            ..LogConfig::default()
        };
        SharedWriter::open(dir.join("t-0"), config).unwrap()
    }

    /// While nothing can be written, callers fill the queue up to its bound and no further, whatever their number; then
    /// all get through, those larger than the bound too.
    #[test]
    fn what_waits_to_be_written_keeps_its_bound() {
        let temp = tempfile::tempdir().unwrap();
        let log = shared(temp.path(), 64 << 10);
        let value = vec![0; 10 << 10];
        thread::scope(|scope| {
            let held = log.log().writer.lock();
            let callers: Vec<_> = (0..20)
                .map(|_| {
                    let record = [Record::value_only(&value)];
                    let log = &log;
                    scope.spawn(move || log.append_records(&record, AppendOptions::default()).unwrap())
                })
                .collect();
            while log.queued_bytes() < 60 << 10 {
                thread::sleep(Duration::from_millis(1));
            }
            // Each of them that comes in spite of the bound would show by now and then.
            for _ in 0..50 {
                assert!(log.queued_bytes() <= 64 << 10, "{}", log.queued_bytes());
                thread::sleep(Duration::from_millis(1));
            }
            drop(held);
            while !callers.iter().all(thread::ScopedJoinHandle::is_finished) {
                assert!(log.queued_bytes() <= 64 << 10);
                thread::yield_now();
            }
        });
        assert_eq!((log.end().value(), log.queued_bytes()), (20, 0));
        let large = vec![0; 200 << 10];
        log.append_records(&[Record::value_only(&large)], AppendOptions::default()).unwrap();
        assert_eq!(log.queued_bytes(), 0);
    }

    #[test]
    fn memory_that_was_used_is_kept_within_bounds_and_given_back_at_rest() {
        let temp = tempfile::tempdir().unwrap();
        let log = shared(temp.path(), 64 << 20);
        let workshop = &log.log().workshop;
        for size in [1, 100 << 10, 900 << 10] {
            let value = vec![0; size];
            for _ in 0..3 {
                log.append_records(&[Record::value_only(&value)], AppendOptions::default()).unwrap();
                assert!(workshop.held_bytes() <= 2 << 20);
            }
        }
        assert!(workshop.held_bytes() > 0);
        log.sync().unwrap();
        log.maintain().unwrap();
        assert_eq!(workshop.held_bytes(), 0);
    }
}
