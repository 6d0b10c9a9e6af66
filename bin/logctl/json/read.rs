//! Reads the line of a record.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use super::base64;
use crate::failure::shortened;

/// What some editors and exports of tables put in front of UTF-8 text.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// What was wrong with a line, and at which column of it (counted in bytes from 1).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JsonLineError {
    pub(crate) column: usize,
    pub(crate) reason: String,
}

/// A header's name and value.
pub(crate) type HeaderFields<'a> = (Cow<'a, str>, Option<Cow<'a, [u8]>>);

/// What a line says of a record; borrows from it where nothing had to be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JsonLine<'a> {
    pub(crate) offset: Option<i64>,
    pub(crate) timestamp: Option<i64>,
    /// The timestamp is of the log's clock, not the producer's.
    pub(crate) is_append_time: bool,
    pub(crate) leader_epoch: Option<i32>,
    pub(crate) key: Option<Cow<'a, [u8]>>,
    pub(crate) value: Option<Cow<'a, [u8]>>,
    pub(crate) headers: Vec<HeaderFields<'a>>,
}

#[derive(Deserialize)]
struct Line<'a> {
    offset: Option<i64>,
    timestamp: Option<i64>,
    timestamp_type: Option<Clock>,
    leader_epoch: Option<i32>,
    #[serde(borrow)]
    key: Option<Text<'a>>,
    key_encoding: Option<Encoding>,
    /// There must be one: an object without is somebody's data and not a record.
    #[serde(borrow, deserialize_with = "nullable")]
    value: Option<Text<'a>>,
    value_encoding: Option<Encoding>,
    #[serde(borrow)]
    headers: Option<Vec<HeaderLine<'a>>>,
    control: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct HeaderLine<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    key_encoding: Option<Encoding>,
    #[serde(borrow, deserialize_with = "nullable")]
    value: Option<Text<'a>>,
    value_encoding: Option<Encoding>,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Base64,
    Hex,
    Utf8,
}

/// Whose clock; other words are somebody's data.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Clock {
    Create,
    Append,
    #[serde(other)]
    Other,
}

impl Encoding {
    fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Base64 => base64::decode(text),
            Self::Hex => hex_decode(text.as_bytes()),
            Self::Utf8 => Some(text.as_bytes().to_vec()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Base64 => "base64",
            Self::Hex => "hex",
            Self::Utf8 => "utf8",
        }
    }
}

/// The bytes that hexadecimal digits stand for, two for each.
pub(crate) fn hex_decode(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}

/// serde takes a missing `Option` for null; behind a function of its own it does not.
fn nullable<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Text<'de>>, D::Error> {
    Option::deserialize(from)
}

impl<'a> JsonLine<'a> {
    /// Reads one line, without its newline. Fields with other names are ignored, and so is a byte order mark in front.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, JsonLineError> {
        match line.strip_prefix(BOM) {
            None => Self::parse_plain(line),
            Some(line) => Self::parse_plain(line).map_err(|mut error| {
                error.column += BOM.len();
                error
            }),
        }
    }

    fn parse_plain(line: &'a [u8]) -> Result<Self, JsonLineError> {
        // serde would take an array of the fields' values too.
        if line.trim_ascii_start().first() != Some(&b'{') {
            return Err(whole("expected a JSON object".to_owned()));
        }
        let line: Line<'a> = serde_json::from_slice(line)
            .map_err(|e| JsonLineError { column: e.column(), reason: plain_reason(&e) })?;
        if line.control.is_some() {
            return Err(whole("a control record cannot be appended".to_owned()));
        }
        Ok(Self {
            offset: line.offset,
            timestamp: line.timestamp,
            is_append_time: line.timestamp_type == Some(Clock::Append),
            leader_epoch: line.leader_epoch,
            key: bytes("key", line.key, line.key_encoding)?,
            value: bytes("value", line.value, line.value_encoding)?,
            headers: headers_of(line.headers.unwrap_or_default())?,
        })
    }
}

/// Reads the array that [`super::push_headers`] writes.
pub(crate) fn parse_headers(json: &[u8]) -> Result<Vec<HeaderFields<'_>>, String> {
    let headers: Vec<HeaderLine<'_>> = serde_json::from_slice(json).map_err(|e| plain_reason(&e))?;
    headers_of(headers).map_err(|e| e.reason)
}

fn headers_of(lines: Vec<HeaderLine<'_>>) -> Result<Vec<HeaderFields<'_>>, JsonLineError> {
    let mut headers = Vec::new();
    for header in lines {
        let key = match (header.key_encoding, header.key) {
            (Some(encoding @ (Encoding::Base64 | Encoding::Hex)), Text(text)) => encoding
                .decode(&text)
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .map(Cow::Owned)
                .ok_or_else(|| whole("a header's name must be UTF-8 to be appended".to_owned()))?,
            (_, Text(text)) => text,
        };
        headers.push((key, bytes("value of a header", header.value, header.value_encoding)?));
    }
    Ok(headers)
}

fn whole(reason: String) -> JsonLineError {
    JsonLineError { column: 1, reason }
}

fn bytes<'a>(
    name: &str,
    text: Option<Text<'a>>,
    encoding: Option<Encoding>,
) -> Result<Option<Cow<'a, [u8]>>, JsonLineError> {
    let Some(Text(text)) = text else { return Ok(None) };
    match (encoding, text) {
        (Some(encoding @ (Encoding::Base64 | Encoding::Hex)), text) => match encoding.decode(&text) {
            Some(bytes) => Ok(Some(Cow::Owned(bytes))),
            None => Err(whole(format!("`{name}` is not {}, though its encoding says so", encoding.name()))),
        },
        (_, Cow::Borrowed(text)) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
        (_, Cow::Owned(text)) => Ok(Some(Cow::Owned(text.into_bytes()))),
    }
}

/// serde's message without its "at line 1 column 7": the line's number in the file is known to the caller alone.
fn plain_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    // It quotes what it did not expect, however long that is.
    shortened(text.strip_suffix(&place).unwrap_or(&text)).into_owned()
}

impl fmt::Display for JsonLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use stratalog::{
        Offset, Timestamp,
        record::{BatchBuilder, BatchOptions, BatchRef, Header, Record, Scratch},
    };

    use super::*;
    use crate::{
        json::{JsonStyle, push_record},
        target::Target,
        view::{BatchView, View},
    };

    fn written(record: &Record<'_>, style: JsonStyle) -> String {
        let base_offset = Offset::new(42).unwrap();
        let mut builder =
            BatchBuilder::new(BatchOptions { base_offset, leader_epoch: 0, ..BatchOptions::default() });
        builder.push(*record).unwrap();
        let batch = BatchRef::parse(builder.finish().unwrap()).unwrap();
        let target = Target::new("data/orders-0".into(), false);
        let mut scratch = Scratch::default();
        let record = batch.records(&mut scratch).unwrap().next().unwrap().unwrap();
        let mut out = Vec::new();
        push_record(&mut out, &View::new(&target, BatchView::new(&batch), &record), style);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_documented_line() {
        let headers = [Header { key: "h", value: Some(b"v") }];
        let record =
            Record::new().key(b"u1").value(b"x\"\n").headers(&headers).timestamp(Timestamp::from_millis(7));
        assert_eq!(
            written(&record, JsonStyle::default()),
            concat!(
                r#"{"topic":"orders","partition":0,"offset":42,"timestamp":7,"timestamp_type":"create","leader_epoch":0,"#,
                r#""key":"u1","value":"x\"\n","headers":[{"key":"h","value":"v"}],"producer_id":-1}"#,
                "\n"
            )
        );
        let style = JsonStyle { with_batch: true, meta_only: true, ..JsonStyle::default() };
        assert!(
            written(&record, style)
                .ends_with("\"producer_id\":-1,\"batch\":{\"base_offset\":42,\"codec\":\"none\"}}\n")
        );
    }

    #[test]
    fn every_byte_comes_back() {
        let odd: [&[u8]; 8] = [
            b"",
            b"\xff",
            b"\xf0\x90\x80",
            b"\xed\xa0\x80",
            b"\0\x1f\x7f\xc2\x9b\"\\/",
            b"\r\n",
            "\u{10ffff}\u{e9}".as_bytes(),
            b"AAA=",
        ];
        for key in odd {
            for value in odd {
                let headers = [Header { key: "\u{1}\"", value: Some(key) }, Header { key: "", value: None }];
                let record = Record::new()
                    .key(key)
                    .value(value)
                    .headers(&headers)
                    .timestamp(Timestamp::from_millis(-1));
                for pretty in [false, true] {
                    let line = written(&record, JsonStyle { pretty, ..JsonStyle::default() });
                    assert!(line.is_ascii() || !line.contains('\u{9b}'));
                    let read = JsonLine::parse(line.trim_end().as_bytes()).unwrap();
                    assert_eq!((read.offset, read.timestamp), (Some(42), Some(-1)));
                    assert_eq!(read.key.as_deref(), Some(key));
                    assert_eq!(read.value.as_deref(), Some(value));
                    assert_eq!(read.headers[0].0, "\u{1}\"");
                    assert_eq!(read.headers[0].1.as_deref(), Some(key));
                    assert_eq!(read.headers[1], (Cow::Borrowed(""), None));
                }
            }
        }
    }

    #[test]
    fn null_is_not_empty() {
        let read = JsonLine::parse(br#"{"value":null,"other":{"x":[1]}}"#).unwrap();
        assert_eq!((read.key, read.value), (None, None));
        let read = JsonLine::parse(br#" {"key":"","value":""} "#).unwrap();
        assert_eq!((read.key.as_deref(), read.value.as_deref()), (Some(&b""[..]), Some(&b""[..])));
    }

    #[test]
    fn mistakes_have_a_column() {
        for (line, column, word) in [
            (&br"{}"[..], 2, "value"),
            (b"{\"value\":1}", 10, "string"),
            (b"{\"value\":\"x\"", 12, "EOF"),
            (b"{\"value\":\"x\"} y", 15, "trailing"),
            (b"{\"value\":\"\xff\"}", 11, "unicode"),
            (b"{\"value\":\"x\",\"value\":\"y\"}", 20, "duplicate"),
            (b"{\"value\":\"x\",\"value_encoding\":\"hex\"}", 1, "not hex"),
            (b"{\"value\":\"x\",\"value_encoding\":\"ucs\"}", 35, "unknown variant"),
            (b"{\"value\":\"AB==\",\"value_encoding\":\"base64\"}", 1, "base64"),
            (b"{\"value\":\"x\",\"timestamp\":1.5}", 28, "i64"),
            (b"{\"value\":\"x\",\"control\":\"commit\"}", 1, "control"),
            (b"[null,null,null,null,null,null,null,null]", 1, "object"),
            (b"hello", 1, "expected"),
        ] {
            let error = JsonLine::parse(line).unwrap_err();
            assert!(error.reason.contains(word), "{}: {error}", line.escape_ascii());
            assert_eq!(error.column, column, "{}: {error}", line.escape_ascii());
            assert!(!error.reason.contains("line 1"), "{error}");
        }
    }
}
