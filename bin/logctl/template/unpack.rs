//! Pack strings, as `%k{unpack[>iQ]}` and `--decode value=>iQ` have them: how bytes are read as numbers. The letters
//! are those of Python's struct module, as franz-go's record formatter takes them.

use std::io::Write;

use crate::output::{push_decimal, push_foreign};

/// A pack string that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unpack(Vec<Step>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Number { letter: char, bytes: usize, is_signed: bool, is_little: bool },
    Character,
    Rest,
    End,
    Space,
}

impl Unpack {
    /// Reads a pack string.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut steps = Vec::new();
        // As in franz-go; Python too begins with the machine's own order.
        let mut is_little = true;
        for letter in text.chars() {
            if matches!(steps.last(), Some(Step::Rest | Step::End)) {
                return Err(format!("pack string `{text}`: nothing may follow `s` or `$`"));
            }
            let (bytes, is_signed) = match letter {
                '<' | '>' => {
                    is_little = letter == '<';
                    continue;
                }
                'x' => continue,
                'c' | '.' => {
                    steps.push(Step::Character);
                    continue;
                }
                's' => {
                    steps.push(Step::Rest);
                    continue;
                }
                '$' => {
                    steps.push(Step::End);
                    continue;
                }
                ' ' => {
                    steps.push(Step::Space);
                    continue;
                }
                'b' => (1, true),
                'B' => (1, false),
                'h' => (2, true),
                'H' => (2, false),
                'i' => (4, true),
                'I' => (4, false),
                'q' => (8, true),
                'Q' => (8, false),
                other => {
                    return Err(format!(
                        "pack string `{text}`: unknown `{}`: use < > little and big endian, b B h H i I q Q numbers of 1, 2, 4 and 8 \
                         bytes (capitals unsigned), c one character, s the rest, $ the end",
                        other.escape_default()
                    ));
                }
            };
            steps.push(Step::Number { letter, bytes, is_signed, is_little });
        }
        if steps.is_empty() {
            return Err("an empty pack string".to_owned());
        }
        Ok(Self(steps))
    }

    /// Appends what the bytes say. Where they do not fit, a word in place of what is missing, as franz-go has it.
    /// `escape`: see [`push_foreign`].
    pub(crate) fn push(&self, out: &mut Vec<u8>, bytes: &[u8], escape: bool) {
        let mut rest = bytes;
        for step in &self.0 {
            match step {
                Step::Space => out.push(b' '),
                Step::Character => match rest.split_first() {
                    Some((first, tail)) => {
                        push_foreign(out, std::slice::from_ref(first), escape);
                        rest = tail;
                    }
                    None => out.extend_from_slice(b"%!c(no bytes available)"),
                },
                Step::Rest => push_foreign(out, std::mem::take(&mut rest), escape),
                Step::End if rest.is_empty() => {}
                Step::End => out.extend_from_slice(b"%!$(not end-of-input)"),
                Step::Number { letter, bytes, is_signed, is_little } => {
                    if let Some((number, tail)) = rest.split_at_checked(*bytes) {
                        push_integer(out, number, *is_signed, *is_little);
                        rest = tail;
                    } else {
                        let _ = write!(out, "%!{letter}(have {} bytes, need {bytes})", rest.len());
                        rest = &[];
                    }
                }
            }
        }
    }
}

/// Appends at most eight bytes as a decimal number.
pub(crate) fn push_integer(out: &mut Vec<u8>, bytes: &[u8], is_signed: bool, is_little: bool) {
    let place = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    let number = if is_little { bytes.iter().rev().fold(0, place) } else { bytes.iter().fold(0, place) };
    if is_signed {
        let unused = 64 - 8 * u32::try_from(bytes.len().clamp(1, 8)).unwrap_or(8);
        push_decimal(out, (number << unused).cast_signed() >> unused);
    } else if let Ok(number) = i64::try_from(number) {
        push_decimal(out, number);
    } else {
        let _ = write!(out, "{number}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pack: &str, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        Unpack::parse(pack).unwrap().push(&mut out, bytes, false);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_letter() {
        assert_eq!(text("b", b"\xff"), "-1");
        assert_eq!(text("B", b"\xff"), "255");
        assert_eq!(text("h >h", b"\xfe\xff\xff\xfe"), "-2 -2");
        assert_eq!(text("H >H", b"\x01\x02\x01\x02"), "513 258");
        assert_eq!(text(">i<i", b"\x80\0\0\0\x01\0\0\0"), "-21474836481");
        assert_eq!(text("I", b"\xff\xff\xff\xff"), "4294967295");
        assert_eq!(text(">q", b"\xff\xff\xff\xff\xff\xff\xff\xfe"), "-2");
        assert_eq!(text(">Q", &[0xff; 8]), "18446744073709551615");
        assert_eq!(text("xc.s", b"abcd"), "abcd");
        assert_eq!(text("B$", b"a"), "97");
    }

    #[test]
    fn what_does_not_fit_is_told() {
        assert_eq!(text("i", b"abc"), "%!i(have 3 bytes, need 4)");
        assert_eq!(text("hc", b"a"), "%!h(have 1 bytes, need 2)%!c(no bytes available)");
        assert_eq!(text("c$", b"ab"), "a%!$(not end-of-input)");
        for pack in ["", "z", "s$", "$s", "<", "x"] {
            assert!(Unpack::parse(pack).is_err(), "{pack}");
        }
    }
}
