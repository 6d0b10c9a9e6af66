//! Reads record batches, waiting for more where there are few.

use std::borrow::Cow;

use crate::protocol::wire::{Records, Uuid};

message! {
    /// Request of `Fetch`.
    pub struct FetchRequest<'a> {
        cluster_id: Option<&'a str>, 12.., tag 0;
        replica_id: i32 = -1, 0..=14;
        replica_state: ReplicaState, 15.., tag 1;
        max_wait_ms: i32, 0..;
        min_bytes: i32, 0..;
        max_bytes: i32 = i32::MAX, 3..;
        isolation_level: i8, 4..;
        session_id: i32, 7..;
        session_epoch: i32 = -1, 7..;
        topics: Vec<FetchTopic<'a>>, 0..;
        forgotten_topics_data: Vec<ForgottenTopic<'a>>, 7..;
        rack_id: &'a str, 11..;
    }

    /// In [`FetchRequest`]: `replica_state`.
    pub struct ReplicaState {
        replica_id: i32 = -1, 15..;
        replica_epoch: i64 = -1, 15..;
    }

    /// In [`FetchRequest`]: `topics`.
    pub struct FetchTopic<'a> {
        topic: &'a str, 0..=12;
        topic_id: Uuid, 13..;
        partitions: Vec<FetchPartition>, 0..;
    }

    /// In [`FetchTopic`]: `partitions`.
    pub struct FetchPartition {
        partition: i32, 0..;
        current_leader_epoch: i32 = -1, 9..;
        fetch_offset: i64, 0..;
        last_fetched_epoch: i32 = -1, 12..;
        log_start_offset: i64 = -1, 5..;
        partition_max_bytes: i32, 0..;
        replica_directory_id: Uuid, 17.., tag 0;
        high_watermark: i64 = i64::MAX, 18.., tag 1;
    }

    /// In [`FetchRequest`]: `forgotten_topics_data`.
    pub struct ForgottenTopic<'a> {
        topic: &'a str, 7..=12;
        topic_id: Uuid, 13..;
        partitions: Vec<i32>, 7..;
    }

    /// Response of `Fetch`.
    pub struct FetchResponse<'a> {
        throttle_time_ms: i32, 1..;
        error_code: i16, 7..;
        session_id: i32, 7..;
        responses: Vec<FetchableTopicResponse<'a>>, 0..;
        node_endpoints: Vec<NodeEndpoint<'a>>, 16.., tag 0;
    }

    /// In [`FetchResponse`]: `responses`.
    pub struct FetchableTopicResponse<'a> {
        topic: Cow<'a, str>, 0..=12;
        topic_id: Uuid, 13..;
        partitions: Vec<PartitionData<'a>>, 0..;
    }

    /// In [`FetchableTopicResponse`]: `partitions`.
    pub struct PartitionData<'a> {
        partition_index: i32, 0..;
        error_code: i16, 0..;
        high_watermark: i64, 0..;
        last_stable_offset: i64 = -1, 4..;
        log_start_offset: i64 = -1, 5..;
        diverging_epoch: EpochEndOffset, 12.., tag 0;
        current_leader: LeaderIdAndEpoch, 12.., tag 1;
        snapshot_id: SnapshotId, 12.., tag 2;
        aborted_transactions: Option<Vec<AbortedTransaction>> = Some(Vec::new()), 4..;
        preferred_read_replica: i32 = -1, 11..;
        records: Option<Records<'a>>, 0..;
    }

    /// In [`PartitionData`]: `diverging_epoch`.
    pub struct EpochEndOffset {
        epoch: i32 = -1, 12..;
        end_offset: i64 = -1, 12..;
    }

    /// In [`PartitionData`]: `current_leader`.
    pub struct LeaderIdAndEpoch {
        leader_id: i32 = -1, 12..;
        leader_epoch: i32 = -1, 12..;
    }

    /// In [`PartitionData`]: `snapshot_id`.
    pub struct SnapshotId {
        end_offset: i64 = -1, 0..;
        epoch: i32 = -1, 0..;
    }

    /// In [`PartitionData`]: `aborted_transactions`.
    pub struct AbortedTransaction {
        producer_id: i64, 4..;
        first_offset: i64, 4..;
    }

    /// In [`FetchResponse`]: `node_endpoints`.
    pub struct NodeEndpoint<'a> {
        node_id: i32, 16..;
        host: Cow<'a, str>, 16..;
        port: i32, 16..;
        rack: Option<Cow<'a, str>>, 16..;
    }
}

api!(Fetch: FetchRequest<'a> => FetchResponse<'r>);
