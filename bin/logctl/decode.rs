//! `--decode`: what the bytes of keys, values and headers mean, and how they are shown for it.

use std::{fmt::Write as _, io::Write};

use serde::de::IgnoredAny;

use crate::{
    json::{self, push_compact_json, push_text_to},
    output::push_foreign,
    template::{Unpack, push_integer},
};

/// How the text fields of a record are printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextStyle {
    /// See [`push_foreign`]: for a terminal.
    pub(crate) escape: bool,
    /// What stands for null.
    pub(crate) null: &'static [u8],
    pub(crate) decode: Decode,
}

/// One form for each kind of field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decode {
    pub(crate) key: Form,
    pub(crate) value: Form,
    pub(crate) header: Form,
}

/// What bytes mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// Text, or bytes as they are.
    #[default]
    Plain,
    Hex,
    Base64,
    Integer {
        bytes: usize,
        is_signed: bool,
        is_little: bool,
    },
    Float {
        bytes: usize,
        is_little: bool,
    },
    Unpack(Unpack),
    Json,
}

/// A field and its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecodeField {
    name: FieldName,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldName {
    Key,
    Value,
    Header,
}

impl DecodeField {
    /// Reads `key=i32be`; for clap, which splits at commas.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` wants a field and a form: key=i32be, value=json or header=hex");
        let (name, form) = text.split_once('=').ok_or_else(wrong)?;
        let name = match name {
            "key" => FieldName::Key,
            "value" => FieldName::Value,
            "header" | "headers" => FieldName::Header,
            _ => return Err(wrong()),
        };
        Form::parse(form).map(|form| Self { name, form })
    }
}

impl Decode {
    /// Puts the fields together; one that is given twice is a mistake.
    pub(crate) fn of(fields: &[DecodeField]) -> Result<Self, String> {
        let mut decode = Self::default();
        let mut seen = Vec::new();
        for DecodeField { name, form } in fields {
            if seen.contains(name) {
                return Err(format!("{name:?} is given twice").to_lowercase());
            }
            seen.push(*name);
            match name {
                FieldName::Key => decode.key = form.clone(),
                FieldName::Value => decode.value = form.clone(),
                FieldName::Header => decode.header = form.clone(),
            }
        }
        Ok(decode)
    }
}

impl Form {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "utf8" | "string" | "text" | "raw" => return Ok(Self::Plain),
            "hex" => return Ok(Self::Hex),
            "base64" => return Ok(Self::Base64),
            "json" => return Ok(Self::Json),
            _ => {}
        }
        if let Some(form) = Self::number(text) {
            return Ok(form);
        }
        Unpack::parse(text.strip_prefix("pack:").unwrap_or(text)).map(Self::Unpack).map_err(|_| {
            format!(
                "unknown form `{text}`: use utf8, hex, base64, json, i8, i16be to i64be, u16le to u64le and the like, f32be, f64le, \
                 or a pack string such as >iQ"
            )
        })
    }

    /// `i32be`, `u64le`, `f64`: big endian where nothing is said, as Kafka's own serializers write numbers.
    fn number(text: &str) -> Option<Self> {
        let (rest, is_little) = match (text.strip_suffix("le"), text.strip_suffix("be")) {
            (Some(rest), _) => (rest, true),
            (_, Some(rest)) => (rest, false),
            _ => (text, false),
        };
        Some(match rest {
            "f32" => Self::Float { bytes: 4, is_little },
            "f64" => Self::Float { bytes: 8, is_little },
            _ => {
                let bytes = match rest.get(1..)? {
                    "8" => 1,
                    "16" => 2,
                    "32" => 4,
                    "64" => 8,
                    _ => return None,
                };
                let is_signed = match rest.as_bytes().first()? {
                    b'i' => true,
                    b'u' => false,
                    _ => return None,
                };
                Self::Integer { bytes, is_signed, is_little }
            }
        })
    }

    /// Appends a field for people and templates. What does not have this form is shown as `0x` and its bytes.
    pub(crate) fn push_text(&self, out: &mut Vec<u8>, bytes: &[u8], escape: bool) {
        match self {
            Self::Hex => push_hex(out, bytes),
            Self::Base64 => json::base64_encode(bytes, out),
            Self::Unpack(unpack) => unpack.push(out, bytes, escape),
            Self::Json if is_json(bytes) => push_compact_json(out, bytes, escape),
            Self::Plain | Self::Json => push_foreign(out, bytes, escape),
            Self::Integer { .. } | Self::Float { .. } => {
                if !self.push_number(out, bytes, true) {
                    out.extend_from_slice(b"0x");
                    push_hex(out, bytes);
                }
            }
        }
    }

    /// Appends a JSON value; how it is encoded, where that is not plain. What does not have this form is shown as bytes
    /// are without one.
    pub(crate) fn push_json(&self, out: &mut Vec<u8>, bytes: &[u8], escape: bool) -> Option<&'static str> {
        let quoted = |out: &mut Vec<u8>, text: &[u8]| {
            out.push(b'"');
            out.extend_from_slice(text);
            out.push(b'"');
        };
        match self {
            Self::Hex => {
                let mut text = Vec::with_capacity(bytes.len() * 2);
                push_hex(&mut text, bytes);
                quoted(out, &text);
                return Some("hex");
            }
            Self::Base64 => {
                let mut text = Vec::new();
                json::base64_encode(bytes, &mut text);
                quoted(out, &text);
                return Some("base64");
            }
            Self::Unpack(unpack) => {
                let mut text = Vec::new();
                unpack.push(&mut text, bytes, false);
                push_text_to(out, &String::from_utf8_lossy(&text), escape);
                return None;
            }
            Self::Json if is_json(bytes) => {
                push_compact_json(out, bytes, escape);
                return None;
            }
            Self::Integer { .. } | Self::Float { .. } if self.push_number(out, bytes, false) => return None,
            _ => {}
        }
        if let Ok(text) = std::str::from_utf8(bytes)
            && matches!(self, Self::Plain | Self::Json)
        {
            push_text_to(out, text, escape);
            return None;
        }
        let mut text = Vec::new();
        json::base64_encode(bytes, &mut text);
        quoted(out, &text);
        Some("base64")
    }

    /// False where the bytes are no such number; JSON has no infinities and the like.
    fn push_number(&self, out: &mut Vec<u8>, bytes: &[u8], with_all: bool) -> bool {
        match *self {
            Self::Integer { bytes: size, is_signed, is_little } if bytes.len() == size => {
                push_integer(out, bytes, is_signed, is_little);
                true
            }
            Self::Float { bytes: size, is_little } if bytes.len() == size => {
                let number = match (<[u8; 4]>::try_from(bytes), <[u8; 8]>::try_from(bytes)) {
                    (Ok(four), _) => {
                        let number =
                            if is_little { f32::from_le_bytes(four) } else { f32::from_be_bytes(four) };
                        // The shortest digits of the small number, not those of the large one that it is.
                        float_text(number, number.is_finite() || with_all)
                    }
                    (_, Ok(eight)) => {
                        let number =
                            if is_little { f64::from_le_bytes(eight) } else { f64::from_be_bytes(eight) };
                        float_text(number, number.is_finite() || with_all)
                    }
                    _ => None,
                };
                number.is_some_and(|text| out.write_all(text.as_bytes()).is_ok())
            }
            _ => false,
        }
    }
}

/// The shortest text that reads back as the number; large and small ones with an exponent.
fn float_text(number: impl std::fmt::Debug, is_shown: bool) -> Option<String> {
    let mut text = String::new();
    (is_shown && write!(text, "{number:?}").is_ok()).then_some(text)
}

fn is_json(bytes: &[u8]) -> bool {
    // What serde ignores it does not check for UTF-8.
    std::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// Appends hexadecimal digits.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.extend([byte >> 4, byte & 15].map(|n| b"0123456789abcdef"[usize::from(n)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(form: &str, bytes: &[u8]) -> (String, String, Option<&'static str>) {
        let form = Form::parse(form).unwrap();
        let (mut text, mut value) = (Vec::new(), Vec::new());
        form.push_text(&mut text, bytes, false);
        let encoding = form.push_json(&mut value, bytes, false);
        (String::from_utf8_lossy(&text).into_owned(), String::from_utf8(value).unwrap(), encoding)
    }

    #[test]
    fn every_form() {
        let plain = |text: &str, json: &str| (text.to_owned(), json.to_owned(), None);
        let named = |text: &str, json: &str, name| (text.to_owned(), json.to_owned(), Some(name));
        assert_eq!(shown("utf8", b"a\"b"), plain("a\"b", "\"a\\\"b\""));
        assert_eq!(shown("hex", b"\x01\xff"), named("01ff", "\"01ff\"", "hex"));
        assert_eq!(shown("base64", b"hi"), named("aGk=", "\"aGk=\"", "base64"));
        assert_eq!(
            shown("json", b"{ \"a\" : [1, \"x y\"] }"),
            plain("{\"a\":[1,\"x y\"]}", "{\"a\":[1,\"x y\"]}")
        );
        assert_eq!(shown("i8", b"\xff"), plain("-1", "-1"));
        assert_eq!(shown("u16le", b"\x01\x02"), plain("513", "513"));
        assert_eq!(shown("i32", b"\0\0\0\x07"), plain("7", "7"));
        assert_eq!(shown("u64be", &[0xff; 8]), plain("18446744073709551615", "18446744073709551615"));
        assert_eq!(shown("f32be", &0.1_f32.to_be_bytes()), plain("0.1", "0.1"));
        assert_eq!(shown("f64le", &1e300_f64.to_le_bytes()), plain("1e300", "1e300"));
        assert_eq!(shown(">hB", b"\0\x01\x02"), plain("12", "\"12\""));
        assert_eq!(shown("pack:b", b"\x02"), plain("2", "\"2\""));
    }

    #[test]
    fn what_does_not_fit_is_not_mangled() {
        assert_eq!(shown("i32", b"abc"), ("0x616263".into(), "\"YWJj\"".into(), Some("base64")));
        assert_eq!(shown("json", b"{x"), ("{x".into(), "\"{x\"".into(), None));
        assert_eq!(shown("json", b"\xff"), ("\u{fffd}".into(), "\"/w==\"".into(), Some("base64")));
        let infinity = f64::INFINITY.to_be_bytes();
        assert_eq!(shown("f64", &infinity), ("inf".into(), "\"f/AAAAAAAAA=\"".into(), Some("base64")));
        let deep = "[".repeat(100_000);
        assert_eq!(shown("json", deep.as_bytes()).0, deep);
    }

    #[test]
    fn mistakes() {
        for text in ["key", "key=", "x=hex", "key=i33", "value=f16", "=hex", "key=i32xe"] {
            assert!(DecodeField::parse(text).is_err(), "{text}");
        }
        let twice = ["key=hex", "key=i8"].map(|text| DecodeField::parse(text).unwrap());
        assert_eq!(Decode::of(&twice), Err("key is given twice".to_owned()));
    }
}
