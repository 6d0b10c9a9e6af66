//! The server's settings: Kafka's words, from files, the environment and arguments.
//!
//! Lives here: every key with its kind, default and effect; reading and laying over each other what was given; what it comes
//! to, typed; the lines that say so.
//! Not here: reading files and the environment (the caller does), settings of single topics (topics), acting on any of it.
//! Holds always: a value in force is a value of its key and has an origin; nothing that was given is dropped without a line.

pub(crate) mod keys;
mod known_keys;
mod layers;
mod listener;
mod origin;
mod properties;
mod quantity;
#[cfg(test)]
mod tests;
mod toml_file;

use std::{
    fmt::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use keys::{KEYS, UseOf};

use super::{
    topics::{Shown, Source, Synonym},
    value::{Kind, list},
};
use crate::{LogConfig, OpenMode, StoreConfig};

pub use layers::Layers;
pub use listener::Listener;
pub use origin::Origin;
pub(crate) use origin::Values;

/// What a server goes by. Made by [`Layers::resolve`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// What was given, of the keys that mean something.
    pub(crate) values: Values,
    warnings: Vec<String>,
    /// What logs go by and topics cannot change.
    pub(crate) log: LogConfig,
    pub(crate) data_dir: PathBuf,
    pub(crate) node_id: Option<i32>,
    pub(crate) cluster_id: Option<String>,
    pub(crate) listeners: Vec<Listener>,
    /// What clients are told; by the listeners' names. One that is missing is told as it is.
    pub(crate) advertised: Vec<Listener>,
    pub(crate) partition_count: i32,
    pub(crate) auto_create: bool,
    pub(crate) delete_enable: bool,
    pub(crate) retention_interval: Duration,
    pub(crate) first_retention: Duration,
    /// How often logs are synced that acknowledge at written and say nothing else.
    pub(crate) idle_sync: Duration,
    pub(crate) recovery_threads: usize,
    pub(crate) unwaited_sync: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) request_max_bytes: u32,
    /// Of a request that is no Produce.
    pub(crate) other_request_max_bytes: u32,
    /// Of large requests over all connections; `None`: no bound.
    pub(crate) requests_max_bytes: Option<u64>,
    /// `None`: as the system has it.
    pub(crate) send_buffer_bytes: Option<u32>,
    pub(crate) receive_buffer_bytes: Option<u32>,
    pub(crate) backlog: i32,
    /// `None`: for ever.
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) max_connections: usize,
    pub(crate) max_connections_per_ip: usize,
    pub(crate) fetch_max_bytes: u32,
    pub(crate) session_timeout_min: Duration,
    pub(crate) session_timeout_max: Duration,
    pub(crate) rebalance_delay: Duration,
    pub(crate) group_max_size: usize,
    pub(crate) offsets_partitions: i32,
    pub(crate) offsets_segment_bytes: u32,
    pub(crate) offsets_retention: Duration,
    pub(crate) offsets_check_interval: Duration,
    pub(crate) offset_metadata_max_bytes: usize,
    pub(crate) transaction_timeout_max: Duration,
}

/// Why settings cannot be gone by: all that is wrong, a line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    complaints: Vec<String>,
}

impl SettingsError {
    /// What is wrong, one thing a line.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.complaints.join("\n"))
    }
}

impl std::error::Error for SettingsError {}

/// Reads values that were checked, or defaults that are right.
struct Read<'a>(&'a Values);

impl Read<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let default = || keys::key(name).and_then(|key| key.default).map(str::to_owned);
        self.0.get(name).map(|given| given.text.clone()).or_else(default)
    }

    fn number(&self, name: &str) -> i64 {
        self.text(name).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn flag(&self, name: &str) -> bool {
        self.text(name).as_deref() == Some("true")
    }

    fn count(&self, name: &str) -> usize {
        usize::try_from(self.number(name)).unwrap_or(0)
    }

    fn bytes(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).unwrap_or(0)
    }

    fn small(&self, name: &str) -> i32 {
        i32::try_from(self.number(name)).unwrap_or(i32::MAX)
    }

    fn ms(&self, name: &str) -> Duration {
        Duration::from_millis(u64::try_from(self.number(name)).unwrap_or(0))
    }

    /// Of two words for the same, the stronger one's.
    fn either(&self, name: &str, other: &str) -> Option<String> {
        let (one, two) = (self.0.get(name), self.0.get(other));
        let is_other = match (one, two) {
            (None, Some(_)) => true,
            (Some(one), Some(two)) => two.origin.rank() > one.origin.rank(),
            _ => false,
        };
        if is_other { two } else { one }.map(|given| given.text.clone())
    }
}

impl Settings {
    /// The defaults over a data directory, listening on `PLAINTEXT://127.0.0.1:0`.
    pub fn for_dir(dir: impl Into<PathBuf>) -> Result<Self, SettingsError> {
        let dir: PathBuf = dir.into();
        let mut layers = Layers::new();
        layers.flag("listeners", "listeners", "PLAINTEXT://127.0.0.1:0");
        // A name that no list of directories can hold is given as it is.
        layers.flag("log.dirs", "log.dirs", "data");
        let mut settings = layers.resolve()?;
        let text = dir.to_string_lossy().into_owned();
        if let Some(given) = settings.values.get_mut("log.dirs") {
            given.text = text;
        }
        settings.data_dir = dir;
        Ok(settings)
    }

    fn of_values(
        values: Values,
        mut warnings: Vec<String>,
        mut complaints: Vec<String>,
    ) -> Result<Self, SettingsError> {
        let read = Read(&values);
        let dirs = list(&read.either("log.dirs", "log.dir").unwrap_or_default());
        match dirs.len() {
            0 => complaints.push("log.dirs: no data directory is given".to_owned()),
            1 => {}
            many => complaints.push(format!("log.dirs: {many} data directories; one can be served")),
        }
        let listeners = listeners(&read, &mut warnings, &mut complaints);
        let advertised = advertised(&read, &listeners, &mut complaints);
        warn_of_copies(&values, &mut warnings);
        let (least, most) =
            (read.ms("group.min.session.timeout.ms"), read.ms("group.max.session.timeout.ms"));
        if least > most {
            complaints
                .push("group.min.session.timeout.ms is larger than group.max.session.timeout.ms".to_owned());
        }
        let log =
            LogConfig { producer_expiration: read.ms("producer.id.expiration.ms"), ..LogConfig::default() };
        let buffer = |name: &str| u32::try_from(read.number(name)).ok();
        let settings = Self {
            log,
            data_dir: dirs.first().map(PathBuf::from).unwrap_or_default(),
            node_id: read.either("node.id", "broker.id").and_then(|id| id.parse().ok()).filter(|id| *id >= 0),
            cluster_id: read.text("cluster.id"),
            listeners,
            advertised,
            partition_count: read.small("num.partitions"),
            auto_create: read.flag("auto.create.topics.enable"),
            delete_enable: read.flag("delete.topic.enable"),
            retention_interval: read.ms("log.retention.check.interval.ms"),
            first_retention: read.ms("log.initial.task.delay.ms"),
            idle_sync: read.ms("log.flush.offset.checkpoint.interval.ms"),
            recovery_threads: read.count("num.recovery.threads.per.data.dir"),
            unwaited_sync: read.ms("stratalog.sync.unwaited.ms"),
            shutdown_timeout: read.ms("stratalog.shutdown.timeout.ms"),
            request_max_bytes: read.bytes("socket.request.max.bytes"),
            other_request_max_bytes: read.bytes("stratalog.other.request.max.bytes"),
            requests_max_bytes: u64::try_from(read.number("queued.max.request.bytes")).ok(),
            send_buffer_bytes: buffer("socket.send.buffer.bytes"),
            receive_buffer_bytes: buffer("socket.receive.buffer.bytes"),
            backlog: read.small("socket.listen.backlog.size"),
            idle_timeout: u64::try_from(read.number("connections.max.idle.ms"))
                .ok()
                .map(Duration::from_millis),
            max_connections: read.count("max.connections"),
            max_connections_per_ip: read.count("max.connections.per.ip"),
            fetch_max_bytes: read.bytes("fetch.max.bytes"),
            session_timeout_min: least,
            session_timeout_max: most,
            rebalance_delay: read.ms("group.initial.rebalance.delay.ms"),
            group_max_size: read.count("group.max.size"),
            offsets_partitions: read.small("offsets.topic.num.partitions"),
            offsets_segment_bytes: read.bytes("offsets.topic.segment.bytes"),
            offsets_retention: read.ms("offsets.retention.minutes").saturating_mul(60_000),
            offsets_check_interval: read.ms("offsets.retention.check.interval.ms"),
            offset_metadata_max_bytes: read.count("offset.metadata.max.bytes"),
            transaction_timeout_max: read.ms("transaction.max.timeout.ms"),
            warnings,
            values,
        };
        if complaints.is_empty() { Ok(settings) } else { Err(SettingsError { complaints }) }
    }

    /// Lines about what was given and changes nothing, or is not what it may seem.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The data directory.
    pub fn data_dir(&self) -> &std::path::Path {
        &self.data_dir
    }

    /// Where to listen.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Every setting in force, `key=value`, with where it comes from; secrets hidden.
    pub fn print(&self) -> String {
        let mut names: Vec<_> = KEYS.iter().collect();
        names.sort_by_key(|key| key.name);
        let mut text = String::new();
        for key in names {
            let given = self.values.get(key.name);
            let (Some(value), origin) = (
                given.map(|given| given.text.as_str()).or(key.default),
                given.map_or("default".to_owned(), |given| given.origin.to_string()),
            ) else {
                continue;
            };
            let value = if key.kind == Kind::Password { "[hidden]" } else { value };
            let effect = if key.use_of == UseOf::Nothing { ", no effect" } else { "" };
            let _ = writeln!(text, "{}={value}  # {origin}{effect}", key.name);
        }
        text
    }

    /// The settings of a store over the data directory.
    pub(crate) fn store_config(&self) -> StoreConfig {
        StoreConfig {
            log: LogConfig { open: OpenMode::CreateIfMissing, ..self.log.clone() },
            cluster_id: self.cluster_id.clone(),
            node_id: self.node_id,
            ..StoreConfig::default()
        }
    }

    /// All settings, as `DescribeConfigs` shows a broker's.
    pub(crate) fn show(&self) -> Vec<Shown> {
        let mut names: Vec<_> = KEYS.iter().collect();
        names.sort_by_key(|key| key.name);
        let shown = |key: &'static keys::Key| {
            let mut synonyms = Vec::new();
            let given = self.values.get(key.name);
            let is_secret = key.kind == Kind::Password;
            let mut add = |value: &str, source| {
                let value = if is_secret { String::new() } else { value.to_owned() };
                synonyms.push(Synonym { name: key.name.to_owned(), value, source });
            };
            if let Some(given) = given {
                add(&given.text, Source::Server);
            }
            if let Some(default) = key.default {
                add(default, Source::Default);
            }
            let value = given.map(|given| given.text.as_str()).or(key.default);
            Shown {
                name: key.name,
                value: value.filter(|_| !is_secret).map(str::to_owned),
                kind: key.kind,
                source: if given.is_some() { Source::Server } else { Source::Default },
                is_read_only: true,
                is_sensitive: is_secret,
                synonyms,
                doc: key.doc,
            }
        };
        names.into_iter().map(shown).collect()
    }
}

/// The listeners that are to be served. Those of a controller, which files for a broker have beside them, are not.
fn listeners(read: &Read<'_>, warnings: &mut Vec<String>, complaints: &mut Vec<String>) -> Vec<Listener> {
    let protocols = list(&read.text("listener.security.protocol.map").unwrap_or_default());
    let protocol_of = |name: &str| {
        let pair = protocols.iter().filter_map(|pair| pair.split_once(':'));
        let mut found = pair.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map_or_else(|| name.to_owned(), |(_, protocol)| protocol.to_ascii_uppercase())
    };
    let mut listeners = Vec::new();
    for text in list(&read.text("listeners").unwrap_or_default()) {
        match Listener::parse(&text) {
            Ok(listener) if listener.name == "CONTROLLER" => {
                warnings.push(format!("listeners: {listener} is a controller's and is not served"));
            }
            Ok(listener) => {
                let protocol = protocol_of(&listener.name);
                if protocol != "PLAINTEXT" {
                    complaints.push(format!("listeners: {listener}: {protocol} is not served, PLAINTEXT is"));
                }
                if listeners.iter().any(|known: &Listener| known.name == listener.name) {
                    complaints.push(format!("listeners: two have the name {}", listener.name));
                }
                listeners.push(listener);
            }
            Err(complaint) => complaints.push(format!("listeners: {complaint}")),
        }
    }
    if listeners.is_empty() {
        complaints.push("listeners: none is left to listen on".to_owned());
    }
    listeners
}

fn advertised(read: &Read<'_>, listeners: &[Listener], complaints: &mut Vec<String>) -> Vec<Listener> {
    let mut advertised = Vec::new();
    for text in list(&read.text("advertised.listeners").unwrap_or_default()) {
        match Listener::parse(&text) {
            Ok(listener) if listener.name == "CONTROLLER" => {}
            Ok(listener) => {
                if matches!(listener.host.as_str(), "" | "0.0.0.0" | "::") {
                    complaints.push(format!(
                        "advertised.listeners: {listener} is no address that a client can connect to"
                    ));
                }
                if !listeners.iter().any(|known| known.name == listener.name) {
                    complaints
                        .push(format!("advertised.listeners: {} is none of the listeners", listener.name));
                }
                advertised.push(listener);
            }
            Err(complaint) => complaints.push(format!("advertised.listeners: {complaint}")),
        }
    }
    advertised
}

/// What asks for more copies, or for a choice among them, is never passed over in silence.
fn warn_of_copies(values: &Values, warnings: &mut Vec<String>) {
    for name in ["default.replication.factor", "min.insync.replicas", "offsets.topic.replication.factor"] {
        if let Some(given) =
            values.get(name).filter(|given| given.text.parse().is_ok_and(|many: i64| many > 1))
        {
            warnings
                .push(format!("{}: {name}={}: there is one copy, on this node", given.origin, given.text));
        }
    }
    if let Some(given) = values.get("unclean.leader.election.enable").filter(|given| given.text == "true") {
        warnings.push(format!(
            "{}: unclean.leader.election.enable has no effect: there is one copy",
            given.origin
        ));
    }
}
