//! Fetches at borders: F156, F157, F158, F159, F160, F161, F178.

use std::time::{Duration, Instant};

use stratalog::{
    AppendOptions, LogConfig, LogWriter, Offset, Offsets,
    protocol::messages::{
        create_topics::{CreatableTopic, CreateTopicsRequest},
        delete_records::{
            DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
        },
        fetch::{FetchRequest, FetchResponse},
    },
    record::{BatchOptions, Record},
    server::{Server, Settings},
};

use super::{ask, fetch, topics};
use crate::client::{Client, Wanted, batch, batch_with, decode};

/// So long that an answer that only comes for the time fails the test by itself.
const FOR_EVER: i32 = i32::MAX;

fn two_partitions(client: &mut Client) {
    let topic = CreatableTopic { name: "t", num_partitions: 2, replication_factor: 1, ..Default::default() };
    ask(client, 5, &CreateTopicsRequest { topics: vec![topic], ..Default::default() });
}

#[test]
fn f156_a_fetch_waits_as_long_as_it_says_and_for_as_much() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    // Not answered at once again and again: each of these waits its time.
    let begun = Instant::now();
    for _ in 0..3 {
        let read = client.fetch(&Wanted { max_wait_ms: 100, ..Wanted::new("t", 0) });
        assert_eq!((read.code, read.bytes.len()), (0, 0));
    }
    assert!(begun.elapsed() >= Duration::from_millis(300));
    for max_wait_ms in [0, -1, i32::MIN] {
        assert_eq!(client.fetch(&Wanted { max_wait_ms, ..Wanted::new("t", 0) }).code, 0);
    }
    let mut producer = Client::new(server.address());
    let waits = client.send_fetch(11, &Wanted { max_wait_ms: FOR_EVER, ..Wanted::new("t", 0) });
    assert_eq!(producer.produce("t", &batch(&[b"v"])).code, 0);
    assert_eq!(client.fetched(waits, 11).records().len(), 1);
    for (min_bytes, max_wait_ms) in [(0, FOR_EVER), (-1, FOR_EVER), (1, FOR_EVER), (i32::MAX, 50)] {
        let read = client.fetch(&Wanted { min_bytes, max_wait_ms, ..Wanted::new("t", 0) });
        assert_eq!(read.records().len(), 1, "{min_bytes}");
    }
    let wanted = Wanted { min_bytes: 100_000, max_wait_ms: FOR_EVER, ..Wanted::new("t", 0) };
    let waits = client.send_fetch(11, &wanted);
    for _ in 0..2 {
        assert_eq!(producer.produce("t", &batch(&[&[7; 60_000]])).code, 0);
    }
    assert_eq!(client.fetched(waits, 11).records().len(), 3);
}

#[test]
fn f157_every_fetch_is_answered() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    two_partitions(&mut client);
    for (wanted, codes) in [
        (topics(&[]), &[][..]),
        (topics(&[("t", &[])]), &[]),
        (topics(&[("absent", &[])]), &[]),
        (topics(&[("absent", &[(0, 0)])]), &[3]),
        (topics(&[("", &[(0, 0)])]), &[3]),
        (topics(&[("t", &[(9, 0)])]), &[3]),
        (topics(&[("t", &[(-1, 0)])]), &[3]),
        (topics(&[("t", &[(0, 0), (9, 0)])]), &[0, 3]),
        (topics(&[("t", &[(0, 0)]), ("absent", &[(0, 0)]), ("t", &[(1, 0)])]), &[0, 3, 0]),
        (topics(&[("t", &[(0, 1)])]), &[1]),
        (topics(&[("t", &[(0, 0), (1, 7)])]), &[0, 1]),
        (topics(&[("t", &[(0, i64::MAX), (1, i64::MIN)])]), &[1, 1]),
    ] {
        let request =
            FetchRequest { max_wait_ms: FOR_EVER, min_bytes: 1, topics: wanted, ..Default::default() };
        let found: Vec<_> = fetch(&mut client, &request).into_iter().map(|(code, _)| code).collect();
        assert_eq!(found, codes, "{request:?}");
    }
}

#[test]
fn f158_the_first_batch_is_whole_whatever_the_limits() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    two_partitions(&mut client);
    let large = batch(&[&vec![7; 900_000]]);
    assert_eq!(client.produce("t", &large).code, 0);
    let small = batch(&[b"v"]);
    assert_eq!(client.produce("t", &small).code, 0);
    assert_eq!(client.produce("t", &small).code, 0);
    for version in 4..=11 {
        for (total, of_one) in [(512, 0), (512, 1), (512, 512), (0, 512), (i32::MAX, 0), (-1, -1)] {
            let mut wanted = topics(&[("t", &[(1, 0), (0, 0)]), ("t", &[(0, 0)])]);
            for partition in wanted.iter_mut().flat_map(|topic| &mut topic.partitions) {
                partition.partition_max_bytes = of_one;
            }
            let request = FetchRequest { max_bytes: total, topics: wanted, ..Default::default() };
            let body = ask(&mut client, version, &request);
            let told: FetchResponse<'_> = decode(&body, version);
            let partitions = told.responses.iter().flat_map(|topic| &topic.partitions);
            let sizes: Vec<_> = partitions
                .map(|data| data.records.and_then(|records| records.bytes()).unwrap_or_default().len())
                .collect();
            // Only the first partition that has something may go beyond.
            assert_eq!(sizes, [0, large.len(), 0], "{total} {of_one}");
        }
    }
    // Limits that end inside the second and third batch.
    for extra in 0..=2 * small.len() {
        let max_bytes = i32::try_from(large.len() + extra).unwrap();
        let read = client.fetch(&Wanted { max_bytes, ..Wanted::new("t", 0) });
        // As a broker does, the last one may be there in part; a client leaves that out.
        assert_eq!(read.bytes.len(), large.len() + extra);
        assert_eq!(read.records().len(), 1 + extra / small.len());
    }
}

#[test]
fn f159_an_offset_inside_a_batch_gives_that_batch() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    let ten = batch(&[&b"v"[..]; 10]);
    assert_eq!((client.produce("t", &ten).code, client.produce("t", &ten).code), (0, 0));
    let whole = client.fetch(&Wanted::new("t", 0)).bytes;
    for (offset, begin) in [(0, 0), (5, 0), (9, 0), (10, ten.len()), (19, ten.len())] {
        assert_eq!(client.fetch(&Wanted::new("t", offset)).bytes, whole[begin..], "{offset}");
    }
}

#[test]
fn f160_an_offset_in_a_gap_gives_the_next_batch() {
    let temp = tempfile::tempdir().unwrap();
    let settings = || Settings::for_dir(temp.path()).unwrap();
    let server = Server::bind(settings()).unwrap();
    Client::new(server.address()).topic("t");
    assert!(server.shutdown().unwrap());
    // As compaction leaves it: most of the offsets are gone.
    let mut log = LogWriter::open(temp.path().join("t-0"), LogConfig::default()).unwrap();
    let bases = [0, 5, 100, 101, 5000];
    for base in bases {
        let options = BatchOptions { base_offset: Offset::new(base).unwrap(), ..BatchOptions::default() };
        let batch = batch_with(options, &[Record::value_only(base.to_string().as_bytes())]);
        log.append(&batch, AppendOptions { offsets: Offsets::Preserve, ..Default::default() }).unwrap();
    }
    log.close().unwrap();
    let server = Server::bind(settings()).unwrap();
    let mut client = Client::new(server.address());
    for wanted in 0..=5000 {
        if wanted > 110 && wanted < 4990 {
            continue;
        }
        let read = client.fetch(&Wanted::new("t", wanted));
        let next = bases.into_iter().find(|base| *base >= wanted).unwrap();
        assert_eq!(read.records()[0], (next, next.to_string().into_bytes()), "{wanted}");
        assert_eq!(read.high_watermark, 5001);
    }
    assert!(client.fetch(&Wanted::new("t", 5001)).bytes.is_empty());
}

#[test]
fn f161_ends_are_told_right_committed_or_not() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    for (count, end) in [(0, 0), (1, 1), (99, 100)] {
        if count > 0 {
            assert_eq!(client.produce("t", &batch(&vec![&b"v"[..]; count])).code, 0);
        }
        for isolation_level in [0, 1] {
            for offset in [0, end] {
                let read = client.fetch(&Wanted { isolation_level, ..Wanted::new("t", offset) });
                assert_eq!((read.high_watermark, read.stable, read.start), (end, end, 0));
            }
        }
    }
}

#[test]
fn f178_bounds_of_empty_and_cut_logs_are_told() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    let check = |client: &mut Client, start: i64, end: i64| {
        for offset in [-1, 0, 499, 500, 501, i64::MAX] {
            let read = client.fetch(&Wanted { max_wait_ms: 1, ..Wanted::new("t", offset) });
            let is_there = (start..=end).contains(&offset);
            assert_eq!(read.code, i16::from(!is_there), "{offset} of {start} to {end}");
            assert_eq!(read.start, start, "{offset}: where the log starts is told in any case");
            assert!(read.bytes.is_empty() || start < end);
        }
    };
    check(&mut client, 0, 0);
    assert_eq!(client.produce("t", &batch(&vec![&b"v"[..]; 500])).code, 0);
    check(&mut client, 0, 500);
    let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: -1 }];
    let topics = vec![DeleteRecordsTopic { name: "t", partitions }];
    let body = ask(&mut client, 2, &DeleteRecordsRequest { topics, ..Default::default() });
    let told: DeleteRecordsResponse<'_> = decode(&body, 2);
    assert_eq!(told.topics[0].partitions[0].low_watermark, 500);
    check(&mut client, 500, 500);
}
