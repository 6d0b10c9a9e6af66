//! Times by an example, as Go's time package formats them: `2006-01-02T15:04:05Z07:00`. Always in UTC.

use jiff::civil::DateTime;

use std::io::Write;

/// A layout that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GoLayout(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Field(Field),
    /// So many digits of a second's fraction behind the sign.
    Fraction {
        point: char,
        digits: usize,
        trims_zeros: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    MonthName,
    MonthShort,
    Month,
    Month2,
    DayName,
    DayShort,
    Day,
    DaySpace,
    Day2,
    YearDaySpace,
    YearDay3,
    Hour24,
    Hour12,
    Hour12Two,
    Minute,
    Minute2,
    Second,
    Second2,
    Year,
    Year2,
    UpperHalf,
    LowerHalf,
    ZoneName,
    /// `Z` for UTC.
    ZoneZ,
    /// Digits even for UTC.
    Zone(&'static str),
}

/// Longer ones before those that they begin with. A word that a lower-case letter follows is none (`Monty`).
const FIELDS: &[(&str, Field, bool)] = &[
    ("January", Field::MonthName, false),
    ("Jan", Field::MonthShort, true),
    ("Monday", Field::DayName, false),
    ("Mon", Field::DayShort, true),
    ("MST", Field::ZoneName, false),
    ("002", Field::YearDay3, false),
    ("01", Field::Month2, false),
    ("02", Field::Day2, false),
    ("03", Field::Hour12Two, false),
    ("04", Field::Minute2, false),
    ("05", Field::Second2, false),
    ("06", Field::Year2, false),
    ("15", Field::Hour24, false),
    ("1", Field::Month, false),
    ("2006", Field::Year, false),
    ("2", Field::Day, false),
    ("__2", Field::YearDaySpace, false),
    ("_2", Field::DaySpace, false),
    ("3", Field::Hour12, false),
    ("4", Field::Minute, false),
    ("5", Field::Second, false),
    ("PM", Field::UpperHalf, false),
    ("pm", Field::LowerHalf, false),
    ("-07:00:00", Field::Zone("+00:00:00"), false),
    ("-070000", Field::Zone("+000000"), false),
    ("-07:00", Field::Zone("+00:00"), false),
    ("-0700", Field::Zone("+0000"), false),
    ("-07", Field::Zone("+00"), false),
    ("Z07:00:00", Field::ZoneZ, false),
    ("Z070000", Field::ZoneZ, false),
    ("Z07:00", Field::ZoneZ, false),
    ("Z0700", Field::ZoneZ, false),
    ("Z07", Field::ZoneZ, false),
];

impl GoLayout {
    /// Any text is a layout.
    pub(super) fn parse(layout: &str) -> Self {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = layout;
        while let Some(first) = rest.chars().next() {
            let Some((piece, tail)) = fraction(rest).or_else(|| field(rest)) else {
                literal.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
                continue;
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(piece);
            rest = tail;
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Self(pieces)
    }

    /// Appends a time.
    pub(super) fn push(&self, out: &mut Vec<u8>, at: DateTime) {
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Field(field) => field.push(out, at),
                Piece::Fraction { point, digits, trims_zeros } => {
                    let nanoseconds = format!("{:09}", at.subsec_nanosecond());
                    let mut shown = nanoseconds.get(..(*digits).min(9)).unwrap_or_default();
                    if *trims_zeros {
                        shown = shown.trim_end_matches('0');
                    }
                    if !shown.is_empty() {
                        let zeros = if *trims_zeros { 0 } else { digits.saturating_sub(9) };
                        let _ = write!(out, "{point}{shown}{:0<zeros$}", "");
                    }
                }
            }
        }
    }
}

fn field(rest: &str) -> Option<(Piece, &str)> {
    // An underscore before a year is one.
    if rest.starts_with("_2006") {
        return None;
    }
    FIELDS.iter().find_map(|(text, field, is_word)| {
        let tail = rest.strip_prefix(text)?;
        let goes_on = *is_word && tail.starts_with(|c: char| c.is_ascii_lowercase());
        (!goes_on).then_some((Piece::Field(*field), tail))
    })
}

/// `.000` or `.999` and the like, with no other digit behind.
fn fraction(rest: &str) -> Option<(Piece, &str)> {
    let point = rest.chars().next().filter(|c| matches!(c, '.' | ','))?;
    let behind = rest.get(1..)?;
    let digit = behind.chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let tail = behind.trim_start_matches(digit);
    if tail.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let digits = behind.len() - tail.len();
    Some((Piece::Fraction { point, digits, trims_zeros: digit == '9' }, tail))
}

impl Field {
    fn push(self, out: &mut Vec<u8>, at: DateTime) {
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        const DAYS: [&str; 7] =
            ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
        let named = |names: &[&'static str], index: i8| {
            usize::try_from(index).ok().and_then(|index| names.get(index).copied()).unwrap_or_default()
        };
        let month = named(&MONTHS, at.month() - 1);
        let day = named(&DAYS, at.weekday().to_monday_zero_offset());
        let short = |name: &'static str| name.get(..3).unwrap_or(name);
        let hour12 = if at.hour() % 12 == 0 { 12 } else { at.hour() % 12 };
        let half = if at.hour() < 12 { "am" } else { "pm" };
        // A Vec takes every write.
        let _ = match self {
            Self::MonthName => write!(out, "{month}"),
            Self::MonthShort => write!(out, "{}", short(month)),
            Self::Month => write!(out, "{}", at.month()),
            Self::Month2 => write!(out, "{:02}", at.month()),
            Self::DayName => write!(out, "{day}"),
            Self::DayShort => write!(out, "{}", short(day)),
            Self::Day => write!(out, "{}", at.day()),
            Self::DaySpace => write!(out, "{:2}", at.day()),
            Self::Day2 => write!(out, "{:02}", at.day()),
            Self::YearDaySpace => write!(out, "{:3}", at.day_of_year()),
            Self::YearDay3 => write!(out, "{:03}", at.day_of_year()),
            Self::Hour24 => write!(out, "{:02}", at.hour()),
            Self::Hour12 => write!(out, "{hour12}"),
            Self::Hour12Two => write!(out, "{hour12:02}"),
            Self::Minute => write!(out, "{}", at.minute()),
            Self::Minute2 => write!(out, "{:02}", at.minute()),
            Self::Second => write!(out, "{}", at.second()),
            Self::Second2 => write!(out, "{:02}", at.second()),
            Self::Year => write!(out, "{:04}", at.year()),
            Self::Year2 => write!(out, "{:02}", at.year().rem_euclid(100)),
            Self::UpperHalf => write!(out, "{}", half.to_ascii_uppercase()),
            Self::LowerHalf => write!(out, "{half}"),
            Self::ZoneName => write!(out, "UTC"),
            Self::ZoneZ => write!(out, "Z"),
            Self::Zone(text) => write!(out, "{text}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_go_formats_it() {
        let at = jiff::civil::date(2026, 2, 3).at(16, 5, 9, 120_000_000);
        let cases = [
            ("2006-01-02T15:04:05Z07:00", "2026-02-03T16:05:09Z"),
            ("2006-01-02T15:04:05.999999999Z07:00", "2026-02-03T16:05:09.12Z"),
            ("Mon Jan _2 15:04:05 2006", "Tue Feb  3 16:05:09 2026"),
            ("Mon, 02 Jan 2006 15:04:05 MST", "Tue, 03 Feb 2026 16:05:09 UTC"),
            ("Monday, 02-Jan-06 15:04:05 -0700", "Tuesday, 03-Feb-26 16:05:09 +0000"),
            ("3:04PM 03:4pm 5", "4:05PM 04:5pm 9"),
            ("January 2, 1/2/06", "February 3, 2/3/26"),
            ("15:04:05.000 15:04:05,000000", "16:05:09.120 16:05:09,120000"),
            ("002 __2 -07:00 Z0700", "034  34 +00:00 Z"),
            ("_2006 x7", "_2026 x7"),
            ("Monty Janus", "Monty Janus"),
        ];
        for (layout, text) in cases {
            let mut out = Vec::new();
            GoLayout::parse(layout).push(&mut out, at);
            assert_eq!(String::from_utf8(out).unwrap(), text, "{layout}");
        }
        let mut out = Vec::new();
        GoLayout::parse("05.99 .9x05").push(&mut out, jiff::civil::date(2026, 2, 3).at(0, 0, 7, 0));
        assert_eq!(out, b"07 x07");
    }
}
