//! Lists groups.

use std::borrow::Cow;

message! {
    /// Request of `ListGroups`.
    pub struct ListGroupsRequest<'a> {
        states_filter: Vec<&'a str>, 4..;
        types_filter: Vec<&'a str>, 5..;
    }

    /// Response of `ListGroups`.
    pub struct ListGroupsResponse<'a> {
        throttle_time_ms: i32, 1..;
        error_code: i16, 0..;
        groups: Vec<ListedGroup<'a>>, 0..;
    }

    /// In [`ListGroupsResponse`]: `groups`.
    pub struct ListedGroup<'a> {
        group_id: Cow<'a, str>, 0..;
        protocol_type: Cow<'a, str>, 0..;
        group_state: Cow<'a, str>, 4..;
        group_type: Cow<'a, str>, 5..;
    }
}

api!(ListGroups: ListGroupsRequest<'a> => ListGroupsResponse<'r>);
