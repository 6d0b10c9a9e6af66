//! Tells of groups and their members.

use std::borrow::Cow;

message! {
    /// Request of `DescribeGroups`.
    pub struct DescribeGroupsRequest<'a> {
        groups: Vec<&'a str>, 0..;
        include_authorized_operations: bool, 3..;
    }

    /// Response of `DescribeGroups`.
    pub struct DescribeGroupsResponse<'a> {
        throttle_time_ms: i32, 1..;
        groups: Vec<DescribedGroup<'a>>, 0..;
    }

    /// In [`DescribeGroupsResponse`]: `groups`.
    pub struct DescribedGroup<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>>, 6..;
        group_id: Cow<'a, str>, 0..;
        group_state: Cow<'a, str>, 0..;
        protocol_type: Cow<'a, str>, 0..;
        protocol_data: Cow<'a, str>, 0..;
        members: Vec<DescribedGroupMember<'a>>, 0..;
        authorized_operations: i32 = i32::MIN, 3..;
    }

    /// In [`DescribedGroup`]: `members`.
    pub struct DescribedGroupMember<'a> {
        member_id: Cow<'a, str>, 0..;
        group_instance_id: Option<Cow<'a, str>>, 4..;
        client_id: Cow<'a, str>, 0..;
        client_host: Cow<'a, str>, 0..;
        member_metadata: Cow<'a, [u8]>, 0..;
        member_assignment: Cow<'a, [u8]>, 0..;
    }
}

api!(DescribeGroups: DescribeGroupsRequest<'a> => DescribeGroupsResponse<'r>);
