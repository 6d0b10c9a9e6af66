//! Features of the cluster, and `UpdateFeatures`: they are what they are.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::{
            api_versions::{FinalizedFeatureKey, SupportedFeatureKey},
            update_features::{
                FeatureUpdateKey, UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse,
            },
        },
        wire::Reader,
    },
    server::error_code::ErrorCode,
};

/// What tools take a cluster's version from.
const METADATA_VERSION: &str = "metadata.version";
/// That of the brokers whose APIs are served here: 4.4-IV2.
const LEVEL: i16 = 33;

/// Told by `ApiVersions`: which levels could be, and which are.
pub(super) fn told<'a>() -> (Vec<SupportedFeatureKey<'a>>, Vec<FinalizedFeatureKey<'a>>) {
    let supported =
        SupportedFeatureKey { name: METADATA_VERSION.into(), min_version: LEVEL, max_version: LEVEL };
    let finalized = FinalizedFeatureKey {
        name: METADATA_VERSION.into(),
        max_version_level: LEVEL,
        min_version_level: LEVEL,
    };
    (vec![supported], vec![finalized])
}

pub(super) fn update(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: UpdateFeaturesRequest<'_> = read(call, body)?;
    let is_so = |update: &FeatureUpdateKey<'_>| {
        // Level 0 takes a feature away.
        update.feature == METADATA_VERSION && update.max_version_level == LEVEL
            || update.feature != METADATA_VERSION && update.max_version_level == 0
    };
    let message = |update: &FeatureUpdateKey<'_>| {
        format!("{} cannot be set to {} here.", update.feature, update.max_version_level)
    };
    let refused = request.feature_updates.iter().find(|update| !is_so(update));
    let result = |update: &FeatureUpdateKey<'_>| {
        let code = if is_so(update) { ErrorCode::NONE } else { ErrorCode::INVALID_UPDATE_VERSION };
        UpdatableFeatureResult {
            feature: update.feature.to_owned().into(),
            error_code: code.value(),
            error_message: (!is_so(update)).then(|| message(update).into()),
        }
    };
    // From version 2 on one code is for all.
    let code = match refused {
        Some(_) if call.version() >= 2 => ErrorCode::INVALID_UPDATE_VERSION,
        _ => ErrorCode::NONE,
    };
    call.reply(&UpdateFeaturesResponse {
        error_code: code.value(),
        error_message: refused.filter(|_| call.version() >= 2).map(|update| message(update).into()),
        results: request.feature_updates.iter().map(result).collect(),
        ..Default::default()
    })
}
