//! What each policy says of an append, and when it makes records durable.

use std::time::Duration;

use stratalog::{
    AppendOptions, Clock, Durability, Error, Follow, FsyncPolicy, LogReader, ReadOptions, SyncMethod,
    Timestamp, record::Record,
};

use crate::support::{TempLog, at, expected, fill, pairs, put};

fn with(policy: FsyncPolicy) -> (TempLog, Clock) {
    let clock = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
    let log = TempLog::in_memory(|config| {
        config.fsync = policy;
        config.clock = clock.clone();
    });
    (log, clock)
}

/// Appends one record and returns what its acknowledgement said and the durable end.
fn step(writer: &mut stratalog::LogWriter) -> (Durability, i64) {
    let durability = put(writer, b"0123456789").durability;
    let durable = writer.durable_end().value();
    assert_eq!(durability == Durability::Durable, durable == writer.end().value());
    (durability, durable)
}

#[test]
fn commit_acknowledges_what_is_durable() {
    for method in [SyncMethod::Data, SyncMethod::Full] {
        let (mut log, _) = with(FsyncPolicy::Commit);
        log.config.sync_method = method;
        let mut writer = log.open();
        for count in 1..50 {
            assert_eq!(step(&mut writer), (Durability::Durable, count));
            assert_eq!(writer.lag(), stratalog::Lag::default());
        }
    }
}

#[test]
fn a_number_of_records_is_the_most_that_is_not_durable() {
    let (log, _) = with(FsyncPolicy::EveryRecords(4));
    let mut writer = log.open();
    let seen: Vec<i64> = (0..9).map(|_| step(&mut writer).1).collect();
    assert_eq!(seen, [0, 0, 0, 4, 4, 4, 4, 8, 8]);
    assert_eq!(writer.lag().records, 1);
}

#[test]
fn a_number_of_bytes_is_the_most_that_is_not_durable() {
    let (log, _) = with(FsyncPolicy::EveryBytes(200));
    let mut writer = log.open();
    for _ in 0..20 {
        let (durability, _) = step(&mut writer);
        let lag = writer.lag();
        assert!(lag.bytes < 200, "{lag:?}");
        assert_eq!(lag.bytes == 0, durability == Durability::Durable);
    }
    assert!(writer.durable_end() > at(10));
}

#[test]
fn an_interval_is_the_longest_that_a_record_waits_for_the_next_append_or_maintenance() {
    let (log, clock) = with(FsyncPolicy::Interval(Duration::from_millis(100)));
    let mut writer = log.open();
    assert_eq!(step(&mut writer), (Durability::Written, 0));
    clock.advance(Duration::from_millis(99));
    assert_eq!(step(&mut writer), (Durability::Written, 0));
    assert_eq!(writer.lag().age, Duration::from_millis(99));
    assert!(!writer.maintain().unwrap().synced);
    clock.advance(Duration::from_millis(1));
    assert!(writer.maintain().unwrap().synced);
    assert_eq!(writer.durable_end(), at(2));
    assert!(!writer.maintain().unwrap().synced, "nothing is waiting");
    step(&mut writer);
    clock.advance(Duration::from_millis(100));
    assert_eq!(step(&mut writer), (Durability::Durable, 4));
    // Wall time alone, backwards or ahead, moves nothing.
    step(&mut writer);
    clock.set_wall(Timestamp::from_millis(i64::MAX));
    assert_eq!(step(&mut writer).0, Durability::Written);
    clock.set_wall(Timestamp::from_millis(0));
    assert!(!writer.maintain().unwrap().synced);
}

#[test]
fn never_leaves_it_to_sync_and_close() {
    let (log, clock) = with(FsyncPolicy::Never);
    let mut writer = log.open();
    fill(&mut writer, 100);
    clock.advance(Duration::from_secs(1000));
    assert!(!writer.maintain().unwrap().synced);
    assert_eq!(writer.durable_end(), at(0));
    let durable = writer.reader().with_options({
        let mut options = ReadOptions::default();
        options.follow = Follow::Durable;
        options
    });
    assert!(matches!(durable.slice(at(0), 1), Err(Error::NeverDurable)));
    assert!(matches!(durable.record(at(0)), Err(Error::NeverDurable)));
    assert!(matches!(durable.batches(at(0)).next_batch(), Err(Error::NeverDurable)));
    assert_eq!(writer.sync().unwrap(), at(100));
    fill(&mut writer, 10);
    writer.close().unwrap();
    let writer = log.open();
    assert!(writer.recovery().clean);
    assert_eq!(writer.durable_end(), at(110));
}

#[test]
fn a_reader_of_the_durable_end_sees_nothing_past_it() {
    let (log, _) = with(FsyncPolicy::EveryRecords(1000));
    let mut writer = log.open();
    fill(&mut writer, 100);
    writer.sync().unwrap();
    fill(&mut writer, 100);
    let mut options = ReadOptions::default();
    options.follow = Follow::Durable;
    for reader in [writer.reader().with_options(options), LogReader::open(log.path(), options).unwrap()] {
        assert_eq!((reader.end(), reader.written_end()), (at(100), at(200)));
        assert_eq!(pairs(&reader), expected(0..100));
        let mut bytes = Vec::new();
        let mut next = at(0);
        loop {
            let outcome = reader.read(next, 500, &mut bytes).unwrap();
            if outcome.bytes == 0 {
                break;
            }
            next = outcome.next;
        }
        assert_eq!(next, at(100));
        assert!(reader.slice(at(100), 1).unwrap().is_none());
        assert!(reader.record(at(100)).is_err());
        assert_eq!(reader.last_records_from(3).unwrap(), at(97));
        let mut walk = reader.records(at(95));
        while walk.next_record().unwrap().is_some() {}
        assert_eq!(walk.position().offset, at(100));
    }
    let reader = writer.reader().with_options(options);
    let mut walk = reader.records(at(95));
    let mut seen = 0;
    while walk.next_record().unwrap().is_some() {
        seen += 1;
    }
    writer.sync().unwrap();
    while walk.next_record().unwrap().is_some() {
        seen += 1;
    }
    assert_eq!(seen, 105, "the walk goes on once there is more");
}

#[test]
fn several_deferred_appends_are_made_durable_by_one_of_them() {
    let (log, _) = with(FsyncPolicy::Commit);
    let mut writer = log.open();
    let mut pending: Vec<_> = (0..10)
        .map(|_| {
            writer.append_records_deferred(&[Record::value_only(b"x")], AppendOptions::default()).unwrap()
        })
        .collect();
    assert_eq!(writer.durable_end(), at(0));
    let last = pending.pop().unwrap();
    assert_eq!(last.wait().unwrap().durability, Durability::Durable);
    assert_eq!(writer.durable_end(), at(10));
    for waiting in pending {
        assert!(waiting.is_durable());
        assert_eq!(waiting.wait().unwrap().durability, Durability::Durable);
    }
}
