//! Gives a producer its id and epoch.

message! {
    /// Request of `InitProducerId`.
    pub struct InitProducerIdRequest<'a> {
        transactional_id: Option<&'a str> = Some(""), 0..;
        transaction_timeout_ms: i32, 0..;
        producer_id: i64 = -1, 3..;
        producer_epoch: i16 = -1, 3..;
        enable2_pc: bool, 6..;
        keep_prepared_txn: bool, 6..;
    }

    /// Response of `InitProducerId`.
    pub struct InitProducerIdResponse {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        producer_id: i64 = -1, 0..;
        producer_epoch: i16, 0..;
        ongoing_txn_producer_id: i64 = -1, 6..;
        ongoing_txn_producer_epoch: i16 = -1, 6..;
    }
}

api!(InitProducerId: InitProducerIdRequest<'a> => InitProducerIdResponse);
