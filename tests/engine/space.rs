//! Room on the disk: the reserve, what an idle log takes.

use std::{fs, os::unix::fs::MetadataExt};

use stratalog::{AppendOptions, Error, LogWriter, Preallocate, record::Record};

use crate::support::{SmallDisk, TempLog, at, expected, fill, pairs};

fn on(disk: &SmallDisk, change: impl FnOnce(&mut stratalog::LogConfig)) -> TempLog {
    let mut log = TempLog::with(change);
    log.temp = tempfile::tempdir_in(disk.path()).unwrap();
    log
}

fn free_bytes(disk: &SmallDisk) -> u64 {
    let stat = rustix::fs::statvfs(disk.path()).unwrap();
    stat.f_bavail * stat.f_frsize
}

#[test]
fn a_reserve_of_free_space_is_not_eaten() {
    for preallocate in [Preallocate::Stepped, Preallocate::Whole, Preallocate::Off] {
        let Some(disk) = SmallDisk::new(8 << 20) else { return };
        let reserve = 2 << 20;
        let log = on(&disk, |config| {
            config.segment_bytes = 1 << 20;
            config.max_batch_bytes = 1 << 20;
            config.segment_index_bytes = 64 << 10;
            config.min_free_bytes = reserve;
            config.preallocate = preallocate;
        });
        let mut writer = log.open();
        let value = vec![1; 100 << 10];
        let mut count = 0;
        let error = loop {
            match writer.append_records(&[Record::value_only(&value)], AppendOptions::default()) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::StorageFull { .. }), "{error}");
        assert!(error.to_string().contains("min_free_bytes"), "{error}");
        assert!(count > 20, "{preallocate:?}: {count}");
        // Index blocks and the like are not counted to the byte.
        assert!(
            free_bytes(&disk) + (256 << 10) >= reserve,
            "{preallocate:?}: {} are free",
            free_bytes(&disk)
        );
        assert_eq!(writer.end(), at(count));
        // A lower reserve lets it go on; so does room.
        let mut config = writer.config().clone();
        config.min_free_bytes = 0;
        writer.set_config(config.clone()).unwrap();
        fill(&mut writer, 1);
        config.min_free_bytes = u64::MAX;
        writer.set_config(config.clone()).unwrap();
        writer.roll().unwrap();
        let refused = writer.append_records(&[Record::value_only(b"x")], AppendOptions::default());
        assert!(matches!(refused, Err(Error::StorageFull { .. })), "{refused:?}");
        config.min_free_bytes = reserve;
        config.retention.bytes = Some(0);
        writer.set_config(config).unwrap();
        writer.maintain().unwrap();
        fill(&mut writer, 1);
        let end = writer.end();
        writer.close().unwrap();
        assert_eq!(log.open().end(), end);
    }
}

#[test]
fn a_full_disk_loses_nothing_and_the_log_goes_on_by_itself() {
    let Some(disk) = SmallDisk::new(2 << 20) else { return };
    let log = on(&disk, |_| {});
    let mut writer = log.open();
    fill(&mut writer, 10);
    for _ in 0..3 {
        let ballast = disk.fill_but(0);
        let mut refusals = 0;
        while refusals < 5 {
            let value = writer.end().to_string();
            match writer.append_records(&[Record::value_only(value.as_bytes())], AppendOptions::default()) {
                Ok(_) => {}
                Err(Error::StorageFull { .. }) => refusals += 1,
                Err(error) => panic!("{error}"),
            }
        }
        let end = writer.end().value();
        assert_eq!(pairs(&writer.reader()), expected(0..end));
        assert_eq!(pairs(&log.reader()), expected(0..end));
        assert!(writer.sync().is_ok());
        fs::remove_file(ballast).unwrap();
        fill(&mut writer, 100);
    }
    let end = writer.end().value();
    assert!(end >= 310);
    drop(writer);
    assert_eq!(pairs(&log.open().reader()), expected(0..end));
}

#[test]
fn an_idle_log_takes_less_than_a_mebibyte() {
    let mut log = TempLog::small();
    log.config = stratalog::LogConfig::default();
    log.config.open = stratalog::OpenMode::CreateIfMissing;
    let disk_use = |log: &TempLog| -> u64 {
        let entries = fs::read_dir(log.path()).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum()
    };
    let mut writer = log.open();
    assert!(disk_use(&log) < 64 << 10, "{} bytes before the first append", disk_use(&log));
    fill(&mut writer, 1);
    writer.maintain().unwrap();
    assert!(disk_use(&log) < 1 << 20, "{} bytes with one record", disk_use(&log));
    writer.close().unwrap();
    assert!(disk_use(&log) < 64 << 10, "{} bytes when closed", disk_use(&log));
}

/// Anonymous memory of this process in bytes.
fn anonymous_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Set in the process that measures its memory alone.
const CHILD: &str = "STRATALOG_TEST_IDLE_MEMORY";

#[test]
fn an_idle_log_takes_little_memory() {
    let exe = std::env::current_exe().unwrap();
    let out = std::process::Command::new(exe)
        .args(["--exact", "space::idle_memory_in_a_process_of_its_own", "--test-threads", "1", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn idle_memory_in_a_process_of_its_own() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let open = |log: &TempLog| {
        let mut writer = LogWriter::open(log.path(), log.config.clone()).unwrap();
        let value = vec![1; 900 << 10];
        writer.append_records(&[Record::value_only(&value)], AppendOptions::default()).unwrap();
        writer.sync().unwrap();
        // Twice: the first pass sees that something was appended since the last.
        writer.maintain().unwrap();
        writer.maintain().unwrap();
        writer
    };
    let logs: Vec<TempLog> = (0..17)
        .map(|_| {
            let mut log = TempLog::in_memory(|_| {});
            log.config = stratalog::LogConfig::default();
            log.config.open = stratalog::OpenMode::CreateIfMissing;
            log
        })
        .collect();
    let first = open(&logs[0]);
    let before = anonymous_bytes();
    let writers: Vec<_> = logs[1..].iter().map(open).collect();
    let each = anonymous_bytes().saturating_sub(before) / writers.len() as u64;
    assert!(each <= 128 << 10, "{each} bytes for each idle log");
    drop((first, writers));
}
