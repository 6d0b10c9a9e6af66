//! Adds partitions to a transaction.

use std::borrow::Cow;

message! {
    /// Request of `AddPartitionsToTxn`.
    pub struct AddPartitionsToTxnRequest<'a> {
        transactions: Vec<AddPartitionsToTxnTransaction<'a>>, 4..;
        v3_and_below_transactional_id: &'a str, 0..=3;
        v3_and_below_producer_id: i64, 0..=3;
        v3_and_below_producer_epoch: i16, 0..=3;
        v3_and_below_topics: Vec<AddPartitionsToTxnTopic<'a>>, 0..=3;
    }

    /// In [`AddPartitionsToTxnRequest`]: `transactions`.
    pub struct AddPartitionsToTxnTransaction<'a> {
        transactional_id: &'a str, 4..;
        producer_id: i64, 4..;
        producer_epoch: i16, 4..;
        verify_only: bool, 4..;
        topics: Vec<AddPartitionsToTxnTopic<'a>>, 4..;
    }

    /// In [`AddPartitionsToTxnTransaction`]: `topics`.
    pub struct AddPartitionsToTxnTopic<'a> {
        name: &'a str, 0..;
        partitions: Vec<i32>, 0..;
    }

    /// Response of `AddPartitionsToTxn`.
    pub struct AddPartitionsToTxnResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 4..;
        results_by_transaction: Vec<AddPartitionsToTxnResult<'a>>, 4..;
        results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult<'a>>, 0..=3;
    }

    /// In [`AddPartitionsToTxnResponse`]: `results_by_transaction`.
    pub struct AddPartitionsToTxnResult<'a> {
        transactional_id: Cow<'a, str>, 4..;
        topic_results: Vec<AddPartitionsToTxnTopicResult<'a>>, 4..;
    }

    /// In [`AddPartitionsToTxnResult`]: `topic_results`.
    pub struct AddPartitionsToTxnTopicResult<'a> {
        name: Cow<'a, str>, 0..;
        results_by_partition: Vec<AddPartitionsToTxnPartitionResult>, 0..;
    }

    /// In [`AddPartitionsToTxnTopicResult`]: `results_by_partition`.
    pub struct AddPartitionsToTxnPartitionResult {
        partition_index: i32, 0..;
        partition_error_code: i16, 0..;
    }
}

api!(AddPartitionsToTxn: AddPartitionsToTxnRequest<'a> => AddPartitionsToTxnResponse<'r>);
