//! A broker's partitions in our hands and back, producers and their numbers included: stopped and killed on both sides.
//!
//! A producer that heard nothing sends its batch again, to whoever serves the log by then. Whoever that is has to know
//! that the batch is there already.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use stratalog::{
    AppendOptions, Error, LogConfig, LogReader, LogWriter, Offset, Preallocate, ReadOptions, Timestamp,
    record::{BatchBuilder, BatchOptions, BatchRef, Codec, Compression, Header, ProducerStamp, Record},
};

use crate::{
    CODECS,
    command::kafka_is_here,
    corpus,
    node::Node,
    record::{Told, assert_same},
    wire::{self, Answer},
};

const COUNT: usize = CODECS.len();
const TOPIC: &str = "hand";
/// The directory in which the child writes until it is killed.
const CHILD: &str = "STRATALOG_TEST_HAND_OVER";
/// Of the producers that write through us; a broker gives away small ids.
const OUR_ID: i64 = 7_000_000;
const BATCH: i64 = 20;

#[test]
fn producers_and_records_go_from_a_broker_to_us_and_back() {
    if !kafka_is_here() {
        return;
    }
    let mut node = Node::new();
    node.create(TOPIC, COUNT, &["segment.ms=60000"]);
    node.produce_at(TOPIC, 0, 200, &CODECS, recently());
    let mut served = node.consume(TOPIC, COUNT);

    // Stopped, then killed; closed, then killed.
    for (round, is_killed) in [(0, false), (1, true)] {
        let dirs: Vec<_> = (0..COUNT).map(|number| node.partition(TOPIC, number)).collect();
        let retries: Vec<_> = dirs.iter().map(|dir| last_batch(dir)).collect();
        if is_killed {
            node.kill();
        } else {
            node.stop();
        }
        let mut sent = Vec::new();
        for (number, dir) in dirs.iter().enumerate() {
            let mut writer = LogWriter::open(dir, config(number)).unwrap();
            a_retry_is_a_duplicate(&mut writer, &retries[number], CODECS[number]);
            if is_killed {
                drop(writer);
                write_until_killed(dir, number);
            } else {
                sent.push(write(&mut writer, number, round));
                writer.close().unwrap();
            }
        }
        let ours: Vec<_> = dirs.iter().map(|dir| corpus::read(dir)).collect();
        for (number, (before, after)) in served.iter().zip(&ours).enumerate() {
            assert_same(CODECS[number], before, &after[..before.len()]);
            assert!(after.len() > before.len() + 30, "{}: little was added", CODECS[number]);
        }
        if is_killed {
            sent = dirs.iter().map(|dir| last_batch(dir)).collect();
        }

        node.start();
        served = node.consume(TOPIC, COUNT);
        for (number, ours) in ours.iter().enumerate() {
            assert_same(&format!("round {round}, {}", CODECS[number]), ours, &served[number]);
        }
        let complaints = node.complaints(TOPIC, &["truncat", "corrupt"]);
        for (number, ours) in ours.iter().enumerate() {
            let end = ours.last().unwrap().offset + 1;
            let name = format!("{TOPIC}-{number}");
            let about = complaints.iter().filter(|line| line.contains(&name));
            let unexcused: Vec<_> =
                about.filter(|line| !(is_killed && reserves(number) && is_of_zeros(line, end))).collect();
            assert!(unexcused.is_empty(), "{}: {unexcused:#?}", CODECS[number]);
        }
        for (number, batch) in sent.iter().enumerate() {
            a_broker_knows_our_producer(&node, number, batch);
        }
        served = node.consume(TOPIC, COUNT);
    }

    // What the broker took last is known to us.
    let retries: Vec<_> = (0..COUNT).map(|number| last_batch(&node.partition(TOPIC, number))).collect();
    node.stop();
    for (number, retry) in retries.iter().enumerate() {
        let dir = node.partition(TOPIC, number);
        let mut writer = LogWriter::open(&dir, config(number)).unwrap();
        assert_eq!(stamp(retry).id, OUR_ID + i64::try_from(number).unwrap());
        a_retry_is_a_duplicate(&mut writer, retry, CODECS[number]);
        writer.close().unwrap();
        assert_same("unchanged", &served[number], &corpus::read(&dir));
    }
}

/// Where a snapshot is missing or of another time, the batches say what it has to hold.
#[test]
fn producers_are_known_without_a_brokers_snapshots() {
    if !kafka_is_here() {
        return;
    }
    let mut node = Node::new();
    node.create(TOPIC, COUNT, &["segment.ms=60000"]);
    node.produce_at(TOPIC, 0, 200, &CODECS, recently());
    node.stop();
    for (number, codec) in CODECS.iter().enumerate() {
        let dir = node.partition(TOPIC, number);
        let dir_text = dir.to_str().unwrap();
        let snapshots = corpus::files(&dir, &["snapshot"]);
        assert!(snapshots.len() > 2, "{dir_text}: {snapshots:?}");
        for (at, name) in snapshots.iter().enumerate() {
            match (number + at) % 3 {
                0 => fs::remove_file(name).unwrap(),
                1 => fs::write(name, b"no snapshot at all").unwrap(),
                _ => fs::write(name, &fs::read(name).unwrap()[..20]).unwrap(),
            }
        }
        let retry = last_batch(&dir);
        let mut writer = LogWriter::open(&dir, config(number)).unwrap();
        a_retry_is_a_duplicate(&mut writer, &retry, codec);
        let mut next = stamp(&retry);
        next.base_sequence += i32::try_from(BATCH).unwrap() * 100;
        let error = writer.append(&batch(next, 0), AppendOptions::default()).unwrap_err();
        assert!(matches!(error, Error::OutOfOrderSequence { .. }), "{error}");
        writer.close().unwrap();
    }
}

/// Every other log is written with blocks reserved ahead: killed, it ends in zeros.
fn reserves(number: usize) -> bool {
    number.is_multiple_of(2)
}

/// What a broker says when it cuts off reserved zeros, and no record, as it does behind a killed one of its own that
/// preallocates.
pub(crate) fn is_of_zeros(line: &str, end: i64) -> bool {
    line.contains("Found invalid messages in log segment")
        || line.contains("Found record size 0 smaller than minimum record overhead")
        || line.ends_with(&format!("truncating to offset {end}"))
}

/// Not so long ago that a producer would be forgotten.
fn recently() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap() - 600_000
}

fn config(number: usize) -> LogConfig {
    let mut config = LogConfig::default();
    config.compression = Compression::new(codec(number));
    config.segment_bytes = 64 << 10;
    config.index_interval_bytes = 1024;
    config.preallocate = if reserves(number) { Preallocate::Stepped } else { Preallocate::Off };
    config
}

fn codec(number: usize) -> Codec {
    [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd][number]
}

#[track_caller]
fn a_retry_is_a_duplicate(writer: &mut LogWriter, batch: &[u8], codec: &str) {
    let end = writer.end();
    let there = BatchRef::parse(batch).unwrap();
    let appended = writer.append(batch, AppendOptions::default()).unwrap();
    assert!(appended.duplicate, "{codec}: a retry of {} was appended anew", there.base_offset());
    assert_eq!((appended.base_offset, appended.last_offset), (there.base_offset(), there.last_offset()));
    assert_eq!(writer.end(), end, "{codec}");
}

/// Some batches of a producer that numbers them, and one of nobody; gives the last numbered one.
#[track_caller]
fn write(writer: &mut LogWriter, number: usize, round: i32) -> Vec<u8> {
    let per_batch = i32::try_from(BATCH).unwrap();
    let mut last = Vec::new();
    for turn in 0..4 {
        let stamp = our_stamp(number, round, turn * per_batch);
        last = batch(stamp, number);
        let appended = writer.append(&last, AppendOptions::default()).unwrap();
        assert!(!appended.duplicate);
        last = read_batch(&writer.reader(), appended.base_offset);
        writer.append_records(&[Record::value_only(b"of nobody")], AppendOptions::default()).unwrap();
    }
    last
}

/// A later round is a producer that came back: the same id, the next epoch.
fn our_stamp(number: usize, round: i32, base_sequence: i32) -> ProducerStamp {
    let id = OUR_ID + i64::try_from(number).unwrap();
    ProducerStamp { id, epoch: i16::try_from(round).unwrap(), base_sequence }
}

fn batch(stamp: ProducerStamp, number: usize) -> Vec<u8> {
    let options = BatchOptions {
        compression: Compression::new(codec(number)),
        producer: Some(stamp),
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    let from = i64::from(stamp.base_sequence) + 1000 * i64::from(stamp.epoch);
    for told in corpus::records(from, from + BATCH) {
        push(&mut builder, &told);
    }
    builder.finish().unwrap().to_vec()
}

fn push(builder: &mut BatchBuilder, told: &Told) {
    let headers: Vec<Header<'_>> = told
        .headers
        .iter()
        .map(|(name, value)| Header { key: std::str::from_utf8(name).unwrap(), value: value.as_deref() })
        .collect();
    let record = Record {
        timestamp: Some(Timestamp::from_millis(recently() + told.timestamp % 1000)),
        key: told.key.as_deref(),
        value: told.value.as_deref(),
        headers: &headers,
    };
    builder.push(record).unwrap();
}

/// The broker answers a retry with the place of the first, takes what follows, and nothing out of turn or of the past.
#[track_caller]
fn a_broker_knows_our_producer(node: &Node, number: usize, sent: &[u8]) {
    let there = BatchRef::parse(sent).unwrap();
    let codec = CODECS[number];
    let again = wire::produce(node.address(), TOPIC, number, sent);
    assert_eq!(again, Answer { error: 0, base_offset: there.base_offset().value() }, "{codec}: a retry");

    let mut next = stamp(sent);
    next.base_sequence += i32::try_from(BATCH).unwrap();
    let mut later = next;
    later.base_sequence += 5;
    let skipped = wire::produce(node.address(), TOPIC, number, &batch(later, number));
    assert_eq!(skipped.error, wire::OUT_OF_ORDER, "{codec}: a gap");
    let went_on = wire::produce(node.address(), TOPIC, number, &batch(next, number));
    assert_eq!(went_on.error, 0, "{codec}: the next");
    assert!(went_on.base_offset >= there.next_offset().unwrap().value());
    if next.epoch > 0 {
        let mut old = next;
        old.epoch -= 1;
        let fenced = wire::produce(node.address(), TOPIC, number, &batch(old, number));
        assert_eq!(fenced.error, wire::FENCED, "{codec}: an epoch that is over");
    }
}

fn stamp(batch: &[u8]) -> ProducerStamp {
    let header = BatchRef::parse(batch).unwrap();
    ProducerStamp {
        id: header.producer_id(),
        epoch: header.producer_epoch(),
        base_sequence: header.base_sequence(),
    }
}

/// The last batch that has a producer.
#[track_caller]
fn last_batch(dir: &Path) -> Vec<u8> {
    let reader = LogReader::open(dir, ReadOptions::default()).unwrap();
    let mut at = reader.end();
    while at > reader.start() {
        let bytes = read_batch(&reader, at.saturating_sub(1));
        let batch = BatchRef::parse(&bytes).unwrap();
        if batch.producer_id() >= 0 {
            return bytes;
        }
        at = batch.base_offset();
    }
    panic!("{}: no producer", dir.display());
}

#[track_caller]
fn read_batch(reader: &LogReader, at: Offset) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read(at, 1, &mut bytes).unwrap();
    let len = BatchRef::parse(&bytes).unwrap().as_bytes().len();
    bytes.truncate(len);
    bytes
}

/// A process of ours appends to the partition and dies of SIGKILL in the middle.
#[track_caller]
fn write_until_killed(dir: &Path, number: usize) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "hand_over::a_writer_that_will_be_killed", "--nocapture"])
        .env(CHILD, format!("{number}:{}", dir.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let acknowledged =
        lines.by_ref().filter(|line| line.starts_with("acknowledged")).take(3 + number).count();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(acknowledged, 3 + number, "it was to write");
}

#[test]
fn a_writer_that_will_be_killed() {
    let Some(place) = env::var_os(CHILD) else { return };
    let (number, dir) = place.to_str().unwrap().split_once(':').unwrap();
    let number = number.parse().unwrap();
    let mut writer = LogWriter::open(dir, config(number)).unwrap();
    let per_batch = i32::try_from(BATCH).unwrap();
    // It is killed long before the last.
    for turn in 0..5000 {
        let stamp = our_stamp(number, 1, turn * per_batch);
        let appended = writer.append(&batch(stamp, number), AppendOptions::default()).unwrap();
        assert!(!appended.duplicate);
        println!("acknowledged {}", appended.last_offset);
    }
}
