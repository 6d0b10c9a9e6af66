//! What is asked first, and what nobody should ask: F151, F153, F165, F167, F173, F179.

use std::io::Write;

use stratalog::{
    protocol::{
        self, ApiKey,
        messages::{
            api_versions::{ApiVersionsRequest, ApiVersionsResponse},
            create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic},
            delete_records::{
                DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
            },
            describe_cluster::{DescribeClusterRequest, DescribeClusterResponse},
            fetch::{FetchRequest, FetchResponse},
            find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse},
            list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic},
            metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse},
            offset_for_leader_epoch::{
                OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
                OffsetForLeaderTopic,
            },
            produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData},
        },
        wire::{Records, Uuid, Writer},
    },
    server::Server,
};

use super::{ask, server_with, topics};
use crate::client::{Client, batch, decode};

/// A frame with a request's header and nothing behind it.
fn bare(api_key: i16, version: i16) -> Vec<u8> {
    let mut frame = 10_u32.to_be_bytes().to_vec();
    frame.extend(api_key.to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend(77_i32.to_be_bytes());
    frame.extend((-1_i16).to_be_bytes());
    frame
}

#[test]
fn f151_unknown_versions_of_api_versions_are_told_the_known_ones() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    for version in [5, 99, i16::MAX] {
        // The header of these has tagged fields, none here.
        let mut frame = bare(18, version);
        frame.push(0);
        frame[3] += 1;
        client.stream.write_all(&frame).unwrap();
        let body = client.frame_for(77, ApiKey::ApiVersions, 0);
        let told: ApiVersionsResponse<'_> = decode(&body, 0);
        let own = told.api_keys.iter().find(|api| api.api_key == 18).unwrap();
        assert_eq!((told.error_code, own.min_version, own.max_version), (35, 0, 4));
    }
    // On the same connection, with the header that has no tagged fields.
    let request = ApiVersionsRequest {
        client_software_name: "wire",
        client_software_version: "1",
        ..Default::default()
    };
    let id = client.send(3, &request);
    let frame = client.frame();
    assert_eq!(frame[..4], id.to_be_bytes());
    assert_eq!(decode::<ApiVersionsResponse<'_>>(&frame[4..], 3).error_code, 0);
}

#[test]
fn f153_errors_are_told_in_the_version_that_asked() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    let id = Uuid([9; 16]);
    let sent = batch(&[b"v"]);
    for api in ApiKey::ALL {
        let Some(versions) = api.advertised() else { continue };
        for version in versions.first..=versions.last {
            // Decoded to the last byte, and the next request is answered as well.
            let client = &mut client;
            match api {
                ApiKey::Produce if version >= 3 => {
                    let partition = PartitionProduceData { index: 0, records: Some(Records::Bytes(&sent)) };
                    let topic =
                        TopicProduceData { name: "absent", topic_id: id, partition_data: vec![partition] };
                    let request = ProduceRequest { acks: 1, topic_data: vec![topic], ..Default::default() };
                    let body = ask(client, version, &request);
                    let told: ProduceResponse<'_> = decode(&body, version);
                    let code = told.responses[0].partition_responses[0].error_code;
                    assert_eq!(code, if version >= 13 { 100 } else { 3 }, "{api} {version}");
                }
                ApiKey::Fetch => {
                    let mut topics = topics(&[("absent", &[(0, 0)])]);
                    topics[0].topic_id = if version >= 13 { id } else { Uuid::ZERO };
                    let request = FetchRequest { topics, ..Default::default() };
                    let body = ask(client, version, &request);
                    let told: FetchResponse<'_> = decode(&body, version);
                    let code = told.responses[0].partitions[0].error_code;
                    assert_eq!(code, if version >= 13 { 100 } else { 3 }, "{api} {version}");
                }
                ApiKey::ListOffsets => {
                    let partitions = vec![ListOffsetsPartition::default()];
                    let topics = vec![ListOffsetsTopic { name: "absent", partitions }];
                    let body = ask(client, version, &ListOffsetsRequest { topics, ..Default::default() });
                    let told: ListOffsetsResponse<'_> = decode(&body, version);
                    assert_eq!(told.topics[0].partitions[0].error_code, 3, "{api} {version}");
                }
                ApiKey::Metadata => {
                    let topics = vec![MetadataRequestTopic { name: Some("a/b"), ..Default::default() }];
                    let body =
                        ask(client, version, &MetadataRequest { topics: Some(topics), ..Default::default() });
                    let told: MetadataResponse<'_> = decode(&body, version);
                    assert_eq!(told.topics[0].error_code, 17, "{api} {version}");
                }
                ApiKey::CreatePartitions => {
                    let topics =
                        vec![CreatePartitionsTopic { name: "absent", count: 2, ..Default::default() }];
                    let body =
                        ask(client, version, &CreatePartitionsRequest { topics, ..Default::default() });
                    let told: CreatePartitionsResponse<'_> = decode(&body, version);
                    assert_eq!(told.results[0].error_code, 3, "{api} {version}");
                }
                ApiKey::DeleteRecords => {
                    let partitions = vec![DeleteRecordsPartition::default()];
                    let topics = vec![DeleteRecordsTopic { name: "absent", partitions }];
                    let body = ask(client, version, &DeleteRecordsRequest { topics, ..Default::default() });
                    let told: DeleteRecordsResponse<'_> = decode(&body, version);
                    assert_eq!(told.topics[0].partitions[0].error_code, 3, "{api} {version}");
                }
                ApiKey::OffsetForLeaderEpoch => {
                    let partitions = vec![OffsetForLeaderPartition::default()];
                    let topics = vec![OffsetForLeaderTopic { topic: "absent", partitions }];
                    let request = OffsetForLeaderEpochRequest { topics, ..Default::default() };
                    let body = ask(client, version, &request);
                    let told: OffsetForLeaderEpochResponse<'_> = decode(&body, version);
                    assert_eq!(told.topics[0].partitions[0].error_code, 3, "{api} {version}");
                }
                // In `admin`, `apis` and `settings`, in each version too.
                _ => {}
            }
        }
    }
}

#[test]
fn f165_nobody_gets_a_session_or_goes_on_with_one() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    for version in 7..=12 {
        for (session_id, session_epoch, code) in [(0, 0, 0), (0, -1, 0), (123, 1, 70), (0, 5, 70)] {
            let request = FetchRequest {
                session_id,
                session_epoch,
                topics: topics(&[("t", &[(0, 0)])]),
                ..Default::default()
            };
            let body = ask(&mut client, version, &request);
            let told: FetchResponse<'_> = decode(&body, version);
            assert_eq!((told.error_code, told.session_id), (code, 0), "{session_id} {session_epoch}");
            assert_eq!(told.responses.len(), usize::from(code == 0));
        }
    }
}

#[test]
fn f167_versions_and_keys_that_are_not_served_close_their_own_connection() {
    let server = Server::ephemeral().unwrap();
    let mut steady = Client::new(server.address());
    steady.topic("t");
    let mut asked = vec![(500, 0), (-1, 0), (i16::MAX, i16::MAX), (i16::MIN, -1)];
    for api in ApiKey::ALL.iter().filter(|api| **api != ApiKey::ApiVersions) {
        match api.advertised() {
            Some(versions) => {
                asked.extend([versions.last + 1, i16::MAX, -1, i16::MIN].map(|version| (api.key(), version)));
                asked.extend((versions.first > 0).then_some((api.key(), versions.first - 1)));
            }
            None => asked.push((api.key(), 0)),
        }
    }
    for (api_key, version) in asked {
        let mut client = Client::new(server.address());
        client.stream.write_all(&bare(api_key, version)).unwrap();
        assert!(client.is_closed(), "API {api_key} version {version}");
    }
    assert_eq!(steady.produce("t", &batch(&[b"v"])).base_offset, 0);
}

#[test]
fn f173_clients_are_told_an_address_that_leads_somewhere() {
    let told = |server: &Server| {
        let mut client = Client::new(([127, 0, 0, 1], server.address().port()).into());
        let body = ask(&mut client, 9, &MetadataRequest::default());
        let metadata: MetadataResponse<'_> = decode(&body, 9);
        let broker = &metadata.brokers[0];
        assert_eq!(metadata.controller_id, broker.node_id);
        let address = (broker.host.clone().into_owned(), broker.port);
        let body = ask(&mut client, 3, &FindCoordinatorRequest { key: "g", ..Default::default() });
        let coordinator: FindCoordinatorResponse<'_> = decode(&body, 3);
        assert_eq!((coordinator.host.into_owned(), coordinator.port), address);
        let body = ask(&mut client, 0, &DescribeClusterRequest::default());
        let cluster: DescribeClusterResponse<'_> = decode(&body, 0);
        assert_eq!((cluster.brokers[0].host.clone().into_owned(), cluster.brokers[0].port), address);
        address
    };
    let temp = tempfile::tempdir().unwrap();
    let set = ["advertised.listeners=PLAINTEXT://broker.example:19092"];
    let server = server_with(temp.path(), "0.0.0.0", &set);
    assert_eq!(told(&server), ("broker.example".to_owned(), 19092));
    drop(server);
    // Nothing set: the address that the client came by, never that of all.
    for host in ["0.0.0.0", ""] {
        let server = server_with(temp.path(), host, &[]);
        assert_eq!(told(&server), ("127.0.0.1".to_owned(), i32::from(server.address().port())), "{host}");
    }
    // No topic asked for is not all topics, and what is asked for twice is told.
    let server = server_with(temp.path(), "127.0.0.1", &["auto.create.topics.enable=false"]);
    let mut client = Client::new(server.address());
    for version in 1..=9 {
        let body =
            ask(&mut client, version, &MetadataRequest { topics: Some(Vec::new()), ..Default::default() });
        assert!(decode::<MetadataResponse<'_>>(&body, version).topics.is_empty());
        let topics = vec![MetadataRequestTopic { name: Some("x"), ..Default::default() }; 2];
        let body = ask(&mut client, version, &MetadataRequest { topics: Some(topics), ..Default::default() });
        let told: MetadataResponse<'_> = decode(&body, version);
        assert!(matches!(told.topics.len(), 1 | 2));
        assert!(told.topics.iter().all(|topic| topic.error_code == 3));
    }
}

#[test]
fn f179_correlation_ids_mean_nothing() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    let ids = [0, -1, i32::MIN, i32::MAX, 5, 5, 4];
    let mut writer = Writer::new();
    for id in ids {
        protocol::write_request(&mut writer, id, None, 9, &MetadataRequest::default()).unwrap();
    }
    client.stream.write_all(writer.bytes()).unwrap();
    for id in ids {
        client.frame_for(id, ApiKey::Metadata, 9);
    }
}
