//! What a topic's settings come to: its own, the server's, the defaults; as text with their sources, and as what the log
//! and the server go by.

use std::{collections::BTreeMap, time::Duration};

use super::{
    super::{
        settings::{Values, keys},
        value::{Kind, check, list},
    },
    keys::{TOPIC_KEYS, TopicKey, topic_key},
};
use crate::{
    Follow, FsyncPolicy, LogConfig, Preallocate, Retention,
    record::{Codec, Compression, TimestampType},
};

/// What a topic was told itself, checked and in its one form.
pub(crate) type Overrides = BTreeMap<String, String>;

/// Where a value comes from, as `DescribeConfigs` counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The topic was told.
    Topic,
    /// The server was told, in whatever way.
    Server,
    Default,
}

impl Source {
    /// The number in an answer.
    pub(crate) fn wire(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::Server => 4,
            Self::Default => 5,
        }
    }
}

/// A name under which a value is, or would be, set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synonym {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) source: Source,
}

/// A setting as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    /// `None`: nothing is set, or it is a secret.
    pub(crate) value: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) source: Source,
    pub(crate) is_read_only: bool,
    pub(crate) is_sensitive: bool,
    /// What wins first.
    pub(crate) synonyms: Vec<Synonym>,
    pub(crate) doc: &'static str,
}

/// A value and all that might have been it.
fn resolve(key: &TopicKey, overrides: &Overrides, values: &Values) -> (String, Source, Vec<Synonym>) {
    let mut synonyms = Vec::new();
    if let Some(value) = overrides.get(key.name) {
        synonyms.push(Synonym { name: key.name.to_owned(), value: value.clone(), source: Source::Topic });
    }
    let mut given: Vec<_> = key
        .synonyms
        .iter()
        .filter_map(|(name, factor)| values.get(name).map(|given| (*name, *factor, given)))
        .collect();
    // The layer that wins has the say; in one layer the finest unit.
    given.sort_by_key(|(_, _, given)| std::cmp::Reverse(given.origin.rank()));
    let mut value = None;
    for (name, factor, given) in given {
        value.get_or_insert_with(|| scaled(&given.text, factor));
        synonyms.push(Synonym { name: name.to_owned(), value: given.text.clone(), source: Source::Server });
    }
    if let Some((name, _)) = key.synonyms.first()
        && let Some(default) = keys::key(name).and_then(|key| key.default)
    {
        synonyms.push(Synonym {
            name: (*name).to_owned(),
            value: default.to_owned(),
            source: Source::Default,
        });
    }
    match (overrides.get(key.name), value) {
        (Some(own), _) => (own.clone(), Source::Topic, synonyms),
        (None, Some(value)) => (value, Source::Server, synonyms),
        (None, None) => (key.default.to_owned(), Source::Default, synonyms),
    }
}

/// A value in another unit. What means "never" stays, and what is too large is as much as there is.
fn scaled(text: &str, factor: i64) -> String {
    match text.parse::<i64>() {
        Ok(number) if factor != 1 && number >= 0 => number.saturating_mul(factor).to_string(),
        _ => text.to_owned(),
    }
}

/// All settings of a topic, sorted by name.
pub(crate) fn show(overrides: &Overrides, values: &Values) -> Vec<Shown> {
    let shown = |key: &'static TopicKey| {
        let (value, source, synonyms) = resolve(key, overrides, values);
        Shown {
            name: key.name,
            value: Some(value),
            kind: key.kind,
            source,
            is_read_only: false,
            is_sensitive: false,
            synonyms,
            doc: key.doc,
        }
    };
    TOPIC_KEYS.iter().map(shown).collect()
}

/// Settings that a client sends, checked: each known, each a value of its kind, all together sensible.
pub(crate) fn checked<'a>(
    settings: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<Overrides, String> {
    let mut overrides = Overrides::new();
    for (name, value) in settings {
        let Some(key) = topic_key(name) else { return Err(format!("Unknown topic config name: {name}")) };
        let Some(value) = value else {
            return Err(format!("Null value not supported for topic configs: {name}"));
        };
        overrides.insert(name.to_owned(), check(name, key.kind, key.valid, value)?);
    }
    check_together(&overrides)?;
    Ok(overrides)
}

/// What no single value shows.
pub(crate) fn check_together(overrides: &Overrides) -> Result<(), String> {
    if overrides.get("remote.storage.enable").is_some_and(|value| value == "true") {
        return Err(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
                .to_owned(),
        );
    }
    let number = |name| {
        let default = topic_key(name).map_or("0", |key| key.default);
        overrides.get(name).map_or(default, String::as_str).parse::<i64>().unwrap_or(0)
    };
    let (least, most) = (number("min.compaction.lag.ms"), number("max.compaction.lag.ms"));
    if least > most {
        return Err(format!(
            "conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        ));
    }
    Ok(())
}

/// What the server and the log go by for one topic.
#[derive(Clone, Debug)]
pub(crate) struct TopicSettings {
    /// What the topic was told itself.
    pub(crate) overrides: Overrides,
    /// For its logs.
    pub(crate) log: LogConfig,
    /// True: an acknowledgement and a consumer wait for what survives a power cut. False: for what is written.
    pub(crate) is_durable: bool,
    /// Where it is false: sync once so many records are not durable.
    pub(crate) flush_records: Option<u64>,
    /// And once one has waited so long.
    pub(crate) flush_age: Duration,
    /// Records must have keys.
    pub(crate) is_compacted: bool,
    /// Old segments are dropped.
    pub(crate) is_deleted: bool,
    /// The largest batch in bytes.
    pub(crate) max_message_bytes: u32,
    /// The largest record after unpacking, in bytes.
    pub(crate) max_decompressed_bytes: u32,
    /// How far records' times may lie behind the clock, in milliseconds; `None`: as far as they like.
    pub(crate) before_max_ms: Option<i64>,
    /// How far ahead.
    pub(crate) after_max_ms: Option<i64>,
    /// `None`: as the producer compressed.
    pub(crate) compression: Option<Compression>,
}

impl TopicSettings {
    /// What `overrides` come to over the server's settings. `base` has what topics cannot change.
    pub(crate) fn new(overrides: Overrides, values: &Values, base: &LogConfig, idle_sync: Duration) -> Self {
        let text =
            |name: &str| topic_key(name).map(|key| resolve(key, &overrides, values).0).unwrap_or_default();
        let long = |name: &str| text(name).parse::<i64>().unwrap_or(0);
        let int = |name: &str| u32::try_from(long(name)).unwrap_or(0);
        let bounded = |name: &str| Some(long(name)).filter(|ms| *ms < i64::MAX);
        let policies = list(&text("cleanup.policy"));
        let has_policy = |policy: &str| policies.iter().any(|found| found == policy);
        let flush_records = bounded("flush.messages").and_then(|count| u64::try_from(count).ok());
        let flush_age = bounded("flush.ms").and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
        let is_durable = text("stratalog.acknowledge.at") == "durable" || flush_records == Some(1);
        let flush_age = flush_age.unwrap_or(idle_sync).max(Duration::from_millis(1));
        let mut log = base.clone();
        log.fsync = if is_durable { FsyncPolicy::Commit } else { FsyncPolicy::Interval(flush_age) };
        log.segment_bytes = int("segment.bytes");
        // The engine's least; no index is useful below it.
        log.segment_index_bytes = int("segment.index.bytes").max(24);
        log.index_interval_bytes = int("index.interval.bytes");
        let max_message_bytes = int("max.message.bytes");
        // Nothing smaller is a batch.
        log.max_batch_bytes = max_message_bytes.max(61);
        log.roll_after = u64::try_from(long("segment.ms")).ok().map(Duration::from_millis);
        log.preallocate =
            if text("preallocate") == "true" { Preallocate::Whole } else { Preallocate::Stepped };
        let logs_own_time = text("message.timestamp.type") == "LogAppendTime";
        log.timestamp_type =
            if logs_own_time { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
        log.retention = Retention::default();
        if has_policy("delete") {
            log.retention.bytes = u64::try_from(long("retention.bytes")).ok();
            // At 0 a broker drops what is one millisecond old.
            let age = u64::try_from(long("retention.ms")).ok();
            log.retention.age = age.map(|ms| Duration::from_millis(ms.max(1)));
        }
        let compression = compression(&text("compression.type"), &text);
        log.compression = compression.unwrap_or_default();
        Self {
            log,
            is_durable,
            flush_records,
            flush_age,
            is_compacted: has_policy("compact"),
            is_deleted: has_policy("delete"),
            max_message_bytes,
            max_decompressed_bytes: int("max.decompressed.message.bytes"),
            before_max_ms: bounded("message.timestamp.before.max.ms"),
            after_max_ms: bounded("message.timestamp.after.max.ms"),
            compression,
            overrides,
        }
    }

    /// What is kept of a topic whose own settings cannot be read: nothing of it is dropped.
    pub(crate) fn without_retention(mut self) -> Self {
        self.log.retention = Retention::default();
        self
    }

    /// Up to where consumers may read.
    pub(crate) fn follow(&self) -> Follow {
        if self.is_durable { Follow::Durable } else { Follow::Written }
    }
}

fn compression(name: &str, text: &impl Fn(&str) -> String) -> Option<Compression> {
    let level = |name: &str| text(name).parse::<i32>().unwrap_or(-1);
    let with_level =
        |codec, name| Compression::with_level(codec, level(name)).unwrap_or(Compression::new(codec));
    match name {
        "uncompressed" => Some(Compression::NONE),
        "gzip" => Some(with_level(Codec::Gzip, "compression.gzip.level")),
        "lz4" => Some(with_level(Codec::Lz4, "compression.lz4.level")),
        "zstd" => Some(with_level(Codec::Zstd, "compression.zstd.level")),
        "snappy" => Some(Compression::new(Codec::Snappy)),
        _ => None,
    }
}
