//! What requests work on: one broker, which is the cluster.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    committed_offsets::CommittedOffsets, groups::Groups, housekeeping::Housekeeping, in_flight::InFlight,
    producer_ids::ProducerIds, settings::Settings, topics::Topics, workers::Workers,
};
use crate::{Clock, Result, Store, Timestamp};

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

impl Broker {
    /// Opens the data directory that the settings name, made where it is not there.
    pub(super) fn open(settings: Arc<Settings>) -> Result<Self> {
        let store = Store::open(&settings.data_dir, settings.store_config())?;
        for warning in store.warnings() {
            tracing::warn!(dir = %settings.data_dir.display(), "{warning}");
        }
        // After a kill: what was not closed is looked through now, and not under the first request for it. Reads and the
        // other logs do not depend on one that fails here.
        if !store.was_clean()
            && let Err(error) = store.recover_all_by(settings.recovery_threads)
        {
            tracing::error!(%error, "not all logs could be recovered");
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
