//! `OffsetDelete`: offsets that no member of the group reads on from.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::offset_delete::{
            OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteResponsePartition,
            OffsetDeleteResponseTopic,
        },
        wire::Reader,
    },
    server::error_code::{ErrorCode, Refusal},
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: OffsetDeleteRequest<'_> = read(call, body)?;
    let mut places = Vec::new();
    for topic in &request.topics {
        let numbers = topic.partitions.iter().map(|partition| partition.partition_index);
        // What was committed for a topic that is gone has gone with it.
        places.extend(
            numbers.filter(|number| is_here(call, topic.name, *number)).map(|number| (topic.name, number)),
        );
    }
    let forgotten = if request.group_id.is_empty() {
        Err(Refusal::new(ErrorCode::INVALID_GROUP_ID, "A group has a name."))
    } else {
        call.broker.groups.coordinator().forget(request.group_id, &places).and_then(|(codes, pending)| {
            if let Some(pending) = pending {
                pending.wait()?;
            }
            Ok(codes)
        })
    };
    let codes = match forgotten {
        Ok(codes) => codes,
        Err(refusal) => {
            let error_code = refusal.code.value();
            return call.reply(&OffsetDeleteResponse { error_code, ..Default::default() });
        }
    };
    let mut codes = codes.into_iter();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let partition_index = partition.partition_index;
            let code = if is_here(call, topic.name, partition_index) { codes.next() } else { None };
            let code = code.unwrap_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
            partitions.push(OffsetDeleteResponsePartition { partition_index, error_code: code.value() });
        }
        topics.push(OffsetDeleteResponseTopic { name: topic.name.into(), partitions });
    }
    call.reply(&OffsetDeleteResponse { topics, ..Default::default() })
}

fn is_here(call: &Call<'_>, topic: &str, partition: i32) -> bool {
    call.broker.topics.partition(topic, partition).is_some()
}
