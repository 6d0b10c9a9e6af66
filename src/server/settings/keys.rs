//! Every key of a server's settings: what kind of value, which default, what it does here.
//!
//! Names, types, bounds and defaults are those that a broker of version 4.4 gives.

use UseOf::{Nothing, Server, Topics};

use super::super::value::{Kind, Valid};

/// A key that means something here.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// `None`: nothing, unless it is set.
    pub(crate) default: Option<&'static str>,
    pub(crate) valid: Valid,
    pub(crate) use_of: UseOf,
    pub(crate) doc: &'static str,
}

/// What becomes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseOf {
    /// The server goes by it.
    Server,
    /// Topics go by it that were not told otherwise.
    Topics,
    /// It changes nothing; `doc` says why.
    Nothing,
}

const fn row(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    valid: Valid,
    use_of: UseOf,
    doc: &'static str,
) -> Key {
    Key { name, kind, default, valid, use_of, doc }
}

/// By subject.
pub(crate) const KEYS: &[Key] = &[
    // who and where
    row(
        "node.id",
        Kind::Int,
        None,
        Valid::AtLeast(0),
        Server,
        "This node's number. A data directory that has one keeps it; a new one gets 1.",
    ),
    row("broker.id", Kind::Int, None, Valid::Any, Server, "Another word for node.id."),
    row(
        "cluster.id",
        Kind::String,
        None,
        Valid::NotEmpty,
        Server,
        "The cluster's id. A data directory that has one keeps it; a new one gets a random one.",
    ),
    row("log.dirs", Kind::List, None, Valid::NotEmpty, Server, "The data directory. One."),
    row("log.dir", Kind::String, None, Valid::NotEmpty, Server, "Another word for log.dirs."),
    row(
        "listeners",
        Kind::List,
        Some("PLAINTEXT://:9092"),
        Valid::NotEmpty,
        Server,
        "Where to listen: NAME://HOST:PORT. No host: all addresses. Port 0: any free one.",
    ),
    row(
        "advertised.listeners",
        Kind::List,
        None,
        Valid::NotEmpty,
        Server,
        "What clients are told to connect to. Default: the listeners.",
    ),
    row(
        "listener.security.protocol.map",
        Kind::String,
        Some("PLAINTEXT:PLAINTEXT"),
        Valid::Any,
        Server,
        "The security protocol of each listener's name. PLAINTEXT is served.",
    ),
    // topics
    row(
        "num.partitions",
        Kind::Int,
        Some("1"),
        Valid::AtLeast(1),
        Server,
        "Partitions of a topic that is made without a number.",
    ),
    row(
        "default.replication.factor",
        Kind::Int,
        Some("1"),
        Valid::AtLeast(1),
        Server,
        "There is one copy: 1.",
    ),
    row(
        "auto.create.topics.enable",
        Kind::Boolean,
        Some("true"),
        Valid::Any,
        Server,
        "Make a topic when a client asks for it.",
    ),
    row(
        "delete.topic.enable",
        Kind::Boolean,
        Some("true"),
        Valid::Any,
        Server,
        "Whether clients may delete topics.",
    ),
    // defaults of topics' own settings
    row(
        "log.segment.bytes",
        Kind::Int,
        Some("1073741824"),
        Valid::AtLeast(1_048_576),
        Topics,
        "Default of segment.bytes.",
    ),
    row("log.roll.ms", Kind::Long, None, Valid::AtLeast(1), Topics, "Default of segment.ms."),
    row(
        "log.roll.hours",
        Kind::Int,
        Some("168"),
        Valid::AtLeast(1),
        Topics,
        "The same in hours; log.roll.ms wins.",
    ),
    row("log.roll.jitter.ms", Kind::Long, None, Valid::AtLeast(0), Topics, "Default of segment.jitter.ms."),
    row(
        "log.roll.jitter.hours",
        Kind::Int,
        Some("0"),
        Valid::AtLeast(0),
        Topics,
        "The same in hours; log.roll.jitter.ms wins.",
    ),
    row("log.retention.bytes", Kind::Long, Some("-1"), Valid::Any, Topics, "Default of retention.bytes."),
    row("log.retention.ms", Kind::Long, None, Valid::AtLeast(-1), Topics, "Default of retention.ms."),
    row(
        "log.retention.minutes",
        Kind::Int,
        None,
        Valid::AtLeast(-1),
        Topics,
        "The same in minutes; log.retention.ms wins.",
    ),
    row(
        "log.retention.hours",
        Kind::Int,
        Some("168"),
        Valid::AtLeast(-1),
        Topics,
        "The same in hours; log.retention.minutes wins.",
    ),
    row(
        "log.cleanup.policy",
        Kind::List,
        Some("delete"),
        Valid::EachOf(&["compact", "delete"]),
        Topics,
        "Default of cleanup.policy.",
    ),
    row(
        "log.index.interval.bytes",
        Kind::Int,
        Some("4096"),
        Valid::AtLeast(0),
        Topics,
        "Default of index.interval.bytes.",
    ),
    row(
        "log.index.size.max.bytes",
        Kind::Int,
        Some("10485760"),
        Valid::AtLeast(4),
        Topics,
        "Default of segment.index.bytes.",
    ),
    row(
        "log.segment.delete.delay.ms",
        Kind::Long,
        Some("60000"),
        Valid::AtLeast(0),
        Topics,
        "Default of file.delete.delay.ms.",
    ),
    row("log.preallocate", Kind::Boolean, Some("false"), Valid::Any, Topics, "Default of preallocate."),
    row(
        "log.flush.interval.messages",
        Kind::Long,
        Some("9223372036854775807"),
        Valid::AtLeast(1),
        Topics,
        "Default of flush.messages.",
    ),
    row("log.flush.interval.ms", Kind::Long, None, Valid::AtLeast(0), Topics, "Default of flush.ms."),
    row(
        "log.message.timestamp.type",
        Kind::String,
        Some("CreateTime"),
        Valid::OneOf(&["CreateTime", "LogAppendTime"]),
        Topics,
        "Default of message.timestamp.type.",
    ),
    row(
        "log.message.timestamp.before.max.ms",
        Kind::Long,
        Some("9223372036854775807"),
        Valid::AtLeast(0),
        Topics,
        "Default of message.timestamp.before.max.ms.",
    ),
    row(
        "log.message.timestamp.after.max.ms",
        Kind::Long,
        Some("3600000"),
        Valid::AtLeast(0),
        Topics,
        "Default of message.timestamp.after.max.ms.",
    ),
    row(
        "message.max.bytes",
        Kind::Int,
        Some("1048588"),
        Valid::AtLeast(0),
        Topics,
        "Default of max.message.bytes.",
    ),
    row(
        "max.decompressed.message.bytes",
        Kind::Int,
        Some("2147483639"),
        Valid::Between(1, 2_147_483_639),
        Topics,
        "The largest record after unpacking.",
    ),
    row(
        "compression.type",
        Kind::String,
        Some("producer"),
        Valid::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        Topics,
        "Default of compression.type.",
    ),
    row(
        "compression.gzip.level",
        Kind::Int,
        Some("-1"),
        Valid::BetweenOrDefault(1, 9),
        Topics,
        "Default of compression.gzip.level.",
    ),
    row(
        "compression.lz4.level",
        Kind::Int,
        Some("9"),
        Valid::Between(1, 17),
        Topics,
        "Default of compression.lz4.level.",
    ),
    row(
        "compression.zstd.level",
        Kind::Int,
        Some("3"),
        Valid::Between(-131_072, 22),
        Topics,
        "Default of compression.zstd.level.",
    ),
    row(
        "min.insync.replicas",
        Kind::Int,
        Some("1"),
        Valid::AtLeast(1),
        Topics,
        "There is one copy: more than 1 changes nothing, and is warned about.",
    ),
    row(
        "unclean.leader.election.enable",
        Kind::Boolean,
        Some("false"),
        Valid::Any,
        Topics,
        "There is one copy: changes nothing.",
    ),
    row(
        "log.cleaner.delete.retention.ms",
        Kind::Long,
        Some("86400000"),
        Valid::AtLeast(0),
        Topics,
        "Default of delete.retention.ms.",
    ),
    row(
        "log.cleaner.min.cleanable.ratio",
        Kind::Double,
        Some("0.5"),
        Valid::Fraction,
        Topics,
        "Default of min.cleanable.dirty.ratio.",
    ),
    row(
        "log.cleaner.min.compaction.lag.ms",
        Kind::Long,
        Some("0"),
        Valid::AtLeast(0),
        Topics,
        "Default of min.compaction.lag.ms.",
    ),
    row(
        "log.cleaner.max.compaction.lag.ms",
        Kind::Long,
        Some("9223372036854775807"),
        Valid::AtLeast(1),
        Topics,
        "Default of max.compaction.lag.ms.",
    ),
    row(
        "log.local.retention.bytes",
        Kind::Long,
        Some("-2"),
        Valid::AtLeast(-2),
        Topics,
        "Default of local.retention.bytes.",
    ),
    row(
        "log.local.retention.ms",
        Kind::Long,
        Some("-2"),
        Valid::AtLeast(-2),
        Topics,
        "Default of local.retention.ms.",
    ),
    row(
        "log.remote.copy.lag.bytes",
        Kind::Long,
        Some("-1"),
        Valid::AtLeast(-1),
        Topics,
        "Default of remote.copy.lag.bytes.",
    ),
    row(
        "log.remote.copy.lag.ms",
        Kind::Long,
        Some("0"),
        Valid::AtLeast(-1),
        Topics,
        "Default of remote.copy.lag.ms.",
    ),
    row(
        "stratalog.acknowledge.at",
        Kind::String,
        Some("durable"),
        Valid::OneOf(&["durable", "written"]),
        Topics,
        "What acks=1 and acks=all wait for and consumers see: records that survive a power cut (durable), or the process (written).",
    ),
    // upkeep
    row(
        "log.retention.check.interval.ms",
        Kind::Long,
        Some("300000"),
        Valid::AtLeast(1),
        Server,
        "How often retention looks at every log.",
    ),
    row(
        "log.initial.task.delay.ms",
        Kind::Long,
        Some("30000"),
        Valid::AtLeast(0),
        Server,
        "When it looks for the first time.",
    ),
    row(
        "log.flush.offset.checkpoint.interval.ms",
        Kind::Int,
        Some("60000"),
        Valid::AtLeast(1),
        Server,
        "How often a log that acknowledges at written is synced where nothing else says so.",
    ),
    row(
        "num.recovery.threads.per.data.dir",
        Kind::Int,
        Some("2"),
        Valid::AtLeast(1),
        Server,
        "How many logs are recovered at a time after a kill.",
    ),
    row(
        "stratalog.sync.unwaited.ms",
        Kind::Int,
        Some("5"),
        Valid::Between(1, 60_000),
        Server,
        "Records that nobody waits for (acks=0) are durable after about so long, where the topic acknowledges at durable.",
    ),
    row(
        "stratalog.shutdown.timeout.ms",
        Kind::Int,
        Some("30000"),
        Valid::AtLeast(0),
        Server,
        "How long a stop waits for answers that are on their way.",
    ),
    // connections
    row(
        "socket.request.max.bytes",
        Kind::Int,
        Some("104857600"),
        Valid::AtLeast(1),
        Server,
        "The largest request.",
    ),
    row(
        "socket.send.buffer.bytes",
        Kind::Int,
        Some("102400"),
        Valid::AtLeast(-1),
        Server,
        "SO_SNDBUF of connections; -1 leaves it to the system.",
    ),
    row(
        "socket.receive.buffer.bytes",
        Kind::Int,
        Some("102400"),
        Valid::AtLeast(-1),
        Server,
        "SO_RCVBUF of connections; -1 leaves it to the system.",
    ),
    row(
        "socket.listen.backlog.size",
        Kind::Int,
        Some("50"),
        Valid::AtLeast(1),
        Server,
        "Connections that may wait to be accepted.",
    ),
    row(
        "connections.max.idle.ms",
        Kind::Long,
        Some("600000"),
        Valid::Any,
        Server,
        "A connection without a request for so long is closed; negative: never.",
    ),
    row(
        "max.connections",
        Kind::Int,
        Some("2147483647"),
        Valid::AtLeast(0),
        Server,
        "Connections at a time.",
    ),
    row(
        "max.connections.per.ip",
        Kind::Int,
        Some("2147483647"),
        Valid::AtLeast(0),
        Server,
        "Connections at a time from one address.",
    ),
    row(
        "fetch.max.bytes",
        Kind::Int,
        Some("57671680"),
        Valid::AtLeast(1024),
        Server,
        "The most record bytes in one fetch answer, a first batch aside.",
    ),
    row(
        "num.network.threads",
        Kind::Int,
        Some("3"),
        Valid::AtLeast(1),
        Nothing,
        "connections have threads of their own",
    ),
    row(
        "num.io.threads",
        Kind::Int,
        Some("8"),
        Valid::AtLeast(1),
        Nothing,
        "connections have threads of their own",
    ),
    row(
        "queued.max.requests",
        Kind::Int,
        Some("500"),
        Valid::AtLeast(1),
        Nothing,
        "no queue lies between connections and work",
    ),
    // groups, offsets, producers
    row(
        "group.min.session.timeout.ms",
        Kind::Int,
        Some("6000"),
        Valid::AtLeast(0),
        Server,
        "The shortest session of a group's member.",
    ),
    row(
        "group.max.session.timeout.ms",
        Kind::Int,
        Some("1800000"),
        Valid::AtLeast(0),
        Server,
        "The longest session of a group's member.",
    ),
    row(
        "group.initial.rebalance.delay.ms",
        Kind::Int,
        Some("3000"),
        Valid::AtLeast(0),
        Server,
        "How long a new group waits for more members.",
    ),
    row(
        "group.max.size",
        Kind::Int,
        Some("2147483647"),
        Valid::AtLeast(1),
        Server,
        "Members of a group at most.",
    ),
    row(
        "offsets.topic.num.partitions",
        Kind::Int,
        Some("50"),
        Valid::AtLeast(1),
        Server,
        "Partitions of __consumer_offsets, when it is made.",
    ),
    row(
        "offsets.topic.segment.bytes",
        Kind::Int,
        Some("104857600"),
        Valid::AtLeast(1),
        Server,
        "Segment size of __consumer_offsets, when it is made.",
    ),
    row(
        "offsets.topic.replication.factor",
        Kind::Short,
        Some("1"),
        Valid::AtLeast(1),
        Nothing,
        "there is one copy",
    ),
    row(
        "offsets.retention.minutes",
        Kind::Int,
        Some("10080"),
        Valid::AtLeast(1),
        Server,
        "Offsets of a group without members go after so long.",
    ),
    row(
        "offsets.retention.check.interval.ms",
        Kind::Long,
        Some("600000"),
        Valid::AtLeast(1),
        Server,
        "How often that is looked at.",
    ),
    row(
        "offset.metadata.max.bytes",
        Kind::Int,
        Some("4096"),
        Valid::AtLeast(0),
        Server,
        "The longest note beside a committed offset.",
    ),
    row(
        "producer.id.expiration.ms",
        Kind::Int,
        Some("86400000"),
        Valid::AtLeast(1),
        Server,
        "How long a producer is remembered after its last batch.",
    ),
    row(
        "transactional.id.expiration.ms",
        Kind::Int,
        Some("604800000"),
        Valid::AtLeast(1),
        Server,
        "How long a transactional id is remembered.",
    ),
    row(
        "transaction.max.timeout.ms",
        Kind::Int,
        Some("900000"),
        Valid::AtLeast(1),
        Server,
        "The longest transaction.",
    ),
];

/// The key of this name.
pub(crate) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

#[cfg(test)]
mod tests {
    use super::{super::super::value::check, *};

    #[test]
    fn defaults_are_values_of_their_keys_in_their_one_form() {
        for key in KEYS {
            let Some(default) = key.default else { continue };
            let checked = check(key.name, key.kind, key.valid, default);
            assert_eq!(checked.as_deref(), Ok(default), "{}", key.name);
        }
    }

    #[test]
    fn no_key_is_there_twice() {
        let mut names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
