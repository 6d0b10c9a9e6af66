//! Takes members out of a group.

use std::borrow::Cow;

message! {
    /// Request of `LeaveGroup`.
    pub struct LeaveGroupRequest<'a> {
        group_id: &'a str, 0..;
        member_id: &'a str, 0..=2;
        members: Vec<MemberIdentity<'a>>, 3..;
    }

    /// In [`LeaveGroupRequest`]: `members`.
    pub struct MemberIdentity<'a> {
        member_id: &'a str, 3..;
        group_instance_id: Option<&'a str>, 3..;
        reason: Option<&'a str>, 5..;
    }

    /// Response of `LeaveGroup`.
    pub struct LeaveGroupResponse<'a> {
        throttle_time_ms: i32, 1..;
        error_code: i16, 0..;
        members: Vec<MemberResponse<'a>>, 3..;
    }

    /// In [`LeaveGroupResponse`]: `members`.
    pub struct MemberResponse<'a> {
        member_id: Cow<'a, str>, 3..;
        group_instance_id: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 3..;
        error_code: i16, 3..;
    }
}

api!(LeaveGroup: LeaveGroupRequest<'a> => LeaveGroupResponse<'r>);
