//! A file whose name says nothing: what its first bytes look like, so that the reader knows what to do with it.

use std::path::Path;

use super::{Dump, Stopped, small_file::beginning};

/// Enough for a batch's header and for the first lines of a text.
const LOOKED_AT_BYTES: u64 = 4096;
/// How compressed files and archives begin.
const PACKED: [(&[u8], &str); 4] = [
    (&[0x1F, 0x8B], "it looks like a gzip file: unpack it first"),
    (&[0x28, 0xB5, 0x2F, 0xFD], "it looks like a zstd file: unpack it first"),
    (&[0x04, 0x22, 0x4D, 0x18], "it looks like an lz4 file: unpack it first"),
    (b"PK\x03\x04", "it looks like a zip archive: unpack it first"),
];

impl Dump<'_> {
    /// Tells that the file is not dumped, in Kafka's words and with what it looks like.
    pub(super) fn unknown(&mut self, path: &Path) -> Result<(), Stopped> {
        let looks = looks_like(&beginning(path, LOOKED_AT_BYTES)?);
        self.out.flush()?;
        self.problems.unknown(path, looks);
        Ok(())
    }
}

/// What bytes at the beginning of a file look like.
fn looks_like(bytes: &[u8]) -> &'static str {
    if bytes.is_empty() {
        return "it is empty";
    }
    if let Some((_, what)) = PACKED.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return what;
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return "it begins with zeros";
    }
    if let Some(what) = log(bytes) {
        return what;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.trim_start().starts_with(['{', '[']) => "it looks like JSON",
        Ok(text) if !text.chars().any(|c| c.is_control() && !c.is_whitespace()) => "it looks like text",
        // A character may be cut in two at the end of what was looked at.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => "it looks like text",
        _ => "it is binary and none of a log's",
    }
}

/// The header of a batch or message: an offset, a length, and the magic number behind them.
fn log(bytes: &[u8]) -> Option<&'static str> {
    let offset = i64::from_be_bytes(*bytes.first_chunk()?);
    let length = i32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    if offset < 0 || length < 14 {
        return None;
    }
    match *bytes.get(16)? {
        2 if length >= 49 => {
            Some("it looks like a .log of message format 2: a link to it with that suffix can be dumped")
        }
        0 | 1 => {
            Some("it looks like a .log of message format 0 or 1: a link to it with that suffix can be dumped")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_look_like() {
        let batch = [&[0; 7][..], &[5, 0, 0, 0, 80, 0, 0, 0, 1, 2], &[0; 60]].concat();
        for (bytes, want) in [
            (&b""[..], "empty"),
            (b"\x1f\x8b\x08\x00", "a gzip file"),
            (b"\x28\xb5\x2f\xfd\x00", "a zstd file"),
            (&[0; 100], "zeros"),
            (&batch, "message format 2"),
            (b" {\"a\":1}", "JSON"),
            (b"a line\nanother \xc3\xa9\n", "text"),
            (b"cut in two \xc3", "text"),
            (b"\x7fELF\x02\x01\x01\x00", "binary"),
        ] {
            assert!(looks_like(bytes).contains(want), "{bytes:?}: {}", looks_like(bytes));
        }
    }
}
