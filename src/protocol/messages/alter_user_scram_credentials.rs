//! Sets or removes SCRAM users.

use std::borrow::Cow;

message! {
    /// Request of `AlterUserScramCredentials`.
    pub struct AlterUserScramCredentialsRequest<'a> {
        deletions: Vec<ScramCredentialDeletion<'a>>, 0..;
        upsertions: Vec<ScramCredentialUpsertion<'a>>, 0..;
    }

    /// In [`AlterUserScramCredentialsRequest`]: `deletions`.
    pub struct ScramCredentialDeletion<'a> {
        name: &'a str, 0..;
        mechanism: i8, 0..;
    }

    /// In [`AlterUserScramCredentialsRequest`]: `upsertions`.
    pub struct ScramCredentialUpsertion<'a> {
        name: &'a str, 0..;
        mechanism: i8, 0..;
        iterations: i32, 0..;
        salt: &'a [u8], 0..;
        salted_password: &'a [u8], 0..;
    }

    /// Response of `AlterUserScramCredentials`.
    pub struct AlterUserScramCredentialsResponse<'a> {
        throttle_time_ms: i32, 0..;
        results: Vec<AlterUserScramCredentialsResult<'a>>, 0..;
    }

    /// In [`AlterUserScramCredentialsResponse`]: `results`.
    pub struct AlterUserScramCredentialsResult<'a> {
        user: Cow<'a, str>, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
    }
}

api!(AlterUserScramCredentials: AlterUserScramCredentialsRequest<'a> => AlterUserScramCredentialsResponse<'r>);
