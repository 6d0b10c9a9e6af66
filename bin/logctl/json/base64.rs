//! RFC 4648 base64 with padding, as `jq`'s `@base64d` and every Kafka tool read it.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the encoded bytes.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let symbol = |bits: u32| ALPHABET[usize::try_from(bits & 63).unwrap_or(0)];
    for group in bytes.chunks(3) {
        let byte = |at: usize| group.get(at).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let symbols = [18, 12, 6, 0].map(|shift| symbol(bits >> shift));
        out.extend_from_slice(symbols.get(..=group.len()).unwrap_or_default());
        out.extend_from_slice(b"==".get(group.len() - 1..).unwrap_or_default());
    }
}

/// The bytes, or `None` where the text is anything but what [`encode`] gives.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let groups = text.len() / 4;
    for (index, group) in text.chunks(4).enumerate() {
        let padding = group.iter().rev().take_while(|b| **b == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 != groups) {
            return None;
        }
        let mut bits = 0;
        for symbol in group.iter().take(4 - padding) {
            bits = bits << 6 | value(*symbol)?;
        }
        bits <<= 6 * padding;
        let decoded = bits.to_be_bytes();
        let (kept, dropped) = decoded.get(1..)?.split_at(3 - padding);
        if dropped.iter().any(|b| *b != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

fn value(symbol: u8) -> Option<u32> {
    Some(u32::from(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, Engine};

    use super::*;

    #[test]
    fn the_same_as_the_crate_of_that_name() {
        let mut state: u32 = 7;
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state.to_be_bytes()[0]
                })
                .collect();
            let mut text = Vec::new();
            encode(&bytes, &mut text);
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text, BASE64_STANDARD.encode(&bytes));
            assert_eq!(decode(&text), Some(bytes));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "A",
            "AA",
            "AAA",
            "A===",
            "====",
            "AA=A",
            "AA==AAAA",
            "AB==",
            "AAB=",
            "AA\n=",
            "AAA-",
            "AAA\u{e9}",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode(""), Some(Vec::new()));
    }
}
