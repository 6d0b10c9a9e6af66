//! Kafka's error codes, as far as a user or a client does something about them.

use crate::failure::{Code, Failure};

pub(super) const OFFSET_OUT_OF_RANGE: i16 = 1;
pub(super) const UNKNOWN_TOPIC: i16 = 3;
pub(super) const NOT_LEADER: i16 = 6;
pub(super) const MESSAGE_TOO_LARGE: i16 = 10;
pub(super) const DUPLICATE_SEQUENCE: i16 = 46;
pub(super) const UNKNOWN_TOPIC_ID: i16 = 100;

/// What passes when the cluster has settled: leaders move, brokers start, topics become known.
pub(super) fn may_pass(code: i16) -> bool {
    matches!(
        code,
        UNKNOWN_TOPIC
            | 5 // LEADER_NOT_AVAILABLE
            | NOT_LEADER
            | 7 // REQUEST_TIMED_OUT
            | 8 // BROKER_NOT_AVAILABLE
            | 9 // REPLICA_NOT_AVAILABLE
            | 13 // NETWORK_EXCEPTION
            | 14 // COORDINATOR_LOAD_IN_PROGRESS
            | 15 // COORDINATOR_NOT_AVAILABLE
            | 16 // NOT_COORDINATOR
            | 19 // NOT_ENOUGH_REPLICAS
            | 20 // NOT_ENOUGH_REPLICAS_AFTER_APPEND
            | 41 // NOT_CONTROLLER
            | 56 // KAFKA_STORAGE_ERROR
            | 72 // LISTENER_NOT_FOUND
            | 74 // FENCED_LEADER_EPOCH
            | 75 // UNKNOWN_LEADER_EPOCH
            | 78 // OFFSET_NOT_AVAILABLE
            | 89 // THROTTLING_QUOTA_EXCEEDED
            | UNKNOWN_TOPIC_ID
            | 103 // INCONSISTENT_TOPIC_ID
    )
}

/// True where it says that there is no such topic.
pub(super) fn is_absent(code: i16) -> bool {
    matches!(code, UNKNOWN_TOPIC | UNKNOWN_TOPIC_ID)
}

/// The failure of something that was refused with this code: exit code and what to do follow from it. `said`: the
/// broker's own words.
pub(super) fn failure(code: i16, what: impl std::fmt::Display, said: Option<&str>) -> Failure {
    let name = stratalog::server::error_name(code);
    let said = said.filter(|said| !said.is_empty()).map(|said| format!(": {said}")).unwrap_or_default();
    let (exit, hint) = match code {
        OFFSET_OUT_OF_RANGE => (Code::NotFound, "`logctl offsets -b` shows where it begins and ends"),
        UNKNOWN_TOPIC | UNKNOWN_TOPIC_ID => (Code::NotFound, "`logctl topic ls -b` lists what there is"),
        5..=9 | 13..=16 | 19 | 20 | 72 | 78 => (Code::Unreachable, "try again once the cluster has settled"),
        MESSAGE_TOO_LARGE => (
            Code::Other,
            "lower --batch-size, or raise max.message.bytes of the topic (`logctl topic alter`)",
        ),
        17 => (Code::Usage, "up to 249 letters, digits, `.`, `_` and `-`, and neither `.` nor `..`"),
        29..=31 | 53 | 65 => (Code::Refused, "this listener's user has no right to it"),
        33 | 34 | 58 => (Code::Refused, "this version of logctl has no SASL: name a listener without it"),
        36 => (Code::Other, "--if-not-exists leaves one that is there as it is"),
        45 | 47 | 59 | 90 => {
            (Code::Other, "the broker no longer knows this producer: look with `logctl tail` at what arrived")
        }
        76 => (Code::Other, "choose another codec with -z"),
        87 => (Code::Other, "a compacted topic wants a key in every record"),
        _ => (Code::Other, ""),
    };
    let failure = Failure::new(exit, format!("{what}: {name} (error {code}){said}"));
    if hint.is_empty() { failure } else { failure.hint(hint) }
}
