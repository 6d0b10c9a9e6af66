//! The values of `__transaction_state` and `__share_group_state`, as Apache Kafka 4.4 defines them.

use super::{
    messages::message,
    schema::{
        Field,
        Kind::{I8, I16, I32, I64, Many, Named, NullableMany, Part, Text},
        Message,
    },
};

const TRANSACTION_STATES: &[&str] = &[
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
];

const SHARE_SNAPSHOT_STATE_BATCH: Message = message(
    0,
    0,
    &[
        Field::new("firstOffset", I64),
        Field::new("lastOffset", I64),
        Field::new("deliveryState", I8),
        Field::new("deliveryCount", I16),
    ],
);
pub(super) const SHARE_SNAPSHOT: Message = message(
    0,
    0,
    &[
        Field::new("snapshotEpoch", I32),
        Field::new("stateEpoch", I32),
        Field::new("leaderEpoch", I32),
        Field::new("startOffset", I64),
        Field::new("deliveryCompleteCount", I32).tag(0).default(-1),
        Field::new("createTimestamp", I64),
        Field::new("writeTimestamp", I64),
        Field::new("stateBatches", Many(&Part(&SHARE_SNAPSHOT_STATE_BATCH))),
    ],
);
const TRANSACTION_LOG_PARTITIONS_SCHEMA: Message =
    message(1, 1, &[Field::new("topic", Text), Field::new("partitionIds", Many(&I32))]);
pub(super) const TRANSACTION_LOG: Message = message(
    1,
    1,
    &[
        Field::new("producerId", I64),
        Field::new("previousProducerId", I64).since(1).tag(0).default(-1),
        Field::new("nextProducerId", I64).since(1).tag(1).default(-1),
        Field::new("producerEpoch", I16),
        Field::new("nextProducerEpoch", I16).since(1).tag(3).default(-1),
        Field::new("transactionTimeoutMs", I32),
        Field::new("transactionStatus", Named(TRANSACTION_STATES)),
        Field::new("transactionPartitions", NullableMany(&Part(&TRANSACTION_LOG_PARTITIONS_SCHEMA))),
        Field::new("transactionLastUpdateTimestampMs", I64),
        Field::new("transactionStartTimestampMs", I64),
        Field::new("clientTransactionVersion", I16).since(1).tag(2),
    ],
);
const SHARE_UPDATE_STATE_BATCH: Message = message(
    0,
    0,
    &[
        Field::new("firstOffset", I64),
        Field::new("lastOffset", I64),
        Field::new("deliveryState", I8),
        Field::new("deliveryCount", I16),
    ],
);
pub(super) const SHARE_UPDATE: Message = message(
    0,
    0,
    &[
        Field::new("snapshotEpoch", I32),
        Field::new("leaderEpoch", I32),
        Field::new("startOffset", I64),
        Field::new("deliveryCompleteCount", I32).tag(0).default(-1),
        Field::new("stateBatches", Many(&Part(&SHARE_UPDATE_STATE_BATCH))),
    ],
);
