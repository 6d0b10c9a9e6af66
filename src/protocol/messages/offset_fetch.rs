//! Tells a consumer group's positions.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `OffsetFetch`.
    pub struct OffsetFetchRequest<'a> {
        group_id: &'a str, 0..=7;
        topics: Option<Vec<OffsetFetchRequestTopic<'a>>> = Some(Vec::new()), 0..=7, null 2..=7;
        groups: Vec<OffsetFetchRequestGroup<'a>>, 8..;
        require_stable: bool, 7..;
    }

    /// In [`OffsetFetchRequest`]: `topics`.
    pub struct OffsetFetchRequestTopic<'a> {
        name: &'a str, 0..=7;
        partition_indexes: Vec<i32>, 0..=7;
    }

    /// In [`OffsetFetchRequest`]: `groups`.
    pub struct OffsetFetchRequestGroup<'a> {
        group_id: &'a str, 8..;
        member_id: Option<&'a str>, 9..;
        member_epoch: i32 = -1, 9..;
        topics: Option<Vec<OffsetFetchRequestTopics<'a>>> = Some(Vec::new()), 8..;
    }

    /// In [`OffsetFetchRequestGroup`]: `topics`.
    pub struct OffsetFetchRequestTopics<'a> {
        name: &'a str, 8..=9;
        topic_id: Uuid, 10..;
        partition_indexes: Vec<i32>, 8..;
    }

    /// Response of `OffsetFetch`.
    pub struct OffsetFetchResponse<'a> {
        throttle_time_ms: i32, 3..;
        topics: Vec<OffsetFetchResponseTopic<'a>>, 0..=7;
        error_code: i16, 2..=7;
        groups: Vec<OffsetFetchResponseGroup<'a>>, 8..;
    }

    /// In [`OffsetFetchResponse`]: `topics`.
    pub struct OffsetFetchResponseTopic<'a> {
        name: Cow<'a, str>, 0..=7;
        partitions: Vec<OffsetFetchResponsePartition<'a>>, 0..=7;
    }

    /// In [`OffsetFetchResponseTopic`]: `partitions`.
    pub struct OffsetFetchResponsePartition<'a> {
        partition_index: i32, 0..=7;
        committed_offset: i64, 0..=7;
        committed_leader_epoch: i32 = -1, 5..=7;
        metadata: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..=7, null 0..=7;
        error_code: i16, 0..=7;
    }

    /// In [`OffsetFetchResponse`]: `groups`.
    pub struct OffsetFetchResponseGroup<'a> {
        group_id: Cow<'a, str>, 8..;
        topics: Vec<OffsetFetchResponseTopics<'a>>, 8..;
        error_code: i16, 8..;
    }

    /// In [`OffsetFetchResponseGroup`]: `topics`.
    pub struct OffsetFetchResponseTopics<'a> {
        name: Cow<'a, str>, 8..=9;
        topic_id: Uuid, 10..;
        partitions: Vec<OffsetFetchResponsePartitions<'a>>, 8..;
    }

    /// In [`OffsetFetchResponseTopics`]: `partitions`.
    pub struct OffsetFetchResponsePartitions<'a> {
        partition_index: i32, 8..;
        committed_offset: i64, 8..;
        committed_leader_epoch: i32 = -1, 8..;
        metadata: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 8..;
        error_code: i16, 8..;
    }
}

api!(OffsetFetch: OffsetFetchRequest<'a> => OffsetFetchResponse<'r>);
