//! The message formats before 2: told apart by the byte they share with it, and named; reading them is not here yet.

use super::{CRC_AT, PROBE_BYTES, crc32, probe};

/// Where the checksum of an old message stands, and where what it covers begins.
const OLD_CRC_AT: usize = 12;
const OLD_CRC_START: usize = 16;

/// True for message formats 0 and 1, which Kafka wrote before 0.11.
pub fn is_legacy(magic: i8) -> bool {
    matches!(magic, 0 | 1)
}

/// The format of the whole message at the front of `bytes`, where it is an old one and its CRC-32 says so: bytes that
/// merely have the right number in the right place are not taken for one.
pub(crate) fn old_message_at(bytes: &[u8]) -> Option<i8> {
    let found = probe(bytes).ok().flatten().filter(|found| is_legacy(found.magic))?;
    let message = bytes.get(..usize::try_from(found.size_bytes).ok()?)?;
    let stored = message.get(OLD_CRC_AT..)?.first_chunk::<4>()?;
    let covered = message.get(OLD_CRC_START..)?;
    (crc32(covered) == u32::from_be_bytes(*stored)).then_some(found.magic)
}

const _: () = assert!(OLD_CRC_START < PROBE_BYTES && OLD_CRC_AT < CRC_AT);

/// Whose message format has this number, for people.
pub fn message_format(magic: i8) -> &'static str {
    match magic {
        0 => "of Kafka before 0.10",
        1 => "of Kafka 0.10",
        2 => "of Kafka since 0.11",
        _ => "unknown",
    }
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
        assert_eq!(old_message_at(&message), Some(0));
        for at in 8..message.len() {
            let mut other = message.clone();
            other[at] ^= 1;
            assert_eq!(old_message_at(&other), None, "byte {at}");
            assert_eq!(old_message_at(&message[..at]), None, "cut at {at}");
        }
        assert_eq!(old_message_at(&[0; 64]), None);
    }

    #[test]
    fn the_error_names_the_format() {
        assert!(is_legacy(0) && is_legacy(1) && !is_legacy(2) && !is_legacy(-1));
        let text = BatchError::UnsupportedMagic { magic: 1 }.to_string();
        assert!(text.contains("message format 1"), "{text}");
    }
}
