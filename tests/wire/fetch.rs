//! Batches out.

use std::{fs, path::Path, thread, time::Duration};

use stratalog::{
    LogReader, Offset, ReadOptions,
    protocol::ApiKey,
    record::Batches,
    server::{Server, Settings},
};

use crate::client::{Client, Wanted, batch};

#[test]
fn every_version_reads_the_same() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    let topic_id = client.topic("t");
    let sent = [batch(&[b"a", b"b", b"c"]), batch(&[b"d"])];
    for sent in &sent {
        assert_eq!(client.produce("t", sent).code, 0);
    }
    for version in ApiKey::Fetch.advertised().map(|versions| versions.first..=versions.last).unwrap() {
        // An offset inside a batch gives that batch whole.
        let mut wanted = Wanted::new("t", 1);
        if version >= 13 {
            (wanted.topic, wanted.topic_id) = ("", topic_id);
        }
        for isolation_level in [0, 1] {
            wanted.isolation_level = isolation_level;
            let id = client.send_fetch(version, &wanted);
            let read = client.fetched(id, version);
            assert_eq!((read.code, read.high_watermark, read.stable), (0, 4, 4), "{version}");
            assert_eq!(read.has_aborted, isolation_level == 1);
            assert_eq!(read.session_id, 0);
            let values: Vec<_> = read.records().into_iter().map(|(_, value)| value).collect();
            assert_eq!(values, [b"a", b"b", b"c", b"d"]);
        }
    }
    let at_end = client.fetch(&Wanted::new("t", 4));
    assert_eq!((at_end.code, at_end.bytes.len(), at_end.start), (0, 0, 0));
    assert_eq!(client.fetch(&Wanted::new("t", 5)).code, 1);
    assert_eq!(client.fetch(&Wanted::new("t", -1)).code, 1);
    assert_eq!(client.fetch(&Wanted::new("absent", 0)).code, 3);
    assert_eq!(client.fetch(&Wanted { partition: 9, ..Wanted::new("t", 0) }).code, 3);
    let unknown = Wanted { topic_id: stratalog::protocol::wire::Uuid([9; 16]), ..Wanted::new("", 0) };
    let id = client.send_fetch(13, &unknown);
    assert_eq!(client.fetched(id, 13).code, 100);
    // No session is given, so none can be gone on with.
    assert_eq!(client.fetch(&Wanted { session_epoch: 0, ..Wanted::new("t", 0) }).session_id, 0);
    assert_eq!(client.fetch(&Wanted { session_epoch: 3, ..Wanted::new("t", 0) }).whole_code, 70);
    // The first batch is whole, whatever the limit.
    let little = client.fetch(&Wanted { max_bytes: 1, ..Wanted::new("t", 0) });
    assert_eq!(little.records().len(), 3);
}

/// A directory of a broker with transactions of three producers, fetched in pieces of all sizes: each answer lists the
/// aborted ones that reach into its bytes, and none that begin behind them.
#[test]
fn aborted_transactions_are_those_of_what_is_sent() {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kafka/4.4.0/transactions/transactions-0");
    let temp = tempfile::tempdir().unwrap();
    let partition = temp.path().join("transactions-0");
    fs::create_dir(&partition).unwrap();
    for entry in fs::read_dir(fixture).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), partition.join(entry.file_name())).unwrap();
    }
    let server = Server::bind(Settings::for_dir(temp.path()).unwrap()).unwrap();
    let mut client = Client::new(server.address());
    let reader = LogReader::open(&partition, ReadOptions::default()).unwrap();
    let (mut listed, mut left_out) = (0, 0);
    for max_bytes in [1, 300, 1000, 4000, 20_000] {
        let mut offset = reader.start().value();
        loop {
            let wanted = Wanted { max_bytes, isolation_level: 1, ..Wanted::new("transactions", offset) };
            let read = client.fetch(&wanted);
            assert_eq!(read.code, 0);
            let (mut whole_bytes, mut end) = (0, offset);
            for batch in Batches::new(&read.bytes).map_while(Result::ok) {
                whole_bytes += batch.as_bytes().len();
                end = batch.last_offset().value() + 1;
            }
            if whole_bytes == 0 {
                break;
            }
            // A batch that is there in part begins there at the earliest.
            let last = if whole_bytes < read.bytes.len() { end } else { end - 1 };
            let at = |offset| Offset::new(offset).unwrap();
            let all = reader.aborted_transactions(at(offset)..at(read.stable)).unwrap();
            for aborted in &all {
                let told = (aborted.first_offset.value(), aborted.producer_id);
                if aborted.first_offset.value() < end {
                    assert!(read.aborted.contains(&told), "{told:?} in {offset}..{end}");
                }
            }
            for (first, _) in &read.aborted {
                assert!(*first <= last, "{first} is listed for {offset}..={last}");
            }
            listed += read.aborted.len();
            left_out += all.len() - read.aborted.len();
            offset = end;
        }
    }
    assert!(listed > 0 && left_out > 0, "{listed} {left_out}");
}

#[test]
fn a_long_poll_is_answered_when_there_is_enough() {
    let server = Server::ephemeral().unwrap();
    let mut consumer = Client::new(server.address());
    let mut producer = Client::new(server.address());
    consumer.topic("t");
    let wanted = Wanted { max_wait_ms: 600_000, min_bytes: 150, ..Wanted::new("t", 0) };
    let id = consumer.send_fetch(11, &wanted);
    // Each of these is about 70 bytes: the third makes it enough.
    for _ in 0..3 {
        consumer.stream.set_nonblocking(true).unwrap();
        assert!(consumer.stream.peek(&mut [0]).is_err(), "nothing is there yet");
        consumer.stream.set_nonblocking(false).unwrap();
        assert_eq!(producer.produce("t", &batch(&[b"v"])).code, 0);
    }
    let read = consumer.fetched(id, 11);
    assert_eq!(read.records().len(), 3);
    // Nothing more: the answer comes at its time, and is empty.
    let read = consumer.fetch(&Wanted { max_wait_ms: 20, ..Wanted::new("t", 3) });
    assert_eq!((read.code, read.bytes.len(), read.high_watermark), (0, 0, 3));
}

#[test]
fn a_long_poll_of_a_client_that_is_gone_is_dropped() {
    let server = Server::ephemeral().unwrap();
    let mut consumer = Client::new(server.address());
    consumer.topic("t");
    consumer.send_fetch(11, &Wanted { max_wait_ms: 600_000, ..Wanted::new("t", 0) });
    // However long that takes to arrive there, it ends by itself long before the ten minutes.
    drop(consumer);
    while server.connection_count() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(server.shutdown().unwrap());
}

#[test]
fn a_stopping_server_answers_long_polls() {
    let server = Server::ephemeral().unwrap();
    let mut consumer = Client::new(server.address());
    consumer.topic("t");
    let id = consumer.send_fetch(11, &Wanted { max_wait_ms: 600_000, ..Wanted::new("t", 0) });
    // Until the request has arrived.
    let asked = thread::spawn(move || {
        let read = consumer.fetched(id, 11);
        (read, consumer.is_closed())
    });
    thread::sleep(Duration::from_millis(50));
    assert!(server.shutdown().unwrap());
    let (read, is_closed) = asked.join().unwrap();
    assert!(read.bytes.is_empty() && is_closed);
}

#[test]
fn large_records_come_whole_from_the_file() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    let value = |number: u8| vec![number; 300_000];
    for number in 0..8 {
        assert_eq!(client.produce("t", &batch(&[&value(number)])).code, 0);
    }
    let mut next = 0;
    while next < 8 {
        let wanted = Wanted { max_bytes: 700_000, ..Wanted::new("t", next) };
        // Flexible and not: bytes follow the records, or none do.
        let id = client.send_fetch(if next % 2 == 0 { 12 } else { 11 }, &wanted);
        for (offset, read) in client.fetched(id, if next % 2 == 0 { 12 } else { 11 }).records() {
            assert_eq!((offset, read), (next, value(u8::try_from(next).unwrap())));
            next += 1;
        }
    }
}
