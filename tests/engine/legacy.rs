//! Message formats 0 and 1, as brokers before 0.11 wrote them: read by every way there is, never written.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use stratalog::{
    AppendOptions, Error, LogConfig, LogReader, LogWriter, Offset, Offsets, OpenMode, ReadOptions, Timestamp,
    record::{BatchBuilder, BatchError, BatchOptions, OwnedRecord, Record, Scratch, TimestampType},
};
use tempfile::TempDir;

use crate::{
    kafka_dirs::{lines, state_of},
    support::at,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0");
const CASES: [&str; 9] = [
    "magic0-none",
    "magic0-gzip",
    "magic0-snappy",
    "magic0-lz4",
    "magic1-none",
    "magic1-gzip",
    "magic1-snappy",
    "magic1-lz4",
    "magic1-appendtime",
];
const LOG: &str = "00000000000000000000.log";

fn reader(dir: &Path) -> LogReader {
    LogReader::open(dir, ReadOptions::default()).unwrap()
}

/// The records that Kafka's own reader finds.
fn expected(case: &str) -> Vec<Value> {
    let all = lines(&Path::new(ROOT).join(case).join("old-0.expected.jsonl"));
    all.into_iter().filter(|line| line.get("offset").is_some()).collect()
}

fn assert_is(record: &OwnedRecord, want: &Value, case: &str) {
    assert_eq!(record.offset.value(), want["offset"].as_i64().unwrap(), "{case}");
    assert_eq!(record.timestamp.millis(), want["timestamp"].as_i64().unwrap(), "{case}");
    for (field, want) in [(&record.key, &want["key"]), (&record.value, &want["value"])] {
        let field = field.as_ref().map(|bytes| STANDARD.encode(bytes));
        assert_eq!(field.as_deref(), want.as_str(), "{case} at {}", record.offset);
    }
    assert!(record.headers.is_empty() && record.leader_epoch == -1 && !record.is_control, "{case}");
}

#[test]
fn every_record_is_what_kafkas_own_reader_finds() {
    for case in CASES {
        let dir = Path::new(ROOT).join(case).join("old-0");
        let before = state_of(&dir);
        let log = reader(&dir);
        let want = expected(case);
        assert_eq!((log.start(), log.end(), want.len()), (at(0), at(60), 60), "{case}");
        let records: Vec<_> = log.owned_records(at(0)).map(Result::unwrap).collect();
        assert_eq!(records.len(), want.len(), "{case}");
        for (record, want) in records.iter().zip(&want) {
            assert_is(record, want, case);
            let kind = if case.ends_with("appendtime") {
                TimestampType::LogAppendTime
            } else {
                TimestampType::CreateTime
            };
            assert_eq!(record.timestamp_type, kind, "{case}");
        }
        // From the middle of wrappers, and one by one.
        for (from, want) in (0..).zip(&want) {
            let first = log.owned_records(at(from)).next().unwrap().unwrap();
            assert_is(&first, want, case);
            let one = log.record(at(from)).unwrap().unwrap();
            assert_is(&one, want, case);
        }
        assert_eq!(log.last_records_from(15).unwrap(), at(45), "{case}");
        assert_eq!(state_of(&dir), before, "{case}: a reader changes nothing");
    }
}

#[test]
fn batches_are_lent_as_format_2_and_bytes_as_they_are_stored() {
    for case in CASES {
        let dir = Path::new(ROOT).join(case).join("old-0");
        let log = reader(&dir);
        let mut batches = log.batches(at(0));
        let magic = i8::from(case.starts_with("magic1"));
        let mut scratch = Scratch::new();
        let (mut next, mut records) = (0, 0);
        let mut size = 0;
        while let Some(batch) = batches.next_batch().unwrap() {
            batch.check_crc().unwrap();
            assert_eq!(batch.base_offset(), at(next), "{case}");
            next = batch.next_offset().unwrap().value();
            records += batch.records(&mut scratch).unwrap().map(Result::unwrap).count();
            size += 1;
            assert_eq!(batches.message_format(), magic, "{case}");
        }
        assert_eq!((next, records), (60, 60), "{case}");
        assert_eq!(size, if case.ends_with("none") { 60 } else { 6 }, "{case}");
        let mut bytes = Vec::new();
        let outcome = log.read(at(0), 1 << 20, &mut bytes).unwrap();
        assert_eq!((outcome.next, &bytes), (at(60), &fs::read(dir.join(LOG)).unwrap()), "{case}");
        // Whole messages only, from the one that holds the offset.
        let outcome = log.read(at(25), 1, &mut bytes).unwrap();
        assert_eq!(outcome.next, if case.ends_with("none") { at(26) } else { at(30) }, "{case}");
        assert_eq!(outcome.bytes, bytes.len());
    }
}

#[test]
fn times_are_looked_up_where_there_are_any() {
    let time = |millis: i64| Timestamp::from_millis(1_700_000_000_000 + millis);
    for case in CASES {
        let log = reader(&Path::new(ROOT).join(case).join("old-0"));
        let found = |millis| log.offset_for_timestamp(time(millis)).unwrap().map(|found| found.0);
        let (first, middle, newest) = match case {
            _ if case.starts_with("magic0") => (None, None, None),
            "magic1-appendtime" => (Some(at(0)), Some(at(0)), Some((time(500_050), at(50)))),
            _ => (Some(at(0)), Some(at(37)), Some((time(59), at(59)))),
        };
        assert_eq!(found(0), first, "{case}");
        assert_eq!(found(37), middle, "{case}");
        assert_eq!(found(1_000_000), None, "{case}");
        assert_eq!(log.max_timestamp().unwrap(), newest, "{case}");
    }
}

fn batch(base: i64, values: &[&[u8]]) -> Vec<u8> {
    let options = BatchOptions { base_offset: at(base), append_time: NEW, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for value in values {
        builder.push(Record::value_only(value)).unwrap();
    }
    builder.finish().unwrap().to_vec()
}

/// When the batches behind the old messages were made.
const NEW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// What an upgrade leaves: old messages, then batches of format 2 in the same segment and in one more.
fn upgraded(case: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    let mut first = fs::read(Path::new(ROOT).join(case).join("old-0").join(LOG)).unwrap();
    first.extend(batch(60, &[b"same segment", b"second"]));
    first.extend(batch(62, &[b"same segment", b"second"]));
    fs::write(dir.path().join(LOG), first).unwrap();
    fs::write(dir.path().join("00000000000000000064.log"), batch(64, &[b"next segment"])).unwrap();
    dir
}

#[test]
fn old_messages_and_then_batches_as_an_upgrade_leaves_them() {
    for case in CASES {
        let dir = upgraded(case);
        let log = reader(dir.path());
        assert_eq!(log.end(), at(65), "{case}");
        let records: Vec<_> = log.owned_records(at(0)).map(Result::unwrap).collect();
        let offsets: Vec<_> = records.iter().map(|record| record.offset.value()).collect();
        assert_eq!(offsets, (0..65).collect::<Vec<_>>(), "{case}");
        assert_eq!(records[60].value.as_deref(), Some(&b"same segment"[..]));
        for from in [0, 5, 9, 10, 58, 59, 60, 61, 63, 64] {
            let first = log.owned_records(at(from)).next().unwrap().unwrap();
            assert_eq!(first, records[usize::try_from(from).unwrap()], "{case}");
            assert_eq!(log.record(at(from)).unwrap().as_ref(), Some(&first), "{case}");
        }
        let mut batches = log.batches(at(55));
        let mut formats = Vec::new();
        while batches.next_batch().unwrap().is_some() {
            formats.push(batches.message_format());
        }
        assert_eq!(formats[formats.len() - 4..], [i8::from(case.starts_with("magic1")), 2, 2, 2]);
        assert_eq!(log.max_timestamp().unwrap(), Some((NEW, at(60))), "{case}");
    }
}

/// By the rule of today, and by one of an old broker: the first offset of what was appended, not the last.
#[test]
fn an_index_serves_where_it_says_the_same_and_is_not_believed_where_not() {
    let dir = upgraded("magic1-gzip");
    let bytes = fs::read(dir.path().join(LOG)).unwrap();
    let whole: Vec<_> = reader(dir.path()).owned_records(at(0)).map(Result::unwrap).collect();
    let mut places = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let last = i64::from_be_bytes(bytes[position..position + 8].try_into().unwrap());
        places.push((i32::try_from(last).unwrap(), i32::try_from(position).unwrap()));
        position +=
            usize::try_from(i32::from_be_bytes(bytes[position + 8..position + 12].try_into().unwrap()))
                .unwrap()
                + 12;
    }
    for first_offsets in [false, true] {
        let entries = places[1..6]
            .iter()
            .map(|(last, position)| (if first_offsets { last - 9 } else { *last }, *position));
        let index: Vec<u8> = entries
            .flat_map(|(offset, position)| [offset.to_be_bytes(), position.to_be_bytes()].concat())
            .collect();
        fs::write(dir.path().join("00000000000000000000.index"), &index).unwrap();
        let before = state_of(dir.path());
        for from in 0..65 {
            let log = reader(dir.path());
            let want = &whole[usize::try_from(from).unwrap()];
            assert_eq!(log.record(at(from)).unwrap().as_ref(), Some(want));
            assert_eq!(&log.owned_records(at(from)).next().unwrap().unwrap(), want);
        }
        let log = reader(dir.path());
        let time = Timestamp::from_millis(1_700_000_000_037);
        assert_eq!(log.offset_for_timestamp(time).unwrap(), Some((at(37), time)));
        assert_eq!(state_of(dir.path()), before);
    }
}

#[test]
fn damage_hides_nothing_behind_it() {
    for case in CASES {
        let dir = upgraded(case);
        let path = dir.path().join(LOG);
        let good = fs::read(&path).unwrap();
        let whole: Vec<_> = reader(dir.path()).owned_records(at(0)).map(Result::unwrap).collect();
        // In the second message, and in its length.
        let second = usize::try_from(i32::from_be_bytes(good[8..12].try_into().unwrap())).unwrap() + 12;
        let size =
            usize::try_from(i32::from_be_bytes(good[second + 8..second + 12].try_into().unwrap())).unwrap();
        for damaged in [second + 25, second + 10] {
            let mut bytes = good.clone();
            bytes[damaged] ^= 1;
            fs::write(&path, bytes).unwrap();
            let read: Vec<_> = reader(dir.path()).owned_records(at(0)).collect();
            let errors = read.iter().filter(|read| read.is_err()).count();
            assert_eq!(errors, 1, "{case}: {read:?}");
            assert!(read.iter().flatten().all(|record| whole.contains(record)), "{case}");
            let lost = if case.ends_with("none") { 1 } else { 10 };
            assert_eq!(read.len(), 65 - lost + 1, "{case}");
        }
        let mut bytes = good.clone();
        bytes[second..second + size].fill(0);
        fs::write(&path, bytes).unwrap();
        let errors = reader(dir.path()).owned_records(at(0)).filter(Result::is_err).count();
        assert_eq!(errors, 1, "{case}");
    }
}

#[test]
fn a_torn_end_is_the_end() {
    for case in CASES {
        let dir = TempDir::new().unwrap();
        let good = fs::read(Path::new(ROOT).join(case).join("old-0").join(LOG)).unwrap();
        for cut in [1, 5, 20, 30] {
            fs::write(dir.path().join(LOG), &good[..good.len() - cut]).unwrap();
            let log = reader(dir.path());
            let end = if case.ends_with("none") { 59 } else { 50 };
            assert_eq!(log.end(), at(end), "{case}");
            let last = log.owned_records(at(0)).map(Result::unwrap).last().unwrap();
            assert_eq!(last.offset, at(end - 1), "{case}");
        }
    }
}

#[test]
fn a_writer_refuses_a_log_with_old_messages_and_such_messages() {
    for case in CASES {
        let from = Path::new(ROOT).join(case).join("old-0").join(LOG);
        for dir in [TempDir::new().unwrap(), upgraded(case)] {
            if !dir.path().join(LOG).exists() {
                fs::copy(&from, dir.path().join(LOG)).unwrap();
            }
            let before = fs::read(dir.path().join(LOG)).unwrap();
            let opened = LogWriter::open(dir.path(), LogConfig::default());
            let Err(Error::UnsupportedVersion { what, .. }) = &opened else { panic!("{case}: {opened:?}") };
            assert!(what.contains("message format"), "{what}");
            assert_eq!(fs::read(dir.path().join(LOG)).unwrap(), before, "{case}");
        }
        let dir = TempDir::new().unwrap();
        let mut config = LogConfig::default();
        config.open = OpenMode::CreateIfMissing;
        let mut log = LogWriter::open(dir.path(), config).unwrap();
        for offsets in [Offsets::Assign, Offsets::Preserve] {
            let options = AppendOptions { offsets, ..AppendOptions::default() };
            let refused = log.append(&fs::read(&from).unwrap(), options);
            let is_named =
                matches!(&refused, Err(Error::InvalidBatch(BatchError::UnsupportedMagic { magic: 0 | 1 })));
            assert!(is_named, "{case}: {refused:?}");
        }
        assert_eq!(log.end(), Offset::ZERO);
        // As the batches that a reader lends they are taken.
        let old = reader(from.parent().unwrap());
        let mut batches = old.batches(at(0));
        let options = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
        while let Some(batch) = batches.next_batch().unwrap() {
            log.append(batch.as_bytes(), options).unwrap();
        }
        let copied: Vec<_> = log.reader().owned_records(at(0)).map(Result::unwrap).collect();
        assert_eq!(copied.len(), 60, "{case}");
        for (record, want) in copied.iter().zip(&expected(case)) {
            assert_is(record, want, case);
        }
    }
}
