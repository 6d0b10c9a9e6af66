//! Every client writes, with the server stopped and killed between; every client reads what every client wrote.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use stratalog::{LogReader, Offset, ReadOptions, record::BatchRef};
use tempfile::TempDir;

use crate::{
    client::{Client, From, Produce, installed, is_full},
    record::Record,
    served::Served,
};

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
/// Records that a client writes to a partition in one round.
const PER_ROUND: usize = 24;
/// Where a round's read by time begins.
const TIMED: usize = 7;
const LONGEST: Duration = Duration::from_secs(120);

struct Round {
    acks: i16,
    is_idempotent: bool,
    /// Has a record of 900 KB.
    has_large: bool,
    /// How the server ends behind it.
    is_killed: bool,
    reads: Reads,
}

enum Reads {
    ByOffset,
    /// The offset asked for is inside a batch.
    FromInsideABatch,
    ByTime,
    FromTheStart,
}

/// The second goes on with the producers of the first, over a stop of the server; what was acknowledged, if only as
/// written, outlives a kill of the process.
const ROUNDS: [Round; 4] = [
    Round { acks: -1, is_idempotent: true, has_large: true, is_killed: false, reads: Reads::ByOffset },
    Round {
        acks: -1,
        is_idempotent: true,
        has_large: false,
        is_killed: true,
        reads: Reads::FromInsideABatch,
    },
    Round { acks: 1, is_idempotent: false, has_large: false, is_killed: true, reads: Reads::ByTime },
    Round { acks: 0, is_idempotent: false, has_large: false, is_killed: false, reads: Reads::FromTheStart },
];

/// A client's topic: a partition for each codec, in their order; empty for a codec that it lacks.
struct Topic {
    name: String,
    records: Vec<Vec<Record>>,
}

#[test]
fn what_one_client_wrote_every_other_reads() {
    let names = installed();
    if names.is_empty() {
        return;
    }
    let place = TempDir::new().unwrap();
    let data = place.path().join("data");
    let mut served = Served::start(&data, CODECS.len());
    let address = served.address;
    let mut clients: Vec<_> = thread::scope(|scope| {
        let place = place.path();
        let starting: Vec<_> =
            names.iter().map(|name| scope.spawn(move || Client::start(name, address, place))).collect();
        starting.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut topics: Vec<_> = clients
        .iter()
        .map(|client| Topic {
            name: format!("from-{}", client.name),
            records: vec![Vec::new(); CODECS.len()],
        })
        .collect();

    for (number, round) in ROUNDS.iter().enumerate() {
        thread::scope(|scope| {
            let writing: Vec<_> = (0..)
                .zip(clients.iter_mut().zip(&mut topics))
                .map(|(at, (client, topic))| scope.spawn(move || write(client, at, topic, number, round)))
                .collect();
            for one in writing {
                one.join().unwrap();
            }
        });
        served.restart(round.is_killed, CODECS.len());
        let first = number * PER_ROUND;
        let starts: Vec<Vec<_>> =
            topics.iter().map(|topic| starts(&data, topic, first, &round.reads)).collect();
        thread::scope(|scope| {
            let reading: Vec<_> = clients
                .iter_mut()
                .map(|client| {
                    let (topics, starts) = (&topics, &starts);
                    scope.spawn(move || {
                        for (topic, starts) in topics.iter().zip(starts) {
                            read(client, topic, starts, number);
                        }
                    })
                })
                .collect();
            for one in reading {
                one.join().unwrap();
            }
        });
    }
    for client in &clients {
        println!("{} {}: {}", client.name, client.version, client.codecs.join(" "));
    }
}

/// One client's part of a round.
fn write(client: &mut Client, at: usize, topic: &mut Topic, number: usize, round: &Round) {
    let first = number * PER_ROUND;
    for (partition, codec) in CODECS.iter().enumerate() {
        if !client.codecs.iter().any(|own| own == codec) {
            continue;
        }
        // In the short form every codec has a large record of some client's, and every client has one.
        let has_large = round.has_large && (is_full() || at % CODECS.len() == partition);
        let mut records: Vec<_> = (first..first + PER_ROUND)
            .map(|number| {
                let is_last = number + 1 == first + PER_ROUND;
                let can = |what: &str| client.can(what);
                if has_large && is_last { Record::large(number, can) } else { Record::new(number, can) }
            })
            .collect();
        let how = Produce { codec, acks: round.acks, is_idempotent: round.is_idempotent };
        let told: Vec<_> = records.iter().map(Record::told).collect();
        let offsets = client.produce(&topic.name, partition, &how, &told);
        let end = u64::try_from(first + PER_ROUND).unwrap();
        if round.acks == 0 {
            let started = Instant::now();
            while client.ends(&topic.name, partition).1 < end {
                assert!(started.elapsed() < LONGEST, "{}, {codec}: not all came", topic.name);
                thread::sleep(Duration::from_millis(20));
            }
        } else {
            let expected: Vec<_> =
                (first..first + PER_ROUND).map(|offset| i64::try_from(offset).unwrap()).collect();
            assert_eq!(offsets, expected, "{}, {codec}", topic.name);
        }
        assert_eq!(client.ends(&topic.name, partition), (0, end), "{}, {codec}", topic.name);
        if !client.can("timestamp") {
            // It took the time itself: what it reads is what the others have to read.
            let read =
                client.consume(&topic.name, partition, From::Offset(first), usize::try_from(end).unwrap());
            for (record, read) in records.iter_mut().zip(read) {
                record.timestamp = read["timestamp"].as_i64().unwrap();
            }
        }
        topic.records[partition].extend(records);
    }
}

/// Where readers begin in each partition, and at which offset that is.
fn starts(data: &Path, topic: &Topic, first: usize, reads: &Reads) -> Vec<Option<(From, usize)>> {
    let start = |(partition, records): (usize, &Vec<Record>)| {
        if records.is_empty() {
            return None;
        }
        Some(match reads {
            Reads::ByOffset => (From::Offset(first), first),
            Reads::FromTheStart => (From::Offset(0), 0),
            Reads::FromInsideABatch => {
                let dir = data.join(format!("{}-{partition}", topic.name));
                let offset = inside_a_batch(&dir, first);
                (From::Offset(offset), offset)
            }
            Reads::ByTime => {
                let time = records[first + TIMED].timestamp;
                // As Kafka has it: the first record of this time or later.
                let offset = records.iter().position(|record| record.timestamp >= time).unwrap();
                // A moment earlier is a time that no record has, unless the client took the time itself.
                let is_between = offset > 0 && records[offset - 1].timestamp < time - 1;
                (From::Time(if is_between { time - 1 } else { time }), offset)
            }
        })
    };
    topic.records.iter().enumerate().map(start).collect()
}

/// The first offset from this one on that is not the first of its batch.
fn inside_a_batch(dir: &Path, first: usize) -> usize {
    let reader = LogReader::open(dir, ReadOptions::default()).unwrap();
    let mut at = Offset::new(i64::try_from(first).unwrap()).unwrap();
    while at < reader.end() {
        let mut bytes = Vec::new();
        let read = reader.read(at, 1, &mut bytes).unwrap();
        let base = BatchRef::parse(&bytes).unwrap().base_offset();
        if read.next.since(base) > 2 {
            return usize::try_from(base.value()).unwrap() + 2;
        }
        at = read.next;
    }
    panic!("{}: no batch of several records from offset {first} on", dir.display());
}

/// Reads a topic of another client, or its own, and compares.
fn read(client: &mut Client, topic: &Topic, starts: &[Option<(From, usize)>], round: usize) {
    for (partition, (records, start)) in topic.records.iter().zip(starts).enumerate() {
        let Some((from, offset)) = *start else { continue };
        let what =
            format!("round {round}: {} {}, {} by {from:?}", topic.name, CODECS[partition], client.name);
        let read = client.consume(&topic.name, partition, from, records.len());
        compare(&what, offset, &records[offset..], &read);
    }
}

fn compare(what: &str, first: usize, records: &[Record], read: &[Value]) {
    assert_eq!(read.len(), records.len(), "{what}");
    for ((offset, record), read) in (first..).zip(records).zip(read) {
        let difference = record.difference(offset, read);
        assert_eq!(difference, None, "{what}");
    }
}
