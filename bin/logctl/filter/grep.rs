//! `--grep`.

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::util::syntax;

use crate::view::View;

/// A field that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GrepIn {
    Key,
    Value,
    /// The values of headers
    #[value(alias = "header")]
    Headers,
}

/// What is looked for, and where.
#[derive(Debug, Clone)]
pub(super) struct Grep {
    regex: Regex,
    fields: Vec<GrepIn>,
    is_inverted: bool,
    /// The expression asks nothing of what is around a match, so a match in a field is one in the bytes of the batch.
    is_local: bool,
}

impl Grep {
    pub(super) fn new(
        patterns: &[String],
        fields: &[GrepIn],
        ignores_case: bool,
        is_inverted: bool,
    ) -> Result<Self, String> {
        let pattern = match patterns {
            [one] => one.clone(),
            several => several.iter().map(|one| format!("(?:{one})")).collect::<Vec<_>>().join("|"),
        };
        for one in patterns {
            // By itself, that a mistake in one is shown in that one.
            build(one, ignores_case)?;
        }
        let config = syntax::Config::new().utf8(false).case_insensitive(ignores_case);
        let is_local = syntax::parse_with(&pattern, &config)
            .is_ok_and(|parsed| parsed.properties().look_set().is_empty());
        let fields = if fields.is_empty() { vec![GrepIn::Key, GrepIn::Value] } else { fields.to_vec() };
        Ok(Self { regex: build(&pattern, ignores_case)?, fields, is_inverted, is_local })
    }

    /// False where none of the records in these bytes, which are not compressed, can match.
    pub(super) fn may_match(&self, records: &[u8]) -> bool {
        self.is_inverted || !self.is_local || self.regex.is_match(records)
    }

    pub(super) fn matches(&self, view: &View<'_>) -> bool {
        let found = |field: Option<&[u8]>| field.is_some_and(|bytes| self.regex.is_match(bytes));
        let any = self.fields.iter().any(|field| match field {
            GrepIn::Key => found(view.key),
            GrepIn::Value => found(view.value),
            GrepIn::Headers => view.headers.clone().any(|header| found(header.value)),
        });
        any != self.is_inverted
    }
}

/// A regular expression on bytes, which need not be UTF-8.
pub(super) fn build(pattern: &str, ignores_case: bool) -> Result<Regex, String> {
    RegexBuilder::new(pattern).case_insensitive(ignores_case).build().map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(pattern: &str, bytes: &[u8]) -> bool {
        Grep::new(&[pattern.to_owned()], &[], false, false).unwrap().may_match(bytes)
    }

    #[test]
    fn a_batch_is_passed_over_only_where_nothing_can_match() {
        assert!(!may("needle", b"hay"));
        assert!(may("needle", b"hay needle hay"));
        assert!(!may("(?s-u:\\xff)x", b"\xfe x"));
        // What asks for a field's end finds none in the midst of a batch.
        for pattern in ["^a", "a$", "\\ba", "(?m)^a", "x|^a"] {
            assert!(may(pattern, b"bab"), "{pattern}");
        }
        let inverted = Grep::new(&["needle".to_owned()], &[], false, true).unwrap();
        assert!(inverted.may_match(b"hay"));
    }

    #[test]
    fn several_and_mistakes() {
        let both = ["a|b".to_owned(), "(?i)c".to_owned()];
        let grep = Grep::new(&both, &[], false, false).unwrap();
        for (bytes, found) in [(&b"B"[..], false), (b"b", true), (b"C", true), (b"A", false)] {
            assert_eq!(grep.may_match(bytes), found);
        }
        assert!(Grep::new(&["(".to_owned()], &[], false, false).is_err());
        assert!(Grep::new(&["a)".to_owned(), "(b".to_owned()], &[], false, false).is_err());
    }
}
