//! Appends record batches.

use std::borrow::Cow;

use crate::protocol::wire::{Records, Uuid};

message! {
    /// Request of `Produce`.
    pub struct ProduceRequest<'a> {
        transactional_id: Option<&'a str>, 3..;
        acks: i16, 0..;
        timeout_ms: i32, 0..;
        topic_data: Vec<TopicProduceData<'a>>, 0..;
    }

    /// In [`ProduceRequest`]: `topic_data`.
    pub struct TopicProduceData<'a> {
        name: &'a str, 0..=12;
        topic_id: Uuid, 13..;
        partition_data: Vec<PartitionProduceData<'a>>, 0..;
    }

    /// In [`TopicProduceData`]: `partition_data`.
    pub struct PartitionProduceData<'a> {
        index: i32, 0..;
        records: Option<Records<'a>>, 0..;
    }

    /// Response of `Produce`.
    pub struct ProduceResponse<'a> {
        responses: Vec<TopicProduceResponse<'a>>, 0..;
        throttle_time_ms: i32, 1..;
        node_endpoints: Vec<NodeEndpoint<'a>>, 10.., tag 0;
    }

    /// In [`ProduceResponse`]: `responses`.
    pub struct TopicProduceResponse<'a> {
        name: Cow<'a, str>, 0..=12;
        topic_id: Uuid, 13..;
        partition_responses: Vec<PartitionProduceResponse<'a>>, 0..;
    }

    /// In [`TopicProduceResponse`]: `partition_responses`.
    pub struct PartitionProduceResponse<'a> {
        index: i32, 0..;
        error_code: i16, 0..;
        base_offset: i64, 0..;
        log_append_time_ms: i64 = -1, 2..;
        log_start_offset: i64 = -1, 5..;
        record_errors: Vec<BatchIndexAndErrorMessage<'a>>, 8..;
        error_message: Option<Cow<'a, str>>, 8..;
        current_leader: LeaderIdAndEpoch, 10.., tag 0;
    }

    /// In [`PartitionProduceResponse`]: `record_errors`.
    pub struct BatchIndexAndErrorMessage<'a> {
        batch_index: i32, 8..;
        batch_index_error_message: Option<Cow<'a, str>>, 8..;
    }

    /// In [`PartitionProduceResponse`]: `current_leader`.
    pub struct LeaderIdAndEpoch {
        leader_id: i32 = -1, 10..;
        leader_epoch: i32 = -1, 10..;
    }

    /// In [`ProduceResponse`]: `node_endpoints`.
    pub struct NodeEndpoint<'a> {
        node_id: i32, 10..;
        host: Cow<'a, str>, 10..;
        port: i32, 10..;
        rack: Option<Cow<'a, str>>, 10..;
    }
}

api!(Produce: ProduceRequest<'a> => ProduceResponse<'r>);
