//! Which old segments go, and what is left for readers, restarts and a crash in between.

use std::{fs, time::Duration};

use stratalog::{Clock, Error, Retention, Timestamp};

use crate::support::{TempLog, at, expected, fill, pairs};

const NOW: i64 = 1_700_000_000_000;

#[test]
fn nothing_goes_by_default() {
    let clock = Clock::manual(Timestamp::from_millis(NOW));
    let log = TempLog::in_memory(|config| config.clock = clock.clone());
    let mut writer = log.open();
    fill(&mut writer, 300);
    clock.advance(Duration::from_secs(1 << 32));
    assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
    assert_eq!(pairs(&writer.reader()), expected(0..300));
}

#[test]
fn both_limits_hold_and_all_files_of_a_segment_go() {
    let clock = Clock::manual(Timestamp::from_millis(NOW));
    let log = TempLog::in_memory(|config| {
        config.clock = clock.clone();
        config.retention = Retention { bytes: Some(6000), age: Some(Duration::from_secs(60)) };
    });
    let mut writer = log.open();
    fill(&mut writer, 100);
    clock.advance(Duration::from_secs(61));
    fill(&mut writer, 200);
    // A broker's own file of the first segment goes with it.
    fs::write(log.path().join("00000000000000000000.txnindex"), b"").unwrap();
    let done = writer.maintain().unwrap();
    assert!(done.dropped_segments >= 2 && done.dropped_bytes > 6000, "{done:?}");
    let start = writer.start();
    assert_eq!(done.start, start);
    let names: Vec<String> = fs::read_dir(log.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        if let Some((base, _)) = name.split_once('.')
            && let Ok(base) = base.parse::<i64>()
        {
            assert!(base >= start.value(), "{name} of a dropped segment stays");
        }
    }
    assert_eq!(pairs(&writer.reader()), expected(start.value()..300));
    drop(writer);
    assert_eq!(pairs(&log.open().reader()), expected(start.value()..300));
}

#[test]
fn a_start_that_readers_saw_does_not_go_back() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 300);
    for to in [1, 100, 57, 100, 299, 300] {
        let before = writer.start();
        writer.advance_start(at(to)).unwrap();
        assert_eq!(writer.start(), before.max(at(to)));
        assert_eq!(log.reader().start(), writer.start());
        assert!(matches!(writer.reader().record(at(0)), Err(Error::OffsetOutOfRange { .. })));
        // Killed right after: the checkpoint came first.
        drop(writer);
        writer = log.open();
        assert_eq!(writer.start(), before.max(at(to)));
        assert_eq!(pairs(&writer.reader()), expected(writer.start().value()..300));
    }
    assert!(matches!(writer.advance_start(at(301)), Err(Error::OffsetOutOfRange { .. })));
    assert_eq!(writer.reader().segments().len(), 1);
}

#[test]
fn segments_that_a_crash_left_below_the_start_go_with_the_next_open() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 300);
    let first = writer.reader().segments()[0].path.clone();
    let bytes = fs::read(&first).unwrap();
    writer.advance_start(at(250)).unwrap();
    writer.maintain().unwrap();
    assert!(!first.exists());
    drop(writer);
    // Unlinking was not durable yet.
    fs::write(&first, bytes).unwrap();
    let writer = log.open();
    assert_eq!((writer.start(), writer.end()), (at(250), at(300)));
    assert!(!first.exists());
    assert_eq!(writer.recovery().cut, None);
    assert_eq!(pairs(&writer.reader()), expected(250..300));
}

#[test]
fn a_file_that_cannot_be_removed_delays_only_itself() {
    let log = TempLog::in_memory(|config| config.retention.bytes = Some(0));
    let mut writer = log.open();
    fill(&mut writer, 300);
    // A directory stands where an index is to be removed.
    let index = log.path().join("00000000000000000000.index");
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    let done = writer.maintain().unwrap();
    assert!(done.dropped_segments > 3);
    assert!(!log.path().join("00000000000000000000.log").exists());
    let start = writer.start().value();
    assert_eq!(pairs(&writer.reader()), expected(start..300));
}

#[test]
fn epochs_that_nothing_readable_has_are_forgotten() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    for epoch in 1..5 {
        writer.set_leader_epoch(epoch).unwrap();
        fill(&mut writer, 50);
    }
    assert_eq!(writer.reader().leader_epochs(), [(1, at(0)), (2, at(50)), (3, at(100)), (4, at(150))]);
    writer.advance_start(at(120)).unwrap();
    assert_eq!(writer.reader().leader_epochs(), [(3, at(120)), (4, at(150))]);
    drop(writer);
    let writer = log.open();
    assert_eq!(writer.reader().leader_epochs(), [(3, at(120)), (4, at(150))]);
    assert_eq!(writer.leader_epoch(), 4);
}
