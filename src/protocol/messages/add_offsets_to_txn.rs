//! Adds a group's positions to a transaction.

message! {
    /// Request of `AddOffsetsToTxn`.
    pub struct AddOffsetsToTxnRequest<'a> {
        transactional_id: &'a str, 0..;
        producer_id: i64, 0..;
        producer_epoch: i16, 0..;
        group_id: &'a str, 0..;
    }

    /// Response of `AddOffsetsToTxn`.
    pub struct AddOffsetsToTxnResponse {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
    }
}

api!(AddOffsetsToTxn: AddOffsetsToTxnRequest<'a> => AddOffsetsToTxnResponse);
