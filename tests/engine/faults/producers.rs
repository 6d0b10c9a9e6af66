//! What went wrong elsewhere with the state of producers: F003, F011, F107, F108, F119, F137.

use std::fs;

use stratalog::{AppendOptions, Durability, Error, FsyncPolicy, LogWriter, Producer, Result, record::Record};

use super::{file, names};
use crate::support::{SmallDisk, TempLog, all, at, fill};

fn as_producer(id: i64, sequence: i32) -> AppendOptions {
    AppendOptions { producer: Some(Producer { id, epoch: 0, sequence }), ..AppendOptions::default() }
}

fn send(log: &mut LogWriter, id: i64, sequence: i32) -> Result<stratalog::Appended> {
    log.append_records(&[Record::value_only(b"numbered")], as_producer(id, sequence))
}

/// Two segments with a producer in each; closed or killed.
fn numbered(is_clean: bool) -> TempLog {
    let log = TempLog::small();
    let mut writer = log.open();
    send(&mut writer, 7, 0).unwrap();
    writer.roll().unwrap();
    send(&mut writer, 7, 1).unwrap();
    fill(&mut writer, 5);
    writer.sync().unwrap();
    writer.maintain().unwrap();
    if is_clean {
        writer.close().unwrap();
    } else {
        drop(writer);
    }
    log
}

#[test]
fn f003_a_snapshot_of_producers_is_a_hint_whatever_is_in_it() {
    let junk: [Vec<u8>; 6] = [
        Vec::new(),
        vec![0; 4096],
        b"aa".to_vec(),
        b"0\n5\n0 0\n1 10\n".to_vec(),
        b"0\n-1\n".to_vec(),
        (0..1_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect(),
    ];
    for bytes in &junk {
        for is_clean in [true, false] {
            let log = numbered(is_clean);
            let snapshots: Vec<_> =
                names(&log.path()).into_iter().filter(|name| name.ends_with(".snapshot")).collect();
            assert_eq!(snapshots.len(), 1 + usize::from(is_clean));
            for name in &snapshots {
                fs::write(log.path().join(name), bytes).unwrap();
            }
            // A directory in the place of a file that is not there either.
            fs::create_dir(file(&log, 6, "snapshot")).unwrap();
            let mut writer = log.open();
            let warnings = &writer.recovery().warnings;
            assert!(
                warnings.iter().any(|warning| warning.contains("taken from the batches")),
                "{warnings:?}"
            );
            assert!(send(&mut writer, 7, 0).unwrap().duplicate);
            assert!(send(&mut writer, 7, 1).unwrap().duplicate);
            assert!(!send(&mut writer, 7, 2).unwrap().duplicate);
            assert_eq!(writer.end(), at(8));
            writer.close().unwrap();
            assert!(send(&mut log.open(), 7, 2).unwrap().duplicate);
        }
    }
}

#[test]
fn f137_a_count_in_a_snapshot_allocates_nothing() {
    for count in [-1, i32::MIN, i32::MAX, 100_000_000] {
        let log = numbered(true);
        let mut bytes = vec![0, 1, 0, 0, 0, 0];
        bytes.extend_from_slice(&i32::to_be_bytes(count));
        bytes.extend_from_slice(&[0; 46]);
        let crc = stratalog::record::crc32c(&bytes[6..]);
        bytes[2..6].copy_from_slice(&crc.to_be_bytes());
        for name in names(&log.path()).iter().filter(|name| name.ends_with(".snapshot")) {
            fs::write(log.path().join(name), &bytes).unwrap();
        }
        // Also where nothing else is known of it.
        fs::remove_file(log.path().join(".stratalog-checkpoint")).unwrap();
        assert!(send(&mut log.open(), 7, 1).unwrap().duplicate, "{count}");
    }
}

#[test]
fn f011_a_half_written_snapshot_is_not_taken_for_one() {
    for is_clean in [true, false] {
        let log = numbered(is_clean);
        let newest = file(&log, 1, "snapshot");
        for name in
            [".stratalog-snapshot.tmp", ".stratalog-txnindex.tmp", "00000000000000000005.snapshot.tmp"]
        {
            fs::copy(&newest, log.path().join(name)).unwrap();
        }
        fs::copy(&newest, log.path().join("5.snapshot")).unwrap();
        fs::copy(&newest, log.path().join("00000000000000000005.snapshot.deleted")).unwrap();
        let mut writer = log.open();
        assert_eq!(writer.producers().len(), 1);
        assert!(send(&mut writer, 7, 1).unwrap().duplicate);
        let left = names(&log.path());
        assert!(
            !left.iter().any(|name| name.starts_with(".stratalog-") && name.ends_with(".tmp")),
            "{left:?}"
        );
        assert!(left.contains(&"5.snapshot".to_owned()), "somebody else's");
    }
}

#[test]
fn f108_producers_are_known_on_a_full_disk_too() {
    let Some(disk) = SmallDisk::new(2 << 20) else { return };
    let mut log = numbered(false);
    let temp = tempfile::tempdir_in(disk.path()).unwrap();
    crate::support::copy_dir(log.temp.path(), temp.path());
    log.temp = temp;
    for name in names(&log.path()) {
        if name.starts_with(".stratalog-check") || name.ends_with(".snapshot") {
            fs::remove_file(log.path().join(name)).unwrap();
        }
    }
    let ballast = disk.fill_but(0);
    let mut writer = log.open();
    assert!(send(&mut writer, 7, 0).unwrap().duplicate, "an answer needs no room");
    fs::remove_file(ballast).unwrap();
    assert!(!send(&mut writer, 7, 2).unwrap().duplicate);
    writer.close().unwrap();
    assert!(send(&mut log.open(), 7, 2).unwrap().duplicate);
}

#[test]
fn f107_a_failed_append_of_a_producer_can_be_made_again() {
    let Some(disk) = SmallDisk::new(1 << 20) else { return };
    let mut log = TempLog::with(|config| config.segment_bytes = 1 << 20);
    log.temp = tempfile::tempdir_in(disk.path()).unwrap();
    let ballast = disk.fill_but(300 << 10);
    let mut writer = log.open();
    let value = vec![9; 60 << 10];
    let records = [Record::value_only(&value)];
    let mut sequence = 0;
    let error = loop {
        match writer.append_records(&records, as_producer(1, sequence)) {
            Ok(_) => sequence += 1,
            Err(error) => break error,
        }
        assert!(sequence < 100, "the disk never filled");
    };
    assert!(matches!(error, Error::StorageFull { .. }), "{error}");
    // Not taken for sent, and what was sent is still recognised.
    assert!(writer.append_records(&records, as_producer(1, sequence - 1)).unwrap().duplicate);
    fs::remove_file(ballast).unwrap();
    assert!(!writer.append_records(&records, as_producer(1, sequence)).unwrap().duplicate);
    assert_eq!(all(&writer.reader()).len(), usize::try_from(sequence).unwrap() + 1);
}

#[test]
fn f119_the_answer_to_a_repeated_append_is_no_earlier_than_the_first_ones() {
    let log = TempLog::with(|config| config.fsync = FsyncPolicy::Commit);
    let mut writer = log.open();
    let first = writer.append_records_deferred(&[Record::value_only(b"v")], as_producer(1, 0)).unwrap();
    let again = writer.append_records_deferred(&[Record::value_only(b"v")], as_producer(1, 0)).unwrap();
    assert!(!first.is_durable() && !again.is_durable());
    assert_eq!((again.base_offset(), again.end()), (at(0), at(1)));
    let answer = writer.append_records(&[Record::value_only(b"v")], as_producer(1, 0)).unwrap();
    assert_eq!((answer.duplicate, answer.durability, answer.base_offset), (true, Durability::Durable, at(0)));
    assert_eq!(writer.durable_end(), at(1));
    assert!(first.is_durable() && again.is_durable());
    // A log that was killed between the append and its sync knows the producer as far as it knows the records.
    drop((first, again, writer));
    assert!(send(&mut log.open(), 1, 0).unwrap().duplicate);
}
