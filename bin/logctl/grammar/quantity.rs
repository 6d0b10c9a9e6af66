//! Sizes, durations, plain offsets, and text with escapes.

use std::time::Duration;

use stratalog::Offset;

/// A number of bytes: plain, or with `k`, `m`, `g`, `t` or `KiB`, `MiB`, ... (powers of 1024), or `kB`, `MB`, ...
/// (powers of 1000), in any case.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size: write plain bytes, 64KiB, 16MiB, 1g or 10MB");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit: u64 = match text[digits..].trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        "t" | "ti" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(|| format!("`{text}` is more bytes than can be counted"))
}

/// A size that fits in 32 bits.
pub(crate) fn size_u32(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| format!("`{text}` is too large: at most {} bytes", u32::MAX))
}

/// A span of time: `500ms`, `30s`, `15m`, `1h30m`, `7d`, `2w`; `0` alone needs no unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration: write 500ms, 30s, 15m, 1h30m, 7d or 2w");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total_ms: u64 = 0;
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit_ms: u64 = match &rest[..letters] {
            "ms" => 1,
            "s" | "sec" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => return Err(wrong()),
        };
        rest = &rest[letters..];
        total_ms = number.checked_mul(unit_ms).and_then(|ms| total_ms.checked_add(ms)).ok_or_else(wrong)?;
    }
    Ok(Duration::from_millis(total_ms))
}

/// One offset: 0 up to 2^63 - 1.
pub(crate) fn offset(text: &str) -> Result<Offset, String> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| plain)
        .and_then(Offset::new)
        .ok_or_else(|| format!("`{text}` is not an offset: write a number from 0 to {}", i64::MAX))
}

/// Text in which `\n`, `\t`, `\r`, `\0`, `\\` and `\xNN` stand for a byte each.
pub(crate) fn escapes(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'\\' {
            let (byte, used) = escape(tail)?;
            bytes.push(byte);
            rest = &tail[used..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    Ok(bytes)
}

/// The byte that the escape after a backslash stands for, and how many bytes of `tail` it takes.
pub(crate) fn escape(tail: &[u8]) -> Result<(u8, usize), String> {
    let simple = match tail.first() {
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'r') => b'\r',
        Some(b'0') => 0,
        Some(b'\\') => b'\\',
        Some(b'x') => {
            let digit = |at: usize| tail.get(at).and_then(|b| char::from(*b).to_digit(16));
            return match (digit(1), digit(2)) {
                (Some(high), Some(low)) => Ok((u8::try_from(high * 16 + low).unwrap_or(0), 3)),
                _ => Err("`\\x` needs two hexadecimal digits after it".to_owned()),
            };
        }
        Some(other) if other.is_ascii_graphic() => {
            return Err(format!(
                "unknown escape `\\{}`: use \\n \\t \\r \\0 \\\\ or \\xNN",
                char::from(*other)
            ));
        }
        Some(_) => return Err("unknown escape: use \\n \\t \\r \\0 \\\\ or \\xNN".to_owned()),
        None => return Err("a single `\\` at the end: write `\\\\`".to_owned()),
    };
    Ok((simple, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases: [(&str, u64); 9] = [
            ("0", 0),
            ("4096", 4096),
            ("64MiB", 64 << 20),
            ("1g", 1 << 30),
            ("1G", 1 << 30),
            ("10MB", 10_000_000),
            ("2 KiB", 2048),
            ("3b", 3),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in cases {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "k", "-1", "1.5g", "1x", "18446744073709551616", "18014398509481984k", "1 0", "+1"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(size_u32("4g").is_err());
    }

    #[test]
    fn durations() {
        let ms = |text: &str| duration(text).map(|d| d.as_millis());
        assert_eq!(ms("0"), Ok(0));
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("1h30m"), Ok(5_400_000));
        assert_eq!(ms("7d"), Ok(604_800_000));
        for text in ["", "5", "m", "-5m", "1h30", "5x", "99999999999999999999s", "18446744073709551615w"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn offsets_are_plain_numbers() {
        assert_eq!(offset("9223372036854775807"), Ok(Offset::MAX));
        for text in ["", "-1", "+1", "9223372036854775808", "1x", " 1"] {
            assert!(offset(text).is_err(), "{text}");
        }
    }

    #[test]
    fn escapes_stand_for_bytes() {
        assert_eq!(escapes("a\\t\\n\\r\\0\\\\\\xfF\u{e9}"), Ok(b"a\t\n\r\0\\\xff\xc3\xa9".to_vec()));
        for text in ["\\", "\\q", "\\x1", "\\xg0", "\\\u{e9}"] {
            assert!(escapes(text).is_err(), "{text}");
        }
    }
}
