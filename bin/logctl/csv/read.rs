//! Reads rows: the first names the columns.

use std::borrow::Cow;

use crate::{
    failure::shortened,
    json::{HeaderFields, parse_headers},
};

/// Knows the columns, once their row has come.
#[derive(Debug, Default)]
pub(crate) struct CsvReader {
    columns: Option<Vec<Column>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Offset,
    Timestamp,
    Key,
    Value,
    Headers,
    Header(String),
    /// One that our own tables have, and that is nothing to append.
    Told,
}

/// What a row says of a record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    pub(crate) offset: Option<i64>,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<Cow<'a, [u8]>>,
    pub(crate) value: Option<Cow<'a, [u8]>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

/// A field as it was found: null where there is nothing at all.
type Field<'a> = Option<Cow<'a, [u8]>>;

impl CsvReader {
    /// Reads a row, without the newline at its end; `None` for the row of names and for an empty one.
    pub(crate) fn row<'a>(&mut self, line: &'a [u8]) -> Result<Option<Row<'a>>, String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(columns) = &self.columns else {
            self.columns = Some(names(line)?);
            return Ok(None);
        };
        if line.is_empty() && columns.len() > 1 {
            return Ok(None);
        }
        let fields = fields(line)?;
        if fields.len() != columns.len() {
            return Err(format!(
                "{} fields, where the first row names {} columns",
                fields.len(),
                columns.len()
            ));
        }
        let mut row = Row::default();
        for (column, field) in columns.iter().zip(fields) {
            match column {
                Column::Key => row.key = field,
                Column::Value => row.value = field,
                Column::Offset => row.offset = number("offset", field)?,
                Column::Timestamp => row.timestamp = number("timestamp", field)?,
                // A column of headers has a field in every row: nothing in it is no header.
                Column::Header(name) => {
                    if let Some(value) = field {
                        row.headers.push((name.clone(), Some(value.into_owned())));
                    }
                }
                Column::Headers => {
                    let Some(json) = field else { continue };
                    let headers = parse_headers(&json).map_err(|e| format!("headers: {e}"))?;
                    let owned =
                        |(key, value): HeaderFields<'_>| (key.into_owned(), value.map(Cow::into_owned));
                    row.headers.extend(headers.into_iter().map(owned));
                }
                Column::Told => {}
            }
        }
        Ok(Some(row))
    }

    /// Where the row at the front of `bytes` ends, without its newline; `None` where it is not all there. `from`: up to
    /// there it was looked at before, and that in quotes or not. A quote inside of a field turns it for good only where
    /// it is doubled, so counting them is enough.
    pub(crate) fn row_end(bytes: &[u8], from: usize, in_quotes: &mut bool) -> Option<usize> {
        let rest = bytes.get(from..)?;
        for at in memchr::memchr2_iter(b'"', b'\n', rest) {
            match rest.get(at) {
                Some(b'"') => *in_quotes = !*in_quotes,
                _ if *in_quotes => {}
                _ => return Some(from + at),
            }
        }
        None
    }
}

fn names(line: &[u8]) -> Result<Vec<Column>, String> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let mut columns = Vec::new();
    for field in fields(line)? {
        let name = field.unwrap_or_default();
        let name = String::from_utf8_lossy(&name).trim().to_owned();
        let column = match name.as_str() {
            "offset" => Column::Offset,
            "timestamp" => Column::Timestamp,
            "key" => Column::Key,
            "value" => Column::Value,
            "headers" => Column::Headers,
            "topic" | "partition" | "time" | "timestamp_type" | "leader_epoch" | "key_bytes"
            | "value_bytes" | "producer_id" => Column::Told,
            name => match name.strip_prefix("header.").filter(|name| !name.is_empty()) {
                Some(name) => Column::Header(name.to_owned()),
                None => {
                    return Err(format!(
                        "unknown column {:?}: the first row names key, value, timestamp, offset, headers or header.NAME",
                        shortened(name)
                    ));
                }
            },
        };
        if column != Column::Told && columns.contains(&column) {
            return Err(format!("the column {:?} is there twice", shortened(&name)));
        }
        columns.push(column);
    }
    if !columns.contains(&Column::Value) {
        return Err("the first row names no column `value`".to_owned());
    }
    Ok(columns)
}

fn number(name: &str, field: Field<'_>) -> Result<Option<i64>, String> {
    let Some(digits) = field else { return Ok(None) };
    let number = std::str::from_utf8(&digits).ok().and_then(|digits| digits.trim().parse().ok());
    number.map(Some).ok_or_else(|| format!("the {name} is not a number"))
}

/// Splits a row.
fn fields(line: &[u8]) -> Result<Vec<Field<'_>>, String> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, tail) = if let Some(quoted) = rest.strip_prefix(b"\"") {
            let (field, tail) = unquoted(quoted)?;
            (Some(field), tail)
        } else {
            let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
            let (field, tail) = rest.split_at(end);
            if field.contains(&b'"') {
                return Err("a quote in a field that does not begin with one".to_owned());
            }
            (Some(Cow::Borrowed(field)).filter(|field| !field.is_empty()), tail)
        };
        fields.push(field);
        match tail.split_first() {
            None => return Ok(fields),
            Some((b',', tail)) => rest = tail,
            Some(_) => return Err("something follows the quote that ends a field".to_owned()),
        }
    }
}

/// What stands in quotes, the first of which is taken; and what is behind the last.
fn unquoted(quoted: &[u8]) -> Result<(Cow<'_, [u8]>, &[u8]), String> {
    let mut whole = Vec::new();
    let mut rest = quoted;
    while let Some(end) = memchr::memchr(b'"', rest) {
        let (part, tail) = rest.split_at(end);
        let tail = tail.get(1..).unwrap_or_default();
        let Some(tail_behind) = tail.strip_prefix(b"\"") else {
            return Ok(if whole.is_empty() {
                (Cow::Borrowed(part), tail)
            } else {
                whole.extend_from_slice(part);
                (Cow::Owned(whole), tail)
            });
        };
        whole.extend_from_slice(part);
        whole.push(b'"');
        rest = tail_behind;
    }
    Err("a quote that is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(names: &str, line: &[u8]) -> Result<Option<(Field<'static>, Field<'static>)>, String> {
        let mut reader = CsvReader::default();
        assert_eq!(reader.row(names.as_bytes())?, None);
        let own = |field: Field<'_>| field.map(|bytes| Cow::Owned(bytes.into_owned()));
        Ok(reader.row(line)?.map(|row| (own(row.key), own(row.value))))
    }

    #[expect(clippy::unnecessary_wraps, reason = "a field as it is compared with")]
    fn some(bytes: &[u8]) -> Field<'static> {
        Some(Cow::Owned(bytes.to_vec()))
    }

    #[test]
    fn fields_and_quotes() {
        assert_eq!(rows("key,value", b"a,b"), Ok(Some((some(b"a"), some(b"b")))));
        assert_eq!(rows("\u{feff}value , key", b"a,b\r"), Ok(Some((some(b"b"), some(b"a")))));
        assert_eq!(rows("key,value", b",\"\""), Ok(Some((None, some(b"")))));
        assert_eq!(
            rows("key,value", b"\"a,\"\"\n\xff\"\"\",x y"),
            Ok(Some((some(b"a,\"\n\xff\""), some(b"x y"))))
        );
        assert_eq!(rows("key,value", b""), Ok(None));
        assert_eq!(rows("value", b""), Ok(Some((None, None))));
    }

    #[test]
    fn other_columns() {
        let mut reader = CsvReader::default();
        assert_eq!(reader.row(b"offset,time,header.a,headers,timestamp,value"), Ok(None));
        let row =
            reader.row(b"7,x,1,\"[{\"\"key\"\":\"\"b\"\",\"\"value\"\":null}]\",-5,v").unwrap().unwrap();
        assert_eq!((row.offset, row.timestamp, row.key), (Some(7), Some(-5), None));
        assert_eq!(row.headers, [("a".to_owned(), Some(b"1".to_vec())), ("b".to_owned(), None)]);
    }

    #[test]
    fn mistakes() {
        for (names, line, word) in [
            ("key", &b""[..], "value"),
            ("", b"", "unknown column"),
            ("value,x", b"", "unknown column \"x\""),
            ("value,value", b"", "twice"),
            ("value,key", b"a", "1 fields"),
            ("value,key", b"a,b,c", "3 fields"),
            ("value,offset", b"a,b", "not a number"),
            ("value,key", b"a\"b,c", "quote"),
            ("value,key", b"\"a\"b,c", "follows"),
            ("value,key", b"\"a,c", "not closed"),
            ("value,headers", b"a,[1]", "headers"),
        ] {
            let error = rows(names, line).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_row_ends_at_a_newline_outside_of_quotes() {
        let mut quotes = false;
        assert_eq!(CsvReader::row_end(b"a,\"b\n", 0, &mut quotes), None);
        assert!(quotes);
        assert_eq!(CsvReader::row_end(b"a,\"b\n\"\"\"\nc", 5, &mut quotes), Some(8));
    }
}
