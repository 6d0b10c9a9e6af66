//! Writes rows.

use crate::{
    decode::TextStyle,
    json,
    output::{push_decimal, push_foreign},
    printer::time_text,
    view::{View, timestamp_type_name},
};

/// The columns of a table, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns(Vec<Column>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Topic,
    Partition,
    Offset,
    Timestamp,
    Time,
    TimestampType,
    LeaderEpoch,
    Key,
    Value,
    Headers,
    Header(String),
    KeyBytes,
    ValueBytes,
    ProducerId,
}

const NAMES: [(&str, Column); 13] = [
    ("topic", Column::Topic),
    ("partition", Column::Partition),
    ("offset", Column::Offset),
    ("timestamp", Column::Timestamp),
    ("time", Column::Time),
    ("timestamp_type", Column::TimestampType),
    ("leader_epoch", Column::LeaderEpoch),
    ("key", Column::Key),
    ("value", Column::Value),
    ("headers", Column::Headers),
    ("key_bytes", Column::KeyBytes),
    ("value_bytes", Column::ValueBytes),
    ("producer_id", Column::ProducerId),
];

impl Default for Columns {
    fn default() -> Self {
        Self(vec![Column::Offset, Column::Timestamp, Column::Key, Column::Value])
    }
}

impl Columns {
    /// What can be named; `header.NAME` besides.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Reads `offset,key,header.trace`; for clap.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let column = |name: &str| {
            if let Some(header) = name.strip_prefix("header.").filter(|header| !header.is_empty()) {
                return Ok(Column::Header(header.to_owned()));
            }
            NAMES.iter().find(|(known, _)| *known == name).map(|(_, column)| column.clone()).ok_or_else(
                || {
                    let names = NAMES.map(|(name, _)| name).join(", ");
                    format!("unknown column `{name}`: use {names}, or header.NAME")
                },
            )
        };
        text.split(',').map(|name| column(name.trim())).collect::<Result<_, _>>().map(Self)
    }
}

/// Appends the row of names.
pub(crate) fn push_header(out: &mut Vec<u8>, columns: &Columns, newline: &[u8]) {
    for (index, column) in columns.0.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match column {
            Column::Header(name) => push_text(out, format!("header.{name}").as_bytes()),
            column => {
                let name = NAMES.iter().find(|(_, known)| known == column).map_or("", |(name, _)| name);
                out.extend_from_slice(name.as_bytes());
            }
        }
    }
    out.extend_from_slice(newline);
}

/// Appends the row of a record.
pub(crate) fn push_row(
    out: &mut Vec<u8>,
    view: &View<'_>,
    columns: &Columns,
    newline: &[u8],
    text: &TextStyle,
) {
    // Of one field, that it may be quoted.
    let mut field = Vec::new();
    for (index, column) in columns.0.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let (bytes, form) = match column {
            Column::Key => (view.key, &text.decode.key),
            Column::Value => (view.value, &text.decode.value),
            Column::Header(name) => {
                // Of several of one name the last counts, as for Kafka's own clients.
                let found = view.headers.clone().filter(|header| header.key == name.as_bytes()).last();
                (found.and_then(|header| header.value), &text.decode.header)
            }
            column => {
                push_other(out, view, column, &mut field, text);
                continue;
            }
        };
        let Some(bytes) = bytes else { continue };
        field.clear();
        form.push_text(&mut field, bytes, text.escape);
        push_text(out, &field);
    }
    out.extend_from_slice(newline);
}

fn push_other(out: &mut Vec<u8>, view: &View<'_>, column: &Column, field: &mut Vec<u8>, text: &TextStyle) {
    let count = |bytes: Option<&[u8]>| bytes.map(|bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX));
    let number = match column {
        Column::Partition => view.partition.map(i64::from),
        Column::Offset => Some(view.offset.value()),
        Column::Timestamp => Some(view.timestamp.millis()),
        Column::LeaderEpoch => Some(i64::from(view.batch.leader_epoch)),
        Column::KeyBytes => count(view.key),
        Column::ValueBytes => count(view.value),
        Column::ProducerId => Some(view.batch.producer_id),
        _ => None,
    };
    field.clear();
    match column {
        Column::Topic => push_foreign(field, view.topic.unwrap_or_default().as_bytes(), text.escape),
        Column::Time => field.extend_from_slice(time_text(view.timestamp.millis()).as_bytes()),
        Column::TimestampType => {
            field.extend_from_slice(timestamp_type_name(view.batch.timestamp_type).as_bytes());
        }
        Column::Headers => json::push_headers(field, view, text),
        _ => {
            if let Some(number) = number {
                push_decimal(out, number);
            }
            return;
        }
    }
    push_text(out, field);
}

/// Appends a field, in quotes where it must be: also where it is empty, which null is not.
pub(super) fn push_text(out: &mut Vec<u8>, field: &[u8]) {
    if !field.is_empty() && !field.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        out.extend_from_slice(field);
        return;
    }
    out.push(b'"');
    for part in field.split_inclusive(|byte| *byte == b'"') {
        out.extend_from_slice(part);
        if part.last() == Some(&b'"') {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_where_they_must_be() {
        let quoted = |field: &[u8]| {
            let mut out = Vec::new();
            push_text(&mut out, field);
            out
        };
        assert_eq!(quoted(b"plain x"), b"plain x");
        assert_eq!(quoted(b""), b"\"\"");
        assert_eq!(quoted(b"a,b"), b"\"a,b\"");
        assert_eq!(quoted(b"\"a\"\""), b"\"\"\"a\"\"\"\"\"");
        assert_eq!(quoted(b"a\r\nb\xff"), b"\"a\r\nb\xff\"");
    }

    #[test]
    fn names_of_columns() {
        assert_eq!(
            Columns::parse("offset, header.a"),
            Ok(Columns(vec![Column::Offset, Column::Header("a".into())]))
        );
        for text in ["", "x", "offset,", "header."] {
            assert!(Columns::parse(text).is_err(), "{text:?}");
        }
        let mut out = Vec::new();
        push_header(&mut out, &Columns::parse("time,header.a b,header.\"c").unwrap(), b"\r\n");
        assert_eq!(out, b"time,header.a b,\"header.\"\"c\"\r\n");
    }
}
