//! F108, F111: a disk without one free page. The log opens, is read, gives room back, and goes on by itself.

use std::{fs::File, io::Write, path::Path};

use stratalog::{AppendOptions, Error, FsyncPolicy, LogConfig, LogWriter, record::Record};

use super::{
    disks::{scratch, small},
    writer::{config, value},
};

fn put(log: &mut LogWriter) -> Result<(), Error> {
    let value = value(log.end().value());
    log.append_records(&[Record::value_only(&value)], AppendOptions::default()).map(drop)
}

fn fill_up(ballast: &Path) {
    let mut file = File::options().create(true).append(true).open(ballast).unwrap();
    while file.write(&[1; 512]).is_ok_and(|written| written > 0) {}
}

/// Reads all of it: what follows from each offset must be there.
fn read(log: &LogWriter) -> i64 {
    let reader = log.reader();
    let mut next = reader.start().value();
    for record in reader.owned_records(reader.start()) {
        let record = record.unwrap();
        assert_eq!(record.offset.value(), next);
        assert!(record.value.map(|found| found.to_vec()) == Some(value(next)), "offset {next}");
        next += 1;
    }
    assert_eq!(next, log.end().value());
    next
}

fn settings(retention: Option<u64>) -> LogConfig {
    let mut config = config("commit");
    config.fsync = FsyncPolicy::Commit;
    config.retention.bytes = retention;
    config
}

/// Refused as often as it is tried, with nothing changed.
fn is_full(log: &mut LogWriter) {
    let end = read(log);
    for _ in 0..12 {
        let refused = put(log);
        assert!(matches!(refused, Err(Error::StorageFull { .. })), "{refused:?}");
    }
    assert_eq!(read(log), end);
}

pub(crate) fn run() -> Result<(), String> {
    let temp = scratch();
    let disk = small(&temp.path().join("small"), 1 << 20)?;
    let (dir, ballast) = (disk.path().join("t-0"), disk.path().join("ballast"));
    std::fs::write(&ballast, vec![1; 256 << 10]).unwrap();
    let mut log = LogWriter::open(&dir, settings(None)).unwrap();
    while put(&mut log).is_ok() {}
    fill_up(&ballast);
    // What a page had left for the log.
    while put(&mut log).is_ok() {}
    is_full(&mut log);
    // Killed there, it opens there.
    let end = log.end();
    drop(log);
    fill_up(&ballast);
    let mut log = LogWriter::open(&dir, settings(None)).unwrap();
    assert_eq!(log.end(), end);
    assert!(log.recovery().cut.is_none() && log.recovery().lost.is_none(), "{:?}", log.recovery());
    fill_up(&ballast);
    while put(&mut log).is_ok() {}
    is_full(&mut log);
    // Room from the log itself.
    log.set_config(settings(Some(400 << 10))).unwrap();
    fill_up(&ballast);
    let done = log.maintain().unwrap_or_else(|error| panic!("a full disk cannot be given room: {error}"));
    assert!(done.dropped_segments > 2, "{done:?}");
    for _ in 0..20 {
        put(&mut log).unwrap();
    }
    // Room from elsewhere.
    while put(&mut log).is_ok() {}
    is_full(&mut log);
    std::fs::remove_file(&ballast).unwrap();
    for _ in 0..20 {
        put(&mut log).unwrap();
    }
    let end = read(&log);
    log.close().unwrap();
    let log = LogWriter::open(&dir, settings(None)).unwrap();
    assert!(log.recovery().clean);
    assert_eq!(read(&log), end);
    println!("full-disk: {} segments dropped on it, {end} records", done.dropped_segments);
    Ok(())
}
