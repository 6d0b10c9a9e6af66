//! Where topics are: brokers, or a data directory.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use stratalog::{
    Error, Isolation, LogReader, OpenMode, ReadOptions, Store, StoreConfig, Uuid, inspect::PartitionMetadata,
    server::check_topic_settings,
};

use super::rows::{Partition, Topic};
use crate::{
    broker::{
        self, BrokerArgs, Patience, TopicTold,
        admin::{Change, Made, NewTopic, Setting},
        check_topic,
    },
    failure::{Code, Failure},
    globals::Globals,
    scope::{Found, list},
};

/// Where the topics are that are meant.
pub(super) enum Place {
    Brokers(broker::Place),
    Directory(PathBuf),
}

impl Place {
    pub(super) fn find(args: &BrokerArgs, globals: &Globals) -> Result<Self, Failure> {
        if let Some(brokers) = broker::Place::find(args, globals, None, Patience::new)? {
            return Ok(Self::Brokers(brokers));
        }
        match &globals.dir {
            Some(dir) => Ok(Self::Directory(dir.clone())),
            None => Err(Failure::usage("no brokers given")
                .hint("name them with -b HOST:PORT, or a data directory with --dir")),
        }
    }

    /// The topics of these names, each of which must be there; all where none is given. `failed` takes those that are not.
    pub(super) fn look(
        &self,
        names: &[String],
        failed: &mut dyn FnMut(Failure) -> Result<(), Failure>,
    ) -> Result<Vec<Topic>, Failure> {
        let all = match self {
            Self::Brokers(brokers) => {
                let mut client = brokers.client().borrow_mut();
                if names.is_empty() {
                    client.look(None)?.into_iter().map(told).collect()
                } else {
                    let mut found = Vec::new();
                    for name in names {
                        check_topic(name)?;
                        match client.topic(name) {
                            Ok(topic) => found.push(told(topic)),
                            Err(failure) if failure.ends_all() || failure.code == Code::Unreachable => {
                                return Err(failure);
                            }
                            Err(failure) => failed(failure)?,
                        }
                    }
                    found
                }
            }
            Self::Directory(dir) => of_directory(dir)?,
        };
        if names.is_empty() || matches!(self, Self::Brokers(_)) {
            return Ok(all);
        }
        let mut found = Vec::new();
        for name in names {
            check_topic(name)?;
            match all.iter().find(|topic| topic.name == *name) {
                Some(topic) => found.push(topic.clone()),
                None => failed(
                    Failure::not_found(format!("no topic `{name}` in {}", self.name()))
                        .hint("`logctl topic ls` lists what there is, `logctl topic create` makes one"),
                )?,
            }
        }
        Ok(found)
    }

    /// What the place is called in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Brokers(brokers) => brokers.servers().to_owned(),
            Self::Directory(dir) => dir.display().to_string(),
        }
    }

    /// Where each partition of a topic begins and ends.
    pub(super) fn fill_offsets(&self, topic: &mut Topic) -> Result<(), Failure> {
        match self {
            Self::Brokers(brokers) => {
                let numbers: Vec<i32> = topic.partitions.iter().map(|partition| partition.number).collect();
                let mut client = brokers.client().borrow_mut();
                let mut ask = |at| client.list_offsets(&topic.name, &numbers, at, Isolation::Uncommitted);
                let (starts, ends) = (ask(broker::EARLIEST)?, ask(broker::LATEST)?);
                for (partition, ((_, start), (_, end))) in
                    topic.partitions.iter_mut().zip(starts.into_iter().zip(ends))
                {
                    (partition.start, partition.end) = (Some(start?), Some(end?));
                }
            }
            Self::Directory(dir) => {
                for partition in &mut topic.partitions {
                    let path = dir.join(format!("{}-{}", topic.name, partition.number));
                    let reader = LogReader::open(&path, ReadOptions::default())?;
                    (partition.start, partition.end) =
                        (Some(reader.start().value()), Some(reader.end().value()));
                }
            }
        }
        Ok(())
    }

    /// The settings of a topic: of a directory those that it was told, of brokers all.
    pub(super) fn settings(&self, topic: &Topic) -> Result<Vec<Setting>, Failure> {
        match self {
            Self::Brokers(brokers) => brokers.client().borrow_mut().settings(&topic.name),
            Self::Directory(dir) => {
                let first = topic.partitions.first().map_or(0, |partition| partition.number);
                let told = Store::topic_settings_in(dir.join(format!("{}-{first}", topic.name)))?;
                let setting = |(name, value): (String, String)| Setting {
                    name,
                    value: Some(value),
                    origin: "topic",
                    is_own: true,
                    is_sensitive: false,
                };
                Ok(told.into_iter().map(setting).collect())
            }
        }
    }

    // ---- changes -----------------------------------------------------------------------------------------------------

    /// Makes a topic. `is_trial`: only says what would become of it.
    pub(super) fn create(&self, topic: &NewTopic, is_trial: bool) -> Result<Made, Failure> {
        let dir = match self {
            Self::Brokers(brokers) => return brokers.client().borrow_mut().create_topic(topic, is_trial),
            Self::Directory(dir) => dir,
        };
        let settings = topic.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let settings = check_topic_settings(settings).map_err(Failure::usage)?;
        if topic.replicas.is_some_and(|replicas| replicas != 1) {
            return Err(Failure::usage(
                "in a directory there is one copy of a topic: --replication-factor is 1",
            ));
        }
        let partitions = topic.partitions.unwrap_or(1);
        if is_trial && !dir.exists() {
            return Ok(Made::New { partitions, replicas: 1 });
        }
        with_store(dir, !is_trial, |store| {
            let made = if is_trial {
                store.check_new_topic(&topic.name, partitions)
            } else {
                store.create_topic_with(&topic.name, partitions, &settings).map(drop)
            };
            match made {
                Ok(()) => Ok(Made::New { partitions, replicas: 1 }),
                Err(Error::TopicExists { .. }) => Ok(Made::WasThere),
                Err(error @ Error::InvalidTopic { .. }) => {
                    Ok(Made::Failed(Failure::usage(error.to_string())))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Changes settings, and raises the number of partitions. `is_trial`: only says whether it could be done.
    pub(super) fn change(
        &self,
        topic: &Topic,
        changes: &[Change],
        partitions: Option<i32>,
        is_trial: bool,
    ) -> Result<(), Failure> {
        let dir = match self {
            Self::Brokers(brokers) => {
                let mut client = brokers.client().borrow_mut();
                if !changes.is_empty() {
                    client.change_settings(&topic.name, changes, is_trial)?;
                }
                return match partitions {
                    Some(count) => client.create_partitions(&topic.name, count, is_trial),
                    None => Ok(()),
                };
            }
            Self::Directory(dir) => dir,
        };
        let mut settings: BTreeMap<String, String> = self
            .settings(topic)?
            .into_iter()
            .map(|setting| (setting.name, setting.value.unwrap_or_default()))
            .collect();
        for change in changes {
            match change {
                Change::Set(name, value) => settings.insert(name.clone(), value.clone()),
                Change::Unset(name) => settings.remove(name),
            };
        }
        let told = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let settings = check_topic_settings(told).map_err(Failure::usage)?;
        let have = topic.partitions.len();
        if let Some(count) = partitions.filter(|count| usize::try_from(*count).unwrap_or(0) <= have) {
            return Err(Failure::usage(format!(
                "`{}` has {have} partitions, and {count} are not more",
                topic.name
            )));
        }
        if is_trial {
            return Ok(());
        }
        with_store(dir, false, |store| {
            if !changes.is_empty() {
                store.set_topic_settings(&topic.name, &settings)?;
            }
            match partitions {
                Some(count) => Ok(store.create_partitions(&topic.name, count)?),
                None => Ok(()),
            }
        })
    }

    /// Removes a topic with all its records.
    pub(super) fn remove(&self, topic: &Topic) -> Result<(), Failure> {
        match self {
            Self::Brokers(brokers) => brokers.client().borrow_mut().delete_topic(&topic.name),
            Self::Directory(dir) => with_store(dir, false, |store| Ok(store.delete_topic(&topic.name)?)),
        }
    }
}

/// Opens the store, which locks the data directory, and closes it again.
fn with_store<T>(
    dir: &Path,
    makes: bool,
    work: impl FnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut config = StoreConfig::default();
    config.log.open = if makes { OpenMode::CreateIfMissing } else { OpenMode::MustExist };
    let store = Store::open(dir, config).map_err(|error| {
        let is_locked = matches!(error, Error::Locked { .. });
        let failure = Failure::from(error);
        if is_locked { failure.hint("a server has it: ask that, with -b HOST:PORT") } else { failure }
    })?;
    let outcome = work(&store);
    let closed = store.close().map(drop).map_err(Failure::from);
    outcome.and_then(|done| closed.map(|()| done))
}

fn told(topic: TopicTold) -> Topic {
    let partition = |told: &stratalog::protocol::messages::metadata::MetadataResponsePartition| Partition {
        number: told.partition_index,
        leader: Some(told.leader_id),
        replicas: Some(told.replica_nodes.clone()),
        in_sync: Some(told.isr_nodes.clone()),
        start: None,
        end: None,
    };
    Topic {
        id: (!topic.id.is_zero()).then(|| Uuid::from_bytes(topic.id.0).to_string()),
        is_internal: topic.is_internal,
        partitions: topic.partitions.iter().map(partition).collect(),
        name: topic.name,
    }
}

/// What lies in a data directory; nothing is locked for it.
fn of_directory(dir: &Path) -> Result<Vec<Topic>, Failure> {
    let (found, _) = list(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            Failure::not_found(format!("no such directory: {}", dir.display()))
        }
        _ => Failure::io("look at", dir.display(), &error),
    })?;
    let mut topics: Vec<Topic> = Vec::new();
    // Sorted by topic and number.
    for Found { path, topic, partition } in found {
        let Ok(number) = i32::try_from(partition) else { continue };
        // A broker's own records of its cluster.
        if topic == "__cluster_metadata" {
            continue;
        }
        let of_number =
            Partition { number, leader: None, replicas: None, in_sync: None, start: None, end: None };
        if let Some(last) = topics.last_mut().filter(|last| last.name == topic) {
            last.partitions.push(of_number);
            continue;
        }
        let metadata = fs::read(path.join("partition.metadata")).ok();
        let metadata = metadata.and_then(|text| PartitionMetadata::parse(&text).ok());
        topics.push(Topic {
            id: metadata.map(|metadata| metadata.topic_id),
            is_internal: matches!(topic.as_str(), "__consumer_offsets" | "__transaction_state"),
            partitions: vec![of_number],
            name: topic,
        });
    }
    Ok(topics)
}
