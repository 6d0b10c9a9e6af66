//! Whatever batch stands in a file, of message format 2 or of those before it, where who reads does not care which.

use super::{BatchError, BatchHeader, BatchRef, OldMessage, Records, Scratch, legacy};

/// Checks the CRC of the whole batch at the front of `bytes`, whose header was read by [`BatchHeader::parse_stored`].
#[inline]
pub(crate) fn check_stored(header: &BatchHeader, bytes: &[u8]) -> Result<(), BatchError> {
    if header.is_legacy() { check_old(header, bytes) } else { BatchRef::parse(bytes)?.check_crc() }
}

#[cold]
fn check_old(header: &BatchHeader, bytes: &[u8]) -> Result<(), BatchError> {
    let (stored, computed) = (header.crc(), legacy::computed_crc(old_bytes(header, bytes)?));
    if stored == computed { Ok(()) } else { Err(BatchError::CrcMismatch { stored, computed }) }
}

fn old_bytes<'a>(header: &BatchHeader, bytes: &'a [u8]) -> Result<&'a [u8], BatchError> {
    let (needed_bytes, available_bytes) = (u64::from(header.size_bytes()), bytes.len() as u64);
    let whole = usize::try_from(needed_bytes).ok().and_then(|size| bytes.get(..size));
    whole.ok_or(BatchError::TooShort { needed_bytes, available_bytes })
}

/// The records of the whole batch at the front of `bytes`, and the header that they have in format 2. The CRC of an old
/// message is checked with it.
pub(crate) fn stored_records<'s>(
    header: &BatchHeader,
    bytes: &'s [u8],
    scratch: &'s mut Scratch,
) -> Result<(BatchHeader, Records<'s>), BatchError> {
    if header.is_legacy() {
        let header = unpack_old(bytes, scratch)?;
        return Ok((header, Records::new(scratch.unpacked(), &header)));
    }
    let batch = BatchRef::parse(bytes)?;
    Ok((*batch.header(), batch.records(scratch)?))
}

/// Makes the old message at the front of `bytes` a records area of format 2 in `scratch`; and what its header would be.
#[cold]
pub(crate) fn unpack_old(bytes: &[u8], scratch: &mut Scratch) -> Result<BatchHeader, BatchError> {
    legacy::unpack_as_batch(&OldMessage::parse(bytes)?, scratch)
}
