//! One record out of bytes.

use std::borrow::Cow;

use memchr::memmem;
use serde::de::IgnoredAny;

use super::{Encoding, Extent, Field, Found, Layout, NumberForm, Outcome, Step, Target, pattern::Match};
use crate::json;

/// Why a step gives nothing.
enum Stopped {
    More,
    Wrong(String),
}

type Read<T> = Result<T, Stopped>;

/// Where the reading stands.
struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
    is_all: bool,
    limit_bytes: usize,
}

/// Numbers that other fields go by.
#[derive(Default)]
struct Sizes {
    topic: u64,
    key: u64,
    value: u64,
    headers: u64,
}

pub(super) fn record<'b>(layout: &mut Layout, bytes: &'b [u8], is_all: bool) -> Result<Outcome<'b>, String> {
    if bytes.is_empty() {
        return Ok(if is_all { Outcome::End } else { Outcome::More });
    }
    let begins_with_json = matches!(layout.steps.first(), Some(Step::Text(_, Extent::Json, _)));
    if is_all && begins_with_json && bytes.trim_ascii().is_empty() {
        return Ok(Outcome::End);
    }
    let mut walk = Walk { bytes, at: 0, is_all, limit_bytes: layout.limit_bytes };
    let mut found = Found::default();
    match walk.steps(&mut layout.steps, &mut found, true) {
        Ok(()) if walk.at == 0 => Err("it takes nothing from the input, and would never end".to_owned()),
        Ok(()) => Ok(Outcome::Record(Box::new(found), walk.at)),
        Err(Stopped::More) if is_all => {
            Err(format!("byte {}: the input ends in the midst of a record", bytes.len()))
        }
        Err(Stopped::More) => Ok(Outcome::More),
        Err(Stopped::Wrong(what)) => Err(format!("byte {}: {what}", walk.at)),
    }
}

impl<'b> Walk<'b> {
    fn rest(&self) -> &'b [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn steps(&mut self, steps: &mut [Step], found: &mut Found<'b>, is_outer: bool) -> Read<()> {
        let mut sizes = Sizes::default();
        let count = steps.len();
        for (index, step) in steps.iter_mut().enumerate() {
            // What ends the last record may be missing at the end of the input.
            let may_end = self.is_all && is_outer && index + 1 == count;
            match step {
                Step::Exact(_) if may_end && self.rest().is_empty() && self.at > 0 => {}
                Step::Exact(text) => self.exact(text)?,
                Step::Number(form, target) => self.number(*form, *target, &mut sizes, found)?,
                Step::Text(field, extent, encoding) => {
                    let size = match field {
                        Field::Topic => sizes.topic,
                        Field::Key => sizes.key,
                        Field::Value => sizes.value,
                    };
                    let bytes = self.text(extent, size, may_end)?;
                    let bytes = decoded(bytes, *encoding).map_err(|what| {
                        Stopped::Wrong(format!("`%{}` is {what}: {}", field.letter(), shown(bytes)))
                    })?;
                    match field {
                        Field::Topic => {}
                        Field::Key => found.key = Some(bytes),
                        Field::Value => found.value = Some(bytes),
                    }
                }
                Step::Headers(inner) => self.headers(inner, sizes.headers, found)?,
            }
        }
        Ok(())
    }

    fn headers(&mut self, inner: &mut [Step], count: u64, found: &mut Found<'b>) -> Read<()> {
        for _ in 0..count {
            let before = self.at;
            let mut header = Found::default();
            self.steps(inner, &mut header, false)?;
            if self.at == before {
                return Err(Stopped::Wrong("a header that takes nothing from the input".to_owned()));
            }
            let name = String::from_utf8(header.key.unwrap_or_default().into_owned())
                .map_err(|_| Stopped::Wrong("a header's name that is not UTF-8".to_owned()))?;
            found.headers.push((name, header.value.unwrap_or_default().into_owned()));
        }
        Ok(())
    }

    fn take(&mut self, count: usize) -> Read<&'b [u8]> {
        let Some(taken) = self.rest().get(..count) else { return Err(Stopped::More) };
        self.at += count;
        Ok(taken)
    }

    fn exact(&mut self, text: &[u8]) -> Read<()> {
        let rest = self.rest();
        if rest.starts_with(text) {
            self.at += text.len();
            return Ok(());
        }
        if text.starts_with(rest) {
            return Err(Stopped::More);
        }
        Err(Stopped::Wrong(format!("expected {}, found {}", shown(text), shown(rest))))
    }

    fn number(
        &mut self,
        form: NumberForm,
        target: Target,
        sizes: &mut Sizes,
        found: &mut Found<'b>,
    ) -> Read<()> {
        let is_signed = matches!(target, Target::Timestamp | Target::Offset | Target::Unused);
        let wrong = |bytes: &[u8]| Stopped::Wrong(format!("expected a number, found {}", shown(bytes)));
        let place = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        let number = match form {
            NumberForm::Always(number) => number,
            NumberForm::Decimal => {
                let rest = self.rest();
                let sign = usize::from(is_signed && rest.first() == Some(&b'-'));
                let digits = rest.iter().skip(sign).take_while(|b| b.is_ascii_digit()).count();
                if sign + digits == rest.len() && !self.is_all {
                    return Err(Stopped::More);
                }
                let text = self.take(sign + digits)?;
                let text = std::str::from_utf8(text).unwrap_or_default();
                let number =
                    if sign == 0 { text.parse().ok() } else { text.parse().ok().map(i64::cast_unsigned) };
                number.ok_or_else(|| wrong(rest))?
            }
            NumberForm::HexDigits(digits) => {
                let digits = self.take(digits)?;
                let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'));
                text.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or_else(|| wrong(digits))?
            }
            NumberForm::BigEndian(count) => self.take(count)?.iter().fold(0, place),
            NumberForm::LittleEndian(count) => self.take(count)?.iter().rev().fold(0, place),
            NumberForm::Bool => {
                let rest = self.rest();
                match ["true", "false"].iter().find(|word| rest.starts_with(word.as_bytes())) {
                    Some(word) => {
                        self.at += word.len();
                        u64::from(*word == "true")
                    }
                    None if b"true".starts_with(rest) || b"false".starts_with(rest) => {
                        return Err(Stopped::More);
                    }
                    None => {
                        return Err(Stopped::Wrong(format!("expected true or false, found {}", shown(rest))));
                    }
                }
            }
        };
        match target {
            Target::Size(Field::Topic) => sizes.topic = number,
            Target::Size(Field::Key) => sizes.key = number,
            Target::Size(Field::Value) => sizes.value = number,
            Target::HeaderCount => sizes.headers = number,
            Target::Timestamp => found.timestamp = Some(number.cast_signed()),
            Target::Offset => found.offset = Some(number.cast_signed()),
            Target::Unused => {}
        }
        Ok(())
    }

    fn text(&mut self, extent: &mut Extent, size: u64, may_end: bool) -> Read<&'b [u8]> {
        let rest = self.rest();
        match extent {
            Extent::Sized => {
                let count = usize::try_from(size).ok().filter(|count| *count <= self.limit_bytes);
                let Some(count) = count else {
                    return Err(Stopped::Wrong(format!(
                        "a size of {size} bytes, more than the {} that a record may have",
                        self.limit_bytes
                    )));
                };
                self.take(count)
            }
            Extent::Rest if self.is_all => self.take(rest.len()),
            Extent::Rest => Err(Stopped::More),
            Extent::Delimited(delim) => match memmem::find(rest, delim) {
                Some(end) => {
                    self.at += end + delim.len();
                    Ok(rest.get(..end).unwrap_or_default())
                }
                None if may_end => self.take(rest.len()),
                None => Err(Stopped::More),
            },
            Extent::Matched(pattern) => match pattern.matched(rest, self.is_all).map_err(Stopped::Wrong)? {
                Match::Length(count) => self.take(count),
                Match::More => Err(Stopped::More),
                Match::No => {
                    Err(Stopped::Wrong(format!("re[{}] does not match {}", pattern.text(), shown(rest))))
                }
            },
            Extent::Json => {
                let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
                match values.next() {
                    None => Err(Stopped::More),
                    Some(Ok(_)) => {
                        let end = values.byte_offset();
                        // A number may go on.
                        if end == rest.len() && !self.is_all {
                            return Err(Stopped::More);
                        }
                        self.take(end)
                    }
                    Some(Err(error)) if error.is_eof() => Err(Stopped::More),
                    Some(Err(error)) => Err(Stopped::Wrong(format!("no JSON: {error}"))),
                }
            }
        }
    }
}

/// The bytes that a text stands for, or what it is not.
fn decoded(bytes: &[u8], encoding: Encoding) -> Result<Cow<'_, [u8]>, &'static str> {
    match encoding {
        Encoding::Plain => Ok(Cow::Borrowed(bytes)),
        Encoding::Hex => json::hex_decode(bytes).map(Cow::Owned).ok_or("not hexadecimal"),
        Encoding::Base64 => {
            let padding = (4 - bytes.len() % 4) % 4;
            let padded = std::str::from_utf8(bytes).ok().map(|text| format!("{text}{:=<padding$}", ""));
            padded.and_then(|text| json::base64_decode(&text)).map(Cow::Owned).ok_or("not base64")
        }
        Encoding::Json => {
            if serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
                return Err("no JSON");
            }
            let (mut in_string, mut is_escaped) = (false, false);
            let kept = |byte: &&u8| {
                match **byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' => is_escaped = true,
                    b'"' => in_string = !in_string,
                    b' ' | b'\t' | b'\n' | b'\r' if !in_string => return false,
                    _ => {}
                }
                true
            };
            Ok(Cow::Owned(bytes.iter().filter(kept).copied().collect()))
        }
    }
}

/// The beginning of foreign bytes, for a message.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 24;
    let (text, more) = match bytes.split_at_checked(MOST) {
        Some((head, [_, ..])) => (head, ".."),
        _ => (bytes, ""),
    };
    if bytes.is_empty() { "nothing".to_owned() } else { format!("`{}`{more}", text.escape_ascii()) }
}
