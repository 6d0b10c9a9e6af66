//! Preallocation: F096 to F105. Errors of `fallocate` one by one (F100, F105) are tested in the room of system calls.

use std::{fs, os::unix::fs::MetadataExt};

use stratalog::{Error, LogWriter, Preallocate};

use super::{bases, batches_in, closed, file, forget, holds, len, names, set_len};
use crate::support::{SmallDisk, TempLog, all, at, expected, fill, pairs, put};

#[test]
fn f096_zeros_behind_a_clean_stop_are_no_records() {
    for is_known in [true, false] {
        let log = closed(20);
        let path = file(&log, 0, "log");
        let end = len(&path);
        set_len(&path, 4096);
        if !is_known {
            forget(&log);
        }
        assert_eq!(pairs(&log.reader()), expected(0..20));
        let mut writer = log.open();
        assert_eq!((writer.end(), &writer.recovery().cut), (at(20), &None));
        fill(&mut writer, 1);
        writer.close().unwrap();
        assert_eq!(
            batches_in(&path).last().unwrap().0,
            end,
            "the append lies directly behind the last batch"
        );
        holds(&log, 21);
    }
}

#[test]
fn f097_readers_stop_at_the_last_batch_and_not_at_the_end_of_the_file() {
    let log = TempLog::in_memory(|config| {
        config.segment_bytes = 16 << 20;
        config.preallocate = Preallocate::Whole;
    });
    let mut writer = log.open();
    fill(&mut writer, 10);
    assert_eq!(len(&file(&log, 0, "log")), 16 << 20);
    let data: u64 = batches_in(&file(&log, 0, "log")).iter().map(|batch| batch.1).sum();
    for reader in [writer.reader(), log.reader()] {
        let mut bytes = Vec::new();
        let outcome = reader.read(at(0), 1 << 20, &mut bytes).unwrap();
        assert_eq!((outcome.next, outcome.bytes as u64), (at(10), data));
        let slice = reader.slice(at(0), 1 << 20).unwrap().unwrap();
        assert_eq!(u64::from(slice.len()), data);
        assert_eq!(pairs(&reader), expected(0..10));
        assert!(reader.slice(at(10), 1 << 20).unwrap().is_none());
    }
    writer.roll().unwrap();
    assert_eq!(len(&file(&log, 0, "log")), data);
    drop(writer);
    // Killed: no page says how far it was written.
    forget(&log);
    assert_eq!(pairs(&log.reader()), expected(0..10));
}

#[test]
fn f100_without_preallocation_only_speed_is_different() {
    let mut left = Vec::new();
    for preallocate in [Preallocate::Stepped, Preallocate::Whole, Preallocate::Off] {
        let log = TempLog::in_memory(|config| {
            config.preallocate = preallocate;
            config.clock = stratalog::Clock::manual(stratalog::Timestamp::from_millis(5));
        });
        let mut writer = log.open();
        fill(&mut writer, 200);
        writer.close().unwrap();
        let files = names(&log.path()).into_iter().filter(|name| !name.starts_with('.'));
        left.push(files.map(|name| (fs::read(log.path().join(&name)).unwrap(), name)).collect::<Vec<_>>());
        holds(&log, 200);
    }
    assert!(left.windows(2).all(|pair| pair[0] == pair[1]), "the files differ");
}

#[test]
fn f101_no_space_is_not_mistaken_for_not_supported() {
    let Some(disk) = SmallDisk::new(4 << 20) else { return };
    let mut log = TempLog::in_memory(|config| {
        config.segment_bytes = 16 << 20;
        config.preallocate = Preallocate::Whole;
    });
    log.temp = tempfile::tempdir_in(disk.path()).unwrap();
    let ballast = disk.fill_but(256 << 10);
    let mut writer = log.open();
    // What is needed now fits, though the whole segment does not.
    fill(&mut writer, 5);
    let value = vec![1; 512 << 10];
    let refused = writer.append_records(
        &[stratalog::record::Record::value_only(&value)],
        stratalog::AppendOptions::default(),
    );
    assert!(matches!(refused, Err(Error::StorageFull { .. })), "{refused:?}");
    assert_eq!(writer.end(), at(5));
    assert_eq!(bases(&log), [0]);
    fs::remove_file(ballast).unwrap();
    put(&mut writer, &value);
    writer.close().unwrap();
    assert_eq!(all(&log.open().reader()).len(), 6);
}

#[test]
fn f102_no_more_is_reserved_than_was_asked_for() {
    for segment_bytes in [1024, 4095, 4096, 4097, 1 << 20] {
        for preallocate in [Preallocate::Whole, Preallocate::Stepped] {
            let log = TempLog::in_memory(|config| {
                config.segment_bytes = segment_bytes;
                config.preallocate = preallocate;
                config.segment_index_bytes = 1 << 20;
            });
            let mut writer = log.open();
            for roll in 0..5 {
                fill(&mut writer, 3);
                let active = *bases(&log).last().unwrap();
                let stat = fs::metadata(file(&log, active, "log")).unwrap();
                assert!(stat.len() <= u64::from(segment_bytes), "{} of {segment_bytes}", stat.len());
                assert!(stat.blocks() * 512 <= u64::from(segment_bytes).next_multiple_of(4096) + 4096);
                for kind in ["index", "timeindex"] {
                    let stat = fs::metadata(file(&log, active, kind)).unwrap();
                    assert!(stat.blocks() * 512 <= 64 << 10, "{kind}: {} blocks", stat.blocks());
                }
                writer.roll().unwrap();
                let data: u64 = batches_in(&file(&log, active, "log")).iter().map(|batch| batch.1).sum();
                assert_eq!(len(&file(&log, active, "log")), data, "roll {roll}");
                assert!(len(&file(&log, active, "index")) <= 24);
            }
        }
    }
}

#[test]
fn a_log_that_was_opened_and_not_written_to_takes_no_room() {
    let log = TempLog::in_memory(|config| {
        config.segment_bytes = 1 << 30;
        config.preallocate = Preallocate::Whole;
    });
    let _writer = LogWriter::open(log.path(), log.config.clone()).unwrap();
    let blocks: u64 = names(&log.path())
        .iter()
        .map(|name| fs::metadata(log.path().join(name)).unwrap().blocks() * 512)
        .sum();
    assert!(blocks <= 64 << 10, "{blocks} bytes");
}
