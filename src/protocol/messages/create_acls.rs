//! Adds access rules.

use std::borrow::Cow;

message! {
    /// Request of `CreateAcls`.
    pub struct CreateAclsRequest<'a> {
        creations: Vec<AclCreation<'a>>, 0..;
    }

    /// In [`CreateAclsRequest`]: `creations`.
    pub struct AclCreation<'a> {
        resource_type: i8, 0..;
        resource_name: &'a str, 0..;
        resource_pattern_type: i8 = 3, 1..;
        principal: &'a str, 0..;
        host: &'a str, 0..;
        operation: i8, 0..;
        permission_type: i8, 0..;
    }

    /// Response of `CreateAcls`.
    pub struct CreateAclsResponse<'a> {
        throttle_time_ms: i32, 0..;
        results: Vec<AclCreationResult<'a>>, 0..;
    }

    /// In [`CreateAclsResponse`]: `results`.
    pub struct AclCreationResult<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
    }
}

api!(CreateAcls: CreateAclsRequest<'a> => CreateAclsResponse<'r>);
