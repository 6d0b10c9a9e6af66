//! `OffsetCommit`: of members of groups, and of consumers that choose their partitions themselves.

use super::{Call, Fault, Outcome, find_topic, read};
use crate::{
    Pending,
    protocol::{
        EncodeError,
        messages::offset_commit::{
            OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition,
            OffsetCommitResponseTopic,
        },
        wire::{Reader, Uuid},
    },
    server::{
        committed_offsets::Commit,
        error_code::{ErrorCode, Refusal},
        groups::Identity,
        reply::Reply,
        topics::Topic,
    },
};

/// A commit that waits until it is durable.
#[derive(Debug)]
pub(in crate::server) struct Parked {
    correlation_id: i32,
    version: i16,
    pending: Option<Pending>,
    topics: Vec<TopicDone>,
}

/// A topic by name and id, and what came of its partitions.
type TopicDone = (String, Uuid, Vec<(i32, ErrorCode)>);

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: OffsetCommitRequest<'_> = read(call, body)?;
    let broker = call.broker;
    let found: Vec<_> =
        request.topics.iter().map(|topic| find_topic(&broker.topics, topic.name, topic.topic_id)).collect();
    let mut commits = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for (asked, found) in request.topics.iter().zip(&found) {
        let mut partitions = Vec::with_capacity(asked.partitions.len());
        for partition in &asked.partitions {
            let metadata = partition.committed_metadata.unwrap_or("");
            let has_partition = |topic: &Topic| topic.partition(partition.partition_index).is_some();
            let code = match found {
                Err(code) => *code,
                Ok(topic) if !has_partition(topic) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                Ok(_) if !broker.offsets.takes_metadata(metadata) => ErrorCode::OFFSET_METADATA_TOO_LARGE,
                Ok(topic) => {
                    commits.push(Commit {
                        topic: topic.name(),
                        partition: partition.partition_index,
                        offset: partition.committed_offset,
                        leader_epoch: partition.committed_leader_epoch,
                        metadata,
                    });
                    ErrorCode::NONE
                }
            };
            partitions.push((partition.partition_index, code));
        }
        topics.push((asked.name.to_owned(), asked.topic_id, partitions));
    }
    let who = Identity { member_id: request.member_id, instance_id: request.group_instance_id };
    let generation = request.generation_id_or_member_epoch;
    let missing =
        if call.version() < 9 { ErrorCode::ILLEGAL_GENERATION } else { ErrorCode::GROUP_ID_NOT_FOUND };
    let committed = broker.groups.coordinator().commit(request.group_id, who, generation, &commits, missing);
    let mut parked =
        Parked { correlation_id: call.header.correlation_id, version: call.version(), pending: None, topics };
    match committed {
        Ok(pending) => parked.pending = pending,
        Err(refusal) => parked.refuse(&refusal),
    }
    if parked.pending.is_some() { Ok(Outcome::Commit(parked)) } else { Ok(Outcome::Reply(parked.settle()?)) }
}

impl Parked {
    /// What was to be committed was not.
    fn refuse(&mut self, refusal: &Refusal) {
        if refusal.code == ErrorCode::KAFKA_STORAGE_ERROR {
            tracing::error!(%refusal, "offsets cannot be committed");
        }
        for (_, code) in self.topics.iter_mut().flat_map(|(_, _, partitions)| partitions) {
            if code.is_none() {
                *code = refusal.code;
            }
        }
    }

    /// What it waits for.
    pub(in crate::server) fn pending(&self) -> Option<&Pending> {
        self.pending.as_ref()
    }

    /// Waits for the sync.
    pub(in crate::server) fn settle(&mut self) -> Result<Reply, EncodeError> {
        if let Some(Err(error)) = self.pending.take().map(Pending::wait) {
            self.refuse(&error.into());
        }
        let topic = |(name, topic_id, partitions): &TopicDone| {
            let partition = |(index, code): &(i32, ErrorCode)| OffsetCommitResponsePartition {
                partition_index: *index,
                error_code: code.value(),
            };
            OffsetCommitResponseTopic {
                name: name.clone().into(),
                topic_id: *topic_id,
                partitions: partitions.iter().map(partition).collect(),
            }
        };
        let topics = self.topics.iter().map(topic).collect();
        let response = OffsetCommitResponse { topics, ..Default::default() };
        Reply::new(self.correlation_id, self.version, &response, Vec::new())
    }
}
