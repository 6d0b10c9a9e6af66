//! Elects partition leaders.

use std::borrow::Cow;

message! {
    /// Request of `ElectLeaders`.
    pub struct ElectLeadersRequest<'a> {
        election_type: i8, 1..;
        topic_partitions: Option<Vec<TopicPartitions<'a>>> = Some(Vec::new()), 0..;
        timeout_ms: i32 = 60000, 0..;
    }

    /// In [`ElectLeadersRequest`]: `topic_partitions`.
    pub struct TopicPartitions<'a> {
        topic: &'a str, 0..;
        partitions: Vec<i32>, 0..;
    }

    /// Response of `ElectLeaders`.
    pub struct ElectLeadersResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 1..;
        replica_election_results: Vec<ReplicaElectionResult<'a>>, 0..;
    }

    /// In [`ElectLeadersResponse`]: `replica_election_results`.
    pub struct ReplicaElectionResult<'a> {
        topic: Cow<'a, str>, 0..;
        partition_result: Vec<PartitionResult<'a>>, 0..;
    }

    /// In [`ReplicaElectionResult`]: `partition_result`.
    pub struct PartitionResult<'a> {
        partition_id: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
    }
}

api!(ElectLeaders: ElectLeadersRequest<'a> => ElectLeadersResponse<'r>);
