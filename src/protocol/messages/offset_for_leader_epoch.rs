//! Finds where a leader epoch ends.

use std::borrow::Cow;

message! {
    /// Request of `OffsetForLeaderEpoch`.
    pub struct OffsetForLeaderEpochRequest<'a> {
        replica_id: i32 = -2, 3..;
        topics: Vec<OffsetForLeaderTopic<'a>>, 0..;
    }

    /// In [`OffsetForLeaderEpochRequest`]: `topics`.
    pub struct OffsetForLeaderTopic<'a> {
        topic: &'a str, 0..;
        partitions: Vec<OffsetForLeaderPartition>, 0..;
    }

    /// In [`OffsetForLeaderTopic`]: `partitions`.
    pub struct OffsetForLeaderPartition {
        partition: i32, 0..;
        current_leader_epoch: i32 = -1, 2..;
        leader_epoch: i32, 0..;
    }

    /// Response of `OffsetForLeaderEpoch`.
    pub struct OffsetForLeaderEpochResponse<'a> {
        throttle_time_ms: i32, 2..;
        topics: Vec<OffsetForLeaderTopicResult<'a>>, 0..;
    }

    /// In [`OffsetForLeaderEpochResponse`]: `topics`.
    pub struct OffsetForLeaderTopicResult<'a> {
        topic: Cow<'a, str>, 0..;
        partitions: Vec<EpochEndOffset>, 0..;
    }

    /// In [`OffsetForLeaderTopicResult`]: `partitions`.
    pub struct EpochEndOffset {
        error_code: i16, 0..;
        partition: i32, 0..;
        leader_epoch: i32 = -1, 1..;
        end_offset: i64 = -1, 0..;
    }
}

api!(OffsetForLeaderEpoch: OffsetForLeaderEpochRequest<'a> => OffsetForLeaderEpochResponse<'r>);
