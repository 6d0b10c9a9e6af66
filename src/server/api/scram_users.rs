//! `DescribeUserScramCredentials`: there are no users.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::describe_user_scram_credentials::{
            DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
            DescribeUserScramCredentialsResult, UserName,
        },
        wire::Reader,
    },
    server::error_code::ErrorCode,
};

pub(super) fn describe(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DescribeUserScramCredentialsRequest<'_> = read(call, body)?;
    let absent = |user: &UserName<'_>| DescribeUserScramCredentialsResult {
        user: user.name.to_owned().into(),
        error_code: ErrorCode::RESOURCE_NOT_FOUND.value(),
        error_message: Some("There is no user of this name.".into()),
        ..Default::default()
    };
    let results = request.users.iter().flatten().map(absent).collect();
    call.reply(&DescribeUserScramCredentialsResponse { error_message: None, results, ..Default::default() })
}
