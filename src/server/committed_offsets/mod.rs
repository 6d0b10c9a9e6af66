//! Offsets that consumers have committed: kept in memory, and in the topic `__consumer_offsets` as a broker keeps them.
//!
//! Lives here: the topic and which of its partitions a group has, its records, committing, looking up, forgetting, reading it
//! all at the start; writing groups' own records beside them.
//! Not here: members of groups and who may commit (groups), requests and answers (protocol).
//! Holds always: what is in memory is in the log, in the same order; a commit is answered when the log's topic says that it
//! is safe.

mod compaction;
mod group_record;
mod load;
mod record;
mod rest;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};

pub(crate) use compaction::MIN_RECORDS;
pub(crate) use group_record::{KeptGroup, KeptMember};

use super::{
    error_code::{ErrorCode, Refusal},
    topics::{NewTopic, Partition, Topic, Topics},
};
use crate::{AppendOptions, Pending, Timestamp, record::Record};

/// The topic.
pub(crate) const CONSUMER_OFFSETS: &str = "__consumer_offsets";
/// Bytes of records in one batch at most, about.
const BATCH_BYTES: usize = 256 << 10;

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) offset: i64,
    /// Of the last record that was read; -1 where it was not told.
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: String,
    /// When, in milliseconds.
    pub(crate) commit_ms: i64,
    /// Where in the log; of two commits the later one counts.
    log_offset: i64,
}

/// An offset to be committed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    /// -1: not told.
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: &'a str,
}

/// A topic's partition.
type Place = (String, i32);
type Offsets = BTreeMap<Place, Committed>;

/// All committed offsets.
#[derive(Debug)]
pub(crate) struct CommittedOffsets {
    topics: Arc<Topics>,
    groups: RwLock<HashMap<String, Offsets>>,
    /// Groups with members as they were read at the start, until they are taken.
    read: Mutex<HashMap<String, KeptGroup>>,
    /// Keys of what a broker has kept of groups of the newer protocol. They go when the group becomes one of the classic
    /// protocol: no broker reads both.
    newer: Mutex<HashMap<String, BTreeSet<Vec<u8>>>>,
    /// Of the partitions that have records.
    gates: RwLock<HashMap<i32, Arc<compaction::Gate>>>,
}

/// When a group's offsets become too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aging {
    /// From each commit on.
    SinceCommit,
    /// From a time on that is later than each commit, in milliseconds: the group has had no members since.
    Since(i64),
    /// Not while it is as it is.
    Never,
}

impl CommittedOffsets {
    /// The topic, made where there is none yet.
    pub(crate) fn topic(&self) -> Result<Arc<Topic>, Refusal> {
        if let Some(topic) = self.topics.by_name(CONSUMER_OFFSETS) {
            return Ok(topic);
        }
        let settings = self.topics.server_settings();
        let segment_bytes = settings.offsets_segment_bytes.max(1 << 20).to_string();
        self.topics.ensure(&NewTopic {
            name: CONSUMER_OFFSETS,
            partition_count: settings.offsets_partitions,
            replication_factor: 1,
            settings: vec![
                ("cleanup.policy", Some("compact")),
                ("compression.type", Some("producer")),
                ("segment.bytes", Some(&segment_bytes)),
            ],
        })
    }

    fn partition_of(&self, group: &str) -> Result<(Arc<Partition>, Arc<compaction::Gate>), Refusal> {
        let topic = self.topic()?;
        let number = partition_of(group, topic.partition_count());
        let missing = || {
            let message = format!("partition {number} of {CONSUMER_OFFSETS} is not here");
            Refusal::new(ErrorCode::COORDINATOR_NOT_AVAILABLE, message)
        };
        Ok((topic.partition(number).ok_or_else(missing)?, self.gate(number)))
    }

    /// Says whether a note beside an offset may be so long.
    pub(crate) fn takes_metadata(&self, metadata: &str) -> bool {
        let most = self.topics.server_settings().offset_metadata_max_bytes;
        metadata.len() <= most.min(record::MAX_TEXT_BYTES)
    }

    /// Commits offsets of a group, as of `now`. They are there for who asks at once; they are safe when the returned
    /// [`Pending`] is done, which is `None` where nothing was to be written. After an error some may have been written.
    pub(crate) fn commit(
        &self,
        group: &str,
        commits: &[Commit<'_>],
        now: Timestamp,
    ) -> Result<Option<Pending>, Refusal> {
        check_text("a group's name", group)?;
        let mut entries = Vec::with_capacity(commits.len());
        for commit in commits {
            check_text("a topic's name", commit.topic)?;
            check_text("a note beside an offset", commit.metadata)?;
            let committed = Committed {
                offset: commit.offset,
                leader_epoch: commit.leader_epoch,
                metadata: commit.metadata.to_owned(),
                commit_ms: now.millis(),
                log_offset: -1,
            };
            entries.push(((commit.topic.to_owned(), commit.partition), Some(committed)));
        }
        self.write(group, &entries, now)
    }

    /// Forgets offsets of a group, those of `places` that it has. Safe as with [`CommittedOffsets::commit`].
    pub(crate) fn forget(
        &self,
        group: &str,
        places: &[(&str, i32)],
        now: Timestamp,
    ) -> Result<Option<Pending>, Refusal> {
        let known =
            |place: &Place| self.groups.read().get(group).is_some_and(|known| known.contains_key(place));
        let places = places.iter().map(|(topic, partition)| ((*topic).to_owned(), *partition));
        let entries: Vec<_> = places.filter(known).map(|place| (place, None)).collect();
        self.write(group, &entries, now)
    }

    /// Forgets all offsets of a group.
    pub(crate) fn forget_group(&self, group: &str, now: Timestamp) -> Result<Option<Pending>, Refusal> {
        let places: Vec<_> =
            self.all_of(group).into_iter().map(|(topic, partition, _)| (topic, partition)).collect();
        let entries: Vec<_> = places.into_iter().map(|place| (place, None)).collect();
        self.write(group, &entries, now)
    }

    /// Forgets every group's offsets in a topic: it was deleted, and another one of its name is another topic.
    pub(crate) fn forget_topic(&self, topic: &str, now: Timestamp) -> Result<(), Refusal> {
        let mut going = Vec::new();
        for (group, offsets) in &*self.groups.read() {
            let over = offsets.keys().filter(|(name, _)| name == topic);
            let entries: Vec<_> = over.map(|place| (place.clone(), None)).collect();
            if !entries.is_empty() {
                going.push((group.clone(), entries));
            }
        }
        for (group, entries) in going {
            self.write(&group, &entries, now)?;
        }
        Ok(())
    }

    /// Forgets what a group committed before `oldest_ms` and has aged; `aging` says from when on an offset in a topic does.
    /// Nothing may be committed for the group meanwhile.
    pub(crate) fn expire(
        &self,
        group: &str,
        oldest_ms: i64,
        now: Timestamp,
        aging: impl Fn(&str) -> Aging,
    ) -> Result<(), Refusal> {
        let is_over = |topic: &str| match aging(topic) {
            Aging::SinceCommit => true,
            Aging::Since(since_ms) => since_ms < oldest_ms,
            Aging::Never => false,
        };
        let mut entries = Vec::new();
        for ((topic, partition), committed) in self.groups.read().get(group).into_iter().flatten() {
            if committed.commit_ms < oldest_ms && is_over(topic) {
                entries.push(((topic.clone(), *partition), None));
            }
        }
        self.write(group, &entries, now).map(drop)
    }

    /// The groups that have something committed before `oldest_ms`.
    pub(crate) fn with_old(&self, oldest_ms: i64) -> Vec<String> {
        let groups = self.groups.read();
        let is_old = |offsets: &Offsets| offsets.values().any(|committed| committed.commit_ms < oldest_ms);
        groups.iter().filter(|(_, offsets)| is_old(offsets)).map(|(id, _)| id.clone()).collect()
    }

    /// What was committed before is too old at `now`, in milliseconds.
    pub(crate) fn oldest_ms(&self, now: Timestamp) -> i64 {
        let keep = self.topics.server_settings().offsets_retention.as_millis();
        now.millis().saturating_sub(i64::try_from(keep).unwrap_or(i64::MAX))
    }

    /// Keeps a group as it is now, or (`None`) no more. Safe when the returned [`Pending`] is done.
    pub(crate) fn keep_group(
        &self,
        group: &str,
        kept: Option<&KeptGroup>,
        now: Timestamp,
    ) -> Result<Pending, Refusal> {
        check_text("a group's name", group)?;
        let newer = self.newer.lock().get(group).cloned().unwrap_or_default();
        let key = record::encode_group_key(group);
        let value = kept.map(group_record::encode);
        let own = Record::tombstone(&key).timestamp(now);
        let own = value.as_ref().map_or(own, |value| own.value(value));
        let mut records: Vec<_> =
            newer.iter().rev().map(|key| Record::tombstone(key).timestamp(now)).collect();
        records.push(own);
        let (partition, gate) = self.partition_of(group)?;
        let _appends = gate.lock.read();
        let pending = partition.log().append_records_deferred(&records, AppendOptions::default())?;
        gate.note(records.len());
        if !newer.is_empty() {
            self.newer.lock().remove(group);
        }
        Ok(pending)
    }

    /// The groups that were read at the start; once.
    pub(crate) fn take_groups(&self) -> HashMap<String, KeptGroup> {
        std::mem::take(&mut *self.read.lock())
    }

    /// True where something of the newer protocol is kept of a group.
    #[cfg(test)]
    pub(crate) fn has_newer(&self, group: &str) -> bool {
        self.newer.lock().contains_key(group)
    }

    /// True where the group has committed something.
    pub(crate) fn has_any(&self, group: &str) -> bool {
        self.groups.read().contains_key(group)
    }

    /// Writes commits and (`None`) tombstones to the group's partition, and keeps them in mind.
    fn write(
        &self,
        group: &str,
        entries: &[(Place, Option<Committed>)],
        now: Timestamp,
    ) -> Result<Option<Pending>, Refusal> {
        if entries.is_empty() {
            return Ok(None);
        }
        let (partition, gate) = self.partition_of(group)?;
        let encoded: Vec<_> = entries
            .iter()
            .map(|((topic, number), committed)| {
                (record::encode_key(group, topic, *number), committed.as_ref().map(record::encode_value))
            })
            .collect();
        let _appends = gate.lock.read();
        let (pending, result) = append(&partition, &encoded, now, |written, count, base_offset| {
            self.keep(group, entries.iter().skip(written).take(count), base_offset);
            gate.note(count);
        });
        result?;
        Ok(pending)
    }

    fn keep<'a>(
        &self,
        group: &str,
        entries: impl Iterator<Item = &'a (Place, Option<Committed>)>,
        base_offset: i64,
    ) {
        let mut groups = self.groups.write();
        let offsets = groups.entry(group.to_owned()).or_default();
        for ((place, committed), log_offset) in entries.zip(base_offset..) {
            // Another commit may have been written after this one and been faster here.
            if offsets.get(place).is_some_and(|known| known.log_offset > log_offset) {
                continue;
            }
            match committed {
                Some(committed) => {
                    offsets.insert(place.clone(), Committed { log_offset, ..committed.clone() });
                }
                None => {
                    offsets.remove(place);
                }
            }
        }
        if offsets.is_empty() {
            groups.remove(group);
        }
    }

    /// What a group has committed in a partition.
    pub(crate) fn of(&self, group: &str, topic: &str, partition: i32) -> Option<Committed> {
        self.groups.read().get(group)?.get(&(topic.to_owned(), partition)).cloned()
    }

    /// All that it has committed: topic, partition, offset; sorted.
    pub(crate) fn all_of(&self, group: &str) -> Vec<(String, i32, Committed)> {
        let groups = self.groups.read();
        let offsets = groups.get(group).into_iter().flatten();
        offsets
            .map(|((topic, partition), committed)| (topic.clone(), *partition, committed.clone()))
            .collect()
    }

    /// The groups that have committed something, sorted.
    pub(crate) fn groups(&self) -> Vec<String> {
        let mut groups: Vec<_> = self.groups.read().keys().cloned().collect();
        groups.sort_unstable();
        groups
    }
}

/// Appends records, in as many batches as it takes; `done` is told of each: how many were before it, how many are in it, and
/// where it begins. What was appended stands also after an error.
fn append(
    partition: &Partition,
    encoded: &[(Vec<u8>, Option<Vec<u8>>)],
    now: Timestamp,
    mut done: impl FnMut(usize, usize, i64),
) -> (Option<Pending>, Result<(), Refusal>) {
    let largest = usize::try_from(partition.settings().max_message_bytes).unwrap_or(usize::MAX);
    let batch_bytes = largest.saturating_sub(100).min(BATCH_BYTES);
    let mut pending = None;
    let mut written = 0;
    while written < encoded.len() {
        let rest = encoded.get(written..).unwrap_or_default();
        let mut bytes = 0_usize;
        let fits = |(key, value): &&(Vec<u8>, Option<Vec<u8>>)| {
            bytes = bytes.saturating_add(key.len() + value.as_ref().map_or(0, Vec::len) + 32);
            bytes <= batch_bytes
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let records: Vec<_> = rest
            .iter()
            .take(count)
            .map(|(key, value)| {
                let record = Record::tombstone(key).timestamp(now);
                value.as_ref().map_or(record, |value| record.value(value))
            })
            .collect();
        match partition.log().append_records_deferred(&records, AppendOptions::default()) {
            Ok(appended) => {
                done(written, count, appended.base_offset().value());
                written += count;
                // The last one is durable only after those before it.
                pending = Some(appended);
            }
            Err(error) => return (pending, Err(error.into())),
        }
    }
    (pending, Ok(()))
}

fn check_text(what: &str, text: &str) -> Result<(), Refusal> {
    if text.len() <= record::MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(Refusal::new(ErrorCode::INVALID_REQUEST, format!("{what} of {} bytes is too long", text.len())))
}

/// The partition that a group's records go to: Java's hash of its name.
fn partition_of(group: &str, partition_count: i32) -> i32 {
    let hash = group.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    (hash & i32::MAX).checked_rem(partition_count).unwrap_or(0)
}
