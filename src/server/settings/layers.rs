//! Settings as they come in: files, the environment, arguments; laid over each other.

use super::{
    Settings, SettingsError,
    origin::{Given, Origin, Values},
    properties, quantity, toml_file, {keys, known_keys},
};
use crate::server::value::check;

/// Variables of a broker's container image that are no settings.
const IMAGES_OWN: &[&str] = &[
    "KAFKA_DEBUG",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_HEAP_OPTS",
    "KAFKA_HOME",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_LOG4J_CMD_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_OPTS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_VERSION",
];

/// Settings from everywhere, not yet made sense of.
///
/// What wins: `--override`, then flags, then the environment, then files, then defaults. Of one place the last word
/// counts; in the environment `STRATALOG_` beats `KAFKA_`.
///
/// ```
/// # #[cfg(feature = "server")] {
/// use stratalog::server::Layers;
///
/// let mut layers = Layers::new();
/// layers.properties("server.properties", "log.dirs=/var/lib/stratalog\nlog.retention.hours=24\n");
/// layers.environment([("KAFKA_NUM_PARTITIONS".to_owned(), "3".to_owned())]);
/// layers.set_override("log.segment.bytes=64 MiB");
/// let settings = layers.resolve()?;
/// assert!(settings.print().contains("num.partitions=3"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Layers {
    said: Vec<Said>,
    complaints: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug)]
struct Said {
    key: String,
    text: String,
    origin: Origin,
    /// A key that nobody knows is an error here, not a warning.
    is_strict: bool,
}

impl Layers {
    /// Nothing: the defaults, and no data directory.
    pub fn new() -> Self {
        Self::default()
    }

    fn say(&mut self, key: impl Into<String>, text: impl Into<String>, origin: Origin, is_strict: bool) {
        self.said.push(Said { key: key.into(), text: text.into(), origin, is_strict });
    }

    /// A settings file's text: TOML where its name ends so, a properties file else.
    pub fn file(&mut self, name: &str, text: &str) {
        let is_toml =
            std::path::Path::new(name).extension().is_some_and(|ext| ext.eq_ignore_ascii_case("toml"));
        if is_toml { self.toml(name, text) } else { self.properties(name, text) }
    }

    /// A `server.properties`. A key that no broker knows is warned about.
    pub fn properties(&mut self, name: &str, text: &str) {
        for property in properties::parse(text) {
            let origin = Origin::File { name: name.to_owned(), line: property.line };
            self.say(property.key, property.value, origin, false);
        }
    }

    /// A TOML file with the same words, in tables or with dots: `[log] segment.bytes = "1GiB"`. A key that no broker knows
    /// is an error.
    pub fn toml(&mut self, name: &str, text: &str) {
        match toml_file::parse(text) {
            Ok(found) => {
                for (key, text, line) in found {
                    self.say(key, text, Origin::File { name: name.to_owned(), line }, true);
                }
            }
            Err(complaint) => self.complaints.push(format!("{name}: {complaint}")),
        }
    }

    /// Environment variables. `KAFKA_NUM_PARTITIONS` is `num.partitions`, as in a broker's container image: `_` for a dot,
    /// `__` for `_`, `___` for `-`. `STRATALOG_NUM_PARTITIONS` is the same and wins. Others are passed over.
    pub fn environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        let mut own = Vec::new();
        let mut found: Vec<_> = variables.into_iter().collect();
        found.sort();
        for (name, value) in found {
            let origin = Origin::Environment { name: name.clone() };
            if let Some(rest) = name.strip_prefix("STRATALOG_") {
                let key = key_of(rest);
                let ours = format!("stratalog.{key}");
                let key = if keys::key(&ours).is_some() { ours } else { key };
                own.push((key, value, origin));
            } else if name == "CLUSTER_ID" {
                self.say("cluster.id", value, origin, false);
            } else if let Some(rest) = name.strip_prefix("KAFKA_")
                && !IMAGES_OWN.contains(&name.as_str())
            {
                self.say(key_of(rest), value, origin, false);
            }
        }
        for (key, value, origin) in own {
            self.say(key, value, origin, false);
        }
    }

    /// A setting that an argument of its own gives, like `--dir`.
    pub fn flag(&mut self, flag: &str, key: &str, value: &str) {
        self.say(key, value, Origin::Flag { name: flag.to_owned() }, true);
    }

    /// `KEY=VALUE`, as `--override` takes it.
    pub fn set_override(&mut self, pair: &str) {
        match pair.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                self.say(key.trim(), value, Origin::Override, true);
            }
            _ => self.complaints.push(format!("--override {pair}: not KEY=VALUE")),
        }
    }

    /// Makes sense of it all, or says everything that is wrong with it.
    pub fn resolve(mut self) -> Result<Settings, SettingsError> {
        let mut values = Values::new();
        // The strongest last; of equals in their order.
        self.said.sort_by_key(|said| said.origin.rank());
        for Said { key, text, origin, is_strict } in std::mem::take(&mut self.said) {
            let Some(known) = keys::key(&key) else {
                self.take_unknown(&key, &origin, is_strict);
                continue;
            };
            let checked = quantity::in_unit_of(&key, &text)
                .and_then(|text| check(&key, known.kind, known.valid, &text));
            match checked {
                Ok(text) => {
                    if known.use_of == keys::UseOf::Nothing {
                        self.warnings.push(format!("{origin}: {key} has no effect: {}", known.doc));
                    }
                    values.insert(known.name, Given { text, origin });
                }
                Err(complaint) => self.complaints.push(format!("{origin}: {complaint}")),
            }
        }
        Settings::of_values(values, self.warnings, self.complaints)
    }

    fn take_unknown(&mut self, key: &str, origin: &Origin, is_strict: bool) {
        if let Some(reason) = known_keys::reason(key) {
            self.warnings.push(format!("{origin}: {key} has no effect: {reason}"));
            return;
        }
        let near = nearest(key).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let line = format!("{origin}: unknown setting {key}{near}");
        if is_strict { &mut self.complaints } else { &mut self.warnings }.push(line);
    }
}

/// `LOG_RETENTION_MS` as a key.
fn key_of(variable: &str) -> String {
    let lower = variable.to_ascii_lowercase();
    lower.replace("___", "-").replace("__", "\u{0}").replace('_', ".").replace('\u{0}', "_")
}

/// The key that this one may have been meant for.
fn nearest(key: &str) -> Option<&'static str> {
    let distances = keys::KEYS.iter().map(|known| (distance(known.name, key), known.name));
    distances.min().filter(|(distance, _)| *distance <= 1 + key.len() / 8).map(|(_, name)| name)
}

/// How many letters have to be changed, put in or taken out.
fn distance(one: &str, other: &str) -> usize {
    let other = other.as_bytes();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, byte) in one.bytes().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (place, found) in row.iter_mut().skip(1).zip(other) {
            let above = *place;
            left = (diagonal + usize::from(byte != *found)).min(above + 1).min(left + 1);
            diagonal = above;
            *place = left;
        }
    }
    row.last().copied().unwrap_or(0)
}
