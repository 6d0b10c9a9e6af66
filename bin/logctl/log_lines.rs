//! The messages of a server as lines: for people, for machines (`json`), for both (`logfmt`).
//!
//! Each line has the time (RFC 3339, UTC), the level, where in the program it comes from, the message and the event's own
//! fields. No value can begin a line of its own or reach a terminal as an escape.

use std::fmt::{self, Write as _};

use clap::ValueEnum;
use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

/// `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// `2026-11-30T21:00:00.123Z  INFO server: ready address=127.0.0.1:9092`
    #[default]
    Text,
    /// `{"ts":"...","level":"info","target":"...","msg":"ready","address":"127.0.0.1:9092"}`
    Json,
    /// `ts=... level=info target=... msg=ready address=127.0.0.1:9092`
    Logfmt,
}

/// Sends the messages that `filter` lets through to standard error, one line each.
pub(crate) fn begin(format: LogFormat, filter: EnvFilter) {
    // A subscriber is already there only in tests.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .event_format(Lines(format))
        .try_init();
}

struct Lines(LogFormat);

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        let metadata = event.metadata();
        let now = jiff::Timestamp::now();
        let line = said.line(self.0, now, metadata.level().as_str(), short(metadata.target()));
        writer.write_str(&line)
    }
}

/// `server::topics` of `stratalog::server::topics::registry`: two rooms are enough to know where.
fn short(target: &str) -> &str {
    let inside = target.strip_prefix("stratalog::").unwrap_or(target);
    match inside.match_indices("::").nth(1) {
        Some((at, _)) => &inside[..at],
        None => inside,
    }
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl Visit for Said {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.fields.push((field.name(), value.into()));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl Said {
    fn line(self, format: LogFormat, now: jiff::Timestamp, level: &str, target: &str) -> String {
        let now = format!("{now:.3}");
        let mut line = String::new();
        match format {
            LogFormat::Text => {
                line = format!("{now} {level:>5} {target}: {}", plain(&self.message));
                for (name, value) in &self.fields {
                    put_pair(&mut line, name, value);
                }
            }
            LogFormat::Logfmt => {
                line = format!("ts={now} level={}", level.to_ascii_lowercase());
                put_pair(&mut line, "target", &target.into());
                put_pair(&mut line, "msg", &self.message.into());
                for (name, value) in &self.fields {
                    put_pair(&mut line, name, value);
                }
            }
            LogFormat::Json => {
                // Written by hand so far as the order matters to who reads it.
                let mut object = Map::new();
                for (name, value) in self.fields {
                    object.insert(name.to_owned(), value);
                }
                let own = [
                    ("ts", now),
                    ("level", level.to_ascii_lowercase()),
                    ("target", target.to_owned()),
                    ("msg", self.message),
                ];
                line.push('{');
                for (name, value) in own {
                    object.remove(name);
                    let _ = write!(line, "\"{name}\":{},", Value::from(value));
                }
                let rest = Value::Object(object).to_string();
                match rest.strip_prefix('{') {
                    Some("}") | None => {
                        line.pop();
                        line.push('}');
                    }
                    Some(rest) => line.push_str(rest),
                }
            }
        }
        line.push('\n');
        line
    }
}

/// ` name=value`, quoted where it would not be one word.
fn put_pair(line: &mut String, name: &str, value: &Value) {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let is_word =
        |char: char| !char.is_whitespace() && !char.is_control() && !matches!(char, '"' | '=' | '\\');
    let _ = if !text.is_empty() && text.chars().all(is_word) {
        write!(line, " {name}={text}")
    } else {
        write!(line, " {name}=\"{}\"", plain(&text).replace('"', "\\\""))
    };
}

/// Without line ends and other control characters.
fn plain(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let escaped = |char: char| {
        let (as_it_is, escape) =
            if char.is_control() { (None, Some(char.escape_default())) } else { (Some(char), None) };
        as_it_is.into_iter().chain(escape.into_iter().flatten())
    };
    text.chars().flat_map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: LogFormat) -> String {
        let said = Said {
            message: "topic made\nand more".to_owned(),
            fields: vec![
                ("topic", "a b\u{1b}[31m\"".into()),
                ("partitions", 3.into()),
                ("id", "x-1".into()),
                ("empty", "".into()),
            ],
        };
        said.line(format, jiff::Timestamp::UNIX_EPOCH, "INFO", short("stratalog::server::topics::registry"))
    }

    #[test]
    fn an_event_is_one_line_in_each_format() {
        assert_eq!(
            line(LogFormat::Text),
            "1970-01-01T00:00:00.000Z  INFO server::topics: topic made\\nand more topic=\"a b\\u{1b}[31m\\\"\" partitions=3 id=x-1 empty=\"\"\n"
        );
        assert_eq!(
            line(LogFormat::Logfmt),
            "ts=1970-01-01T00:00:00.000Z level=info target=server::topics msg=\"topic made\\nand more\" topic=\"a b\\u{1b}[31m\\\"\" partitions=3 id=x-1 empty=\"\"\n"
        );
        let json = line(LogFormat::Json);
        assert!(json.starts_with("{\"ts\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"target\":\"server::topics\",\"msg\":"), "{json}");
        assert_eq!(json.lines().count(), 1);
        let read: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["msg"], "topic made\nand more");
        assert_eq!((&read["topic"], &read["partitions"]), (&"a b\u{1b}[31m\"".into(), &3.into()));
        let bare = Said { message: "m".to_owned(), fields: Vec::new() };
        let json = bare.line(LogFormat::Json, jiff::Timestamp::UNIX_EPOCH, "WARN", "x");
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["level"], "warn");
    }

    #[test]
    fn a_target_is_two_rooms_at_most() {
        assert_eq!(short("stratalog::log"), "log");
        assert_eq!(short("stratalog::server::topics::registry"), "server::topics");
        assert_eq!(short("other::thing"), "other::thing");
    }
}
