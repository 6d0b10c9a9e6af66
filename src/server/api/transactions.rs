//! `DescribeTransactions`, `ListTransactions`: there are none.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::{
            describe_transactions::{
                DescribeTransactionsRequest, DescribeTransactionsResponse, TransactionState,
            },
            list_transactions::{ListTransactionsRequest, ListTransactionsResponse},
        },
        wire::Reader,
    },
    server::error_code::ErrorCode,
};

/// The states that a transaction can be in.
const STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
];

pub(super) fn describe(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DescribeTransactionsRequest<'_> = read(call, body)?;
    let absent = |id: &&'_ str| TransactionState {
        error_code: ErrorCode::TRANSACTIONAL_ID_NOT_FOUND.value(),
        transactional_id: (*id).to_owned().into(),
        ..Default::default()
    };
    let transaction_states = request.transactional_ids.iter().map(absent).collect();
    call.reply(&DescribeTransactionsResponse { transaction_states, ..Default::default() })
}

pub(super) fn list(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: ListTransactionsRequest<'_> = read(call, body)?;
    let unknown = request.state_filters.iter().filter(|state| !STATES.contains(*state));
    let unknown_state_filters = unknown.map(|state| (*state).into()).collect();
    call.reply(&ListTransactionsResponse { unknown_state_filters, ..Default::default() })
}
