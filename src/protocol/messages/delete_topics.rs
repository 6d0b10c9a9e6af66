//! Removes topics.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `DeleteTopics`.
    pub struct DeleteTopicsRequest<'a> {
        topics: Vec<DeleteTopicState<'a>>, 6..;
        topic_names: Vec<&'a str>, 0..=5;
        timeout_ms: i32, 0..;
    }

    /// In [`DeleteTopicsRequest`]: `topics`.
    pub struct DeleteTopicState<'a> {
        name: Option<&'a str>, 6..;
        topic_id: Uuid, 6..;
    }

    /// Response of `DeleteTopics`.
    pub struct DeleteTopicsResponse<'a> {
        throttle_time_ms: i32, 1..;
        responses: Vec<DeletableTopicResult<'a>>, 0..;
    }

    /// In [`DeleteTopicsResponse`]: `responses`.
    pub struct DeletableTopicResult<'a> {
        name: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0.., null 6..;
        topic_id: Uuid, 6..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>>, 5..;
    }
}

api!(DeleteTopics: DeleteTopicsRequest<'a> => DeleteTopicsResponse<'r>);
