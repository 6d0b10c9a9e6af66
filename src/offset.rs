//! Offsets and timestamps: the two numbers that every room speaks of.

use std::fmt;

/// The logical number of a record in a log: `0..=i64::MAX`, never negative (Kafka's protocol guide, `RecordBatch`).
///
/// An *end* offset is always exclusive: it is the number that the next record gets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(i64);

impl Offset {
    /// The first offset there is.
    pub const ZERO: Self = Self(0);
    /// The largest offset there is; no record can have it, since the end after it could not be named.
    pub const MAX: Self = Self(i64::MAX);

    /// An offset from its number; `None` when it is negative.
    pub const fn new(value: i64) -> Option<Self> {
        if value < 0 { None } else { Some(Self(value)) }
    }

    /// The number.
    pub const fn value(self) -> i64 {
        self.0
    }

    /// The number as a word for shared memory and file names.
    pub const fn to_u64(self) -> u64 {
        self.0.unsigned_abs()
    }

    /// The inverse of [`Offset::to_u64`]; `None` above `i64::MAX`.
    pub fn from_u64(value: u64) -> Option<Self> {
        i64::try_from(value).ok().map(Self)
    }

    /// The offset `count` further on; `None` past the largest.
    pub fn checked_add(self, count: u64) -> Option<Self> {
        self.0.checked_add_unsigned(count).map(Self)
    }

    /// The offset `count` before, or [`Offset::ZERO`].
    #[must_use]
    pub fn saturating_sub(self, count: u64) -> Self {
        Self(self.0.saturating_sub_unsigned(count).max(0))
    }

    /// The offset after this one; `None` past the largest.
    pub fn next(self) -> Option<Self> {
        self.checked_add(1)
    }

    /// How many offsets lie from `earlier` up to this one; 0 when `earlier` is not earlier.
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Debug for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z, as clients write them: any `i64`, in any order, not to be trusted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// What Kafka writes for "no timestamp".
    pub const NONE: Self = Self(-1);

    /// A timestamp from milliseconds since the epoch.
    pub const fn from_millis(value: i64) -> Self {
        Self(value)
    }

    /// Milliseconds since the epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

impl Timestamp {
    /// For people, in UTC and to the second: `2025-11-30T10:53:20Z`.
    pub(crate) fn utc_text(self) -> String {
        const DAY: i64 = 86_400;
        let seconds = self.0.div_euclid(1000);
        let (days, of_day) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        // Years that begin in March, in eras of 400: the leap day is the last of its year, and months follow a line.
        let days = days + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let march_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_for_people() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (1_764_500_000_999, "2025-11-30T10:53:20Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).utc_text(), text);
        }
        assert!(Timestamp::from_millis(i64::MAX).utc_text().ends_with('Z'));
        assert!(Timestamp::from_millis(i64::MIN).utc_text().ends_with('Z'));
    }

    #[test]
    fn an_offset_is_never_negative() {
        assert_eq!(Offset::new(-1), None);
        assert_eq!(Offset::new(0), Some(Offset::ZERO));
        assert_eq!(Offset::from_u64(u64::MAX), None);
        assert_eq!(Offset::from_u64(Offset::MAX.to_u64()), Some(Offset::MAX));
    }

    #[test]
    fn arithmetic_stays_in_range() {
        assert_eq!(Offset::MAX.next(), None);
        assert_eq!(Offset::ZERO.checked_add(u64::MAX), None);
        assert_eq!(Offset(5).saturating_sub(9), Offset::ZERO);
        assert_eq!(Offset(5).saturating_sub(u64::MAX), Offset::ZERO);
        assert_eq!(Offset(5).since(Offset(9)), 0);
        assert_eq!(Offset::MAX.since(Offset::ZERO), i64::MAX.unsigned_abs());
    }
}
