//! Records as JSON lines: what `cat -J` prints is what `append --format jsonl` reads, byte for byte of key, value,
//! headers and timestamp.
//!
//! Lives here: the shape of such a line, written and read, and base64 for bytes that are not UTF-8. Not here: where
//! lines begin and end. Holds always: bytes are never replaced; a field that is not text says so in a field beside it
//! (`"key_encoding":"base64"`), and null is not empty.

mod base64;
mod read;
mod text;
mod write;

pub(crate) use base64::{decode as base64_decode, encode as base64_encode};
pub(crate) use read::{BOM, HeaderFields, JsonLine, hex_decode, parse_headers};
pub(crate) use text::{push_compact_json, push_text, push_text_to};
pub(crate) use write::{JsonStyle, push_headers, push_record, push_record_in};
