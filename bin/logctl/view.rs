//! One record with everything that can be printed of it.

use stratalog::{
    Offset, Timestamp,
    record::{BatchRef, Codec, ControlType, Headers, RecordRef, TimestampType, control_type},
};

use crate::target::Target;

/// A record, what its batch says of it, and where it lies.
#[derive(Debug, Clone)]
pub(crate) struct View<'a> {
    pub(crate) topic: Option<&'a str>,
    pub(crate) partition: Option<u32>,
    pub(crate) offset: Offset,
    pub(crate) timestamp: Timestamp,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: Headers<'a>,
    pub(crate) header_count: usize,
    pub(crate) batch: BatchView,
    pub(crate) ends: Ends,
}

/// Where the log begins and ends when a record is printed; -1 where that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) start: i64,
    /// The end of what is decided: the first offset of a transaction that is open, or `end`.
    pub(crate) stable: i64,
    pub(crate) end: i64,
}

impl Default for Ends {
    fn default() -> Self {
        Self { start: -1, stable: -1, end: -1 }
    }
}

/// What the records of a batch have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchView {
    pub(crate) base_offset: Offset,
    pub(crate) leader_epoch: i32,
    pub(crate) timestamp_type: TimestampType,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    /// `None` for a number that no codec has.
    pub(crate) codec: Option<Codec>,
    pub(crate) is_transactional: bool,
    pub(crate) is_control: bool,
}

impl BatchView {
    pub(crate) fn new(batch: &BatchRef<'_>) -> Self {
        Self {
            base_offset: batch.base_offset(),
            leader_epoch: batch.leader_epoch(),
            timestamp_type: batch.timestamp_type(),
            producer_id: batch.producer_id(),
            producer_epoch: batch.producer_epoch(),
            codec: batch.codec().ok(),
            is_transactional: batch.is_transactional(),
            is_control: batch.is_control(),
        }
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(target: &'a Target, batch: BatchView, record: &RecordRef<'a>) -> Self {
        Self {
            topic: target.topic(),
            partition: target.partition_number(),
            offset: record.offset(),
            timestamp: record.timestamp(),
            key: record.key(),
            value: record.value(),
            headers: record.headers(),
            header_count: record.header_count(),
            batch,
            ends: Ends::default(),
        }
    }

    /// What a control record says, where it is one and can be read.
    pub(crate) fn control(&self) -> Option<ControlType> {
        self.key.filter(|_| self.batch.is_control).and_then(|key| control_type(key).ok())
    }
}

/// `create` or `append`: whose clock the timestamp comes from.
pub(crate) fn timestamp_type_name(kind: TimestampType) -> &'static str {
    match kind {
        TimestampType::CreateTime => "create",
        TimestampType::LogAppendTime => "append",
    }
}
