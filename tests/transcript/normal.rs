//! What differs from run to run, made the same: paths, times of the clock, durations, rates, process numbers.
//!
//! Replacements are as wide as what they replace wherever columns could depend on them.

use std::{borrow::Cow, path::Path, sync::LazyLock};

use regex::{Captures, Regex};

/// Patterns and what takes their place. Times of records in these tests lie in 2023, those of the clock do not.
static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        // Times of the clock, as text and as milliseconds.
        (r"20(?:2[4-9]|[3-9]\d)-\d\d-\d\d([T ])\d\d:\d\d:\d\d", "YYYY-MM-DD${1}hh:mm:ss"),
        (r"(YYYY-MM-DD[T ]hh:mm:ss)\.\d{3}(Z|\b)", "$1.mmm$2"),
        (r"\b1(?:7[2-9]|[89]\d)\d{10}\b", "<clock-in-ms>"),
        // Durations and rates that were measured.
        (r"\b(in|after) \d+(?:\.\d+)? ?(?:ms|s)\b", "$1 <t>"),
        (r"\d+(?:[.,]\d+)*( ?(?:[KMG]i?)?B/s)", "<n>$1"),
        (r"\d+(?:[.,]\d+)* (records|batches)/s", "<n> $1/s"),
        (r"\b(process|pid) \d+\b", "$1 <pid>"),
        (r"\b(processId|generation|setGeneration): \d+", "$1: <n>"),
        // Identifiers that are made by chance.
        (r"\btopic_id: [A-Za-z0-9_-]{22}", "topic_id: <id>"),
    ]
    .map(|(pattern, with)| (Regex::new(pattern).unwrap(), with))
    .into()
});

/// A transcript's text without what differs from run to run.
pub(crate) fn text(text: &str, dir: &Path) -> String {
    let mut text = text.replace(&format!("{}/", dir.display()), "").replace(&dir.display().to_string(), ".");
    for (pattern, with) in RULES.iter() {
        if let Cow::Owned(changed) = pattern.replace_all(&text, *with) {
            text = changed;
        }
    }
    text
}

/// A moment of a moving line: its numbers, and how far its bar has come, are chance.
pub(crate) fn moment(text: &str) -> String {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r" *\d+(?:[.:,]\d+)*").unwrap());
    static BAR: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[[#=>. -]+\]").unwrap());
    static UNIT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"<n> (?:[KMG]i)?B\b|<n>[smhd](?: <n>[smhd])* left").unwrap());
    let text = NUMBER.replace_all(
        text,
        |found: &Captures<'_>| {
            if found[0].starts_with(' ') { " <n>" } else { "<n>" }
        },
    );
    let text = UNIT.replace_all(
        &text,
        |found: &Captures<'_>| {
            if found[0].ends_with('B') { "<bytes>" } else { "<time> left" }
        },
    );
    BAR.replace_all(&text, "[<bar>]").into_owned()
}
