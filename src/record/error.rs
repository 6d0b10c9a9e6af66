//! Why bytes are not a batch that can be read or appended.

use super::{Codec, legacy};

/// Why bytes are not a batch that can be read, or a batch not one that may be appended.
///
/// Nothing is changed by the call that returns it, unless that call says so.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchError {
    /// The bytes end before the batch does.
    #[error("{needed_bytes} bytes are needed, {available_bytes} are there")]
    TooShort {
        /// How many bytes the batch (or its header) takes.
        needed_bytes: u64,
        /// How many there are.
        available_bytes: u64,
    },
    /// The length field cannot be right: too small for the format, negative, or past 2 GiB.
    #[error("the batch declares a length of {length}, which no batch has")]
    BadLength {
        /// The length as stored: what follows the field, so the batch's size less 12.
        length: i32,
    },
    /// Not message format 2.
    #[error("message format {magic} ({}) is not supported here", legacy::message_format(*magic))]
    UnsupportedMagic {
        /// The format's number.
        magic: i8,
    },
    /// The batch is not what was written.
    #[error("the stored CRC is {stored:#010x}, the batch's bytes give {computed:#010x}")]
    CrcMismatch {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The number of records does not go with the range of offsets.
    #[error("the batch declares {count} records for a last offset delta of {last_offset_delta}")]
    BadCount {
        /// The number of records that the header declares.
        count: i32,
        /// The last offset less the first, as the header has it.
        last_offset_delta: i32,
    },
    /// The records area holds more or fewer records than the header declares.
    #[error("the batch declares {declared} records, {}", if *found < *declared { format!("holds {found}") } else { "more bytes follow them".to_owned() })]
    CountMismatch {
        /// The number of records that the header declares.
        declared: u32,
        /// The number of whole records found, or `declared` where bytes are left over after the last.
        found: u32,
    },
    /// The batch's offsets are negative or run past the largest offset.
    #[error("base offset {base_offset} with last offset delta {last_offset_delta} is no range of offsets")]
    BadOffsets {
        /// The base offset as stored.
        base_offset: i64,
        /// The last offset delta as stored.
        last_offset_delta: i32,
    },
    /// A batch begins before the end of what comes before it.
    #[error("offsets go back: the batch begins at {base_offset}, the offsets before it end at {end}")]
    OffsetsGoBack {
        /// The first offset of the batch.
        base_offset: i64,
        /// The end, exclusive, of the offsets before it.
        end: i64,
    },
    /// A batch leaps over offsets to the end of its segment's, or past it.
    #[error(
        "offsets leap: the batch holds {base_offset} to {last_offset}, the segment's offsets end at {end}"
    )]
    OffsetsLeap {
        /// The first offset of the batch.
        base_offset: i64,
        /// The last offset of the batch.
        last_offset: i64,
        /// The end, exclusive, of the segment's offsets.
        end: i64,
    },
    /// The compression bits of the attributes name no codec (5, 6 or 7).
    #[error("compression codec {id} does not exist")]
    UnknownCodec {
        /// The three bits.
        id: u8,
    },
    /// The codec is not built in: the crate's feature of its name is off.
    #[error("this build has no {codec}: enable the feature `{codec}`")]
    CodecMissing {
        /// The codec.
        codec: Codec,
    },
    /// The compressed records cannot be unpacked, or records cannot be packed.
    #[error("the {codec} stream is broken: {reason}")]
    Decompress {
        /// The codec.
        codec: Codec,
        /// What it found.
        reason: String,
    },
    /// The compressor failed (out of memory).
    #[error("{codec} cannot compress: {reason}")]
    Compress {
        /// The codec.
        codec: Codec,
        /// What it said.
        reason: String,
    },
    /// The compressed records unpack to more than the limit. Unpacking stopped there.
    #[error("the records unpack to more than {limit} bytes")]
    TooLargeDecompressed {
        /// The limit in bytes, of the [`Scratch`](super::Scratch) or the call.
        limit: u64,
    },
    /// A record inside the batch is malformed.
    #[error("record {index} of the batch is malformed: {reason}")]
    BadRecord {
        /// Its index among the records of the batch, from 0.
        index: u32,
        /// What is wrong.
        reason: &'static str,
    },
    /// A message of format 0 or 1 is malformed.
    #[error("the message is malformed: {reason}")]
    BadMessage {
        /// What is wrong.
        reason: &'static str,
    },
    /// Control batches are written by transaction coordinators, not by producers.
    #[error("a control batch cannot be appended by a producer")]
    ControlBatch,
    /// A batch has a producer's id and no epoch or sequence number to go with it.
    #[error("producer {producer_id} with epoch {epoch} and sequence {sequence}: neither may be negative")]
    BadProducer {
        /// The producer's id.
        producer_id: i64,
        /// Its epoch as stored.
        epoch: i16,
        /// The base sequence as stored.
        sequence: i32,
    },
    /// The key or value of a control record is malformed.
    #[error("the control record is malformed: {reason}")]
    BadControlRecord {
        /// What is wrong.
        reason: &'static str,
    },
    /// A batch holds at least one record.
    #[error("a batch without records cannot be written")]
    NoRecords,
    /// The records make a batch larger than the format allows (2 GiB), or more than `i32::MAX` records.
    #[error("a record or batch of {size_bytes} bytes is larger than the format allows")]
    TooLarge {
        /// The size it would have.
        size_bytes: u64,
    },
    /// The buffer handed in is smaller than the batch.
    #[error("the batch needs more room than the {available_bytes} bytes given")]
    NoRoom {
        /// The room there was.
        available_bytes: u64,
    },
}
