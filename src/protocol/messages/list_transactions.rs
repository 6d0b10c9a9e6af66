//! Lists transactions.

use std::borrow::Cow;

message! {
    /// Request of `ListTransactions`.
    pub struct ListTransactionsRequest<'a> {
        state_filters: Vec<&'a str>, 0..;
        producer_id_filters: Vec<i64>, 0..;
        duration_filter: i64 = -1, 1..;
        transactional_id_pattern: Option<&'a str>, 2..;
    }

    /// Response of `ListTransactions`.
    pub struct ListTransactionsResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        unknown_state_filters: Vec<Cow<'a, str>>, 0..;
        transaction_states: Vec<TransactionState<'a>>, 0..;
    }

    /// In [`ListTransactionsResponse`]: `transaction_states`.
    pub struct TransactionState<'a> {
        transactional_id: Cow<'a, str>, 0..;
        producer_id: i64, 0..;
        transaction_state: Cow<'a, str>, 0..;
    }
}

api!(ListTransactions: ListTransactionsRequest<'a> => ListTransactionsResponse<'r>);
