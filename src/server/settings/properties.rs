//! Java's properties files: `key=value`, `key: value`, `key value`; comments; lines that go on after a backslash.

/// A line that sets something.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Property {
    pub(super) key: String,
    pub(super) value: String,
    /// Where it begins, from 1.
    pub(super) line: usize,
}

/// All of a file's, in its order. Every text is a properties file.
pub(super) fn parse(text: &str) -> Vec<Property> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, first)) = lines.next() {
        let first = first.trim_start();
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = first.to_owned();
        while goes_on(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start());
        }
        let (key, value) = split(&logical);
        found.push(Property {
            key: unescaped(key),
            value: unescaped(value).trim_end().to_owned(),
            line: at + 1,
        });
    }
    found
}

/// True where the line ends with a backslash that is not itself escaped.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// At the first `=`, `:` or blank that is not escaped.
fn split(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    for (at, char) in line.char_indices() {
        if !is_escaped && (matches!(char, '=' | ':') || char.is_whitespace()) {
            let rest = line.get(at..).unwrap_or_default().trim_start();
            let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
            return (line.get(..at).unwrap_or_default(), value.trim_start());
        }
        is_escaped = char == '\\' && !is_escaped;
    }
    (line, "")
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let rest = chars.as_str();
                let code = rest.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                match code.and_then(char::from_u32) {
                    Some(decoded) => {
                        out.push(decoded);
                        chars = rest.get(4..).unwrap_or_default().chars();
                    }
                    None => out.push('u'),
                }
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_java_are_read() {
        let text = "# a comment\n! another\n\n  a=1\nb : 2 \nc 3\nd=x\\\n   y\\\n  z\ne\\=f=g\\:h\nlist=a,\\\n b\nu=\\u0041\\t|\nempty=\nbare\nl=PLAINTEXT://:9092\nend=\\";
        let pairs: Vec<_> =
            parse(text).into_iter().map(|found| (found.key, found.value, found.line)).collect();
        let expected = [
            ("a", "1", 4),
            ("b", "2", 5),
            ("c", "3", 6),
            ("d", "xyz", 7),
            ("e=f", "g:h", 10),
            ("list", "a,b", 11),
            ("u", "A\t|", 13),
            ("empty", "", 14),
            ("bare", "", 15),
            ("l", "PLAINTEXT://:9092", 16),
            ("end", "", 17),
        ];
        let expected = expected.map(|(key, value, line)| (key.to_owned(), value.to_owned(), line));
        assert_eq!(pairs, expected);
    }
}
