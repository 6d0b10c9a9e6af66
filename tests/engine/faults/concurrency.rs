//! Several threads on one log at the same time.

use std::{
    fs,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use stratalog::{
    AppendOptions, Clock, Error, FsyncPolicy, Offset, Retention, SharedWriter, Timestamp, record::Record,
};

use crate::support::{TempLog, all, at, expected, fill, pairs};

fn shared(log: &TempLog) -> SharedWriter {
    SharedWriter::open(log.path(), log.config.clone()).unwrap()
}

fn append(log: &SharedWriter, value: &str) -> Offset {
    let record = [Record::value_only(value.as_bytes())];
    log.append_records(&record, AppendOptions::default()).unwrap().base_offset
}

/// Four threads that append `count` records each, beside something else that is done again and again meanwhile. The
/// offsets they were told, with their values.
fn appends_beside(log: &SharedWriter, count: usize, other: impl Fn() + Sync) -> Vec<(i64, String)> {
    let is_over = AtomicBool::new(false);
    let mut told = thread::scope(|scope| {
        let beside = scope.spawn(|| {
            while !is_over.load(SeqCst) {
                other();
            }
        });
        let work = |thread| {
            let values = (0..count).map(move |turn| format!("{thread}-{turn}"));
            values.map(|value| (append(log, &value).value(), value)).collect::<Vec<_>>()
        };
        let appenders: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        let told: Vec<_> = appenders.into_iter().flat_map(|appender| appender.join().unwrap()).collect();
        is_over.store(true, SeqCst);
        beside.join().unwrap();
        told
    });
    told.sort();
    told
}

/// Readers that always ask for their next offset, while segments of a few records roll under them.
#[test]
fn f180_a_read_at_the_end_is_never_out_of_range() {
    let temp = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = temp.open();
    let count = 2_000;
    thread::scope(|scope| {
        for _ in 0..4 {
            let reader = writer.reader();
            scope.spawn(move || {
                let (mut next, mut seen, mut bytes) = (at(0), 0, Vec::new());
                while seen < count {
                    bytes.clear();
                    let outcome = reader.read(next, 200, &mut bytes).unwrap();
                    if outcome.bytes == 0 {
                        thread::yield_now();
                        continue;
                    }
                    assert_eq!(&bytes[..8], next.value().to_be_bytes());
                    seen += outcome.next.since(next);
                    next = outcome.next;
                }
            });
        }
        fill(&mut writer, count);
    });
}

/// Thirty-two threads meet each segment for the first time at the same moment.
#[test]
fn f181_segments_that_many_open_at_once_are_open_once() {
    const SEGMENTS: usize = 40;
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    for _ in 0..SEGMENTS {
        fill(&mut writer, 3);
        writer.roll().unwrap();
    }
    writer.close().unwrap();
    let dir = fs::canonicalize(log.path()).unwrap();
    let (reader, barrier) = (log.reader(), Barrier::new(32));
    thread::scope(|scope| {
        for thread in 0..32 {
            let (reader, barrier) = (&reader, &barrier);
            scope.spawn(move || {
                for segment in 0..SEGMENTS {
                    let offset = i64::try_from(3 * segment + thread % 3).unwrap();
                    barrier.wait();
                    let found = reader.record(at(offset)).unwrap().unwrap();
                    let value = String::from_utf8(found.value.unwrap().to_vec()).unwrap();
                    assert_eq!(expected(offset..offset + 1), [(found.offset.value(), value)]);
                }
            });
        }
    });
    let mut open: Vec<_> = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|fd| fs::read_link(fd.unwrap().path()).ok())
        // The last one a reader from outside holds open for itself.
        .filter(|path| path.starts_with(&dir) && path.extension().is_some_and(|kind| kind == "log"))
        .filter(|path| !path.ends_with(format!("{:020}.log", 3 * SEGMENTS)))
        .collect();
    let count = open.len();
    open.sort();
    open.dedup();
    assert_eq!(open.len(), count, "a file is open twice");
    assert!(count >= SEGMENTS, "{count}: they were to be opened");
}

/// A reader stands inside a segment that is dropped, and so are those after it.
#[test]
fn f185_a_paused_reader_goes_on_or_is_told_where_the_log_begins() {
    let temp = TempLog::in_memory(|_| {});
    let mut writer = temp.open();
    for _ in 0..5 {
        fill(&mut writer, 4);
        writer.roll().unwrap();
    }
    for reader in [temp.reader(), writer.reader()] {
        let start = reader.start().value();
        let mut walk = reader.records(reader.start());
        walk.next_record().unwrap().unwrap();
        let slice = reader.slice(reader.start(), u32::MAX).unwrap().unwrap();
        let mut before = vec![0; slice.len().try_into().unwrap()];
        slice.read_into(&mut before).unwrap();

        fill(&mut writer, 4);
        writer.roll().unwrap();
        writer.sync().unwrap();
        let begins = start + 12;
        writer.advance_start(at(begins)).unwrap();
        let mut after = vec![0; before.len()];
        slice.read_into(&mut after).unwrap();
        assert!(before == after, "a slice outlives its file");

        reader.refresh().unwrap();
        let mut next = start + 1;
        let told = loop {
            match walk.next_record() {
                Ok(Some(record)) => assert_eq!(record.offset(), at(next)),
                Ok(None) => panic!("silent at {next}"),
                Err(error) => break error,
            }
            next += 1;
            assert!(next <= start + 4, "what is dropped is not read on for ever");
        };
        assert!(
            matches!(told, Error::OffsetOutOfRange { requested, start, .. } if requested == at(next) && start == at(begins)),
            "{told}"
        );
        assert_eq!(pairs(&reader), expected(begins..reader.end().value()));
    }
}

#[test]
fn f182_rolls_beside_appends_lose_nothing() {
    let temp = TempLog::in_memory(|config| {
        config.roll_after = Some(Duration::from_millis(1));
        config.clock = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
    });
    let clock = temp.config.clock.clone();
    let log = shared(&temp);
    let told = appends_beside(&log, 200, || {
        clock.advance(Duration::from_millis(2));
        log.roll().unwrap();
    });
    assert_eq!(pairs(&log.reader()), told);
    log.close().unwrap();
    assert_eq!(pairs(&temp.open().reader()), told);
}

/// The start is moved to the end and segments dropped all the time: no offset is given twice, and what lies at or past the
/// start that stands in the end is all there.
#[test]
fn f183_dropping_the_oldest_beside_appends_drops_nothing_new() {
    let temp = TempLog::in_memory(|config| {
        config.segment_bytes = 1024;
        config.retention = Retention { bytes: Some(1), age: None };
    });
    let log = shared(&temp);
    let told = appends_beside(&log, 300, || {
        log.advance_start(log.end()).unwrap();
        log.maintain().unwrap();
    });
    let offsets: Vec<i64> = told.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(offsets, (0..1200).collect::<Vec<_>>());
    let start = usize::try_from(log.start().value()).unwrap();
    assert_eq!(pairs(&log.reader()), told[start..]);
    assert!(start > 0);
    log.close().unwrap();
    assert_eq!(pairs(&temp.open().reader()), told[start..]);
}

/// A sync of a segment that retention drops meanwhile fails nothing.
#[test]
fn f184_syncs_beside_retention_poison_nothing() {
    let temp = TempLog::in_memory(|config| {
        config.segment_bytes = 1024;
        config.fsync = FsyncPolicy::EveryRecords(3);
        config.retention = Retention { bytes: Some(3000), age: None };
    });
    let log = shared(&temp);
    let told = appends_beside(&log, 300, || {
        log.maintain().unwrap();
        log.sync().unwrap();
    });
    log.sync().unwrap();
    let start = usize::try_from(log.start().value()).unwrap();
    assert_eq!((log.durable_end(), pairs(&log.reader())), (at(1200), told[start..].to_vec()));
    assert!(start > 0);
    log.close().unwrap();
}

#[test]
fn f186_what_was_acknowledged_is_found_at_once() {
    for policy in [FsyncPolicy::Never, FsyncPolicy::Commit] {
        let temp = TempLog::in_memory(|config| {
            config.fsync = policy;
            config.segment_bytes = 4096;
        });
        let log = shared(&temp);
        thread::scope(|scope| {
            for thread in 0..8 {
                let (log, reader) = (&log, log.reader());
                scope.spawn(move || {
                    for turn in 0..200 {
                        let value = format!("{thread}-{turn}");
                        let offset = append(log, &value);
                        let found = reader.record(offset).unwrap().unwrap();
                        assert_eq!((found.offset, found.value.as_deref()), (offset, Some(value.as_bytes())));
                    }
                });
            }
        });
    }
}

/// Errors of one call after the other leave nothing locked: everything goes on afterwards.
#[test]
fn f191_no_error_leaves_a_lock_behind() {
    let temp = TempLog::in_memory(|_| {});
    let log = shared(&temp);
    let expect = |end| AppendOptions { expected: Some(at(end)), ..AppendOptions::default() };
    for round in 0..3 {
        let value = round.to_string();
        assert_eq!(append(&log, &value), at(round));
        assert!(matches!(log.append(b"no batch", AppendOptions::default()), Err(Error::InvalidBatch(_))));
        let record = [Record::value_only(b"x")];
        assert!(matches!(log.append_records(&record, expect(99)), Err(Error::UnexpectedOffset { .. })));
        assert!(matches!(log.advance_start(at(99)), Err(Error::OffsetOutOfRange { .. })));
        assert!(matches!(log.set_leader_epoch(-1), Err(Error::InvalidConfig { .. })));
        let huge = vec![0; 1 << 20];
        let refused = log.append_records_deferred(&[Record::value_only(&huge)], AppendOptions::default());
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
        log.roll().unwrap();
        log.maintain().unwrap();
        assert_eq!(log.queued_bytes(), 0);
    }
    assert_eq!(pairs(&log.reader()), expected(0..3));
    assert_eq!(all(&log.reader()).len(), 3);
    log.close().unwrap();
}
