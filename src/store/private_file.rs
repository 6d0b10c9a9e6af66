//! Small text files of a store's own: a first line that says what it is, lines `word=value`, and a sum of all that.
//!
//! ```text
//! stratalog topic 1
//! cleanup.policy=compact
//! crc32=5e0a3f12
//! ```
//!
//! Text, so that a person without a tool can read it; summed, because it is the only place where this is known, and half
//! of it would be taken for all. In a value, a backslash, a line feed and a carriage return are `\\`, `\n` and `\r`. The
//! sum is the IEEE CRC-32 of everything before its line.

use std::{collections::BTreeMap, fmt::Write as _};

/// The first line's words: what kind of file, which version.
const MAGIC: &str = "stratalog";
const VERSION: u32 = 1;
const SUM: &str = "crc32=";

/// More than this is no such file.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Words with their values.
pub(super) type Words = BTreeMap<String, String>;

/// Why a file says nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Its writer knew more.
    Newer(String),
    /// It is damaged, or something else altogether.
    Damaged(&'static str),
}

pub(super) fn render(kind: &str, words: &Words) -> String {
    let mut text = format!("{MAGIC} {kind} {VERSION}\n");
    for (word, value) in words {
        text.push_str(word);
        text.push('=');
        for char in value.chars() {
            match char {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                other => text.push(other),
            }
        }
        text.push('\n');
    }
    let sum = crc32fast::hash(text.as_bytes());
    let _ = writeln!(text, "{SUM}{sum:08x}");
    text
}

pub(super) fn parse(kind: &str, bytes: &[u8]) -> Result<Words, Unreadable> {
    let damaged = |what| Err(Unreadable::Damaged(what));
    let Ok(text) = std::str::from_utf8(bytes) else { return damaged("not text") };
    let mut first = text.lines().next().unwrap_or_default().split(' ');
    if (first.next(), first.next()) != (Some(MAGIC), Some(kind)) {
        return damaged("its first line says something else");
    }
    match first.next().and_then(|version| version.parse::<u32>().ok()) {
        Some(VERSION) => {}
        Some(version) if version > VERSION => {
            return Err(Unreadable::Newer(format!("{kind} file version {version}")));
        }
        _ => return damaged("its first line has no version"),
    }
    let Some((body, sum)) = text.strip_suffix('\n').and_then(|text| text.rsplit_once('\n')) else {
        return damaged("it is cut off");
    };
    let body = &text[..=body.len()];
    let sum = sum.strip_prefix(SUM).and_then(|sum| u32::from_str_radix(sum, 16).ok());
    if sum != Some(crc32fast::hash(body.as_bytes())) {
        return damaged("its sum is wrong");
    }
    let mut words = Words::new();
    for line in body.lines().skip(1) {
        let Some((word, value)) = line.split_once('=') else { return damaged("a line without '='") };
        words.insert(word.to_owned(), unescaped(value));
    }
    Ok(words)
}

fn unescaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pairs: &[(&str, &str)]) -> Words {
        pairs.iter().map(|(word, value)| ((*word).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let odd = words(&[("a", ""), ("b.c", "x=y"), ("d", "line\nline\r\\n"), ("e", " \u{e4} ")]);
        assert_eq!(parse("topic", render("topic", &odd).as_bytes()), Ok(odd));
        assert_eq!(parse("topic", render("topic", &Words::new()).as_bytes()), Ok(Words::new()));
        let text = render("topic", &words(&[("retention.ms", "-1")]));
        assert!(text.starts_with("stratalog topic 1\nretention.ms=-1\ncrc32="), "{text}");
    }

    #[test]
    fn nothing_less_and_nothing_else_is_read() {
        let text = render("topic", &words(&[("a", "1"), ("b", "2")]));
        for cut in 0..text.len() {
            assert!(parse("topic", &text.as_bytes()[..cut]).is_err(), "{cut}");
            let mut flipped = text.clone().into_bytes();
            flipped[cut] ^= 1;
            assert!(parse("topic", &flipped).is_err(), "{cut}");
        }
        assert!(parse("other", text.as_bytes()).is_err());
        assert!(parse("topic", &[0; 100]).is_err());
        let newer = text.replacen(" 1\n", " 2\n", 1);
        assert_eq!(parse("topic", newer.as_bytes()), Err(Unreadable::Newer("topic file version 2".into())));
    }
}
