//! The topics of a data directory, and what may be done with them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};

use super::{
    super::{
        error_code::{ErrorCode, Refusal},
        settings::Settings,
    },
    alter::{self, Change},
    config::{self, Overrides, Shown, TopicSettings},
};
use crate::{Error, LogReader, Offset, Result, Store, StoreLog, Uuid};

/// Topics that clients may not write to or delete by mistake.
const INTERNAL: [&str; 2] = ["__consumer_offsets", "__transaction_state"];

/// The topics of a data directory.
#[derive(Debug)]
pub(crate) struct Topics {
    store: Store,
    settings: Arc<Settings>,
    index: RwLock<Index>,
    /// One at a time makes, removes or changes topics.
    changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Index {
    by_name: BTreeMap<String, Arc<Topic>>,
    by_id: HashMap<Uuid, Arc<Topic>>,
}

/// A topic. Stays what it is when it is deleted: its logs then say [`Error::NotFound`].
#[derive(Debug)]
pub(crate) struct Topic {
    name: String,
    id: Uuid,
    told: Arc<Told>,
    partitions: RwLock<BTreeMap<i32, Arc<Partition>>>,
}

/// What a topic's partitions share.
#[derive(Debug)]
struct Told {
    settings: RwLock<Arc<TopicSettings>>,
    is_internal: bool,
}

/// A partition of a topic.
#[derive(Debug)]
pub(crate) struct Partition {
    log: StoreLog,
    told: Arc<Told>,
    /// Records may be waiting here for a sync that nobody waits for: housekeeping knows.
    is_listed: AtomicBool,
}

/// A topic to be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewTopic<'a> {
    pub(crate) name: &'a str,
    /// -1: as many as the server makes.
    pub(crate) partition_count: i32,
    /// -1, or 1: there is one copy.
    pub(crate) replication_factor: i16,
    /// Its own settings.
    pub(crate) settings: Vec<(&'a str, Option<&'a str>)>,
}

/// A topic that was made, or would have been.
#[derive(Debug)]
pub(crate) struct Made {
    /// `None` where it was only checked.
    pub(crate) topic: Option<Arc<Topic>>,
    pub(crate) partition_count: i32,
    /// All its settings.
    pub(crate) settings: Vec<Shown>,
}

impl Topic {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its id; all zero where `partition.metadata` has none.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// True for the topics in which a broker keeps its own books.
    pub(crate) fn is_internal(&self) -> bool {
        self.told.is_internal
    }

    /// How many partitions it has: one more than the highest number. Some may be missing.
    pub(crate) fn partition_count(&self) -> i32 {
        self.partitions.read().keys().next_back().map_or(0, |last| last.saturating_add(1))
    }

    /// One of them; `None` where it is not here.
    pub(crate) fn partition(&self, number: i32) -> Option<Arc<Partition>> {
        self.partitions.read().get(&number).cloned()
    }

    /// All that are here, by number.
    pub(crate) fn partitions(&self) -> Vec<(i32, Arc<Partition>)> {
        self.partitions.read().iter().map(|(number, partition)| (*number, Arc::clone(partition))).collect()
    }

    /// What it goes by now.
    pub(crate) fn settings(&self) -> Arc<TopicSettings> {
        Arc::clone(&self.told.settings.read())
    }
}

impl Partition {
    /// Its log.
    pub(crate) fn log(&self) -> &StoreLog {
        &self.log
    }

    /// What its topic goes by now.
    pub(crate) fn settings(&self) -> Arc<TopicSettings> {
        Arc::clone(&self.told.settings.read())
    }

    /// True for a partition of an internal topic.
    pub(crate) fn is_internal(&self) -> bool {
        self.told.is_internal
    }

    /// A reader that sees what consumers may see, and is told of each append. The log stays open as long as it is there.
    pub(crate) fn reader(&self) -> Result<LogReader> {
        let reader = self.log.reader()?;
        let mut options = reader.options();
        options.follow = self.settings().follow();
        Ok(reader.with_options(options))
    }

    /// Up to where consumers may read: the durable end, or the written one where the topic says so.
    pub(crate) fn high_watermark(&self) -> Result<Offset> {
        if self.settings().is_durable { self.log.durable_end() } else { self.log.end() }
    }
}

impl Topics {
    /// Looks at the topics of a store and gives each log its topic's settings.
    pub(crate) fn open(store: Store, settings: Arc<Settings>) -> Result<Self> {
        let topics = Self { store, settings, index: RwLock::default(), changing: Mutex::default() };
        for topic in topics.store.topics() {
            topics.add(&topic.name, &topic.partitions)?;
        }
        Ok(topics)
    }

    /// The store beneath.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The server's settings.
    pub(crate) fn server_settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Topic>> {
        self.index.read().by_name.values().cloned().collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.index.read().by_name.len()
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<Arc<Topic>> {
        self.index.read().by_name.get(name).cloned()
    }

    pub(crate) fn by_id(&self, id: Uuid) -> Option<Arc<Topic>> {
        self.index.read().by_id.get(&id).cloned()
    }

    /// A partition, by its topic's name.
    pub(crate) fn partition(&self, topic: &str, number: i32) -> Option<Arc<Partition>> {
        self.by_name(topic)?.partition(number)
    }

    /// Takes a topic of the store into the index.
    fn add(&self, name: &str, partitions: &[i32]) -> Result<Arc<Topic>> {
        let id = self.store.topic_id(name)?.and_then(|id| Uuid::parse(&id));
        if id.is_none() {
            tracing::warn!(topic = name, "no topic id: clients that ask by id do not find it");
        }
        let settings = match self.store.topic_settings(name) {
            Ok(told) => self.settings_of(usable(name, told)),
            Err(error @ (Error::Corrupt(_) | Error::UnsupportedVersion { .. })) => {
                tracing::error!(topic = name, %error, "the topic's settings cannot be read: nothing of it is dropped until they are set again");
                self.settings_of(Overrides::new()).without_retention()
            }
            Err(error) => return Err(error),
        };
        let told = Told { settings: RwLock::new(Arc::new(settings)), is_internal: INTERNAL.contains(&name) };
        let topic = Arc::new(Topic {
            name: name.to_owned(),
            id: id.unwrap_or(Uuid::from_bytes([0; 16])),
            told: Arc::new(told),
            partitions: RwLock::default(),
        });
        self.take_partitions(&topic, partitions)?;
        let mut index = self.index.write();
        if id.is_some() {
            index.by_id.insert(topic.id, Arc::clone(&topic));
        }
        index.by_name.insert(name.to_owned(), Arc::clone(&topic));
        Ok(topic)
    }

    /// Takes those of a topic's partitions that are not here yet.
    fn take_partitions(&self, topic: &Topic, numbers: &[i32]) -> Result<()> {
        let settings = topic.settings();
        let mut partitions = topic.partitions.write();
        for &number in numbers {
            if partitions.contains_key(&number) {
                continue;
            }
            let log = self.store.log(&topic.name, number)?;
            log.set_config(settings.log.clone())?;
            let told = Arc::clone(&topic.told);
            partitions.insert(number, Arc::new(Partition { log, told, is_listed: AtomicBool::new(false) }));
        }
        Ok(())
    }

    fn settings_of(&self, overrides: Overrides) -> TopicSettings {
        let server = &self.settings;
        TopicSettings::new(overrides, &server.values, &server.log, server.idle_sync)
    }

    /// `CreateTopics`: makes a topic, or only says what would become of it.
    pub(crate) fn create(&self, new: &NewTopic<'_>, is_check: bool) -> Result<Made, Refusal> {
        let _alone = self.changing.lock();
        self.create_alone(new, is_check)
    }

    fn create_alone(&self, new: &NewTopic<'_>, is_check: bool) -> Result<Made, Refusal> {
        // The name first, whatever the rest is, as a broker has it.
        self.store.check_new_topic(new.name, 1).map_err(|error| in_brokers_words(new.name, error))?;
        let partition_count = match new.partition_count {
            -1 => self.settings.partition_count,
            given if given > 0 => given,
            _ => {
                let message = "Number of partitions was set to an invalid non-positive value.";
                return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, message));
            }
        };
        check_copies(new.replication_factor)?;
        let overrides = config::checked(new.settings.iter().copied())
            .map_err(|message| Refusal::new(ErrorCode::INVALID_CONFIG, message))?;
        self.store.check_new_topic(new.name, partition_count).map_err(Refusal::from)?;
        let settings = config::show(&overrides, &self.settings.values);
        let topic = if is_check {
            None
        } else {
            self.store.create_topic_with(new.name, partition_count, &overrides)?;
            let topic = self.add(new.name, &(0..partition_count).collect::<Vec<_>>())?;
            tracing::info!(topic = new.name, partitions = partition_count, id = %topic.id, "topic made");
            Some(topic)
        };
        Ok(Made { topic, partition_count, settings })
    }

    /// A topic that a client asks for; made where there is none and the server may.
    pub(crate) fn find_or_create(&self, name: &str) -> Result<Arc<Topic>, Refusal> {
        if let Some(topic) = self.by_name(name) {
            return Ok(topic);
        }
        let new = NewTopic { name, partition_count: -1, replication_factor: -1, settings: Vec::new() };
        if !self.settings.auto_create || INTERNAL.contains(&name) {
            // A name that no topic can have is told from one that no topic has.
            return match self.create(&new, true) {
                Err(refusal) if refusal.code == ErrorCode::INVALID_TOPIC_EXCEPTION => Err(refusal),
                _ => Err(unknown(name)),
            };
        }
        self.ensure(&new)
    }

    /// A topic of this name; made as `new` says where there is none.
    pub(crate) fn ensure(&self, new: &NewTopic<'_>) -> Result<Arc<Topic>, Refusal> {
        let _alone = self.changing.lock();
        if let Some(topic) = self.by_name(new.name) {
            return Ok(topic);
        }
        self.create_alone(new, false)?.topic.ok_or_else(|| unknown(new.name))
    }

    /// `DeleteTopics`.
    pub(crate) fn delete(&self, name: &str) -> Result<(), Refusal> {
        if !self.settings.delete_enable {
            return Err(Refusal::new(ErrorCode::TOPIC_DELETION_DISABLED, "Topic deletion is disabled."));
        }
        let _alone = self.changing.lock();
        let topic = self.by_name(name).ok_or_else(|| unknown(name))?;
        self.store.delete_topic(name)?;
        let mut index = self.index.write();
        index.by_name.remove(name);
        index.by_id.remove(&topic.id);
        drop(index);
        tracing::info!(topic = name, id = %topic.id, "topic deleted");
        Ok(())
    }

    /// `CreatePartitions`: makes it so many, or only says whether that could be.
    pub(crate) fn create_partitions(&self, name: &str, count: i32, is_check: bool) -> Result<(), Refusal> {
        let _alone = self.changing.lock();
        let topic = self.by_name(name).ok_or_else(|| unknown(name))?;
        let now = topic.partition_count();
        let refused = |message: String| Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, message));
        if count == now {
            return refused(format!("Topic already has {now} partition(s)."));
        }
        if count < now {
            return refused(format!(
                "The topic {name} currently has {now} partition(s); {count} would not be an increase."
            ));
        }
        if is_check {
            return Ok(());
        }
        let made = self.store.create_partitions(name, count);
        // After an error some may have been made.
        let listed = self.store.topics().into_iter().find(|listed| listed.name == name);
        self.take_partitions(&topic, &listed.map(|listed| listed.partitions).unwrap_or_default())?;
        made?;
        tracing::info!(topic = name, partitions = count, "partitions added");
        Ok(())
    }

    /// All settings of a topic, sorted by name.
    pub(crate) fn describe(&self, topic: &Topic) -> Vec<Shown> {
        config::show(&topic.settings().overrides, &self.settings.values)
    }

    /// `AlterConfigs`: exactly these, the rest go back to their defaults. `is_check`: only says whether that could be.
    pub(crate) fn replace_settings(
        &self,
        name: &str,
        settings: &[(&str, Option<&str>)],
        is_check: bool,
    ) -> Result<(), Refusal> {
        let _alone = self.changing.lock();
        let topic = self.by_name(name).ok_or_else(|| no_such_topic(name))?;
        let after = alter::replaced(settings)?;
        if is_check { Ok(()) } else { self.put(&topic, after) }
    }

    /// `IncrementalAlterConfigs`.
    pub(crate) fn change_settings(
        &self,
        name: &str,
        changes: &[(&str, Change, Option<&str>)],
        is_check: bool,
    ) -> Result<(), Refusal> {
        let _alone = self.changing.lock();
        let topic = self.by_name(name).ok_or_else(|| no_such_topic(name))?;
        let before = &topic.settings().overrides;
        let shown = self.describe(&topic);
        let in_force = |setting: &str| {
            shown.iter().find(|shown| shown.name == setting).and_then(|shown| shown.value.clone())
        };
        let after = alter::changed(before, changes, |setting| in_force(setting).unwrap_or_default())?;
        if is_check { Ok(()) } else { self.put(&topic, after) }
    }

    /// On the disk first, then in force.
    fn put(&self, topic: &Topic, overrides: Overrides) -> Result<(), Refusal> {
        self.store.set_topic_settings(&topic.name, &overrides)?;
        let settings = Arc::new(self.settings_of(overrides));
        *topic.told.settings.write() = Arc::clone(&settings);
        for (number, partition) in topic.partitions() {
            // One that fails now was given them all the same: it opens with them.
            if let Err(error) = partition.log.set_config(settings.log.clone()) {
                tracing::warn!(topic = topic.name, partition = number, %error, "settings hold from the next opening on");
            }
        }
        tracing::info!(topic = topic.name, settings = ?settings.overrides, "settings of a topic changed");
        Ok(())
    }

    /// Stops listing anything: the store is about to be closed.
    pub(crate) fn clear(&self) {
        *self.index.write() = Index::default();
    }
}

impl Partition {
    /// True for the caller that is to tell housekeeping of it.
    pub(crate) fn begin_waiting(&self) -> bool {
        !self.is_listed.swap(true, Ordering::AcqRel)
    }

    /// Housekeeping looks at it now: who appends from now on is to tell it again.
    pub(crate) fn end_waiting(&self) {
        // A swap, so that what the last teller had appended is seen by who looks now.
        self.is_listed.swap(false, Ordering::AcqRel);
    }
}

fn unknown(name: &str) -> Refusal {
    let _ = name;
    Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
}

fn no_such_topic(name: &str) -> Refusal {
    Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("The topic '{name}' does not exist."))
}

fn check_copies(replication_factor: i16) -> Result<(), Refusal> {
    let message = match replication_factor {
        -1 | 1 => return Ok(()),
        few if few <= 0 => {
            "Replication factor must be larger than 0, or -1 to use the default value.".to_owned()
        }
        many => format!(
            "Unable to replicate the partition {many} time(s): The target replication factor of {many} cannot be reached because only 1 broker(s) are registered."
        ),
    };
    Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, message))
}

/// What tools look for in the sentence.
fn in_brokers_words(name: &str, error: Error) -> Refusal {
    let refusal = Refusal::from(error);
    match refusal.code {
        ErrorCode::TOPIC_ALREADY_EXISTS => {
            Refusal { message: format!("Topic '{name}' already exists."), ..refusal }
        }
        _ => refusal,
    }
}

/// What was kept for a topic, as far as it means something to this version.
fn usable(name: &str, told: Overrides) -> Overrides {
    let mut usable = Overrides::new();
    for (setting, value) in told {
        match config::checked([(setting.as_str(), Some(value.as_str()))]) {
            Ok(checked) => usable.extend(checked),
            Err(reason) => {
                tracing::warn!(topic = name, setting, reason, "a setting of the topic is passed over");
            }
        }
    }
    usable
}
