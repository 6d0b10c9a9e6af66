//! Finds offsets by time: of the first, the last, or a record at or after a timestamp.

use std::borrow::Cow;

message! {
    /// Request of `ListOffsets`.
    pub struct ListOffsetsRequest<'a> {
        replica_id: i32, 0..;
        isolation_level: i8, 2..;
        topics: Vec<ListOffsetsTopic<'a>>, 0..;
        timeout_ms: i32, 10..;
    }

    /// In [`ListOffsetsRequest`]: `topics`.
    pub struct ListOffsetsTopic<'a> {
        name: &'a str, 0..;
        partitions: Vec<ListOffsetsPartition>, 0..;
    }

    /// In [`ListOffsetsTopic`]: `partitions`.
    pub struct ListOffsetsPartition {
        partition_index: i32, 0..;
        current_leader_epoch: i32 = -1, 4..;
        timestamp: i64, 0..;
        max_num_offsets: i32 = 1, 0..=0;
    }

    /// Response of `ListOffsets`.
    pub struct ListOffsetsResponse<'a> {
        throttle_time_ms: i32, 2..;
        topics: Vec<ListOffsetsTopicResponse<'a>>, 0..;
    }

    /// In [`ListOffsetsResponse`]: `topics`.
    pub struct ListOffsetsTopicResponse<'a> {
        name: Cow<'a, str>, 0..;
        partitions: Vec<ListOffsetsPartitionResponse>, 0..;
    }

    /// In [`ListOffsetsTopicResponse`]: `partitions`.
    pub struct ListOffsetsPartitionResponse {
        partition_index: i32, 0..;
        error_code: i16, 0..;
        old_style_offsets: Vec<i64>, 0..=0;
        timestamp: i64 = -1, 1..;
        offset: i64 = -1, 1..;
        leader_epoch: i32 = -1, 4..;
    }
}

api!(ListOffsets: ListOffsetsRequest<'a> => ListOffsetsResponse<'r>);
