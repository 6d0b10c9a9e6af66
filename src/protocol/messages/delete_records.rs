//! Drops the oldest records of partitions.

use std::borrow::Cow;

message! {
    /// Request of `DeleteRecords`.
    pub struct DeleteRecordsRequest<'a> {
        topics: Vec<DeleteRecordsTopic<'a>>, 0..;
        timeout_ms: i32, 0..;
    }

    /// In [`DeleteRecordsRequest`]: `topics`.
    pub struct DeleteRecordsTopic<'a> {
        name: &'a str, 0..;
        partitions: Vec<DeleteRecordsPartition>, 0..;
    }

    /// In [`DeleteRecordsTopic`]: `partitions`.
    pub struct DeleteRecordsPartition {
        partition_index: i32, 0..;
        offset: i64, 0..;
    }

    /// Response of `DeleteRecords`.
    pub struct DeleteRecordsResponse<'a> {
        throttle_time_ms: i32, 0..;
        topics: Vec<DeleteRecordsTopicResult<'a>>, 0..;
    }

    /// In [`DeleteRecordsResponse`]: `topics`.
    pub struct DeleteRecordsTopicResult<'a> {
        name: Cow<'a, str>, 0..;
        partitions: Vec<DeleteRecordsPartitionResult>, 0..;
    }

    /// In [`DeleteRecordsTopicResult`]: `partitions`.
    pub struct DeleteRecordsPartitionResult {
        partition_index: i32, 0..;
        low_watermark: i64, 0..;
        error_code: i16, 0..;
    }
}

api!(DeleteRecords: DeleteRecordsRequest<'a> => DeleteRecordsResponse<'r>);
