//! A regular expression at the front of bytes of which more may come. Walked byte by byte until no more can match, so
//! what it takes does not depend on how much was there: the expression engine proper wants the whole text.

use regex_automata::{
    Anchored, Input,
    hybrid::{
        LazyStateID,
        dfa::{Cache, DFA},
    },
    nfa::thompson,
    util::syntax,
};

#[derive(Debug, Clone)]
pub(super) struct Pattern {
    dfa: DFA,
    cache: Cache,
    text: String,
}

/// What the bytes begin with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// A match of so many bytes.
    Length(usize),
    /// There may be one, or a longer one, once more is there.
    More,
    No,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let dfa = DFA::builder()
            .syntax(syntax::Config::new().utf8(false))
            .thompson(thompson::Config::new().utf8(false))
            .build(text)
            .map_err(|error| {
                let mut text = error.to_string();
                let mut source = std::error::Error::source(&error);
                while let Some(cause) = source {
                    text = cause.to_string();
                    source = cause.source();
                }
                format!("re[..]: {text}")
            })?;
        let cache = dfa.create_cache();
        Ok(Self { dfa, cache, text: text.to_owned() })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The match at the front. `is_all`: nothing comes behind the bytes.
    pub(super) fn matched(&mut self, bytes: &[u8], is_all: bool) -> Result<Match, String> {
        let failed = || format!("re[{}] cannot be followed any longer", self.text);
        let input = Input::new(b"").anchored(Anchored::Yes);
        let mut state = self.dfa.start_state_forward(&mut self.cache, &input).map_err(|_| failed())?;
        let mut last = None;
        for (at, byte) in bytes.iter().enumerate() {
            state = self.dfa.next_state(&mut self.cache, state, *byte).map_err(|_| failed())?;
            if !state.is_tagged() {
                continue;
            }
            if state.is_match() {
                // It is known one byte late.
                last = Some(at);
            } else if state.is_dead() {
                return Ok(last.map_or(Match::No, Match::Length));
            } else if state.is_quit() {
                return Err(format!("re[{}] with \\b meets text beyond ASCII: write (?-u:\\b)", self.text));
            }
        }
        if !is_all {
            // Where a match was just passed, nothing longer may be possible whatever comes: then it is not waited for.
            let is_settled = state.is_match() && self.is_last(state).unwrap_or(false);
            return Ok(last.filter(|_| is_settled).map_or(Match::More, Match::Length));
        }
        state = self.dfa.next_eoi_state(&mut self.cache, state).map_err(|_| failed())?;
        if state.is_match() {
            last = Some(bytes.len());
        }
        Ok(last.map_or(Match::No, Match::Length))
    }

    /// True where no byte, and no end, leads from the state to another match. `None`: it cannot be told.
    fn is_last(&mut self, state: LazyStateID) -> Option<bool> {
        for byte in 0..=u8::MAX {
            let next = self.dfa.next_state(&mut self.cache, state, byte).ok()?;
            if !next.is_dead() {
                return Some(false);
            }
        }
        Some(!self.dfa.next_eoi_state(&mut self.cache, state).ok()?.is_match())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_as_matches_and_no_less() {
        let find =
            |pattern: &str, bytes: &[u8], is_all| Pattern::new(pattern).unwrap().matched(bytes, is_all);
        assert_eq!(find("\\d*", b"12", false), Ok(Match::More));
        assert_eq!(find("\\d*", b"12", true), Ok(Match::Length(2)));
        assert_eq!(find("\\d*", b"12a", false), Ok(Match::Length(2)));
        assert_eq!(find("^\\d+", b"a1", false), Ok(Match::No));
        assert_eq!(find("[^\\n]*z", b"aXzYY", false), Ok(Match::More));
        assert_eq!(find("[^\\n]*z", b"aXzYYz\n", false), Ok(Match::Length(6)));
        assert_eq!(find("a+?", b"aaa", false), Ok(Match::Length(1)));
        assert_eq!(find("(?s-u:.){2}", b"\xff\xfe\xfd", false), Ok(Match::Length(2)));
        assert_eq!(find("x*", b"", true), Ok(Match::Length(0)));
        assert!(Pattern::new("(").unwrap_err().contains("unclosed group"));
    }
}
