//! `ListOffsets`: where partitions begin and end, and what was at a time.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::list_offsets::{
            ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
            ListOffsetsTopicResponse,
        },
        wire::Reader,
    },
    server::{
        error_code::{ErrorCode, Refusal},
        partition_offsets::{ListedOffset, Wanted, list_offset},
    },
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: ListOffsetsRequest<'_> = read(call, body)?;
    let is_committed = request.isolation_level == 1;
    let mut topics = Vec::new();
    for topic in &request.topics {
        let partition = |wanted: &ListOffsetsPartition| {
            let index = wanted.partition_index;
            match look(call, topic.name, wanted, is_committed) {
                Ok(found) => ListOffsetsPartitionResponse {
                    partition_index: index,
                    timestamp: found.timestamp_ms,
                    offset: found.offset,
                    leader_epoch: found.leader_epoch,
                    ..Default::default()
                },
                Err(refusal) => {
                    tracing::debug!(topic = topic.name, partition = index, %refusal, "offsets are not listed");
                    ListOffsetsPartitionResponse {
                        partition_index: index,
                        error_code: refusal.code.value(),
                        ..Default::default()
                    }
                }
            }
        };
        topics.push(ListOffsetsTopicResponse {
            name: topic.name.into(),
            partitions: topic.partitions.iter().map(partition).collect(),
        });
    }
    call.reply(&ListOffsetsResponse { topics, ..Default::default() })
}

fn look(
    call: &Call<'_>,
    topic: &str,
    wanted: &ListOffsetsPartition,
    is_committed: bool,
) -> Result<ListedOffset, Refusal> {
    let partition = call.broker.topics.partition(topic, wanted.partition_index);
    let partition = partition
        .ok_or_else(|| Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "no such topic or partition"))?;
    let asked = Wanted::of_wire(wanted.timestamp, call.version()).ok_or_else(|| {
        Refusal::new(ErrorCode::UNSUPPORTED_VERSION, "this version does not know that time")
    })?;
    list_offset(&partition, asked, is_committed, wanted.current_leader_epoch)
}
