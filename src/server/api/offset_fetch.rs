//! `OffsetFetch`: what groups have committed.

use super::{Call, Fault, Outcome, find_topic, read};
use crate::{
    protocol::{
        messages::offset_fetch::{
            OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
            OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
        },
        wire::{Reader, Uuid},
    },
    server::{committed_offsets::Committed, error_code::ErrorCode},
};

/// What a group has committed in a topic; for a topic that is not there the code that says so.
struct Found {
    name: String,
    id: Uuid,
    code: ErrorCode,
    partitions: Vec<(i32, Option<Committed>)>,
}

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: OffsetFetchRequest<'_> = read(call, body)?;
    let mut response = OffsetFetchResponse::default();
    if call.version() <= 7 {
        let wanted = request.topics.as_ref().map(|topics| {
            topics.iter().map(|topic| (topic.name, Uuid::ZERO, topic.partition_indexes.as_slice())).collect()
        });
        response.topics = found(call, request.group_id, wanted).into_iter().map(old_topic).collect();
    }
    for group in &request.groups {
        let wanted = group.topics.as_ref().map(|topics| {
            topics
                .iter()
                .map(|topic| (topic.name, topic.topic_id, topic.partition_indexes.as_slice()))
                .collect()
        });
        response.groups.push(OffsetFetchResponseGroup {
            group_id: group.group_id.into(),
            topics: found(call, group.group_id, wanted).into_iter().map(new_topic).collect(),
            error_code: ErrorCode::NONE.value(),
        });
    }
    call.reply(&response)
}

/// Of the topics and partitions that are wanted, or of all that the group has committed anything for.
fn found(call: &Call<'_>, group: &str, wanted: Option<Vec<(&str, Uuid, &[i32])>>) -> Vec<Found> {
    let broker = call.broker;
    let mut all: Vec<Found> = Vec::new();
    let Some(wanted) = wanted else {
        for (name, partition, committed) in broker.offsets.all_of(group) {
            if all.last().is_none_or(|last| last.name != name) {
                let id = broker.topics.by_name(&name).map_or(Uuid::ZERO, |topic| Uuid(topic.id().bytes()));
                all.push(Found { name, id, code: ErrorCode::NONE, partitions: Vec::new() });
            }
            if let Some(last) = all.last_mut() {
                last.partitions.push((partition, Some(committed)));
            }
        }
        return all;
    };
    for (name, id, partitions) in wanted {
        // What was committed for a topic stands, named by its name, also where the topic is not there.
        let (name, code) = if id.is_zero() {
            (name.to_owned(), ErrorCode::NONE)
        } else {
            match find_topic(&broker.topics, name, id) {
                Ok(topic) => (topic.name().to_owned(), ErrorCode::NONE),
                Err(code) => (name.to_owned(), code),
            }
        };
        let partitions =
            partitions.iter().map(|number| (*number, broker.offsets.of(group, &name, *number))).collect();
        all.push(Found { name, id, code, partitions });
    }
    all
}

fn old_topic<'a>(found: Found) -> OffsetFetchResponseTopic<'a> {
    let partition = |(partition_index, committed): (i32, Option<Committed>)| {
        let (committed_offset, committed_leader_epoch, metadata) = numbers(committed);
        OffsetFetchResponsePartition {
            partition_index,
            committed_offset,
            committed_leader_epoch,
            metadata: Some(metadata.into()),
            error_code: found.code.value(),
        }
    };
    OffsetFetchResponseTopic {
        name: found.name.into(),
        partitions: found.partitions.into_iter().map(partition).collect(),
    }
}

fn new_topic<'a>(found: Found) -> OffsetFetchResponseTopics<'a> {
    let partition = |(partition_index, committed): (i32, Option<Committed>)| {
        let (committed_offset, committed_leader_epoch, metadata) = numbers(committed);
        OffsetFetchResponsePartitions {
            partition_index,
            committed_offset,
            committed_leader_epoch,
            metadata: Some(metadata.into()),
            error_code: found.code.value(),
        }
    };
    OffsetFetchResponseTopics {
        name: found.name.into(),
        topic_id: found.id,
        partitions: found.partitions.into_iter().map(partition).collect(),
    }
}

fn numbers(committed: Option<Committed>) -> (i64, i32, String) {
    committed.map_or((-1, -1, String::new()), |found| (found.offset, found.leader_epoch, found.metadata))
}
