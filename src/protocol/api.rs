//! The one table of APIs: key, name, the versions declared here, the first flexible one, and what a broker of ours
//! says it speaks.

use std::fmt;

/// A range of versions, both ends included. An end of `i16::MAX` is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Versions {
    /// The first.
    pub first: i16,
    /// The last.
    pub last: i16,
}

impl Versions {
    /// From `first` to `last`.
    pub const fn new(first: i16, last: i16) -> Self {
        Self { first, last }
    }

    /// Whether `version` is one of these.
    pub const fn contains(self, version: i16) -> bool {
        self.first <= version && version <= self.last
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            last if last == self.first => write!(f, "{last}"),
            i16::MAX => write!(f, "{}..", self.first),
            last => write!(f, "{}-{last}", self.first),
        }
    }
}

macro_rules! flexible {
    (never) => {
        None
    };
    ($from:literal) => {
        Some($from)
    };
}

macro_rules! advertised {
    (no) => {
        None
    };
    ($first:literal $last:literal) => {
        Some(Versions::new($first, $last))
    };
}

/// Makes [`ApiKey`] of the table below.
macro_rules! apis {
    ($(
        $(#[$meta:meta])*
        $name:ident = $key:literal, $first:literal ..= $last:literal,
        flexible $flexible:tt $(..)?, advertised $from:tt $(..= $to:literal)?;
    )*) => {
        /// An API that is declared here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i16)]
        #[non_exhaustive]
        pub enum ApiKey {$(
            $(#[$meta])*
            $name = $key,
        )*}

        impl ApiKey {
            /// All of them, by key.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The API of this key.
            pub const fn from_key(key: i16) -> Option<Self> {
                match key {
                    $($key => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Kafka's name for it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The versions that can be read and written here.
            pub const fn versions(self) -> Versions {
                match self {
                    $(Self::$name => Versions::new($first, $last),)*
                }
            }

            /// The first version whose lengths are varints and whose structs end with tagged fields.
            pub const fn flexible_from(self) -> Option<i16> {
                match self {
                    $(Self::$name => flexible!($flexible),)*
                }
            }

            /// The versions that a broker of ours says it speaks; `None`: it does not know the API.
            pub const fn advertised(self) -> Option<Versions> {
                match self {
                    $(Self::$name => advertised!($from $($to)?),)*
                }
            }
        }
    };
}

// `Produce` is advertised from 0 although 0 to 2 are refused: librdkafka up to 2.8 looks for them before it compresses
// (KAFKA-18659).
apis! {
    /// Appends record batches.
    Produce = 0, 3..=13, flexible 9.., advertised 0..=13;
    /// Reads record batches, waiting for more where there are few.
    Fetch = 1, 4..=18, flexible 12.., advertised 4..=18;
    /// Finds offsets by time: of the first, the last, or a record at or after a timestamp.
    ListOffsets = 2, 1..=11, flexible 6.., advertised 1..=11;
    /// Tells of brokers, topics and partitions.
    Metadata = 3, 0..=13, flexible 9.., advertised 0..=13;
    /// Keeps a consumer group's positions.
    OffsetCommit = 8, 2..=10, flexible 8.., advertised 2..=10;
    /// Tells a consumer group's positions.
    OffsetFetch = 9, 1..=10, flexible 6.., advertised 1..=10;
    /// Finds the broker that keeps a group's or a transaction's state.
    FindCoordinator = 10, 0..=6, flexible 3.., advertised 0..=6;
    /// Makes a consumer a member of a group.
    JoinGroup = 11, 0..=9, flexible 6.., advertised 0..=9;
    /// Says that a member of a group is alive.
    Heartbeat = 12, 0..=4, flexible 4.., advertised 0..=4;
    /// Takes members out of a group.
    LeaveGroup = 13, 0..=5, flexible 4.., advertised 0..=5;
    /// Brings the leader's assignment to the members of a group.
    SyncGroup = 14, 0..=5, flexible 4.., advertised 0..=5;
    /// Tells of groups and their members.
    DescribeGroups = 15, 0..=6, flexible 5.., advertised 0..=6;
    /// Lists groups.
    ListGroups = 16, 0..=5, flexible 3.., advertised 0..=5;
    /// Agrees on a SASL mechanism.
    SaslHandshake = 17, 0..=1, flexible never, advertised no;
    /// Tells which APIs and versions a broker speaks.
    ApiVersions = 18, 0..=5, flexible 3.., advertised 0..=4;
    /// Makes topics.
    CreateTopics = 19, 2..=7, flexible 5.., advertised 2..=7;
    /// Removes topics.
    DeleteTopics = 20, 1..=6, flexible 4.., advertised 1..=6;
    /// Drops the oldest records of partitions.
    DeleteRecords = 21, 0..=2, flexible 2.., advertised 0..=2;
    /// Gives a producer its id and epoch.
    InitProducerId = 22, 0..=6, flexible 2.., advertised 0..=5;
    /// Finds where a leader epoch ends.
    OffsetForLeaderEpoch = 23, 2..=4, flexible 4.., advertised 2..=4;
    /// Adds partitions to a transaction.
    AddPartitionsToTxn = 24, 0..=5, flexible 3.., advertised no;
    /// Adds a group's positions to a transaction.
    AddOffsetsToTxn = 25, 0..=4, flexible 3.., advertised no;
    /// Commits or aborts a transaction.
    EndTxn = 26, 0..=5, flexible 3.., advertised no;
    /// Writes the end of a transaction into partitions (between brokers).
    WriteTxnMarkers = 27, 1..=2, flexible 1.., advertised no;
    /// Keeps a group's positions once a transaction is committed.
    TxnOffsetCommit = 28, 0..=6, flexible 3.., advertised no;
    /// Lists access rules.
    DescribeAcls = 29, 1..=3, flexible 2.., advertised 1..=3;
    /// Adds access rules.
    CreateAcls = 30, 1..=3, flexible 2.., advertised 1..=3;
    /// Removes access rules.
    DeleteAcls = 31, 1..=3, flexible 2.., advertised 1..=3;
    /// Tells the settings of topics and brokers.
    DescribeConfigs = 32, 1..=4, flexible 4.., advertised 1..=4;
    /// Replaces all settings of topics and brokers.
    AlterConfigs = 33, 0..=2, flexible 2.., advertised 0..=2;
    /// Moves replicas to other log directories.
    AlterReplicaLogDirs = 34, 1..=2, flexible 2.., advertised no;
    /// Tells of log directories and the partitions in them.
    DescribeLogDirs = 35, 1..=5, flexible 2.., advertised 1..=5;
    /// Carries the bytes of a SASL exchange.
    SaslAuthenticate = 36, 0..=2, flexible 2.., advertised no;
    /// Adds partitions to topics.
    CreatePartitions = 37, 0..=3, flexible 2.., advertised 0..=3;
    /// Removes empty groups.
    DeleteGroups = 42, 0..=3, flexible 2.., advertised 0..=3;
    /// Elects partition leaders.
    ElectLeaders = 43, 0..=2, flexible 2.., advertised 0..=2;
    /// Changes single settings of topics and brokers.
    IncrementalAlterConfigs = 44, 0..=1, flexible 1.., advertised 0..=1;
    /// Moves partitions to other brokers.
    AlterPartitionReassignments = 45, 0..=1, flexible 0.., advertised 0..=1;
    /// Lists partitions that are on the move.
    ListPartitionReassignments = 46, 0..=0, flexible 0.., advertised 0..=0;
    /// Drops a group's positions.
    OffsetDelete = 47, 0..=0, flexible never, advertised 0..=0;
    /// Lists quotas.
    DescribeClientQuotas = 48, 0..=1, flexible 1.., advertised 0..=1;
    /// Sets quotas.
    AlterClientQuotas = 49, 0..=1, flexible 1.., advertised 0..=1;
    /// Lists SCRAM users.
    DescribeUserScramCredentials = 50, 0..=0, flexible 0.., advertised 0..=0;
    /// Sets or removes SCRAM users.
    AlterUserScramCredentials = 51, 0..=0, flexible 0.., advertised no;
    /// Tells of the metadata quorum.
    DescribeQuorum = 55, 0..=2, flexible 0.., advertised 0..=2;
    /// Raises or lowers finalized features.
    UpdateFeatures = 57, 0..=2, flexible 0.., advertised 0..=2;
    /// Tells of the cluster and its brokers.
    DescribeCluster = 60, 0..=2, flexible 0.., advertised 0..=2;
    /// Lists the producers of partitions.
    DescribeProducers = 61, 0..=0, flexible 0.., advertised 0..=0;
    /// Tells of transactions.
    DescribeTransactions = 65, 0..=0, flexible 0.., advertised 0..=0;
    /// Lists transactions.
    ListTransactions = 66, 0..=2, flexible 0.., advertised 0..=2;
    /// Keeps a member in a group of the newer protocol and carries its assignment.
    ConsumerGroupHeartbeat = 68, 0..=1, flexible 0.., advertised no;
    /// Tells of groups of the newer protocol.
    ConsumerGroupDescribe = 69, 0..=1, flexible 0.., advertised no;
    /// Asks which client metrics are wanted.
    GetTelemetrySubscriptions = 71, 0..=0, flexible 0.., advertised no;
    /// Sends client metrics.
    PushTelemetry = 72, 0..=0, flexible 0.., advertised no;
    /// Lists what has settings.
    ListConfigResources = 74, 0..=1, flexible 0.., advertised 0..=1;
    /// Tells of topics page by page.
    DescribeTopicPartitions = 75, 0..=0, flexible 0.., advertised 0..=0;
}

impl ApiKey {
    /// The number in the header of a request.
    pub const fn key(self) -> i16 {
        self as i16
    }

    /// Whether this version has varint lengths and tagged fields.
    pub const fn is_flexible(self, version: i16) -> bool {
        match self.flexible_from() {
            Some(from) => version >= from,
            None => false,
        }
    }

    /// The version of the header before a request of `version`: 1, or 2 with tagged fields.
    pub const fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// The version of the header before a response of `version`: 0, or 1 with tagged fields.
    ///
    /// Always 0 for `ApiVersions`: a client must be able to read it before it knows what the broker speaks.
    pub const fn response_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) && !matches!(self, Self::ApiVersions) { 1 } else { 0 }
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
