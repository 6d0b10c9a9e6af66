//! Many threads on one log.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use stratalog::{
    AppendOptions, Appended, Clock, Durability, Error, FsyncPolicy, LogWriter, Offset, Offsets, SharedWriter,
    Timestamp,
    record::{BatchBuilder, BatchOptions, Record, TimestampType},
};

use crate::support::{TempLog, all, at, fill, pairs};

fn shared(log: &TempLog) -> SharedWriter {
    SharedWriter::open(log.path(), log.config.clone()).unwrap()
}

fn with(policy: FsyncPolicy) -> TempLog {
    TempLog::in_memory(|config| {
        config.fsync = policy;
        config.segment_bytes = 16 << 10;
    })
}

/// What a thread did: the offset it was told and the value it appended there.
type Done = Vec<(i64, String)>;

/// Threads that append and note what they were told.
fn threads(
    count: usize,
    log: &SharedWriter,
    work: impl Fn(usize, &SharedWriter) -> Done + Sync,
) -> Vec<Done> {
    let barrier = Barrier::new(count);
    thread::scope(|scope| {
        let (work, barrier) = (&work, &barrier);
        let handles: Vec<_> = (0..count)
            .map(|number| {
                let log = log.clone();
                scope.spawn(move || {
                    barrier.wait();
                    work(number, &log)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}

/// All that was acknowledged is there, at the offset that was told, once, and nothing else; each thread's in its order.
fn is_all_of(told: &[Done], stored: &[(i64, String)]) {
    let offsets: Vec<i64> = stored.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(offsets, (0..stored.len() as i64).collect::<Vec<_>>(), "dense");
    for thread in told {
        assert!(thread.is_sorted_by(|one, next| one.0 < next.0), "in the order of the calls");
    }
    let mut together: Vec<_> = told.concat();
    together.sort();
    assert_eq!(together, stored);
}

fn reopened(log: &TempLog) -> Vec<(i64, String)> {
    let writer = log.open();
    let pairs = pairs(&writer.reader());
    writer.close().unwrap();
    pairs
}

fn options() -> AppendOptions {
    AppendOptions::default()
}

fn batch(values: &[&[u8]]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for value in values {
        builder.push(Record::value_only(value)).unwrap();
    }
    builder.finish().unwrap().to_vec()
}

/// The offsets and values that an append of several records was told.
fn told(appended: &Appended, values: &[String]) -> Done {
    let base = appended.base_offset.value();
    assert_eq!(appended.last_offset.value(), base + values.len() as i64 - 1);
    (base..).zip(values.iter().cloned()).collect()
}

/// One of every kind of append, by turns.
fn any_append(log: &SharedWriter, values: &[String], turn: usize) -> Done {
    let records: Vec<_> = values.iter().map(|value| Record::value_only(value.as_bytes())).collect();
    let bytes: Vec<_> = values.iter().map(String::as_bytes).collect();
    let appended = match turn % 4 {
        0 => log.append_records(&records, options()).unwrap(),
        1 => log.append(&batch(&bytes), options()).unwrap(),
        2 => log.append_records_deferred(&records, options()).unwrap().wait().unwrap(),
        _ => {
            let pending = log.append_deferred(&batch(&bytes), options()).unwrap();
            assert!(log.end() >= pending.end(), "visible when it returns");
            pending.wait().unwrap()
        }
    };
    if turn % 4 >= 2 {
        assert_eq!(appended.durability, Durability::Durable);
    }
    if appended.durability == Durability::Durable {
        assert!(log.durable_end() > appended.last_offset, "acknowledged before it was durable");
    }
    told(&appended, values)
}

fn values(thread: usize, turn: usize, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{thread}-{turn}-{number}")).collect()
}

#[test]
fn what_many_threads_append_is_there_once_and_in_each_threads_order() {
    for policy in [
        FsyncPolicy::Commit,
        FsyncPolicy::EveryBytes(3000),
        FsyncPolicy::EveryRecords(50),
        FsyncPolicy::Interval(Duration::from_millis(1)),
        FsyncPolicy::Never,
    ] {
        let temp = with(policy);
        let log = shared(&temp);
        let told = threads(8, &log, |thread, log| {
            let work = |turn| any_append(log, &values(thread, turn, 1 + turn % 3), turn + thread);
            (0..60).flat_map(work).collect()
        });
        let seen = pairs(&log.reader());
        is_all_of(&told, &seen);
        log.close().unwrap();
        assert_eq!(reopened(&temp), seen, "{policy:?}");
    }
}

/// Appends that name the end they expect, by many threads at once: each offset has one that won, and those that lost are
/// told where the log ended, past what they expected.
#[test]
fn of_those_that_expect_the_same_end_one_wins() {
    let temp = with(FsyncPolicy::Commit);
    let log = shared(&temp);
    let lost = AtomicUsize::new(0);
    let told = threads(8, &log, |thread, log| {
        let mut done = Done::new();
        while done.len() < 20 {
            let value = format!("{thread}-{}", done.len());
            let expected = log.end();
            let options = AppendOptions { expected: Some(expected), ..options() };
            match log.append_records(&[Record::value_only(value.as_bytes())], options) {
                Ok(appended) => {
                    assert_eq!(appended.base_offset, expected);
                    done.push((expected.value(), value));
                }
                Err(Error::UnexpectedOffset { expected: told, end }) => {
                    assert!(told == expected && end > expected);
                    lost.fetch_add(1, SeqCst);
                }
                Err(error) => panic!("{error}"),
            }
        }
        done
    });
    let seen = pairs(&log.reader());
    is_all_of(&told, &seen);
    assert_eq!(seen.len(), 160);
    log.close().unwrap();
    assert_eq!(reopened(&temp), seen);
}

#[test]
fn a_refused_append_changes_nothing_for_its_neighbours() {
    let temp = with(FsyncPolicy::Commit);
    let log = shared(&temp);
    let mut flipped = batch(&[b"x"]);
    *flipped.last_mut().unwrap() ^= 1;
    let huge = vec![0; 20 << 10];
    let told = threads(8, &log, |thread, log| {
        let mut done = Done::new();
        for turn in 0..30 {
            let refused = match turn % 4 {
                0 => log.append(&flipped, options()),
                1 => log.append_records(&[Record::value_only(&huge)], options()),
                2 => log.append_records(&[], options()),
                _ => {
                    let options = AppendOptions { expected: Some(at(1 << 40)), ..options() };
                    log.append(&batch(&[b"x"]), options)
                }
            };
            match (turn % 4, refused.unwrap_err()) {
                (0 | 2, Error::InvalidBatch(_))
                | (1, Error::TooLarge { .. })
                | (3, Error::UnexpectedOffset { .. }) => {}
                (_, other) => panic!("{other}"),
            }
            done.extend(any_append(log, &values(thread, turn, 2), turn));
        }
        done
    });
    let seen = pairs(&log.reader());
    is_all_of(&told, &seen);
    log.close().unwrap();
    assert_eq!(reopened(&temp), seen);
}

/// A call of several batches, or records in several, is seen whole or not at all, also where segments end between calls.
#[test]
fn a_reader_sees_whole_calls_only() {
    let temp = TempLog::in_memory(|config| {
        config.fsync = FsyncPolicy::Never;
        config.segment_bytes = 2048;
    });
    let log = shared(&temp);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = log.reader();
        let is_over = &is_over;
        let watch = scope.spawn(move || {
            let mut looks = 0;
            while !is_over.load(SeqCst) || looks == 0 {
                assert_eq!(reader.written_end().value() % 3, 0, "half a call");
                looks += 1;
                let end = reader.written_end();
                if end > at(0) {
                    let last = reader.record(Offset::new(end.value() - 1).unwrap()).unwrap().unwrap();
                    assert_eq!(last.value.as_deref(), Some(&b"third"[..]));
                }
            }
        });
        let call = [batch(&[b"first"]), batch(&[b"second", b"third"])].concat();
        threads(4, &log, |_, log| {
            for _ in 0..300 {
                log.append(&call, options()).unwrap();
            }
            Done::new()
        });
        is_over.store(true, SeqCst);
        watch.join().unwrap();
    });
    assert_eq!(log.end(), at(3600));
    assert!(log.reader().segments().len() > 20);
}

/// What a segment ends by, batches keep their own offsets by, and epochs change by goes on between the appends of others.
#[test]
fn rolls_epochs_copies_and_retention_go_on_beside_appends() {
    let temp = with(FsyncPolicy::EveryRecords(20));
    let log = shared(&temp);
    let mut copied = batch(&[b"copied"]);
    copied[12..16].copy_from_slice(&9_i32.to_be_bytes());
    let told = threads(6, &log, |thread, log| {
        let mut done = Done::new();
        for turn in 0..60_usize {
            match (thread, turn % 10) {
                (0, 3) => log.roll().unwrap(),
                (1, 4) => log
                    .set_leader_epoch(i32::try_from(turn / 10).unwrap())
                    .or_else(|error| match error {
                        Error::InvalidConfig { .. } => Ok(()),
                        other => Err(other),
                    })
                    .unwrap(),
                (2, 5) => drop(log.maintain().unwrap()),
                (3, 6) => assert!(log.sync().unwrap() <= log.end()),
                (4, 7) => {
                    // A copy of another log: kept as it is, or refused where the log is past it.
                    let options = AppendOptions { offsets: Offsets::Preserve, ..options() };
                    let mut copy = copied.clone();
                    copy[..8].copy_from_slice(&log.end().value().to_be_bytes());
                    match log.append(&copy, options) {
                        Ok(appended) => done.push((appended.base_offset.value(), "copied".to_owned())),
                        Err(Error::InvalidBatch(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                _ => {}
            }
            done.extend(any_append(log, &values(thread, turn, 1), turn));
        }
        done
    });
    let seen = pairs(&log.reader());
    is_all_of(&told, &seen);
    let segments = log.reader().segments();
    assert!(segments.len() >= 6);
    let start = segments[segments.len() - 1].base_offset;
    log.advance_start(start).unwrap();
    assert_eq!(log.maintain().unwrap().dropped_segments, segments.len() - 1);
    assert_eq!(log.start(), start);
    log.close().unwrap();
    assert_eq!(reopened(&temp), seen[usize::try_from(start.value()).unwrap()..]);
}

#[test]
fn the_logs_own_time_never_goes_back() {
    let temp = TempLog::in_memory(|config| {
        config.fsync = FsyncPolicy::Never;
        config.timestamp_type = TimestampType::LogAppendTime;
        config.clock = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
    });
    let clock = temp.config.clock.clone();
    let log = shared(&temp);
    threads(4, &log, |thread, log| {
        let mut last = i64::MIN;
        for turn in 0..200 {
            if thread == 0 {
                clock.advance(Duration::from_millis(1));
            }
            let appended = if turn % 2 == 0 {
                log.append(&batch(&[b"x", b"y"]), options())
            } else {
                log.append_records(&[Record::value_only(b"x"), Record::value_only(b"y")], options())
            };
            let time = appended.unwrap().append_time.unwrap().millis();
            assert!(time >= last);
            last = time;
        }
        Done::new()
    });
    let records = all(&log.reader());
    assert_eq!(records.len(), 1600);
    assert!(records.is_sorted_by_key(|record| record.timestamp), "in the order of offsets");
}

/// An idle `Pending` is covered by the sync of others; polling leads none.
#[test]
fn what_nobody_waits_for_is_covered_by_the_next_sync() {
    let temp = with(FsyncPolicy::Commit);
    let log = shared(&temp);
    let record = [Record::value_only(b"x")];
    let mut pending = log.append_records_deferred(&record, options()).unwrap();
    let woken = Arc::new(Flag::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    assert!(pending.poll(&mut context).is_pending());
    assert_eq!((log.durable_end(), log.end(), log.lag().records), (at(0), at(1), 1));
    assert_eq!(log.append_records(&record, options()).unwrap().durability, Durability::Durable);
    assert!(woken.0.load(SeqCst));
    assert!(
        matches!(pending.poll(&mut context), Poll::Ready(Ok(appended)) if appended.durability == Durability::Durable)
    );
    drop(log.append_records_deferred(&record, options()).unwrap());
    assert_eq!(log.durable_end(), at(2));
    assert!(log.maintain().unwrap().synced);
    assert_eq!(log.durable_end(), at(3));
    drop(log.append_records_deferred(&record, options()).unwrap());
    assert_eq!(log.sync().unwrap(), at(4));
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn closing_closes_for_all_and_loses_nothing_that_was_acknowledged() {
    for policy in [FsyncPolicy::Commit, FsyncPolicy::Never] {
        let temp = with(policy);
        let log = shared(&temp);
        let appended = AtomicUsize::new(0);
        let told = thread::scope(|scope| {
            let closer = log.clone();
            let appended = &appended;
            scope.spawn(move || {
                while appended.load(SeqCst) < 200 {
                    thread::yield_now();
                }
                closer.close().unwrap();
            });
            threads(8, &log, |thread, log| {
                let mut done = Done::new();
                loop {
                    let value = format!("{thread}-{}", done.len());
                    match log.append_records(&[Record::value_only(value.as_bytes())], options()) {
                        Ok(told) => done.push((told.base_offset.value(), value)),
                        Err(Error::Closed) => return done,
                        Err(error) => panic!("{error}"),
                    }
                    appended.fetch_add(1, SeqCst);
                }
            })
        });
        assert!(matches!(log.sync(), Err(Error::Closed)));
        assert!(matches!(log.maintain(), Err(Error::Closed)));
        assert!(matches!(log.roll(), Err(Error::Closed)));
        assert!(matches!(log.close(), Err(Error::Closed)));
        // The directory is free, though clones live.
        let writer = temp.open();
        assert!(writer.recovery().clean);
        is_all_of(&told, &pairs(&writer.reader()));
    }
}

#[test]
fn dropping_the_last_clone_frees_the_directory_and_ends_what_waits() {
    let temp = with(FsyncPolicy::Never);
    let mut writer = temp.open();
    fill(&mut writer, 3);
    let log = SharedWriter::from(writer);
    let pending = log.append_records_deferred(&[Record::value_only(b"3")], options()).unwrap();
    let clone = log.clone();
    drop(log);
    assert!(matches!(LogWriter::open(temp.path(), temp.config.clone()), Err(Error::Locked { .. })));
    drop(clone);
    // The directory may be somebody else's by now: nothing is promised of it any more.
    assert!(matches!(pending.wait(), Err(Error::Closed)));
    assert_eq!(temp.open().end(), at(4));
}

/// The program's own code runs inside the log's: a `tracing` subscriber that panics does so in the middle of a roll.
#[test]
fn a_panic_of_the_one_who_leads_closes_the_log_and_reaches_everybody() {
    let temp = with(FsyncPolicy::Commit);
    let log = shared(&temp);
    let told = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let log = log.clone();
                scope.spawn(move || {
                    let mut done = Done::new();
                    let append = |done: &mut Done| {
                        let value = format!("{thread}-{}", done.len());
                        let record = [Record::value_only(value.as_bytes())];
                        let result = log.append_records(&record, options());
                        if let Ok(appended) = &result {
                            assert_eq!(appended.durability, Durability::Durable);
                            done.push((appended.base_offset.value(), value));
                        }
                        result
                    };
                    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        tracing::subscriber::with_default(PanicsAtRolls, || {
                            loop {
                                match append(&mut done) {
                                    Ok(_) => {}
                                    Err(Error::Closed) => return,
                                    Err(error) => panic!("{error}"),
                                }
                            }
                        });
                    }));
                    (done, died.is_err())
                })
            })
            .collect();
        let told: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(told.iter().filter(|(_, died)| *died).count(), 1);
        told.into_iter().map(|(done, _)| done).collect::<Vec<_>>()
    });
    assert!(matches!(log.append_records(&[Record::value_only(b"x")], options()), Err(Error::Closed)));
    assert!(matches!(log.maintain(), Err(Error::Closed)));
    assert_eq!(log.queued_bytes(), 0, "what was in the queue is given back");
    assert!(matches!(log.close(), Err(Error::Closed)));
    let stored = reopened(&temp);
    let mut acknowledged = told.concat();
    acknowledged.sort();
    // What was acknowledged is there; what was not may be.
    assert!(acknowledged.iter().all(|record| stored.binary_search(record).is_ok()));
    assert!(!acknowledged.is_empty());
}

struct PanicsAtRolls;

impl tracing::Subscriber for PanicsAtRolls {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        assert!(!event.metadata().target().starts_with("stratalog"), "a subscriber that panics");
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// A waker is the program's code too, but nothing is half done when it runs.
#[test]
fn a_waker_that_panics_harms_nobody_else() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics");
        }
    }
    let temp = with(FsyncPolicy::Never);
    let log = shared(&temp);
    let reader = log.reader();
    let waker = Waker::from(Arc::new(Panics));
    assert!(
        reader.poll_past(stratalog::Position::from(at(0)), &mut Context::from_waker(&waker)).is_pending()
    );
    let append = || log.append_records(&[Record::value_only(b"x")], options());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(append)).is_err());
    assert_eq!(append().unwrap().base_offset, at(1));
    log.close().unwrap();
}

#[cfg(feature = "sim")]
mod failures {
    use stratalog::sim::{Call, Fault, Recording};

    use super::*;

    const EIO: i32 = 5;

    fn recorded() -> (TempLog, Recording) {
        let temp = with(FsyncPolicy::Commit);
        let recording = Recording::install(temp.temp.path()).unwrap();
        (temp, recording)
    }

    fn one(log: &SharedWriter, value: &str) -> stratalog::Result<Appended> {
        log.append_records(&[Record::value_only(value.as_bytes())], options())
    }

    /// A sync that fails is told to each who waits for it, those who come later, and every `Pending`.
    #[test]
    fn a_failed_sync_is_told_to_everybody() {
        for after in [0, 1, 7] {
            let (temp, recording) = recorded();
            let log = shared(&temp);
            one(&log, "first").unwrap();
            recording.fail(Fault { call: Some(Call::Sync), ..Fault::nth(after, EIO) });
            let pending: Vec<_> = (0..4)
                .map(|_| log.append_records_deferred(&[Record::value_only(b"p")], options()).unwrap())
                .collect();
            let ended = threads(8, &log, |thread, log| {
                let mut done = Done::new();
                let told = loop {
                    let value = format!("{thread}-{}", done.len());
                    match one(log, &value) {
                        Ok(appended) => done.push((appended.base_offset.value(), value)),
                        Err(error) => break error,
                    }
                };
                assert!(matches!(told, Error::Poisoned { .. } | Error::Io { op: "sync", .. }), "{told}");
                assert!(matches!(one(log, "late"), Err(Error::Poisoned { .. })));
                done
            });
            let durable = log.durable_end();
            for (offset, _) in ended.concat() {
                assert!(offset < durable.value(), "acknowledged and not durable");
            }
            for pending in pending {
                let end = pending.end();
                assert_eq!(pending.wait().is_ok(), end <= durable);
            }
            assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
        }
    }

    /// A write that fails is told to those whose bytes it carried; everybody else goes on, at the same place.
    #[test]
    fn a_failed_write_is_told_to_those_it_carried_and_is_not_sticky() {
        for short_bytes in [None, Some(70)] {
            let (temp, recording) = recorded();
            let log = shared(&temp);
            one(&log, "first").unwrap();
            let failed = AtomicUsize::new(0);
            let told = threads(8, &log, |thread, log| {
                let mut done = Done::new();
                for turn in 0..50 {
                    if thread == 0 && turn % 5 == 1 {
                        let fault = Fault { call: Some(Call::Write), short_bytes, ..Fault::nth(0, EIO) };
                        recording.fail(fault);
                    }
                    let value = format!("{thread}-{turn}");
                    match one(log, &value) {
                        Ok(appended) => done.push((appended.base_offset.value(), value)),
                        Err(Error::Io { op: "write", .. }) => drop(failed.fetch_add(1, SeqCst)),
                        Err(error) => panic!("{error}"),
                    }
                }
                done
            });
            recording.heal();
            assert!(failed.load(SeqCst) >= 10, "each of ten failures is told to somebody");
            let seen = pairs(&log.reader());
            let told = [told, vec![vec![(0, "first".to_owned())]]].concat();
            is_all_of(&told, &seen);
            log.close().unwrap();
            assert_eq!(reopened(&temp), seen);
        }
    }
}
