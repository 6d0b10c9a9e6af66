//! Topics made and removed, records deleted, offsets committed.

use stratalog::{
    protocol::{
        ApiKey,
        messages::{
            create_topics::{
                CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
                CreateTopicsResponse,
            },
            delete_records::{
                DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
            },
            delete_topics::{DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse},
            describe_cluster::{DescribeClusterRequest, DescribeClusterResponse},
            offset_commit::{
                OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
                OffsetCommitResponse,
            },
            offset_fetch::{
                OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic,
                OffsetFetchRequestTopics, OffsetFetchResponse,
            },
            offset_for_leader_epoch::{
                OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
                OffsetForLeaderTopic,
            },
        },
        wire::Uuid,
    },
    record::BatchRef,
    server::{Server, Settings},
};

use crate::client::{Client, Wanted, batch, decode};

fn versions(api: ApiKey) -> std::ops::RangeInclusive<i16> {
    let versions = api.advertised().unwrap();
    versions.first..=versions.last
}

fn create(
    client: &mut Client,
    version: i16,
    topics: Vec<CreatableTopic<'_>>,
    validate_only: bool,
) -> Vec<(String, i16, i32)> {
    let id = client.send(version, &CreateTopicsRequest { topics, validate_only, ..Default::default() });
    let body = client.frame_for(id, ApiKey::CreateTopics, version);
    let told: CreateTopicsResponse<'_> = decode(&body, version);
    told.topics
        .iter()
        .map(|topic| (topic.name.clone().into_owned(), topic.error_code, topic.num_partitions))
        .collect()
}

fn plain(name: &str) -> CreatableTopic<'_> {
    CreatableTopic { name, num_partitions: 2, replication_factor: 1, ..Default::default() }
}

fn delete(client: &mut Client, version: i16, name: &str) -> i16 {
    let request = DeleteTopicsRequest {
        topics: vec![DeleteTopicState { name: Some(name), ..Default::default() }],
        topic_names: vec![name],
        ..Default::default()
    };
    let id = client.send(version, &request);
    let body = client.frame_for(id, ApiKey::DeleteTopics, version);
    let told: DeleteTopicsResponse<'_> = decode(&body, version);
    assert_eq!(told.responses[0].name.as_deref(), Some(name));
    told.responses[0].error_code
}

#[test]
fn topics_are_made_and_deleted_in_every_version() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    for version in versions(ApiKey::CreateTopics) {
        assert_eq!(create(&mut client, version, vec![plain("t")], true)[0].1, 0);
        let made = create(&mut client, version, vec![plain("t")], false);
        assert_eq!(made, [("t".to_owned(), 0, if version < 5 { -1 } else { 2 })]);
        assert_eq!(create(&mut client, version, vec![plain("t")], false)[0].1, 36);
        let by = version.min(6);
        assert_eq!((delete(&mut client, by, "t"), delete(&mut client, by, "t")), (0, 3));
    }
    let config = |name, value| CreatableTopicConfig { name, value: Some(value) };
    let assigned = |broker_ids: &[i32]| CreatableTopic {
        name: "assigned",
        num_partitions: -1,
        replication_factor: -1,
        assignments: vec![CreatableReplicaAssignment { partition_index: 0, broker_ids: broker_ids.to_vec() }],
        ..Default::default()
    };
    let told = create(
        &mut client,
        7,
        vec![
            plain("good"),
            plain("twice"),
            plain("twice"),
            plain("no/name"),
            CreatableTopic { num_partitions: 0, ..plain("none") },
            CreatableTopic { replication_factor: 3, ..plain("copies") },
            CreatableTopic { configs: vec![config("nonsense", "1")], ..plain("config") },
            assigned(&[7]),
        ],
        false,
    );
    let codes: Vec<_> = told.iter().map(|(_, code, _)| *code).collect();
    assert_eq!(codes, [0, 42, 17, 37, 38, 40, 39]);
    assert_eq!(create(&mut client, 7, vec![assigned(&[1])], false)[0].1, 0);
    // By id, and what waits for records of a topic that goes is told.
    let id = client.topic("good");
    let mut consumer = Client::new(server.address());
    let waits = consumer.send_fetch(11, &Wanted { max_wait_ms: 600_000, ..Wanted::new("good", 0) });
    let by_id = DeleteTopicsRequest {
        topics: vec![
            DeleteTopicState { name: None, topic_id: id },
            DeleteTopicState { name: None, topic_id: Uuid([3; 16]) },
        ],
        ..Default::default()
    };
    let request = client.send(6, &by_id);
    let body = client.frame_for(request, ApiKey::DeleteTopics, 6);
    let told: DeleteTopicsResponse<'_> = decode(&body, 6);
    assert_eq!((told.responses[0].error_code, told.responses[1].error_code), (0, 100));
    // Not there any more; or, for a moment, not to be had here: either way the client asks for the metadata.
    assert!(matches!(consumer.fetched(waits, 11).code, 3 | 6));
}

#[test]
fn old_records_are_deleted_and_epochs_end() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    for _ in 0..5 {
        client.produce("t", &batch(&[b"v"]));
    }
    for (version, offset) in versions(ApiKey::DeleteRecords).zip([1, 2, 3]) {
        let mut ask = |partition_index, offset| {
            let partitions = vec![DeleteRecordsPartition { partition_index, offset }];
            let topics = vec![DeleteRecordsTopic { name: "t", partitions }];
            let id = client.send(version, &DeleteRecordsRequest { topics, ..Default::default() });
            let body = client.frame_for(id, ApiKey::DeleteRecords, version);
            let told: DeleteRecordsResponse<'_> = decode(&body, version);
            let told = &told.topics[0].partitions[0];
            (told.error_code, told.low_watermark)
        };
        assert_eq!((ask(0, offset), ask(0, 9).0, ask(4, 0).0), ((0, offset), 1, 3));
    }
    assert_eq!(client.fetch(&Wanted::new("t", 0)).code, 1);
    let left = client.fetch(&Wanted::new("t", 3));
    assert_eq!(left.start, 3);
    let epoch = BatchRef::parse(&left.bytes).unwrap().leader_epoch();
    for version in versions(ApiKey::OffsetForLeaderEpoch) {
        let partitions = vec![
            OffsetForLeaderPartition { partition: 0, leader_epoch: epoch, ..Default::default() },
            OffsetForLeaderPartition { partition: 8, leader_epoch: 0, ..Default::default() },
        ];
        let topics = vec![OffsetForLeaderTopic { topic: "t", partitions }];
        let id = client.send(version, &OffsetForLeaderEpochRequest { topics, ..Default::default() });
        let body = client.frame_for(id, ApiKey::OffsetForLeaderEpoch, version);
        let told: OffsetForLeaderEpochResponse<'_> = decode(&body, version);
        let ends: Vec<_> =
            told.topics[0].partitions.iter().map(|end| (end.error_code, end.end_offset)).collect();
        assert_eq!(ends, [(0, 5), (3, -1)]);
    }
    for version in versions(ApiKey::DescribeCluster) {
        let id = client.send(version, &DescribeClusterRequest::default());
        let body = client.frame_for(id, ApiKey::DescribeCluster, version);
        let told: DescribeClusterResponse<'_> = decode(&body, version);
        assert_eq!((told.brokers.len(), told.controller_id), (1, told.brokers[0].broker_id));
        assert!(!told.cluster_id.is_empty());
    }
}

fn commit(
    client: &mut Client,
    version: i16,
    (name, topic_id): (&str, Uuid),
    offset: i64,
    generation: i32,
) -> i16 {
    let partition = OffsetCommitRequestPartition {
        committed_offset: offset,
        committed_metadata: Some("note"),
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: "g",
        generation_id_or_member_epoch: generation,
        topics: vec![OffsetCommitRequestTopic { name, topic_id, partitions: vec![partition] }],
        ..Default::default()
    };
    let id = client.send(version, &request);
    let body = client.frame_for(id, ApiKey::OffsetCommit, version);
    decode::<OffsetCommitResponse<'_>>(&body, version).topics[0].partitions[0].error_code
}

/// Code, offset and note.
fn committed(
    client: &mut Client,
    version: i16,
    (name, topic_id): (&str, Uuid),
    group: &str,
) -> (i16, i64, String) {
    let request = OffsetFetchRequest {
        group_id: group,
        topics: Some(vec![OffsetFetchRequestTopic { name, partition_indexes: vec![0] }]),
        groups: vec![OffsetFetchRequestGroup {
            group_id: group,
            topics: Some(vec![OffsetFetchRequestTopics { name, topic_id, partition_indexes: vec![0] }]),
            ..Default::default()
        }],
        ..Default::default()
    };
    let id = client.send(version, &request);
    let body = client.frame_for(id, ApiKey::OffsetFetch, version);
    let told: OffsetFetchResponse<'_> = decode(&body, version);
    if version <= 7 {
        let told = &told.topics[0].partitions[0];
        (told.error_code, told.committed_offset, told.metadata.clone().unwrap_or_default().into_owned())
    } else {
        let told = &told.groups[0].topics[0].partitions[0];
        (told.error_code, told.committed_offset, told.metadata.clone().unwrap_or_default().into_owned())
    }
}

#[test]
fn committed_offsets_come_back_in_every_version_and_after_a_restart() {
    let temp = tempfile::tempdir().unwrap();
    let settings = || Settings::for_dir(temp.path()).unwrap();
    let server = Server::bind(settings()).unwrap();
    let mut client = Client::new(server.address());
    let topic_id = client.topic("t");
    let topic = |version| if version >= 10 { ("", topic_id) } else { ("t", Uuid::ZERO) };
    for version in versions(ApiKey::OffsetCommit) {
        assert_eq!(commit(&mut client, version, topic(version), i64::from(version), -1), 0, "{version}");
        assert_eq!(commit(&mut client, version, topic(version), 99, 5), 25, "no member of the group");
    }
    assert_eq!(commit(&mut client, 9, ("absent", Uuid::ZERO), 1, -1), 3);
    for version in versions(ApiKey::OffsetFetch) {
        let found = committed(&mut client, version, topic(version), "g");
        assert_eq!(found, (0, 10, "note".to_owned()), "{version}");
        assert_eq!(committed(&mut client, version, topic(version), "other").1, -1);
    }
    assert!(server.shutdown().unwrap());
    let server = Server::bind(settings()).unwrap();
    let mut client = Client::new(server.address());
    assert_eq!(committed(&mut client, 7, ("t", Uuid::ZERO), "g").1, 10);
    // With the topic its offsets go.
    assert_eq!(delete(&mut client, 6, "t"), 0);
    client.topic("t");
    assert_eq!(committed(&mut client, 7, ("t", Uuid::ZERO), "g").1, -1);
}
