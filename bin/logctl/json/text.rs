//! JSON strings, and JSON of other people without what a terminal would obey.

use std::io::Write;

use crate::output::is_bidi_control;

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

/// The same; with `escape` also the signs that turn the direction of text are escaped, for a terminal.
pub(crate) fn push_text_to(out: &mut Vec<u8>, text: &str, escape: bool) {
    if !escape || !text.contains(is_bidi_control) {
        push_text(out, text);
        return;
    }
    let mut quoted = Vec::with_capacity(text.len() + 2);
    push_text(&mut quoted, text);
    push_escaped(out, &String::from_utf8_lossy(&quoted), escape);
}

/// Appends JSON that is known to be valid, without the space between its signs; in its strings what a terminal would
/// obey is escaped as in [`push_text_to`].
pub(crate) fn push_compact_json(out: &mut Vec<u8>, json: &[u8], escape: bool) {
    let text = String::from_utf8_lossy(json);
    let (mut in_string, mut is_escaped, mut plain) = (false, false, String::with_capacity(json.len()));
    for c in text.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => in_string = !in_string,
            ' ' | '\t' | '\n' | '\r' if !in_string => continue,
            _ => {}
        }
        plain.push(c);
    }
    push_escaped(out, &plain, escape);
}

fn push_escaped(out: &mut Vec<u8>, json: &str, escape: bool) {
    for c in json.chars() {
        if c == '\x7f' || ('\u{80}'..='\u{9f}').contains(&c) || (escape && is_bidi_control(c)) {
            // All of them lie in the first plane.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        let shown = |text: &str, escape| {
            let mut out = Vec::new();
            push_text_to(&mut out, text, escape);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown("a\u{202e}b\u{9b}\"", true), "\"a\\u202eb\\u009b\\\"\"");
        assert_eq!(shown("a\u{202e}b", false), "\"a\u{202e}b\"");
        let mut out = Vec::new();
        push_compact_json(&mut out, "{ \"\\\" x\u{9b}\u{2066}\" :\n[ 1 , null ] }".as_bytes(), true);
        assert_eq!(String::from_utf8(out).unwrap(), "{\"\\\" x\\u009b\\u2066\":[1,null]}");
    }
}
