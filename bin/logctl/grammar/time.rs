//! Points in time, as people write them. Everything without a zone is UTC.

use std::time::SystemTime;

use jiff::{civil, tz::TimeZone};
use stratalog::Timestamp;

use super::duration;

/// Numbers with fewer digits count seconds: twelve digits of milliseconds begin in 1973, twelve digits of seconds
/// would be the year 5138.
const MILLISECOND_DIGITS: usize = 12;

/// A point in time, relative ones counted from now; an `@` before it, as in an offset range, changes nothing. See [`time_with`].
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    let text = text.strip_prefix('@').unwrap_or(text);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis());
    time_with(text, Timestamp::from_millis(i64::try_from(now).unwrap_or(i64::MAX)))
}

/// The same where a time to come is seldom meant: a span says by its sign which way it goes.
pub(crate) fn signed_time(text: &str) -> Result<Timestamp, String> {
    signed_time_with(text, time("now")?)
}

pub(crate) fn signed_time_with(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let span = text.strip_prefix('@').unwrap_or(text);
    if duration(span).is_ok() {
        return Err(format!(
            "`{text}`: from now on or back? -{span} is so long ago, +{span} is still to come"
        ));
    }
    time_with(span, now)
}

/// The same, but that a span without a sign lies back, as other commands read `--since 1h`.
pub(crate) fn time_or_ago(text: &str) -> Result<Timestamp, String> {
    let span = text.strip_prefix('@').unwrap_or(text);
    if duration(span).is_ok() { time(&format!("-{span}")) } else { time(text) }
}

/// `now`, `today`, `yesterday`, `-15m`, `+1h`, `1h` (from now), seconds or milliseconds since 1970, `2026-11-30`,
/// `2026-11-30T08:00`, RFC 3339.
pub(crate) fn time_with(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let wrong = || {
        format!(
            "`{text}` is not a time: write now, today, yesterday, -15m, 2026-11-30, 2026-11-30T08:00:00Z, or seconds or milliseconds since 1970"
        )
    };
    let day = |days_back: i64| {
        let midnight = now.millis().div_euclid(86_400_000).saturating_sub(days_back);
        Ok(Timestamp::from_millis(midnight.saturating_mul(86_400_000)))
    };
    match text {
        "now" => return Ok(now),
        "today" => return day(0),
        "yesterday" => return day(1),
        _ => {}
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let number: i64 = text.parse().map_err(|_| wrong())?;
        let unit = if text.len() < MILLISECOND_DIGITS { 1000 } else { 1 };
        return number.checked_mul(unit).map(Timestamp::from_millis).ok_or_else(wrong);
    }
    let (span, back) = match text.strip_prefix('-') {
        Some(span) => (span, true),
        None => (text.strip_prefix('+').unwrap_or(text), false),
    };
    if let Ok(span) = duration(span) {
        let span_ms = i64::try_from(span.as_millis()).map_err(|_| wrong())?;
        let at = if back { now.millis().checked_sub(span_ms) } else { now.millis().checked_add(span_ms) };
        return at.map(Timestamp::from_millis).ok_or_else(wrong);
    }
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp::from_millis(at.as_millisecond()));
    }
    let civil: civil::DateTime = text.parse().map_err(|_| wrong())?;
    let at = TimeZone::UTC.to_timestamp(civil).map_err(|_| wrong())?;
    Ok(Timestamp::from_millis(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_769_761_200_123; // 2026-01-30T08:20:00.123Z

    fn ms(text: &str) -> Option<i64> {
        time_with(text, Timestamp::from_millis(NOW)).ok().map(Timestamp::millis)
    }

    #[test]
    fn every_way_to_write_a_time() {
        assert_eq!(ms("now"), Some(NOW));
        assert_eq!(ms("today"), Some(1_769_731_200_000));
        assert_eq!(ms("yesterday"), Some(1_769_731_200_000 - 86_400_000));
        assert_eq!(ms("-15m"), Some(NOW - 900_000));
        assert_eq!(ms("+1h"), Some(NOW + 3_600_000));
        assert_eq!(ms("1h30m"), Some(NOW + 5_400_000));
        assert_eq!(ms("0"), Some(0));
        assert_eq!(ms("1769761200"), Some(1_769_761_200_000));
        assert_eq!(ms("1769761200123"), Some(1_769_761_200_123));
        assert_eq!(ms("2026-01-30"), Some(1_769_731_200_000));
        assert_eq!(ms("2026-01-30T08:20:00Z"), Some(1_769_761_200_000));
        assert_eq!(ms("2026-01-30T09:20:00.123+01:00"), Some(NOW));
        assert_eq!(ms("2026-01-30T08:20"), Some(1_769_761_200_000));
        assert_eq!(ms("2026-01-30 08:20:00"), Some(1_769_761_200_000));
        assert_eq!(ms("1969-12-31T23:59:59Z"), Some(-1_000));
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "-",
            "soon",
            "2026-13-01",
            "2026-02-30",
            "99999999999999999999",
            "-5",
            "1h30",
            "9223372036854775807w",
        ] {
            assert_eq!(ms(text), None, "{text}");
        }
    }
}
