//! The tables of the messages, as Apache Kafka 4.4 defines them (`*.json` of its modules).

use super::{
    schema::{
        Field,
        Kind::{
            Bytes, I8, I16, I32, I64, Many, Member, NullableBytes, NullableMany, NullablePart, NullableText,
            Part, Text, U16, Uuid,
        },
        Message,
    },
    states::{SHARE_SNAPSHOT, SHARE_UPDATE, TRANSACTION_LOG},
};

/// A type of record: its number, and the messages of its key and value.
pub(super) struct RecordType {
    pub(super) number: i16,
    pub(super) key: &'static Message,
    pub(super) value: &'static Message,
}

/// Of a message without a flexible version.
const NEVER: i16 = i16::MAX;

pub(super) const fn message(flexible_from: i16, last_version: i16, fields: &'static [Field]) -> Message {
    Message { fields, flexible_from, last_version }
}

/// `__consumer_offsets`
pub(super) const GROUP_RECORDS: &[RecordType] = &[
    RecordType { number: 0, key: &COMMIT_KEY, value: &LEGACY_OFFSET_COMMIT },
    RecordType { number: 1, key: &COMMIT_KEY, value: &OFFSET_COMMIT },
    RecordType { number: 2, key: &CLASSIC_GROUP_KEY, value: &GROUP_METADATA },
    RecordType { number: 3, key: &GROUP_KEY, value: &CONSUMER_GROUP_METADATA },
    RecordType { number: 4, key: &GROUP_KEY, value: &CONSUMER_GROUP_PARTITION_METADATA },
    RecordType { number: 5, key: &MEMBER_KEY, value: &CONSUMER_GROUP_MEMBER_METADATA },
    RecordType { number: 6, key: &GROUP_KEY, value: &CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA },
    RecordType { number: 7, key: &MEMBER_KEY, value: &CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER },
    RecordType { number: 8, key: &MEMBER_KEY, value: &CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT },
    RecordType { number: 10, key: &MEMBER_KEY, value: &SHARE_GROUP_MEMBER_METADATA },
    RecordType { number: 11, key: &GROUP_KEY, value: &SHARE_GROUP_METADATA },
    RecordType { number: 12, key: &GROUP_KEY, value: &SHARE_GROUP_TARGET_ASSIGNMENT_METADATA },
    RecordType { number: 13, key: &MEMBER_KEY, value: &SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER },
    RecordType { number: 14, key: &MEMBER_KEY, value: &SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT },
    RecordType { number: 15, key: &GROUP_KEY, value: &SHARE_GROUP_STATE_PARTITION_METADATA },
    RecordType { number: 16, key: &REGULAR_EXPRESSION_KEY, value: &CONSUMER_GROUP_REGULAR_EXPRESSION },
    RecordType { number: 17, key: &GROUP_KEY, value: &STREAMS_GROUP_METADATA },
    RecordType { number: 19, key: &MEMBER_KEY, value: &STREAMS_GROUP_MEMBER_METADATA },
    RecordType { number: 20, key: &GROUP_KEY, value: &STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA },
    RecordType { number: 21, key: &MEMBER_KEY, value: &STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER },
    RecordType { number: 22, key: &MEMBER_KEY, value: &STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT },
    RecordType { number: 23, key: &GROUP_KEY, value: &STREAMS_GROUP_TOPOLOGY },
];

/// `__transaction_state`
pub(super) const TRANSACTION_RECORDS: &[RecordType] =
    &[RecordType { number: 0, key: &TRANSACTION_KEY, value: &TRANSACTION_LOG }];

/// `__share_group_state`
pub(super) const SHARE_RECORDS: &[RecordType] = &[
    RecordType { number: 0, key: &SHARE_KEY, value: &SHARE_SNAPSHOT },
    RecordType { number: 1, key: &SHARE_KEY, value: &SHARE_UPDATE },
];

fn subscription(bytes: &[u8]) -> Option<String> {
    super::member_json(&PROTOCOL_SUBSCRIPTION, bytes)
}

fn assignment(bytes: &[u8]) -> Option<String> {
    super::member_json(&PROTOCOL_ASSIGNMENT, bytes)
}

// ---- keys

const COMMIT_KEY: Message =
    message(NEVER, 0, &[Field::new("group", Text), Field::new("topic", Text), Field::new("partition", I32)]);
const SHARE_KEY: Message = message(
    NEVER,
    0,
    &[Field::new("groupId", Text), Field::new("topicId", Uuid), Field::new("partition", I32)],
);
const TRANSACTION_KEY: Message = message(NEVER, 0, &[Field::new("transactionalId", Text)]);
const CLASSIC_GROUP_KEY: Message = message(NEVER, 0, &[Field::new("group", Text)]);
const GROUP_KEY: Message = message(NEVER, 0, &[Field::new("groupId", Text)]);
const MEMBER_KEY: Message = message(NEVER, 0, &[Field::new("groupId", Text), Field::new("memberId", Text)]);
const REGULAR_EXPRESSION_KEY: Message =
    message(NEVER, 0, &[Field::new("groupId", Text), Field::new("regularExpression", Text)]);

// ---- values

const LEGACY_OFFSET_COMMIT: Message = message(
    NEVER,
    0,
    &[Field::new("offset", I64), Field::new("metadata", Text), Field::new("commitTimestamp", I64)],
);
const OFFSET_COMMIT: Message = message(
    4,
    4,
    &[
        Field::new("offset", I64),
        Field::new("leaderEpoch", I32).since(3),
        Field::new("metadata", Text),
        Field::new("commitTimestamp", I64),
        Field::new("expireTimestamp", I64).since(1).until(1),
        Field::new("topicId", Uuid).since(4).tag(0),
    ],
);
const GROUP_METADATA_MEMBER_METADATA: Message = message(
    4,
    4,
    &[
        Field::new("memberId", Text),
        Field::new("groupInstanceId", NullableText).since(3),
        Field::new("clientId", Text),
        Field::new("clientHost", Text),
        Field::new("rebalanceTimeout", I32).since(1),
        Field::new("sessionTimeout", I32),
        Field::new("subscription", Member(subscription)),
        Field::new("assignment", Member(assignment)),
    ],
);
const GROUP_METADATA: Message = message(
    4,
    4,
    &[
        Field::new("protocolType", Text),
        Field::new("generation", I32),
        Field::new("protocol", NullableText),
        Field::new("leader", NullableText),
        Field::new("currentStateTimestamp", I64).since(2),
        Field::new("members", Many(&Part(&GROUP_METADATA_MEMBER_METADATA))),
    ],
);
const CONSUMER_GROUP_METADATA: Message =
    message(0, 0, &[Field::new("epoch", I32), Field::new("metadataHash", I64).tag(0)]);
const CONSUMER_GROUP_PARTITION_METADATA_TOPIC_METADATA: Message = message(
    0,
    0,
    &[
        Field::new("topicId", Uuid),
        Field::new("topicName", Text),
        Field::new("numPartitions", I32),
        Field::new("partitionMetadata", Many(&Part(&CONSUMER_GROUP_PARTITION_METADATA_PARTITION_METADATA))),
    ],
);
const CONSUMER_GROUP_PARTITION_METADATA_PARTITION_METADATA: Message =
    message(0, 0, &[Field::new("partition", I32), Field::new("racks", Many(&Text))]);
const CONSUMER_GROUP_PARTITION_METADATA: Message =
    message(0, 0, &[Field::new("topics", Many(&Part(&CONSUMER_GROUP_PARTITION_METADATA_TOPIC_METADATA)))]);
const CONSUMER_GROUP_MEMBER_METADATA_CLASSIC_MEMBER_METADATA: Message = message(
    0,
    0,
    &[
        Field::new("sessionTimeoutMs", I32),
        Field::new("supportedProtocols", Many(&Part(&CONSUMER_GROUP_MEMBER_METADATA_CLASSIC_PROTOCOL))),
    ],
);
const CONSUMER_GROUP_MEMBER_METADATA_CLASSIC_PROTOCOL: Message =
    message(0, 0, &[Field::new("name", Text), Field::new("metadata", Bytes)]);
const CONSUMER_GROUP_MEMBER_METADATA: Message = message(
    0,
    0,
    &[
        Field::new("instanceId", NullableText),
        Field::new("rackId", NullableText),
        Field::new("clientId", Text),
        Field::new("clientHost", Text),
        Field::new("subscribedTopicNames", Many(&Text)),
        Field::new("subscribedTopicRegex", NullableText),
        Field::new("rebalanceTimeoutMs", I32),
        Field::new("serverAssignor", NullableText),
        Field::new(
            "classicMemberMetadata",
            NullablePart(&CONSUMER_GROUP_MEMBER_METADATA_CLASSIC_MEMBER_METADATA),
        )
        .tag(0),
    ],
);
const CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: Message =
    message(0, 0, &[Field::new("assignmentEpoch", I32), Field::new("assignmentTimestamp", I64).tag(0)]);
const CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_TOPIC_PARTITION: Message =
    message(0, 0, &[Field::new("topicId", Uuid), Field::new("partitions", Many(&I32))]);
const CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: Message = message(
    0,
    0,
    &[Field::new("topicPartitions", Many(&Part(&CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_TOPIC_PARTITION)))],
);
const CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_TOPIC_PARTITIONS: Message = message(
    0,
    0,
    &[
        Field::new("topicId", Uuid),
        Field::new("partitions", Many(&I32)),
        Field::new("assignmentEpochs", NullableMany(&I32)).tag(0),
    ],
);
const CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: Message = message(
    0,
    0,
    &[
        Field::new("memberEpoch", I32),
        Field::new("previousMemberEpoch", I32),
        Field::new("state", I8),
        Field::new(
            "assignedPartitions",
            Many(&Part(&CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_TOPIC_PARTITIONS)),
        ),
        Field::new(
            "partitionsPendingRevocation",
            Many(&Part(&CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_TOPIC_PARTITIONS)),
        ),
    ],
);
const SHARE_GROUP_MEMBER_METADATA: Message = message(
    0,
    0,
    &[
        Field::new("rackId", NullableText),
        Field::new("clientId", Text),
        Field::new("clientHost", Text),
        Field::new("subscribedTopicNames", Many(&Text)),
    ],
);
const SHARE_GROUP_METADATA: Message =
    message(0, 0, &[Field::new("epoch", I32), Field::new("metadataHash", I64)]);
const SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: Message =
    message(0, 0, &[Field::new("assignmentEpoch", I32), Field::new("assignmentTimestamp", I64).tag(0)]);
const SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_TOPIC_PARTITION: Message =
    message(0, 0, &[Field::new("topicId", Uuid), Field::new("partitions", Many(&I32))]);
const SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: Message = message(
    0,
    0,
    &[Field::new("topicPartitions", Many(&Part(&SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_TOPIC_PARTITION)))],
);
const SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_TOPIC_PARTITIONS: Message =
    message(0, 0, &[Field::new("topicId", Uuid), Field::new("partitions", Many(&I32))]);
const SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: Message = message(
    0,
    0,
    &[
        Field::new("memberEpoch", I32),
        Field::new("previousMemberEpoch", I32),
        Field::new("state", I8),
        Field::new(
            "assignedPartitions",
            Many(&Part(&SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_TOPIC_PARTITIONS)),
        ),
    ],
);
const SHARE_GROUP_STATE_PARTITION_METADATA_TOPIC_PARTITIONS_INFO: Message = message(
    0,
    0,
    &[Field::new("topicId", Uuid), Field::new("topicName", Text), Field::new("partitions", Many(&I32))],
);
const SHARE_GROUP_STATE_PARTITION_METADATA_TOPIC_INFO: Message =
    message(0, 0, &[Field::new("topicId", Uuid), Field::new("topicName", Text)]);
const SHARE_GROUP_STATE_PARTITION_METADATA: Message = message(
    0,
    0,
    &[
        Field::new(
            "initializingTopics",
            Many(&Part(&SHARE_GROUP_STATE_PARTITION_METADATA_TOPIC_PARTITIONS_INFO)),
        ),
        Field::new(
            "initializedTopics",
            Many(&Part(&SHARE_GROUP_STATE_PARTITION_METADATA_TOPIC_PARTITIONS_INFO)),
        ),
        Field::new("deletingTopics", Many(&Part(&SHARE_GROUP_STATE_PARTITION_METADATA_TOPIC_INFO))),
    ],
);
const CONSUMER_GROUP_REGULAR_EXPRESSION: Message = message(
    0,
    0,
    &[Field::new("topics", Many(&Text)), Field::new("version", I64), Field::new("timestamp", I64)],
);
const STREAMS_GROUP_METADATA_LAST_ASSIGNMENT_CONFIG: Message =
    message(0, 0, &[Field::new("key", Text), Field::new("value", Text)]);
const STREAMS_GROUP_METADATA: Message = message(
    0,
    0,
    &[
        Field::new("epoch", I32),
        Field::new("metadataHash", I64),
        Field::new("validatedTopologyEpoch", I32).tag(0).default(-1),
        Field::new(
            "lastAssignmentConfigs",
            NullableMany(&Part(&STREAMS_GROUP_METADATA_LAST_ASSIGNMENT_CONFIG)),
        )
        .tag(1),
        Field::new("storedDescriptionTopologyEpoch", I32).tag(2).default(-1),
        Field::new("failedDescriptionTopologyEpoch", I32).tag(3).default(-1),
    ],
);
const STREAMS_GROUP_MEMBER_METADATA_ENDPOINT: Message =
    message(0, 0, &[Field::new("host", Text), Field::new("port", U16)]);
const STREAMS_GROUP_MEMBER_METADATA_KEY_VALUE: Message =
    message(0, 0, &[Field::new("key", Text), Field::new("value", Text)]);
const STREAMS_GROUP_MEMBER_METADATA: Message = message(
    0,
    0,
    &[
        Field::new("instanceId", NullableText),
        Field::new("rackId", NullableText),
        Field::new("clientId", Text),
        Field::new("clientHost", Text),
        Field::new("rebalanceTimeoutMs", I32),
        Field::new("topologyEpoch", I32),
        Field::new("processId", Text),
        Field::new("userEndpoint", NullablePart(&STREAMS_GROUP_MEMBER_METADATA_ENDPOINT)),
        Field::new("clientTags", Many(&Part(&STREAMS_GROUP_MEMBER_METADATA_KEY_VALUE))),
    ],
);
const STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: Message =
    message(0, 0, &[Field::new("assignmentEpoch", I32), Field::new("assignmentTimestamp", I64).tag(0)]);
const STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_TASK_IDS: Message =
    message(0, 0, &[Field::new("subtopologyId", Text), Field::new("partitions", Many(&I32))]);
const STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: Message = message(
    0,
    0,
    &[
        Field::new("activeTasks", Many(&Part(&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_TASK_IDS))),
        Field::new("standbyTasks", Many(&Part(&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_TASK_IDS))),
        Field::new("warmupTasks", Many(&Part(&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_TASK_IDS))),
    ],
);
const STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_TASK_IDS: Message = message(
    0,
    0,
    &[
        Field::new("subtopologyId", Text),
        Field::new("partitions", Many(&I32)),
        Field::new("assignmentEpochs", NullableMany(&I32)).tag(0),
    ],
);
const STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: Message = message(
    0,
    0,
    &[
        Field::new("memberEpoch", I32),
        Field::new("previousMemberEpoch", I32),
        Field::new("state", I8),
        Field::new("activeTasks", Many(&Part(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_TASK_IDS))),
        Field::new("standbyTasks", Many(&Part(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_TASK_IDS))),
        Field::new("warmupTasks", Many(&Part(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_TASK_IDS))),
        Field::new(
            "activeTasksPendingRevocation",
            Many(&Part(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_TASK_IDS)),
        ),
        Field::new(
            "standbyTasksPendingRevocation",
            Many(&Part(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_TASK_IDS)),
        ),
        Field::new(
            "warmupTasksPendingRevocation",
            Many(&Part(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_TASK_IDS)),
        ),
    ],
);
const STREAMS_GROUP_TOPOLOGY_SUBTOPOLOGY: Message = message(
    0,
    0,
    &[
        Field::new("subtopologyId", Text),
        Field::new("sourceTopics", Many(&Text)),
        Field::new("sourceTopicRegex", Many(&Text)),
        Field::new("stateChangelogTopics", Many(&Part(&STREAMS_GROUP_TOPOLOGY_TOPIC_INFO))),
        Field::new("repartitionSinkTopics", Many(&Text)),
        Field::new("repartitionSourceTopics", Many(&Part(&STREAMS_GROUP_TOPOLOGY_TOPIC_INFO))),
        Field::new("copartitionGroups", Many(&Part(&STREAMS_GROUP_TOPOLOGY_COPARTITION_GROUP))),
    ],
);
const STREAMS_GROUP_TOPOLOGY_TOPIC_INFO: Message = message(
    0,
    0,
    &[
        Field::new("name", Text),
        Field::new("partitions", I32),
        Field::new("replicationFactor", I16),
        Field::new("topicConfigs", Many(&Part(&STREAMS_GROUP_TOPOLOGY_TOPIC_CONFIG))),
    ],
);
const STREAMS_GROUP_TOPOLOGY_TOPIC_CONFIG: Message =
    message(0, 0, &[Field::new("key", Text), Field::new("value", Text)]);
const STREAMS_GROUP_TOPOLOGY_COPARTITION_GROUP: Message = message(
    0,
    0,
    &[
        Field::new("sourceTopics", Many(&I16)),
        Field::new("sourceTopicRegex", Many(&I16)),
        Field::new("repartitionSourceTopics", Many(&I16)),
    ],
);
const STREAMS_GROUP_TOPOLOGY: Message = message(
    0,
    0,
    &[
        Field::new("epoch", I32),
        Field::new("subtopologies", Many(&Part(&STREAMS_GROUP_TOPOLOGY_SUBTOPOLOGY))),
    ],
);

// ---- what consumers write into a classic group

const CONSUMER_PROTOCOL_SUBSCRIPTION_TOPIC_PARTITION: Message =
    message(NEVER, 3, &[Field::new("topic", Text), Field::new("partitions", Many(&I32))]);
const PROTOCOL_SUBSCRIPTION: Message = message(
    NEVER,
    3,
    &[
        Field::new("topics", Many(&Text)),
        Field::new("userData", NullableBytes),
        Field::new("ownedPartitions", Many(&Part(&CONSUMER_PROTOCOL_SUBSCRIPTION_TOPIC_PARTITION))).since(1),
        Field::new("generationId", I32).since(2),
        Field::new("rackId", NullableText).since(3),
    ],
);
const CONSUMER_PROTOCOL_ASSIGNMENT_TOPIC_PARTITION: Message =
    message(NEVER, 3, &[Field::new("topic", Text), Field::new("partitions", Many(&I32))]);
const PROTOCOL_ASSIGNMENT: Message = message(
    NEVER,
    3,
    &[
        Field::new("assignedPartitions", Many(&Part(&CONSUMER_PROTOCOL_ASSIGNMENT_TOPIC_PARTITION))),
        Field::new("userData", NullableBytes),
    ],
);
