//! Adds partitions to topics.

use std::borrow::Cow;

message! {
    /// Request of `CreatePartitions`.
    pub struct CreatePartitionsRequest<'a> {
        topics: Vec<CreatePartitionsTopic<'a>>, 0..;
        timeout_ms: i32, 0..;
        validate_only: bool, 0..;
    }

    /// In [`CreatePartitionsRequest`]: `topics`.
    pub struct CreatePartitionsTopic<'a> {
        name: &'a str, 0..;
        count: i32, 0..;
        assignments: Option<Vec<CreatePartitionsAssignment>> = Some(Vec::new()), 0..;
    }

    /// In [`CreatePartitionsTopic`]: `assignments`.
    pub struct CreatePartitionsAssignment {
        broker_ids: Vec<i32>, 0..;
    }

    /// Response of `CreatePartitions`.
    pub struct CreatePartitionsResponse<'a> {
        throttle_time_ms: i32, 0..;
        results: Vec<CreatePartitionsTopicResult<'a>>, 0..;
    }

    /// In [`CreatePartitionsResponse`]: `results`.
    pub struct CreatePartitionsTopicResult<'a> {
        name: Cow<'a, str>, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>>, 0..;
    }
}

api!(CreatePartitions: CreatePartitionsRequest<'a> => CreatePartitionsResponse<'r>);
