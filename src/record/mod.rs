//! Kafka's bytes: record batches of message format 2, read, checked, written and stamped; formats 0 and 1, read and checked.
//!
//! Lives here: batch headers, records, varints, CRC-32C, the five codecs, walking batches in memory, building batches.
//! Not here: files, sockets and the clock (bytes come in and go out); which batch may be appended when (log).
//! Holds always: no input panics, allocates more than its limit or reads past its end; what [`BatchBuilder`] and
//! [`encode_batch`] write, [`BatchRef`] reads back; a record's offset lies inside its batch's range.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::cast_possible_truncation))]

mod batch;
mod batches;
mod builder;
mod compress;
mod compression;
mod control;
mod crc;
mod decompress;
mod error;
mod header;
mod legacy;
#[expect(
    clippy::module_inception,
    reason = "the room is named for what it holds, the file for the one thing in it"
)]
mod record;
mod stored;
mod varint;

pub use batch::{BatchMut, BatchRef};
pub use batches::Batches;
pub use builder::{
    BatchBuilder, BatchOptions, ProducerStamp, batch_size, batch_size_bound, encode_batch,
    encoded_record_size,
};
pub use compress::{Compressor, compress};
pub use compression::{Codec, Compression, CompressionError};
pub use control::{ControlType, EndTxnMarker, control_type, end_txn_marker};
pub use crc::{Crc32c, crc32, crc32c, crc32c_of};
pub use decompress::{Scratch, decompress};
pub use error::BatchError;
pub use header::{
    BASE_OFFSET_AT, BATCH_LENGTH_AT, BatchHeader, CRC_AT, CRC_START, HEADER_BYTES, LEADER_EPOCH_AT,
    LOG_OVERHEAD_BYTES, MAGIC_AT, MAX_BATCH_BYTES, MIN_BATCH_LENGTH, MIN_LENGTH, PROBE_BYTES, Probe,
    TimestampType, probe, stamp_header,
};
pub use legacy::{OldMessage, OldMessages, is_legacy, message_format};
pub(crate) use record::RecordsPlace;
pub use record::{Header, Headers, OwnedRecord, Record, RecordHeaderRef, RecordRef, Records};
pub(crate) use stored::{check_stored, stored_records, unpack_old};

#[cfg(test)]
mod tests;
