//! `Produce`: batches are checked, appended, and acknowledged when they are as safe as their topic says.
//!
//! Lives here: from the request to appends, the wait for their syncs as data, the reply.
//! Not here: what is asked of a batch (`check`), offsets, duplicates and group commit (the engine).
//! Holds always: a refused partition says nothing about the others; nothing is acknowledged before its topic's
//! settings allow it.

mod check;

use std::{borrow::Cow, sync::Arc};

use check::Refused;

use super::{Call, Fault, Outcome, find_topic, read};
use crate::{
    AppendOptions, Appended, Offset, Pending, Timestamp,
    protocol::{
        EncodeError,
        messages::produce::{
            BatchIndexAndErrorMessage, PartitionProduceData, PartitionProduceResponse, ProduceRequest,
            ProduceResponse, TopicProduceResponse,
        },
        wire::{Reader, Records, Uuid},
    },
    server::{
        broker::Broker,
        error_code::{ErrorCode, Refusal, code_of},
        reply::Reply,
        topics::{Partition, Topic},
    },
};

/// A request that was carried out and waits for syncs.
#[derive(Debug)]
pub(in crate::server) struct Parked {
    correlation_id: i32,
    version: i16,
    topics: Vec<TopicDone>,
}

#[derive(Debug)]
struct TopicDone {
    name: String,
    id: Uuid,
    partitions: Vec<(i32, Done)>,
}

/// What came of one partition's batch.
#[derive(Debug)]
enum Done {
    Refused(Refused),
    Appended(Acknowledged),
    Waiting(Pending, Arc<Partition>),
}

/// What a producer is told of an append.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    base_offset: i64,
    append_time: i64,
    start: i64,
}

impl Acknowledged {
    fn new(appended: &Appended, partition: &Partition) -> Self {
        Self {
            base_offset: appended.base_offset.value(),
            append_time: appended.append_time.map_or(-1, Timestamp::millis),
            start: partition.log().start().map_or(-1, Offset::value),
        }
    }
}

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: ProduceRequest<'_> = read(call, body)?;
    let refused = if !(-1..=1).contains(&request.acks) {
        Some(Refused::new(ErrorCode::INVALID_REQUIRED_ACKS, "acks is -1, 0 or 1"))
    } else if request.transactional_id.is_some() {
        Some(Refused::new(ErrorCode::INVALID_TXN_STATE, "there are no transactions here"))
    } else {
        None
    };
    let is_answered = request.acks != 0;
    let mut topics = Vec::with_capacity(request.topic_data.len());
    for data in &request.topic_data {
        let topic = find_topic(&call.broker.topics, data.name, data.topic_id);
        let partition = |data: &PartitionProduceData<'_>| {
            let done = match &refused {
                Some(refused) => Err(refused.clone()),
                None => topic
                    .as_ref()
                    .map_err(|code| Refused::new(*code, "no such topic"))
                    .and_then(|topic| append(call, topic, data, is_answered)),
            };
            (data.index, done.unwrap_or_else(Done::Refused))
        };
        let partitions = data.partition_data.iter().map(partition).collect();
        topics.push(TopicDone { name: data.name.to_owned(), id: data.topic_id, partitions });
    }
    let mut parked = Parked { correlation_id: call.header.correlation_id, version: call.version(), topics };
    if !is_answered {
        let code = parked.done().find_map(|done| match done {
            Done::Refused(refused) => Some(refused.code),
            _ => None,
        });
        return code.map_or(Ok(Outcome::Nothing), |code| Err(Fault::Refused(code)));
    }
    let is_waiting = parked.done().any(|done| matches!(done, Done::Waiting(..)));
    if is_waiting { Ok(Outcome::Produce(parked)) } else { Ok(Outcome::Reply(parked.reply()?)) }
}

/// Appends one partition's batch.
fn append(
    call: &Call<'_>,
    topic: &Topic,
    data: &PartitionProduceData<'_>,
    is_answered: bool,
) -> Result<Done, Refused> {
    if topic.is_internal() {
        return Err(Refused::new(ErrorCode::INVALID_TOPIC_EXCEPTION, "an internal topic is not produced to"));
    }
    let partition = topic
        .partition(data.index)
        .ok_or_else(|| Refused::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "no such partition"))?;
    let settings = partition.settings();
    let records = data.records.and_then(Records::bytes);
    let batch = check::check(records, call.version(), &settings, call.broker.now())?;
    let appended = partition.log().append_deferred(&batch, AppendOptions::default());
    let pending = appended.map_err(|error| {
        if code_of(&error) == ErrorCode::KAFKA_STORAGE_ERROR {
            tracing::error!(topic = topic.name(), partition = data.index, %error, "nothing can be appended");
        }
        Refused::from(Refusal::from(error))
    })?;
    if is_answered && settings.is_durable {
        return Ok(Done::Waiting(pending, partition));
    }
    call.broker.housekeeping.note(&partition);
    Ok(Done::Appended(Acknowledged::new(&pending.appended(), &partition)))
}

impl Parked {
    fn done(&mut self) -> impl Iterator<Item = &mut Done> {
        self.topics.iter_mut().flat_map(|topic| &mut topic.partitions).map(|(_, done)| done)
    }

    /// What it waits for, of each log.
    pub(in crate::server) fn pendings(&self) -> impl Iterator<Item = (&Arc<Partition>, &Pending)> {
        self.topics.iter().flat_map(|topic| &topic.partitions).filter_map(|(_, done)| match done {
            Done::Waiting(pending, partition) => Some((partition, pending)),
            _ => None,
        })
    }

    /// Waits for the syncs, leading those that nobody else leads.
    pub(in crate::server) fn settle(&mut self) -> Result<Reply, EncodeError> {
        for done in self.done() {
            if !matches!(done, Done::Waiting(..)) {
                continue;
            }
            let taken =
                std::mem::replace(done, Done::Refused(Refused::new(ErrorCode::UNKNOWN_SERVER_ERROR, "")));
            let Done::Waiting(pending, partition) = taken else { continue };
            *done = match pending.wait() {
                Ok(appended) => Done::Appended(Acknowledged::new(&appended, &partition)),
                Err(error) => {
                    let (topic, number) = (partition.log().topic(), partition.log().partition());
                    tracing::error!(topic, partition = number, %error, "what was appended could not be made durable");
                    Done::Refused(Refusal::from(error).into())
                }
            };
        }
        self.reply()
    }

    /// Nobody waits for it any more.
    pub(in crate::server) fn abandon(self, broker: &Broker) {
        for (_, done) in self.topics.into_iter().flat_map(|topic| topic.partitions) {
            if let Done::Waiting(_, partition) = done {
                broker.housekeeping.note(&partition);
            }
        }
    }

    fn reply(&mut self) -> Result<Reply, EncodeError> {
        let mut responses = Vec::with_capacity(self.topics.len());
        for topic in &self.topics {
            responses.push(TopicProduceResponse {
                name: Cow::Borrowed(&topic.name),
                topic_id: topic.id,
                partition_responses: topic
                    .partitions
                    .iter()
                    .map(|(index, done)| response(*index, done))
                    .collect(),
            });
        }
        let response = ProduceResponse { responses, ..Default::default() };
        Reply::new(self.correlation_id, self.version, &response, Vec::new())
    }
}

fn response(index: i32, done: &Done) -> PartitionProduceResponse<'_> {
    let code = |code: ErrorCode| code.value();
    match done {
        Done::Appended(told) => PartitionProduceResponse {
            index,
            error_code: code(ErrorCode::NONE),
            base_offset: told.base_offset,
            log_append_time_ms: told.append_time,
            log_start_offset: told.start,
            ..Default::default()
        },
        Done::Refused(refused) => PartitionProduceResponse {
            index,
            error_code: code(refused.code),
            base_offset: -1,
            record_errors: refused
                .records
                .iter()
                .map(|(index, message)| BatchIndexAndErrorMessage {
                    batch_index: *index,
                    batch_index_error_message: Some(message.as_str().into()),
                })
                .collect(),
            error_message: Some(refused.message.as_str().into()),
            ..Default::default()
        },
        Done::Waiting(..) => {
            debug_assert!(false, "a reply is made when nothing is waited for");
            PartitionProduceResponse {
                index,
                error_code: code(ErrorCode::UNKNOWN_SERVER_ERROR),
                base_offset: -1,
                ..Default::default()
            }
        }
    }
}
