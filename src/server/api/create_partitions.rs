//! `CreatePartitions`: more partitions for topics.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::create_partitions::{
            CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic,
            CreatePartitionsTopicResult,
        },
        wire::Reader,
    },
    server::error_code::{ErrorCode, Refusal},
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: CreatePartitionsRequest<'_> = read(call, body)?;
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let is_twice = request.topics.iter().filter(|other| other.name == topic.name).count() > 1;
        let made = if is_twice {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."))
        } else {
            make(call, topic, request.validate_only)
        };
        let (error_code, error_message) = match made {
            Ok(()) => (ErrorCode::NONE, None),
            Err(refusal) => (refusal.code, Some(refusal.message.into())),
        };
        results.push(CreatePartitionsTopicResult {
            name: topic.name.into(),
            error_code: error_code.value(),
            error_message,
        });
    }
    call.reply(&CreatePartitionsResponse { results, ..Default::default() })
}

fn make(call: &Call<'_>, topic: &CreatePartitionsTopic<'_>, is_check: bool) -> Result<(), Refusal> {
    let node = [call.broker.node_id()];
    if topic.assignments.iter().flatten().any(|assignment| assignment.broker_ids != node) {
        let message = "There is one broker, and one copy of each partition.";
        return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
    }
    call.broker.topics.create_partitions(topic.name, topic.count, is_check)
}
