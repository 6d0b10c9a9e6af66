//! Every message and version against an independent codec (the crate `kafka-protocol`): random content, byte for byte
//! and field for field.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable, Message};
use stratalog::protocol::{
    ApiKey,
    messages::{request, response},
    wire::Reader,
};

use crate::{
    layout::{Direction, layouts},
    random::{Random, body},
    text::{parse, same},
};

/// Bodies for each version of each message.
const ROUNDS: usize = 24;

/// What the other codec makes of a body: the value as `Debug` shows it, and its encoding.
type Recode = fn(&[u8], i16) -> (String, Vec<u8>);

fn recode<M: Message + Decodable + Encodable + std::fmt::Debug>(
    body: &[u8],
    version: i16,
) -> (String, Vec<u8>) {
    let mut bytes = Bytes::copy_from_slice(body);
    let message = M::decode(&mut bytes, version).unwrap();
    assert!(bytes.is_empty(), "{} bytes left by the other codec", bytes.len());
    let mut encoded = BytesMut::new();
    message.encode(&mut encoded, version).unwrap();
    (format!("{message:?}"), encoded.to_vec())
}

macro_rules! oracle {
    ($($api:ident $request:ident $response:ident;)*) => {
        /// The other codec's versions and its way there and back.
        fn other(api: ApiKey, direction: Direction) -> Option<(i16, i16, Recode)> {
            use kafka_protocol::messages as theirs;
            Some(match (api, direction) {
                $(
                    (ApiKey::$api, Direction::Request) => {
                        type M = theirs::$request;
                        (M::VERSIONS.min, M::VERSIONS.max, recode::<M>)
                    }
                    (ApiKey::$api, Direction::Response) => {
                        type M = theirs::$response;
                        (M::VERSIONS.min, M::VERSIONS.max, recode::<M>)
                    }
                )*
                _ => return None,
            })
        }
    };
}

oracle! {
    AddOffsetsToTxn AddOffsetsToTxnRequest AddOffsetsToTxnResponse;
    AddPartitionsToTxn AddPartitionsToTxnRequest AddPartitionsToTxnResponse;
    AlterClientQuotas AlterClientQuotasRequest AlterClientQuotasResponse;
    AlterConfigs AlterConfigsRequest AlterConfigsResponse;
    AlterPartitionReassignments AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse;
    AlterReplicaLogDirs AlterReplicaLogDirsRequest AlterReplicaLogDirsResponse;
    AlterUserScramCredentials AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse;
    ApiVersions ApiVersionsRequest ApiVersionsResponse;
    ConsumerGroupDescribe ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse;
    ConsumerGroupHeartbeat ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse;
    CreateAcls CreateAclsRequest CreateAclsResponse;
    CreatePartitions CreatePartitionsRequest CreatePartitionsResponse;
    CreateTopics CreateTopicsRequest CreateTopicsResponse;
    DeleteAcls DeleteAclsRequest DeleteAclsResponse;
    DeleteGroups DeleteGroupsRequest DeleteGroupsResponse;
    DeleteRecords DeleteRecordsRequest DeleteRecordsResponse;
    DeleteTopics DeleteTopicsRequest DeleteTopicsResponse;
    DescribeAcls DescribeAclsRequest DescribeAclsResponse;
    DescribeClientQuotas DescribeClientQuotasRequest DescribeClientQuotasResponse;
    DescribeCluster DescribeClusterRequest DescribeClusterResponse;
    DescribeConfigs DescribeConfigsRequest DescribeConfigsResponse;
    DescribeGroups DescribeGroupsRequest DescribeGroupsResponse;
    DescribeLogDirs DescribeLogDirsRequest DescribeLogDirsResponse;
    DescribeProducers DescribeProducersRequest DescribeProducersResponse;
    DescribeQuorum DescribeQuorumRequest DescribeQuorumResponse;
    DescribeTopicPartitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse;
    DescribeTransactions DescribeTransactionsRequest DescribeTransactionsResponse;
    DescribeUserScramCredentials DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse;
    ElectLeaders ElectLeadersRequest ElectLeadersResponse;
    EndTxn EndTxnRequest EndTxnResponse;
    Fetch FetchRequest FetchResponse;
    FindCoordinator FindCoordinatorRequest FindCoordinatorResponse;
    GetTelemetrySubscriptions GetTelemetrySubscriptionsRequest GetTelemetrySubscriptionsResponse;
    Heartbeat HeartbeatRequest HeartbeatResponse;
    IncrementalAlterConfigs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse;
    InitProducerId InitProducerIdRequest InitProducerIdResponse;
    JoinGroup JoinGroupRequest JoinGroupResponse;
    LeaveGroup LeaveGroupRequest LeaveGroupResponse;
    ListConfigResources ListConfigResourcesRequest ListConfigResourcesResponse;
    ListGroups ListGroupsRequest ListGroupsResponse;
    ListOffsets ListOffsetsRequest ListOffsetsResponse;
    ListPartitionReassignments ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse;
    ListTransactions ListTransactionsRequest ListTransactionsResponse;
    Metadata MetadataRequest MetadataResponse;
    OffsetCommit OffsetCommitRequest OffsetCommitResponse;
    OffsetDelete OffsetDeleteRequest OffsetDeleteResponse;
    OffsetFetch OffsetFetchRequest OffsetFetchResponse;
    OffsetForLeaderEpoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse;
    Produce ProduceRequest ProduceResponse;
    PushTelemetry PushTelemetryRequest PushTelemetryResponse;
    SaslAuthenticate SaslAuthenticateRequest SaslAuthenticateResponse;
    SaslHandshake SaslHandshakeRequest SaslHandshakeResponse;
    SyncGroup SyncGroupRequest SyncGroupResponse;
    TxnOffsetCommit TxnOffsetCommitRequest TxnOffsetCommitResponse;
    UpdateFeatures UpdateFeaturesRequest UpdateFeaturesResponse;
    WriteTxnMarkers WriteTxnMarkersRequest WriteTxnMarkersResponse;
}

/// Versions that the other codec does not have yet. What they look like is held by the layouts alone.
const NEWER: &[(&str, i16)] = &[
    ("ListOffsets", 11),
    ("OffsetCommit", 10),
    ("OffsetFetch", 10),
    ("ApiVersions", 5),
    ("InitProducerId", 6),
    ("WriteTxnMarkers", 2),
    ("TxnOffsetCommit", 6),
    ("DescribeLogDirs", 5),
    ("DeleteGroups", 3),
];

#[test]
fn bytes_and_fields_are_those_of_another_codec() {
    let (mut compared, mut alone) = (0, Vec::new());
    let mut random = Random(0xC0DEC);
    for layout in layouts() {
        let Some(api) = ApiKey::from_key(layout.key) else { continue };
        let ours = match layout.direction {
            Direction::Request => request(api),
            Direction::Response => response(api),
        };
        let (first, last, theirs) = other(api, layout.direction).unwrap();
        for version in layout.first..=layout.last {
            let known = (first..=last).contains(&version);
            if !known && layout.direction == Direction::Request {
                alone.push((api.name(), version));
            }
            for round in 0..ROUNDS {
                let bytes = body(&layout, &mut random);
                let place = format!("{api} {:?} {version}, round {round}: {bytes:?}", layout.direction);
                let read = (ours.recode)(Reader::new(&bytes), version)
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(read.encoded.as_deref(), Ok(bytes.as_slice()), "{place}\n{}", read.text);
                assert!(read.gaps.is_empty());
                (ours.decode)(Reader::new(&bytes), version).unwrap();
                if !known {
                    continue;
                }
                let (text, encoded) = theirs(&bytes, version);
                assert_eq!(encoded, bytes, "{place}\n{text}");
                if let Err(difference) = same(&parse(&read.text), &parse(&text)) {
                    panic!("{place}\n{difference}\nours   {}\ntheirs {text}", read.text);
                }
                compared += 1;
            }
        }
    }
    assert_eq!(alone, NEWER);
    assert!(compared > 7000, "{compared} compared");
}
