//! Records as rows of CSV (RFC 4180): a row of names, then one for each record; fields with a comma, a quote or a line
//! break in quotes.
//!
//! CSV knows no null and no bytes, so each of key and value has a field before it that says how it is written: `utf8`,
//! `base64`, or `null`. Headers are the JSON list that a JSON line has of them.

use std::io::{BufRead, Write};

use crate::{
    json::{base64_decode, base64_encode, headers_of, push_headers},
    output::push_decimal,
    view::{View, timestamp_type_name},
};

/// The names of the fields, in the order in which they are written. They are read in any order.
pub(crate) const HEAD: &[u8] =
    b"offset,timestamp,timestamp_type,leader_epoch,key_encoding,key,value_encoding,value,headers\n";

/// Appends the row of a record.
pub(crate) fn push_row(out: &mut Vec<u8>, view: &View<'_>) {
    push_decimal(out, view.offset.value());
    out.push(b',');
    push_decimal(out, view.timestamp.millis());
    let clock = timestamp_type_name(view.batch.timestamp_type);
    // A Vec takes every write.
    let _ = write!(out, ",{clock},{},", view.batch.leader_epoch);
    push_bytes(out, view.key);
    out.push(b',');
    push_bytes(out, view.value);
    out.push(b',');
    let mut headers = Vec::new();
    push_headers(&mut headers, view);
    push_field(out, &headers);
    out.push(b'\n');
}

fn push_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => out.extend_from_slice(b"null,"),
        Some(bytes) if std::str::from_utf8(bytes).is_ok() => {
            out.extend_from_slice(b"utf8,");
            push_field(out, bytes);
        }
        Some(bytes) => {
            out.extend_from_slice(b"base64,");
            base64_encode(bytes, out);
        }
    }
}

fn push_field(out: &mut Vec<u8>, bytes: &[u8]) {
    if !bytes.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// One row as its fields. `Ok(None)` at the end; the text says what is wrong.
///
/// `text` becomes what was read; `lines` grows by the line breaks in it.
pub(super) fn read_row(
    from: &mut dyn BufRead,
    limit_bytes: usize,
    text: &mut Vec<u8>,
    lines: &mut u64,
) -> Result<Option<Vec<Vec<u8>>>, RowError> {
    text.clear();
    let mut fields = vec![Vec::new()];
    let mut state = State::Begin;
    loop {
        let block = from.fill_buf().map_err(RowError::Io)?;
        if block.is_empty() {
            return match state {
                State::Begin if fields.len() == 1 => Ok(None),
                State::Quoted => Err(RowError::Wrong("a quote is opened and never closed".to_owned())),
                _ => Ok(Some(fields)),
            };
        }
        let mut taken = 0;
        let mut is_whole = false;
        for &byte in block {
            taken += 1;
            *lines += u64::from(byte == b'\n');
            state = match (state, byte) {
                (State::Quoted, b'"') => State::Quote,
                (State::Quoted, _) | (State::Plain | State::Begin, b'\r') => {
                    push_byte(&mut fields, byte);
                    if state == State::Quoted { State::Quoted } else { State::Plain }
                }
                (State::Begin, b'"') => State::Quoted,
                (State::Quote, b'"') => {
                    push_byte(&mut fields, byte);
                    State::Quoted
                }
                (State::Quote, b'\r') => State::Quote,
                (_, b',') => {
                    fields.push(Vec::new());
                    State::Begin
                }
                (_, b'\n') => {
                    is_whole = true;
                    break;
                }
                (State::Quote, _) => {
                    return Err(RowError::Wrong("something follows a closing quote".to_owned()));
                }
                (_, b'"') => {
                    return Err(RowError::Wrong(
                        "a quote inside of a field that has none around it".to_owned(),
                    ));
                }
                (_, _) => {
                    push_byte(&mut fields, byte);
                    State::Plain
                }
            };
        }
        text.extend_from_slice(block.get(..taken).unwrap_or_default());
        from.consume(taken);
        if is_whole {
            // Lines that end in CR and LF: the CR is part of the line's end.
            if let Some(last) = fields.last_mut()
                && state == State::Plain
                && last.last() == Some(&b'\r')
            {
                last.pop();
            }
            return Ok(Some(fields));
        }
        if text.len() > limit_bytes {
            return Err(RowError::Wrong(format!("a row of more than {limit_bytes} bytes")));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte of a field.
    Begin,
    Plain,
    Quoted,
    /// Behind a quote that closes the field, or is the first of two.
    Quote,
}

#[derive(Debug)]
pub(super) enum RowError {
    Io(std::io::Error),
    Wrong(String),
}

fn push_byte(fields: &mut [Vec<u8>], byte: u8) {
    if let Some(last) = fields.last_mut() {
        last.push(byte);
    }
}

/// Where each field stands, by the row of names.
#[derive(Debug)]
pub(super) struct Columns(Vec<String>);

/// A record as a row tells it.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) offset: Option<i64>,
    pub(super) timestamp: Option<i64>,
    pub(super) is_append_time: bool,
    pub(super) leader_epoch: Option<i32>,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Columns {
    pub(super) fn new(names: Vec<Vec<u8>>) -> Result<Self, String> {
        let names: Result<Vec<_>, _> = names.into_iter().map(String::from_utf8).collect();
        let names = names.map_err(|_| "the first row, which has the names, is not text".to_owned())?;
        if !names.iter().any(|name| name == "value") {
            return Err("the first row must name the fields, and one of them must be `value`".to_owned());
        }
        if let Some((at, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(format!("field {} is named `{name}`, and so is one before it", at + 1));
        }
        Ok(Self(names))
    }

    pub(super) fn row(&self, mut fields: Vec<Vec<u8>>) -> Result<Row, String> {
        if fields.len() != self.0.len() {
            return Err(format!("{} fields where there are {} names", fields.len(), self.0.len()));
        }
        let mut take = |name: &str| {
            let at = self.0.iter().position(|own| own == name)?;
            fields.get_mut(at).map(std::mem::take)
        };
        let number = |name: &str, text: Option<Vec<u8>>| match text {
            None => Ok(None),
            Some(text) if text.is_empty() => Ok(None),
            Some(text) => std::str::from_utf8(&text)
                .ok()
                .and_then(|text| text.parse::<i64>().ok())
                .map(Some)
                .ok_or_else(|| format!("`{name}` is not a whole number")),
        };
        let headers = match take("headers") {
            Some(text) if !text.is_empty() => headers_of(&text)?,
            _ => Vec::new(),
        };
        let epoch = number("leader_epoch", take("leader_epoch"))?;
        Ok(Row {
            offset: number("offset", take("offset"))?,
            timestamp: number("timestamp", take("timestamp"))?,
            is_append_time: match take("timestamp_type").as_deref() {
                None | Some(b"" | b"create") => false,
                Some(b"append") => true,
                Some(_) => return Err("`timestamp_type` is neither create nor append".to_owned()),
            },
            leader_epoch: epoch.map(i32::try_from).transpose().map_err(|_| "`leader_epoch` is too large")?,
            key: bytes_of("key", take("key_encoding"), take("key"))?,
            value: bytes_of("value", take("value_encoding"), take("value"))?,
            headers,
        })
    }
}

fn bytes_of(
    name: &str,
    encoding: Option<Vec<u8>>,
    field: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, String> {
    let Some(field) = field else { return Ok(None) };
    match encoding.as_deref() {
        None | Some(b"" | b"utf8") => Ok(Some(field)),
        Some(b"null") if field.is_empty() => Ok(None),
        Some(b"null") => Err(format!("`{name}` is null by its encoding, and not empty")),
        Some(b"base64") => std::str::from_utf8(&field)
            .ok()
            .and_then(base64_decode)
            .map(Some)
            .ok_or_else(|| format!("`{name}` is not base64, though its encoding says so")),
        Some(_) => Err(format!("the encoding of `{name}` is none of utf8, base64 and null")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[u8], block: usize) -> Result<Vec<Vec<Vec<u8>>>, String> {
        let mut from = std::io::BufReader::with_capacity(block, text);
        let (mut used, mut lines, mut rows) = (0, 0, Vec::new());
        let mut raw = Vec::new();
        loop {
            let read = read_row(&mut from, 1000, &mut raw, &mut lines);
            used += raw.len() as u64;
            match read {
                Ok(Some(row)) => rows.push(row),
                Ok(None) => {
                    assert_eq!(used, text.len() as u64);
                    return Ok(rows);
                }
                Err(RowError::Wrong(what)) => return Err(what),
                Err(RowError::Io(error)) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let fields: [&[u8]; 7] = [b"", b"a", b"a,b", b"\"", b"two\nlines\r\n", b"\r", b"\xff\x00"];
        let mut text = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            push_field(&mut text, field);
        }
        text.push(b'\n');
        for block in [1, 3, 4096] {
            assert_eq!(rows(&text, block), Ok(vec![fields.map(<[u8]>::to_vec).to_vec()]), "{block}");
        }
        assert_eq!(
            rows(b"a,b\r\n\"c\"\r\n", 2).unwrap(),
            [vec![b"a".to_vec(), b"b".into()], vec![b"c".into()]]
        );
        assert_eq!(rows(b"a,", 9), Ok(vec![vec![b"a".to_vec(), Vec::new()]]), "no line break at the end");
    }

    #[test]
    fn what_is_no_row_is_refused() {
        for (text, word) in [
            (&b"\"open"[..], "never closed"),
            (b"\"a\"b,c\n", "closing quote"),
            (b"a\"b\n", "inside of a field"),
            (&[b'a'; 2000], "more than 1000"),
        ] {
            let what = rows(text, 64).unwrap_err();
            assert!(what.contains(word), "{what}");
        }
    }

    #[test]
    fn names_decide_and_null_is_not_empty() {
        let columns = |names: &str| Columns::new(names.split(',').map(|name| name.into()).collect());
        let row = |names: &str, fields: &[&str]| {
            columns(names)
                .and_then(|columns| columns.row(fields.iter().map(|field| (*field).into()).collect()))
        };
        let read = row("value,key,key_encoding,offset", &["", "", "null", "7"]).unwrap();
        assert_eq!((read.value.as_deref(), read.key, read.offset), (Some(&b""[..]), None, Some(7)));
        let read = row("value_encoding,value,timestamp_type", &["base64", "/wA=", "append"]).unwrap();
        assert_eq!((read.value.as_deref(), read.is_append_time), (Some(&b"\xff\0"[..]), true));
        for (names, fields, word) in [
            ("key", &["x"][..], "must be `value`"),
            ("value,value", &["x", "x"], "so is one before"),
            ("value", &["x", "y"], "2 fields"),
            ("value,offset", &["x", "y"], "whole number"),
            ("value,value_encoding", &["x", "null"], "not empty"),
            ("value,value_encoding", &["x", "base64"], "not base64"),
            ("value,value_encoding", &["x", "hex"], "none of"),
            ("value,headers", &["x", "{}"], "headers"),
        ] {
            let what = row(names, fields).unwrap_err();
            assert!(what.contains(word), "{what}");
        }
    }
}
