//! What has to be done from time to time, by a thread of its own: syncs that nobody waits for, recovery points, retention,
//! offsets that are too old.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use super::{
    groups::Coordinator,
    topics::{Partition, Topics},
};
use crate::{Clock, Error, Result};

/// How often open logs are looked after: recovery points, memory given back.
const TEND_INTERVAL: Duration = Duration::from_secs(1);
/// How often a log is looked at whose records are counted until the next sync.
const COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// The thread, and what it is told.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    topics: Arc<Topics>,
    groups: Arc<Coordinator>,
    clock: Clock,
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    /// Logs with records that nobody waits for, and when they are to be looked at, by the monotonic clock.
    waiting: Vec<(Duration, Arc<Partition>)>,
    is_stopping: bool,
}

/// When the regular things are due next.
#[derive(Debug)]
struct Due {
    tend: Duration,
    checkpoints: Duration,
    retention: Duration,
    expiry: Duration,
}

impl Housekeeping {
    /// Starts the thread.
    pub(crate) fn start(topics: Arc<Topics>, groups: Arc<Coordinator>) -> Result<Self> {
        let clock = topics.server_settings().log.clock.clone();
        let shared = Shared { topics, groups, clock, queue: Mutex::default(), wake: Condvar::new() };
        let shared = Arc::new(shared);
        let run = Arc::clone(&shared);
        let thread = thread::Builder::new().name("housekeeping".to_owned()).spawn(move || run.run());
        let path = shared.topics.store().path().to_owned();
        let thread = thread.map_err(|source| Error::Io { op: "start a thread for", path, source })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Tells of records that were appended and that nobody waits for: `acks=0`, or any where the topic acknowledges at
    /// written. They are synced when their topic's settings say so: see [`wait_of`].
    pub(crate) fn note(&self, partition: &Arc<Partition>) {
        if !partition.begin_waiting() {
            return;
        }
        let due = self.shared.clock.monotonic() + self.shared.wait_of(partition);
        let mut queue = self.shared.queue.lock();
        // Only who is first changes how long the thread may sleep.
        let is_first = queue.waiting.iter().all(|(other, _)| due < *other);
        queue.waiting.push((due, Arc::clone(partition)));
        drop(queue);
        if is_first {
            self.shared.wake.notify_one();
        }
    }

    /// Ends the thread, after what it is doing. What waited for a sync is left to the close of the store.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.queue.lock().is_stopping = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the housekeeping thread had panicked");
        }
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn run(&self) {
        let settings = Arc::clone(self.topics.server_settings());
        let now = self.clock.monotonic();
        let mut due = Due {
            tend: now + TEND_INTERVAL,
            checkpoints: now + settings.idle_sync,
            retention: now + settings.first_retention,
            expiry: now + settings.offsets_check_interval,
        };
        loop {
            let first = due.tend.min(due.checkpoints).min(due.retention).min(due.expiry);
            let Some(partitions) = self.sleep_until(first) else { return };
            for partition in partitions {
                self.sync(partition);
            }
            let is_due = |at: &mut Duration, interval: Duration| {
                let now = self.clock.monotonic();
                let is_due = *at <= now;
                if is_due {
                    *at = now + interval.max(Duration::from_millis(1));
                }
                is_due
            };
            if is_due(&mut due.tend, TEND_INTERVAL) {
                self.tend();
                self.groups.compact();
            }
            if is_due(&mut due.checkpoints, settings.idle_sync)
                && let Err(error) = self.topics.store().write_checkpoints()
            {
                tell("checkpoints", &error);
            }
            if is_due(&mut due.retention, settings.retention_interval) {
                self.retain();
            }
            if is_due(&mut due.expiry, settings.offsets_check_interval)
                && let Err(refusal) = self.groups.expire()
            {
                tracing::warn!(%refusal, "old committed offsets stay");
            }
        }
    }

    /// Sleeps until something is due, and takes the logs that are. `None`: it is time to stop.
    fn sleep_until(&self, first: Duration) -> Option<Vec<Arc<Partition>>> {
        let mut queue = self.queue.lock();
        loop {
            if queue.is_stopping {
                return None;
            }
            let now = self.clock.monotonic();
            let next = queue.waiting.iter().map(|(due, _)| *due).min().map_or(first, |due| due.min(first));
            if next <= now {
                let (over, waiting) =
                    std::mem::take(&mut queue.waiting).into_iter().partition(|(due, _)| *due <= now);
                queue.waiting = waiting;
                return Some(Vec::into_iter(over).map(|(_, partition)| partition).collect());
            }
            self.wake.wait_for(&mut queue, next.saturating_sub(now));
        }
    }

    /// How long until a log with such records is looked at. Where a topic acknowledges at durable nobody waits for them, so
    /// soon; where it acknowledges at written, when its settings say.
    fn wait_of(&self, partition: &Partition) -> Duration {
        let topic = partition.settings();
        if topic.is_durable {
            self.topics.server_settings().unwaited_sync
        } else if topic.flush_records.is_some() {
            COUNT_INTERVAL.min(topic.flush_age)
        } else {
            topic.flush_age
        }
    }

    fn sync(&self, partition: Arc<Partition>) {
        // Before it is looked at: what comes from now on is told anew.
        partition.end_waiting();
        let topic = partition.settings();
        // A log that was closed meanwhile is durable.
        if !partition.log().is_open() {
            return;
        }
        let lag = match partition.log().lag() {
            Ok(lag) if lag.records > 0 => lag,
            _ => return,
        };
        let is_due = topic.is_durable
            || lag.age >= topic.flush_age
            || topic.flush_records.is_some_and(|most| lag.records >= most);
        if is_due {
            if let Err(error) = partition.log().sync() {
                let (topic, number) = (partition.log().topic(), partition.log().partition());
                tracing::error!(topic, partition = number, %error, "records that nobody waited for could not be made durable");
            }
        } else if partition.begin_waiting() {
            let left = topic.flush_age.saturating_sub(lag.age);
            let wait = if topic.flush_records.is_some() { left.min(COUNT_INTERVAL) } else { left };
            let due = self.clock.monotonic() + wait.max(Duration::from_millis(1));
            self.queue.lock().waiting.push((due, partition));
        }
    }

    fn tend(&self) {
        match self.topics.store().tend() {
            Ok(done) => {
                for (topic, partition, error) in &done.failed {
                    tracing::warn!(topic, partition, %error, "a log could not be looked after");
                }
            }
            Err(error) => tell("upkeep", &error),
        }
    }

    /// Logs that are not open are opened for it, where they may have something to drop.
    fn retain(&self) {
        let (mut segments, mut bytes) = (0_usize, 0_u64);
        for topic in self.topics.all() {
            let retention = topic.settings().log.retention;
            let has_limit = retention.bytes.is_some() || retention.age.is_some();
            for (number, partition) in topic.partitions() {
                if self.queue.lock().is_stopping {
                    return;
                }
                let log = partition.log();
                let was_open = log.is_open();
                if !was_open && (!has_limit || log.size_bytes().unwrap_or(0) == 0) {
                    continue;
                }
                match log.maintain() {
                    Ok(done) => {
                        segments += done.dropped_segments;
                        bytes = bytes.saturating_add(done.dropped_bytes);
                    }
                    Err(Error::NotFound { .. } | Error::Closed) => {}
                    Err(error) => {
                        tracing::warn!(topic = topic.name(), partition = number, %error, "retention failed");
                    }
                }
                if !was_open && let Err(error) = log.rest_if_unused() {
                    tracing::warn!(topic = topic.name(), partition = number, %error, "a log was not closed cleanly");
                }
            }
        }
        if segments > 0 {
            tracing::info!(segments, bytes, "old segments dropped");
        }
    }
}

fn tell(what: &str, error: &Error) {
    if !matches!(error, Error::Closed) {
        tracing::warn!(what, %error, "housekeeping failed");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{
        AppendOptions, Store, Timestamp,
        record::Record,
        server::{committed_offsets::CommittedOffsets, groups::Groups, settings::Layers, topics::NewTopic},
    };

    fn open(dir: &Path, text: &str) -> (Arc<Topics>, Housekeeping) {
        let mut layers = Layers::new();
        layers.flag("--dir", "log.dirs", dir.to_str().unwrap());
        layers.properties("f", text);
        let settings = Arc::new(layers.resolve().unwrap());
        let store = Store::open(dir, settings.store_config()).unwrap();
        let topics = Arc::new(Topics::open(store, settings).unwrap());
        let offsets = Arc::new(CommittedOffsets::load(Arc::clone(&topics)).unwrap());
        let groups = Groups::start(topics.server_settings(), offsets).unwrap();
        let housekeeping =
            Housekeeping::start(Arc::clone(&topics), Arc::clone(groups.coordinator())).unwrap();
        (topics, housekeeping)
    }

    fn topic(topics: &Topics, settings: &[(&str, &str)]) -> Arc<Partition> {
        let settings = settings.iter().map(|(name, value)| (*name, Some(*value))).collect();
        let new = NewTopic { name: "t", partition_count: 1, replication_factor: 1, settings };
        topics.create(&new, false).unwrap().topic.unwrap().partition(0).unwrap()
    }

    fn append(partition: &Partition) {
        let record = [Record::value_only(b"v").timestamp(Timestamp::from_millis(1000))];
        drop(partition.log().append_records_deferred(&record, AppendOptions::default()).unwrap());
    }

    /// Waits for what must come, however slow the machine is.
    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        for _ in 0..60_000 {
            if is_so() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("never: {what}");
    }

    #[test]
    fn records_that_nobody_waits_for_become_durable() {
        let temp = tempfile::tempdir().unwrap();
        let (topics, housekeeping) = open(temp.path(), "");
        let partition = topic(&topics, &[]);
        for end in 1..=3 {
            append(&partition);
            housekeeping.note(&partition);
            until("durable", || partition.log().durable_end().unwrap().value() == end);
        }
        housekeeping.stop();
        assert!(topics.store().clone().close().unwrap());
    }

    #[test]
    fn a_topic_that_acknowledges_at_written_is_synced_when_it_says() {
        let temp = tempfile::tempdir().unwrap();
        let (topics, housekeeping) = open(temp.path(), "stratalog.acknowledge.at=written\n");
        let partition = topic(&topics, &[("flush.messages", "3"), ("flush.ms", "86400000")]);
        for _ in 0..2 {
            append(&partition);
            housekeeping.note(&partition);
        }
        // Longer than the thread takes to count them once.
        thread::sleep(COUNT_INTERVAL * 3);
        assert_eq!(partition.log().durable_end().unwrap().value(), 0);
        append(&partition);
        housekeeping.note(&partition);
        until("three are durable", || partition.log().durable_end().unwrap().value() == 3);
        topics.replace_settings("t", &[("flush.ms", Some("1"))], false).unwrap();
        append(&partition);
        housekeeping.note(&partition);
        until("old ones are durable", || partition.log().durable_end().unwrap().value() == 4);
    }

    #[test]
    fn retention_reaches_logs_that_are_closed() {
        let temp = tempfile::tempdir().unwrap();
        let text = "log.initial.task.delay.ms=0\nlog.retention.check.interval.ms=5\n";
        let (topics, housekeeping) = open(temp.path(), text);
        let partition = topic(&topics, &[("retention.ms", "-1")]);
        append(&partition);
        partition.log().sync().unwrap();
        partition.log().rest().unwrap();
        topics.replace_settings("t", &[("retention.ms", Some("1000"))], false).unwrap();
        until("the record is dropped", || partition.log().start().unwrap().value() == 1);
        drop(housekeeping);
    }
}
