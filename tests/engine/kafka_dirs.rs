//! Directories that a real broker wrote, and broken ones made from them: read without a change, and gone on with.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};
use stratalog::{
    AppendOptions, Error, LogConfig, LogReader, LogWriter, ReadOptions, Timestamp,
    record::{OwnedRecord, Record, Scratch, TimestampType},
};

use crate::support::{at, copy_dir};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

/// Every partition of message format 2 for which Kafka said what is in it.
fn cases() -> Vec<(PathBuf, PathBuf)> {
    let root = Path::new(FIXTURES).join("kafka/4.4.0");
    let mut found = Vec::new();
    for case in fs::read_dir(&root).unwrap() {
        let case = case.unwrap().path();
        if case.file_name().unwrap().to_str().unwrap().starts_with("magic") {
            continue;
        }
        for file in fs::read_dir(&case).unwrap() {
            let expected = file.unwrap().path();
            let name = expected.file_name().unwrap().to_str().unwrap().to_owned();
            if let Some(topic) = name.strip_suffix(".expected.jsonl") {
                found.push((case.join(topic), expected));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 15, "fixtures are missing: {found:?}");
    found
}

pub fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Contents and times of all files in a directory, those beside it included.
pub fn state_of(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut state = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            state.extend(state_of(&path));
        } else {
            let hash = Sha256::digest(fs::read(&path).unwrap()).to_vec();
            state.insert(path, (hash, meta.modified().unwrap()));
        }
    }
    state
}

/// Bytes as the fixture has them: base64, or length and hash where they are long.
fn assert_bytes(found: Option<&[u8]>, expected: &Value, what: &str) {
    match (found, expected) {
        (None, Value::Null) => {}
        (Some(found), Value::String(text)) => {
            assert_eq!(found, STANDARD.decode(text).unwrap(), "{what}");
        }
        (Some(found), Value::Object(long)) => {
            let len = long.iter().find_map(|(_, value)| value.as_u64());
            assert_eq!(Some(found.len() as u64), len, "{what}");
            let hash = format!("{:x}", Sha256::digest(found));
            assert!(long.values().any(|value| value.as_str() == Some(&hash)), "{what}: {long:?}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

fn assert_record(record: &OwnedRecord, line: &Value) {
    let what = format!("record {}", record.offset);
    assert_eq!(line["timestamp"].as_i64(), Some(record.timestamp.millis()), "{what}");
    assert_bytes(record.key.as_deref(), &line["key"], &what);
    assert_bytes(record.value.as_deref(), &line["value"], &what);
    let headers = line["headers"].as_array().unwrap();
    assert_eq!(record.headers.len(), headers.len(), "{what}");
    for ((key, value), header) in record.headers.iter().zip(headers) {
        assert_eq!(std::str::from_utf8(key).ok(), header["key"].as_str(), "{what}");
        assert_bytes(value.as_deref(), &header["value"], &what);
    }
}

/// Walks all batches that a reader can reach and compares them, and every record, with what Kafka read.
pub fn assert_is(reader: &LogReader, expected: &[Value]) {
    let mut batches = reader.batches(reader.start());
    let mut scratch = Scratch::new();
    let mut lines = expected.iter();
    // What lies wholly below the start is on the disk and not in the log.
    let mut line =
        lines.find(|line| line["last"].as_i64().is_some_and(|last| last >= reader.start().value()));
    while let Some(batch) = batches.next_batch().unwrap() {
        let expected =
            line.unwrap_or_else(|| panic!("a batch at {} that Kafka has not", batch.base_offset()));
        let header = *batch.header();
        let what = format!("batch {}", batch.base_offset());
        assert_eq!(expected["batch"].as_i64(), Some(header.base_offset().value()), "{what}");
        assert_eq!(expected["last"].as_i64(), Some(header.last_offset().value()), "{what}");
        assert_eq!(expected["size"].as_u64(), Some(u64::from(header.size_bytes())), "{what}");
        assert_eq!(expected["crc"].as_u64(), Some(u64::from(header.crc())), "{what}");
        assert_eq!(expected["codec"].as_str(), Some(header.codec().unwrap().name()), "{what}");
        assert_eq!(expected["maxTimestamp"].as_i64(), Some(header.max_timestamp().millis()), "{what}");
        assert_eq!(expected["epoch"].as_i64(), Some(i64::from(header.leader_epoch())), "{what}");
        assert_eq!(expected["producerId"].as_i64(), Some(header.producer_id()), "{what}");
        assert_eq!(expected["producerEpoch"].as_i64(), Some(i64::from(header.producer_epoch())), "{what}");
        assert_eq!(expected["baseSequence"].as_i64(), Some(i64::from(header.base_sequence())), "{what}");
        assert_eq!(expected["transactional"].as_bool(), Some(header.is_transactional()), "{what}");
        assert_eq!(expected["control"].as_bool(), Some(header.is_control()), "{what}");
        let is_append_time = expected["timestampType"].as_str() == Some("LogAppendTime");
        assert_eq!(is_append_time, header.timestamp_type() == TimestampType::LogAppendTime, "{what}");
        for record in batch.records(&mut scratch).unwrap() {
            let record = OwnedRecord::new(&record.unwrap(), &header);
            let expected = lines.next().unwrap();
            assert_eq!(expected["offset"].as_i64(), Some(record.offset.value()), "{what}");
            assert_record(&record, expected);
        }
        line = lines.next();
        assert!(line.is_none_or(|line| line["batch"].is_i64()), "{what}: more records: {line:?}");
    }
    assert!(line.is_none(), "batches that were not read: {line:?}");
}

/// Every time that a record has, one less and one more, against a look at all records.
fn assert_times(reader: &LogReader, expected: &[Value]) {
    let start = reader.start().value();
    let records: Vec<(i64, i64)> = expected
        .iter()
        .filter_map(|line| Some((line["offset"].as_i64()?, line["timestamp"].as_i64()?)))
        .filter(|(offset, _)| *offset >= start)
        .collect();
    let mut times: Vec<i64> = records.iter().flat_map(|(_, at)| [at - 1, *at, at + 1]).collect();
    times.sort_unstable();
    times.dedup();
    for time in times {
        let wanted = records.iter().find(|(_, at)| *at >= time);
        let found = reader.offset_for_timestamp(Timestamp::from_millis(time)).unwrap();
        assert_eq!(found.map(|(offset, at)| (offset.value(), at.millis())), wanted.copied(), "time {time}");
    }
}

#[test]
fn what_a_broker_left_is_read_exactly_and_not_touched() {
    for (dir, expected) in cases() {
        println!("{}", dir.display());
        let before = state_of(&dir);
        let expected = lines(&expected);
        let reader = LogReader::open(&dir, ReadOptions::default()).unwrap();
        assert_is(&reader, &expected);
        assert_times(&reader, &expected);
        for line in expected.iter().filter(|line| line["offset"].is_i64()) {
            let offset = at(line["offset"].as_i64().unwrap());
            if offset < reader.start() {
                continue;
            }
            if let Some(record) = reader.record(offset).unwrap() {
                assert_record(&record, line);
            }
        }
        drop(reader);
        assert_eq!(state_of(&dir), before, "{} was changed", dir.display());
    }
}

#[test]
fn what_a_broker_left_is_gone_on_with() {
    for (dir, expected) in cases() {
        println!("{}", dir.display());
        let expected = lines(&expected);
        let temp = tempfile::tempdir().unwrap();
        let copy = temp.path().join(dir.file_name().unwrap());
        copy_dir(&dir, &copy);
        let mut log = LogWriter::open(&copy, LogConfig::default()).unwrap();
        let report = log.recovery();
        assert_eq!((&report.cut, &report.lost, report.corrupt.len()), (&None, &None, 0), "{report:?}");
        assert_is(&log.reader(), &expected);
        let end = log.end();
        let appended = log.append_records(&[Record::value_only(b"more")], AppendOptions::default()).unwrap();
        assert_eq!(appended.base_offset, end);
        log.close().unwrap();
        let log = LogWriter::open(&copy, LogConfig::default()).unwrap();
        assert!(log.recovery().clean, "{:?}", log.recovery());
        for reader in [log.reader(), LogReader::open(&copy, ReadOptions::default()).unwrap()] {
            let more = reader.record(end).unwrap().unwrap();
            assert_eq!(more.value.as_deref(), Some(&b"more"[..]));
            let mut walk = reader.batches(reader.start());
            let mut count = 0;
            while walk.next_batch().unwrap().is_some() {
                count += 1;
            }
            let kept =
                expected.iter().filter(|line| line["last"].as_i64() >= Some(reader.start().value())).count();
            assert_eq!(count, kept + 1);
        }
    }
}

// ---- broken/ ---------------------------------------------------------------------------------------------------------

/// The offsets that can be read one after the other, and those at which reading says that something is damaged.
fn walk(reader: &LogReader) -> (Vec<i64>, usize) {
    let (mut offsets, mut errors) = (Vec::new(), 0);
    let mut records = reader.records(reader.start());
    loop {
        match records.next_record() {
            Ok(Some(record)) => offsets.push(record.offset().value()),
            Ok(None) => return (offsets, errors),
            Err(Error::Corrupt(_)) => errors += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(errors < 100, "the walk does not get on");
    }
}

fn range_of(value: &Value) -> std::ops::Range<i64> {
    let Some(pair) = value.as_array() else { return 0..0 };
    pair[0].as_i64().unwrap()..pair[1].as_i64().unwrap()
}

fn assert_broken(reader: &LogReader, case: &Value, times: &BTreeMap<i64, i64>) {
    let end = case["end"].as_i64().unwrap();
    let (unreadable, resync, absent) =
        (range_of(&case["unreadable"]), range_of(&case["resync_by"]), range_of(&case["absent"]));
    assert_eq!(reader.end(), at(end));
    let (offsets, errors) = walk(reader);
    assert!(offsets.is_sorted_by(|left, right| left < right), "{offsets:?}");
    for offset in 0..end {
        let is_read = offsets.binary_search(&offset).is_ok();
        let may_miss = resync.contains(&offset);
        let must_miss = unreadable.contains(&offset) || absent.contains(&offset);
        assert!(may_miss || is_read != must_miss, "offset {offset}: read {is_read}");
        match reader.record(at(offset)) {
            Ok(Some(record)) => {
                assert!(!must_miss, "offset {offset} is not there");
                assert_eq!(record.offset, at(offset));
                assert_eq!(Some(&record.timestamp.millis()), times.get(&offset));
            }
            Ok(None) => assert!(absent.contains(&offset), "offset {offset} is missing"),
            Err(Error::Corrupt(_)) => assert!(unreadable.contains(&offset) || may_miss, "offset {offset}"),
            Err(error) => panic!("offset {offset}: {error}"),
        }
    }
    assert_eq!(errors > 0, !unreadable.is_empty(), "{errors} errors");
    if unreadable.is_empty() {
        for time in times.values().flat_map(|at| [at - 1, *at, at + 1]) {
            let wanted = offsets.iter().find(|offset| times[offset] >= time).copied();
            let found = reader.offset_for_timestamp(Timestamp::from_millis(time)).unwrap();
            assert_eq!(found.map(|(offset, _)| offset.value()), wanted, "time {time}");
        }
    }
}

#[test]
fn each_broken_directory_gives_what_a_right_reader_finds() {
    let root = Path::new(FIXTURES).join("broken");
    let plain = lines(&Path::new(FIXTURES).join("kafka/4.4.0/plain/plain-0.expected.jsonl"));
    let times: BTreeMap<i64, i64> = plain
        .iter()
        .filter_map(|line| Some((line["offset"].as_i64()?, line["timestamp"].as_i64()?)))
        .filter(|(offset, _)| *offset < 273)
        .collect();
    let cases = lines(&root.join("expected.jsonl"));
    assert!(cases.len() >= 20);
    for case in cases {
        let name = case["case"].as_str().unwrap();
        println!("{name}");
        let mut dir = root.join(name);
        // The partition itself, or the directory around it.
        if let Some(inner) = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.ends_with("plain-0"))
        {
            dir = inner;
        }
        let before = state_of(&dir);
        assert_broken(&LogReader::open(&dir, ReadOptions::default()).unwrap(), &case, &times);
        assert_eq!(state_of(&dir), before, "{name} was changed");

        let temp = tempfile::tempdir().unwrap();
        let copy = temp.path().join("t-0");
        copy_dir(&dir, &copy);
        let mut log = LogWriter::open(&copy, LogConfig::default()).unwrap();
        assert_eq!(log.recovery().cut.is_some(), case["cut"].as_bool().unwrap(), "{:?}", log.recovery());
        if let Some(cut) = &log.recovery().cut {
            assert!(cut.bytes > 0 && !cut.kept_in.is_empty(), "{cut:?}");
        }
        assert_broken(&log.reader(), &case, &times);
        let end = log.end();
        log.append_records(&[Record::value_only(b"more")], AppendOptions::default()).unwrap();
        log.close().unwrap();
        let log = LogWriter::open(&copy, LogConfig::default()).unwrap();
        assert!(log.recovery().clean, "{:?}", log.recovery());
        let (offsets, _) = walk(&log.reader());
        assert_eq!(offsets.last(), Some(&end.value()));
    }
}
