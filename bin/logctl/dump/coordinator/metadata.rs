//! The records of a cluster's metadata, in the text of Kafka's dump tool: what `--cluster-metadata-decoder` prints of
//! `__cluster_metadata`.
//!
//! They have no key; a value begins with three numbers: of the frame, of the type and of its version (Kafka:
//! `AbstractApiMessageSerde`). The tables are those of Apache Kafka 4.4 (`common/metadata/*.json`).

use super::{
    Decoded,
    messages::message,
    schema::{
        Field,
        Kind::{
            Bytes, F64, Flag, I8, I16, I32, I64, Many, NullableMany, NullableText, Part, Text, U16, Uuid,
        },
        Message, Reader,
    },
};

/// A type of record.
struct MetadataType {
    number: i16,
    name: &'static str,
    value: &'static Message,
}

/// Kafka's text for a record, that for what cannot be read included.
pub(super) fn decode(offset: i64, value: Option<&[u8]>) -> Decoded {
    let (value, is_json) = match record_json(value.unwrap_or_default()) {
        Ok(json) => (json, true),
        Err(reason) => (format!("Error at {offset}, skipping. {reason}"), false),
    };
    Decoded { key: None, value: Some(value), is_json }
}

fn record_json(value: &[u8]) -> Result<String, String> {
    let mut reader = Reader::new(value);
    let mut number = |what: &str| {
        let number = reader.varint().map_err(|_| format!("Error while reading {what}"))?;
        // More than 31 bits are a negative number there, which is not too large.
        let number = number.cast_signed();
        let too_large = || format!("Value for {what} was too large.");
        if number > i32::from(i16::MAX) { Err(too_large()) } else { Ok(truncated(number)) }
    };
    match number("frame version")? {
        0 => {
            return Err(
                "Could not deserialize metadata record with frame version 0. Note that upgrades from the \
                        preview release of KRaft in 2.8 to newer versions are not supported."
                    .to_owned(),
            );
        }
        1 => {}
        other => {
            return Err(format!(
                "Could not deserialize metadata record due to unknown frame version {other}(only frame version 1 is \
                 supported)"
            ));
        }
    }
    let (kind, version) = (number("type")?, number("version")?);
    let Some(found) = METADATA_RECORDS.iter().find(|found| found.number == kind) else {
        return Err(format!(
            "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {kind}"
        ));
    };
    let json = found.value.to_json(&mut reader, version);
    let json = json.map_err(|_| format!("Failed to deserialize record with type {kind}"))?;
    match reader.left_bytes() {
        0 => Ok(format!("{{\"type\":\"{}\",\"version\":{version},\"data\":{json}}}", found.name)),
        left => Err(format!("Found {left} byte(s) of garbage after {kind}")),
    }
}

/// The lower 16 bits, as Java casts.
fn truncated(number: i32) -> i16 {
    let [.., high, low] = number.to_be_bytes();
    i16::from_be_bytes([high, low])
}

const METADATA_RECORDS: &[MetadataType] = &[
    MetadataType { number: 0, name: "REGISTER_BROKER_RECORD", value: &REGISTER_BROKER },
    MetadataType { number: 1, name: "UNREGISTER_BROKER_RECORD", value: &UNREGISTER_BROKER },
    MetadataType { number: 2, name: "TOPIC_RECORD", value: &TOPIC },
    MetadataType { number: 3, name: "PARTITION_RECORD", value: &PARTITION },
    MetadataType { number: 4, name: "CONFIG_RECORD", value: &CONFIG },
    MetadataType { number: 5, name: "PARTITION_CHANGE_RECORD", value: &PARTITION_CHANGE },
    MetadataType { number: 7, name: "FENCE_BROKER_RECORD", value: &FENCE_BROKER },
    MetadataType { number: 8, name: "UNFENCE_BROKER_RECORD", value: &UNFENCE_BROKER },
    MetadataType { number: 9, name: "REMOVE_TOPIC_RECORD", value: &REMOVE_TOPIC },
    MetadataType { number: 10, name: "DELEGATION_TOKEN_RECORD", value: &DELEGATION_TOKEN },
    MetadataType { number: 11, name: "USER_SCRAM_CREDENTIAL_RECORD", value: &USER_SCRAM_CREDENTIAL },
    MetadataType { number: 12, name: "FEATURE_LEVEL_RECORD", value: &FEATURE_LEVEL },
    MetadataType { number: 14, name: "CLIENT_QUOTA_RECORD", value: &CLIENT_QUOTA },
    MetadataType { number: 15, name: "PRODUCER_IDS_RECORD", value: &PRODUCER_IDS },
    MetadataType {
        number: 17,
        name: "BROKER_REGISTRATION_CHANGE_RECORD",
        value: &BROKER_REGISTRATION_CHANGE,
    },
    MetadataType { number: 18, name: "ACCESS_CONTROL_ENTRY_RECORD", value: &ACCESS_CONTROL_ENTRY },
    MetadataType {
        number: 19,
        name: "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
        value: &REMOVE_ACCESS_CONTROL_ENTRY,
    },
    MetadataType { number: 20, name: "NO_OP_RECORD", value: &NO_OP },
    MetadataType { number: 21, name: "ZK_MIGRATION_STATE_RECORD", value: &ZK_MIGRATION_STATE },
    MetadataType {
        number: 22,
        name: "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
        value: &REMOVE_USER_SCRAM_CREDENTIAL,
    },
    MetadataType { number: 23, name: "BEGIN_TRANSACTION_RECORD", value: &BEGIN_TRANSACTION },
    MetadataType { number: 24, name: "END_TRANSACTION_RECORD", value: &END_TRANSACTION },
    MetadataType { number: 25, name: "ABORT_TRANSACTION_RECORD", value: &ABORT_TRANSACTION },
    MetadataType { number: 26, name: "REMOVE_DELEGATION_TOKEN_RECORD", value: &REMOVE_DELEGATION_TOKEN },
    MetadataType { number: 27, name: "REGISTER_CONTROLLER_RECORD", value: &REGISTER_CONTROLLER },
    MetadataType { number: 28, name: "CLEAR_ELR_RECORD", value: &CLEAR_ELR },
    MetadataType { number: 29, name: "UNREGISTER_CONTROLLER_RECORD", value: &UNREGISTER_CONTROLLER },
];

const REGISTER_BROKER_BROKER_ENDPOINT: Message = message(
    0,
    4,
    &[
        Field::new("name", Text),
        Field::new("host", Text),
        Field::new("port", U16),
        Field::new("securityProtocol", I16),
    ],
);
const REGISTER_BROKER_BROKER_FEATURE: Message = message(
    0,
    4,
    &[
        Field::new("name", Text),
        Field::new("minSupportedVersion", I16),
        Field::new("maxSupportedVersion", I16),
    ],
);
const REGISTER_BROKER: Message = message(
    0,
    4,
    &[
        Field::new("brokerId", I32),
        Field::new("isMigratingZkBroker", Flag).since(2),
        Field::new("incarnationId", Uuid),
        Field::new("brokerEpoch", I64),
        Field::new("endPoints", Many(&Part(&REGISTER_BROKER_BROKER_ENDPOINT))),
        Field::new("features", Many(&Part(&REGISTER_BROKER_BROKER_FEATURE))),
        Field::new("rack", NullableText),
        Field::new("fenced", Flag),
        Field::new("inControlledShutdown", Flag).since(1),
        Field::new("logDirs", Many(&Uuid)).since(3).tag(0),
        Field::new("cordonedLogDirs", NullableMany(&Uuid)).since(4).tag(1).null_by_default(),
    ],
);
const UNREGISTER_BROKER: Message =
    message(0, 0, &[Field::new("brokerId", I32), Field::new("brokerEpoch", I64)]);
const TOPIC: Message = message(0, 0, &[Field::new("name", Text), Field::new("topicId", Uuid)]);
const PARTITION: Message = message(
    0,
    2,
    &[
        Field::new("partitionId", I32),
        Field::new("topicId", Uuid),
        Field::new("replicas", Many(&I32)),
        Field::new("isr", Many(&I32)),
        Field::new("removingReplicas", Many(&I32)),
        Field::new("addingReplicas", Many(&I32)),
        Field::new("leader", I32),
        Field::new("leaderRecoveryState", I8).tag(0),
        Field::new("leaderEpoch", I32),
        Field::new("partitionEpoch", I32),
        Field::new("directories", Many(&Uuid)).since(1),
        Field::new("eligibleLeaderReplicas", NullableMany(&I32)).since(2).tag(1).null_by_default(),
        Field::new("lastKnownElr", NullableMany(&I32)).since(2).tag(2).null_by_default(),
    ],
);
const CONFIG: Message = message(
    0,
    0,
    &[
        Field::new("resourceType", I8),
        Field::new("resourceName", Text),
        Field::new("name", Text),
        Field::new("value", NullableText),
    ],
);
const PARTITION_CHANGE: Message = message(
    0,
    2,
    &[
        Field::new("partitionId", I32),
        Field::new("topicId", Uuid),
        Field::new("isr", NullableMany(&I32)).tag(0).null_by_default(),
        Field::new("leader", I32).tag(1).default(-2),
        Field::new("replicas", NullableMany(&I32)).tag(2).null_by_default(),
        Field::new("removingReplicas", NullableMany(&I32)).tag(3).null_by_default(),
        Field::new("addingReplicas", NullableMany(&I32)).tag(4).null_by_default(),
        Field::new("leaderRecoveryState", I8).tag(5).default(-1),
        Field::new("directories", NullableMany(&Uuid)).since(1).tag(8).null_by_default(),
        Field::new("eligibleLeaderReplicas", NullableMany(&I32)).since(2).tag(6).null_by_default(),
        Field::new("lastKnownElr", NullableMany(&I32)).since(2).tag(7).null_by_default(),
    ],
);
const FENCE_BROKER: Message = message(0, 0, &[Field::new("id", I32), Field::new("epoch", I64)]);
const UNFENCE_BROKER: Message = message(0, 0, &[Field::new("id", I32), Field::new("epoch", I64)]);
const REMOVE_TOPIC: Message = message(0, 0, &[Field::new("topicId", Uuid)]);
const DELEGATION_TOKEN: Message = message(
    0,
    0,
    &[
        Field::new("owner", Text),
        Field::new("requester", Text),
        Field::new("renewers", Many(&Text)),
        Field::new("issueTimestamp", I64),
        Field::new("maxTimestamp", I64),
        Field::new("expirationTimestamp", I64),
        Field::new("tokenId", Text),
    ],
);
const USER_SCRAM_CREDENTIAL: Message = message(
    0,
    0,
    &[
        Field::new("name", Text),
        Field::new("mechanism", I8),
        Field::new("salt", Bytes),
        Field::new("storedKey", Bytes),
        Field::new("serverKey", Bytes),
        Field::new("iterations", I32),
    ],
);
const FEATURE_LEVEL: Message = message(0, 0, &[Field::new("name", Text), Field::new("featureLevel", I16)]);
const CLIENT_QUOTA_ENTITY_DATA: Message =
    message(0, 0, &[Field::new("entityType", Text), Field::new("entityName", NullableText)]);
const CLIENT_QUOTA: Message = message(
    0,
    0,
    &[
        Field::new("entity", Many(&Part(&CLIENT_QUOTA_ENTITY_DATA))),
        Field::new("key", Text),
        Field::new("value", F64),
        Field::new("remove", Flag),
    ],
);
const PRODUCER_IDS: Message = message(
    0,
    0,
    &[Field::new("brokerId", I32), Field::new("brokerEpoch", I64), Field::new("nextProducerId", I64)],
);
const BROKER_REGISTRATION_CHANGE: Message = message(
    0,
    3,
    &[
        Field::new("brokerId", I32),
        Field::new("brokerEpoch", I64),
        Field::new("fenced", I8).tag(0),
        Field::new("inControlledShutdown", I8).since(1).tag(1),
        Field::new("logDirs", Many(&Uuid)).since(2).tag(2),
        Field::new("cordonedLogDirs", NullableMany(&Uuid)).since(3).tag(3).null_by_default(),
    ],
);
const ACCESS_CONTROL_ENTRY: Message = message(
    0,
    0,
    &[
        Field::new("id", Uuid),
        Field::new("resourceType", I8),
        Field::new("resourceName", Text),
        Field::new("patternType", I8),
        Field::new("principal", Text),
        Field::new("host", Text),
        Field::new("operation", I8),
        Field::new("permissionType", I8),
    ],
);
const REMOVE_ACCESS_CONTROL_ENTRY: Message = message(0, 0, &[Field::new("id", Uuid)]);
const NO_OP: Message = message(0, 0, &[]);
const ZK_MIGRATION_STATE: Message = message(0, 0, &[Field::new("zkMigrationState", I8)]);
const REMOVE_USER_SCRAM_CREDENTIAL: Message =
    message(0, 0, &[Field::new("name", Text), Field::new("mechanism", I8)]);
const BEGIN_TRANSACTION: Message =
    message(0, 0, &[Field::new("name", NullableText).tag(0).null_by_default()]);
const END_TRANSACTION: Message = message(0, 0, &[]);
const ABORT_TRANSACTION: Message =
    message(0, 0, &[Field::new("reason", NullableText).tag(0).null_by_default()]);
const REMOVE_DELEGATION_TOKEN: Message = message(0, 0, &[Field::new("tokenId", Text)]);
const REGISTER_CONTROLLER_CONTROLLER_ENDPOINT: Message = message(
    0,
    0,
    &[
        Field::new("name", Text),
        Field::new("host", Text),
        Field::new("port", U16),
        Field::new("securityProtocol", I16),
    ],
);
const REGISTER_CONTROLLER_CONTROLLER_FEATURE: Message = message(
    0,
    0,
    &[
        Field::new("name", Text),
        Field::new("minSupportedVersion", I16),
        Field::new("maxSupportedVersion", I16),
    ],
);
const REGISTER_CONTROLLER: Message = message(
    0,
    0,
    &[
        Field::new("controllerId", I32),
        Field::new("incarnationId", Uuid),
        Field::new("zkMigrationReady", Flag),
        Field::new("endPoints", Many(&Part(&REGISTER_CONTROLLER_CONTROLLER_ENDPOINT))),
        Field::new("features", Many(&Part(&REGISTER_CONTROLLER_CONTROLLER_FEATURE))),
    ],
);
const CLEAR_ELR: Message = message(0, 0, &[Field::new("topicName", Text)]);
const UNREGISTER_CONTROLLER: Message = message(0, 0, &[Field::new("controllerId", I32)]);
