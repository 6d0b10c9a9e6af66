//! Memory maps: F128 to F134.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use stratalog::{AppendOptions, Error, Timestamp, record::Record};

use super::{bases, closed, fds_in, file, maps_of};
use crate::support::{SmallDisk, TempLog, at, expected, fill, pairs};

#[test]
fn f128_a_mapped_index_on_a_full_disk_is_an_error_and_not_a_signal() {
    let Some(disk) = SmallDisk::new(512 << 10) else { return };
    for left in [4096, 8192, 16384, 32768] {
        let mut log = TempLog::in_memory(|config| {
            config.segment_bytes = 1 << 20;
            config.segment_index_bytes = 64 << 10;
        });
        log.temp = tempfile::tempdir_in(disk.path()).unwrap();
        let mut writer = log.open();
        fill(&mut writer, 1);
        let ballast = disk.fill_but(left);
        let mut count = 1;
        loop {
            let value = count.to_string();
            match writer.append_records(&[Record::value_only(value.as_bytes())], AppendOptions::default()) {
                Ok(_) => count += 1,
                Err(Error::StorageFull { .. }) => break,
                Err(error) => panic!("{error}"),
            }
            assert!(count < 100_000);
        }
        assert_eq!(pairs(&writer.reader()), expected(0..count));
        fs::remove_file(ballast).unwrap();
        fill(&mut writer, 500);
        assert_eq!(pairs(&writer.reader()), expected(0..count + 500));
        writer.close().unwrap();
        assert_eq!(pairs(&log.open().reader()), expected(0..count + 500));
    }
}

#[test]
fn f130_look_ups_go_on_while_segments_come_and_go() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 200);
    let reader = writer.reader();
    let outside = log.reader();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..4_i64 {
            let reader = if seed % 2 == 0 { reader.clone() } else { outside.clone() };
            let is_over = &is_over;
            scope.spawn(move || {
                let mut step = seed;
                let mut found = 0;
                while !is_over.load(Ordering::Relaxed) || found == 0 {
                    reader.refresh().unwrap();
                    let (start, end) = (reader.start().value(), reader.end().value());
                    step = (step * 31 + 7) % 1_000_003;
                    let offset = start + step % (end - start).max(1);
                    match reader.record(at(offset)) {
                        Ok(Some(record)) => {
                            assert_eq!(record.value.as_deref(), Some(offset.to_string().as_bytes()));
                            found += 1;
                        }
                        Ok(None) => panic!("{offset} of {start}..{end} is missing"),
                        Err(Error::OffsetOutOfRange { .. }) => {}
                        Err(error) => panic!("{offset} of {start}..{end}: {error}"),
                    }
                    let time = reader.offset_for_timestamp(Timestamp::from_millis(1)).unwrap();
                    if let Some((offset, _)) = time {
                        assert!(offset.value() >= start);
                    }
                }
            });
        }
        let mut config = writer.config().clone();
        config.retention.bytes = Some(3000);
        writer.set_config(config).unwrap();
        for _ in 0..150 {
            fill(&mut writer, 20);
            writer.roll().unwrap();
            writer.maintain().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(writer.start() > at(2000));
}

#[test]
fn f132_empty_indexes_are_no_obstacle() {
    for kind in ["index", "timeindex"] {
        for is_read_only in [false, true] {
            let log = closed(150);
            for base in bases(&log) {
                let path = file(&log, base, kind);
                fs::write(&path, b"").unwrap();
                let mut permissions = fs::metadata(&path).unwrap().permissions();
                permissions.set_readonly(is_read_only);
                fs::set_permissions(&path, permissions).unwrap();
            }
            assert_eq!(pairs(&log.reader()), expected(0..150));
            let mut writer = log.open();
            for offset in 0..150 {
                assert_eq!(writer.reader().record(at(offset)).unwrap().unwrap().offset, at(offset));
            }
            writer.roll().unwrap();
            fill(&mut writer, 1);
            writer.close().unwrap();
            assert_eq!(pairs(&log.open().reader()), expected(0..151));
        }
    }
}

#[test]
fn f134_maps_and_descriptors_do_not_grow_with_rolls() {
    let log = TempLog::in_memory(|config| {
        config.segment_index_bytes = 4096;
        config.retention.bytes = Some(0);
    });
    let mut writer = log.open();
    let dir = fs::canonicalize(log.path()).unwrap();
    let mut most = (0, 0);
    for round in 0..1000 {
        fill(&mut writer, 2);
        writer.roll().unwrap();
        writer.maintain().unwrap();
        let offset = writer.start();
        let _ = writer.reader().record(offset);
        let now = (maps_of(&dir), fds_in(&dir));
        if round < 10 {
            most = (most.0.max(now.0), most.1.max(now.1));
        } else {
            assert!(now.0 <= most.0 + 1 && now.1 <= most.1 + 1, "round {round}: {now:?}, at first {most:?}");
        }
    }
    let deleted = fs::read_dir("/proc/self/fd").unwrap().filter(|fd| {
        fs::read_link(fd.as_ref().unwrap().path())
            .is_ok_and(|to| to.starts_with(&dir) && to.to_string_lossy().ends_with("(deleted)"))
    });
    assert_eq!(deleted.count(), 0);
}
