//! Makes a consumer a member of a group.

use std::borrow::Cow;

message! {
    /// Request of `JoinGroup`.
    pub struct JoinGroupRequest<'a> {
        group_id: &'a str, 0..;
        session_timeout_ms: i32, 0..;
        rebalance_timeout_ms: i32 = -1, 1..;
        member_id: &'a str, 0..;
        group_instance_id: Option<&'a str>, 5..;
        protocol_type: &'a str, 0..;
        protocols: Vec<JoinGroupRequestProtocol<'a>>, 0..;
        reason: Option<&'a str>, 8..;
    }

    /// In [`JoinGroupRequest`]: `protocols`.
    pub struct JoinGroupRequestProtocol<'a> {
        name: &'a str, 0..;
        metadata: &'a [u8], 0..;
    }

    /// Response of `JoinGroup`.
    pub struct JoinGroupResponse<'a> {
        throttle_time_ms: i32, 2..;
        error_code: i16, 0..;
        generation_id: i32 = -1, 0..;
        protocol_type: Option<Cow<'a, str>>, 7..;
        protocol_name: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0.., null 7..;
        leader: Cow<'a, str>, 0..;
        skip_assignment: bool, 9..;
        member_id: Cow<'a, str>, 0..;
        members: Vec<JoinGroupResponseMember<'a>>, 0..;
    }

    /// In [`JoinGroupResponse`]: `members`.
    pub struct JoinGroupResponseMember<'a> {
        member_id: Cow<'a, str>, 0..;
        group_instance_id: Option<Cow<'a, str>>, 5..;
        metadata: Cow<'a, [u8]>, 0..;
    }
}

api!(JoinGroup: JoinGroupRequest<'a> => JoinGroupResponse<'r>);
