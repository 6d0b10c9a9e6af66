//! `ListConfigResources`: what has settings.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::list_config_resources::{
            ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse,
        },
        wire::Reader,
    },
    server::error_code::ErrorCode,
};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
/// Loggers, client metrics, groups: known, and there are none that have settings.
const OTHERS: [i8; 3] = [8, 16, 32];

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: ListConfigResourcesRequest = read(call, body)?;
    let wanted = &request.resource_types;
    if wanted.iter().any(|kind| !matches!(*kind, TOPIC | BROKER) && !OTHERS.contains(kind)) {
        let error_code = ErrorCode::UNSUPPORTED_VERSION.value();
        return call.reply(&ListConfigResourcesResponse { error_code, ..Default::default() });
    }
    // Version 0 lists client metrics and nothing else.
    let is_wanted = |kind| call.version() > 0 && (wanted.is_empty() || wanted.contains(&kind));
    let mut config_resources = Vec::new();
    if is_wanted(TOPIC) {
        config_resources.extend(call.broker.topics.all().iter().map(|topic| ConfigResource {
            resource_name: topic.name().to_owned().into(),
            resource_type: TOPIC,
        }));
    }
    if is_wanted(BROKER) {
        let resource_name = call.broker.node_id().to_string().into();
        config_resources.push(ConfigResource { resource_name, resource_type: BROKER });
    }
    call.reply(&ListConfigResourcesResponse { config_resources, ..Default::default() })
}
