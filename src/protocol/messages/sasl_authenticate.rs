//! Carries the bytes of a SASL exchange.

use std::borrow::Cow;

message! {
    /// Request of `SaslAuthenticate`.
    pub struct SaslAuthenticateRequest<'a> {
        auth_bytes: &'a [u8], 0..;
    }

    /// Response of `SaslAuthenticate`.
    pub struct SaslAuthenticateResponse<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        auth_bytes: Cow<'a, [u8]>, 0..;
        session_lifetime_ms: i64, 1..;
    }
}

api!(SaslAuthenticate: SaslAuthenticateRequest<'a> => SaslAuthenticateResponse<'r>);
