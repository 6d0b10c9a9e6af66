//! Every key of a server's settings: what kind of value, which default, what it does here.
//!
//! Names, types, bounds and defaults are those that a broker of version 4.4 gives.

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

/// A line a key: name, kind, default, what is valid, what it is for; below it what it means.
macro_rules! keys {
    ($($name:literal $kind:ident $default:expr, $valid:expr, $use_of:ident, $doc:literal;)*) => {
        /// By subject.
        pub(crate) const KEYS: &[Key] = &[$(Key {
            name: $name,
            kind: Kind::$kind,
            default: $default,
            valid: $valid,
            use_of: UseOf::$use_of,
            doc: $doc,
        },)*];
    };
}

keys! {
    // who and where
    "node.id" Int None, Valid::AtLeast(0), Server,
        "This node's number. A data directory that has one keeps it; a new one gets 1.";
    "broker.id" Int None, Valid::Any, Server, "Another word for node.id.";
    "cluster.id" String None, Valid::NotEmpty, Server,
        "The cluster's id. A data directory that has one keeps it; a new one gets a random one.";
    "log.dirs" List None, Valid::NotEmpty, Server, "The data directory. One.";
    "log.dir" String None, Valid::NotEmpty, Server, "Another word for log.dirs.";
    "listeners" List Some("PLAINTEXT://:9092"), Valid::NotEmpty, Server,
        "Where to listen: NAME://HOST:PORT. No host: all addresses. Port 0: any free one.";
    "advertised.listeners" List None, Valid::NotEmpty, Server,
        "What clients are told to connect to. Default: the listeners.";
    "listener.security.protocol.map" String Some("PLAINTEXT:PLAINTEXT"), Valid::Any, Server,
        "The security protocol of each listener's name. PLAINTEXT is served.";
    // topics
    "num.partitions" Int Some("1"), Valid::AtLeast(1), Server, "Partitions of a topic that is made without a number.";
    "default.replication.factor" Int Some("1"), Valid::AtLeast(1), Server, "There is one copy: 1.";
    "auto.create.topics.enable" Boolean Some("true"), Valid::Any, Server, "Make a topic when a client asks for it.";
    "delete.topic.enable" Boolean Some("true"), Valid::Any, Server, "Whether clients may delete topics.";
    // defaults of topics' own settings
    "log.segment.bytes" Int Some("1073741824"), Valid::AtLeast(1_048_576), Topics, "Default of segment.bytes.";
    "log.roll.ms" Long None, Valid::AtLeast(1), Topics, "Default of segment.ms.";
    "log.roll.hours" Int Some("168"), Valid::AtLeast(1), Topics, "The same in hours; log.roll.ms wins.";
    "log.roll.jitter.ms" Long None, Valid::AtLeast(0), Topics, "Default of segment.jitter.ms.";
    "log.roll.jitter.hours" Int Some("0"), Valid::AtLeast(0), Topics, "The same in hours; log.roll.jitter.ms wins.";
    "log.retention.bytes" Long Some("-1"), Valid::Any, Topics, "Default of retention.bytes.";
    "log.retention.ms" Long None, Valid::AtLeast(-1), Topics, "Default of retention.ms.";
    "log.retention.minutes" Int None, Valid::AtLeast(-1), Topics, "The same in minutes; log.retention.ms wins.";
    "log.retention.hours" Int Some("168"), Valid::AtLeast(-1), Topics,
        "The same in hours; log.retention.minutes wins.";
    "log.cleanup.policy" List Some("delete"), Valid::EachOf(&["compact", "delete"]), Topics,
        "Default of cleanup.policy.";
    "log.index.interval.bytes" Int Some("4096"), Valid::AtLeast(0), Topics, "Default of index.interval.bytes.";
    "log.index.size.max.bytes" Int Some("10485760"), Valid::AtLeast(4), Topics, "Default of segment.index.bytes.";
    "log.segment.delete.delay.ms" Long Some("60000"), Valid::AtLeast(0), Topics, "Default of file.delete.delay.ms.";
    "log.preallocate" Boolean Some("false"), Valid::Any, Topics, "Default of preallocate.";
    "log.flush.interval.messages" Long Some("9223372036854775807"), Valid::AtLeast(1), Topics,
        "Default of flush.messages.";
    "log.flush.interval.ms" Long None, Valid::AtLeast(0), Topics, "Default of flush.ms.";
    "log.message.timestamp.type" String Some("CreateTime"), Valid::OneOf(&["CreateTime", "LogAppendTime"]), Topics,
        "Default of message.timestamp.type.";
    "log.message.timestamp.before.max.ms" Long Some("9223372036854775807"), Valid::AtLeast(0), Topics,
        "Default of message.timestamp.before.max.ms.";
    "log.message.timestamp.after.max.ms" Long Some("3600000"), Valid::AtLeast(0), Topics,
        "Default of message.timestamp.after.max.ms.";
    "message.max.bytes" Int Some("1048588"), Valid::AtLeast(0), Topics, "Default of max.message.bytes.";
    "max.decompressed.message.bytes" Int Some("2147483639"), Valid::Between(1, 2_147_483_639), Topics,
        "The largest record after unpacking.";
    "compression.type" String Some("producer"), Valid::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), Topics,
        "Default of compression.type.";
    "compression.gzip.level" Int Some("-1"), Valid::BetweenOrDefault(1, 9), Topics,
        "Default of compression.gzip.level.";
    "compression.lz4.level" Int Some("9"), Valid::Between(1, 17), Topics, "Default of compression.lz4.level.";
    "compression.zstd.level" Int Some("3"), Valid::Between(-131_072, 22), Topics, "Default of compression.zstd.level.";
    "min.insync.replicas" Int Some("1"), Valid::AtLeast(1), Topics,
        "There is one copy: more than 1 changes nothing, and is warned about.";
    "unclean.leader.election.enable" Boolean Some("false"), Valid::Any, Topics, "There is one copy: changes nothing.";
    "log.cleaner.delete.retention.ms" Long Some("86400000"), Valid::AtLeast(0), Topics,
        "Default of delete.retention.ms.";
    "log.cleaner.min.cleanable.ratio" Double Some("0.5"), Valid::Fraction, Topics,
        "Default of min.cleanable.dirty.ratio.";
    "log.cleaner.min.compaction.lag.ms" Long Some("0"), Valid::AtLeast(0), Topics, "Default of min.compaction.lag.ms.";
    "log.cleaner.max.compaction.lag.ms" Long Some("9223372036854775807"), Valid::AtLeast(1), Topics,
        "Default of max.compaction.lag.ms.";
    "log.local.retention.bytes" Long Some("-2"), Valid::AtLeast(-2), Topics, "Default of local.retention.bytes.";
    "log.local.retention.ms" Long Some("-2"), Valid::AtLeast(-2), Topics, "Default of local.retention.ms.";
    "log.remote.copy.lag.bytes" Long Some("-1"), Valid::AtLeast(-1), Topics, "Default of remote.copy.lag.bytes.";
    "log.remote.copy.lag.ms" Long Some("0"), Valid::AtLeast(-1), Topics, "Default of remote.copy.lag.ms.";
    "stratalog.acknowledge.at" String Some("durable"), Valid::OneOf(&["durable", "written"]), Topics,
        "What acks=1 and acks=all wait for and consumers see: records that survive a power cut (durable), or the process (written).";
    // upkeep
    "log.retention.check.interval.ms" Long Some("300000"), Valid::AtLeast(1), Server,
        "How often retention looks at every log.";
    "log.initial.task.delay.ms" Long Some("30000"), Valid::AtLeast(0), Server, "When it looks for the first time.";
    "log.flush.offset.checkpoint.interval.ms" Int Some("60000"), Valid::AtLeast(1), Server,
        "How often a log that acknowledges at written is synced where nothing else says so.";
    "num.recovery.threads.per.data.dir" Int Some("2"), Valid::AtLeast(1), Server,
        "How many logs are recovered at a time after a kill.";
    "stratalog.sync.unwaited.ms" Int Some("5"), Valid::Between(1, 60_000), Server,
        "Records that nobody waits for (acks=0) are durable after about so long, where the topic acknowledges at durable.";
    "stratalog.shutdown.timeout.ms" Int Some("30000"), Valid::AtLeast(0), Server,
        "How long a stop waits for answers that are on their way.";
    // connections
    "socket.request.max.bytes" Int Some("104857600"), Valid::AtLeast(1), Server, "The largest request.";
    "stratalog.other.request.max.bytes" Int Some("16777216"), Valid::AtLeast(1024), Server,
        "The largest request that is no Produce.";
    "queued.max.request.bytes" Long Some("-1"), Valid::AtLeast(-1), Server,
        "Bytes of requests above 64 KiB that are received or carried out at a time, over all connections; -1: no bound.";
    "socket.send.buffer.bytes" Int Some("102400"), Valid::AtLeast(-1), Server,
        "SO_SNDBUF of connections; -1 leaves it to the system.";
    "socket.receive.buffer.bytes" Int Some("102400"), Valid::AtLeast(-1), Server,
        "SO_RCVBUF of connections; -1 leaves it to the system.";
    "socket.listen.backlog.size" Int Some("50"), Valid::AtLeast(1), Server,
        "Connections that may wait to be accepted.";
    "connections.max.idle.ms" Long Some("600000"), Valid::Any, Server,
        "A connection without a request for so long is closed; negative: never.";
    "max.connections" Int Some("2147483647"), Valid::AtLeast(0), Server, "Connections at a time.";
    "max.connections.per.ip" Int Some("2147483647"), Valid::AtLeast(0), Server,
        "Connections at a time from one address.";
    "fetch.max.bytes" Int Some("57671680"), Valid::AtLeast(1024), Server,
        "The most record bytes in one fetch answer, a first batch aside.";
    "num.network.threads" Int Some("3"), Valid::AtLeast(1), Nothing, "connections have threads of their own";
    "num.io.threads" Int Some("8"), Valid::AtLeast(1), Nothing, "connections have threads of their own";
    "queued.max.requests" Int Some("500"), Valid::AtLeast(1), Nothing, "no queue lies between connections and work";
    // groups, offsets, producers
    "group.min.session.timeout.ms" Int Some("6000"), Valid::AtLeast(0), Server,
        "The shortest session of a group's member.";
    "group.max.session.timeout.ms" Int Some("1800000"), Valid::AtLeast(0), Server,
        "The longest session of a group's member.";
    "group.initial.rebalance.delay.ms" Int Some("3000"), Valid::AtLeast(0), Server,
        "How long a new group waits for more members.";
    "group.max.size" Int Some("2147483647"), Valid::AtLeast(1), Server, "Members of a group at most.";
    "offsets.topic.num.partitions" Int Some("50"), Valid::AtLeast(1), Server,
        "Partitions of __consumer_offsets, when it is made.";
    "offsets.topic.segment.bytes" Int Some("104857600"), Valid::AtLeast(1), Server,
        "Segment size of __consumer_offsets, when it is made.";
    "offsets.topic.replication.factor" Short Some("1"), Valid::AtLeast(1), Nothing, "there is one copy";
    "offsets.retention.minutes" Int Some("10080"), Valid::AtLeast(1), Server,
        "Offsets of a group without members go after so long.";
    "offsets.retention.check.interval.ms" Long Some("600000"), Valid::AtLeast(1), Server,
        "How often that is looked at.";
    "offset.metadata.max.bytes" Int Some("4096"), Valid::AtLeast(0), Server,
        "The longest note beside a committed offset.";
    "producer.id.expiration.ms" Int Some("86400000"), Valid::AtLeast(1), Server,
        "How long a producer is remembered after its last batch.";
    "transactional.id.expiration.ms" Int Some("604800000"), Valid::AtLeast(1), Server,
        "How long a transactional id is remembered.";
    "transaction.max.timeout.ms" Int Some("900000"), Valid::AtLeast(1), Server, "The longest transaction.";
}

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
