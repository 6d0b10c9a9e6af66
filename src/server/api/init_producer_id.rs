//! `InitProducerId`: a number for a producer that numbers its batches.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
        wire::Reader,
    },
    server::error_code::{ErrorCode, code_of},
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: InitProducerIdRequest<'_> = read(call, body)?;
    let given = match request.transactional_id {
        Some("") => Err(ErrorCode::INVALID_REQUEST),
        // There is no coordinator of transactions.
        Some(_) => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        None => call.broker.producer_ids.next().map_err(|error| {
            tracing::error!(%error, "no producer id can be given");
            code_of(&error)
        }),
    };
    let response = match given {
        Ok(producer_id) => InitProducerIdResponse { producer_id, producer_epoch: 0, ..Default::default() },
        Err(code) => {
            InitProducerIdResponse { error_code: code.value(), producer_epoch: -1, ..Default::default() }
        }
    };
    call.reply(&response)
}
