//! `ElectLeaders`: each partition has its leader, the only one that it can have.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::elect_leaders::{
            ElectLeadersRequest, ElectLeadersResponse, PartitionResult, ReplicaElectionResult,
        },
        wire::Reader,
    },
    server::error_code::ErrorCode,
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: ElectLeadersRequest<'_> = read(call, body)?;
    let mut results = Vec::new();
    // Where all are meant, only those are named that were elected.
    for topic in request.topic_partitions.iter().flatten() {
        let result = |partition_id: &i32| {
            let (code, message) = match call.broker.topics.partition(topic.topic, *partition_id) {
                Some(_) => {
                    (ErrorCode::ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
                }
                None => (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "No such topic-partition."),
            };
            PartitionResult {
                partition_id: *partition_id,
                error_code: code.value(),
                error_message: Some(message.into()),
            }
        };
        let partition_result = topic.partitions.iter().map(result).collect();
        results.push(ReplicaElectionResult { topic: topic.topic.into(), partition_result });
    }
    call.reply(&ElectLeadersResponse { replica_election_results: results, ..Default::default() })
}
