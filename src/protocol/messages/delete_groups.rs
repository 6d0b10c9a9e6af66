//! Removes empty groups.

use std::borrow::Cow;

message! {
    /// Request of `DeleteGroups`.
    pub struct DeleteGroupsRequest<'a> {
        groups_names: Vec<&'a str>, 0..;
    }

    /// Response of `DeleteGroups`.
    pub struct DeleteGroupsResponse<'a> {
        throttle_time_ms: i32, 0..;
        results: Vec<DeletableGroupResult<'a>>, 0..;
    }

    /// In [`DeleteGroupsResponse`]: `results`.
    pub struct DeletableGroupResult<'a> {
        group_id: Cow<'a, str>, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>>, 3..;
    }
}

api!(DeleteGroups: DeleteGroupsRequest<'a> => DeleteGroupsResponse<'r>);
