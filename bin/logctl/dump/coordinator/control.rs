//! The control records of a cluster's metadata, as Apache Kafka 4.4 defines them (`*.json` of its clients).

use super::{
    messages::message,
    schema::{
        Field,
        Kind::{I16, I32, I64, Many, Part, Text, U16, Uuid},
        Message,
    },
};

const LEADER_CHANGE_MESSAGE_VOTER: Message =
    message(0, 1, &[Field::new("voterId", I32), Field::new("voterDirectoryId", Uuid).since(1)]);
pub(in crate::dump) const LEADER_CHANGE: Message = message(
    0,
    1,
    &[
        Field::new("version", I16),
        Field::new("leaderId", I32),
        Field::new("voters", Many(&Part(&LEADER_CHANGE_MESSAGE_VOTER))),
        Field::new("grantingVoters", Many(&Part(&LEADER_CHANGE_MESSAGE_VOTER))),
    ],
);
pub(in crate::dump) const SNAPSHOT_HEADER: Message =
    message(0, 0, &[Field::new("version", I16), Field::new("lastContainedLogTimestamp", I64)]);
pub(in crate::dump) const SNAPSHOT_FOOTER: Message = message(0, 0, &[Field::new("version", I16)]);
pub(in crate::dump) const KRAFT_VERSION: Message =
    message(0, 0, &[Field::new("version", I16), Field::new("kRaftVersion", I16)]);
const VOTERS_RECORD_VOTER: Message = message(
    0,
    0,
    &[
        Field::new("voterId", I32),
        Field::new("voterDirectoryId", Uuid),
        Field::new("endpoints", Many(&Part(&VOTERS_RECORD_ENDPOINT))),
        Field::new("kRaftVersionFeature", Part(&VOTERS_RECORD_KRAFT_VERSION_FEATURE)),
    ],
);
const VOTERS_RECORD_KRAFT_VERSION_FEATURE: Message =
    message(0, 0, &[Field::new("minSupportedVersion", I16), Field::new("maxSupportedVersion", I16)]);
const VOTERS_RECORD_ENDPOINT: Message =
    message(0, 0, &[Field::new("name", Text), Field::new("host", Text), Field::new("port", U16)]);
pub(in crate::dump) const KRAFT_VOTERS: Message =
    message(0, 0, &[Field::new("version", I16), Field::new("voters", Many(&Part(&VOTERS_RECORD_VOTER)))]);
