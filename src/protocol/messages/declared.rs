//! Every message by its API alone, for those who must look at all of them: tests, fuzzing, documents.

use crate::protocol::{
    ApiKey, DecodeError, EncodeError, Message,
    wire::{Gap, Reader, Shape, Wire, Writer},
};

/// A message without its type.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its fields.
    pub shape: Shape,
    /// Reads a body of a version, and nothing more.
    pub decode: fn(Reader<'_>, i16) -> Result<(), DecodeError>,
    /// Reads a body of a version and writes it again.
    pub recode: fn(Reader<'_>, i16) -> Result<Recoded, DecodeError>,
}

/// What was read, and what it is written as.
#[derive(Clone, Debug)]
pub struct Recoded {
    /// The value as [`std::fmt::Debug`] shows it.
    pub text: String,
    /// Its encoding in the same version.
    pub encoded: Result<Vec<u8>, EncodeError>,
    /// The gaps in the encoding: none, as what was read is all there.
    pub gaps: Vec<Gap>,
}

fn decode<'a, M: Message<'a>>(body: Reader<'a>, version: i16) -> Result<(), DecodeError> {
    M::decode(body, version).map(drop)
}

fn recode<'a, M: Message<'a> + std::fmt::Debug>(
    body: Reader<'a>,
    version: i16,
) -> Result<Recoded, DecodeError> {
    let message = M::decode(body, version)?;
    let mut writer = Writer::new();
    let encoded = message.encode(&mut writer, version);
    let (bytes, gaps) = writer.into_parts();
    Ok(Recoded { text: format!("{message:?}"), encoded: encoded.map(|()| bytes), gaps })
}

macro_rules! declared {
    ($($module:ident $api:ident $request:ident $response:ident;)*) => {
        /// The request of an API.
        #[expect(elided_lifetimes_in_paths, reason = "some of the types have a lifetime and some have none")]
        pub fn request(api: ApiKey) -> Declaration {
            match api {$(
                ApiKey::$api => Declaration {
                    shape: <super::$module::$request as Wire<'static>>::SHAPE,
                    decode: |body, version| decode::<super::$module::$request>(body, version),
                    recode: |body, version| recode::<super::$module::$request>(body, version),
                },
            )*}
        }

        /// The response of an API.
        #[expect(elided_lifetimes_in_paths, reason = "some of the types have a lifetime and some have none")]
        pub fn response(api: ApiKey) -> Declaration {
            match api {$(
                ApiKey::$api => Declaration {
                    shape: <super::$module::$response as Wire<'static>>::SHAPE,
                    decode: |body, version| decode::<super::$module::$response>(body, version),
                    recode: |body, version| recode::<super::$module::$response>(body, version),
                },
            )*}
        }
    };
}

declared! {
    add_offsets_to_txn AddOffsetsToTxn AddOffsetsToTxnRequest AddOffsetsToTxnResponse;
    add_partitions_to_txn AddPartitionsToTxn AddPartitionsToTxnRequest AddPartitionsToTxnResponse;
    alter_client_quotas AlterClientQuotas AlterClientQuotasRequest AlterClientQuotasResponse;
    alter_configs AlterConfigs AlterConfigsRequest AlterConfigsResponse;
    alter_partition_reassignments AlterPartitionReassignments AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse;
    alter_replica_log_dirs AlterReplicaLogDirs AlterReplicaLogDirsRequest AlterReplicaLogDirsResponse;
    alter_user_scram_credentials AlterUserScramCredentials AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse;
    api_versions ApiVersions ApiVersionsRequest ApiVersionsResponse;
    consumer_group_describe ConsumerGroupDescribe ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse;
    consumer_group_heartbeat ConsumerGroupHeartbeat ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse;
    create_acls CreateAcls CreateAclsRequest CreateAclsResponse;
    create_partitions CreatePartitions CreatePartitionsRequest CreatePartitionsResponse;
    create_topics CreateTopics CreateTopicsRequest CreateTopicsResponse;
    delete_acls DeleteAcls DeleteAclsRequest DeleteAclsResponse;
    delete_groups DeleteGroups DeleteGroupsRequest DeleteGroupsResponse;
    delete_records DeleteRecords DeleteRecordsRequest DeleteRecordsResponse;
    delete_topics DeleteTopics DeleteTopicsRequest DeleteTopicsResponse;
    describe_acls DescribeAcls DescribeAclsRequest DescribeAclsResponse;
    describe_client_quotas DescribeClientQuotas DescribeClientQuotasRequest DescribeClientQuotasResponse;
    describe_cluster DescribeCluster DescribeClusterRequest DescribeClusterResponse;
    describe_configs DescribeConfigs DescribeConfigsRequest DescribeConfigsResponse;
    describe_groups DescribeGroups DescribeGroupsRequest DescribeGroupsResponse;
    describe_log_dirs DescribeLogDirs DescribeLogDirsRequest DescribeLogDirsResponse;
    describe_producers DescribeProducers DescribeProducersRequest DescribeProducersResponse;
    describe_quorum DescribeQuorum DescribeQuorumRequest DescribeQuorumResponse;
    describe_topic_partitions DescribeTopicPartitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse;
    describe_transactions DescribeTransactions DescribeTransactionsRequest DescribeTransactionsResponse;
    describe_user_scram_credentials DescribeUserScramCredentials DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse;
    elect_leaders ElectLeaders ElectLeadersRequest ElectLeadersResponse;
    end_txn EndTxn EndTxnRequest EndTxnResponse;
    fetch Fetch FetchRequest FetchResponse;
    find_coordinator FindCoordinator FindCoordinatorRequest FindCoordinatorResponse;
    get_telemetry_subscriptions GetTelemetrySubscriptions GetTelemetrySubscriptionsRequest GetTelemetrySubscriptionsResponse;
    heartbeat Heartbeat HeartbeatRequest HeartbeatResponse;
    incremental_alter_configs IncrementalAlterConfigs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse;
    init_producer_id InitProducerId InitProducerIdRequest InitProducerIdResponse;
    join_group JoinGroup JoinGroupRequest JoinGroupResponse;
    leave_group LeaveGroup LeaveGroupRequest LeaveGroupResponse;
    list_config_resources ListConfigResources ListConfigResourcesRequest ListConfigResourcesResponse;
    list_groups ListGroups ListGroupsRequest ListGroupsResponse;
    list_offsets ListOffsets ListOffsetsRequest ListOffsetsResponse;
    list_partition_reassignments ListPartitionReassignments ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse;
    list_transactions ListTransactions ListTransactionsRequest ListTransactionsResponse;
    metadata Metadata MetadataRequest MetadataResponse;
    offset_commit OffsetCommit OffsetCommitRequest OffsetCommitResponse;
    offset_delete OffsetDelete OffsetDeleteRequest OffsetDeleteResponse;
    offset_fetch OffsetFetch OffsetFetchRequest OffsetFetchResponse;
    offset_for_leader_epoch OffsetForLeaderEpoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse;
    produce Produce ProduceRequest ProduceResponse;
    push_telemetry PushTelemetry PushTelemetryRequest PushTelemetryResponse;
    sasl_authenticate SaslAuthenticate SaslAuthenticateRequest SaslAuthenticateResponse;
    sasl_handshake SaslHandshake SaslHandshakeRequest SaslHandshakeResponse;
    sync_group SyncGroup SyncGroupRequest SyncGroupResponse;
    txn_offset_commit TxnOffsetCommit TxnOffsetCommitRequest TxnOffsetCommitResponse;
    update_features UpdateFeatures UpdateFeaturesRequest UpdateFeaturesResponse;
    write_txn_markers WriteTxnMarkers WriteTxnMarkersRequest WriteTxnMarkersResponse;
}
