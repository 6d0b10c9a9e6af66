//! The text of Kafka's checkpoint files in a data directory: `topic partition offset` by the line.

use std::{collections::BTreeMap, fmt::Write as _};

/// A topic and a partition of it.
pub(crate) type TopicPartition = (String, i32);

/// One line for each partition; offsets as the file has them, negative ones too.
pub(super) type Lines = BTreeMap<TopicPartition, i64>;

/// Reads a file as Kafka does: version, count, lines; an empty file has none. The error says what is wrong.
pub(super) fn parse(bytes: &[u8]) -> Result<Lines, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not text".to_owned())?;
    if text.is_empty() {
        return Ok(Lines::new());
    }
    let mut lines = text.lines();
    if lines.next().map(str::trim) != Some("0") {
        return Err("unknown version".to_owned());
    }
    let count: usize =
        lines.next().and_then(|line| line.trim().parse().ok()).ok_or_else(|| "no count".to_owned())?;
    let mut found = Lines::new();
    let mut line_count = 0;
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_ascii_whitespace();
        let parsed = (|| {
            let (topic, partition, offset) = (words.next()?, words.next()?, words.next()?);
            let line = ((topic.to_owned(), partition.parse().ok()?), offset.parse().ok()?);
            words.next().is_none().then_some(line)
        })();
        let (key, offset) = parsed.ok_or_else(|| "malformed line".to_owned())?;
        found.insert(key, offset);
        line_count += 1;
    }
    if line_count == count { Ok(found) } else { Err("the count does not match".to_owned()) }
}

/// The file's text.
pub(super) fn render(lines: &Lines) -> String {
    let mut text = format!("0\n{}\n", lines.len());
    for ((topic, partition), offset) in lines {
        let _ = writeln!(text, "{topic} {partition} {offset}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_kafkas_text() {
        let lines = Lines::from([(("t".into(), 0), 5), (("u-v".into(), 3), -1)]);
        let text = render(&lines);
        assert_eq!(text, "0\n2\nt 0 5\nu-v 3 -1\n");
        assert_eq!(parse(text.as_bytes()), Ok(lines));
        assert_eq!(parse(b""), Ok(Lines::new()));
        for bad in
            ["1\n0\n", "0\n1\n", "0\n1\nt 0\n", "0\n1\nt 0 5 6\n", "aa", "0\n-1\n", "0\n5\nt 0 1\nt 1 1\n"]
        {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(parse(&[0; 4096]).is_err());
        assert!(parse(b"0\n0\n\xff").is_err());
    }
}
