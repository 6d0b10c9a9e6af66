//! Tells of log directories and the partitions in them.

use std::borrow::Cow;

message! {
    /// Request of `DescribeLogDirs`.
    pub struct DescribeLogDirsRequest<'a> {
        topics: Option<Vec<DescribableLogDirTopic<'a>>> = Some(Vec::new()), 0..;
    }

    /// In [`DescribeLogDirsRequest`]: `topics`.
    pub struct DescribableLogDirTopic<'a> {
        topic: &'a str, 0..;
        partitions: Vec<i32>, 0..;
    }

    /// Response of `DescribeLogDirs`.
    pub struct DescribeLogDirsResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 3..;
        results: Vec<DescribeLogDirsResult<'a>>, 0..;
    }

    /// In [`DescribeLogDirsResponse`]: `results`.
    pub struct DescribeLogDirsResult<'a> {
        error_code: i16, 0..;
        log_dir: Cow<'a, str>, 0..;
        topics: Vec<DescribeLogDirsTopic<'a>>, 0..;
        total_bytes: i64 = -1, 4..;
        usable_bytes: i64 = -1, 4..;
        is_cordoned: bool, 5..;
    }

    /// In [`DescribeLogDirsResult`]: `topics`.
    pub struct DescribeLogDirsTopic<'a> {
        name: Cow<'a, str>, 0..;
        partitions: Vec<DescribeLogDirsPartition>, 0..;
    }

    /// In [`DescribeLogDirsTopic`]: `partitions`.
    pub struct DescribeLogDirsPartition {
        partition_index: i32, 0..;
        partition_size: i64, 0..;
        offset_lag: i64, 0..;
        is_future_key: bool, 0..;
    }
}

api!(DescribeLogDirs: DescribeLogDirsRequest<'a> => DescribeLogDirsResponse<'r>);
