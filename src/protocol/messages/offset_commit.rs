//! Keeps a consumer group's positions.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `OffsetCommit`.
    pub struct OffsetCommitRequest<'a> {
        group_id: &'a str, 0..;
        generation_id_or_member_epoch: i32 = -1, 1..;
        member_id: &'a str, 1..;
        group_instance_id: Option<&'a str>, 7..;
        retention_time_ms: i64 = -1, 2..=4;
        topics: Vec<OffsetCommitRequestTopic<'a>>, 0..;
    }

    /// In [`OffsetCommitRequest`]: `topics`.
    pub struct OffsetCommitRequestTopic<'a> {
        name: &'a str, 0..=9;
        topic_id: Uuid, 10..;
        partitions: Vec<OffsetCommitRequestPartition<'a>>, 0..;
    }

    /// In [`OffsetCommitRequestTopic`]: `partitions`.
    pub struct OffsetCommitRequestPartition<'a> {
        partition_index: i32, 0..;
        committed_offset: i64, 0..;
        committed_leader_epoch: i32 = -1, 6..;
        commit_timestamp: i64 = -1, 1..=1;
        committed_metadata: Option<&'a str> = Some(""), 0..;
    }

    /// Response of `OffsetCommit`.
    pub struct OffsetCommitResponse<'a> {
        throttle_time_ms: i32, 3..;
        topics: Vec<OffsetCommitResponseTopic<'a>>, 0..;
    }

    /// In [`OffsetCommitResponse`]: `topics`.
    pub struct OffsetCommitResponseTopic<'a> {
        name: Cow<'a, str>, 0..=9;
        topic_id: Uuid, 10..;
        partitions: Vec<OffsetCommitResponsePartition>, 0..;
    }

    /// In [`OffsetCommitResponseTopic`]: `partitions`.
    pub struct OffsetCommitResponsePartition {
        partition_index: i32, 0..;
        error_code: i16, 0..;
    }
}

api!(OffsetCommit: OffsetCommitRequest<'a> => OffsetCommitResponse<'r>);
