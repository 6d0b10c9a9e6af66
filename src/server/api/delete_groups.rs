//! `DeleteGroups`: those without members, with all that they have committed.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::delete_groups::{DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse},
        wire::Reader,
    },
    server::error_code::{ErrorCode, Refusal},
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DeleteGroupsRequest<'_> = read(call, body)?;
    let results = request.groups_names.iter().map(|id| delete(call, id)).collect();
    call.reply(&DeleteGroupsResponse { results, ..Default::default() })
}

fn delete<'a>(call: &Call<'_>, id: &'a str) -> DeletableGroupResult<'a> {
    let deleted = if id.is_empty() {
        Err(Refusal::new(ErrorCode::INVALID_GROUP_ID, "A group has a name."))
    } else {
        // Few are deleted, and seldom: each is waited for.
        call.broker.groups.coordinator().delete(id).and_then(|pending| match pending {
            Some(pending) => pending.wait().map(drop).map_err(Refusal::from),
            None => Ok(()),
        })
    };
    let (code, error_message) = match deleted {
        Ok(()) => (ErrorCode::NONE, None),
        Err(refusal) => (refusal.code, Some(refusal.message.into())),
    };
    DeletableGroupResult { group_id: id.into(), error_code: code.value(), error_message }
}
