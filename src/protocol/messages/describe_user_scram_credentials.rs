//! Lists SCRAM users.

use std::borrow::Cow;

message! {
    /// Request of `DescribeUserScramCredentials`.
    pub struct DescribeUserScramCredentialsRequest<'a> {
        users: Option<Vec<UserName<'a>>> = Some(Vec::new()), 0..;
    }

    /// In [`DescribeUserScramCredentialsRequest`]: `users`.
    pub struct UserName<'a> {
        name: &'a str, 0..;
    }

    /// Response of `DescribeUserScramCredentials`.
    pub struct DescribeUserScramCredentialsResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        results: Vec<DescribeUserScramCredentialsResult<'a>>, 0..;
    }

    /// In [`DescribeUserScramCredentialsResponse`]: `results`.
    pub struct DescribeUserScramCredentialsResult<'a> {
        user: Cow<'a, str>, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        credential_infos: Vec<CredentialInfo>, 0..;
    }

    /// In [`DescribeUserScramCredentialsResult`]: `credential_infos`.
    pub struct CredentialInfo {
        mechanism: i8, 0..;
        iterations: i32, 0..;
    }
}

api!(DescribeUserScramCredentials: DescribeUserScramCredentialsRequest<'a> => DescribeUserScramCredentialsResponse<'r>);
