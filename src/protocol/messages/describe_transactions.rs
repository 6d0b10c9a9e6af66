//! Tells of transactions.

use std::borrow::Cow;

message! {
    /// Request of `DescribeTransactions`.
    pub struct DescribeTransactionsRequest<'a> {
        transactional_ids: Vec<&'a str>, 0..;
    }

    /// Response of `DescribeTransactions`.
    pub struct DescribeTransactionsResponse<'a> {
        throttle_time_ms: i32, 0..;
        transaction_states: Vec<TransactionState<'a>>, 0..;
    }

    /// In [`DescribeTransactionsResponse`]: `transaction_states`.
    pub struct TransactionState<'a> {
        error_code: i16, 0..;
        transactional_id: Cow<'a, str>, 0..;
        transaction_state: Cow<'a, str>, 0..;
        transaction_timeout_ms: i32, 0..;
        transaction_start_time_ms: i64, 0..;
        producer_id: i64, 0..;
        producer_epoch: i16, 0..;
        topics: Vec<TopicData<'a>>, 0..;
    }

    /// In [`TransactionState`]: `topics`.
    pub struct TopicData<'a> {
        topic: Cow<'a, str>, 0..;
        partitions: Vec<i32>, 0..;
    }
}

api!(DescribeTransactions: DescribeTransactionsRequest<'a> => DescribeTransactionsResponse<'r>);
