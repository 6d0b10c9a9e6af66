//! Lists the producers of partitions.

use std::borrow::Cow;

message! {
    /// Request of `DescribeProducers`.
    pub struct DescribeProducersRequest<'a> {
        topics: Vec<TopicRequest<'a>>, 0..;
    }

    /// In [`DescribeProducersRequest`]: `topics`.
    pub struct TopicRequest<'a> {
        name: &'a str, 0..;
        partition_indexes: Vec<i32>, 0..;
    }

    /// Response of `DescribeProducers`.
    pub struct DescribeProducersResponse<'a> {
        throttle_time_ms: i32, 0..;
        topics: Vec<TopicResponse<'a>>, 0..;
    }

    /// In [`DescribeProducersResponse`]: `topics`.
    pub struct TopicResponse<'a> {
        name: Cow<'a, str>, 0..;
        partitions: Vec<PartitionResponse<'a>>, 0..;
    }

    /// In [`TopicResponse`]: `partitions`.
    pub struct PartitionResponse<'a> {
        partition_index: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>>, 0..;
        active_producers: Vec<ProducerState>, 0..;
    }

    /// In [`PartitionResponse`]: `active_producers`.
    pub struct ProducerState {
        producer_id: i64, 0..;
        producer_epoch: i32, 0..;
        last_sequence: i32 = -1, 0..;
        last_timestamp: i64 = -1, 0..;
        coordinator_epoch: i32, 0..;
        current_txn_start_offset: i64 = -1, 0..;
    }
}

api!(DescribeProducers: DescribeProducersRequest<'a> => DescribeProducersResponse<'r>);
