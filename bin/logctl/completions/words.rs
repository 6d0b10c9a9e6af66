//! Words that fit by the grammar of an option, whatever lies on the disk.

use std::ffi::{OsStr, OsString};

use clap_complete::engine::CompletionCandidate;

use crate::csv::Columns;

pub(super) type Candidates = Vec<CompletionCandidate>;

pub(super) fn words(current: &OsStr, words: &[(&str, &str)]) -> Candidates {
    let fits = words.iter().filter(|(word, _)| starts_with(OsStr::new(word), current));
    fits.map(|(word, help)| candidate(*word, help)).collect()
}

pub(super) fn candidate(word: impl Into<OsString>, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(word).help((!help.is_empty()).then(|| help.to_owned().into()))
}

pub(super) fn starts_with(word: &OsStr, prefix: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(prefix.as_encoded_bytes())
}

pub(super) const TIMES: &[(&str, &str)] = &[
    ("now", ""),
    ("today", "since midnight UTC"),
    ("yesterday", ""),
    ("-15m", "15 minutes ago"),
    ("-1h", "an hour ago"),
    ("-1d", "a day ago"),
];

pub(super) fn times(current: &OsStr) -> Candidates {
    words(current, TIMES)
}

pub(super) fn queries(current: &OsStr) -> Candidates {
    let mut found = words(
        current,
        &[
            ("earliest", "the first offset"),
            ("latest", "the next to be written"),
            ("max-timestamp", "of the newest record"),
        ],
    );
    found.extend(times(current));
    found
}

pub(super) fn codecs(current: &OsStr) -> Candidates {
    words(
        current,
        &[("none", ""), ("gzip", ""), ("snappy", ""), ("lz4", ""), ("zstd", ""), ("zstd:", "with a level")],
    )
}

pub(super) fn policies(current: &OsStr) -> Candidates {
    words(
        current,
        &[
            ("batch", "each batch before it is acknowledged"),
            ("every:", "records, or bytes with a unit"),
            ("interval:", "a duration"),
            ("close", "at the end"),
            ("never", "when the kernel likes"),
        ],
    )
}

pub(super) fn durations(current: &OsStr) -> Candidates {
    with_units(current, &["ms", "s", "m", "h", "d"])
}

pub(super) fn sizes(current: &OsStr) -> Candidates {
    with_units(current, &["KiB", "MiB", "GiB"])
}

/// A number that has no unit yet is given each.
fn with_units(current: &OsStr, units: &[&str]) -> Candidates {
    let Some(text) = current.to_str() else { return Vec::new() };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Vec::new();
    }
    let fits = units.iter().filter(|unit| unit.starts_with(&text[digits..]));
    fits.map(|unit| candidate(format!("{}{unit}", &text[..digits]), "")).collect()
}

/// What follows the last of these signs is one word of several.
fn last_word<'t>(text: &'t str, signs: &[char]) -> (&'t str, &'t str) {
    text.split_at(text.rfind(signs).map_or(0, |at| at + 1))
}

pub(super) fn columns(current: &OsStr) -> Candidates {
    let (kept, begun) = last_word(current.to_str().unwrap_or_default(), &[',']);
    let fits = Columns::names().chain(["header."]).filter(|name| name.starts_with(begun));
    fits.map(|name| candidate(format!("{kept}{name}"), "")).collect()
}

pub(super) fn count_fields(current: &OsStr) -> Candidates {
    words(current, &[("key", ""), ("value", ""), ("partition", ""), ("header.", "with its name")])
}

/// Fields of `--where`, as its help lists them.
const FIELDS: [&str; 14] = [
    "offset",
    "timestamp",
    "partition",
    "epoch",
    "producer_id",
    "producer_epoch",
    "size",
    "key_size",
    "value_size",
    "header_count",
    "topic",
    "key",
    "value",
    "headers.",
];

pub(super) fn conditions(current: &OsStr) -> Candidates {
    let (kept, begun) = last_word(current.to_str().unwrap_or_default(), &[' ', '(']);
    let fits = FIELDS.iter().filter(|name| name.starts_with(begun));
    fits.map(|name| candidate(format!("{kept}{name}"), "")).collect()
}
