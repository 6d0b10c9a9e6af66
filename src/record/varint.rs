//! Zigzag varints: seven bits a byte, least first, the sign folded into the lowest bit (protobuf's `sint32`, `sint64`).
//!
//! Padded forms (`80 00` for 0) are read, as Kafka reads them; more bytes or bits than the type has are refused.

/// The most bytes that a 32-bit varint takes.
pub(super) const MAX_VARINT_BYTES: usize = 5;
/// The most bytes that a 64-bit varint takes.
pub(super) const MAX_VARLONG_BYTES: usize = 10;

#[inline]
pub(super) const fn zigzag(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)).cast_unsigned()
}

#[inline]
pub(super) const fn zigzag_long(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[inline]
const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Takes a varint off the front of `bytes`: its value, which fits an `i32`, and what follows.
///
/// The value is given as wide as the slice's own parts, so that the three travel in registers.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "five calls a record; left to itself the compiler passes them by memory"
)]
pub(super) fn read_varint(bytes: &[u8]) -> Option<(i64, &[u8])> {
    match bytes {
        [a, rest @ ..] if *a < 0x80 => Some((unzigzag(u64::from(*a)), rest)),
        [a, b, rest @ ..] if *b < 0x80 => Some((unzigzag(u64::from(*a & 0x7F) | u64::from(*b) << 7), rest)),
        _ => read_long_varint(bytes),
    }
}

#[inline(never)]
fn read_long_varint(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (value, rest) = read_groups(bytes, MAX_VARINT_BYTES)?;
    Some((unzigzag(u64::from(u32::try_from(value).ok()?)), rest))
}

/// Takes a 64-bit varint off the front of `bytes`: its value and what follows.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as for `read_varint`")]
pub(super) fn read_varlong(bytes: &[u8]) -> Option<(i64, &[u8])> {
    match bytes {
        [a, rest @ ..] if *a < 0x80 => Some((unzigzag(u64::from(*a)), rest)),
        [a, b, rest @ ..] if *b < 0x80 => Some((unzigzag(u64::from(*a & 0x7F) | u64::from(*b) << 7), rest)),
        _ => read_long_varlong(bytes),
    }
}

#[inline(never)]
fn read_long_varlong(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (value, rest) = read_groups(bytes, MAX_VARLONG_BYTES)?;
    Some((unzigzag(value), rest))
}

/// Takes up to `most` groups of seven bits; refuses bits beyond the 64th.
fn read_groups(bytes: &[u8], most: usize) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut shift = 0u32;
    let mut rest = bytes;
    for _ in 0..most {
        let (byte, after) = rest.split_first()?;
        rest = after;
        let group = u64::from(*byte & 0x7F);
        if shift == 63 && group > 1 {
            return None;
        }
        value |= group << shift;
        if *byte < 0x80 {
            return Some((value, rest));
        }
        shift += 7;
    }
    None
}

/// How many bytes the varint of `value` takes, 1 to 5.
#[inline]
pub(super) const fn varint_bytes(value: i32) -> usize {
    groups(zigzag(value) as u64)
}

/// How many bytes the 64-bit varint of `value` takes, 1 to 10.
#[inline]
pub(super) const fn varlong_bytes(value: i64) -> usize {
    groups(zigzag_long(value))
}

#[inline]
pub(super) const fn groups(value: u64) -> usize {
    // Most are one or two; counting bits takes longer than two comparisons.
    if value < 0x80 {
        return 1;
    }
    if value < 0x4000 {
        return 2;
    }
    // Seven bits a group, at least one: (bits + 6) / 7 without a division.
    let bits = 64 - (value | 1).leading_zeros();
    ((bits * 9 + 64) >> 6) as usize
}

/// Writes groups of seven bits at the front of `out`; the rest of `out`, or `None` when it is too small.
#[inline]
pub(super) fn write_groups(out: &mut [u8], value: u64) -> Option<&mut [u8]> {
    let [low, high, ..] = value.to_le_bytes();
    if value < 0x80 {
        let (first, rest) = out.split_first_mut()?;
        *first = low;
        return Some(rest);
    }
    if value < 0x4000 {
        let (pair, rest) = out.split_first_chunk_mut::<2>()?;
        *pair = [low | 0x80, (high << 1) | (low >> 7)];
        return Some(rest);
    }
    write_many_groups(out, value)
}

#[cold]
fn write_many_groups(out: &mut [u8], value: u64) -> Option<&mut [u8]> {
    let mut left = value;
    let mut out = out;
    loop {
        let (first, rest) = out.split_first_mut()?;
        let [low, ..] = left.to_le_bytes();
        left >>= 7;
        *first = if left == 0 { low & 0x7F } else { low | 0x80 };
        out = rest;
        if left == 0 {
            return Some(out);
        }
    }
}

/// Writes groups of seven bits at `at`; where they end, or `None` when they do not fit.
#[inline(always)]
#[expect(clippy::inline_always, reason = "five calls a record, each with an array of known size")]
pub(super) fn put_groups<const N: usize>(out: &mut [u8; N], at: usize, value: u64) -> Option<usize> {
    let [low, high, ..] = value.to_le_bytes();
    if value < 0x80 {
        *out.get_mut(at)? = low;
        return Some(at + 1);
    }
    if value < 0x4000 {
        *out.get_mut(at..)?.first_chunk_mut()? = [low | 0x80, (high << 1) | (low >> 7)];
        return Some(at + 2);
    }
    put_many_groups(out, at, value)
}

#[inline(never)]
fn put_many_groups(out: &mut [u8], at: usize, value: u64) -> Option<usize> {
    let room = out.len();
    let rest = write_many_groups(out.get_mut(at..)?, value)?;
    Some(room - rest.len())
}

/// Writes the varint of `value` at the front of `out`; the rest of `out`, or `None` when it is too small.
#[inline]
pub(super) fn write_varint(out: &mut [u8], value: i32) -> Option<&mut [u8]> {
    write_groups(out, u64::from(zigzag(value)))
}

/// Writes the 64-bit varint of `value` at the front of `out`; the rest of `out`, or `None` when it is too small.
#[inline]
pub(super) fn write_varlong(out: &mut [u8], value: i64) -> Option<&mut [u8]> {
    write_groups(out, zigzag_long(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(bytes: usize, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
        let mut out = vec![0xEE; bytes];
        assert_eq!(write(&mut out), Some(0), "exactly the length that was foretold");
        out
    }

    fn check(value: i64) {
        let bytes = written(varlong_bytes(value), |out| write_varlong(out, value).map(|rest| rest.len()));
        assert_eq!(read_varlong(&bytes), Some((value, &[][..])));
        assert!(write_varlong(&mut vec![0; bytes.len() - 1], value).is_none());
        assert!(read_varlong(&bytes[..bytes.len() - 1]).is_none());
        let Ok(short) = i32::try_from(value) else {
            assert_eq!(read_varint(&bytes), None, "{value} does not fit");
            return;
        };
        assert_eq!(
            written(varint_bytes(short), |out| write_varint(out, short).map(|rest| rest.len())),
            bytes
        );
        assert_eq!(read_varint(&bytes), Some((i64::from(short), &[][..])));
        let mut out = [0xEE; 7];
        assert_eq!(put_groups(&mut out, 2, u64::from(zigzag(short))), Some(2 + bytes.len()));
        assert_eq!(out[2..][..bytes.len()], bytes);
        assert!(out[..2].iter().chain(&out[2 + bytes.len()..]).all(|byte| *byte == 0xEE));
        assert_eq!(put_groups(&mut out, 8 - bytes.len(), u64::from(zigzag(short))), None);
    }

    #[test]
    fn the_edges_of_each_length() {
        for bits in 0..64 {
            for value in [1i64 << bits, (1i64 << bits).wrapping_sub(1), (1i64 << bits).wrapping_neg()] {
                check(value);
                check(!value);
            }
        }
        check(i64::MIN);
        check(i64::MAX);
        assert_eq!((varint_bytes(0), varint_bytes(63), varint_bytes(64), varint_bytes(-64)), (1, 1, 2, 1));
        assert_eq!((varint_bytes(i32::MIN), varlong_bytes(i64::MIN)), (MAX_VARINT_BYTES, MAX_VARLONG_BYTES));
    }

    #[test]
    fn padding_is_read_up_to_the_types_length() {
        let padded = |bytes: usize| [vec![0x80 | 2; 1], vec![0x80; bytes - 2], vec![0]].concat();
        for bytes in 2..=MAX_VARINT_BYTES {
            assert_eq!(read_varint(&padded(bytes)), Some((1, &[][..])));
        }
        for bytes in 2..=MAX_VARLONG_BYTES {
            assert_eq!(read_varlong(&padded(bytes)), Some((1, &[][..])));
        }
        assert_eq!(read_varint(&padded(MAX_VARINT_BYTES + 1)), None);
        assert_eq!(read_varlong(&padded(MAX_VARLONG_BYTES + 1)), None);
    }

    proptest! {
        #[test]
        fn all_values_come_back(value in any::<i64>(), bits in 0u32..64) {
            check(value >> bits);
        }

        #[test]
        fn whatever_follows_is_left(bytes in proptest::collection::vec(any::<u8>(), 0..14)) {
            if let Some((_, rest)) = read_varint(&bytes) {
                prop_assert!(bytes.ends_with(rest) && bytes.len() - rest.len() <= MAX_VARINT_BYTES);
            }
            if let Some((_, rest)) = read_varlong(&bytes) {
                prop_assert!(bytes.ends_with(rest) && bytes.len() - rest.len() <= MAX_VARLONG_BYTES);
            }
        }
    }
}
