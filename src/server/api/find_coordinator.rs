//! `FindCoordinator`: this broker, for every group.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse},
        wire::Reader,
    },
    server::error_code::ErrorCode,
};

const GROUP: i8 = 0;

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: FindCoordinatorRequest<'_> = read(call, body)?;
    let (code, message) = match request.key_type {
        GROUP => (ErrorCode::NONE, None),
        1 => (ErrorCode::COORDINATOR_NOT_AVAILABLE, Some("There is no coordinator of transactions here.")),
        _ => (ErrorCode::INVALID_REQUEST, Some("Coordinators of this type are not known here.")),
    };
    let is_found = code.is_none();
    let node_id = if is_found { call.broker.node_id() } else { -1 };
    let host = if is_found { call.advertised.host.as_str() } else { "" };
    let port = if is_found { i32::from(call.advertised.port) } else { -1 };
    let coordinator = |key: &&'_ str| Coordinator {
        key: (*key).to_owned().into(),
        node_id,
        host: host.to_owned().into(),
        port,
        error_code: code.value(),
        error_message: message.map(Into::into),
    };
    let response = FindCoordinatorResponse {
        error_code: code.value(),
        error_message: message.map(Into::into),
        node_id,
        host: host.into(),
        port,
        coordinators: request.coordinator_keys.iter().map(coordinator).collect(),
        ..Default::default()
    };
    call.reply(&response)
}
