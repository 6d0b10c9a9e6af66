//! Writes the line of a record.

use std::io::Write;

use stratalog::record::Codec;

use super::base64;
use crate::output::push_decimal;
use crate::view::{View, timestamp_type_name};

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
}

/// Appends the record as JSON, with the newline.
pub(crate) fn push_record(out: &mut Vec<u8>, view: &View<'_>, style: JsonStyle) {
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
    let mut field = |out: &mut Vec<u8>, field: &str, encoding: &str, bytes: Option<&[u8]>| {
        name(out, field);
        if push_bytes(out, bytes) {
            name(out, encoding);
            push_text(out, "base64");
        }
    };
    if !style.meta_only {
        field(out, "key", "key_encoding", view.key);
        if !style.without_value {
            field(out, "value", "value_encoding", view.value);
        }
        name(out, "headers");
        push_headers(out, view);
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

/// Appends the headers as a list.
pub(crate) fn push_headers(out: &mut Vec<u8>, view: &View<'_>) {
    out.push(b'[');
    for (index, header) in view.headers.clone().enumerate() {
        out.extend_from_slice(if index == 0 { b"{\"key\":" } else { b",{\"key\":" });
        if push_bytes(out, Some(header.key)) {
            out.extend_from_slice(b",\"key_encoding\":\"base64\"");
        }
        out.extend_from_slice(b",\"value\":");
        if push_bytes(out, header.value) {
            out.extend_from_slice(b",\"value_encoding\":\"base64\"");
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// Appends a JSON string, or null; true where it had to be base64.
fn push_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) -> bool {
    let Some(bytes) = bytes else {
        out.extend_from_slice(b"null");
        return false;
    };
    if let Ok(text) = std::str::from_utf8(bytes) {
        push_text(out, text);
        return false;
    }
    out.push(b'"');
    base64::encode(bytes, out);
    out.push(b'"');
    true
}

/// Appends a JSON string. DEL and the C1 controls, which JSON lets through, are escaped too: a terminal obeys them.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let c1 = byte == 0xc2 && text.as_bytes().get(at + 1).is_some_and(|next| (0x80..=0x9f).contains(next));
        if byte >= 0x20 && byte != b'"' && byte != b'\\' && byte != 0x7f && !c1 {
            continue;
        }
        out.extend_from_slice(text.as_bytes().get(plain_from..at).unwrap_or_default());
        plain_from = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0xc2 => {
                plain_from += 1;
                let _ = write!(out, "\\u{:04x}", text.as_bytes().get(at + 1).copied().unwrap_or(0));
            }
            control => {
                let _ = write!(out, "\\u{control:04x}");
            }
        }
    }
    out.extend_from_slice(text.as_bytes().get(plain_from..).unwrap_or_default());
    out.push(b'"');
}
