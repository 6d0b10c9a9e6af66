//! `DeleteRecords`: everything before an offset.

use super::{Call, Fault, Outcome, no_partition, read};
use crate::{
    protocol::{
        messages::delete_records::{
            DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest,
            DeleteRecordsResponse, DeleteRecordsTopicResult,
        },
        wire::Reader,
    },
    server::partition_offsets::delete_records,
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DeleteRecordsRequest<'_> = read(call, body)?;
    let mut topics = Vec::new();
    for topic in &request.topics {
        let partition = |wanted: &DeleteRecordsPartition| {
            let found =
                call.broker.topics.partition(topic.name, wanted.partition_index).ok_or_else(no_partition);
            let deleted = found.and_then(|partition| delete_records(&partition, wanted.offset));
            let (low_watermark, error_code) =
                deleted.map_or_else(|refusal| (-1, refusal.code.value()), |start| (start, 0));
            DeleteRecordsPartitionResult {
                partition_index: wanted.partition_index,
                low_watermark,
                error_code,
            }
        };
        topics.push(DeleteRecordsTopicResult {
            name: topic.name.into(),
            partitions: topic.partitions.iter().map(partition).collect(),
        });
    }
    call.reply(&DeleteRecordsResponse { topics, ..Default::default() })
}
