//! Removes access rules.

use std::borrow::Cow;

message! {
    /// Request of `DeleteAcls`.
    pub struct DeleteAclsRequest<'a> {
        filters: Vec<DeleteAclsFilter<'a>>, 0..;
    }

    /// In [`DeleteAclsRequest`]: `filters`.
    pub struct DeleteAclsFilter<'a> {
        resource_type_filter: i8, 0..;
        resource_name_filter: Option<&'a str> = Some(""), 0..;
        pattern_type_filter: i8 = 3, 1..;
        principal_filter: Option<&'a str> = Some(""), 0..;
        host_filter: Option<&'a str> = Some(""), 0..;
        operation: i8, 0..;
        permission_type: i8, 0..;
    }

    /// Response of `DeleteAcls`.
    pub struct DeleteAclsResponse<'a> {
        throttle_time_ms: i32, 0..;
        filter_results: Vec<DeleteAclsFilterResult<'a>>, 0..;
    }

    /// In [`DeleteAclsResponse`]: `filter_results`.
    pub struct DeleteAclsFilterResult<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        matching_acls: Vec<DeleteAclsMatchingAcl<'a>>, 0..;
    }

    /// In [`DeleteAclsFilterResult`]: `matching_acls`.
    pub struct DeleteAclsMatchingAcl<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        resource_type: i8, 0..;
        resource_name: Cow<'a, str>, 0..;
        pattern_type: i8 = 3, 1..;
        principal: Cow<'a, str>, 0..;
        host: Cow<'a, str>, 0..;
        operation: i8, 0..;
        permission_type: i8, 0..;
    }
}

api!(DeleteAcls: DeleteAclsRequest<'a> => DeleteAclsResponse<'r>);
