//! `DescribeProducers`: who appends to partitions and numbers what he appends.

use super::{Call, Fault, Outcome, no_partition, read};
use crate::{
    Offset, ProducerInfo,
    protocol::{
        messages::describe_producers::{
            DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState,
            TopicResponse,
        },
        wire::Reader,
    },
    server::error_code::Refusal,
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DescribeProducersRequest<'_> = read(call, body)?;
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let partitions = topic.partition_indexes.iter().map(|index| partition(call, topic.name, *index));
        topics.push(TopicResponse { name: topic.name.into(), partitions: partitions.collect() });
    }
    call.reply(&DescribeProducersResponse { topics, ..Default::default() })
}

fn partition<'a>(call: &Call<'_>, topic: &str, index: i32) -> PartitionResponse<'a> {
    let found = call.broker.topics.partition(topic, index).ok_or_else(no_partition);
    let producers = found.and_then(|partition| partition.log().producers().map_err(Refusal::from));
    match producers {
        Ok(producers) => PartitionResponse {
            partition_index: index,
            active_producers: producers.iter().map(producer).collect(),
            ..Default::default()
        },
        Err(refusal) => PartitionResponse {
            partition_index: index,
            error_code: refusal.code.value(),
            error_message: Some(refusal.message.into()),
            ..Default::default()
        },
    }
}

fn producer(known: &ProducerInfo) -> ProducerState {
    ProducerState {
        producer_id: known.id,
        producer_epoch: known.epoch.into(),
        last_sequence: known.last_sequence,
        last_timestamp: known.last_timestamp.millis(),
        coordinator_epoch: known.coordinator_epoch,
        current_txn_start_offset: known.transaction_start.map_or(-1, Offset::value),
    }
}
