//! `ApiVersions`: what is served, in which versions.

use super::{Call, Fault, Outcome, features, read};
use crate::{
    protocol::{
        ApiKey,
        messages::api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse},
        wire::Reader,
    },
    server::{error_code::ErrorCode, reply::Reply},
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let is_served =
        ApiKey::ApiVersions.advertised().is_some_and(|versions| versions.contains(call.version()));
    if !is_served {
        // In the oldest version, which everybody reads, with this API alone: the client asks again in one that is there.
        let response = ApiVersionsResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION.value(),
            api_keys: line(ApiKey::ApiVersions).into_iter().collect(),
            ..Default::default()
        };
        return Ok(Outcome::Reply(Reply::new(call.header.correlation_id, 0, &response, Vec::new())?));
    }
    let request: ApiVersionsRequest<'_> = read(call, body)?;
    let is_named = |name: &str| call.version() < 3 || is_software(name);
    let error = if is_named(request.client_software_name) && is_named(request.client_software_version) {
        ErrorCode::NONE
    } else {
        ErrorCode::INVALID_REQUEST
    };
    let api_keys =
        if error.is_none() { ApiKey::ALL.iter().filter_map(|api| line(*api)).collect() } else { Vec::new() };
    let (supported_features, finalized_features) =
        if error.is_none() { features::told() } else { Default::default() };
    call.reply(&ApiVersionsResponse {
        error_code: error.value(),
        api_keys,
        supported_features,
        finalized_features_epoch: 0,
        finalized_features,
        ..Default::default()
    })
}

fn line(api: ApiKey) -> Option<ApiVersion> {
    let versions = api.advertised()?;
    Some(ApiVersion { api_key: api.key(), min_version: versions.first, max_version: versions.last })
}

/// Letters, digits, dots and hyphens, with a letter or digit at both ends: what a broker lets a client call itself.
fn is_software(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_software() {
        for (name, is_good) in [
            ("apache-kafka-java", true),
            ("3.9.0-SNAPSHOT", true),
            ("a", true),
            ("", false),
            ("-a", false),
            ("a b", false),
        ] {
            assert_eq!(is_software(name), is_good, "{name}");
        }
    }
}
