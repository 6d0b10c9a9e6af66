//! What each API does: a file for each.
//!
//! Lives here: from a request's bytes to its reply, over the broker's state; who may overtake whom on a connection.
//! Not here: sockets and the order of replies (connection), what topics and logs do (topics, the engine).
//! Holds always: an API is served in exactly the versions that are advertised; nothing a client sends panics; no lock is
//! held when a reply is sent; what cannot be answered ends the connection with a reason.

mod acls;
mod api_versions;
mod client_quotas;
mod configs;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_quorum;
mod describe_topic_partitions;
mod elect_leaders;
mod features;
pub(super) mod fetch;
mod find_coordinator;
pub(super) mod group_members;
mod init_producer_id;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod metadata;
pub(super) mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
pub(super) mod produce;
mod reassignments;
mod scram_users;
mod transactions;

use std::{fmt, net::IpAddr};

use super::{
    broker::Broker,
    connection::Advertised,
    error_code::{ErrorCode, Refusal},
    reply::Reply,
    topics::{Topic, Topics},
};
use crate::{
    Uuid,
    protocol::{
        self, ApiKey, DecodeError, EncodeError, RequestHeader, Response,
        wire::{self, Reader},
    },
};

/// A request, but for its body.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) broker: &'a Broker,
    pub(super) header: RequestHeader<'a>,
    pub(super) advertised: &'a Advertised,
    /// Where the client is.
    pub(super) peer: IpAddr,
}

impl Call<'_> {
    fn version(&self) -> i16 {
        self.header.api_version
    }

    fn reply<'r, R: Response<'r>>(&self, response: &R) -> Result<Outcome, Fault> {
        let reply = Reply::new(self.header.correlation_id, self.version(), response, Vec::new())?;
        Ok(Outcome::Reply(reply))
    }
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    Reply(Reply),
    /// A client that asked for no reply.
    Nothing,
    Produce(produce::Parked),
    Fetch(fetch::Parked),
    Commit(offset_commit::Parked),
    Group(group_members::Parked),
}

/// Why a request has no answer, so that its connection ends.
#[derive(Debug)]
pub(super) enum Fault {
    Decode(DecodeError),
    Encode(EncodeError),
    /// Not one of ours.
    Unserved {
        api_key: i16,
        version: i16,
    },
    /// Who asked for no reply learns of an error by it.
    Refused(ErrorCode),
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<EncodeError> for Fault {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(error) => write!(f, "a request cannot be read: {error}"),
            Self::Encode(error) => write!(f, "a reply cannot be written: {error}"),
            Self::Unserved { api_key, version } => match ApiKey::from_key(*api_key) {
                Some(api) => write!(f, "{api} version {version} is not served"),
                None => write!(f, "API {api_key} version {version} is not served"),
            },
            Self::Refused(code) => write!(f, "acks=0 and {}: closing is the only answer", code.name()),
        }
    }
}

/// True for requests that must not be carried out while appends before them wait for their sync: they would not see what
/// is to be acknowledged first.
pub(super) fn sees_what_was_appended(api_key: i16) -> bool {
    !matches!(
        ApiKey::from_key(api_key),
        Some(ApiKey::Produce | ApiKey::Metadata | ApiKey::ApiVersions | ApiKey::InitProducerId)
    )
}

/// Does what a request asks.
pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let version = call.version();
    let api_key = call.header.api_key;
    let unserved = Fault::Unserved { api_key, version };
    let Some(api) = call.header.api() else { return Err(unserved) };
    let is_served = api.advertised().is_some_and(|versions| versions.contains(version));
    match api {
        // Answered in every version: a client has to learn which ones there are.
        ApiKey::ApiVersions => api_versions::carry_out(call, body),
        _ if !is_served => Err(unserved),
        ApiKey::Metadata => metadata::carry_out(call, body),
        ApiKey::Produce => produce::carry_out(call, body),
        ApiKey::Fetch => fetch::carry_out(call, body),
        ApiKey::ListOffsets => list_offsets::carry_out(call, body),
        ApiKey::InitProducerId => init_producer_id::carry_out(call, body),
        ApiKey::FindCoordinator => find_coordinator::carry_out(call, body),
        ApiKey::OffsetForLeaderEpoch => offset_for_leader_epoch::carry_out(call, body),
        ApiKey::DescribeCluster => describe_cluster::carry_out(call, body),
        ApiKey::CreateTopics => create_topics::carry_out(call, body),
        ApiKey::DeleteTopics => delete_topics::carry_out(call, body),
        ApiKey::DeleteRecords => delete_records::carry_out(call, body),
        ApiKey::OffsetCommit => offset_commit::carry_out(call, body),
        ApiKey::OffsetFetch => offset_fetch::carry_out(call, body),
        ApiKey::OffsetDelete => offset_delete::carry_out(call, body),
        ApiKey::JoinGroup => group_members::join(call, body),
        ApiKey::SyncGroup => group_members::sync(call, body),
        ApiKey::Heartbeat => group_members::heartbeat(call, body),
        ApiKey::LeaveGroup => group_members::leave(call, body),
        ApiKey::DescribeGroups => describe_groups::carry_out(call, body),
        ApiKey::ListGroups => list_groups::carry_out(call, body),
        ApiKey::DeleteGroups => delete_groups::carry_out(call, body),
        ApiKey::DescribeConfigs => configs::describe(call, body),
        ApiKey::AlterConfigs => configs::alter(call, body),
        ApiKey::IncrementalAlterConfigs => configs::alter_some(call, body),
        ApiKey::CreatePartitions => create_partitions::carry_out(call, body),
        ApiKey::DescribeLogDirs => describe_log_dirs::carry_out(call, body),
        ApiKey::DescribeTopicPartitions => describe_topic_partitions::carry_out(call, body),
        ApiKey::DescribeAcls => acls::describe(call, body),
        ApiKey::CreateAcls => acls::create(call, body),
        ApiKey::DeleteAcls => acls::delete(call, body),
        ApiKey::ElectLeaders => elect_leaders::carry_out(call, body),
        ApiKey::AlterPartitionReassignments => reassignments::alter(call, body),
        ApiKey::ListPartitionReassignments => reassignments::list(call, body),
        ApiKey::DescribeClientQuotas => client_quotas::describe(call, body),
        ApiKey::AlterClientQuotas => client_quotas::alter(call, body),
        ApiKey::DescribeUserScramCredentials => scram_users::describe(call, body),
        ApiKey::DescribeQuorum => describe_quorum::carry_out(call, body),
        ApiKey::UpdateFeatures => features::update(call, body),
        ApiKey::DescribeProducers => describe_producers::carry_out(call, body),
        ApiKey::DescribeTransactions => transactions::describe(call, body),
        ApiKey::ListTransactions => transactions::list(call, body),
        ApiKey::ListConfigResources => list_config_resources::carry_out(call, body),
        _ => Err(unserved),
    }
}

fn no_partition() -> Refusal {
    Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
}

/// Reads the body.
fn read<'a, M: protocol::Message<'a>>(call: &Call<'_>, body: Reader<'a>) -> Result<M, Fault> {
    Ok(M::decode(body, call.version())?)
}

/// A topic by the id that newer versions name it by, or by its name.
fn find_topic(topics: &Topics, name: &str, id: wire::Uuid) -> Result<std::sync::Arc<Topic>, ErrorCode> {
    if id.is_zero() {
        return topics.by_name(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    }
    topics.by_id(Uuid::from_bytes(id.0)).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_advertised_is_carried_out() {
        // The list of `carry_out`, said once more.
        let served = [
            ApiKey::Produce,
            ApiKey::Fetch,
            ApiKey::ListOffsets,
            ApiKey::Metadata,
            ApiKey::OffsetCommit,
            ApiKey::OffsetFetch,
            ApiKey::FindCoordinator,
            ApiKey::JoinGroup,
            ApiKey::Heartbeat,
            ApiKey::LeaveGroup,
            ApiKey::SyncGroup,
            ApiKey::DescribeGroups,
            ApiKey::ListGroups,
            ApiKey::ApiVersions,
            ApiKey::CreateTopics,
            ApiKey::DeleteTopics,
            ApiKey::DeleteRecords,
            ApiKey::InitProducerId,
            ApiKey::OffsetForLeaderEpoch,
            ApiKey::DescribeAcls,
            ApiKey::CreateAcls,
            ApiKey::DeleteAcls,
            ApiKey::DescribeConfigs,
            ApiKey::AlterConfigs,
            ApiKey::DescribeLogDirs,
            ApiKey::CreatePartitions,
            ApiKey::DeleteGroups,
            ApiKey::ElectLeaders,
            ApiKey::IncrementalAlterConfigs,
            ApiKey::AlterPartitionReassignments,
            ApiKey::ListPartitionReassignments,
            ApiKey::OffsetDelete,
            ApiKey::DescribeClientQuotas,
            ApiKey::AlterClientQuotas,
            ApiKey::DescribeUserScramCredentials,
            ApiKey::DescribeQuorum,
            ApiKey::UpdateFeatures,
            ApiKey::DescribeCluster,
            ApiKey::DescribeProducers,
            ApiKey::DescribeTransactions,
            ApiKey::ListTransactions,
            ApiKey::ListConfigResources,
            ApiKey::DescribeTopicPartitions,
        ];
        let advertised = ApiKey::ALL.iter().filter(|api| api.advertised().is_some());
        assert_eq!(advertised.copied().collect::<Vec<_>>(), served);
    }
}
