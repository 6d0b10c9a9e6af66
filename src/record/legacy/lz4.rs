//! LZ4 as message format 0 has it: Kafka computed the checksum of the frame's header over four bytes too many, the magic,
//! and reads such frames without looking at it (`Lz4BlockInputStream`, `ignoreFlagDescriptorChecksum`).

use std::borrow::Cow;

/// Where the frame's flags stand, behind the magic; the header's checksum covers everything from here to itself.
const FLAGS_AT: usize = 4;
/// Flags: the frame names its content's size, or a dictionary.
const HAS_SIZE: u8 = 1 << 3;
const HAS_DICTIONARY: u8 = 1;

/// The frame with the checksum of its header as the LZ4 frame format has it; what is no frame is left as it is.
pub(super) fn with_right_checksum(frame: &[u8]) -> Cow<'_, [u8]> {
    let Some(&flags) = frame.get(FLAGS_AT) else { return Cow::Borrowed(frame) };
    let size = if flags & HAS_SIZE == 0 { 0 } else { 8 };
    let dictionary = if flags & HAS_DICTIONARY == 0 { 0 } else { 4 };
    let at = FLAGS_AT + 2 + size + dictionary;
    let (Some(covered), Some(&stored)) = (frame.get(FLAGS_AT..at), frame.get(at)) else {
        return Cow::Borrowed(frame);
    };
    let [_, _, right, _] = short_xxh32(covered).to_be_bytes();
    if stored == right {
        return Cow::Borrowed(frame);
    }
    let mut frame = frame.to_vec();
    if let Some(byte) = frame.get_mut(at) {
        *byte = right;
    }
    Cow::Owned(frame)
}

/// xxHash32 with seed 0 of fewer than 16 bytes, which is all that a frame's header has.
fn short_xxh32(bytes: &[u8]) -> u32 {
    const PRIMES: [u32; 5] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1];
    debug_assert!(bytes.len() < 16);
    let [first, second, third, fourth, fifth] = PRIMES;
    let mut hash = fifth.wrapping_add(u32::try_from(bytes.len()).unwrap_or(0));
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(third));
        hash = hash.rotate_left(17).wrapping_mul(fourth);
    }
    for byte in rest {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(fifth));
        hash = hash.rotate_left(11).wrapping_mul(first);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(second);
    hash = (hash ^ (hash >> 13)).wrapping_mul(third);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_values_of_the_hash() {
        // Of the reference implementation.
        assert_eq!(short_xxh32(b""), 0x02CC_5D05);
        assert_eq!(short_xxh32(b"abc"), 0x32D1_53FF);
    }

    #[test]
    fn a_header_of_any_shape_gets_its_checksum_or_is_left() {
        // What Java's clients write for format 2, whose checksum is right.
        let right = [0x04, 0x22, 0x4D, 0x18, 0x60, 0x40, 0x82, 1, 2, 3];
        assert!(matches!(with_right_checksum(&right), Cow::Borrowed(same) if same == right));
        let mut wrong = right;
        wrong[6] = 0x1A;
        assert_eq!(with_right_checksum(&wrong).as_ref(), right);
        for length in 0..right.len() {
            with_right_checksum(&right[..length]);
        }
        with_right_checksum(&[0xFF; 18]);
        with_right_checksum(&[0xFF; 19]);
    }
}
