//! `DescribeTopicPartitions`: topics in the order of their names, so many partitions at a time.

use super::{Call, Fault, Outcome, metadata::epoch, read};
use crate::{
    protocol::{
        messages::describe_topic_partitions::{
            DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
            DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic, ResponseCursor,
        },
        wire::{Reader, Uuid},
    },
    server::error_code::ErrorCode,
};

/// Partitions in an answer, at most.
const MOST: usize = 2000;

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DescribeTopicPartitionsRequest<'_> = read(call, body)?;
    let broker = call.broker;
    let mut names: Vec<String> = request.topics.iter().map(|topic| topic.name.to_owned()).collect();
    if names.is_empty() {
        names = broker.topics.all().iter().map(|topic| topic.name().to_owned()).collect();
    }
    names.sort_unstable();
    names.dedup();
    let (from_name, from_partition) =
        request.cursor.as_ref().map_or(("", 0), |cursor| (cursor.topic_name, cursor.partition_index));
    let mut left = usize::try_from(request.response_partition_limit).unwrap_or(0).clamp(1, MOST);
    let node = broker.node_id();
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names.into_iter().filter(|name| name.as_str() >= from_name) {
        let first = if name == from_name { from_partition } else { 0 };
        let Some(topic) = broker.topics.by_name(&name) else {
            response.topics.push(DescribeTopicPartitionsResponseTopic {
                error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.value(),
                name: Some(name.into()),
                ..Default::default()
            });
            continue;
        };
        let mut partitions = Vec::new();
        for (partition_index, partition) in topic.partitions() {
            if partition_index < first {
                continue;
            }
            if left == 0 {
                response.next_cursor =
                    Some(ResponseCursor { topic_name: name.clone().into(), partition_index });
                break;
            }
            left -= 1;
            partitions.push(DescribeTopicPartitionsResponsePartition {
                error_code: ErrorCode::NONE.value(),
                partition_index,
                leader_id: node,
                leader_epoch: epoch(&partition),
                replica_nodes: vec![node],
                isr_nodes: vec![node],
                eligible_leader_replicas: Some(Vec::new()),
                last_known_elr: Some(Vec::new()),
                offline_replicas: Vec::new(),
            });
        }
        let is_cut = response.next_cursor.is_some();
        if !(is_cut && partitions.is_empty()) {
            response.topics.push(DescribeTopicPartitionsResponseTopic {
                error_code: ErrorCode::NONE.value(),
                name: Some(name.into()),
                topic_id: Uuid(topic.id().bytes()),
                is_internal: topic.is_internal(),
                partitions,
                ..Default::default()
            });
        }
        if is_cut {
            break;
        }
    }
    call.reply(&response)
}
