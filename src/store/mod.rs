//! A data directory of many logs, as a Kafka broker keeps it: one holder, many topics, each of some partitions.
//!
//! Lives here: the whole lock of the data directory, what lies in it, topics made and removed, logs opened when first used
//! and closed when descriptors are short, the order of the last close.
//! Not here: what happens inside a partition's directory (log); what the text checkpoints say (log's `store_files.rs`).
//! Holds always: no name of ours is left in the data directory that a broker would not start over (one plain file is
//! there, `.stratalog-producer-ids`); the clean marker stands
//! only while every log is known to be clean; no log's lock is taken while another's is held, except without waiting.

mod config;
mod identity;
mod names;
mod open;
mod private_file;
mod producer_ids;
mod removal;
mod slots;
mod store_log;
mod topic_settings;
mod topics;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;

use identity::Identity;
use slots::{Slot, Slots, State, Topics};

use crate::{
    error::{Error, Result},
    log::{LogReader, Maintenance, ReadOptions, SharedWriter},
    sys::{Dir, DirLock},
};

pub use config::StoreConfig;
pub use identity::Uuid;
pub use store_log::StoreLog;

/// A data directory of many logs, in Kafka's layout. Cheap to clone; all clones are one store, for any number of threads.
///
/// It holds the data directory's lock as a broker does: no broker, no other store and no
/// [`LogWriter`](crate::LogWriter) of a single partition can work in it meanwhile; readers can. Dropping the last handle
/// without [`Store::close`] is what a crash looks like to the next open, and loses nothing that was acknowledged.
///
/// ```
/// use stratalog::{AppendOptions, OpenMode, Store, StoreConfig, record::Record};
///
/// # let temp = tempfile::tempdir().unwrap();
/// # let dir = temp.path().join("data");
/// let mut config = StoreConfig::default();
/// config.log.open = OpenMode::CreateIfMissing;
/// let store = Store::open(&dir, config)?;
/// store.create_topic("orders", 3)?;
/// let log = store.log("orders", 1)?;
/// log.append_records(&[Record::value_only(b"hello")], AppendOptions::default())?;
/// store.close()?;
/// # Ok::<(), stratalog::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: Arc<Dir>,
    config: StoreConfig,
    identity: Identity,
    topics: Mutex<Topics>,
    slots: Slots,
    /// One at a time makes or removes topics, or closes the store.
    changing: Mutex<()>,
    is_closed: AtomicBool,
    /// The first producer id that was not given; `None` until one was asked for.
    next_producer_id: Mutex<Option<i64>>,
    /// What lies here that only a broker could say is clean.
    has_others_logs: bool,
    warnings: Vec<String>,
    /// After the writers, which are dropped with `topics`.
    lock: Mutex<Option<DirLock>>,
}

/// A topic and its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// The partitions that are here, rising. Kafka spreads a topic over brokers, so there may be gaps.
    pub partitions: Vec<i32>,
}

/// What a pass of [`Store::maintain`] did, over all open logs.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct StoreMaintenance {
    /// Logs whose due sync was done.
    pub synced_logs: usize,
    /// Segments dropped.
    pub dropped_segments: usize,
    /// Bytes of `.log` files dropped.
    pub dropped_bytes: u64,
    /// Logs that could not be maintained, with the reason: topic, partition, error. The others were.
    pub failed: Vec<(String, i32, Error)>,
}

impl Store {
    /// The data directory.
    pub fn path(&self) -> &Path {
        self.inner.dir.path()
    }

    /// The cluster that the data directory belongs to, as `meta.properties` says.
    pub fn cluster_id(&self) -> Option<&str> {
        self.inner.identity.cluster_id.as_deref()
    }

    /// The number of the broker that it belongs to.
    pub fn node_id(&self) -> Option<i32> {
        self.inner.identity.node_id
    }

    /// The data directory's own id, in base64.
    pub fn directory_id(&self) -> Option<&str> {
        self.inner.identity.directory_id.as_deref()
    }

    /// True where the last broker or store over the directory stopped cleanly.
    pub fn was_clean(&self) -> bool {
        self.inner.slots.right.files.was_clean()
    }

    /// What opening found odd and passed over: files that make no sense, directories that are no partition's.
    pub fn warnings(&self) -> &[String] {
        &self.inner.warnings
    }

    /// The settings it was opened with.
    pub fn config(&self) -> &StoreConfig {
        &self.inner.config
    }

    /// The topics, by name. A broker's own metadata (`__cluster_metadata`) is none.
    pub fn topics(&self) -> Vec<Topic> {
        let topics = self.inner.topics.lock();
        let topic = |(name, slots): (&String, &std::collections::BTreeMap<i32, Arc<Slot>>)| Topic {
            name: name.clone(),
            partitions: slots.keys().copied().collect(),
        };
        topics.iter().map(topic).collect()
    }

    /// A log, to append to. Opens nothing yet. [`Error::NotFound`] where there is no such partition.
    pub fn log(&self, topic: &str, partition: i32) -> Result<StoreLog> {
        self.inner.check_open()?;
        let slot = self.inner.slot(topic, partition)?;
        Ok(StoreLog { store: Arc::clone(&self.inner), slot })
    }

    /// A reader of a log, which need not be open for writing and is not opened for it. It follows the log as one of
    /// another process would, whether the store has it open or not; [`StoreLog::reader`] gives one that is told of each
    /// append.
    pub fn reader(&self, topic: &str, partition: i32, options: ReadOptions) -> Result<LogReader> {
        self.inner.check_open()?;
        let slot = self.inner.slot(topic, partition)?;
        LogReader::open(self.inner.dir.path_of(slot.dir_name()), options)
    }

    /// How many logs are open for writing now.
    pub fn open_logs(&self) -> usize {
        self.inner.slots.opened().len()
    }

    /// What the open logs need from time to time (each second, say): due syncs, recovery points, retention; then what a
    /// broker would be told of them is written down. Nothing here happens by itself. Logs that are not open need nothing,
    /// but retention by age passes them over.
    pub fn maintain(&self) -> Result<StoreMaintenance> {
        let done = self.maintain_by(SharedWriter::maintain)?;
        self.write_checkpoints()?;
        Ok(done)
    }

    /// The same without retention and without writing down what a broker would be told, for who does that less often.
    pub fn tend(&self) -> Result<StoreMaintenance> {
        self.maintain_by(SharedWriter::tend)
    }

    /// Writes down what a broker would be told of the logs, where that has changed: the text checkpoints.
    pub fn write_checkpoints(&self) -> Result<()> {
        self.inner.check_open()?;
        self.inner.slots.right.files.write()
    }

    fn maintain_by(
        &self,
        maintain: impl Fn(&SharedWriter) -> Result<Maintenance>,
    ) -> Result<StoreMaintenance> {
        self.inner.check_open()?;
        let mut done = StoreMaintenance::default();
        for slot in self.inner.slots.opened() {
            match Slots::if_open(&slot, &maintain) {
                None => {}
                Some(Ok(one)) => {
                    done.synced_logs += usize::from(one.synced);
                    done.dropped_segments += one.dropped_segments;
                    done.dropped_bytes += one.dropped_bytes;
                }
                Some(Err(error)) => done.failed.push((slot.topic.clone(), slot.partition, error)),
            }
        }
        Ok(done)
    }

    /// How large the file system of the data directory is, and how much of it may still be written, in bytes.
    pub fn space_bytes(&self) -> Result<(u64, u64)> {
        Ok(self.inner.dir.space_bytes()?)
    }

    /// Closes logs, those used longest ago first, until at most so many are open; the next use opens them again. Those in
    /// use stay. Returns how many were closed.
    pub fn close_idle(&self, most_open: usize) -> usize {
        self.inner.slots.close_idle(most_open as u64)
    }

    /// Opens, recovers and closes every log that is not known to be clean. After a kill this is what lets [`Store::close`]
    /// leave the clean marker, so that a broker does not scan those that were not used since. Reads what was not verified.
    ///
    /// Where some cannot be recovered the others are all the same, and the first error is returned.
    pub fn recover_all(&self) -> Result<()> {
        let mut result = Ok(());
        for log in self.unclean_logs()? {
            result = result.and(log.recover_and_rest());
        }
        result
    }

    /// The logs that are neither open nor known to be clean, for who recovers them by several threads
    /// ([`StoreLog::recover_and_rest`]).
    pub fn unclean_logs(&self) -> Result<Vec<StoreLog>> {
        self.inner.check_open()?;
        let files = &self.inner.slots.right.files;
        let is_done = |slot: &Arc<Slot>| {
            matches!(*slot.state.read(), State::Open(_)) || files.is_known_clean(&slot.topic, slot.partition)
        };
        let slots = self.inner.all_slots().into_iter().filter(|slot| !is_done(slot));
        Ok(slots.map(|slot| StoreLog { store: Arc::clone(&self.inner), slot }).collect())
    }

    /// Closes all logs, writes down what a broker is to be told, and last, where every log is known to be clean, leaves the
    /// clean marker. Then the lock is freed, whatever it came to. True where the marker stands.
    ///
    /// A log is known to be clean where it was closed here, or where the marker was there at open and the log was not
    /// changed. After a kill the marker is therefore missing until every log was opened once, or [`Store::recover_all`]
    /// was called: without it a broker scans each log from its recovery point, and loses nothing.
    ///
    /// Other handles get [`Error::Closed`] from then on. Where a log could not be closed the first such error is returned,
    /// and the others are closed all the same.
    pub fn close(self) -> Result<bool> {
        self.inner.close()
    }
}

impl Inner {
    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    fn slot(&self, topic: &str, partition: i32) -> Result<Arc<Slot>> {
        let found = self.topics.lock().get(topic).and_then(|slots| slots.get(&partition)).cloned();
        found.ok_or_else(|| Error::NotFound { path: self.dir.path_of(names::dir_of(topic, partition)) })
    }

    fn all_slots(&self) -> Vec<Arc<Slot>> {
        self.topics.lock().values().flat_map(|slots| slots.values().cloned()).collect()
    }

    fn close(&self) -> Result<bool> {
        let _alone = self.changing.lock();
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        let slots = self.all_slots();
        let mut result = Ok(());
        for slot in &slots {
            let mut state = slot.state.write();
            let after = if matches!(*state, State::Deleted) { State::Deleted } else { State::Over };
            let closed = self.slots.close(slot, &mut state, after);
            result = result.and(closed);
        }
        let partitions = slots.iter().map(|slot| (slot.topic.as_str(), slot.partition));
        let files = &self.slots.right.files;
        let finished = if self.has_others_logs && !files.was_clean() {
            files.write().map(|()| false)
        } else {
            files.finish(partitions)
        };
        *self.lock.lock() = None;
        result.and(finished)
    }
}
