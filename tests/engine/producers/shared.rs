//! Producers that share a writer with others.

use std::{
    collections::BTreeMap,
    sync::{Arc, Barrier},
    thread,
};

use stratalog::{AppendOptions, Error, FsyncPolicy, SharedWriter, record::Record};

use super::{as_producer, known, producers_log, raw};
use crate::support::{at, pairs};

#[test]
fn many_producers_that_repeat_themselves_append_each_record_once() {
    const PRODUCERS: i64 = 8;
    const BATCHES: i32 = 60;
    for fsync in [FsyncPolicy::Never, FsyncPolicy::Commit] {
        let mut log = producers_log();
        log.config.fsync = fsync;
        let writer = SharedWriter::from(log.open());
        thread::scope(|scope| {
            for id in 0..PRODUCERS {
                let writer = writer.clone();
                scope.spawn(move || {
                    let mut offsets: Vec<i64> = Vec::new();
                    for sequence in 0..BATCHES {
                        let value = format!("{id}/{sequence}");
                        let records = [Record::value_only(value.as_bytes())];
                        let sent = writer.append_records(&records, as_producer(id, 0, sequence)).unwrap();
                        assert!(!sent.duplicate);
                        offsets.push(sent.base_offset.value());
                        // One of its last five again.
                        let back = usize::try_from((i64::from(sequence) * 7 + id) % 5).unwrap();
                        let Some(index) = (offsets.len() - 1).checked_sub(back) else { continue };
                        let again = i32::try_from(index).unwrap();
                        let value = format!("{id}/{again}");
                        let records = [Record::value_only(value.as_bytes())];
                        let answer = writer.append_records(&records, as_producer(id, 0, again)).unwrap();
                        assert_eq!((answer.base_offset.value(), answer.duplicate), (offsets[index], true));
                        if fsync == FsyncPolicy::Commit {
                            assert_eq!(answer.durability, stratalog::Durability::Durable);
                        }
                    }
                });
            }
            for _ in 0..2 {
                let writer = writer.clone();
                scope.spawn(move || {
                    for _ in 0..BATCHES {
                        writer
                            .append_records(&[Record::value_only(b"nobody")], AppendOptions::default())
                            .unwrap();
                    }
                });
            }
        });
        let mut found: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        for (_, value) in pairs(&writer.reader()) {
            if let Some((id, sequence)) = value.split_once('/') {
                found.entry(id.to_owned()).or_default().push(sequence.parse().unwrap());
            }
        }
        assert_eq!(found.len(), 8);
        assert!(found.values().all(|sequences| sequences.iter().copied().eq(0..BATCHES)));
        let infos = writer.producers().unwrap();
        drop(writer);
        assert_eq!(log.open().producers(), infos);
    }
}

#[test]
fn of_two_that_send_the_same_at_once_one_is_the_duplicate() {
    let log = producers_log();
    let writer = SharedWriter::from(log.open());
    for sequence in 0..200 {
        let start = Arc::new(Barrier::new(2));
        let both: Vec<_> = thread::scope(|scope| {
            let each = [0, 1].map(|_| {
                let (writer, start) = (writer.clone(), Arc::clone(&start));
                scope.spawn(move || {
                    start.wait();
                    writer.append(&raw(1, 0, sequence, 1, false), AppendOptions::default()).unwrap()
                })
            });
            each.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(both.iter().all(|appended| appended.base_offset == at(i64::from(sequence))));
        assert_eq!(both.iter().filter(|appended| appended.duplicate).count(), 1);
    }
    assert_eq!(writer.end(), at(200));
}

#[test]
fn one_that_is_refused_does_not_disturb_its_neighbours() {
    let log = producers_log();
    let writer = SharedWriter::from(log.open());
    thread::scope(|scope| {
        for id in 0..4 {
            let writer = writer.clone();
            scope.spawn(move || {
                for sequence in 0..50 {
                    writer.append(&raw(id, 1, sequence, 1, false), AppendOptions::default()).unwrap();
                    let error = writer
                        .append(&raw(id, 1, sequence + 2, 1, false), AppendOptions::default())
                        .unwrap_err();
                    assert!(matches!(error, Error::OutOfOrderSequence { .. }), "{error:?}");
                    let error =
                        writer.append(&raw(id, 0, 0, 1, false), AppendOptions::default()).unwrap_err();
                    assert!(matches!(error, Error::ProducerFenced { .. }), "{error:?}");
                }
            });
        }
    });
    let error = writer.append(&raw(9, 0, 0, 1, false), as_producer(9, 0, 0)).unwrap_err();
    assert!(matches!(error, Error::InvalidConfig { name: "producer", .. }), "{error:?}");
    let error = writer.append_records(&[Record::value_only(b"v")], as_producer(-3, 0, 0)).unwrap_err();
    assert!(matches!(error, Error::InvalidBatch(_)), "{error:?}");
    assert_eq!(writer.end(), at(200));
    writer.close().unwrap();
    let expected: Vec<_> = known(&log.open()).into_iter().map(|(id, _, last, _)| (id, last)).collect();
    assert_eq!(expected, [(0, 49), (1, 49), (2, 49), (3, 49)]);
}
