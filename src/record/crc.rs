//! Checksums: CRC-32C for message format 2, CRC-32 (IEEE) for the formats before it. The two must not be mixed up.

use crc_fast::{CrcAlgorithm, Digest};

/// The CRC-32C (Castagnoli) of `bytes`, as message format 2 stores it.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The CRC-32 (IEEE, zlib's) of `bytes`, as message formats 0 and 1 store it.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The CRC-32C of several slices as if they were one.
pub fn crc32c_of(parts: &[&[u8]]) -> u32 {
    let mut crc = Crc32c::new();
    for part in parts {
        crc.update(part);
    }
    crc.value()
}

/// A CRC-32C over bytes that come in pieces.
#[derive(Clone, Debug)]
pub struct Crc32c(Digest);

impl Crc32c {
    /// The checksum of no bytes yet.
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Takes in the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far; more may follow.
    pub fn value(&self) -> u32 {
        let value = self.0.finalize();
        u32::try_from(value & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_values_of_both_checksums() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn pieces_give_the_checksum_of_the_whole() {
        let bytes: Vec<u8> = (0..5000u32).map(|i| i.to_le_bytes()[0]).collect();
        for cut in [0, 1, 7, 40, 1023, 4096, 5000] {
            let (front, back) = bytes.split_at(cut);
            assert_eq!(crc32c_of(&[front, back]), crc32c(&bytes), "cut at {cut}");
        }
        assert_ne!(crc32c_of(&[b"ab", b"c"]), crc32c(b"acb"));
    }
}
