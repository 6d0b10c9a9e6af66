//! Old messages as a batch of format 2 with the same records, so that whatever reads records reads these too.

use super::{OldMessage, OldMessages};
use crate::record::{
    BatchError, BatchHeader, Codec, HEADER_BYTES, Record, Scratch, TimestampType,
    builder::{Refused, write_record},
    encoded_record_size,
    header::LOG_APPEND_TIME_BIT,
};

impl OldMessage<'_> {
    /// Makes `out` a batch of format 2, not compressed, with the records of this message or of those that it wraps:
    /// same offsets, keys, values and timestamps, no headers, producer or epoch. Its last offset is the message's.
    ///
    /// All CRCs are checked. Wrapped messages are unpacked within the limit of `scratch`; after an error what is in
    /// `out` means nothing.
    pub fn to_batch(&self, scratch: &mut Scratch, out: &mut Vec<u8>) -> Result<(), BatchError> {
        self.check_crc()?;
        match self.codec()? {
            Codec::None => write_batch(self, OldMessages::of(*self), out).map(drop),
            codec => {
                let (unpacked, _) = self.unpack(codec, scratch)?;
                write_batch(self, OldMessages::wrapped(self, unpacked)?, out).map(drop)
            }
        }
    }
}

/// The same with the records area alone left in `scratch`, where unpacked records are; and the header of the batch.
pub(in crate::record) fn unpack_as_batch(
    message: &OldMessage<'_>,
    scratch: &mut Scratch,
) -> Result<BatchHeader, BatchError> {
    message.check_crc()?;
    let (header, out) = match message.codec()? {
        Codec::None => {
            let out = scratch.room();
            (write_batch(message, OldMessages::of(*message), out)?, out)
        }
        codec => {
            let (unpacked, out) = message.unpack(codec, scratch)?;
            (write_batch(message, OldMessages::wrapped(message, unpacked)?, out)?, out)
        }
    };
    out.drain(..HEADER_BYTES.min(out.len()));
    Ok(header)
}

/// Makes `out` the batch of these messages, the last of which has the offset of `whole` or a smaller one.
fn write_batch(
    whole: &OldMessage<'_>,
    messages: OldMessages<'_>,
    out: &mut Vec<u8>,
) -> Result<BatchHeader, BatchError> {
    out.clear();
    out.resize(HEADER_BYTES, 0);
    let mut header: Option<BatchHeader> = None;
    for message in messages {
        let message = message?;
        message.check_crc()?;
        let header = match &mut header {
            Some(header) => {
                header.record_count =
                    header.record_count.checked_add(1).ok_or(too_large(out.len() as u64))?;
                header.max_timestamp = header.max_timestamp.max(message.timestamp);
                header
            }
            None => header.insert(BatchHeader::first(message.offset, -1, message.timestamp())),
        };
        let delta =
            i32::try_from(message.offset.since(header.base_offset)).map_err(|_| bad_offsets(whole))?;
        let record = Record { key: message.key, value: message.value, ..Record::default() };
        let timestamp_delta = message.timestamp.wrapping_sub(header.base_timestamp);
        let from = out.len();
        let size = encoded_record_size(&record, timestamp_delta, delta);
        let end = usize::try_from(size).ok().and_then(|size| from.checked_add(size));
        out.resize(end.ok_or(too_large(size))?, 0);
        let room = out.get_mut(from..).unwrap_or_default();
        match write_record(room, &record, timestamp_delta, delta) {
            Ok(written) => out.truncate(from + written),
            Err(Refused::TooLarge(size)) => return Err(too_large(size)),
            Err(Refused::NoRoom) => return Err(BatchError::NoRoom { available_bytes: size }),
        }
    }
    let mut header = header.ok_or(BatchError::BadMessage { reason: "it wraps no message" })?;
    let last_offset_delta = i32::try_from(whole.offset.since(header.base_offset));
    header.last_offset_delta = last_offset_delta.map_err(|_| bad_offsets(whole))?;
    if whole.timestamp_type == Some(TimestampType::LogAppendTime) {
        header.attributes |= LOG_APPEND_TIME_BIT;
        header.max_timestamp = whole.timestamp;
    }
    header.seal(out)
}

const fn too_large(size_bytes: u64) -> BatchError {
    BatchError::TooLarge { size_bytes }
}

const fn bad_offsets(whole: &OldMessage<'_>) -> BatchError {
    BatchError::BadOffsets { base_offset: whole.offset.value(), last_offset_delta: -1 }
}
