//! What is asked before anything is produced or read.

use std::collections::BTreeSet;

use stratalog::{
    protocol::{
        ApiKey, Message, Request,
        messages::{
            api_versions::{ApiVersionsRequest, ApiVersionsResponse},
            find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse},
            init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
            metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse},
        },
        wire::Uuid,
    },
    server::Server,
};

use crate::client::{Client, batch, decode};

fn versions(api: ApiKey) -> std::ops::RangeInclusive<i16> {
    let versions = api.advertised().unwrap();
    versions.first..=versions.last
}

#[test]
fn every_version_of_api_versions_is_answered() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    for version in versions(ApiKey::ApiVersions) {
        let request = ApiVersionsRequest {
            client_software_name: "wire",
            client_software_version: "1.0",
            ..Default::default()
        };
        let id = client.send(version, &request);
        let body = client.frame_for(id, ApiKey::ApiVersions, version);
        let told: ApiVersionsResponse<'_> = decode(&body, version);
        assert_eq!(told.error_code, 0);
        let keys: Vec<_> = told.api_keys.iter().map(|api| api.api_key).collect();
        assert_eq!(
            keys,
            [
                0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 29, 30, 31, 32, 33, 35,
                37, 42, 43, 44, 45, 46, 47, 48, 49, 50, 55, 57, 60, 61, 65, 66, 74, 75
            ],
            "what is advertised, is served: see below"
        );
    }
    // A newer client: answered in version 0, with what it can step down to.
    let id = client.send(5, &ApiVersionsRequest::default());
    let body = client.frame_for(id, ApiKey::ApiVersions, 0);
    let told: ApiVersionsResponse<'_> = decode(&body, 0);
    assert_eq!((told.error_code, told.api_keys.len(), told.api_keys[0].max_version), (35, 1, 4));
    let request = ApiVersionsRequest { client_software_name: "not a name!", ..Default::default() };
    let id = client.send(3, &request);
    let body = client.frame_for(id, ApiKey::ApiVersions, 3);
    assert_eq!(decode::<ApiVersionsResponse<'_>>(&body, 3).error_code, 42);
}

fn metadata(
    client: &mut Client,
    version: i16,
    request: &MetadataRequest<'_>,
) -> Vec<(i16, String, Uuid, usize)> {
    let id = client.send(version, request);
    let body = client.frame_for(id, ApiKey::Metadata, version);
    let told: MetadataResponse<'_> = decode(&body, version);
    assert_eq!(told.brokers.len(), 1);
    assert_eq!(i32::from(client.stream.peer_addr().unwrap().port()), told.brokers[0].port);
    assert!(told.controller_id == told.brokers[0].node_id || version == 0);
    let topics = told.topics.iter().map(|topic| {
        let name = topic.name.clone().unwrap_or_default().into_owned();
        (topic.error_code, name, topic.topic_id, topic.partitions.len())
    });
    topics.collect()
}

#[test]
fn metadata_makes_topics_and_finds_them_in_every_version() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    for version in versions(ApiKey::Metadata) {
        let name = format!("t{version}");
        let one = |name| MetadataRequestTopic { name: Some(name), ..Default::default() };
        let made = metadata(
            &mut client,
            version,
            &MetadataRequest { topics: Some(vec![one(&name)]), ..Default::default() },
        );
        assert_eq!((made[0].0, made[0].1.as_str(), made[0].3), (0, name.as_str(), 1), "version {version}");
        let all = if version == 0 { Some(Vec::new()) } else { None };
        let all = metadata(&mut client, version, &MetadataRequest { topics: all, ..Default::default() });
        assert_eq!(all.len(), usize::try_from(version).unwrap() + 1);
        if version >= 12 {
            let by_id = MetadataRequestTopic { topic_id: made[0].2, name: None };
            let unknown = MetadataRequestTopic { topic_id: Uuid([7; 16]), name: None };
            let request = MetadataRequest { topics: Some(vec![by_id, unknown]), ..Default::default() };
            let found = metadata(&mut client, version, &request);
            assert_eq!((found[0].1.as_str(), found[1].0), (name.as_str(), 100));
        }
    }
    let none = MetadataRequest {
        topics: Some(vec![
            MetadataRequestTopic { name: Some("absent"), ..Default::default() },
            MetadataRequestTopic { name: Some("not/a/name"), ..Default::default() },
        ]),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    let found = metadata(&mut client, 9, &none);
    assert_eq!((found[0].0, found[1].0), (3, 17));
}

#[test]
fn list_offsets_finds_ends_and_times() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    for version in versions(ApiKey::ListOffsets) {
        assert_eq!(client.list_offset(version, "absent", -1).0, 3);
        assert_eq!(client.list_offset(version, "t", -1), (0, -1, 0));
    }
    let before = crate::client::now().millis();
    assert_eq!(client.produce("t", &batch(&[b"a", b"b"])).code, 0);
    for version in versions(ApiKey::ListOffsets) {
        assert_eq!(client.list_offset(version, "t", -1).2, 2);
        assert_eq!(client.list_offset(version, "t", -2).2, 0);
        assert_eq!(client.list_offset(version, "t", before).2, 0);
        assert_eq!(client.list_offset(version, "t", before + 1_000_000).2, -1);
        // Known from version 7 on.
        let by_largest = client.list_offset(version, "t", -3);
        assert_eq!((by_largest.0, by_largest.2), if version < 7 { (35, -1) } else { (0, 0) });
    }
}

#[test]
fn producer_ids_are_given_once_and_the_coordinator_is_here() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    let mut ids = BTreeSet::new();
    for version in versions(ApiKey::InitProducerId) {
        let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
        let id = client.send(version, &request);
        let body = client.frame_for(id, ApiKey::InitProducerId, version);
        let told: InitProducerIdResponse = decode(&body, version);
        assert_eq!((told.error_code, told.producer_epoch), (0, 0));
        assert!(ids.insert(told.producer_id));
        let request = InitProducerIdRequest { transactional_id: Some("x"), ..Default::default() };
        let id = client.send(version, &request);
        let body = client.frame_for(id, ApiKey::InitProducerId, version);
        assert_eq!(decode::<InitProducerIdResponse>(&body, version).error_code, 15);
    }
    for version in versions(ApiKey::FindCoordinator) {
        let request = FindCoordinatorRequest { key: "g", coordinator_keys: vec!["g"], ..Default::default() };
        let id = client.send(version, &request);
        let body = client.frame_for(id, ApiKey::FindCoordinator, version);
        let told: FindCoordinatorResponse<'_> = decode(&body, version);
        let port = if version >= 4 { told.coordinators[0].port } else { told.port };
        assert_eq!(port, i32::from(server.address().port()));
    }
}

#[test]
fn what_is_not_advertised_closes_the_connection() {
    fn closes<'a, R: Request<'a>>(server: &Server, version: i16, request: &R) {
        let mut client = Client::new(server.address());
        client.send(version, request);
        assert!(client.is_closed(), "{:?} {version}", <R as Message<'a>>::API);
    }
    let server = Server::ephemeral().unwrap();
    closes(&server, 0, &stratalog::protocol::messages::sasl_handshake::SaslHandshakeRequest::default());
    closes(&server, 6, &InitProducerIdRequest::default());
    // Others do not mind.
    Client::new(server.address()).topic("t");
}
