//! Makes topics.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `CreateTopics`.
    pub struct CreateTopicsRequest<'a> {
        topics: Vec<CreatableTopic<'a>>, 0..;
        timeout_ms: i32 = 60000, 0..;
        validate_only: bool, 1..;
    }

    /// In [`CreateTopicsRequest`]: `topics`.
    pub struct CreatableTopic<'a> {
        name: &'a str, 0..;
        num_partitions: i32, 0..;
        replication_factor: i16, 0..;
        assignments: Vec<CreatableReplicaAssignment>, 0..;
        configs: Vec<CreatableTopicConfig<'a>>, 0..;
    }

    /// In [`CreatableTopic`]: `assignments`.
    pub struct CreatableReplicaAssignment {
        partition_index: i32, 0..;
        broker_ids: Vec<i32>, 0..;
    }

    /// In [`CreatableTopic`]: `configs`.
    pub struct CreatableTopicConfig<'a> {
        name: &'a str, 0..;
        value: Option<&'a str> = Some(""), 0..;
    }

    /// Response of `CreateTopics`.
    pub struct CreateTopicsResponse<'a> {
        throttle_time_ms: i32, 2..;
        topics: Vec<CreatableTopicResult<'a>>, 0..;
    }

    /// In [`CreateTopicsResponse`]: `topics`.
    pub struct CreatableTopicResult<'a> {
        name: Cow<'a, str>, 0..;
        topic_id: Uuid, 7..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 1..;
        topic_config_error_code: i16, 5.., tag 0;
        num_partitions: i32 = -1, 5..;
        replication_factor: i16 = -1, 5..;
        configs: Option<Vec<CreatableTopicConfigs<'a>>> = Some(Vec::new()), 5..;
    }

    /// In [`CreatableTopicResult`]: `configs`.
    pub struct CreatableTopicConfigs<'a> {
        name: Cow<'a, str>, 5..;
        value: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 5..;
        read_only: bool, 5..;
        config_source: i8 = -1, 5..;
        is_sensitive: bool, 5..;
    }
}

api!(CreateTopics: CreateTopicsRequest<'a> => CreateTopicsResponse<'r>);
