//! Lists partitions that are on the move.

use std::borrow::Cow;

message! {
    /// Request of `ListPartitionReassignments`.
    pub struct ListPartitionReassignmentsRequest<'a> {
        timeout_ms: i32 = 60000, 0..;
        topics: Option<Vec<ListPartitionReassignmentsTopics<'a>>>, 0..;
    }

    /// In [`ListPartitionReassignmentsRequest`]: `topics`.
    pub struct ListPartitionReassignmentsTopics<'a> {
        name: &'a str, 0..;
        partition_indexes: Vec<i32>, 0..;
    }

    /// Response of `ListPartitionReassignments`.
    pub struct ListPartitionReassignmentsResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        topics: Vec<OngoingTopicReassignment<'a>>, 0..;
    }

    /// In [`ListPartitionReassignmentsResponse`]: `topics`.
    pub struct OngoingTopicReassignment<'a> {
        name: Cow<'a, str>, 0..;
        partitions: Vec<OngoingPartitionReassignment>, 0..;
    }

    /// In [`OngoingTopicReassignment`]: `partitions`.
    pub struct OngoingPartitionReassignment {
        partition_index: i32, 0..;
        replicas: Vec<i32>, 0..;
        adding_replicas: Vec<i32>, 0..;
        removing_replicas: Vec<i32>, 0..;
    }
}

api!(ListPartitionReassignments: ListPartitionReassignmentsRequest<'a> => ListPartitionReassignmentsResponse<'r>);
