//! Moves partitions to other brokers.

use std::borrow::Cow;

message! {
    /// Request of `AlterPartitionReassignments`.
    pub struct AlterPartitionReassignmentsRequest<'a> {
        timeout_ms: i32 = 60000, 0..;
        allow_replication_factor_change: bool = true, 1..;
        topics: Vec<ReassignableTopic<'a>>, 0..;
    }

    /// In [`AlterPartitionReassignmentsRequest`]: `topics`.
    pub struct ReassignableTopic<'a> {
        name: &'a str, 0..;
        partitions: Vec<ReassignablePartition>, 0..;
    }

    /// In [`ReassignableTopic`]: `partitions`.
    pub struct ReassignablePartition {
        partition_index: i32, 0..;
        replicas: Option<Vec<i32>>, 0..;
    }

    /// Response of `AlterPartitionReassignments`.
    pub struct AlterPartitionReassignmentsResponse<'a> {
        throttle_time_ms: i32, 0..;
        allow_replication_factor_change: bool = true, 1..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        responses: Vec<ReassignableTopicResponse<'a>>, 0..;
    }

    /// In [`AlterPartitionReassignmentsResponse`]: `responses`.
    pub struct ReassignableTopicResponse<'a> {
        name: Cow<'a, str>, 0..;
        partitions: Vec<ReassignablePartitionResponse<'a>>, 0..;
    }

    /// In [`ReassignableTopicResponse`]: `partitions`.
    pub struct ReassignablePartitionResponse<'a> {
        partition_index: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
    }
}

api!(AlterPartitionReassignments: AlterPartitionReassignmentsRequest<'a> => AlterPartitionReassignmentsResponse<'r>);
