//! `AlterPartitionReassignments`, `ListPartitionReassignments`: there is one broker, and every partition is on it.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::{
            alter_partition_reassignments::{
                AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
                ReassignablePartition, ReassignablePartitionResponse, ReassignableTopicResponse,
            },
            list_partition_reassignments::{
                ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
            },
        },
        wire::Reader,
    },
    server::error_code::{ErrorCode, Refusal},
};

pub(super) fn alter(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: AlterPartitionReassignmentsRequest<'_> = read(call, body)?;
    let mut responses = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let answer = |partition: &ReassignablePartition| {
            let (code, message) = match check(call, topic.name, partition) {
                Ok(()) => (ErrorCode::NONE, None),
                Err(refusal) => (refusal.code, Some(refusal.message.into())),
            };
            ReassignablePartitionResponse {
                partition_index: partition.partition_index,
                error_code: code.value(),
                error_message: message,
            }
        };
        let partitions = topic.partitions.iter().map(answer).collect();
        responses.push(ReassignableTopicResponse { name: topic.name.into(), partitions });
    }
    call.reply(&AlterPartitionReassignmentsResponse {
        error_message: None,
        allow_replication_factor_change: request.allow_replication_factor_change,
        responses,
        ..Default::default()
    })
}

/// All right is only what is so already.
fn check(call: &Call<'_>, topic: &str, partition: &ReassignablePartition) -> Result<(), Refusal> {
    if call.broker.topics.partition(topic, partition.partition_index).is_none() {
        return Err(super::no_partition());
    }
    match partition.replicas.as_deref() {
        None => {
            let message = "There is no reassignment to be cancelled.";
            Err(Refusal::new(ErrorCode::NO_REASSIGNMENT_IN_PROGRESS, message))
        }
        Some([only]) if *only == call.broker.node_id() => Ok(()),
        Some(_) => {
            let message = format!("Broker {} is the only one.", call.broker.node_id());
            Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message))
        }
    }
}

pub(super) fn list(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let _: ListPartitionReassignmentsRequest<'_> = read(call, body)?;
    call.reply(&ListPartitionReassignmentsResponse { error_message: None, ..Default::default() })
}
