//! One JSON object on one line, field by field: for the verbs that tell of batches, index entries and findings.

use std::{fmt::Display, io::Write};

use crate::json::{push_text, push_text_to};

/// An object being written; [`ObjectLine::end`] closes it.
pub(crate) struct ObjectLine<'a> {
    out: &'a mut Vec<u8>,
    separator: u8,
    end: &'static [u8],
}

impl<'a> ObjectLine<'a> {
    /// Opens an object whose first field says what it is.
    pub(crate) fn new(out: &'a mut Vec<u8>, kind: &str) -> Self {
        Self { out, separator: b'{', end: b"}\n" }.text("type", kind)
    }

    /// The same without the newline at its end.
    pub(crate) fn member(out: &'a mut Vec<u8>, kind: &str) -> Self {
        Self { out, separator: b'{', end: b"}" }.text("type", kind)
    }

    fn name(&mut self, name: &str) {
        self.out.push(self.separator);
        self.separator = b',';
        push_text(self.out, name);
        self.out.push(b':');
    }

    /// A string.
    #[must_use]
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        // Names of files and the like are foreign; JSON is the same however its signs are written.
        push_text_to(self.out, value, true);
        self
    }

    /// A number, or anything else whose text is JSON: `true`, `null`.
    #[must_use]
    pub(crate) fn bare(mut self, name: &str, value: impl Display) -> Self {
        self.name(name);
        // A Vec takes every write.
        let _ = write!(self.out, "{value}");
        self
    }

    /// A number, or null.
    #[must_use]
    pub(crate) fn maybe(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.bare(name, value),
            None => self.bare(name, "null"),
        }
    }

    /// Closes the object and the line.
    pub(crate) fn end(self) {
        self.out.extend_from_slice(self.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_json() {
        let mut out = Vec::new();
        ObjectLine::new(&mut out, "x")
            .text("a", "\"\n")
            .bare("b", -1)
            .maybe("c", None::<u8>)
            .bare("d", true)
            .end();
        assert_eq!(out, b"{\"type\":\"x\",\"a\":\"\\\"\\n\",\"b\":-1,\"c\":null,\"d\":true}\n");
    }
}
