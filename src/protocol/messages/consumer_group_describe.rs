//! Tells of groups of the newer protocol.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `ConsumerGroupDescribe`.
    pub struct ConsumerGroupDescribeRequest<'a> {
        group_ids: Vec<&'a str>, 0..;
        include_authorized_operations: bool, 0..;
    }

    /// Response of `ConsumerGroupDescribe`.
    pub struct ConsumerGroupDescribeResponse<'a> {
        throttle_time_ms: i32, 0..;
        groups: Vec<DescribedGroup<'a>>, 0..;
    }

    /// In [`ConsumerGroupDescribeResponse`]: `groups`.
    pub struct DescribedGroup<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>>, 0..;
        group_id: Cow<'a, str>, 0..;
        group_state: Cow<'a, str>, 0..;
        group_epoch: i32, 0..;
        assignment_epoch: i32, 0..;
        assignor_name: Cow<'a, str>, 0..;
        members: Vec<Member<'a>>, 0..;
        authorized_operations: i32 = i32::MIN, 0..;
    }

    /// In [`DescribedGroup`]: `members`.
    pub struct Member<'a> {
        member_id: Cow<'a, str>, 0..;
        instance_id: Option<Cow<'a, str>>, 0..;
        rack_id: Option<Cow<'a, str>>, 0..;
        member_epoch: i32, 0..;
        client_id: Cow<'a, str>, 0..;
        client_host: Cow<'a, str>, 0..;
        subscribed_topic_names: Vec<Cow<'a, str>>, 0..;
        subscribed_topic_regex: Option<Cow<'a, str>>, 0..;
        assignment: Assignment<'a>, 0..;
        target_assignment: Assignment<'a>, 0..;
        member_type: i8 = -1, 1..;
    }

    /// In [`Member`]: `assignment`.
    pub struct Assignment<'a> {
        topic_partitions: Vec<TopicPartitions<'a>>, 0..;
    }

    /// In [`Assignment`]: `topic_partitions`.
    pub struct TopicPartitions<'a> {
        topic_id: Uuid, 0..;
        topic_name: Cow<'a, str>, 0..;
        partitions: Vec<i32>, 0..;
    }
}

api!(ConsumerGroupDescribe: ConsumerGroupDescribeRequest<'a> => ConsumerGroupDescribeResponse<'r>);
