//! A place between two records, for verbs that cut there: an offset, a time, an end of the log.

use stratalog::{Offset, Timestamp};

use super::{duration, offset, time};

/// Where to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Border {
    Offset(Offset),
    /// Before the first record of this time or later.
    Time(Timestamp),
    Start,
    End,
}

/// `42`, `@1769761200123`, `@2026-11-30`, `-15m`, `today`, `start`, `end`. Bare digits are an offset.
pub(crate) fn border(text: &str) -> Result<Border, String> {
    match text {
        "start" | "beginning" | "earliest" => return Ok(Border::Start),
        "end" | "latest" => return Ok(Border::End),
        _ => {}
    }
    if let Some(at) = text.strip_prefix('@') {
        return time(at).map(Border::Time);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return offset(text).map(Border::Offset);
    }
    let of_end = text.strip_prefix('-').filter(|count| !count.is_empty());
    if of_end.is_some_and(|count| count.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(format!(
            "`{text}` would count from an end that moves: write the offset itself (`logctl info` tells the end), or a time with its unit ({text}m)"
        ));
    }
    time(text).map(Border::Time).map_err(|_| {
        format!("{text:?} is no place in a log: an offset (42), a time (@1769761200123, 2026-11-30, -15m) or start, end")
    })
}

/// The same, for what destroys: a time to come is refused, since everything is older. Who forgets the minus of `-7d` must not
/// lose the log.
pub(crate) fn past_border(text: &str) -> Result<Border, String> {
    let found = border(text)?;
    match found {
        Border::Time(at) if at > time("now")? => {
            let span = text.trim_start_matches(['@', '+']);
            let tip = match duration(span) {
                Ok(_) => format!("did you mean -{span}?"),
                Err(_) => "`end` stands for the end of the log".to_owned(),
            };
            let at = jiff::Timestamp::from_millisecond(at.millis())
                .map_or_else(|_| "far".to_owned(), |at| at.to_string());
            Err(format!("{at} lies in the future, and everything is older: {tip}"))
        }
        _ => Ok(found),
    }
}

impl Border {
    /// The time that it names, if it is one.
    pub(crate) fn time(self) -> Option<Timestamp> {
        if let Self::Time(at) = self { Some(at) } else { None }
    }

    /// The offset that it stands for in a log of this range.
    pub(crate) fn resolve<E>(
        self,
        start: Offset,
        end: Offset,
        first_not_before: impl FnOnce(Timestamp) -> Result<Option<Offset>, E>,
    ) -> Result<Offset, E> {
        Ok(match self {
            Self::Offset(offset) => offset,
            Self::Start => start,
            Self::End => end,
            Self::Time(at) => first_not_before(at)?.unwrap_or(end),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_times_and_ends() {
        let at = |value| Border::Offset(Offset::new(value).unwrap());
        assert_eq!(border("0"), Ok(at(0)));
        assert_eq!(border("42"), Ok(at(42)));
        assert_eq!(border("end"), Ok(Border::End));
        assert_eq!(border("start"), Ok(Border::Start));
        let time = |millis| Ok(Border::Time(Timestamp::from_millis(millis)));
        assert_eq!(border("@1769761200123"), time(1_769_761_200_123));
        assert_eq!(border("1970-01-02"), time(86_400_000));
        assert!(border("-5").is_err_and(|what| what.contains("would count from an end")));
        for text in ["", "x", "-", "@", "1.5", "99999999999999999999"] {
            assert!(border(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_destroys_takes_no_time_to_come() {
        for (text, tip) in [
            ("7d", "did you mean -7d?"),
            ("@7d", "did you mean -7d?"),
            ("+1h", "did you mean -1h?"),
            ("@+1h30m", "did you mean -1h30m?"),
            ("2999-01-01", "`end` stands for"),
            ("@2999-01-01T00:00:00Z", "`end` stands for"),
            ("@9999999999999", "`end` stands for"),
        ] {
            let refused = past_border(text);
            assert!(refused.as_ref().is_err_and(|what| what.contains(tip)), "{text}: {refused:?}");
            assert!(border(text).is_ok(), "{text}: what only reads may name it");
        }
        for text in ["-7d", "@-7d", "today", "now", "@now", "2020-01-01", "end", "start", "99999999999999"] {
            assert!(past_border(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_time_after_everything_is_the_end() {
        let (start, end) = (Offset::ZERO, Offset::new(9).unwrap());
        let none = |_| Ok::<_, String>(None);
        assert_eq!(Border::Time(Timestamp::from_millis(5)).resolve(start, end, none), Ok(end));
        assert_eq!(Border::Start.resolve(start, end, none), Ok(start));
    }
}
