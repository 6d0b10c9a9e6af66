//! The settings of a topic: what kind of value, which default, whose default, what it does here.
//!
//! Names, types, bounds and defaults are those that a broker of version 4.4 gives; `stratalog.` are our own.

use super::super::value::{Kind, Valid};

/// A setting of a topic.
#[derive(Debug)]
pub(crate) struct TopicKey {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: &'static str,
    pub(crate) valid: Valid,
    /// The server's settings that give a topic its default, the one that wins first; each with what its unit is in this
    /// setting's.
    pub(crate) synonyms: &'static [(&'static str, i64)],
    pub(crate) effect: Effect,
    pub(crate) doc: &'static str,
}

/// What a setting does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The log goes by it.
    Engine,
    /// The server goes by it.
    Server,
    /// It is kept and shown, and changes nothing (yet, or all that one would think), for this reason.
    Kept(&'static str),
}

const ONE_COPY: &str = "there is one copy";
const COMPACTION: &str = "logs are not compacted";
const REMOTE: &str = "there is no remote storage";

/// A setting: name, kind, default, what is valid; the server's synonyms and the effect; what it means.
macro_rules! topic_keys {
    ($($name:literal $kind:ident $default:literal, $valid:expr, $synonyms:expr, $effect:expr, $doc:literal;)*) => {
        /// Sorted by name.
        pub(crate) const TOPIC_KEYS: &[TopicKey] = &[$(TopicKey {
            name: $name,
            kind: Kind::$kind,
            default: $default,
            valid: $valid,
            synonyms: $synonyms,
            effect: $effect,
            doc: $doc,
        },)*];
    };
}

topic_keys! {
    "cleanup.policy" List "delete", Valid::EachOf(&["compact", "delete"]),
        &[("log.cleanup.policy", 1)], Effect::Kept("a compacted topic keeps all its records for now, and takes records with keys only"),
        "What becomes of old records: delete drops old segments, compact keeps the newest record of each key.";
    "compression.gzip.level" Int "-1", Valid::BetweenOrDefault(1, 9),
        &[("compression.gzip.level", 1)], Effect::Server,
        "Level of gzip, where compression.type is gzip.";
    "compression.lz4.level" Int "9", Valid::Between(1, 17),
        &[("compression.lz4.level", 1)], Effect::Kept("there is one lz4 level here"),
        "Level of lz4, where compression.type is lz4.";
    "compression.type" String "producer", Valid::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        &[("compression.type", 1)], Effect::Server,
        "How records are compressed; producer: as they come.";
    "compression.zstd.level" Int "3", Valid::Between(-131_072, 22),
        &[("compression.zstd.level", 1)], Effect::Server,
        "Level of zstd, where compression.type is zstd.";
    "delete.retention.ms" Long "86400000", Valid::AtLeast(0),
        &[("log.cleaner.delete.retention.ms", 1)], Effect::Kept(COMPACTION),
        "How long a compacted topic keeps tombstones.";
    "errors.deadletterqueue.group.enable" Boolean "false", Valid::Any,
        &[], Effect::Kept("share groups are not served"),
        "Whether share groups may use the topic for what they cannot deliver.";
    "file.delete.delay.ms" Long "60000", Valid::AtLeast(0),
        &[("log.segment.delete.delay.ms", 1)], Effect::Kept("dropped files go at once; who reads one keeps it open"),
        "How long dropped files stay.";
    "flush.messages" Long "9223372036854775807", Valid::AtLeast(1),
        &[("log.flush.interval.messages", 1)], Effect::Server,
        "Sync after so many records, where stratalog.acknowledge.at is written; 1 means durable.";
    "flush.ms" Long "9223372036854775807", Valid::AtLeast(0),
        &[("log.flush.interval.ms", 1)], Effect::Server,
        "Sync records that have waited so long, where stratalog.acknowledge.at is written.";
    "follower.replication.throttled.replicas" List "", Valid::Throttled,
        &[], Effect::Kept(ONE_COPY),
        "Replicas whose followers are slowed down.";
    "index.interval.bytes" Int "4096", Valid::AtLeast(0),
        &[("log.index.interval.bytes", 1)], Effect::Engine,
        "Bytes of log between two index entries.";
    "leader.replication.throttled.replicas" List "", Valid::Throttled,
        &[], Effect::Kept(ONE_COPY),
        "Replicas whose leaders are slowed down.";
    "local.retention.bytes" Long "-2", Valid::AtLeast(-2),
        &[("log.local.retention.bytes", 1)], Effect::Kept(REMOTE),
        "Bytes kept here of what remote storage has.";
    "local.retention.ms" Long "-2", Valid::AtLeast(-2),
        &[("log.local.retention.ms", 1)], Effect::Kept(REMOTE),
        "How long to keep here what remote storage has.";
    "max.compaction.lag.ms" Long "9223372036854775807", Valid::AtLeast(1),
        &[("log.cleaner.max.compaction.lag.ms", 1)], Effect::Kept(COMPACTION),
        "After so long a record must be compacted.";
    "max.decompressed.message.bytes" Int "2147483639", Valid::Between(1, 2_147_483_639),
        &[("max.decompressed.message.bytes", 1)], Effect::Server,
        "The largest record after unpacking.";
    "max.message.bytes" Int "1048588", Valid::AtLeast(0),
        &[("message.max.bytes", 1)], Effect::Engine,
        "The largest batch, as it is sent.";
    "message.timestamp.after.max.ms" Long "3600000", Valid::AtLeast(0),
        &[("log.message.timestamp.after.max.ms", 1)], Effect::Server,
        "How far a record's time may lie ahead of the server's.";
    "message.timestamp.before.max.ms" Long "9223372036854775807", Valid::AtLeast(0),
        &[("log.message.timestamp.before.max.ms", 1)], Effect::Server,
        "How far a record's time may lie behind the server's.";
    "message.timestamp.type" String "CreateTime", Valid::OneOf(&["CreateTime", "LogAppendTime"]),
        &[("log.message.timestamp.type", 1)], Effect::Engine,
        "Whose clock a record's time tells: its producer's or the log's.";
    "min.cleanable.dirty.ratio" Double "0.5", Valid::Fraction,
        &[("log.cleaner.min.cleanable.ratio", 1)], Effect::Kept(COMPACTION),
        "How much of a log must be uncompacted before it is compacted.";
    "min.compaction.lag.ms" Long "0", Valid::AtLeast(0),
        &[("log.cleaner.min.compaction.lag.ms", 1)], Effect::Kept(COMPACTION),
        "For so long a record is not compacted.";
    "min.insync.replicas" Int "1", Valid::AtLeast(1),
        &[("min.insync.replicas", 1)], Effect::Kept(ONE_COPY),
        "Copies that must have a record before acks=all is answered.";
    "preallocate" Boolean "false", Valid::Any,
        &[("log.preallocate", 1)], Effect::Engine,
        "Reserve the whole segment at its first append, not in steps.";
    "remote.copy.lag.bytes" Long "-1", Valid::AtLeast(-1),
        &[("log.remote.copy.lag.bytes", 1)], Effect::Kept(REMOTE),
        "Bytes that wait before they are copied to remote storage.";
    "remote.copy.lag.ms" Long "0", Valid::AtLeast(-1),
        &[("log.remote.copy.lag.ms", 1)], Effect::Kept(REMOTE),
        "How long they wait.";
    "remote.log.copy.disable" Boolean "false", Valid::Any,
        &[], Effect::Kept(REMOTE),
        "Copy nothing more to remote storage.";
    "remote.log.delete.on.disable" Boolean "false", Valid::Any,
        &[], Effect::Kept(REMOTE),
        "Delete what remote storage has when it is switched off.";
    "remote.storage.enable" Boolean "false", Valid::Any,
        &[], Effect::Kept(REMOTE),
        "Keep old segments in remote storage; refused here.";
    "retention.bytes" Long "-1", Valid::Any,
        &[("log.retention.bytes", 1)], Effect::Engine,
        "Drop old segments while so many bytes remain; negative: never.";
    "retention.ms" Long "604800000", Valid::AtLeast(-1),
        &[("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)], Effect::Engine,
        "Drop segments whose newest record is older; -1: never.";
    "segment.bytes" Int "1073741824", Valid::AtLeast(1_048_576),
        &[("log.segment.bytes", 1)], Effect::Engine,
        "The largest size of a segment.";
    "segment.index.bytes" Int "10485760", Valid::AtLeast(4),
        &[("log.index.size.max.bytes", 1)], Effect::Engine,
        "The largest size of an index.";
    "segment.jitter.ms" Long "0", Valid::AtLeast(0),
        &[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)], Effect::Kept("segments are closed when they are due, not before"),
        "Close segments by age up to so much earlier.";
    "segment.ms" Long "604800000", Valid::AtLeast(1),
        &[("log.roll.ms", 1), ("log.roll.hours", 3_600_000)], Effect::Engine,
        "Close a segment whose first record is older.";
    "stratalog.acknowledge.at" String "durable", Valid::OneOf(&["durable", "written"]),
        &[("stratalog.acknowledge.at", 1)], Effect::Server,
        "What acks=1 and acks=all wait for and consumers see: records that survive a power cut (durable), or the process (written).";
    "unclean.leader.election.enable" Boolean "false", Valid::Any,
        &[("unclean.leader.election.enable", 1)], Effect::Kept(ONE_COPY),
        "Whether a copy that lags may lead.";
}

/// The setting of this name.
pub(crate) fn topic_key(name: &str) -> Option<&'static TopicKey> {
    let at = TOPIC_KEYS.binary_search_by(|key| key.name.cmp(name)).ok()?;
    TOPIC_KEYS.get(at)
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::{settings::keys, value::check},
        *,
    };

    #[test]
    fn the_table_is_sorted_and_its_defaults_are_values() {
        assert!(TOPIC_KEYS.is_sorted_by(|a, b| a.name < b.name));
        for key in TOPIC_KEYS {
            assert_eq!(
                check(key.name, key.kind, key.valid, key.default).as_deref(),
                Ok(key.default),
                "{}",
                key.name
            );
            assert!(topic_key(key.name).is_some());
        }
        assert!(topic_key("nope").is_none());
    }

    #[test]
    fn a_topics_default_is_the_servers() {
        for key in TOPIC_KEYS {
            for (synonym, factor) in key.synonyms {
                let broker = keys::key(synonym).unwrap_or_else(|| panic!("{synonym}"));
                let Some(default) = broker.default else { continue };
                let same = match default.parse::<i64>() {
                    Ok(number) => key.default == (number * factor).to_string(),
                    Err(_) => key.default == default,
                };
                assert!(same, "{} = {}, {synonym} = {default}", key.name, key.default);
            }
        }
    }

    /// The keys, types and defaults that a broker has, line by line.
    #[test]
    fn the_table_has_all_of_a_brokers_keys() {
        const BROKERS: &str = "\
cleanup.policy LIST delete\n\
compression.gzip.level INT -1\n\
compression.lz4.level INT 9\n\
compression.type STRING producer\n\
compression.zstd.level INT 3\n\
delete.retention.ms LONG 86400000\n\
errors.deadletterqueue.group.enable BOOLEAN false\n\
file.delete.delay.ms LONG 60000\n\
flush.messages LONG 9223372036854775807\n\
flush.ms LONG 9223372036854775807\n\
follower.replication.throttled.replicas LIST \n\
index.interval.bytes INT 4096\n\
leader.replication.throttled.replicas LIST \n\
local.retention.bytes LONG -2\n\
local.retention.ms LONG -2\n\
max.compaction.lag.ms LONG 9223372036854775807\n\
max.decompressed.message.bytes INT 2147483639\n\
max.message.bytes INT 1048588\n\
message.timestamp.after.max.ms LONG 3600000\n\
message.timestamp.before.max.ms LONG 9223372036854775807\n\
message.timestamp.type STRING CreateTime\n\
min.cleanable.dirty.ratio DOUBLE 0.5\n\
min.compaction.lag.ms LONG 0\n\
min.insync.replicas INT 1\n\
preallocate BOOLEAN false\n\
remote.copy.lag.bytes LONG -1\n\
remote.copy.lag.ms LONG 0\n\
remote.log.copy.disable BOOLEAN false\n\
remote.log.delete.on.disable BOOLEAN false\n\
remote.storage.enable BOOLEAN false\n\
retention.bytes LONG -1\n\
retention.ms LONG 604800000\n\
segment.bytes INT 1073741824\n\
segment.index.bytes INT 10485760\n\
segment.jitter.ms LONG 0\n\
segment.ms LONG 604800000\n\
unclean.leader.election.enable BOOLEAN false\n\
";
        let found = TOPIC_KEYS.iter().filter(|key| !key.name.starts_with("stratalog."));
        let line = |key: &TopicKey| format!("{} {} {}", key.name, key.kind.name(), key.default);
        let found = found.map(line).collect::<Vec<_>>().join("\n") + "\n";
        assert_eq!(found, BROKERS);
    }
}
