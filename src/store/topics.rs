//! Topics made and removed.

use std::{collections::BTreeMap, ffi::OsStr};

use super::{
    Store, Uuid, names, removal,
    slots::{Slot, State},
    topic_settings::check_words,
};
use crate::{
    error::{Error, Result},
    inspect::{PARTITION_METADATA, PartitionMetadata},
    sys::{DirLock, LOCK_NAME},
};

/// More than this is no `partition.metadata`.
const METADATA_MAX_BYTES: usize = 64 << 10;

impl Store {
    /// Makes a topic of so many partitions, numbered from 0, and returns its new id. When it returns, the topic survives a
    /// power cut; before that, a crash leaves nothing of it.
    ///
    /// [`Error::InvalidTopic`] for a name that Kafka would not take, one that differs from another topic's in `.` and `_`
    /// alone included; [`Error::TopicExists`]. A broker serves only topics that it has made itself: for one, make the
    /// topic there and keep the `partition.metadata` that it writes.
    pub fn create_topic(&self, topic: &str, partition_count: i32) -> Result<String> {
        self.create_topic_with(topic, partition_count, &BTreeMap::new())
    }

    /// The same for a topic that is told something from its first moment on: [`Store::topic_settings`].
    pub fn create_topic_with(
        &self,
        topic: &str,
        partition_count: i32,
        settings: &BTreeMap<String, String>,
    ) -> Result<String> {
        check_words(settings)?;
        let inner = &self.inner;
        let _alone = inner.changing.lock();
        inner.check_open()?;
        {
            let topics = inner.topics.lock();
            names::check_new_topic(topic, partition_count, topics.keys().map(String::as_str))?;
            if topics.contains_key(topic) {
                return Err(Error::TopicExists { topic: topic.to_owned() });
            }
        }
        let files = &inner.slots.right.files;
        // A line that a broker left of a deleted topic must not be taken for the new one's.
        files.forget(topic);
        files.begin_changes(topic, 0)?;
        files.write()?;
        let config = &inner.config.log;
        let made =
            removal::make_topic(&inner.dir, (topic, partition_count), settings, config).and_then(|id| {
                removal::finish_topic(&inner.dir, topic, partition_count, config.file_mode)?;
                Ok(id)
            });
        // What was changed is the topic, and it is gone or new.
        files.forget(topic);
        let id = made?;
        let slots = (0..partition_count).map(|partition| {
            // Empty, and its files are as a close would leave them.
            files.note_closed(topic, partition);
            (partition, Slot::new(topic, partition))
        });
        inner.topics.lock().insert(topic.to_owned(), slots.collect());
        Ok(id.to_string())
    }

    /// Says whether [`Store::create_topic`] would take this name and number, without making anything.
    pub fn check_new_topic(&self, topic: &str, partition_count: i32) -> Result<()> {
        self.inner.check_open()?;
        let topics = self.inner.topics.lock();
        names::check_new_topic(topic, partition_count, topics.keys().map(String::as_str))?;
        if topics.contains_key(topic) {
            return Err(Error::TopicExists { topic: topic.to_owned() });
        }
        Ok(())
    }

    /// Gives a topic more partitions, so that its numbers go up to below `partition_count`. When it returns, they survive a
    /// power cut; a crash before leaves the first so many of the new ones. They get the topic's id.
    ///
    /// [`Error::InvalidTopic`] where the topic has as many already, or more, or no id that they could get.
    pub fn create_partitions(&self, topic: &str, partition_count: i32) -> Result<()> {
        let inner = &self.inner;
        let _alone = inner.changing.lock();
        inner.check_open()?;
        let found = inner.topics.lock().get(topic).and_then(|slots| slots.keys().next_back().copied());
        let last = found.ok_or_else(|| Error::NotFound { path: inner.dir.path_of(topic) })?;
        let first = last.saturating_add(1);
        let invalid = |reason: String| Error::InvalidTopic { topic: topic.to_owned(), reason };
        if partition_count <= first {
            return Err(invalid(format!("it has {first} partitions, and {partition_count} are not more")));
        }
        names::check_new_topic(topic, partition_count, std::iter::empty())?;
        let id = self.topic_id(topic)?.and_then(|id| Uuid::parse(&id));
        let id = id.ok_or_else(|| invalid("its partition.metadata has no topic id".to_owned()))?;
        let files = &inner.slots.right.files;
        for partition in first..partition_count {
            files.begin_changes(topic, partition)?;
        }
        let (made, result) =
            removal::make_partitions(&inner.dir, topic, (first, partition_count), id, &inner.config.log);
        for partition in first..first.saturating_add(made) {
            files.note_closed(topic, partition);
        }
        if let Some(slots) = inner.topics.lock().get_mut(topic) {
            slots.extend(
                (first..first.saturating_add(made)).map(|partition| (partition, Slot::new(topic, partition))),
            );
        }
        result
    }

    /// Removes a topic with all its records. When it returns, that is durable. Logs of it fail with [`Error::NotFound`]
    /// from now on; a reader that has a file open may go on in it, and gets [`Error::NotFound`] where it needs another.
    ///
    /// [`Error::Locked`] where another process writes to one of its partitions. After another error the topic may be
    /// unusable until it is removed by another call, or until the next open, which finds it whole or removes it.
    pub fn delete_topic(&self, topic: &str) -> Result<()> {
        let inner = &self.inner;
        let _alone = inner.changing.lock();
        inner.check_open()?;
        let found = inner.topics.lock().get(topic).cloned();
        let slots = found.ok_or_else(|| Error::NotFound { path: inner.dir.path_of(topic) })?;
        let partitions: Vec<i32> = slots.keys().copied().collect();
        let first = partitions.first().copied().unwrap_or(0);
        let is_begun = slots.values().any(|slot| matches!(*slot.state.read(), State::Deleted));
        let files = &inner.slots.right.files;
        if !is_begun {
            // Each until the directories have their new names: nobody begins to write in one that is going.
            let mut states: Vec<_> = slots.values().map(|slot| slot.state.write()).collect();
            let mut locks = Vec::new();
            for (slot, state) in slots.values().zip(&states) {
                if matches!(**state, State::Idle) {
                    let dir = inner.dir.subdir(slot.dir_name())?;
                    let lock = DirLock::try_exclusive(&dir);
                    locks.push(lock.map_err(|error| Error::not_locked(dir.path_of(LOCK_NAME), error))?);
                }
            }
            files.begin_changes(topic, first)?;
            let begun = removal::begin_removal(&inner.dir, topic, first, inner.config.log.file_mode);
            // With a mark that may come to be durable nobody can rely on the topic any more.
            if begun.is_ok() || removal::take_mark_away(&inner.dir, topic, first).is_err() {
                for state in &mut states {
                    // Dropping the writer tells its readers that nothing more will come.
                    **state = State::Deleted;
                }
            }
            begun?;
        } else if inner.dir.exists(names::dir_of(topic, first))? {
            // It may have failed at the mark.
            removal::begin_removal(&inner.dir, topic, first, inner.config.log.file_mode)?;
        }
        let removed = removal::remove_names(&inner.dir, topic, &partitions)?;
        files.forget(topic);
        files.write()?;
        inner.topics.lock().remove(topic);
        for name in removed {
            removal::remove_dir(&inner.dir, OsStr::new(&name))?;
        }
        Ok(())
    }

    /// The topic's id, as its lowest partition's `partition.metadata` has it; `None` where that is missing or makes no
    /// sense.
    pub fn topic_id(&self, topic: &str) -> Result<Option<String>> {
        let inner = &self.inner;
        inner.check_open()?;
        let first = inner.topics.lock().get(topic).and_then(|slots| slots.keys().next().copied());
        let first = first.ok_or_else(|| Error::NotFound { path: inner.dir.path_of(topic) })?;
        let dir = inner.dir.subdir(names::dir_of(topic, first))?;
        let text = dir.read_small(PARTITION_METADATA, METADATA_MAX_BYTES)?;
        Ok(text.and_then(|text| PartitionMetadata::parse(&text).ok()).map(|metadata| metadata.topic_id))
    }
}
