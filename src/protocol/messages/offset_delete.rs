//! Drops a group's positions.

use std::borrow::Cow;

message! {
    /// Request of `OffsetDelete`.
    pub struct OffsetDeleteRequest<'a> {
        group_id: &'a str, 0..;
        topics: Vec<OffsetDeleteRequestTopic<'a>>, 0..;
    }

    /// In [`OffsetDeleteRequest`]: `topics`.
    pub struct OffsetDeleteRequestTopic<'a> {
        name: &'a str, 0..;
        partitions: Vec<OffsetDeleteRequestPartition>, 0..;
    }

    /// In [`OffsetDeleteRequestTopic`]: `partitions`.
    pub struct OffsetDeleteRequestPartition {
        partition_index: i32, 0..;
    }

    /// Response of `OffsetDelete`.
    pub struct OffsetDeleteResponse<'a> {
        error_code: i16, 0..;
        throttle_time_ms: i32, 0..;
        topics: Vec<OffsetDeleteResponseTopic<'a>>, 0..;
    }

    /// In [`OffsetDeleteResponse`]: `topics`.
    pub struct OffsetDeleteResponseTopic<'a> {
        name: Cow<'a, str>, 0..;
        partitions: Vec<OffsetDeleteResponsePartition>, 0..;
    }

    /// In [`OffsetDeleteResponseTopic`]: `partitions`.
    pub struct OffsetDeleteResponsePartition {
        partition_index: i32, 0..;
        error_code: i16, 0..;
    }
}

api!(OffsetDelete: OffsetDeleteRequest<'a> => OffsetDeleteResponse<'r>);
