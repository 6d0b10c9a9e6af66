//! Offset ranges, in the grammar of `rpk topic consume --offset`, with kcat's and Kafka's words as synonyms.

use stratalog::{Error, Offset, Timestamp};

use super::{duration, signed_time_with};

/// One end of a range, before the log is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The first offset there is.
    Start,
    /// The end: the offset after the last.
    End,
    /// This offset.
    Exactly(Offset),
    /// So many offsets after the start.
    AfterStart(u64),
    /// So many offsets before the end.
    BeforeEnd(u64),
    /// The first record that is not older.
    At(Timestamp),
}

/// From one bound up to, not including, another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OffsetRange {
    from: Option<Bound>,
    to: Option<Bound>,
}

/// For clap: [`parse`] with the present time.
pub(crate) fn offset_range(text: &str) -> Result<OffsetRange, String> {
    parse(text, super::time("now")?)
}

fn parse(text: &str, now: Timestamp) -> Result<OffsetRange, String> {
    if let Some(ms) = text.strip_prefix("s@") {
        return Ok(OffsetRange { from: Some(millis(ms)?), to: None });
    }
    if let Some(ms) = text.strip_prefix("e@") {
        return Ok(OffsetRange { from: None, to: Some(millis(ms)?) });
    }
    if let Some(times) = text.strip_prefix('@') {
        return time_range(times, now);
    }
    offsets(text, now).map_err(|what| match time_range(text, now) {
        Ok(_) => format!("`{text}` is no range of offsets: did you mean @{text}?"),
        Err(_) => what,
    })
}

fn offsets(text: &str, now: Timestamp) -> Result<OffsetRange, String> {
    match text.split_once(':') {
        None => Ok(OffsetRange { from: Some(bound(text, now)?), to: None }),
        Some((from, to)) => {
            let side = |text: &str| if text.is_empty() { Ok(None) } else { bound(text, now).map(Some) };
            Ok(OffsetRange { from: side(from)?, to: side(to)? })
        }
    }
}

fn bound(text: &str, now: Timestamp) -> Result<Bound, String> {
    let wrong = || {
        format!(
            "`{text}` is not an offset: write start, end, N, +N (from the start), -N (from the end), A:B, @TIME or @TIME:TIME"
        )
    };
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        // More than there can be is as good as all of them (`tail -n 18446744073709551615`, and beyond).
        if plain { Ok(digits.parse::<u64>().unwrap_or(u64::MAX)) } else { Err(wrong()) }
    };
    Ok(match text {
        "start" | "beginning" | "earliest" | "oldest" => Bound::Start,
        "end" | "latest" | "newest" => Bound::End,
        "stored" => {
            return Err("a stored place is that of a cursor: `tail --cursor NAME` goes on from it".to_owned());
        }
        _ => match (text.strip_prefix('+'), text.strip_prefix('-'), text.strip_prefix('@')) {
            (Some(digits), _, _) => Bound::AfterStart(number(digits)?),
            (_, Some(digits), _) => Bound::BeforeEnd(number(digits)?),
            (_, _, Some(time)) => Bound::At(signed_time_with(time, now)?),
            _ => Bound::Exactly(super::offset(text).map_err(|_| wrong())?),
        },
    })
}

fn millis(text: &str) -> Result<Bound, String> {
    text.parse()
        .map(|ms| Bound::At(Timestamp::from_millis(ms)))
        .map_err(|_| format!("`{text}` is not a time in milliseconds since 1970"))
}

/// What follows the `@`. Times have colons of their own, so every colon is tried as the one between the two.
fn time_range(text: &str, now: Timestamp) -> Result<OffsetRange, String> {
    let whole = signed_time_with(text, now);
    if let Ok(at) = whole {
        return Ok(OffsetRange { from: Some(Bound::At(at)), to: None });
    }
    for (colon, _) in text.match_indices(':') {
        let (from, to) = (&text[..colon], &text[colon + 1..]);
        if let Some(span) =
            [from, to.strip_prefix('@').unwrap_or(to)].into_iter().find(|side| duration(side).is_ok())
        {
            return signed_time_with(span, now).map(|_| OffsetRange::default());
        }
        let from = if from.is_empty() { Ok(None) } else { signed_time_with(from, now).map(Some) };
        let to = match to.strip_prefix('@').unwrap_or(to) {
            "" => Ok(None),
            "end" => Ok(Some(Bound::End)),
            to => signed_time_with(to, now).map(|at| Some(Bound::At(at))),
        };
        if let (Ok(from), Ok(to)) = (from, to) {
            return Ok(OffsetRange { from: from.map(Bound::At), to });
        }
    }
    Err(whole.err().unwrap_or_default())
}

impl OffsetRange {
    /// Puts several ranges together, as kcat's `-o s@T1 -o e@T2` are: each bound may be given once, and the end must
    /// not lie before the beginning, as far as that shows without the log.
    pub(crate) fn merge(ranges: &[Self]) -> Result<Self, String> {
        let merged = ranges.iter().try_fold(Self::default(), |all, one| {
            if (all.from.is_some() && one.from.is_some()) || (all.to.is_some() && one.to.is_some()) {
                return Err("the same end of the range is given twice".to_owned());
            }
            Ok(Self { from: all.from.or(one.from), to: all.to.or(one.to) })
        })?;
        let is_backward = match (merged.from, merged.to) {
            (Some(Bound::Exactly(from)), Some(Bound::Exactly(to))) => to < from,
            (Some(Bound::AfterStart(from)), Some(Bound::AfterStart(to))) => to < from,
            (Some(Bound::BeforeEnd(from)), Some(Bound::BeforeEnd(to))) => to > from,
            (Some(Bound::At(from)), Some(Bound::At(to))) => to < from,
            _ => false,
        };
        if is_backward { Err("the range ends before it begins".to_owned()) } else { Ok(merged) }
    }

    /// The offsets in a log that holds `start` up to `end`. A range that is empty or backward gives `from >= to`; an
    /// upper bound beyond the end is the end; a lower bound outside of the log is [`Error::OffsetOutOfRange`], but
    /// `-N` reaches to the start at most.
    pub(crate) fn resolve<E: From<Error>>(
        &self,
        start: Offset,
        end: Offset,
        mut first_not_before: impl FnMut(Timestamp) -> Result<Option<Offset>, E>,
    ) -> Result<(Offset, Offset), E> {
        let mut place = |bound: Bound| {
            Ok::<_, E>(match bound {
                Bound::Start => start,
                Bound::End => end,
                Bound::Exactly(offset) => offset,
                Bound::AfterStart(count) => start.checked_add(count).unwrap_or(Offset::MAX),
                Bound::BeforeEnd(count) => end.saturating_sub(count).max(start),
                Bound::At(at) => first_not_before(at)?.unwrap_or(end).clamp(start, end),
            })
        };
        let from = place(self.from.unwrap_or(Bound::Start))?;
        let to = place(self.to.unwrap_or(Bound::End))?.min(end);
        if from < start || from > end {
            return Err(Error::OffsetOutOfRange { requested: from, start, end }.into());
        }
        Ok((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_769_761_200_123);

    fn at(offset: i64) -> Offset {
        Offset::new(offset).unwrap()
    }

    /// In a log of offsets 100 to 199 with one record a second from 1970 on.
    fn resolved(text: &str) -> Option<(i64, i64)> {
        let find = |time: Timestamp| {
            let second = time.millis().max(0).div_euclid(1000) + i64::from(time.millis() % 1000 > 0);
            Ok::<_, Error>(if second >= 100 { None } else { Offset::new(100 + second) })
        };
        let range = parse(text, NOW).unwrap();
        range.resolve(at(100), at(200), find).ok().map(|(from, to)| (from.value(), to.value()))
    }

    #[test]
    fn a_span_has_a_sign() {
        for text in ["@1h", "@1h:", "@1h:@2h", "@-2h:1h", "@today:1h30m", "@:5m"] {
            let told = parse(text, NOW).unwrap_err();
            assert!(told.contains("is so long ago"), "{text}: {told}");
        }
        for text in ["@-1h", "@-1h:", "@+1h", "@-2h:-1h", "@-2h:@+1h", "@:-5m", "@10:20"] {
            assert!(parse(text, NOW).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_grammar_of_rpk() {
        let cases = [
            ("start", (100, 200)),
            ("end", (200, 200)),
            ("150", (150, 200)),
            ("150:", (150, 200)),
            (":150", (100, 150)),
            ("150:160", (150, 160)),
            (":end", (100, 200)),
            ("+10", (110, 200)),
            ("-10", (190, 200)),
            ("-1000", (100, 200)),
            ("-99999999999999999999", (100, 200)),
            ("+10:-10", (110, 190)),
            ("150:99999", (150, 200)),
            ("@10", (110, 200)),
            ("@10:", (110, 200)),
            ("@:10", (100, 110)),
            ("@10:20", (110, 120)),
            ("@10:end", (110, 200)),
            ("@1970-01-01T00:00:10Z:1970-01-01T00:00:20Z", (110, 120)),
            ("@1970-01-01:1970-01-01T00:00:20Z", (100, 120)),
            ("@-1h:", (200, 200)),
            ("@-1h:now", (200, 200)),
            ("110:@20", (110, 120)),
            ("start:end", (100, 200)),
            ("start:+5", (100, 105)),
            ("+5:", (105, 200)),
            ("-5:", (195, 200)),
            (":-5", (100, 195)),
            ("-10:end", (190, 200)),
            ("@:", (100, 200)),
            ("@10:@20", (110, 120)),
            ("@10000:20000", (200, 200)),
            ("@1970-01-01 00:00:10", (110, 200)),
            ("@now:", (200, 200)),
        ];
        for (text, range) in cases {
            assert_eq!(resolved(text), Some(range), "{text}");
        }
    }

    #[test]
    fn synonyms() {
        assert_eq!(resolved("beginning"), Some((100, 200)));
        assert_eq!(resolved("earliest"), Some((100, 200)));
        assert_eq!(resolved("latest"), Some((200, 200)));
        assert_eq!(resolved("oldest"), Some((100, 200)));
        assert!(parse("stored", NOW).unwrap_err().contains("--cursor"));
        assert_eq!(resolved("s@10500"), Some((111, 200)));
        assert_eq!(resolved("e@10000"), Some((100, 110)));
        let both = [parse("s@10000", NOW).unwrap(), parse("e@20000", NOW).unwrap()];
        assert_eq!(OffsetRange::merge(&both), parse("@10:20", NOW));
        assert!(OffsetRange::merge(&[both[0], both[0]]).is_err());
        assert_eq!(OffsetRange::merge(&[]), Ok(OffsetRange::default()));
    }

    #[test]
    fn empty_and_backward_ranges_end_and_starts_outside_fail() {
        assert_eq!(resolved("105:104"), Some((105, 104)));
        assert_eq!(resolved("100:100"), Some((100, 100)));
        assert_eq!(resolved("100:0"), Some((100, 0)));
        assert_eq!(resolved("200"), Some((200, 200)));
        for text in ["0", "99", "201", "0:10", "+101", "9223372036854775807"] {
            assert_eq!(resolved(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_range() {
        for text in [
            "",
            "x",
            "1-2",
            "+",
            "-",
            "1:2:3",
            "--5",
            "@",
            "@soon",
            "@1:soon",
            "s@",
            "e@x",
            "9223372036854775808",
            "+1x",
        ] {
            assert!(parse(text, NOW).is_err(), "{text}");
        }
    }
}
