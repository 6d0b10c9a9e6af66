//! Lists access rules.

use std::borrow::Cow;

message! {
    /// Request of `DescribeAcls`.
    pub struct DescribeAclsRequest<'a> {
        resource_type_filter: i8, 0..;
        resource_name_filter: Option<&'a str> = Some(""), 0..;
        pattern_type_filter: i8 = 3, 1..;
        principal_filter: Option<&'a str> = Some(""), 0..;
        host_filter: Option<&'a str> = Some(""), 0..;
        operation: i8, 0..;
        permission_type: i8, 0..;
    }

    /// Response of `DescribeAcls`.
    pub struct DescribeAclsResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        resources: Vec<DescribeAclsResource<'a>>, 0..;
    }

    /// In [`DescribeAclsResponse`]: `resources`.
    pub struct DescribeAclsResource<'a> {
        resource_type: i8, 0..;
        resource_name: Cow<'a, str>, 0..;
        pattern_type: i8 = 3, 1..;
        acls: Vec<AclDescription<'a>>, 0..;
    }

    /// In [`DescribeAclsResource`]: `acls`.
    pub struct AclDescription<'a> {
        principal: Cow<'a, str>, 0..;
        host: Cow<'a, str>, 0..;
        operation: i8, 0..;
        permission_type: i8, 0..;
    }
}

api!(DescribeAcls: DescribeAclsRequest<'a> => DescribeAclsResponse<'r>);
