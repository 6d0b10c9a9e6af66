//! The words of a `--where` expression.

use crate::grammar::escape;

/// A word, and where it begins and ends in the text (in bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: usize,
    pub(super) end: usize,
    /// In quotes: the first escape that is none of ours, as a regular expression may have them.
    pub(super) odd_escape: Option<Mistake>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A field, a keyword, a number or a size: letters, digits, `_`, `.`, `-` inside.
    Word(String),
    /// Text in quotes.
    Text(Vec<u8>),
    /// What follows an `@`.
    Time(String),
    /// An operator, a parenthesis or a bracket.
    Sign(&'static str),
    End,
}

/// Something that is wrong at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) at: usize,
    pub(super) what: String,
}

const SIGNS: [&str; 17] =
    ["==", "=~", "!=", "!~", "<=", ">=", "&&", "||", "<>", "=", "<", ">", "!", "(", ")", "[", "]"];

/// Cuts the text into words; the last is [`Kind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Mistake> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(first) = rest.chars().next() else { break };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let mut odd_escape = None;
        let (kind, length) = match first {
            '"' | '\'' => {
                let text = quoted(rest, first, at)?;
                odd_escape = text.odd_escape;
                (Kind::Text(text.bytes), text.length)
            }
            '@' => {
                let behind = rest.get(1..).unwrap_or_default();
                if let Some(quote @ ('"' | '\'')) = behind.chars().next() {
                    let text = quoted(behind, quote, at + 1)?;
                    odd_escape = text.odd_escape;
                    (Kind::Time(String::from_utf8_lossy(&text.bytes).into_owned()), text.length + 1)
                } else {
                    let end = behind.find(|c: char| c.is_whitespace() || c == ')').unwrap_or(behind.len());
                    (Kind::Time(behind.get(..end).unwrap_or_default().to_owned()), end + 1)
                }
            }
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.') => {
                let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
                let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
                (Kind::Word(rest.get(..end).unwrap_or_default().to_owned()), end)
            }
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Kind::Sign(sign), sign.len()),
                None => {
                    return Err(Mistake {
                        at,
                        what: format!("`{}` means nothing here", first.escape_default()),
                    });
                }
            },
        };
        found.push(Token { kind, at, end: at + length, odd_escape });
        at += length;
    }
    found.push(Token { kind: Kind::End, at: text.len(), end: text.len(), odd_escape: None });
    Ok(found)
}

/// What stands in quotes.
struct Quoted {
    bytes: Vec<u8>,
    /// How many bytes it takes, with its quotes.
    length: usize,
    odd_escape: Option<Mistake>,
}

/// Text in quotes at the front of `rest`, which begins at `at`.
fn quoted(rest: &str, quote: char, at: usize) -> Result<Quoted, Mistake> {
    let bytes = rest.as_bytes();
    let quote = u8::try_from(quote).unwrap_or(b'"');
    let mut text = Vec::new();
    let mut odd_escape = None;
    let mut here = 1;
    while let Some(&byte) = bytes.get(here) {
        here += 1;
        if byte == quote {
            return Ok(Quoted { bytes: text, length: here, odd_escape });
        }
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        let tail = bytes.get(here..).unwrap_or_default();
        if let Some(sign @ (b'"' | b'\'')) = tail.first() {
            text.push(*sign);
            here += 1;
            continue;
        }
        // What is no escape of ours may be one of a regular expression, and stays as it is.
        match escape(tail) {
            Ok((byte, used)) => {
                text.push(byte);
                here += used;
            }
            Err(what) => {
                odd_escape.get_or_insert(Mistake { at: at + here - 1, what });
                text.push(b'\\');
            }
        }
    }
    Err(Mistake { at, what: "this quote is not closed".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn words() {
        let word = |text: &str| Kind::Word(text.to_owned());
        assert_eq!(
            kinds("headers.a-b>=-1 and(key=~'\\d\\'\\n')"),
            [
                word("headers.a-b"),
                Kind::Sign(">="),
                word("-1"),
                word("and"),
                Kind::Sign("("),
                word("key"),
                Kind::Sign("=~"),
                Kind::Text(b"\\d'\n".to_vec()),
                Kind::Sign(")"),
                Kind::End,
            ]
        );
        assert_eq!(
            kinds("@-15m @2026-11-30T08:00:00Z) @\"2026-11-30 08:00\""),
            [
                Kind::Time("-15m".to_owned()),
                Kind::Time("2026-11-30T08:00:00Z".to_owned()),
                Kind::Sign(")"),
                Kind::Time("2026-11-30 08:00".to_owned()),
                Kind::End,
            ]
        );
        assert_eq!(tokens("a = 'x").unwrap_err().at, 4);
        assert_eq!(tokens("a ; b").unwrap_err().at, 2);
    }
}
