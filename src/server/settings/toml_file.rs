//! Settings in TOML: tables and dots come to the same words.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Each key with its dots, its value as text, and its line.
pub(super) fn parse(text: &str) -> Result<Vec<(String, String, usize)>, String> {
    let table = DeTable::parse(text).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    flatten("", table.get_ref(), text, &mut found)?;
    Ok(found)
}

fn flatten(
    before: &str,
    table: &DeTable<'_>,
    text: &str,
    found: &mut Vec<(String, String, usize)>,
) -> Result<(), String> {
    for (name, value) in table {
        let key = if before.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{before}.{}", name.get_ref())
        };
        if let DeValue::Table(inner) = value.get_ref() {
            flatten(&key, inner, text, found)?;
        } else {
            let line = line_of(text, value.span().start);
            let as_text =
                scalar(value).ok_or_else(|| format!("line {line}: {key} is no value that a setting has"))?;
            found.push((key, as_text, line));
        }
    }
    Ok(())
}

fn scalar(value: &Spanned<DeValue<'_>>) -> Option<String> {
    Some(match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => {
            i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()?.to_string()
        }
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(items) => items.iter().map(scalar).collect::<Option<Vec<_>>>()?.join(","),
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_dots_come_to_the_same_words() {
        let text = "num.partitions = 3\n\"max.connections.per.ip\" = 10\n[log]\nsegment.bytes = \"1GiB\"\ndirs = [\"/a\"]\n[log.retention]\nms = 1_000\n[log.cleaner.min]\ncleanable.ratio = 0.25\n[auto]\ncreate.topics.enable = false\n";
        let mut found = parse(text).unwrap();
        found.sort();
        let expected = [
            ("auto.create.topics.enable", "false", 11),
            ("log.cleaner.min.cleanable.ratio", "0.25", 9),
            ("log.dirs", "/a", 5),
            ("log.retention.ms", "1000", 7),
            ("log.segment.bytes", "1GiB", 4),
            ("max.connections.per.ip", "10", 2),
            ("num.partitions", "3", 1),
        ];
        let expected = expected.map(|(key, value, line)| (key.to_owned(), value.to_owned(), line));
        assert_eq!(found, expected);
        assert!(parse("a = ").is_err());
        assert!(parse("a = 1979-05-27\n").is_err());
        assert!(parse("a = [[1], {b = 1}]").is_err());
    }
}
