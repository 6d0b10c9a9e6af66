//! `DescribeLogDirs`: the data directory, and how large partitions are.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::describe_log_dirs::{
            DescribeLogDirsPartition, DescribeLogDirsRequest, DescribeLogDirsResponse, DescribeLogDirsResult,
            DescribeLogDirsTopic,
        },
        wire::Reader,
    },
    server::partition_offsets::{LogDir, describe_log_dir},
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DescribeLogDirsRequest<'_> = read(call, body)?;
    let wanted: Option<Vec<(&str, &[i32])>> = request
        .topics
        .as_ref()
        .map(|topics| topics.iter().map(|topic| (topic.topic, topic.partitions.as_slice())).collect());
    let result = match describe_log_dir(&call.broker.topics, wanted.as_deref()) {
        Ok(found) => told(found),
        Err(refusal) => DescribeLogDirsResult { error_code: refusal.code.value(), ..Default::default() },
    };
    call.reply(&DescribeLogDirsResponse { results: vec![result], ..Default::default() })
}

fn told<'a>(found: LogDir) -> DescribeLogDirsResult<'a> {
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let mut topics: Vec<DescribeLogDirsTopic<'a>> = Vec::new();
    for (name, partition_index, bytes) in found.partitions {
        if topics.last().is_none_or(|last| last.name != name) {
            topics.push(DescribeLogDirsTopic { name: name.into(), partitions: Vec::new() });
        }
        if let Some(last) = topics.last_mut() {
            last.partitions.push(DescribeLogDirsPartition {
                partition_index,
                partition_size: signed(bytes),
                ..Default::default()
            });
        }
    }
    DescribeLogDirsResult {
        log_dir: found.path.into(),
        topics,
        total_bytes: signed(found.total_bytes),
        usable_bytes: signed(found.usable_bytes),
        ..Default::default()
    }
}
