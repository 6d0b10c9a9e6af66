//! Where the parts meet: many threads, producers that repeat themselves, rolls, retention, restarts and a reader that
//! attaches, all on one log.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use stratalog::{
    AppendOptions, Cursor, Error, FsyncPolicy, OpenMode, Producer, ReadOptions, SharedWriter, Store,
    StoreConfig, Wait,
    record::{Record, TimestampType},
};

use crate::support::{TempLog, at};

/// Random enough, and the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A producer that knows what it was told.
struct Sender {
    id: i64,
    next: i32,
    /// First number, how many, and where they went, of the last calls.
    sent: VecDeque<(i32, i32, i64)>,
    /// A call that was not answered.
    unknown: Option<(i32, i32)>,
    /// System calls are made to fail.
    expects_failures: bool,
    dice: Dice,
}

impl Sender {
    fn call(
        &self,
        writer: &SharedWriter,
        (first, count): (i32, i32),
        how: u64,
    ) -> stratalog::Result<(i64, bool)> {
        let values: Vec<String> =
            (first..first + count).map(|number| format!("{}/{number}", self.id)).collect();
        let records: Vec<Record<'_>> =
            values.iter().map(|value| Record::value_only(value.as_bytes())).collect();
        let producer = Some(Producer { id: self.id, epoch: 0, sequence: first });
        let options = AppendOptions { producer, ..AppendOptions::default() };
        let appended = if how == 0 {
            writer.append_records_deferred(&records, options)?.wait()?
        } else {
            writer.append_records(&records, options)?
        };
        assert_eq!(appended.last_offset.value() - appended.base_offset.value(), i64::from(count - 1));
        Ok((appended.base_offset.value(), appended.duplicate))
    }

    /// True for what the log's state is the reason of, not what the producer asked for.
    fn may_meet(&self, error: &Error) -> bool {
        match error {
            Error::Closed => true,
            Error::Poisoned { .. } | Error::Io { .. } | Error::StorageFull { .. } => self.expects_failures,
            _ => false,
        }
    }

    fn step(&mut self, writer: &SharedWriter) -> bool {
        let how = self.dice.roll(3);
        let fresh = match self.unknown.take() {
            Some(unknown) => unknown,
            None if self.dice.roll(3) == 0 && !self.sent.is_empty() => {
                let back = self.dice.roll(self.sent.len() as u64) as usize;
                let (first, count, offset) = self.sent[back];
                match self.call(writer, (first, count), how) {
                    Ok(answer) => assert_eq!(answer, (offset, true), "{}/{first}", self.id),
                    Err(error) if self.may_meet(&error) => return false,
                    // A restart knows the last batch of each, and what the log still holds.
                    Err(Error::OutOfOrderSequence { .. })
                        if offset < writer.start().value() && back + 1 < self.sent.len() => {}
                    Err(error) => {
                        panic!("{}/{first} at {offset}, start {}: {error}", self.id, writer.start())
                    }
                }
                return true;
            }
            None if self.dice.roll(9) == 0 && !self.sent.is_empty() => {
                match self.call(writer, (self.next + 1, 1), how) {
                    Err(Error::OutOfOrderSequence { expected, .. }) => assert_eq!(expected, self.next),
                    Err(error) if self.may_meet(&error) => return false,
                    other => panic!("{}/{}: {other:?}", self.id, self.next),
                }
                return true;
            }
            None => {
                let count = 1 + self.dice.roll(3) as i32;
                (self.next, count)
            }
        };
        match self.call(writer, fresh, how) {
            Ok((offset, _)) => {
                self.sent.push_back((fresh.0, fresh.1, offset));
                if self.sent.len() > 5 {
                    self.sent.pop_front();
                }
                self.next = fresh.0 + fresh.1;
                true
            }
            Err(error) if self.may_meet(&error) => {
                self.unknown = Some(fresh);
                false
            }
            Err(error) => panic!("{}/{}: {error}", self.id, fresh.0),
        }
    }
}

/// Takes in values: each producer's numbers rise by one.
fn check_values<'a>(values: impl Iterator<Item = &'a str>, seen: &mut BTreeMap<String, i32>) {
    for value in values {
        let (id, number) = value.split_once('/').unwrap();
        let number: i32 = number.parse().unwrap();
        if let Some(last) = seen.insert(id.to_owned(), number) {
            assert_eq!(number, last + 1, "of producer {id}");
        }
    }
}

fn follow(log: &TempLog, is_over: &AtomicBool, seed: u64) {
    let reader = log.reader();
    let mut seen = BTreeMap::new();
    let mut next = reader.start();
    let mut dice = Dice(seed);
    let mut walk = reader.records(reader.start());
    loop {
        let mut values = Vec::new();
        let most = dice.roll(40);
        let error = loop {
            if values.len() as u64 > most {
                break None;
            }
            match walk.next_record() {
                Ok(Some(record)) => {
                    assert_eq!(record.offset(), next);
                    next = record.offset().next().unwrap();
                    values.push(String::from_utf8_lossy(record.value().unwrap()).into_owned());
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        check_values(values.iter().map(String::as_str), &mut seen);
        match error {
            None => {
                if values.is_empty() {
                    match reader.wait_past(walk.position(), Instant::now() + Duration::from_millis(20)) {
                        Wait::Truncated { end } => panic!("cut at {end}"),
                        _ if is_over.load(Ordering::Acquire) && walk.position().offset >= reader.end() => {
                            return;
                        }
                        _ => {}
                    }
                }
            }
            Some(Error::OffsetOutOfRange { start, .. }) => {
                assert!(start > next);
                (next, seen) = (start, BTreeMap::new());
                walk = reader.records(start);
            }
            Some(error) => panic!("{error}"),
        }
    }
}

fn round(seed: u64, keep_bytes: u64) {
    let mut dice = Dice(seed);
    let log = TempLog::in_memory(|config| {
        config.fsync =
            [FsyncPolicy::Never, FsyncPolicy::Commit, FsyncPolicy::EveryRecords(7)][dice.roll(3) as usize];
        config.retention.bytes = Some(keep_bytes);
        config.max_queued_bytes = 512;
        if dice.roll(2) == 0 {
            config.timestamp_type = TimestampType::LogAppendTime;
        }
        config.segment_bytes = 2048 << dice.roll(3);
    });
    let mut senders: Vec<Sender> = (0..4)
        .map(|id| Sender {
            id,
            next: 0,
            sent: VecDeque::new(),
            unknown: None,
            expects_failures: false,
            dice: Dice(seed * 31 + id.cast_unsigned()),
        })
        .collect();
    drop(log.open());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (log, is_over) = (&log, &is_over);
        for reader in 0..2 {
            scope.spawn(move || follow(log, is_over, seed + reader));
        }
        for _ in 0..6 {
            let writer = SharedWriter::from(log.open());
            let closes = dice.roll(2) == 0;
            let stops = AtomicBool::new(false);
            thread::scope(|scope| {
                let stops = &stops;
                let senders: Vec<_> = senders
                    .iter_mut()
                    .map(|sender| {
                        let writer = writer.clone();
                        scope.spawn(move || {
                            for _ in 0..40 {
                                if !sender.step(&writer) {
                                    break;
                                }
                            }
                        })
                    })
                    .collect();
                let other = writer.clone();
                scope.spawn(move || {
                    while !stops.load(Ordering::Acquire) {
                        match other.maintain() {
                            Ok(_) | Err(Error::Closed) => {}
                            Err(error) => panic!("{error}"),
                        }
                        match other.roll() {
                            Ok(()) | Err(Error::Closed) => {}
                            Err(error) => panic!("{error}"),
                        }
                        thread::sleep(Duration::from_micros(300));
                    }
                });
                if closes {
                    thread::sleep(Duration::from_micros(dice.roll(8000)));
                    writer.close().unwrap();
                }
                let done: Vec<_> = senders.into_iter().map(thread::ScopedJoinHandle::join).collect();
                stops.store(true, Ordering::Release);
                is_over.store(done.iter().any(Result::is_err), Ordering::Release);
                done.into_iter().for_each(Result::unwrap);
            });
            if !closes && dice.roll(2) == 0 {
                writer.close().unwrap();
            }
        }
        is_over.store(true, Ordering::Release);
    });
    let reader = log.reader();
    let values = crate::support::pairs(&reader);
    check_values(values.iter().map(|(_, value)| value.as_str()), &mut BTreeMap::new());
    assert!(reader.end() > at(0));
}

#[test]
fn producers_threads_retention_restarts_and_readers_together() {
    for seed in 0..6 {
        round(seed, 6000);
    }
}

fn topics_come_and_go(store: &Store) {
    for turn in 0..6 {
        store.create_topic("gone", 2).unwrap();
        let log = store.log("gone", turn % 2).unwrap();
        log.append_records(&[Record::value_only(b"0/0")], AppendOptions::default()).unwrap();
        let reader = store.reader("gone", turn % 2, ReadOptions::default()).unwrap();
        store.delete_topic("gone").unwrap();
        assert_eq!(crate::support::pairs(&reader).len(), 1);
        assert!(matches!(log.end(), Err(Error::NotFound { .. })));
    }
}

/// Producers, cursors and attached readers on the logs of one store, which closes and opens them all the time, beside topics
/// that come and go.
fn store_round(seed: u64) {
    let mut dice = Dice(seed);
    let temp = crate::support::fast_dir();
    let dir = temp.path().join("data");
    let config = || {
        let mut config = StoreConfig::default();
        config.log.open = OpenMode::CreateIfMissing;
        config.log.segment_bytes = 2048;
        config.log.fsync = FsyncPolicy::Never;
        config.descriptors = Some(24);
        config
    };
    let mut known: Vec<Vec<(i32, i64)>> = vec![Vec::new(); 6];
    for life in 0..4 {
        let store = Store::open(&dir, config()).unwrap();
        if life == 0 {
            store.create_topic("t", 6).unwrap();
        }
        thread::scope(|scope| {
            for (partition, known) in known.iter_mut().enumerate() {
                let (store, mut dice) = (store.clone(), Dice(seed * 7 + partition as u64));
                scope.spawn(move || {
                    let partition = partition as i32;
                    let log = store.log("t", partition).unwrap();
                    let reader = store.reader("t", partition, ReadOptions::default()).unwrap();
                    let path = log.path();
                    for _ in 0..60 {
                        let next = known.len() as i32;
                        let first = if dice.roll(4) == 0 && next > 0 {
                            next - 1 - dice.roll(next.min(5).unsigned_abs().into()) as i32
                        } else {
                            next
                        };
                        let value = format!("{partition}/{first}");
                        let producer = Some(Producer { id: 7, epoch: 0, sequence: first });
                        let options = AppendOptions { producer, ..AppendOptions::default() };
                        let appended =
                            log.append_records(&[Record::value_only(value.as_bytes())], options).unwrap();
                        assert_eq!(appended.duplicate, first < next);
                        if first < next {
                            assert_eq!(
                                appended.base_offset.value(),
                                known.iter().find(|one| one.0 == first).unwrap().1
                            );
                        } else {
                            known.push((first, appended.base_offset.value()));
                        }
                        match dice.roll(12) {
                            0 => log.rest().unwrap(),
                            1 => drop(store.close_idle(1)),
                            2 => drop(log.reader().unwrap()),
                            3 => drop(store.maintain().unwrap()),
                            4 => {
                                let mut cursor = Cursor::open(&path, "c").unwrap();
                                let from = cursor.position().unwrap_or_else(|| at(0).into());
                                let mut walk = reader.records(from);
                                let mut expected = from.offset;
                                while let Some(record) = walk.next_record().unwrap() {
                                    assert_eq!(record.offset(), expected);
                                    let value = format!("{partition}/{}", record.offset());
                                    assert_eq!(record.value(), Some(value.as_bytes()));
                                    expected = record.offset().next().unwrap();
                                }
                                cursor.commit(walk.position()).unwrap();
                                assert!(expected.value() <= known.len() as i64);
                            }
                            5 => {
                                let wait = reader.wait_past(
                                    at(known.len() as i64 - 1),
                                    Instant::now() + Duration::from_secs(5),
                                );
                                assert_eq!(wait, Wait::Advanced, "{partition}");
                            }
                            _ => {}
                        }
                    }
                });
            }
            let other = store.clone();
            scope.spawn(move || topics_come_and_go(&other));
        });
        if dice.roll(2) == 0 {
            assert!(store.close().unwrap() || life > 0);
        }
    }
    let store = Store::open(&dir, config()).unwrap();
    for (partition, known) in known.iter().enumerate() {
        let reader = store.reader("t", partition as i32, ReadOptions::default()).unwrap();
        let values = crate::support::pairs(&reader);
        assert_eq!(values.len(), known.len());
        let log = store.log("t", partition as i32).unwrap();
        assert_eq!(log.end().unwrap(), at(known.len() as i64));
    }
    store.recover_all().unwrap();
    assert!(store.close().unwrap());
}

#[test]
fn a_store_that_opens_and_closes_its_logs_under_producers_readers_and_cursors() {
    for seed in 0..4 {
        store_round(seed);
    }
}

/// The same with failing system calls of all kinds: whoever is told of a failure asks again, in this life of the log or in
/// the next, and each record is there once.
#[cfg(feature = "sim")]
fn failing_round(seed: u64) {
    use stratalog::sim::{Call, Fault, Recording};

    let mut dice = Dice(seed);
    let log = TempLog::in_memory(|config| {
        config.fsync = [FsyncPolicy::Never, FsyncPolicy::Commit][dice.roll(2) as usize];
        config.retention.bytes = (dice.roll(2) == 0).then_some(6000);
        config.segment_bytes = 2048;
    });
    let recording = Recording::install(log.temp.path()).unwrap();
    drop(log.open());
    let mut senders: Vec<Sender> = (0..3)
        .map(|id| Sender {
            id,
            next: 0,
            sent: VecDeque::new(),
            unknown: None,
            expects_failures: true,
            dice: Dice(seed * 31 + id.cast_unsigned()),
        })
        .collect();
    for _ in 0..8 {
        let writer = loop {
            match stratalog::LogWriter::open(log.path(), log.config.clone()) {
                Ok(writer) => break SharedWriter::from(writer),
                Err(error) => assert!(!recording.is_failing() || !error.is_corruption(), "{error}"),
            }
        };
        for _ in 0..3 {
            let call = [
                None,
                Some(Call::Write),
                Some(Call::Sync),
                Some(Call::Create),
                Some(Call::Rename),
                Some(Call::SyncDir),
            ];
            let errno = [5, 28][dice.roll(2) as usize];
            let call = call[dice.roll(6) as usize];
            let fault =
                Fault { call, times: 1 + dice.roll(2) as usize, ..Fault::nth(dice.roll(12) as usize, errno) };
            recording.fail(fault);
        }
        thread::scope(|scope| {
            for sender in &mut senders {
                let writer = writer.clone();
                scope.spawn(move || {
                    for turn in 0..25 {
                        sender.step(&writer);
                        if sender.id == 0 && turn % 6 == 5 {
                            let _ = writer.roll();
                            let _ = writer.maintain();
                        }
                    }
                });
            }
        });
        let closed = dice.roll(2) == 0 && writer.close().is_ok();
        drop(writer);
        if dice.roll(2) == 0 || !closed {
            recording.heal();
        }
    }
    recording.heal();
    let writer = SharedWriter::from(log.open());
    for sender in &mut senders {
        while sender.unknown.is_some() {
            assert!(sender.step(&writer));
        }
        sender.step(&writer);
    }
    let values = crate::support::pairs(&log.reader());
    check_values(values.iter().map(|(_, value)| value.as_str()), &mut BTreeMap::new());
    assert_eq!(values.len() as i64, log.reader().end().value() - log.reader().start().value());
}

#[cfg(feature = "sim")]
#[test]
fn each_record_is_there_once_whatever_call_fails() {
    for seed in 0..4 {
        failing_round(seed);
    }
}
