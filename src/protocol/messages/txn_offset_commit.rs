//! Keeps a group's positions once a transaction is committed.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `TxnOffsetCommit`.
    pub struct TxnOffsetCommitRequest<'a> {
        transactional_id: &'a str, 0..;
        group_id: &'a str, 0..;
        producer_id: i64, 0..;
        producer_epoch: i16, 0..;
        generation_id_or_member_epoch: i32 = -1, 3..;
        member_id: &'a str, 3..;
        group_instance_id: Option<&'a str>, 3..;
        topics: Vec<TxnOffsetCommitRequestTopic<'a>>, 0..;
    }

    /// In [`TxnOffsetCommitRequest`]: `topics`.
    pub struct TxnOffsetCommitRequestTopic<'a> {
        name: &'a str, 0..=5;
        topic_id: Uuid, 6..;
        partitions: Vec<TxnOffsetCommitRequestPartition<'a>>, 0..;
    }

    /// In [`TxnOffsetCommitRequestTopic`]: `partitions`.
    pub struct TxnOffsetCommitRequestPartition<'a> {
        partition_index: i32, 0..;
        committed_offset: i64, 0..;
        committed_leader_epoch: i32 = -1, 2..;
        committed_metadata: Option<&'a str> = Some(""), 0..;
    }

    /// Response of `TxnOffsetCommit`.
    pub struct TxnOffsetCommitResponse<'a> {
        throttle_time_ms: i32, 0..;
        topics: Vec<TxnOffsetCommitResponseTopic<'a>>, 0..;
    }

    /// In [`TxnOffsetCommitResponse`]: `topics`.
    pub struct TxnOffsetCommitResponseTopic<'a> {
        name: Cow<'a, str>, 0..=5;
        topic_id: Uuid, 6..;
        partitions: Vec<TxnOffsetCommitResponsePartition>, 0..;
    }

    /// In [`TxnOffsetCommitResponseTopic`]: `partitions`.
    pub struct TxnOffsetCommitResponsePartition {
        partition_index: i32, 0..;
        error_code: i16, 0..;
    }
}

api!(TxnOffsetCommit: TxnOffsetCommitRequest<'a> => TxnOffsetCommitResponse<'r>);
