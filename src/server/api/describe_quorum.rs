//! `DescribeQuorum`: this node, which agrees with itself.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::describe_quorum::{
            DescribeQuorumRequest, DescribeQuorumResponse, Listener, Node, ReplicaState,
            RequestPartitionData, ResponsePartitionData, ResponseTopicData,
        },
        wire::{Reader, Uuid},
    },
    server::error_code::ErrorCode,
};

/// The log that the quorum of a cluster shares. There is none here: it is told as one with nothing in it.
const METADATA: &str = "__cluster_metadata";

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DescribeQuorumRequest<'_> = read(call, body)?;
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let partitions =
            topic.partitions.iter().map(|wanted| partition(call, topic.topic_name, wanted)).collect();
        topics.push(ResponseTopicData { topic_name: topic.topic_name.into(), partitions });
    }
    let listener = Listener {
        name: "CONTROLLER".into(),
        host: call.advertised.host.as_str().into(),
        port: call.advertised.port,
    };
    let nodes = vec![Node { node_id: call.broker.node_id(), listeners: vec![listener] }];
    call.reply(&DescribeQuorumResponse { error_message: None, topics, nodes, ..Default::default() })
}

fn partition<'a>(call: &Call<'_>, topic: &str, wanted: &RequestPartitionData) -> ResponsePartitionData<'a> {
    let partition_index = wanted.partition_index;
    let none = ResponsePartitionData { partition_index, error_message: None, ..Default::default() };
    if topic != METADATA || partition_index != 0 {
        let error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.value();
        return ResponsePartitionData { error_code, ..none };
    }
    let now = call.broker.now().millis();
    let this = ReplicaState {
        replica_id: call.broker.node_id(),
        replica_directory_id: Uuid::ZERO,
        log_end_offset: 0,
        last_fetch_timestamp: now,
        last_caught_up_timestamp: now,
    };
    ResponsePartitionData {
        leader_id: call.broker.node_id(),
        leader_epoch: 1,
        high_watermark: 0,
        current_voters: vec![this],
        ..none
    }
}
