//! Writes the end of a transaction into partitions (between brokers).

use std::borrow::Cow;

message! {
    /// Request of `WriteTxnMarkers`.
    pub struct WriteTxnMarkersRequest<'a> {
        markers: Vec<WritableTxnMarker<'a>>, 0..;
    }

    /// In [`WriteTxnMarkersRequest`]: `markers`.
    pub struct WritableTxnMarker<'a> {
        producer_id: i64, 0..;
        producer_epoch: i16, 0..;
        transaction_result: bool, 0..;
        topics: Vec<WritableTxnMarkerTopic<'a>>, 0..;
        coordinator_epoch: i32, 0..;
        transaction_version: i8, 2..;
    }

    /// In [`WritableTxnMarker`]: `topics`.
    pub struct WritableTxnMarkerTopic<'a> {
        name: &'a str, 0..;
        partition_indexes: Vec<i32>, 0..;
    }

    /// Response of `WriteTxnMarkers`.
    pub struct WriteTxnMarkersResponse<'a> {
        markers: Vec<WritableTxnMarkerResult<'a>>, 0..;
    }

    /// In [`WriteTxnMarkersResponse`]: `markers`.
    pub struct WritableTxnMarkerResult<'a> {
        producer_id: i64, 0..;
        topics: Vec<WritableTxnMarkerTopicResult<'a>>, 0..;
    }

    /// In [`WritableTxnMarkerResult`]: `topics`.
    pub struct WritableTxnMarkerTopicResult<'a> {
        name: Cow<'a, str>, 0..;
        partitions: Vec<WritableTxnMarkerPartitionResult>, 0..;
    }

    /// In [`WritableTxnMarkerTopicResult`]: `partitions`.
    pub struct WritableTxnMarkerPartitionResult {
        partition_index: i32, 0..;
        error_code: i16, 0..;
    }
}

api!(WriteTxnMarkers: WriteTxnMarkersRequest<'a> => WriteTxnMarkersResponse<'r>);
