//! Small files: a line for each of their entries.

use std::{fs::File, io::Read, path::Path};

use serde_json::Value;
use stratalog::{
    Error,
    inspect::{Described, Fact, Line, small_file},
};

use super::{Dump, Stopped, problems::shown};
use crate::{json_line::ObjectLine, output::push_foreign};

/// What Kafka writes as JSON, and what a line of it is called.
const JSON_FILES: [(&str, &str); 2] =
    [(".kafka_cleanshutdown", "clean-shutdown"), ("quorum-state", "quorum-state")];
/// Larger ones are none of these.
const MAX_JSON_BYTES: u64 = 1 << 20;

impl Dump<'_> {
    /// A file that is known by its name. False where it is none of these.
    pub(super) fn small_file(&mut self, path: &Path) -> Result<bool, Stopped> {
        let json = JSON_FILES.iter().find(|(name, _)| path.file_name().is_some_and(|file| file == *name));
        if let Some((_, kind)) = json {
            self.json_file(path, kind)?;
            return Ok(true);
        }
        let Some(found) = small_file(path)? else { return Ok(false) };
        self.problems.dumped();
        self.described(path, &found)?;
        Ok(true)
    }

    /// A file that is one object of JSON.
    fn json_file(&mut self, path: &Path, kind: &str) -> Result<(), Stopped> {
        let bytes = beginning(path, MAX_JSON_BYTES)?;
        self.problems.dumped();
        if self.args.is_json() {
            ObjectLine::new(self.out.buffer(), "file").text("file", &shown(path)).end();
        }
        let object = match serde_json::from_slice::<Value>(&bytes) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return self.damage(path, "unreadable", 0, 0, "no object of JSON", true),
            Err(error) => return self.damage(path, "unreadable", 0, 0, &format!("no JSON: {error}"), true),
        };
        if self.args.is_json() {
            let mut line = ObjectLine::new(self.out.buffer(), kind).text("file", &shown(path));
            for (name, value) in &object {
                line = line.bare(&snake_case(name), value);
            }
            line.end();
        } else {
            let terminal = self.out.is_terminal();
            for (index, (name, value)) in object.iter().enumerate() {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let separator = if index > 0 { " " } else { "" };
                push_foreign(self.out.buffer(), format!("{separator}{name}: {text}").as_bytes(), terminal);
            }
            self.out.bytes(b"\n")?;
        }
        Ok(self.out.spill()?)
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

/// The first bytes of a file.
pub(super) fn beginning(path: &Path, most_bytes: u64) -> Result<Vec<u8>, Stopped> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most_bytes).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(source) => Err(Error::Io { op: "open", path: path.to_owned(), source }.into()),
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
