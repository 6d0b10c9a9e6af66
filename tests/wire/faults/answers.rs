//! One answer to each request, in their order, and none where none is wanted: F154, F155, F163, F186.

use std::{io::Write, thread};

use stratalog::{
    protocol::{
        self, ApiKey,
        messages::{
            api_versions::ApiVersionsRequest,
            create_topics::{CreatableTopic, CreateTopicsRequest, CreateTopicsResponse},
            init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
            metadata::MetadataRequest,
            produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData},
        },
        wire::{Records, Writer},
    },
    server::{Server, Settings},
};

use super::ask;
use crate::client::{Client, Wanted, batch, decode};

fn put_produce(writer: &mut Writer, id: i32, acks: i16, (topic, index): (&str, i32), batch: &[u8]) {
    let partition = PartitionProduceData { index, records: Some(Records::Bytes(batch)) };
    let data = TopicProduceData { name: topic, partition_data: vec![partition], ..Default::default() };
    let request =
        ProduceRequest { transactional_id: None, acks, topic_data: vec![data], ..Default::default() };
    protocol::write_request(writer, id, None, 8, &request).unwrap();
}

#[test]
fn f154_who_wants_no_answer_gets_none() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    let sent = batch(&[b"v"]);
    let mut writer = Writer::new();
    for round in 0..50 {
        put_produce(&mut writer, -round, 0, ("t", 0), &sent);
        protocol::write_request(&mut writer, round, None, 9, &MetadataRequest::default()).unwrap();
    }
    client.stream.write_all(writer.bytes()).unwrap();
    for round in 0..50 {
        client.frame_for(round, ApiKey::Metadata, 9);
    }
    // A refused one ends the connection; what was asked before it is answered, and nothing that was asked behind.
    let mut writer = Writer::new();
    put_produce(&mut writer, 1, 0, ("t", 0), &sent);
    protocol::write_request(&mut writer, 2, None, 0, &ApiVersionsRequest::default()).unwrap();
    put_produce(&mut writer, 3, -1, ("t", 0), &sent);
    put_produce(&mut writer, 4, 0, ("absent", 0), &sent);
    protocol::write_request(&mut writer, 5, None, 9, &MetadataRequest::default()).unwrap();
    client.stream.write_all(writer.bytes()).unwrap();
    client.frame_for(2, ApiKey::ApiVersions, 0);
    let body = client.frame_for(3, ApiKey::Produce, 8);
    let told: ProduceResponse<'_> = decode(&body, 8);
    let told = &told.responses[0].partition_responses[0];
    assert_eq!((told.error_code, told.base_offset), (0, 51));
    assert!(client.is_closed());
}

#[test]
fn f155_answers_come_in_the_order_of_the_requests() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    let topic = CreatableTopic { name: "t", num_partitions: 5, replication_factor: 1, ..Default::default() };
    let body = ask(&mut client, 5, &CreateTopicsRequest { topics: vec![topic], ..Default::default() });
    assert_eq!(decode::<CreateTopicsResponse<'_>>(&body, 5).topics[0].error_code, 0);
    // The first one waits, and those behind it would be done at once.
    let waits = client.send_fetch(11, &Wanted { max_wait_ms: 300, ..Wanted::new("t", 0) });
    let behind = [(); 99].map(|()| client.send(9, &MetadataRequest::default()));
    assert_eq!(client.fetched(waits, 11).code, 0);
    for id in behind {
        client.frame_for(id, ApiKey::Metadata, 9);
    }
    let sent = batch(&[b"v"]);
    let mut writer = Writer::new();
    for id in 0..50 {
        put_produce(&mut writer, id, if id % 2 == 0 { 1 } else { -1 }, ("t", id % 7), &sent);
    }
    client.stream.write_all(writer.bytes()).unwrap();
    for id in 0..50 {
        let body = client.frame_for(id, ApiKey::Produce, 8);
        let told: ProduceResponse<'_> = decode(&body, 8);
        let told = &told.responses[0].partition_responses[0];
        assert_eq!((told.index, told.error_code), (id % 7, if id % 7 < 5 { 0 } else { 3 }));
        assert_eq!(told.base_offset, if id % 7 < 5 { i64::from(id / 7) } else { -1 });
    }
}

#[test]
fn f163_producer_ids_are_given_once_over_restarts_and_none_for_transactions() {
    let temp = tempfile::tempdir().unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let server = Server::bind(Settings::for_dir(temp.path()).unwrap()).unwrap();
        let mut client = Client::new(server.address());
        for _ in 0..5 {
            let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
            let body = ask(&mut client, 4, &request);
            let told: InitProducerIdResponse = decode(&body, 4);
            assert_eq!((told.error_code, told.producer_epoch), (0, 0));
            ids.push(told.producer_id);
        }
    }
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
}

#[test]
fn f186_what_was_acknowledged_is_served_at_once() {
    let server = Server::ephemeral().unwrap();
    Client::new(server.address()).topic("t");
    thread::scope(|scope| {
        for name in 0..4_u8 {
            let server = &server;
            scope.spawn(move || {
                let mut producer = Client::new(server.address());
                let mut consumer = Client::new(server.address());
                for number in 0..100_u8 {
                    let told = producer.produce("t", &batch(&[&[name, number]]));
                    assert_eq!(told.code, 0);
                    assert!(consumer.list_offset(5, "t", -1).2 > told.base_offset);
                    let read = consumer.fetch(&Wanted::new("t", told.base_offset));
                    assert_eq!(read.records().first(), Some(&(told.base_offset, vec![name, number])));
                }
            });
        }
    });
}
