//! Writes the line of a record.

use std::io::Write;

use stratalog::record::{Codec, TimestampType};

use super::push_text;
use crate::{
    decode::{Form, TextStyle},
    output::push_decimal,
    view::{View, timestamp_type_name},
};

/// Which parts of a record a line has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(crate) struct JsonStyle {
    /// Leaves the value out.
    pub(crate) without_value: bool,
    /// Leaves key, value and headers out.
    pub(crate) meta_only: bool,
    /// Adds what belongs to the batch: where batches begin and end is no property of a record, and changes when it is
    /// appended again.
    pub(crate) with_batch: bool,
    /// Several lines, for people.
    pub(crate) pretty: bool,
    /// The names that kcat has.
    pub(crate) kcat: bool,
}

/// Appends the record as JSON, with the newline.
pub(crate) fn push_record(out: &mut Vec<u8>, view: &View<'_>, style: JsonStyle) {
    push_record_in(out, view, style, &TextStyle::default());
}

/// The same, with what `text` says of the fields.
pub(crate) fn push_record_in(out: &mut Vec<u8>, view: &View<'_>, style: JsonStyle, text: &TextStyle) {
    let (open, next, close): (&[u8], &[u8], &[u8]) =
        if style.pretty { (b"{\n  ", b",\n  ", b"\n}\n") } else { (b"{", b",", b"}\n") };
    let colon: &[u8] = if style.pretty { b": " } else { b":" };
    let mut separator = open;
    let mut name = |out: &mut Vec<u8>, name: &str| {
        out.extend_from_slice(separator);
        separator = next;
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.push(b'"');
        out.extend_from_slice(colon);
    };
    if style.kcat {
        push_kcat_fields(out, view, style, text, &mut name);
        out.extend_from_slice(close);
        return;
    }
    if let (Some(topic), Some(partition)) = (view.topic, view.partition) {
        name(out, "topic");
        push_text(out, topic);
        name(out, "partition");
        push_decimal(out, i64::from(partition));
    }
    name(out, "offset");
    push_decimal(out, view.offset.value());
    name(out, "timestamp");
    push_decimal(out, view.timestamp.millis());
    name(out, "timestamp_type");
    push_text(out, timestamp_type_name(view.batch.timestamp_type));
    name(out, "leader_epoch");
    push_decimal(out, i64::from(view.batch.leader_epoch));
    if !style.meta_only {
        name(out, "key");
        if let Some(encoding) = push_field(out, view.key, &text.decode.key, text) {
            name(out, "key_encoding");
            push_text(out, encoding);
        }
        if !style.without_value {
            name(out, "value");
            if let Some(encoding) = push_field(out, view.value, &text.decode.value, text) {
                name(out, "value_encoding");
                push_text(out, encoding);
            }
        }
        name(out, "headers");
        push_headers(out, view, text);
    }
    name(out, "producer_id");
    push_decimal(out, view.batch.producer_id);
    if view.batch.is_control {
        name(out, "control");
        push_text(out, view.control().map_or("unknown", |kind| kind.name()));
    }
    if style.with_batch {
        name(out, "batch");
        let codec = view.batch.codec.map_or("unknown", Codec::name);
        let _ = write!(out, "{{\"base_offset\":{},\"codec\":\"{codec}\"", view.batch.base_offset);
        if view.batch.producer_id >= 0 {
            let _ = write!(out, ",\"producer_epoch\":{}", view.batch.producer_epoch);
        }
        if view.batch.is_transactional {
            out.extend_from_slice(b",\"transactional\":true");
        }
        out.push(b'}');
    }
    out.extend_from_slice(close);
}

/// Appends the headers as an array of objects.
pub(crate) fn push_headers(out: &mut Vec<u8>, view: &View<'_>, text: &TextStyle) {
    let encoding = |out: &mut Vec<u8>, name: &str, encoding: Option<&str>| {
        if let Some(encoding) = encoding {
            let _ = write!(out, ",\"{name}_encoding\":\"{encoding}\"");
        }
    };
    out.push(b'[');
    for (index, header) in view.headers.clone().enumerate() {
        out.extend_from_slice(if index == 0 { b"{\"key\":" } else { b",{\"key\":" });
        let encoded = push_field(out, Some(header.key), &Form::Plain, text);
        encoding(out, "key", encoded);
        out.extend_from_slice(b",\"value\":");
        let encoded = push_field(out, header.value, &text.decode.header, text);
        encoding(out, "value", encoded);
        out.push(b'}');
    }
    out.push(b']');
}

/// What `kcat -J` prints, in its order; bytes that are not text are base64 here too, and say so.
fn push_kcat_fields(
    out: &mut Vec<u8>,
    view: &View<'_>,
    style: JsonStyle,
    text: &TextStyle,
    name: &mut impl FnMut(&mut Vec<u8>, &str),
) {
    name(out, "topic");
    push_text(out, view.topic.unwrap_or_default());
    name(out, "partition");
    push_decimal(out, view.partition.map_or(-1, i64::from));
    name(out, "offset");
    push_decimal(out, view.offset.value());
    name(out, "tstype");
    push_text(
        out,
        match view.batch.timestamp_type {
            TimestampType::CreateTime => "create",
            TimestampType::LogAppendTime => "logappend",
        },
    );
    name(out, "ts");
    push_decimal(out, view.timestamp.millis());
    name(out, "broker");
    // As kcat itself has it where no broker is known.
    push_decimal(out, -1);
    if style.meta_only {
        return;
    }
    if view.header_count > 0 {
        name(out, "headers");
        for (index, header) in view.headers.clone().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            push_field(out, Some(header.key), &Form::Plain, text);
            out.push(b',');
            push_field(out, header.value, &text.decode.header, text);
        }
        out.push(b']');
    }
    name(out, "key");
    if let Some(encoding) = push_field(out, view.key, &text.decode.key, text) {
        name(out, "key_encoding");
        push_text(out, encoding);
    }
    if style.without_value {
        return;
    }
    name(out, "payload");
    if let Some(encoding) = push_field(out, view.value, &text.decode.value, text) {
        name(out, "payload_encoding");
        push_text(out, encoding);
    }
}

/// Appends a JSON value, or null; how it is encoded where that is not plain.
fn push_field(
    out: &mut Vec<u8>,
    bytes: Option<&[u8]>,
    form: &Form,
    style: &TextStyle,
) -> Option<&'static str> {
    let Some(bytes) = bytes else {
        out.extend_from_slice(b"null");
        return None;
    };
    form.push_json(out, bytes, style.escape)
}
