//! Keeps a member in a group of the newer protocol and carries its assignment.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `ConsumerGroupHeartbeat`.
    pub struct ConsumerGroupHeartbeatRequest<'a> {
        group_id: &'a str, 0..;
        member_id: &'a str, 0..;
        member_epoch: i32, 0..;
        instance_id: Option<&'a str>, 0..;
        rack_id: Option<&'a str>, 0..;
        rebalance_timeout_ms: i32 = -1, 0..;
        subscribed_topic_names: Option<Vec<&'a str>>, 0..;
        subscribed_topic_regex: Option<&'a str>, 1..;
        server_assignor: Option<&'a str>, 0..;
        topic_partitions: Option<Vec<OwnedTopicPartitions>>, 0..;
    }

    /// In [`ConsumerGroupHeartbeatRequest`]: `topic_partitions`.
    pub struct OwnedTopicPartitions {
        topic_id: Uuid, 0..;
        partitions: Vec<i32>, 0..;
    }

    /// Response of `ConsumerGroupHeartbeat`.
    pub struct ConsumerGroupHeartbeatResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>>, 0..;
        member_id: Option<Cow<'a, str>>, 0..;
        member_epoch: i32, 0..;
        heartbeat_interval_ms: i32, 0..;
        assignment: Option<Assignment>, 0..;
    }

    /// In [`ConsumerGroupHeartbeatResponse`]: `assignment`.
    pub struct Assignment {
        topic_partitions: Vec<TopicPartitions>, 0..;
    }

    /// In [`Assignment`]: `topic_partitions`.
    pub struct TopicPartitions {
        topic_id: Uuid, 0..;
        partitions: Vec<i32>, 0..;
    }
}

api!(ConsumerGroupHeartbeat: ConsumerGroupHeartbeatRequest<'a> => ConsumerGroupHeartbeatResponse<'r>);
