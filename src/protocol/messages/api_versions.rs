//! Tells which APIs and versions a broker speaks.

use std::borrow::Cow;

message! {
    /// Request of `ApiVersions`.
    pub struct ApiVersionsRequest<'a> {
        client_software_name: &'a str, 3..;
        client_software_version: &'a str, 3..;
        cluster_id: Option<&'a str>, 5..;
        node_id: i32 = -1, 5..;
    }

    /// Response of `ApiVersions`.
    pub struct ApiVersionsResponse<'a> {
        error_code: i16, 0..;
        api_keys: Vec<ApiVersion>, 0..;
        throttle_time_ms: i32, 1..;
        supported_features: Vec<SupportedFeatureKey<'a>>, 3.., tag 0;
        finalized_features_epoch: i64 = -1, 3.., tag 1;
        finalized_features: Vec<FinalizedFeatureKey<'a>>, 3.., tag 2;
        zk_migration_ready: bool, 3.., tag 3;
    }

    /// In [`ApiVersionsResponse`]: `api_keys`.
    pub struct ApiVersion {
        api_key: i16, 0..;
        min_version: i16, 0..;
        max_version: i16, 0..;
    }

    /// In [`ApiVersionsResponse`]: `supported_features`.
    pub struct SupportedFeatureKey<'a> {
        name: Cow<'a, str>, 3..;
        min_version: i16, 3..;
        max_version: i16, 3..;
    }

    /// In [`ApiVersionsResponse`]: `finalized_features`.
    pub struct FinalizedFeatureKey<'a> {
        name: Cow<'a, str>, 3..;
        max_version_level: i16, 3..;
        min_version_level: i16, 3..;
    }
}

api!(ApiVersions: ApiVersionsRequest<'a> => ApiVersionsResponse<'r>);
