//! Agrees on a SASL mechanism.

use std::borrow::Cow;

message! {
    /// Request of `SaslHandshake`.
    pub struct SaslHandshakeRequest<'a> {
        mechanism: &'a str, 0..;
    }

    /// Response of `SaslHandshake`.
    pub struct SaslHandshakeResponse<'a> {
        error_code: i16, 0..;
        mechanisms: Vec<Cow<'a, str>>, 0..;
    }
}

api!(SaslHandshake: SaslHandshakeRequest<'a> => SaslHandshakeResponse<'r>);
