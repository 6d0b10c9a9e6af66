//! Sizes and durations with units, where a setting takes a number: `64 MiB`, `7 d`.

/// Units of bytes: powers of two with an `i`, powers of ten without.
const BYTES: &[(&str, i128)] = &[
    ("b", 1),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Units of time, in milliseconds.
const TIMES: &[(&str, i128)] = &[
    ("ms", 1),
    ("s", 1000),
    ("sec", 1000),
    ("m", 60_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("hour", 3_600_000),
    ("hours", 3_600_000),
    ("d", 86_400_000),
    ("day", 86_400_000),
    ("days", 86_400_000),
    ("w", 604_800_000),
    ("week", 604_800_000),
    ("weeks", 604_800_000),
];

/// The unit of a key's bare number, and the units that may be written.
fn units_of(key: &str) -> Option<(&'static [(&'static str, i128)], i128)> {
    let last = key.rsplit('.').next().unwrap_or_default();
    match last {
        "bytes" | "size" => Some((BYTES, 1)),
        "ms" => Some((TIMES, 1)),
        "minutes" => Some((TIMES, 60_000)),
        "hours" => Some((TIMES, 3_600_000)),
        _ => None,
    }
}

/// The number that the key takes. A text without a unit, or for a key without one, is given back as it is.
pub(super) fn in_unit_of(key: &str, text: &str) -> Result<String, String> {
    let text = text.trim();
    let number_len =
        text.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_')).count();
    let (number, unit) =
        (text.get(..number_len).unwrap_or_default(), text.get(number_len..).unwrap_or_default());
    let unit = unit.trim().to_ascii_lowercase();
    let Some((units, own)) = units_of(key).filter(|_| !number.is_empty() && !unit.is_empty()) else {
        return Ok(text.to_owned());
    };
    let known = || units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("{key}: {unit:?} in {text:?} is no unit here; known: {}", known()));
    };
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let too_large = || format!("{key}: {text:?} is too large");
    // A fraction of at most nine digits: no unit divides further.
    if fraction.len() > 9 || fraction.contains('.') || whole.is_empty() {
        return Err(format!("{key}: {text:?} is no number with a unit"));
    }
    let whole: i128 = whole.parse().map_err(|_| too_large())?;
    let scale = 10_i128.pow(u32::try_from(fraction.len()).unwrap_or(0));
    let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| too_large())? };
    let total = whole.checked_mul(*factor * scale).and_then(|total| total.checked_add(fraction * factor));
    let total = total.ok_or_else(too_large)?;
    let divisor = scale * own;
    if total % divisor != 0 {
        let unit = if own == 1 {
            "its unit"
        } else if own == 60_000 {
            "minutes"
        } else {
            "hours"
        };
        return Err(format!("{key}: {text:?} is no whole number of {unit}"));
    }
    Ok((total / divisor).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_turned_into_what_the_key_counts() {
        for (key, text, number) in [
            ("log.segment.bytes", "1GiB", "1073741824"),
            ("log.segment.bytes", "1 gb", "1000000000"),
            ("log.segment.bytes", "1.5 MiB", "1572864"),
            ("log.segment.bytes", "1_048_576", "1_048_576"),
            ("log.retention.ms", "7 d", "604800000"),
            ("log.retention.ms", "-1", "-1"),
            ("log.retention.ms", "1.5s", "1500"),
            ("log.retention.hours", "7 days", "168"),
            ("log.retention.minutes", "2h", "120"),
            ("num.partitions", "3 d", "3 d"),
            ("compression.type", "gzip", "gzip"),
        ] {
            assert_eq!(in_unit_of(key, text).as_deref(), Ok(number), "{key} {text}");
        }
        for (key, text) in [
            ("log.segment.bytes", "1 parsec"),
            ("log.segment.bytes", "1 ms"),
            ("log.retention.hours", "90 m"),
            ("log.retention.ms", "0.0001 s"),
            ("log.retention.ms", "1..5 s"),
            ("log.retention.ms", "99999999999999999999999999999999999999999 w"),
        ] {
            assert!(in_unit_of(key, text).is_err(), "{key} {text}");
        }
    }
}
