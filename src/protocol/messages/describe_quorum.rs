//! Tells of the metadata quorum.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `DescribeQuorum`.
    pub struct DescribeQuorumRequest<'a> {
        topics: Vec<RequestTopicData<'a>>, 0..;
    }

    /// In [`DescribeQuorumRequest`]: `topics`.
    pub struct RequestTopicData<'a> {
        topic_name: &'a str, 0..;
        partitions: Vec<RequestPartitionData>, 0..;
    }

    /// In [`RequestTopicData`]: `partitions`.
    pub struct RequestPartitionData {
        partition_index: i32, 0..;
    }

    /// Response of `DescribeQuorum`.
    pub struct DescribeQuorumResponse<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 2..;
        topics: Vec<ResponseTopicData<'a>>, 0..;
        nodes: Vec<Node<'a>>, 2..;
    }

    /// In [`DescribeQuorumResponse`]: `topics`.
    pub struct ResponseTopicData<'a> {
        topic_name: Cow<'a, str>, 0..;
        partitions: Vec<ResponsePartitionData<'a>>, 0..;
    }

    /// In [`ResponseTopicData`]: `partitions`.
    pub struct ResponsePartitionData<'a> {
        partition_index: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 2..;
        leader_id: i32, 0..;
        leader_epoch: i32, 0..;
        high_watermark: i64, 0..;
        current_voters: Vec<ReplicaState>, 0..;
        observers: Vec<ReplicaState>, 0..;
    }

    /// In [`ResponsePartitionData`]: `current_voters`.
    pub struct ReplicaState {
        replica_id: i32, 0..;
        replica_directory_id: Uuid, 2..;
        log_end_offset: i64, 0..;
        last_fetch_timestamp: i64 = -1, 1..;
        last_caught_up_timestamp: i64 = -1, 1..;
    }

    /// In [`DescribeQuorumResponse`]: `nodes`.
    pub struct Node<'a> {
        node_id: i32, 2..;
        listeners: Vec<Listener<'a>>, 2..;
    }

    /// In [`Node`]: `listeners`.
    pub struct Listener<'a> {
        name: Cow<'a, str>, 2..;
        host: Cow<'a, str>, 2..;
        port: u16, 2..;
    }
}

api!(DescribeQuorum: DescribeQuorumRequest<'a> => DescribeQuorumResponse<'r>);
