//! Kafka's error codes, and what each error of the engine is called on the wire.

use std::fmt;

use crate::{Error, record::BatchError};

/// A number that every client knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ErrorCode(i16);

/// Kafka's name of an error code, as `NOT_LEADER_OR_FOLLOWER` is of 6; `UNKNOWN` for one that this version does not know.
pub fn error_name(code: i16) -> &'static str {
    ErrorCode(code).name()
}

/// Declares the codes and their names.
macro_rules! codes {
    ($($value:literal $name:ident),* $(,)?) => {
        #[expect(dead_code, reason = "the table is whole, whatever is used of it")]
        impl ErrorCode {
            $(
                #[doc = concat!("Code ", stringify!($value), ".")]
                pub(crate) const $name: Self = Self($value);
            )*

            /// Kafka's name for it.
            pub(crate) fn name(self) -> &'static str {
                match self.0 {
                    $($value => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }
        }
    };
}

codes! {
    -1 UNKNOWN_SERVER_ERROR,
    0 NONE,
    1 OFFSET_OUT_OF_RANGE,
    2 CORRUPT_MESSAGE,
    3 UNKNOWN_TOPIC_OR_PARTITION,
    4 INVALID_FETCH_SIZE,
    5 LEADER_NOT_AVAILABLE,
    6 NOT_LEADER_OR_FOLLOWER,
    7 REQUEST_TIMED_OUT,
    8 BROKER_NOT_AVAILABLE,
    9 REPLICA_NOT_AVAILABLE,
    10 MESSAGE_TOO_LARGE,
    11 STALE_CONTROLLER_EPOCH,
    12 OFFSET_METADATA_TOO_LARGE,
    13 NETWORK_EXCEPTION,
    14 COORDINATOR_LOAD_IN_PROGRESS,
    15 COORDINATOR_NOT_AVAILABLE,
    16 NOT_COORDINATOR,
    17 INVALID_TOPIC_EXCEPTION,
    18 RECORD_LIST_TOO_LARGE,
    19 NOT_ENOUGH_REPLICAS,
    20 NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    21 INVALID_REQUIRED_ACKS,
    22 ILLEGAL_GENERATION,
    23 INCONSISTENT_GROUP_PROTOCOL,
    24 INVALID_GROUP_ID,
    25 UNKNOWN_MEMBER_ID,
    26 INVALID_SESSION_TIMEOUT,
    27 REBALANCE_IN_PROGRESS,
    28 INVALID_COMMIT_OFFSET_SIZE,
    29 TOPIC_AUTHORIZATION_FAILED,
    30 GROUP_AUTHORIZATION_FAILED,
    31 CLUSTER_AUTHORIZATION_FAILED,
    32 INVALID_TIMESTAMP,
    33 UNSUPPORTED_SASL_MECHANISM,
    34 ILLEGAL_SASL_STATE,
    35 UNSUPPORTED_VERSION,
    36 TOPIC_ALREADY_EXISTS,
    37 INVALID_PARTITIONS,
    38 INVALID_REPLICATION_FACTOR,
    39 INVALID_REPLICA_ASSIGNMENT,
    40 INVALID_CONFIG,
    41 NOT_CONTROLLER,
    42 INVALID_REQUEST,
    43 UNSUPPORTED_FOR_MESSAGE_FORMAT,
    44 POLICY_VIOLATION,
    45 OUT_OF_ORDER_SEQUENCE_NUMBER,
    46 DUPLICATE_SEQUENCE_NUMBER,
    47 INVALID_PRODUCER_EPOCH,
    48 INVALID_TXN_STATE,
    49 INVALID_PRODUCER_ID_MAPPING,
    50 INVALID_TRANSACTION_TIMEOUT,
    51 CONCURRENT_TRANSACTIONS,
    52 TRANSACTION_COORDINATOR_FENCED,
    53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    54 SECURITY_DISABLED,
    55 OPERATION_NOT_ATTEMPTED,
    56 KAFKA_STORAGE_ERROR,
    57 LOG_DIR_NOT_FOUND,
    58 SASL_AUTHENTICATION_FAILED,
    59 UNKNOWN_PRODUCER_ID,
    60 REASSIGNMENT_IN_PROGRESS,
    61 DELEGATION_TOKEN_AUTH_DISABLED,
    62 DELEGATION_TOKEN_NOT_FOUND,
    63 DELEGATION_TOKEN_OWNER_MISMATCH,
    64 DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    65 DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    66 DELEGATION_TOKEN_EXPIRED,
    67 INVALID_PRINCIPAL_TYPE,
    68 NON_EMPTY_GROUP,
    69 GROUP_ID_NOT_FOUND,
    70 FETCH_SESSION_ID_NOT_FOUND,
    71 INVALID_FETCH_SESSION_EPOCH,
    72 LISTENER_NOT_FOUND,
    73 TOPIC_DELETION_DISABLED,
    74 FENCED_LEADER_EPOCH,
    75 UNKNOWN_LEADER_EPOCH,
    76 UNSUPPORTED_COMPRESSION_TYPE,
    77 STALE_BROKER_EPOCH,
    78 OFFSET_NOT_AVAILABLE,
    79 MEMBER_ID_REQUIRED,
    80 PREFERRED_LEADER_NOT_AVAILABLE,
    81 GROUP_MAX_SIZE_REACHED,
    82 FENCED_INSTANCE_ID,
    83 ELIGIBLE_LEADERS_NOT_AVAILABLE,
    84 ELECTION_NOT_NEEDED,
    85 NO_REASSIGNMENT_IN_PROGRESS,
    86 GROUP_SUBSCRIBED_TO_TOPIC,
    87 INVALID_RECORD,
    88 UNSTABLE_OFFSET_COMMIT,
    89 THROTTLING_QUOTA_EXCEEDED,
    90 PRODUCER_FENCED,
    91 RESOURCE_NOT_FOUND,
    92 DUPLICATE_RESOURCE,
    93 UNACCEPTABLE_CREDENTIAL,
    94 INCONSISTENT_VOTER_SET,
    95 INVALID_UPDATE_VERSION,
    96 FEATURE_UPDATE_FAILED,
    97 PRINCIPAL_DESERIALIZATION_FAILURE,
    98 SNAPSHOT_NOT_FOUND,
    99 POSITION_OUT_OF_RANGE,
    100 UNKNOWN_TOPIC_ID,
    101 DUPLICATE_BROKER_REGISTRATION,
    102 BROKER_ID_NOT_REGISTERED,
    103 INCONSISTENT_TOPIC_ID,
    104 INCONSISTENT_CLUSTER_ID,
    105 TRANSACTIONAL_ID_NOT_FOUND,
    106 FETCH_SESSION_TOPIC_ID_ERROR,
    107 INELIGIBLE_REPLICA,
    108 NEW_LEADER_ELECTED,
    109 OFFSET_MOVED_TO_TIERED_STORAGE,
    110 FENCED_MEMBER_EPOCH,
    111 UNRELEASED_INSTANCE_ID,
    112 UNSUPPORTED_ASSIGNOR,
    113 STALE_MEMBER_EPOCH,
    114 MISMATCHED_ENDPOINT_TYPE,
    115 UNSUPPORTED_ENDPOINT_TYPE,
    116 UNKNOWN_CONTROLLER_ID,
    117 UNKNOWN_SUBSCRIPTION_ID,
    118 TELEMETRY_TOO_LARGE,
    119 INVALID_REGISTRATION,
    120 TRANSACTION_ABORTABLE,
    121 INVALID_RECORD_STATE,
    122 SHARE_SESSION_NOT_FOUND,
    123 INVALID_SHARE_SESSION_EPOCH,
    124 FENCED_STATE_EPOCH,
    125 INVALID_VOTER_KEY,
    126 DUPLICATE_VOTER,
    127 VOTER_NOT_FOUND,
    128 INVALID_REGULAR_EXPRESSION,
    129 REBOOTSTRAP_REQUIRED,
    130 STREAMS_INVALID_TOPOLOGY,
    131 STREAMS_INVALID_TOPOLOGY_EPOCH,
    132 STREAMS_TOPOLOGY_FENCED,
    133 SHARE_SESSION_LIMIT_REACHED,
    134 GROUP_DELETION_FAILED,
    135 STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED,
    136 CONTROLLER_ID_NOT_REGISTERED,
}

impl ErrorCode {
    /// The number.
    pub(crate) fn value(self) -> i16 {
        self.0
    }

    /// True for [`ErrorCode::NONE`].
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

/// Why something that a client asked for was not done: a code, and a sentence where the answer has room for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { code: code_of(&error), message: error.to_string() }
    }
}

/// What a client is told. Where the disk failed the answer is one after which it asks again.
pub(crate) fn code_of(error: &Error) -> ErrorCode {
    match error {
        Error::NotFound { .. } => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Error::InvalidTopic { .. } => ErrorCode::INVALID_TOPIC_EXCEPTION,
        Error::TopicExists { .. } => ErrorCode::TOPIC_ALREADY_EXISTS,
        Error::OffsetOutOfRange { .. } | Error::Truncated { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
        Error::ProducerFenced { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
        Error::OutOfOrderSequence { .. } => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        Error::TransactionOpen { .. } => ErrorCode::INVALID_TXN_STATE,
        Error::TooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
        Error::InvalidBatch(batch) => match batch {
            BatchError::CrcMismatch { .. } | BatchError::TooShort { .. } | BatchError::BadLength { .. } => {
                ErrorCode::CORRUPT_MESSAGE
            }
            BatchError::CodecMissing { .. } => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            _ => ErrorCode::INVALID_RECORD,
        },
        Error::InvalidConfig { .. } => ErrorCode::INVALID_CONFIG,
        Error::Corrupt(_) => ErrorCode::CORRUPT_MESSAGE,
        // The log was closed to be opened anew, or the server stops: the client looks for the leader and tries again.
        Error::Closed => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        Error::Io { .. }
        | Error::Locked { .. }
        | Error::CannotLock { .. }
        | Error::StorageFull { .. }
        | Error::Poisoned { .. }
        | Error::UnsupportedVersion { .. } => ErrorCode::KAFKA_STORAGE_ERROR,
        _ => ErrorCode::UNKNOWN_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_kafkas_numbers_and_names() {
        for (code, value, name) in [
            (ErrorCode::UNKNOWN_SERVER_ERROR, -1, "UNKNOWN_SERVER_ERROR"),
            (ErrorCode::NONE, 0, "NONE"),
            (ErrorCode::INVALID_CONFIG, 40, "INVALID_CONFIG"),
            (ErrorCode::INVALID_RECORD, 87, "INVALID_RECORD"),
            (ErrorCode::UNKNOWN_TOPIC_ID, 100, "UNKNOWN_TOPIC_ID"),
        ] {
            assert_eq!((code.value(), code.name()), (value, name));
        }
        assert_eq!(format!("{:?}", ErrorCode::INVALID_REQUEST), "INVALID_REQUEST (42)");
        assert!(ErrorCode::NONE.is_none() && !ErrorCode::CORRUPT_MESSAGE.is_none());
    }

    #[test]
    fn an_error_of_the_engine_has_its_code() {
        let refusal = Refusal::from(Error::TopicExists { topic: "t".to_owned() });
        assert_eq!(refusal.code, ErrorCode::TOPIC_ALREADY_EXISTS);
        assert_eq!(refusal.to_string(), "TOPIC_ALREADY_EXISTS: topic \"t\" exists");
        let crc = Error::InvalidBatch(BatchError::CrcMismatch { stored: 1, computed: 2 });
        assert_eq!(code_of(&crc), ErrorCode::CORRUPT_MESSAGE);
        assert_eq!(code_of(&Error::InvalidBatch(BatchError::NoRecords)), ErrorCode::INVALID_RECORD);
    }
}
