//! More clients than descriptors, and clients that send and do not read: F196, F197.

use std::{
    io::{self, Write},
    thread,
    time::{Duration, Instant},
};

use stratalog::protocol::{
    self,
    messages::fetch::{FetchPartition, FetchRequest, FetchTopic},
    wire::Writer,
};

use crate::{
    connection::{Connection, PATIENCE, Wanted, batch},
    is_full,
    served::{Served, raise_descriptor_limit},
};

const STORAGE_ERROR: i16 = 56;

fn wanted(offset: i64, max_bytes: i32) -> Wanted<'static> {
    Wanted { topic: "t", partition: 0, offset, max_bytes, max_wait_ms: 0, is_committed: false }
}

#[test]
fn f196_without_descriptors_it_waits_and_comes_back() {
    let temp = tempfile::tempdir().unwrap();
    let served = Served::start_with(&temp.path().join("data"), Some(64), &["socket.listen.backlog.size=500"]);
    let mut steady = Connection::new(served.address).unwrap();
    steady.create_topic("t", 1, &[("segment.bytes", "1048576")]).unwrap();
    let idle: Vec<_> = (0..200).map(|_| Connection::new(served.address).unwrap()).collect();
    // Long enough that a loop without a pause would burn most of it.
    let before = served.processor_ticks();
    thread::sleep(Duration::from_secs(2));
    let used = served.processor_ticks() - before;
    assert!(used < 100, "{used} hundredths of a second to do nothing");
    // Who is in is served, rolls among it; a roll that cannot be is an error and nothing worse.
    let mut acknowledged = Vec::new();
    for number in 0..8_u8 {
        let id = steady.send_produce("t", 0, &batch(None, &[vec![number; 400_000]])).unwrap();
        let (code, offset) = steady.produced(id).unwrap();
        assert!(matches!(code, 0 | STORAGE_ERROR), "{code}");
        acknowledged.extend((code == 0).then_some(offset));
    }
    println!("{} of 8 while there were no descriptors", acknowledged.len());
    drop(idle);
    // The same connection, and a new one.
    for mut client in [steady, Connection::new(served.address).unwrap()] {
        // Those that left are noticed one by one.
        let begun = Instant::now();
        let offset = loop {
            let id = client.send_produce("t", 0, &batch(None, &[vec![9; 400_000]])).unwrap();
            let (code, offset) = client.produced(id).unwrap();
            if code == 0 {
                break offset;
            }
            assert!(code == STORAGE_ERROR && begun.elapsed() < PATIENCE, "{code}");
            thread::sleep(Duration::from_millis(20));
        };
        acknowledged.push(offset);
        for offset in &acknowledged {
            let fetched = client.fetch(&wanted(*offset, 1)).unwrap();
            assert_eq!(fetched.code, 0);
            assert!(fetched.bytes.len() > 400_000);
        }
    }
    assert!(acknowledged.is_sorted_by(|one, next| one < next), "{acknowledged:?}");
    assert_eq!(served.stop(), Some(0));
}

/// Sends these bytes over and over until the connection takes no more, `most` times at most. How often all of it went.
fn stuff(client: &Connection, bytes: &[u8], most: usize) -> usize {
    client.stream.set_nonblocking(true).unwrap();
    let (mut at, mut quiet) = (0, 0);
    while at < most * bytes.len() && quiet < 40 {
        match (&client.stream).write(&bytes[at % bytes.len()..]) {
            Ok(count) => (at, quiet) = (at + count, 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                quiet += 1;
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
    client.stream.set_nonblocking(false).unwrap();
    at / bytes.len()
}

fn fetch_frame() -> Vec<u8> {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = FetchTopic { topic: "t", partitions: vec![partition], ..Default::default() };
    let request = FetchRequest { max_bytes: 1 << 20, topics: vec![topic], ..Default::default() };
    let mut writer = Writer::new();
    protocol::write_request(&mut writer, 1, Some("load"), 11, &request).unwrap();
    writer.bytes().to_vec()
}

#[test]
fn f197_who_does_not_read_takes_no_memory() {
    let count = if is_full() { 50 } else { 10 };
    raise_descriptor_limit();
    let temp = tempfile::tempdir().unwrap();
    let served = Served::start(&temp.path().join("data"), &[]);
    let mut steady = Connection::new(served.address).unwrap();
    steady.create_topic("t", 1, &[]).unwrap();
    let id = steady.send_produce("t", 0, &batch(None, &[vec![7; 1_000_000]])).unwrap();
    assert_eq!(steady.produced(id).unwrap(), (0, 0));
    let before = served.held().resident_kib;
    // A thousand answers of a megabyte each; and small batches without end.
    let fetch = fetch_frame();
    let fetching: Vec<_> = (0..count).map(|_| Connection::new(served.address).unwrap()).collect();
    let fetches: Vec<_> = fetching.iter().map(|client| stuff(client, &fetch, 1000)).collect();
    let mut producing = Connection::new(served.address).unwrap();
    producing.send_produce("t", 0, &batch(None, &[vec![7; 100]])).unwrap();
    let produce = {
        let mut writer = Writer::new();
        let batch = batch(None, &[vec![7; 100]]);
        let partition = protocol::messages::produce::PartitionProduceData {
            index: 0,
            records: Some(protocol::wire::Records::Bytes(&batch)),
        };
        let data = protocol::messages::produce::TopicProduceData {
            name: "t",
            partition_data: vec![partition],
            ..Default::default()
        };
        let request = protocol::messages::produce::ProduceRequest {
            acks: 1,
            topic_data: vec![data],
            ..Default::default()
        };
        protocol::write_request(&mut writer, 1, Some("load"), 9, &request).unwrap();
        writer.bytes().to_vec()
    };
    let produced = stuff(&producing, &produce, if is_full() { 5_000_000 } else { 300_000 });
    let held = served.held().resident_kib;
    println!(
        "{count} clients with {} fetches of 1 MB each and one with {produced} batches that read nothing: {} MiB resident, {} MiB before",
        fetches.iter().max().unwrap(),
        held >> 10,
        before >> 10
    );
    // Their buffers are: what was received and not acted on yet.
    assert!(held < before + ((count + 8) << 10), "{held} KiB, {before} KiB before");
    // Others are served, and who begins to read gets all answers.
    let fetched = steady.fetch(&wanted(0, 1)).unwrap();
    assert!(fetched.bytes.len() > 1_000_000);
    let mut late = fetching.into_iter().next().unwrap();
    for _ in 0..fetches[0].min(50) {
        assert!(late.fetched(1).unwrap().bytes.len() > 1_000_000);
    }
}

#[test]
fn f197_who_never_reads_is_hung_up_on() {
    let temp = tempfile::tempdir().unwrap();
    let served = Served::start(&temp.path().join("data"), &["connections.max.idle.ms=1000"]);
    let mut client = Connection::new(served.address).unwrap();
    client.create_topic("t", 1, &[]).unwrap();
    let id = client.send_produce("t", 0, &batch(None, &[vec![7; 1_000_000]])).unwrap();
    assert_eq!(client.produced(id).unwrap(), (0, 0));
    let with_one = served.held().threads;
    stuff(&client, &fetch_frame(), 1000);
    while served.held().threads >= with_one {
        thread::sleep(Duration::from_millis(10));
    }
}
