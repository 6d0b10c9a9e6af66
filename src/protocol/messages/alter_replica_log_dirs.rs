//! Moves replicas to other log directories.

use std::borrow::Cow;

message! {
    /// Request of `AlterReplicaLogDirs`.
    pub struct AlterReplicaLogDirsRequest<'a> {
        dirs: Vec<AlterReplicaLogDir<'a>>, 0..;
    }

    /// In [`AlterReplicaLogDirsRequest`]: `dirs`.
    pub struct AlterReplicaLogDir<'a> {
        path: &'a str, 0..;
        topics: Vec<AlterReplicaLogDirTopic<'a>>, 0..;
    }

    /// In [`AlterReplicaLogDir`]: `topics`.
    pub struct AlterReplicaLogDirTopic<'a> {
        name: &'a str, 0..;
        partitions: Vec<i32>, 0..;
    }

    /// Response of `AlterReplicaLogDirs`.
    pub struct AlterReplicaLogDirsResponse<'a> {
        throttle_time_ms: i32, 0..;
        results: Vec<AlterReplicaLogDirTopicResult<'a>>, 0..;
    }

    /// In [`AlterReplicaLogDirsResponse`]: `results`.
    pub struct AlterReplicaLogDirTopicResult<'a> {
        topic_name: Cow<'a, str>, 0..;
        partitions: Vec<AlterReplicaLogDirPartitionResult>, 0..;
    }

    /// In [`AlterReplicaLogDirTopicResult`]: `partitions`.
    pub struct AlterReplicaLogDirPartitionResult {
        partition_index: i32, 0..;
        error_code: i16, 0..;
    }
}

api!(AlterReplicaLogDirs: AlterReplicaLogDirsRequest<'a> => AlterReplicaLogDirsResponse<'r>);
