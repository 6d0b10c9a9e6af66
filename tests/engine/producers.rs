//! Producers that number their records: what is recognised, what is refused, and what of it outlives the writer.

mod kafka;
mod model;
mod restart;
mod shared;

use std::{fs, time::Duration};

use stratalog::{
    AppendOptions, Appended, Clock, Durability, Error, FsyncPolicy, LogWriter, Offsets, Producer,
    ProducerInfo, Result, Retention, Timestamp,
    record::{BatchBuilder, BatchOptions, ProducerStamp, Record},
};

use crate::support::{TempLog, at, fill, pairs};

const NOW_MS: i64 = 1_700_000_000_000;

fn as_producer(id: i64, epoch: i16, sequence: i32) -> AppendOptions {
    AppendOptions { producer: Some(Producer { id, epoch, sequence }), ..AppendOptions::default() }
}

/// Small segments and a clock that stands.
fn producers_log() -> TempLog {
    TempLog::in_memory(|config| config.clock = Clock::manual(Timestamp::from_millis(NOW_MS)))
}

/// Appends one batch of as many records, each with its sequence number in it.
fn send(log: &mut LogWriter, (id, epoch, sequence): (i64, i16, i32), count: i32) -> Result<Appended> {
    let values: Vec<String> =
        (0..count).map(|i| format!("{id}/{epoch}/{}", sequence.wrapping_add(i))).collect();
    let records: Vec<Record<'_>> = values.iter().map(|value| Record::value_only(value.as_bytes())).collect();
    log.append_records(&records, as_producer(id, epoch, sequence))
}

/// A whole batch with its producer's stamp.
fn raw(id: i64, epoch: i16, base_sequence: i32, count: usize, transactional: bool) -> Vec<u8> {
    let producer = Some(ProducerStamp { id, epoch, base_sequence });
    let append_time = Timestamp::from_millis(NOW_MS);
    let mut builder =
        BatchBuilder::new(BatchOptions { producer, append_time, transactional, ..BatchOptions::default() });
    for _ in 0..count {
        builder.push(Record::value_only(b"v")).unwrap();
    }
    builder.finish().unwrap().to_vec()
}

/// Base and last offset of an answer, and whether it is a duplicate's.
fn place(appended: Result<Appended>) -> (i64, i64, bool) {
    let appended = appended.unwrap();
    (appended.base_offset.value(), appended.last_offset.value(), appended.duplicate)
}

fn expected_sequence(result: Result<Appended>) -> i32 {
    match result {
        Err(Error::OutOfOrderSequence { expected, .. }) => expected,
        other => panic!("{other:?}"),
    }
}

fn fenced_by(result: Result<Appended>) -> i16 {
    match result {
        Err(Error::ProducerFenced { current_epoch, .. }) => current_epoch,
        other => panic!("{other:?}"),
    }
}

/// Id, epoch, last sequence and last offset of all that are known.
fn known(log: &LogWriter) -> Vec<(i64, i16, i32, Option<i64>)> {
    let short = |info: ProducerInfo| {
        (info.id, info.epoch, info.last_sequence, info.last_offset.map(stratalog::Offset::value))
    };
    log.producers().into_iter().map(short).collect()
}

/// The offsets in the names of the snapshots.
fn snapshots(log: &TempLog) -> Vec<i64> {
    let names =
        fs::read_dir(log.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut offsets: Vec<i64> =
        names.filter_map(|name| name.strip_suffix(".snapshot")?.parse().ok()).collect();
    offsets.sort_unstable();
    offsets
}

/// The bytes of a snapshot with nobody in it, which is what another log's is at its worst.
fn nobody() -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let crc = stratalog::record::crc32c(&bytes[6..]);
    bytes[2..6].copy_from_slice(&crc.to_be_bytes());
    bytes
}

#[test]
fn what_comes_again_is_answered_with_the_original_offsets() {
    let log = producers_log();
    let mut writer = log.open();
    fill(&mut writer, 3);
    assert_eq!(place(send(&mut writer, (7, 0, 0), 2)), (3, 4, false));
    fill(&mut writer, 1);
    assert_eq!(place(send(&mut writer, (7, 0, 2), 1)), (6, 6, false));
    let before = pairs(&writer.reader());
    assert_eq!(place(send(&mut writer, (7, 0, 0), 2)), (3, 4, true));
    assert_eq!(place(send(&mut writer, (7, 0, 2), 1)), (6, 6, true));
    assert_eq!(writer.end(), at(7));
    assert_eq!(pairs(&writer.reader()), before);
    // Whole batches say themselves who sent them.
    assert_eq!(place(writer.append(&raw(7, 0, 2, 1, false), AppendOptions::default())), (6, 6, true));
    assert_eq!(place(writer.append(&raw(7, 0, 3, 4, false), AppendOptions::default())), (7, 10, false));
    let pending = writer.append_deferred(&raw(7, 0, 3, 4, false), AppendOptions::default()).unwrap();
    assert_eq!((pending.base_offset(), pending.end()), (at(7), at(11)));
    assert_eq!(known(&writer), [(7, 0, 6, Some(10))]);
    let info = writer.producers()[0];
    assert_eq!((info.last_timestamp, info.transaction_start), (Timestamp::from_millis(NOW_MS), None));
}

#[test]
fn the_log_stores_what_the_producer_numbered() {
    let log = TempLog::in_memory(|config| {
        config.clock = Clock::manual(Timestamp::from_millis(NOW_MS));
        config.segment_bytes = 1 << 20;
        config.max_batch_bytes = 200;
    });
    let mut writer = log.open();
    // Several batches, over the largest sequence number.
    assert_eq!(place(send(&mut writer, (1, 2, i32::MAX - 4), 20)), (0, 19, false));
    let reader = writer.reader();
    let mut batches = reader.batches(at(0));
    let mut next = i32::MAX - 4;
    let mut count = 0;
    while let Some(batch) = batches.next_batch().unwrap() {
        assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.base_sequence()), (1, 2, next));
        next = batch.last_sequence().wrapping_add(1) & i32::MAX;
        count += 1;
    }
    assert!(count > 1);
    assert_eq!(next, 15);
    assert_eq!(place(send(&mut writer, (1, 2, i32::MAX - 4), 20)), (0, 19, true));
    assert_eq!(place(send(&mut writer, (1, 2, 15), 1)), (20, 20, false));
}

#[test]
#[cfg(feature = "zstd")]
fn compressed_records_are_numbered_too() {
    let log = TempLog::in_memory(|config| {
        config.clock = Clock::manual(Timestamp::from_millis(NOW_MS));
        config.segment_bytes = 1 << 20;
        config.max_batch_bytes = 300;
        config.compression = stratalog::record::Compression::new(stratalog::record::Codec::Zstd);
    });
    let mut writer = log.open();
    assert_eq!(place(send(&mut writer, (1, 0, 0), 60)), (0, 59, false));
    let reader = writer.reader();
    let mut batches = reader.batches(at(0));
    let mut next = 0;
    while let Some(batch) = batches.next_batch().unwrap() {
        assert_eq!(batch.base_sequence(), next);
        next = batch.last_sequence() + 1;
    }
    assert_eq!(next, 60);
    assert_eq!(place(send(&mut writer, (1, 0, 60), 1)), (60, 60, false));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let log = producers_log();
    let mut writer = log.open();
    place(send(&mut writer, (1, 3, 0), 2));
    assert_eq!(expected_sequence(send(&mut writer, (1, 3, 3), 1)), 2);
    assert_eq!(expected_sequence(send(&mut writer, (1, 3, 1), 2)), 2);
    assert_eq!(expected_sequence(send(&mut writer, (1, 4, 2), 1)), 0);
    assert_eq!(fenced_by(send(&mut writer, (1, 2, 2), 1)), 3);
    for (id, epoch, sequence) in [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (i64::MIN, 0, 0)] {
        let error = send(&mut writer, (id, epoch, sequence), 1).unwrap_err();
        assert!(matches!(error, Error::InvalidBatch(_)), "{error:?}");
    }
    let error = writer.append(&raw(1, 3, 2, 1, false), as_producer(1, 3, 2)).unwrap_err();
    assert!(matches!(error, Error::InvalidConfig { name: "producer", .. }), "{error:?}");
    // A good batch before a bad one is not appended either, whoever sent them.
    let call = [raw(1, 3, 2, 1, false), raw(2, 0, 0, 1, false), raw(1, 3, 4, 1, false)].concat();
    assert_eq!(expected_sequence(writer.append(&call, AppendOptions::default())), 3);
    assert_eq!(writer.end(), at(2));
    assert_eq!(known(&writer), [(1, 3, 1, Some(1))]);
    // Two of one producer follow each other.
    let call = [raw(1, 3, 2, 1, false), raw(2, 0, 0, 1, false), raw(1, 3, 3, 2, false)].concat();
    assert_eq!(place(writer.append(&call, AppendOptions::default())), (2, 5, false));
    assert_eq!(place(writer.append(&call, AppendOptions::default())), (2, 5, true));
    // Half of it again, and more: neither answer would be right.
    let call = [raw(1, 3, 3, 2, false), raw(1, 3, 5, 1, false)].concat();
    assert_eq!(expected_sequence(writer.append(&call, AppendOptions::default())), 5);
    assert_eq!(writer.end(), at(6));
    // An open transaction takes only its own.
    place(writer.append(&raw(5, 0, 0, 1, true), AppendOptions::default()));
    let error = send(&mut writer, (5, 0, 1), 1).unwrap_err();
    assert!(matches!(error, Error::TransactionOpen { producer_id: 5, epoch: 0, .. }), "{error:?}");
    assert_eq!(writer.producers().last().unwrap().transaction_start, Some(at(6)));
}

#[test]
fn copies_of_another_log_are_taken_as_they_are() {
    let log = producers_log();
    let mut writer = log.open();
    let preserve = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
    let batch = raw(1, 5, 100, 1, false);
    place(writer.append(&batch, preserve));
    let mut again = batch.clone();
    again[7] = 1;
    place(writer.append(&again, preserve));
    assert_eq!(writer.end(), at(2), "a copy has what the original has");
    assert_eq!(known(&writer), [(1, 5, 100, Some(1))]);
}

#[test]
fn a_call_that_failed_was_not_made() {
    let log = producers_log();
    let mut writer = log.open();
    place(send(&mut writer, (1, 0, 0), 1));
    let mut full = log.config.clone();
    full.min_free_bytes = u64::MAX;
    full.preallocate = stratalog::Preallocate::Whole;
    full.segment_bytes = 1 << 20;
    writer.set_config(full).unwrap();
    let value = vec![7; 200_000];
    let records = [Record::value_only(&value)];
    let error = writer.append_records(&records, as_producer(1, 0, 1)).unwrap_err();
    assert!(matches!(error, Error::StorageFull { .. }), "{error:?}");
    assert_eq!(known(&writer), [(1, 0, 0, Some(0))]);
    writer.set_config(log.config.clone()).unwrap();
    assert_eq!(place(send(&mut writer, (1, 0, 1), 3)), (1, 3, false));
}

#[test]
fn a_duplicate_is_answered_when_the_original_is_safe() {
    let log = producers_log();
    let mut writer = log.open();
    // Nothing is asked for.
    place(send(&mut writer, (1, 0, 0), 1));
    let again = send(&mut writer, (1, 0, 0), 1).unwrap();
    assert_eq!((again.duplicate, again.durability), (true, Durability::Written));
    assert_eq!(writer.durable_end(), at(0));
    // The promise of a duplicate is the original's.
    let pending = writer.append_deferred(&raw(1, 0, 0, 1, false), AppendOptions::default()).unwrap();
    assert!(!pending.is_durable());
    let waited = pending.wait().unwrap();
    assert_eq!((waited.duplicate, waited.durability), (true, Durability::Durable));
    assert_eq!(writer.durable_end(), at(1));
    let again = send(&mut writer, (1, 0, 0), 1).unwrap();
    assert_eq!((again.duplicate, again.durability), (true, Durability::Durable));
    // Under `Commit` the answer says that it is durable, and it is.
    let mut commit = log.config.clone();
    commit.fsync = FsyncPolicy::Commit;
    writer.set_config(commit).unwrap();
    let pending = writer.append_deferred(&raw(1, 0, 1, 2, false), AppendOptions::default()).unwrap();
    assert_eq!(writer.durable_end(), at(1));
    let again = send(&mut writer, (1, 0, 1), 2).unwrap();
    assert_eq!((again.duplicate, again.durability), (true, Durability::Durable));
    assert_eq!(writer.durable_end(), at(3));
    assert!(pending.is_durable());
}

#[test]
fn idle_producers_are_forgotten_by_the_time_of_their_records() {
    let log = TempLog::in_memory(|config| {
        config.clock = Clock::manual(Timestamp::from_millis(NOW_MS));
        config.producer_expiration = Duration::from_secs(3600);
    });
    let clock = log.config.clock.clone();
    let mut writer = log.open();
    place(send(&mut writer, (1, 0, 5), 1));
    place(writer.append(&raw(2, 0, 0, 1, true), AppendOptions::default()));
    clock.advance(Duration::from_secs(3599));
    writer.maintain().unwrap();
    place(send(&mut writer, (3, 0, 0), 1));
    assert_eq!(known(&writer).len(), 3);
    clock.advance(Duration::from_secs(1));
    writer.maintain().unwrap();
    assert_eq!(known(&writer).len(), 3, "it is looked at every ten minutes");
    clock.advance(Duration::from_secs(600));
    writer.maintain().unwrap();
    // An open transaction keeps its producer.
    assert_eq!(known(&writer), [(2, 0, 0, Some(1)), (3, 0, 0, Some(2))]);
    assert_eq!(place(send(&mut writer, (1, 0, 77), 1)), (3, 3, false), "as if it had never been");
    // By an open at once, whether its snapshot or its batches are read.
    clock.advance(Duration::from_secs(3000));
    writer.close().unwrap();
    let writer = log.open();
    assert_eq!(known(&writer), [(1, 0, 77, Some(3)), (2, 0, 0, Some(1))]);
    drop(writer);
    for name in snapshots(&log) {
        fs::remove_file(log.path().join(format!("{name:020}.snapshot"))).unwrap();
    }
    assert_eq!(known(&log.open()), [(1, 0, 77, Some(3)), (2, 0, 0, Some(1))]);
}

#[test]
fn who_wrote_what_retention_dropped_stays_known() {
    let log = TempLog::in_memory(|config| {
        config.clock = Clock::manual(Timestamp::from_millis(NOW_MS));
        config.retention = Retention { bytes: Some(0), age: None };
    });
    let mut writer = log.open();
    place(send(&mut writer, (1, 0, 0), 2));
    writer.roll().unwrap();
    place(send(&mut writer, (2, 0, 0), 1));
    writer.roll().unwrap();
    assert_eq!(snapshots(&log), [2, 3]);
    writer.maintain().unwrap();
    assert_eq!(writer.start(), at(3));
    assert_eq!(snapshots(&log), [3], "a snapshot goes with its segment");
    assert_eq!(place(send(&mut writer, (1, 0, 0), 2)), (0, 1, true));
    place(send(&mut writer, (3, 0, 0), 1));
    drop(writer);
    let mut writer = log.open();
    assert_eq!(known(&writer).len(), 3);
    assert_eq!(place(send(&mut writer, (1, 0, 0), 2)), (0, 1, true));
    assert_eq!(expected_sequence(send(&mut writer, (2, 0, 3), 1)), 1);
    writer.advance_start(writer.end()).unwrap();
    writer.close().unwrap();
    let mut writer = log.open();
    assert_eq!(place(send(&mut writer, (2, 0, 0), 1)), (2, 2, true));
    assert_eq!(place(send(&mut writer, (2, 0, 1), 1)), (4, 4, false));
}

#[test]
fn a_log_without_producers_has_no_snapshots() {
    let log = producers_log();
    let mut writer = log.open();
    fill(&mut writer, 200);
    writer.close().unwrap();
    let mut writer = log.open();
    fill(&mut writer, 200);
    writer.maintain().unwrap();
    drop(writer);
    let writer = log.open();
    assert!(writer.producers().is_empty());
    writer.close().unwrap();
    assert_eq!(snapshots(&log), [] as [i64; 0]);
}

#[test]
fn snapshots_that_no_segment_begins_with_are_replaced() {
    let log = producers_log();
    for round in 0..3 {
        let mut writer = log.open();
        place(send(&mut writer, (1, 0, round * 2), 2));
        writer.close().unwrap();
    }
    assert_eq!(snapshots(&log), [6]);
    let mut writer = log.open();
    writer.roll().unwrap();
    place(send(&mut writer, (1, 0, 6), 1));
    writer.close().unwrap();
    assert_eq!(snapshots(&log), [6, 7], "the one of the segment and the one of the end");
}
