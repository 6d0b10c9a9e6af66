//! `DescribeAcls`, `CreateAcls`, `DeleteAcls`: there are no access rules, and that is said in the words tools know.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::{
            create_acls::{AclCreationResult, CreateAclsRequest, CreateAclsResponse},
            delete_acls::{DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse},
            describe_acls::{DescribeAclsRequest, DescribeAclsResponse},
        },
        wire::Reader,
    },
    server::error_code::ErrorCode,
};

const MESSAGE: &str = "No Authorizer is configured.";

pub(super) fn describe(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let _: DescribeAclsRequest<'_> = read(call, body)?;
    call.reply(&DescribeAclsResponse {
        error_code: ErrorCode::SECURITY_DISABLED.value(),
        error_message: Some(MESSAGE.into()),
        ..Default::default()
    })
}

pub(super) fn create(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: CreateAclsRequest<'_> = read(call, body)?;
    let refused = |_| AclCreationResult {
        error_code: ErrorCode::SECURITY_DISABLED.value(),
        error_message: Some(MESSAGE.into()),
    };
    let results = request.creations.iter().map(refused).collect();
    call.reply(&CreateAclsResponse { results, ..Default::default() })
}

pub(super) fn delete(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DeleteAclsRequest<'_> = read(call, body)?;
    let refused = |_| DeleteAclsFilterResult {
        error_code: ErrorCode::SECURITY_DISABLED.value(),
        error_message: Some(MESSAGE.into()),
        ..Default::default()
    };
    let filter_results = request.filters.iter().map(refused).collect();
    call.reply(&DeleteAclsResponse { filter_results, ..Default::default() })
}
