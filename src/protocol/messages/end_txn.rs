//! Commits or aborts a transaction.

message! {
    /// Request of `EndTxn`.
    pub struct EndTxnRequest<'a> {
        transactional_id: &'a str, 0..;
        producer_id: i64, 0..;
        producer_epoch: i16, 0..;
        committed: bool, 0..;
    }

    /// Response of `EndTxn`.
    pub struct EndTxnResponse {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        producer_id: i64 = -1, 5..;
        producer_epoch: i16 = -1, 5..;
    }
}

api!(EndTxn: EndTxnRequest<'a> => EndTxnResponse);
