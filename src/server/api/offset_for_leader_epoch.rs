//! `OffsetForLeaderEpoch`: where an epoch of a partition ends.

use super::{Call, Fault, Outcome, no_partition, read};
use crate::{
    protocol::{
        messages::offset_for_leader_epoch::{
            EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
            OffsetForLeaderPartition, OffsetForLeaderTopicResult,
        },
        wire::Reader,
    },
    server::partition_offsets::offset_for_epoch,
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: OffsetForLeaderEpochRequest<'_> = read(call, body)?;
    let mut topics = Vec::new();
    for topic in &request.topics {
        let partition = |wanted: &OffsetForLeaderPartition| {
            let partition =
                call.broker.topics.partition(topic.topic, wanted.partition).ok_or_else(no_partition);
            let found = partition.and_then(|partition| {
                offset_for_epoch(&partition, wanted.leader_epoch, wanted.current_leader_epoch)
            });
            let partition = wanted.partition;
            match found {
                Ok((leader_epoch, end_offset)) => {
                    EpochEndOffset { error_code: 0, partition, leader_epoch, end_offset }
                }
                Err(refusal) => {
                    EpochEndOffset { error_code: refusal.code.value(), partition, ..Default::default() }
                }
            }
        };
        topics.push(OffsetForLeaderTopicResult {
            topic: topic.topic.into(),
            partitions: topic.partitions.iter().map(partition).collect(),
        });
    }
    call.reply(&OffsetForLeaderEpochResponse { topics, ..Default::default() })
}
