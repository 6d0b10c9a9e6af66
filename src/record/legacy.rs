//! The message formats before 2: told apart by the byte they share with it, and named; reading them is not here yet.

use super::{BATCH_LENGTH_AT, LOG_OVERHEAD_BYTES, crc32};

/// True for message formats 0 and 1, which Kafka wrote before 0.11.
pub fn is_legacy(magic: i8) -> bool {
    matches!(magic, 0 | 1)
}

/// The name of a message format, for people.
pub fn message_format(magic: i8) -> &'static str {
    match magic {
        0 => "message format 0 (Kafka before 0.10)",
        1 => "message format 1 (Kafka 0.10)",
        2 => "message format 2",
        _ => "an unknown message format (its number is none of 0, 1, 2)",
    }
}

/// Where a message's CRC begins, and its bytes from its magic on, which the CRC covers.
const MESSAGE_CRC_AT: usize = 12;
const MESSAGE_AT: usize = MESSAGE_CRC_AT + 4;

/// The magic of the whole message of format 0 or 1 that begins here, if one does and its CRC matches: torn batches have
/// a zero there too, but not the checksum.
pub(crate) fn legacy_message(bytes: &[u8]) -> Option<i8> {
    let size = u32::from_be_bytes(*bytes.get(BATCH_LENGTH_AT..)?.first_chunk()?);
    let end = LOG_OVERHEAD_BYTES.checked_add(usize::try_from(size).ok()?)?;
    let crc = u32::from_be_bytes(*bytes.get(MESSAGE_CRC_AT..)?.first_chunk()?);
    let covered = bytes.get(MESSAGE_AT..end)?;
    let magic = covered.first()?.cast_signed();
    (is_legacy(magic) && crc32(covered) == crc).then_some(magic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BatchError;

    #[test]
    fn a_message_is_known_by_its_checksum() {
        let body = [0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1, b'x'];
        let mut message = vec![0; 8];
        message.extend_from_slice(&15_u32.to_be_bytes());
        message.extend_from_slice(&crc32(&body).to_be_bytes());
        message.extend_from_slice(&body);
        assert_eq!(legacy_message(&message), Some(0));
        for at in 8..message.len() {
            let mut other = message.clone();
            other[at] ^= 1;
            assert_eq!(legacy_message(&other), None, "byte {at}");
            assert_eq!(legacy_message(&message[..at]), None, "cut at {at}");
        }
        assert_eq!(legacy_message(&[0; 64]), None);
    }

    #[test]
    fn the_error_names_the_format() {
        assert!(is_legacy(0) && is_legacy(1) && !is_legacy(2) && !is_legacy(-1));
        let text = BatchError::UnsupportedMagic { magic: 1 }.to_string();
        assert!(text.contains("message format 1"), "{text}");
    }
}
