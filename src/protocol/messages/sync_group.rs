//! Brings the leader's assignment to the members of a group.

use std::borrow::Cow;

message! {
    /// Request of `SyncGroup`.
    pub struct SyncGroupRequest<'a> {
        group_id: &'a str, 0..;
        generation_id: i32, 0..;
        member_id: &'a str, 0..;
        group_instance_id: Option<&'a str>, 3..;
        protocol_type: Option<&'a str>, 5..;
        protocol_name: Option<&'a str>, 5..;
        assignments: Vec<SyncGroupRequestAssignment<'a>>, 0..;
    }

    /// In [`SyncGroupRequest`]: `assignments`.
    pub struct SyncGroupRequestAssignment<'a> {
        member_id: &'a str, 0..;
        assignment: &'a [u8], 0..;
    }

    /// Response of `SyncGroup`.
    pub struct SyncGroupResponse<'a> {
        throttle_time_ms: i32, 1..;
        error_code: i16, 0..;
        protocol_type: Option<Cow<'a, str>>, 5..;
        protocol_name: Option<Cow<'a, str>>, 5..;
        assignment: Cow<'a, [u8]>, 0..;
    }
}

api!(SyncGroup: SyncGroupRequest<'a> => SyncGroupResponse<'r>);
