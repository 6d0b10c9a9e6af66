//! Retention: F062 to F073. Sums past 32 bits (F063) are tested where the decision lives.

use std::{fs, time::Duration};

use stratalog::{AppendOptions, Clock, Error, LogWriter, Retention, Timestamp, record::Record};

use super::{bases, file, forget};
use crate::support::{TempLog, at, expected, fill, pairs};

const NOW: i64 = 1_700_000_000_000;

fn with_clock() -> (TempLog, Clock) {
    let clock = Clock::manual(Timestamp::from_millis(NOW));
    let log = TempLog::in_memory(|config| {
        config.clock = clock.clone();
        config.segment_bytes = 8 << 20;
        config.max_batch_bytes = 8 << 20;
    });
    (log, clock)
}

fn limit(writer: &mut LogWriter, bytes: Option<u64>, age: Option<Duration>) {
    let mut config = writer.config().clone();
    config.retention = Retention { bytes, age };
    writer.set_config(config).unwrap();
}

/// Segments of these many bytes, nearly; the last is the active one.
fn sized(writer: &mut LogWriter, sizes: &[usize]) {
    for (index, size) in sizes.iter().enumerate() {
        if index > 0 {
            writer.roll().unwrap();
        }
        let value = vec![7; size - 100];
        writer.append_records(&[Record::value_only(&value)], AppendOptions::default()).unwrap();
    }
}

#[test]
fn f062_size_retention_does_not_go_below_the_limit() {
    let mib = 1 << 20;
    // What remains is just below whole MiB, so the limits are too.
    for (bytes, gone) in [(2 * mib - 1000, 1), (3 * mib - 1000, 1), (3 * mib + 1000, 0), (0, 2)] {
        let (log, _) = with_clock();
        let mut writer = log.open();
        sized(&mut writer, &[mib, 2 * mib, mib]);
        limit(&mut writer, Some(bytes as u64), None);
        let done = writer.maintain().unwrap();
        assert_eq!(done.dropped_segments, gone, "limit {bytes}");
        assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
        let left: u64 = writer.reader().segments().iter().map(|segment| segment.size_bytes).sum();
        assert!(left >= bytes as u64 || gone == 0);
        assert_eq!(bases(&log), (i64::try_from(gone).unwrap()..3).collect::<Vec<_>>());
    }
}

#[test]
fn f062_a_size_equal_to_the_limit_may_remain() {
    let (log, _) = with_clock();
    let mut writer = log.open();
    sized(&mut writer, &[1000, 1000, 1000]);
    let rest: u64 = writer.reader().segments()[1..].iter().map(|segment| segment.size_bytes).sum();
    limit(&mut writer, Some(rest + 1), None);
    assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
    limit(&mut writer, Some(rest), None);
    assert_eq!(writer.maintain().unwrap().dropped_segments, 1);
}

#[test]
fn f064_a_second_pass_drops_nothing_and_what_lies_below_the_start_does_not_count() {
    let (log, _) = with_clock();
    let mut writer = log.open();
    for _ in 0..6 {
        fill(&mut writer, 4);
        writer.roll().unwrap();
    }
    writer.advance_start(at(6)).unwrap();
    let sizes: Vec<u64> = writer.reader().segments().iter().map(|segment| segment.size_bytes).collect();
    // All that remain after the first segment, which lies below the start.
    limit(&mut writer, Some(sizes[1..].iter().sum()), None);
    assert_eq!(writer.maintain().unwrap().dropped_segments, 1);
    assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
    assert_eq!(writer.start(), at(6));
    assert_eq!(pairs(&writer.reader()), expected(6..24));
    assert!(matches!(writer.reader().record(at(5)), Err(Error::OffsetOutOfRange { .. })));
}

#[test]
fn f065_what_lies_below_the_start_goes_without_any_limit() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 300);
    writer.advance_start(at(200)).unwrap();
    let holder = bases(&log).iter().rev().find(|base| **base <= 200).copied().unwrap();
    assert!(writer.maintain().unwrap().dropped_segments > 0);
    assert_eq!(bases(&log)[0], holder);
    drop(writer);
    let writer = log.open();
    assert_eq!(writer.start(), at(200));
    assert_eq!(pairs(&writer.reader()), expected(200..300));
}

#[test]
fn f069_all_segments_obey_the_present_setting() {
    let (log, clock) = with_clock();
    let mut writer = log.open();
    limit(&mut writer, None, Some(Duration::from_secs(1)));
    for _ in 0..5 {
        fill(&mut writer, 1);
        writer.roll().unwrap();
    }
    limit(&mut writer, None, Some(Duration::from_secs(10)));
    for _ in 0..5 {
        fill(&mut writer, 1);
        writer.roll().unwrap();
    }
    clock.advance(Duration::from_secs(5));
    assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
    clock.advance(Duration::from_secs(6));
    assert_eq!(writer.maintain().unwrap().dropped_segments, 10);
    assert_eq!((writer.start(), writer.end()), (at(10), at(10)));
}

#[test]
fn f070_limits_at_the_ends_of_their_ranges() {
    let (log, _) = with_clock();
    let mut config = log.config.clone();
    config.retention.age = Some(Duration::ZERO);
    assert!(matches!(
        LogWriter::open(log.path(), config),
        Err(Error::InvalidConfig { name: "retention.age", .. })
    ));
    let mut writer = log.open();
    sized(&mut writer, &[200, 200, 200]);
    limit(&mut writer, Some(u64::MAX), Some(Duration::MAX));
    assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
    limit(&mut writer, None, None);
    assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
    limit(&mut writer, Some(0), None);
    assert_eq!(writer.maintain().unwrap().dropped_segments, 2, "0: all but the active one");
}

#[test]
fn f072_an_end_outlives_all_its_segments() {
    for is_known in [true, false] {
        let (log, clock) = with_clock();
        let mut writer = log.open();
        limit(&mut writer, None, Some(Duration::from_secs(1)));
        fill(&mut writer, 50);
        clock.advance(Duration::from_secs(365 * 24 * 3600));
        assert_eq!(writer.maintain().unwrap().dropped_segments, 1);
        assert_eq!((writer.start(), writer.end()), (at(50), at(50)));
        let outside = log.reader();
        assert_eq!((outside.start(), outside.end()), (at(50), at(50)));
        drop(writer);
        if !is_known {
            forget(&log);
        }
        let mut writer = log.open();
        assert_eq!((writer.start(), writer.end()), (at(50), at(50)));
        fill(&mut writer, 1);
        writer.close().unwrap();
        let writer = log.open();
        assert_eq!((writer.start(), writer.end()), (at(50), at(51)));
        assert_eq!(pairs(&writer.reader()), expected(50..51));
    }
}

#[test]
fn f073_the_start_never_passes_what_is_durable() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 150);
    assert_eq!(writer.durable_end(), at(0));
    writer.advance_start(at(120)).unwrap();
    assert!(writer.start() <= writer.durable_end() && writer.durable_end() <= writer.end());
    fill(&mut writer, 150);
    limit(&mut writer, Some(0), None);
    writer.maintain().unwrap();
    assert!(writer.start() > at(200));
    assert!(writer.start() <= writer.durable_end() && writer.durable_end() <= writer.end());
}

#[test]
fn a_start_past_the_end_that_was_stored_is_reported_and_removes_nothing() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 100);
    writer.close().unwrap();
    fs::write(log.temp.path().join("meta.properties"), "").unwrap();
    fs::write(log.temp.path().join("log-start-offset-checkpoint"), "0\n1\nt 0 5000\n").unwrap();
    for is_known in [true, false] {
        if !is_known {
            forget(&log);
        }
        let writer = log.open();
        assert_eq!((writer.start(), writer.end()), (at(0), at(100)));
        assert_eq!(pairs(&writer.reader()), expected(0..100));
        assert!(
            writer.recovery().warnings.iter().any(|warning| warning.contains("5000")),
            "{:?}",
            writer.recovery()
        );
    }
}

#[test]
fn readers_that_retention_overtook_are_told_and_open_files_are_read_on() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 300);
    let outside = log.reader();
    let readers = [writer.reader(), outside.clone()];
    let mut walks = readers.clone().map(|reader| reader.records(at(0)));
    let slices = readers.clone().map(|reader| reader.slice(at(0), 1).unwrap().unwrap());
    for walk in &mut walks {
        assert_eq!(walk.next_record().unwrap().unwrap().offset(), at(0));
    }
    limit(&mut writer, Some(0), None);
    assert!(writer.maintain().unwrap().dropped_segments > 3);
    let start = writer.start();
    outside.refresh().unwrap();
    for walk in &mut walks {
        let mut next = 1;
        let error = loop {
            match walk.next_record() {
                Ok(Some(record)) => {
                    assert_eq!(record.offset(), at(next));
                    next += 1;
                }
                Ok(None) => panic!("the walk ended at {next} without a word"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::OffsetOutOfRange { start: told, .. } if told == start), "{error}");
        assert!(next < start.value());
    }
    for slice in slices {
        let mut bytes = vec![0; slice.len() as usize];
        slice.read_into(&mut bytes).unwrap();
        assert_eq!(bytes[..8], [0; 8]);
        assert!(bytes.iter().any(|byte| *byte != 0));
    }
    assert!(!file(&log, 0, "log").exists());
}

#[test]
fn a_reader_from_outside_that_was_not_refreshed_meets_vanished_files_without_a_false_answer() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 300);
    let outside = log.reader();
    limit(&mut writer, Some(0), None);
    writer.maintain().unwrap();
    let start = writer.start();
    for offset in [0, 50, 150] {
        let found = outside.record(at(offset));
        assert!(matches!(found, Err(Error::OffsetOutOfRange { .. })), "{offset}: {found:?}");
    }
    assert_eq!(outside.start(), start);
    assert_eq!(pairs(&outside), expected(start.value()..300));
    let time = outside.offset_for_timestamp(Timestamp::from_millis(0)).unwrap();
    assert_eq!(time.map(|(offset, _)| offset), Some(start));
}
