//! Descriptors and memory: F194, F198, F199.

use std::{fs, process::Command};

use stratalog::{Error, LogWriter, Timestamp};

use super::{bases, closed, fds_in, file, open_fds};
use crate::support::{TempLog, at, expected, fill, pairs};

/// Set in the process that runs with few descriptors; names the directory.
const CHILD: &str = "STRATALOG_TEST_FEW_DESCRIPTORS";

#[test]
fn f194_a_thousand_segments_are_read_with_few_descriptors() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    for _ in 0..1000 {
        fill(&mut writer, 1);
        writer.roll().unwrap();
    }
    writer.close().unwrap();
    let exe = std::env::current_exe().unwrap();
    let script = "ulimit -n 64; exec \"$0\" --exact faults::resources::f194_in_a_process_of_few_descriptors --test-threads 1 --nocapture";
    let out = Command::new("sh").args(["-c", script]).arg(exe).env(CHILD, log.path()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn f194_in_a_process_of_few_descriptors() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let config = TempLog::in_memory(|config| config.segment_bytes = 1024).config;
    for reader in [super::reader_of(path.as_ref()), LogWriter::open(&path, config.clone()).unwrap().reader()]
    {
        assert_eq!(pairs(&reader), expected(0..1000));
        for offset in (0..1000).rev() {
            assert!(reader.record(at(offset)).unwrap().is_some());
        }
        assert_eq!(reader.offset_for_timestamp(Timestamp::from_millis(0)).unwrap().unwrap().0, at(0));
        reader.max_timestamp().unwrap();
    }
    let before = open_fds();
    for _ in 0..100 {
        let mut writer = LogWriter::open(&path, config.clone()).unwrap();
        fill(&mut writer, 1);
        writer.close().unwrap();
    }
    assert_eq!(open_fds(), before);
}

#[test]
fn f198_sealed_segments_keep_neither_buffers_nor_descriptors() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    let dir = fs::canonicalize(log.path()).unwrap();
    for roll in 0..1000 {
        fill(&mut writer, 3);
        writer.roll().unwrap();
        if roll % 50 == 0 {
            writer.sync().unwrap();
            writer.maintain().unwrap();
        }
    }
    writer.sync().unwrap();
    writer.maintain().unwrap();
    let now = fds_in(&dir);
    // What is kept open for reading is bounded, whatever was written.
    assert!(now < 140, "{now} descriptors");
}

#[test]
fn f199_opens_and_rolls_that_fail_leak_nothing() {
    let log = closed(5);
    let dir = fs::canonicalize(log.path()).unwrap();
    let good = fs::read(file(&log, 0, "log")).unwrap();
    // A segment longer than any may be: found after the locks are taken.
    fs::OpenOptions::new().write(true).open(file(&log, 0, "log")).unwrap().set_len(1 << 31).unwrap();
    for _ in 0..300 {
        assert!(LogWriter::open(log.path(), log.config.clone()).is_err());
        assert!(stratalog::LogReader::open(log.path(), stratalog::ReadOptions::default()).is_err());
    }
    assert_eq!(fds_in(&dir), 0);
    fs::write(file(&log, 0, "log"), good).unwrap();
    let mut writer = log.open();
    // The next index cannot be created: a directory has its name.
    let next = writer.end().value();
    fs::create_dir(file(&log, next, "index")).unwrap();
    let before = (fds_in(&dir), bases(&log));
    for _ in 0..300 {
        let rolled = writer.roll();
        assert!(matches!(rolled, Err(Error::Io { .. })), "{rolled:?}");
    }
    assert_eq!((fds_in(&dir), bases(&log)), before);
    fs::remove_dir(file(&log, next, "index")).unwrap();
    writer.roll().unwrap();
    fill(&mut writer, 1);
    assert_eq!(pairs(&writer.reader()), expected(0..6));
}
