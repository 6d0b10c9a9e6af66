//! Checking the segments of any number of partitions in one pool of threads, with a line of progress, until it is done or
//! somebody says stop.

use std::{
    num::NonZeroUsize,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use stratalog::inspect::{Partition, SegmentPool, SegmentReport, VerifyOptions, VerifyReport};

use crate::{failure::Failure, globals::Globals, progress::Progress};

/// How often progress is told and signals are looked for.
const TURN: Duration = Duration::from_millis(50);

/// More of them do not make a check faster.
const MAX_THREADS: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// What to check.
pub(crate) struct Check<'a> {
    /// What the line of progress begins with.
    pub(crate) label: &'static str,
    pub(crate) options: &'a VerifyOptions,
    /// `None`: as many as there are processors.
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) globals: &'a Globals,
}

/// What came of it.
pub(crate) struct Checked {
    /// By partition: the reports of the segments that were checked to their end.
    pub(crate) reports: Vec<Vec<SegmentReport>>,
    /// Why it ended early, if it did.
    pub(crate) stopped: Option<Failure>,
    pub(crate) done_bytes: u64,
    pub(crate) total_bytes: u64,
}

impl Check<'_> {
    /// Checks these segments, each named by the number of its partition and its own number in it.
    pub(crate) fn run(&self, partitions: &[Partition], work: &[(usize, usize)]) -> Checked {
        let bytes = |&(partition, segment): &(usize, usize)| {
            partitions.get(partition).map_or(0, |partition| partition.segment_bytes(segment))
        };
        let total_bytes = work.iter().map(bytes).sum();
        let threads = self.threads.or_else(|| thread::available_parallelism().ok());
        let threads = threads.unwrap_or(NonZeroUsize::MIN).min(MAX_THREADS);
        let stop = self.globals.stop();
        let mut progress = Progress::new(self.globals, self.label, total_bytes);
        let done = AtomicU64::new(0);
        let tell = |bytes: u64| {
            done.fetch_add(bytes, Ordering::Relaxed);
            stop.reason().is_none()
        };
        let pool = SegmentPool::new(partitions, work, self.options, threads, &tell);
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel::<()>();
            for _ in 0..threads.get() {
                let (pool, sender) = (&pool, sender.clone());
                scope.spawn(move || {
                    pool.work();
                    drop(sender);
                });
            }
            drop(sender);
            // Until the last of them has ended.
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(TURN) {
                progress.update(done.load(Ordering::Relaxed));
            }
        });
        let found = pool.into_reports();
        let is_whole = found.len() == work.len();
        let mut reports: Vec<Vec<SegmentReport>> = partitions.iter().map(|_| Vec::new()).collect();
        for (partition, report) in found {
            if let Some(of_partition) = reports.get_mut(partition) {
                of_partition.push(report);
            }
        }
        let stopped = if is_whole { None } else { stop.check().err() };
        Checked { reports, stopped, done_bytes: done.load(Ordering::Relaxed).min(total_bytes), total_bytes }
    }

    /// Checks one partition wholly; a failure where that was ended early.
    pub(crate) fn whole(&self, partition: Partition) -> Result<VerifyReport, Failure> {
        let work: Vec<_> = (0..partition.segment_count()).map(|segment| (0, segment)).collect();
        let partitions = [partition];
        let checked = self.run(&partitions, &work);
        if let Some(stopped) = checked.stopped {
            return Err(stopped);
        }
        let [partition] = partitions;
        Ok(partition.conclude(checked.reports.into_iter().flatten(), self.options))
    }
}
