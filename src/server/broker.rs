//! What requests work on: one broker, which is the cluster.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    committed_offsets::CommittedOffsets, groups::Groups, housekeeping::Housekeeping, in_flight::InFlight,
    producer_ids::ProducerIds, settings::Settings, topics::Topics, workers::Workers,
};
use crate::{Clock, Result, Store, StoreLog, Timestamp};

/// What a broker is called where its directory does not say: Kafka's quick start has this one.
const NODE_ID: i32 = 1;

/// The state of a server, apart from its connections.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) topics: Arc<Topics>,
    pub(crate) offsets: Arc<CommittedOffsets>,
    pub(crate) groups: Groups,
    pub(crate) producer_ids: ProducerIds,
    pub(crate) housekeeping: Housekeeping,
    pub(crate) workers: Workers,
    /// Large requests of all connections.
    pub(super) in_flight: Arc<InFlight>,
    clock: Clock,
    node_id: i32,
    cluster_id: String,
    is_draining: AtomicBool,
}

/// Recovers logs, so many at a time. One that cannot be says so again at its first request.
fn recover(logs: &[StoreLog], threads: usize) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(log) = logs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = log.recover_and_rest() {
                tracing::error!(topic = log.topic(), partition = log.partition(), %error, "a log cannot be recovered");
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(logs.len()) {
            let thread = thread::Builder::new().name("recovery".to_owned()).spawn_scoped(scope, work);
            if let Err(error) = thread {
                tracing::warn!(%error, "fewer threads than num.recovery.threads.per.data.dir");
                break;
            }
        }
        work();
    });
}

impl Broker {
    /// Opens the data directory that the settings name, made where it is not there.
    pub(super) fn open(settings: Arc<Settings>) -> Result<Self> {
        let store = Store::open(&settings.data_dir, settings.store_config())?;
        for warning in store.warnings() {
            tracing::warn!(dir = %settings.data_dir.display(), "{warning}");
        }
        // After a kill: what was not closed is looked through now, and not under the first request for it. Reads and the
        // other logs do not depend on one that fails here.
        if !store.was_clean() {
            recover(&store.unclean_logs()?, settings.recovery_threads);
        }
        let node_id = store.node_id().unwrap_or(NODE_ID);
        let cluster_id = store.cluster_id().unwrap_or_default().to_owned();
        let clock = settings.log.clock.clone();
        let producer_ids = ProducerIds::new(store.clone());
        let topics = Arc::new(Topics::open(store, settings)?);
        let offsets = Arc::new(CommittedOffsets::load(Arc::clone(&topics))?);
        let groups = Groups::start(topics.server_settings(), Arc::clone(&offsets))?;
        let housekeeping = Housekeeping::start(Arc::clone(&topics), Arc::clone(groups.coordinator()))?;
        let is_draining = AtomicBool::new(false);
        let workers = Workers::default();
        let in_flight = InFlight::new(topics.server_settings().requests_max_bytes);
        Ok(Self {
            topics,
            offsets,
            groups,
            producer_ids,
            housekeeping,
            workers,
            in_flight,
            clock,
            node_id,
            cluster_id,
            is_draining,
        })
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.topics.server_settings()
    }

    pub(crate) fn node_id(&self) -> i32 {
        self.node_id
    }

    pub(crate) fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// The wall clock's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Time for deadlines.
    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// From now on nothing is waited for: what is asked is answered as things stand.
    pub(super) fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    /// Syncs and closes everything. True where the marker of a clean stop was left.
    pub(super) fn close(self) -> Result<bool> {
        let Self { topics, offsets, groups, producer_ids, housekeeping, .. } = self;
        housekeeping.stop();
        groups.stop();
        drop((offsets, producer_ids));
        let store = topics.store().clone();
        topics.clear();
        store.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AppendOptions, OpenMode, StoreConfig, record::Record};

    /// However many threads, and with one log that is none any more.
    #[test]
    fn all_logs_that_can_be_are_recovered() {
        let temp = tempfile::tempdir().unwrap();
        let mut config = StoreConfig::default();
        config.log.open = OpenMode::CreateIfMissing;
        let open = || Store::open(temp.path(), config.clone()).unwrap();
        let store = open();
        store.create_topic("t", 9).unwrap();
        for partition in 0..9 {
            let log = store.log("t", partition).unwrap();
            let _ = log.append_records(&[Record::value_only(b"v")], AppendOptions::default()).unwrap();
        }
        drop(store);
        for threads in [4, 0, 100] {
            let store = open();
            let logs = store.unclean_logs().unwrap();
            assert_eq!(logs.len(), 9);
            recover(&logs, threads);
            assert_eq!((store.unclean_logs().unwrap().len(), store.open_logs()), (0, 0));
        }
        let store = open();
        std::fs::remove_dir_all(temp.path().join("t-3")).unwrap();
        recover(&store.unclean_logs().unwrap(), 3);
        let left: Vec<_> = store.unclean_logs().unwrap().iter().map(StoreLog::partition).collect();
        assert_eq!(left, [3]);
    }
}
