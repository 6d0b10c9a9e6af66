//! `Metadata`: the broker and the topics.

use super::{Call, Fault, Outcome, read};
use crate::{
    Uuid,
    protocol::{
        messages::metadata::{
            MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker,
            MetadataResponsePartition, MetadataResponseTopic,
        },
        wire::{self, Reader},
    },
    server::{
        error_code::ErrorCode,
        topics::{Partition, Topic},
    },
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: MetadataRequest<'_> = read(call, body)?;
    let broker = call.broker;
    let wanted = request.topics.as_ref().filter(|topics| call.version() > 0 || !topics.is_empty());
    let topics = match wanted {
        None => broker.topics.all().iter().map(|topic| told(call, topic)).collect(),
        Some(topics) => {
            topics.iter().map(|topic| one(call, topic, request.allow_auto_topic_creation)).collect()
        }
    };
    let response = MetadataResponse {
        brokers: vec![MetadataResponseBroker {
            node_id: broker.node_id(),
            host: call.advertised.host.as_str().into(),
            port: call.advertised.port.into(),
            rack: None,
        }],
        cluster_id: Some(broker.cluster_id().into()),
        controller_id: broker.node_id(),
        topics,
        ..Default::default()
    };
    call.reply(&response)
}

fn one<'a>(
    call: &Call<'_>,
    wanted: &MetadataRequestTopic<'a>,
    may_create: bool,
) -> MetadataResponseTopic<'a> {
    let topics = &call.broker.topics;
    let found = match (wanted.name, wanted.topic_id) {
        (_, id) if !id.is_zero() => topics.by_id(Uuid::from_bytes(id.0)).ok_or(ErrorCode::UNKNOWN_TOPIC_ID),
        (None, _) => Err(ErrorCode::UNKNOWN_TOPIC_ID),
        (Some(name), _) => match topics.by_name(name) {
            Some(topic) => Ok(topic),
            None if may_create => topics.find_or_create(name).map_err(|refusal| {
                if refusal.code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
                    tracing::warn!(topic = name, %refusal, "a topic is not made");
                }
                refusal.code
            }),
            None if topics.store().check_new_topic(name, 1).is_err() => {
                Err(ErrorCode::INVALID_TOPIC_EXCEPTION)
            }
            None => Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        },
    };
    match found {
        Ok(topic) => told(call, &topic),
        Err(code) => MetadataResponseTopic {
            error_code: code.value(),
            // Older versions cannot say that there is no name.
            name: if call.version() < 12 {
                Some(wanted.name.unwrap_or("").into())
            } else {
                wanted.name.map(Into::into)
            },
            topic_id: wanted.topic_id,
            ..Default::default()
        },
    }
}

fn told<'a>(call: &Call<'_>, topic: &Topic) -> MetadataResponseTopic<'a> {
    let node = call.broker.node_id();
    let partition = |(number, partition): &(i32, std::sync::Arc<Partition>)| MetadataResponsePartition {
        error_code: ErrorCode::NONE.value(),
        partition_index: *number,
        leader_id: node,
        leader_epoch: epoch(partition),
        replica_nodes: vec![node],
        isr_nodes: vec![node],
        offline_replicas: Vec::new(),
    };
    MetadataResponseTopic {
        error_code: ErrorCode::NONE.value(),
        name: Some(topic.name().to_owned().into()),
        topic_id: wire::Uuid(topic.id().bytes()),
        is_internal: topic.is_internal(),
        partitions: topic.partitions().iter().map(partition).collect(),
        ..Default::default()
    }
}

/// The leader epoch; 0 before the first record, -1 where it is not known.
pub(super) fn epoch(partition: &Partition) -> i32 {
    partition.log().leader_epoch().map_or(-1, |epoch| epoch.unwrap_or(0))
}
