//! A full disk: F107 to F114, on small file systems in memory.

use std::fs;

use stratalog::{AppendOptions, Error, FsyncPolicy, LogWriter, Preallocate, record::Record};

use super::{bases, batches_in, fds_in, file, flip, forget, names, set_len};
use crate::support::{SmallDisk, TempLog, all, at, expected, fill, pairs};

fn on(disk: &SmallDisk, change: impl FnOnce(&mut stratalog::LogConfig)) -> TempLog {
    let mut log = TempLog::with(change);
    log.temp = tempfile::tempdir_in(disk.path()).unwrap();
    log
}

/// Appends records of 60 KiB until the disk is full; returns how many were acknowledged.
fn fill_up(writer: &mut LogWriter) -> i64 {
    let before = writer.end();
    for count in 0..1000 {
        let value = vec![u8::try_from(count % 251).unwrap(); 60 << 10];
        match writer.append_records(&[Record::value_only(&value)], AppendOptions::default()) {
            Ok(_) => {}
            Err(Error::StorageFull { .. }) => {
                assert_eq!(writer.end(), at(before.value() + count), "a failed append moved the end");
                return count;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the disk never filled");
}

#[test]
fn f107_a_failed_append_leaves_nothing_that_a_later_one_could_be_glued_to() {
    for preallocate in [Preallocate::Stepped, Preallocate::Whole, Preallocate::Off] {
        for fsync in [FsyncPolicy::Never, FsyncPolicy::Commit] {
            let Some(disk) = SmallDisk::new(1 << 20) else { return };
            let log = on(&disk, |config| {
                config.segment_bytes = 1 << 20;
                config.max_batch_bytes = 1 << 20;
                config.preallocate = preallocate;
                config.fsync = fsync;
            });
            let ballast = disk.fill_but(700 << 10);
            let mut writer = log.open();
            let count = fill_up(&mut writer);
            assert!(count > 3, "{preallocate:?}: {count}");
            assert_eq!(all(&writer.reader()).len(), usize::try_from(count).unwrap());
            fs::remove_file(ballast).unwrap();
            fill(&mut writer, 5);
            let check = |records: Vec<stratalog::record::OwnedRecord>| {
                assert_eq!(records.len() as i64, count + 5);
                for (index, record) in records.iter().enumerate() {
                    let value = record.value.as_deref().unwrap();
                    let is_right = if (index as i64) < count {
                        value.len() == 60 << 10 && value[0] == index as u8
                    } else {
                        value == record.offset.to_string().as_bytes()
                    };
                    assert!(is_right, "record {index}");
                }
            };
            check(all(&writer.reader()));
            drop(writer);
            forget(&log);
            let writer = log.open();
            assert_eq!(writer.recovery().cut, None);
            check(all(&writer.reader()));
        }
    }
}

#[test]
fn f108_a_full_disk_can_be_opened_read_and_reclaimed() {
    let Some(disk) = SmallDisk::new(2 << 20) else { return };
    let log = on(&disk, |_| {});
    let mut writer = log.open();
    fill(&mut writer, 200);
    drop(writer);
    let all_bases = bases(&log);
    fs::remove_file(file(&log, all_bases[1], "index")).unwrap();
    for name in [".stratalog-checkpoint", ".stratalog-summary"] {
        let _ = fs::remove_file(log.path().join(name));
    }
    let ballast = disk.fill_but(0);
    let mut writer = log.open();
    assert_eq!(pairs(&writer.reader()), expected(0..200));
    let refused = writer.append_records(&[Record::value_only(&[1; 3000])], AppendOptions::default());
    assert!(matches!(refused, Err(Error::StorageFull { .. })), "{refused:?}");
    // Dropping the oldest gives the room back.
    let mut config = writer.config().clone();
    config.retention.bytes = Some(0);
    writer.set_config(config).unwrap();
    if let Err(error) = writer.maintain() {
        assert!(matches!(error, Error::StorageFull { .. }), "{error}");
        fs::remove_file(&ballast).unwrap();
        writer.maintain().unwrap();
    }
    assert!(writer.start() > at(0));
    fill(&mut writer, 3);
    writer.close().unwrap();
    let start = log.open().start();
    assert_eq!(pairs(&log.reader()), expected(start.value()..203));
}

#[test]
fn f108_a_torn_tail_that_cannot_be_kept_aside_is_not_cut() {
    let Some(disk) = SmallDisk::new(1 << 20) else { return };
    let log = on(&disk, |config| config.segment_bytes = 1 << 20);
    let mut writer = log.open();
    fill(&mut writer, 50);
    writer.append_records(&[Record::value_only(&vec![9; 50_000])], AppendOptions::default()).unwrap();
    drop(writer);
    forget(&log);
    let path = file(&log, 0, "log");
    let last = *batches_in(&path).last().unwrap();
    set_len(&path, last.0 + last.1 - 5);
    flip(&path, last.0 + 65);
    let before = fs::read(&path).unwrap();
    let ballast = disk.fill_but(0);
    let opened = LogWriter::open(log.path(), log.config.clone());
    assert!(matches!(opened, Err(Error::StorageFull { .. })), "{opened:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!names(&log.path()).iter().any(|name| name.contains("cut")), "{:?}", names(&log.path()));
    assert_eq!(pairs(&log.reader()), expected(0..50), "reading needs no room");
    fs::remove_file(ballast).unwrap();
    let writer = log.open();
    assert_eq!(writer.end(), at(50));
    assert!(writer.recovery().cut.as_ref().unwrap().bytes > 40_000);
}

#[test]
fn f110_rolls_that_fail_leave_no_names_and_no_descriptors() {
    let Some(disk) = SmallDisk::new(1 << 20) else { return };
    let log = on(&disk, |config| config.preallocate = Preallocate::Whole);
    let mut writer = log.open();
    fill(&mut writer, 50);
    let ballast = disk.fill_but(0);
    let dir = fs::canonicalize(log.path()).unwrap();
    let mut before = None;
    for _ in 0..1000 {
        let refused = writer.append_records(&[Record::value_only(&[1; 3900])], AppendOptions::default());
        assert!(matches!(refused, Err(Error::StorageFull { .. })), "{refused:?}");
        let now = (names(&dir), fds_in(&dir));
        // The first try may have rolled: an empty segment takes no room.
        assert!(before.as_ref().is_none_or(|before| *before == now), "{before:?} {now:?}");
        before = Some(now);
    }
    assert_eq!(pairs(&writer.reader()), expected(0..50));
    fs::remove_file(ballast).unwrap();
    fill(&mut writer, 50);
    writer.close().unwrap();
    assert_eq!(pairs(&log.open().reader()), expected(0..100));
}

#[test]
fn f111_the_log_goes_on_by_itself_once_there_is_room() {
    let Some(disk) = SmallDisk::new(1 << 20) else { return };
    let log = on(&disk, |config| {
        config.segment_bytes = 128 << 10;
        config.max_batch_bytes = 128 << 10;
        config.fsync = FsyncPolicy::Commit;
    });
    let mut writer = log.open();
    let mut count = 0;
    for _ in 0..3 {
        let ballast = disk.fill_but(300 << 10);
        count += fill_up(&mut writer);
        for _ in 0..10 {
            assert_eq!(fill_up(&mut writer), 0);
        }
        assert_eq!(writer.durable_end(), writer.end());
        fs::remove_file(ballast).unwrap();
        let mut config = writer.config().clone();
        config.retention.bytes = Some(0);
        writer.set_config(config).unwrap();
        writer.maintain().unwrap();
    }
    assert_eq!(writer.end(), at(count));
    writer.close().unwrap();
    assert_eq!(log.open().end(), at(count));
}

#[test]
fn f114_no_success_is_told_for_bytes_that_are_not_in_the_file() {
    for size in [512 << 10, 1 << 20] {
        let Some(disk) = SmallDisk::new(size) else { return };
        let log = on(&disk, |config| {
            config.segment_bytes = 256 << 10;
            config.max_batch_bytes = 256 << 10;
        });
        let mut writer = log.open();
        let count = fill_up(&mut writer);
        let end = writer.end();
        match writer.close() {
            Ok(()) | Err(Error::StorageFull { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let writer = log.open();
        assert_eq!((writer.end(), all(&writer.reader()).len() as i64), (end, count));
    }
}

#[test]
fn f107_batches_of_a_failed_append_do_not_come_back_behind_a_shorter_one() {
    let Some(disk) = SmallDisk::new(1 << 20) else { return };
    let log = on(&disk, |config| {
        config.segment_bytes = 1 << 20;
        config.preallocate = Preallocate::Off;
        config.max_batch_bytes = 1100;
        config.append_buffer_bytes = 64 << 10;
    });
    let ballast = disk.fill_but(150 << 10);
    let mut writer = log.open();
    let value = [3; 1000];
    // Batches of one record each, more than there is room for; then one of exactly their size.
    let many = vec![Record::value_only(&value); 300];
    let refused = writer.append_records(&many, AppendOptions::default());
    assert!(matches!(refused, Err(Error::StorageFull { .. })), "{refused:?}");
    writer.append_records(&[Record::value_only(&[4; 1000])], AppendOptions::default()).unwrap();
    drop(writer);
    forget(&log);
    let writer = log.open();
    assert_eq!((writer.end(), &writer.recovery().cut), (at(1), &None));
    drop(ballast);
}
