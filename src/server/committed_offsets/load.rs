//! Reading `__consumer_offsets` at the start.

use std::{collections::HashMap, sync::Arc};

use super::{
    CONSUMER_OFFSETS, Committed, CommittedOffsets, KeptGroup, group_record,
    record::{self, Key},
};
use crate::{
    Follow, Isolation, Result,
    server::topics::{Partition, Topics},
};

impl CommittedOffsets {
    /// Reads what was committed before, and the groups. What cannot be read is passed over, with a line in the log.
    pub(crate) fn load(topics: Arc<Topics>) -> Result<Self> {
        let offsets = Self {
            topics,
            groups: parking_lot::RwLock::default(),
            read: parking_lot::Mutex::default(),
            newer: parking_lot::Mutex::default(),
            gates: parking_lot::RwLock::default(),
        };
        let Some(topic) = offsets.topics.by_name(CONSUMER_OFFSETS) else { return Ok(offsets) };
        for (number, partition) in topic.partitions() {
            // Most have never been written to: not worth opening.
            if partition.log().size_bytes()? == 0 {
                continue;
            }
            if let Err(error) = offsets.load_partition(number, &partition) {
                tracing::error!(partition = number, %error, "committed offsets of a partition cannot be read to its end");
            }
            partition.log().rest_if_unused()?;
        }
        offsets.count_live(topic.partition_count());
        let (group_count, member_groups) = (offsets.groups.read().len(), offsets.read.lock().len());
        tracing::info!(with_offsets = group_count, kept = member_groups, "groups read");
        Ok(offsets)
    }

    fn load_partition(&self, number: i32, partition: &Partition) -> Result<()> {
        let gate = self.gate(number);
        let reader = partition.reader()?;
        let mut options = reader.options();
        options.follow = Follow::Written;
        // Offsets in a transaction count once it is committed.
        options.isolation = Isolation::Committed;
        let reader = reader.with_options(options);
        let mut records = reader.records(reader.start());
        let mut malformed_count = 0_u64;
        while let Some(found) = records.next_record()? {
            let is_read = match found.key().map(record::decode_key) {
                Some(Ok(Key::Offset { group, topic, partition })) => {
                    self.take_offset(group, (topic, partition), found.value(), found.offset().value())
                }
                Some(Ok(Key::Group(group))) => take_group(&mut self.read.lock(), group, found.value()),
                Some(Ok(Key::NewerGroup(group))) => {
                    self.take_newer(group, found.key().unwrap_or_default(), found.value().is_some());
                    true
                }
                Some(Ok(Key::Other)) => true,
                Some(Err(_)) | None => false,
            };
            malformed_count += u64::from(!is_read);
            gate.note(1);
        }
        if malformed_count > 0 {
            tracing::warn!(log = %reader.path().display(), count = malformed_count, "records that are neither offsets nor groups are passed over");
        }
        Ok(())
    }

    /// False where the value cannot be read.
    fn take_offset(&self, group: String, place: super::Place, value: Option<&[u8]>, log_offset: i64) -> bool {
        let mut groups = self.groups.write();
        match value.map(record::decode_value) {
            Some(Ok(committed)) => {
                groups.entry(group).or_default().insert(place, Committed { log_offset, ..committed });
                true
            }
            Some(Err(_)) => false,
            None => {
                if let Some(offsets) = groups.get_mut(&group) {
                    offsets.remove(&place);
                    if offsets.is_empty() {
                        groups.remove(&group);
                    }
                }
                true
            }
        }
    }

    fn take_newer(&self, group: String, key: &[u8], has_value: bool) {
        let mut newer = self.newer.lock();
        if has_value {
            newer.entry(group).or_default().insert(key.to_vec());
        } else if let Some(keys) = newer.get_mut(&group) {
            keys.remove(key);
            if keys.is_empty() {
                newer.remove(&group);
            }
        }
    }
}

fn take_group(read: &mut HashMap<String, KeptGroup>, group: String, value: Option<&[u8]>) -> bool {
    match value.map(group_record::decode) {
        Some(Ok(kept)) => {
            read.insert(group, kept);
            true
        }
        Some(Err(_)) => false,
        None => {
            read.remove(&group);
            true
        }
    }
}
