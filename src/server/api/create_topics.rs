//! `CreateTopics`: each topic by itself; one that is refused says nothing about the others.

use std::collections::HashMap;

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::create_topics::{
            CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest,
            CreateTopicsResponse,
        },
        wire::{Reader, Uuid},
    },
    server::{
        error_code::{ErrorCode, Refusal},
        topics::{Made, NewTopic},
    },
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: CreateTopicsRequest<'_> = read(call, body)?;
    let mut times = HashMap::new();
    for topic in &request.topics {
        *times.entry(topic.name).or_insert(0_u32) += 1;
    }
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        // A name that is there twice is answered once, and not made.
        let made = match times.remove(topic.name) {
            None => continue,
            Some(1) => make(call, topic, request.validate_only),
            Some(_) => Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name.")),
        };
        topics.push(match made {
            Ok(made) => told(topic.name, &made),
            Err(refusal) => CreatableTopicResult {
                name: topic.name.into(),
                error_code: refusal.code.value(),
                error_message: Some(refusal.message.into()),
                ..Default::default()
            },
        });
    }
    call.reply(&CreateTopicsResponse { topics, ..Default::default() })
}

fn make(call: &Call<'_>, topic: &CreatableTopic<'_>, is_check: bool) -> Result<Made, Refusal> {
    let (mut partition_count, mut replication_factor) = (topic.num_partitions, topic.replication_factor);
    if !topic.assignments.is_empty() {
        if partition_count != -1 || replication_factor != -1 {
            let message = "Replica assignments and a number of partitions or replicas cannot both be given.";
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
        }
        partition_count = assigned(call, topic)?;
        replication_factor = 1;
    }
    let new = NewTopic {
        name: topic.name,
        partition_count,
        replication_factor,
        settings: topic.configs.iter().map(|config| (config.name, config.value)).collect(),
    };
    call.broker.topics.create(&new, is_check)
}

/// How many partitions are assigned, all to this node and counted from 0.
fn assigned(call: &Call<'_>, topic: &CreatableTopic<'_>) -> Result<i32, Refusal> {
    let wrong = |message: &str| Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message);
    let mut numbers: Vec<_> = topic.assignments.iter().map(|assignment| assignment.partition_index).collect();
    numbers.sort_unstable();
    if !numbers.iter().copied().eq((0..).take(numbers.len())) {
        return Err(wrong("Partitions are assigned once each, from 0 on."));
    }
    let node = [call.broker.node_id()];
    if topic.assignments.iter().any(|assignment| assignment.broker_ids != node) {
        return Err(wrong("There is one broker, and one copy of each partition."));
    }
    i32::try_from(numbers.len()).map_err(|_| wrong("There are too many partitions."))
}

fn told<'a>(name: &'a str, made: &Made) -> CreatableTopicResult<'a> {
    let configs = made.settings.iter().map(|shown| CreatableTopicConfigs {
        name: shown.name.into(),
        value: shown.value.clone().map(Into::into),
        read_only: shown.is_read_only,
        config_source: shown.source.wire(),
        is_sensitive: shown.is_sensitive,
    });
    CreatableTopicResult {
        name: name.into(),
        topic_id: made.topic.as_ref().map_or(Uuid::ZERO, |topic| Uuid(topic.id().bytes())),
        error_code: ErrorCode::NONE.value(),
        error_message: None,
        num_partitions: made.partition_count,
        replication_factor: 1,
        configs: Some(configs.collect()),
        ..Default::default()
    }
}
