//! When a segment ends and another begins, and what the files are like then.

use std::{fs, time::Duration};

use stratalog::{AppendOptions, Clock, Error, Timestamp, record::Record};

use crate::support::{TempLog, at, expected, fill, pairs};

const NOW: i64 = 1_700_000_000_000;

fn put_at(writer: &mut stratalog::LogWriter, timestamp: i64) {
    let record = Record::value_only(b"v").timestamp(Timestamp::from_millis(timestamp));
    writer.append_records(&[record], AppendOptions::default()).unwrap();
}

fn bases(writer: &stratalog::LogWriter) -> Vec<i64> {
    writer.reader().segments().iter().map(|segment| segment.base_offset.value()).collect()
}

#[test]
fn a_segment_never_grows_past_its_size() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    fill(&mut writer, 200);
    let segments = writer.reader().segments();
    let largest = segments.iter().map(|segment| segment.size_bytes).max().unwrap();
    assert!(largest <= 1024 && largest > 900, "{largest}");
    for segment in segments.iter().filter(|segment| segment.sealed) {
        assert_eq!(fs::metadata(&segment.path).unwrap().len(), segment.size_bytes, "trimmed when sealed");
    }
    assert_eq!(pairs(&writer.reader()), expected(0..200));
}

#[test]
fn age_is_told_by_record_timestamps_from_the_first_batch_on() {
    let clock = Clock::manual(Timestamp::from_millis(NOW));
    let log = TempLog::in_memory(|config| {
        config.clock = clock.clone();
        config.roll_after = Some(Duration::from_secs(10));
    });
    let mut writer = log.open();
    put_at(&mut writer, NOW);
    put_at(&mut writer, NOW + 10_000);
    assert_eq!(bases(&writer), [0], "exactly as old may stay");
    put_at(&mut writer, NOW + 10_001);
    assert_eq!(bases(&writer), [0, 2]);
    // The clock of the machine does not matter where records have timestamps.
    clock.advance(Duration::from_secs(1000));
    put_at(&mut writer, NOW + 10_002);
    assert_eq!(bases(&writer), [0, 2]);
    put_at(&mut writer, 5);
    assert_eq!(bases(&writer), [0, 2], "backwards is not old");
    // The first batch is known again after a restart.
    drop(writer);
    let mut writer = log.open();
    put_at(&mut writer, NOW + 20_002);
    assert_eq!(bases(&writer), [0, 2, 5]);
    writer.close().unwrap();
    let mut writer = log.open();
    put_at(&mut writer, NOW + 30_002);
    assert_eq!(bases(&writer), [0, 2, 5]);
    put_at(&mut writer, NOW + 30_003);
    assert_eq!(bases(&writer), [0, 2, 5, 7]);
}

#[test]
fn without_timestamps_the_clock_tells_the_age() {
    let clock = Clock::manual(Timestamp::from_millis(NOW));
    let log = TempLog::in_memory(|config| {
        config.clock = clock.clone();
        config.roll_after = Some(Duration::from_secs(10));
    });
    let mut writer = log.open();
    put_at(&mut writer, -1);
    clock.advance(Duration::from_secs(10));
    put_at(&mut writer, -1);
    assert_eq!(bases(&writer), [0]);
    clock.advance(Duration::from_millis(1));
    put_at(&mut writer, -1);
    assert_eq!(bases(&writer), [0, 2]);
}

#[test]
fn an_empty_segment_is_not_rolled() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    for _ in 0..3 {
        writer.roll().unwrap();
    }
    assert_eq!(bases(&writer), [0]);
    fill(&mut writer, 1);
    for _ in 0..3 {
        writer.roll().unwrap();
    }
    assert_eq!(bases(&writer), [0, 1]);
    writer.close().unwrap();
    let writer = log.open();
    assert!(writer.recovery().clean, "{:?}", writer.recovery());
    assert_eq!(bases(&writer), [0, 1]);
}

#[test]
fn a_roll_whose_name_is_taken_fails_and_the_log_goes_on() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 3);
    let next = log.path().join("00000000000000000003.log");
    fs::write(&next, b"somebody else's").unwrap();
    assert!(matches!(writer.roll(), Err(Error::Io { .. })));
    assert_eq!(fs::read(&next).unwrap(), b"somebody else's");
    fill(&mut writer, 2);
    assert_eq!(pairs(&writer.reader()), expected(0..5));
    fs::remove_file(&next).unwrap();
    writer.roll().unwrap();
    fill(&mut writer, 1);
    assert_eq!(bases(&writer), [0, 5]);
    drop(writer);
    assert_eq!(pairs(&log.open().reader()), expected(0..6));
}

#[test]
fn readers_that_wait_go_on_over_a_roll() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    let outside = log.reader();
    let mut walks = [writer.reader().records(at(0)), outside.records(at(0))];
    for round in 0..30 {
        fill(&mut writer, 1);
        if round % 3 == 0 {
            writer.roll().unwrap();
        }
        outside.refresh().unwrap();
        for walk in &mut walks {
            assert_eq!(walk.next_record().unwrap().unwrap().offset(), at(round));
            assert!(walk.next_record().unwrap().is_none());
        }
    }
}
