//! Small files: a line for each of their entries.

use std::path::Path;

use stratalog::inspect::{Described, Fact, Line, small_file};

use super::{Dump, Stopped, problems::shown};
use crate::{json_line::ObjectLine, output::push_foreign};

impl Dump<'_> {
    /// A file that is known by its name. False where it is none of these.
    pub(super) fn small_file(&mut self, path: &Path) -> Result<bool, Stopped> {
        let Some(found) = small_file(path)? else { return Ok(false) };
        self.problems.dumped();
        self.described(path, &found)?;
        Ok(true)
    }

    fn described(&mut self, path: &Path, found: &Described) -> Result<(), Stopped> {
        if self.args.is_json() {
            ObjectLine::new(self.out.buffer(), "file").text("file", &shown(path)).end();
        }
        for line in &found.lines {
            self.stop.check()?;
            if self.args.is_json() {
                json_line(self.out.buffer(), path, line);
            } else {
                let terminal = self.out.is_terminal();
                text_line(self.out.buffer(), line, terminal);
            }
            self.out.spill()?;
        }
        match &found.wrong {
            Some(what) => self.damage(path, "unreadable", 0, 0, what, true),
            None => Ok(()),
        }
    }
}

/// As Kafka's tool prints entries: every name with its value behind it.
fn text_line(out: &mut Vec<u8>, line: &Line, terminal: bool) {
    for (index, (name, fact)) in line.fields.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        let text = match fact {
            Fact::Text(text) => {
                push_foreign(out, text.as_bytes(), terminal);
                continue;
            }
            Fact::Number(number) => number.to_string(),
            Fact::Size(number) => number.to_string(),
            Fact::Flag(flag) => flag.to_string(),
            Fact::Optional(Some(number)) => format!("OptionalLong[{number}]"),
            Fact::Optional(None) => "OptionalLong.empty".to_owned(),
            _ => "none".to_owned(),
        };
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'\n');
}

fn json_line(out: &mut Vec<u8>, path: &Path, line: &Line) {
    let mut object = ObjectLine::new(out, line.kind).text("file", &shown(path));
    for (name, fact) in &line.fields {
        let name = snake_case(name);
        object = match fact {
            Fact::Text(text) => object.text(&name, text),
            Fact::Number(number) => object.bare(&name, number),
            Fact::Size(number) => object.bare(&name, number),
            Fact::Flag(flag) => object.bare(&name, flag),
            Fact::Optional(number) => object.maybe(&name, *number),
            _ => object.bare(&name, "null"),
        };
    }
    object.end();
}

/// The names that everything else in JSON has.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
