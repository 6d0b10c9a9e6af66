//! The state, the checks and the snapshots against what Kafka's own tests ask of them (`ProducerStateManagerTest`).

use super::{
    Marker, State,
    check::{Admission, Claim},
    snapshot,
    state::{Entry, MAX_PRODUCERS, SentBatch},
};
use crate::{
    error::{Error, Result},
    offset::{Offset, Timestamp},
    record::{
        BatchHeader, BatchOptions, BatchRef, EndTxnMarker, ProducerStamp, Record, encode_batch,
        end_txn_marker,
    },
};

fn at(value: i64) -> Offset {
    Offset::new(value).unwrap()
}

/// A batch of `count` records: (producer, epoch, sequence) at an offset, with the offset as its timestamp.
fn batch(stamp: (i64, i16, i32), offset: i64, count: usize, transactional: bool) -> BatchHeader {
    let producer = Some(ProducerStamp { id: stamp.0, epoch: stamp.1, base_sequence: stamp.2 });
    let options = BatchOptions {
        base_offset: at(offset),
        append_time: Timestamp::from_millis(offset),
        producer,
        transactional,
        ..BatchOptions::default()
    };
    let records = vec![Record::value_only(b"v"); count];
    encode_batch(&records, &options, &mut vec![0; 1 << 16]).unwrap()
}

fn marker(id: i64, epoch: i16, offset: i64, is_abort: bool) -> (BatchHeader, Marker) {
    let end = EndTxnMarker { coordinator_epoch: 7 };
    let time = Timestamp::from_millis(offset);
    let bytes = end_txn_marker(at(offset), 0, (id, epoch), !is_abort, end, time);
    let batch = BatchRef::parse(&bytes).unwrap();
    let marker = super::marker_of(&batch).unwrap();
    assert_eq!(marker, Marker { is_abort, coordinator_epoch: 7, timestamp: time });
    (*batch.header(), marker)
}

#[derive(Default)]
struct Log {
    state: State,
    end: i64,
}

impl Log {
    fn check(&self, id: i64, epoch: i16, sequence: i32, count: usize) -> Result<Admission> {
        self.state.check(&[Claim::of(&batch((id, epoch, sequence), 0, count, false))], at(self.end))
    }

    /// Checked and taken in: the batch's first offset.
    fn send(&mut self, id: i64, epoch: i16, sequence: i32, count: usize) -> Result<i64> {
        match self.check(id, epoch, sequence, count)? {
            Admission::Duplicate { first_offset, .. } => Ok(first_offset.value()),
            Admission::Append => {
                let first = self.end;
                self.state.apply(&batch((id, epoch, sequence), first, count, false), None);
                self.end += i64::try_from(count).unwrap();
                Ok(first)
            }
        }
    }

    fn transactional(&mut self, id: i64, epoch: i16, sequence: i32) {
        self.state.apply(&batch((id, epoch, sequence), self.end, 1, true), None);
        self.end += 1;
    }

    fn mark(&mut self, id: i64, epoch: i16, is_abort: bool) -> Option<(i64, i64, i64)> {
        let (header, marker) = marker(id, epoch, self.end, is_abort);
        self.end += 1;
        let aborted = self.state.apply(&header, Some(marker))?;
        assert_eq!(aborted.producer_id, id);
        Some((aborted.first_offset.value(), aborted.last_offset.value(), aborted.last_stable_offset.value()))
    }

    fn reloaded(&self) -> Self {
        let (bytes, crc) = snapshot::encode(&self.state);
        let (state, found) = snapshot::parse(&bytes).unwrap();
        assert_eq!(crc, found);
        Self { state, end: self.end }
    }
}

/// What is refused: what was expected and the epoch that is known.
fn out_of_order<T: std::fmt::Debug>(result: Result<T>) -> (i32, i16) {
    match result {
        Err(Error::OutOfOrderSequence { expected, current_epoch, .. }) => (expected, current_epoch),
        other => panic!("{other:?}"),
    }
}

fn fenced<T: std::fmt::Debug>(result: Result<T>) -> i16 {
    match result {
        Err(Error::ProducerFenced { current_epoch, .. }) => current_epoch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn sequences_follow_each_other() {
    let mut log = Log::default();
    assert_eq!(log.send(1, 0, 0, 1).unwrap(), 0);
    assert_eq!(log.send(1, 0, 1, 3).unwrap(), 1);
    assert_eq!(out_of_order(log.send(1, 0, 5, 1)), (4, 0));
    // Part of what was sent is neither a duplicate nor next.
    assert_eq!(out_of_order(log.send(1, 0, 2, 2)), (4, 0));
    assert_eq!(out_of_order(log.send(1, 0, 1, 4)), (4, 0));
    assert_eq!(log.send(1, 0, 4, 1).unwrap(), 4);
    assert_eq!(log.send(2, 0, 0, 1).unwrap(), 5, "producers are told apart");
}

#[test]
fn an_unknown_producer_begins_anywhere_and_none_below_zero() {
    let mut log = Log::default();
    assert_eq!(log.send(1, 3, 77, 1).unwrap(), 0);
    for (epoch, sequence) in [(0, -1), (-1, 0)] {
        let error = log.check(9, epoch, sequence, 1).unwrap_err();
        assert!(matches!(error, Error::InvalidBatch(_)), "{error:?}");
    }
    assert_eq!(log.check(-1, -1, -1, 1).unwrap(), Admission::Append, "nobody's batch");
}

#[test]
fn an_older_epoch_is_fenced_and_a_newer_begins_at_zero() {
    let mut log = Log::default();
    log.send(1, 5, 0, 4).unwrap();
    assert_eq!(fenced(log.send(1, 4, 4, 1)), 5);
    assert_eq!(out_of_order(log.send(1, 6, 1, 1)), (0, 5));
    assert_eq!(log.send(1, 6, 0, 1).unwrap(), 4);
    assert_eq!(fenced(log.send(1, 5, 0, 4)), 6, "also where it is what was sent then");
    assert_eq!(out_of_order(log.send(1, 6, 4, 1)), (1, 6));
}

#[test]
fn after_the_largest_sequence_comes_zero() {
    let mut log = Log { end: 2000, ..Log::default() };
    log.send(1, 0, i32::MAX - 10, 1).unwrap();
    // One batch over the end: 21 records.
    log.state = State::default();
    assert_eq!(log.send(1, 0, i32::MAX - 10, 21).unwrap(), 2001);
    let last = *log.state.entry(1).unwrap().last().unwrap();
    assert_eq!((last.first_sequence(), last.last_sequence), (i32::MAX - 10, 9));
    assert_eq!((last.first_offset(), last.last_offset), (at(2001), at(2021)));
    assert_eq!(log.send(1, 0, i32::MAX - 10, 21).unwrap(), 2001, "a duplicate");
    assert_eq!(log.reloaded().send(1, 0, i32::MAX - 10, 21).unwrap(), 2001);
    assert_eq!(out_of_order(log.send(1, 0, 11, 1)).0, 10);
    log.send(1, 0, 10, 1).unwrap();

    let mut log = Log::default();
    log.send(1, 0, i32::MAX, 1).unwrap();
    assert_eq!(out_of_order(log.send(1, 0, 1, 1)).0, 0);
    assert_eq!(log.send(1, 0, 0, 1).unwrap(), 1);
}

#[test]
fn five_batches_are_recognised_and_the_sixth_is_not() {
    let mut log = Log::default();
    for sequence in (0..14).step_by(2) {
        log.send(1, 0, sequence, 2).unwrap();
    }
    for sequence in (4..14).step_by(2) {
        assert_eq!(log.send(1, 0, sequence, 2).unwrap(), i64::from(sequence));
    }
    assert_eq!(out_of_order(log.send(1, 0, 2, 2)).0, 14);
    assert_eq!(log.end, 14);
    // A snapshot keeps one.
    let mut loaded = log.reloaded();
    assert_eq!(loaded.send(1, 0, 12, 2).unwrap(), 12);
    assert_eq!(out_of_order(loaded.send(1, 0, 10, 2)).0, 14);
    let entry = loaded.state.entry_mut(1).unwrap();
    let sent = |last: i32| SentBatch {
        last_sequence: last,
        last_offset: at(i64::from(last)),
        offset_delta: 1,
        timestamp: Timestamp::NONE,
    };
    entry.remember(&[sent(1), sent(3), sent(5), sent(7), sent(9), sent(11)]);
    assert_eq!(entry.sent().map(|sent| sent.last_sequence).collect::<Vec<_>>(), [5, 7, 9, 11, 13]);
}

#[test]
fn a_call_of_several_batches_is_one() {
    let mut log = Log::default();
    let claim = |id, sequence, count| Claim::of(&batch((id, 0, sequence), 0, count, false));
    let call = [claim(1, 0, 2), claim(2, 9, 1), claim(1, 2, 3)];
    assert_eq!(log.state.check(&call, at(0)).unwrap(), Admission::Append);
    assert!(log.state.is_empty(), "looking changes nothing");
    // The second of a producer follows its first, also where nothing is known of it.
    assert_eq!(out_of_order(log.state.check(&[claim(1, 7, 2), claim(1, 8, 1)], at(0))).0, 9);
    for (id, sequence, count) in [(1, 0, 2), (2, 9, 1), (1, 2, 3)] {
        log.send(id, 0, sequence, count).unwrap();
    }
    let duplicate = Admission::Duplicate {
        first_offset: at(0),
        last_offset: at(5),
        timestamp: Timestamp::from_millis(3),
    };
    assert_eq!(log.state.check(&call, at(6)).unwrap(), duplicate);
    // Half sent before, half new: no answer would be true for both.
    assert_eq!(out_of_order(log.state.check(&[claim(1, 2, 3), claim(1, 5, 1)], at(6))).0, 5);
    // Each a duplicate, but not side by side.
    assert_eq!(out_of_order(log.state.check(&[claim(1, 0, 2), claim(1, 2, 3)], at(6))).0, 5);
}

#[test]
fn a_marker_ends_the_transaction_and_may_raise_the_epoch() {
    let mut log = Log::default();
    log.transactional(1, 0, 0);
    log.transactional(2, 0, 0);
    log.transactional(1, 0, 1);
    assert_eq!(log.state.first_open(), Some(at(0)));
    let error = log.check(1, 0, 2, 1).unwrap_err();
    assert!(matches!(error, Error::TransactionOpen { producer_id: 1, .. }), "{error:?}");
    // The one that is still open holds the stable offset back.
    assert_eq!(log.mark(1, 0, true), Some((0, 3, 1)));
    assert_eq!(log.mark(2, 0, false), None, "committed");
    assert_eq!(log.state.first_open(), None);
    assert_eq!(log.mark(2, 0, true), None, "nothing was written in it");
    log.transactional(2, 0, 1);
    assert_eq!(log.mark(2, 0, true), Some((6, 7, 8)));
    assert_eq!(log.send(1, 0, 1, 1).unwrap(), 2, "the same epoch keeps its batches");
    // Transactions V2: the marker has the next epoch.
    log.transactional(1, 0, 2);
    assert_eq!(log.mark(1, 1, false), None);
    assert_eq!(fenced(log.check(1, 0, 3, 1)), 1);
    assert_eq!(out_of_order(log.check(1, 1, 3, 1)), (0, 1));
    assert_eq!(out_of_order(log.reloaded().check(1, 1, 3, 1)), (0, 1));
    assert_eq!(log.check(1, 1, 0, 1).unwrap(), Admission::Append);
    // Known from its marker alone.
    log.mark(9, 4, false);
    assert_eq!(fenced(log.check(9, 3, 0, 1)), 4);
    assert_eq!(out_of_order(log.check(9, 4, 1, 1)), (0, 4));
    assert_eq!(out_of_order(log.check(9, 6, 1, 1)), (0, 4));
    assert_eq!(log.check(9, 4, 0, 1).unwrap(), Admission::Append);
}

#[test]
fn a_control_batch_without_its_record_changes_nothing() {
    let mut log = Log::default();
    log.transactional(1, 0, 0);
    let before = log.state.clone();
    assert_eq!(log.state.apply(&marker(1, 3, 1, true).0, None), None);
    assert_eq!(log.state, before);
}

#[test]
fn producers_expire_by_their_own_timestamps_unless_a_transaction_is_open() {
    let mut log = Log { end: 1000, ..Log::default() };
    log.send(1, 0, 0, 1).unwrap();
    log.transactional(2, 0, 0);
    let now = Timestamp::from_millis;
    assert!(!log.state.expire(now(1999), 1000));
    assert!(log.state.expire(now(2000), 1000));
    assert!(log.state.entry(1).is_none() && log.state.entry(2).is_some());
    assert_eq!(log.send(1, 0, 55, 1).unwrap(), 1002, "as if it had never been");
    log.mark(2, 0, false);
    assert!(log.state.expire(now(i64::MAX), 1000));
    assert!(log.state.is_empty());
    assert!(!log.state.expire(now(i64::MIN), i64::MAX));
}

#[test]
fn the_number_of_producers_is_bounded() {
    let mut state = State::default();
    for id in 0..i64::try_from(MAX_PRODUCERS).unwrap() {
        let mut entry = Entry::unknown();
        entry.epoch = 0;
        entry.last_timestamp = Timestamp::from_millis(id);
        entry.transaction_start = Offset::new(id).filter(|_| id == 0);
        assert!(state.insert(id, entry));
    }
    state.apply(&batch((-1, 0, 0), 0, 1, false), None);
    state.apply(&batch((70_000, 0, 0), 70_000, 1, false), None);
    let left = state.sorted();
    assert_eq!(left.len(), MAX_PRODUCERS - MAX_PRODUCERS / 16 + 1);
    let sixteenth = i64::try_from(MAX_PRODUCERS / 16).unwrap();
    assert_eq!(left.iter().take(2).map(|(id, _)| *id).collect::<Vec<_>>(), [0, sixteenth + 1]);
    assert_eq!(state.first_open(), Some(at(0)));
    assert!(state.entry(70_000).is_some());
}

#[test]
fn a_snapshot_keeps_every_field() {
    let mut log = Log { end: 10, ..Log::default() };
    log.send(1, 2, 3, 4).unwrap();
    log.mark(7, 9, true);
    log.transactional(i64::MAX, i16::MAX, i32::MAX);
    let (bytes, _) = snapshot::encode(&log.state);
    assert_eq!(bytes.len(), 10 + 3 * 46);
    let loaded = log.reloaded();
    assert_eq!(loaded.state.describe(), log.state.describe());
    assert_eq!(loaded.state.first_open(), log.state.first_open());
    assert_eq!(snapshot::encode(&loaded.state).0, bytes);
    assert_eq!(snapshot::encode(&State::default()).0.len(), 10);
    assert_eq!(out_of_order(loaded.check(1, 2, 3, 1)).0, 7);
}

#[test]
fn kafkas_snapshots_are_read_and_written_byte_for_byte() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0");
    let mut found = 0;
    for case in std::fs::read_dir(root).unwrap().map(|case| case.unwrap().path()) {
        for dir in std::fs::read_dir(&case).unwrap().map(|dir| dir.unwrap().path()).filter(|dir| dir.is_dir())
        {
            for file in std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()) {
                if file.extension().is_none_or(|suffix| suffix != "snapshot") {
                    continue;
                }
                let bytes = std::fs::read(&file).unwrap();
                let (state, _) = snapshot::parse(&bytes).unwrap_or_else(|what| panic!("{file:?}: {what}"));
                // Kafka's order is that of its hash table.
                let mut entries: Vec<&[u8]> = bytes[10..].chunks(46).collect();
                entries.sort_unstable();
                let ours = snapshot::encode(&state).0;
                assert_eq!(ours[10..], entries.concat(), "{file:?}");
                if entries.concat() == bytes[10..] {
                    assert_eq!(ours, bytes, "{file:?}");
                }
                found += state.sorted().len();
            }
        }
    }
    assert!(found > 10, "{found} entries");
}

#[test]
fn no_changed_byte_and_no_cut_makes_another_snapshot() {
    let mut log = Log { end: 10, ..Log::default() };
    log.send(1, 2, 3, 4).unwrap();
    log.transactional(2, 0, 0);
    let good = snapshot::encode(&log.state).0;
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        assert!(snapshot::parse(&bytes).is_err(), "byte {at}");
        assert!(snapshot::parse(&good[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn senseless_entries_are_refused_under_a_right_checksum() {
    let mut log = Log { end: 10, ..Log::default() };
    log.send(1, 2, 3, 4).unwrap();
    log.send(2, 2, 3, 4).unwrap();
    let good = snapshot::encode(&log.state).0;
    let sealed = |mut bytes: Vec<u8>| {
        let crc = crate::record::crc32c(&bytes[6..]);
        bytes[2..6].copy_from_slice(&crc.to_be_bytes());
        snapshot::parse(&bytes)
    };
    // Bytes after the last entry pass, as with Kafka.
    assert!(sealed([&good[..], b"more"].concat()).is_ok());
    let with = |at: usize, field: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + field.len()].copy_from_slice(field);
        sealed(bytes).map(drop)
    };
    assert_eq!(with(6, &2_i32.to_be_bytes()), Ok(()));
    for count in [-1, 3, i32::MAX, i32::MIN] {
        assert!(with(6, &count.to_be_bytes()).is_err(), "count {count}");
    }
    assert!(with(10, &(-1_i64).to_be_bytes()).is_err(), "producer id");
    assert!(with(10, &2_i64.to_be_bytes()).is_err(), "twice");
    assert!(with(18, &(-2_i16).to_be_bytes()).is_err(), "epoch");
    assert!(with(20, &(-2_i32).to_be_bytes()).is_err(), "sequence");
    assert!(with(24, &(-2_i64).to_be_bytes()).is_err(), "offset");
    assert!(with(24, &2_i64.to_be_bytes()).is_err(), "the batch begins below 0");
    assert!(with(32, &(-1_i32).to_be_bytes()).is_err(), "delta");
    assert!(with(48, &(-2_i64).to_be_bytes()).is_err(), "transaction");
    assert!(with(0, &[0, 2]).is_err(), "version");
}
