//! Raises or lowers finalized features.

use std::borrow::Cow;

message! {
    /// Request of `UpdateFeatures`.
    pub struct UpdateFeaturesRequest<'a> {
        timeout_ms: i32 = 60000, 0..;
        feature_updates: Vec<FeatureUpdateKey<'a>>, 0..;
        validate_only: bool, 1..;
    }

    /// In [`UpdateFeaturesRequest`]: `feature_updates`.
    pub struct FeatureUpdateKey<'a> {
        feature: &'a str, 0..;
        max_version_level: i16, 0..;
        allow_downgrade: bool, 0..=0;
        upgrade_type: i8 = 1, 1..;
    }

    /// Response of `UpdateFeatures`.
    pub struct UpdateFeaturesResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        results: Vec<UpdatableFeatureResult<'a>>, 0..=1;
    }

    /// In [`UpdateFeaturesResponse`]: `results`.
    pub struct UpdatableFeatureResult<'a> {
        feature: Cow<'a, str>, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
    }
}

api!(UpdateFeatures: UpdateFeaturesRequest<'a> => UpdateFeaturesResponse<'r>);
