//! `DescribeClientQuotas`, `AlterClientQuotas`: nobody has one, and nobody can be given one.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::{
            alter_client_quotas::{
                AlterClientQuotasRequest, AlterClientQuotasResponse, RequestEntityData, ResponseEntityData,
                ResponseEntryData,
            },
            describe_client_quotas::{DescribeClientQuotasRequest, DescribeClientQuotasResponse},
        },
        wire::Reader,
    },
    server::error_code::ErrorCode,
};

pub(super) fn describe(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let _: DescribeClientQuotasRequest<'_> = read(call, body)?;
    call.reply(&DescribeClientQuotasResponse { error_message: None, ..Default::default() })
}

pub(super) fn alter(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: AlterClientQuotasRequest<'_> = read(call, body)?;
    let mut entries = Vec::with_capacity(request.entries.len());
    for entry in &request.entries {
        // What is to be removed is not there already.
        let is_done = entry.ops.iter().all(|op| op.remove);
        let (code, message) = if is_done {
            (ErrorCode::NONE, None)
        } else {
            (ErrorCode::INVALID_REQUEST, Some("Quotas are not kept by this server.".into()))
        };
        let entity = |entity: &RequestEntityData<'_>| ResponseEntityData {
            entity_type: entity.entity_type.to_owned().into(),
            entity_name: entity.entity_name.map(|name| name.to_owned().into()),
        };
        entries.push(ResponseEntryData {
            error_code: code.value(),
            error_message: message,
            entity: entry.entity.iter().map(entity).collect(),
        });
    }
    call.reply(&AlterClientQuotasResponse { entries, ..Default::default() })
}
