//! Tells of topics page by page.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `DescribeTopicPartitions`.
    pub struct DescribeTopicPartitionsRequest<'a> {
        topics: Vec<TopicRequest<'a>>, 0..;
        response_partition_limit: i32 = 2000, 0..;
        cursor: Option<RequestCursor<'a>>, 0..;
    }

    /// In [`DescribeTopicPartitionsRequest`]: `topics`.
    pub struct TopicRequest<'a> {
        name: &'a str, 0..;
    }

    /// In [`DescribeTopicPartitionsRequest`]: `cursor`.
    pub struct RequestCursor<'a> {
        topic_name: &'a str, 0..;
        partition_index: i32, 0..;
    }

    /// Response of `DescribeTopicPartitions`.
    pub struct DescribeTopicPartitionsResponse<'a> {
        throttle_time_ms: i32, 0..;
        topics: Vec<DescribeTopicPartitionsResponseTopic<'a>>, 0..;
        next_cursor: Option<ResponseCursor<'a>>, 0..;
    }

    /// In [`DescribeTopicPartitionsResponse`]: `topics`.
    pub struct DescribeTopicPartitionsResponseTopic<'a> {
        error_code: i16, 0..;
        name: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        topic_id: Uuid, 0..;
        is_internal: bool, 0..;
        partitions: Vec<DescribeTopicPartitionsResponsePartition>, 0..;
        topic_authorized_operations: i32 = i32::MIN, 0..;
    }

    /// In [`DescribeTopicPartitionsResponseTopic`]: `partitions`.
    pub struct DescribeTopicPartitionsResponsePartition {
        error_code: i16, 0..;
        partition_index: i32, 0..;
        leader_id: i32, 0..;
        leader_epoch: i32 = -1, 0..;
        replica_nodes: Vec<i32>, 0..;
        isr_nodes: Vec<i32>, 0..;
        eligible_leader_replicas: Option<Vec<i32>>, 0..;
        last_known_elr: Option<Vec<i32>>, 0..;
        offline_replicas: Vec<i32>, 0..;
    }

    /// In [`DescribeTopicPartitionsResponse`]: `next_cursor`.
    pub struct ResponseCursor<'a> {
        topic_name: Cow<'a, str>, 0..;
        partition_index: i32, 0..;
    }
}

api!(DescribeTopicPartitions: DescribeTopicPartitionsRequest<'a> => DescribeTopicPartitionsResponse<'r>);
