//! Faults that others have met, as experiments: each test is named after its number in the table of
//! `docs/TESTING.md`.

mod concurrency;
mod disk_full;
mod index;
mod locking;
mod mmap;
mod odd_input;
mod preallocation;
mod producers;
mod recovery;
mod resources;
mod retention;
mod time;

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use stratalog::{
    LogReader, ReadOptions,
    record::{BatchBuilder, BatchOptions, CRC_AT, CRC_START, Record, crc32c},
};

use crate::support::{TempLog, at, copy_dir, expected, fast_dir, fill, pairs};

/// Position, size, first and last offset of each batch in a file, by the header's fields alone.
fn batches_in(path: &Path) -> Vec<(u64, u64, i64, i64)> {
    let bytes = fs::read(path).unwrap();
    let mut found = Vec::new();
    let mut position = 0;
    while position + 61 <= bytes.len() {
        let field = |at: usize, len: usize| &bytes[position + at..position + at + len];
        let base = i64::from_be_bytes(field(0, 8).try_into().unwrap());
        let size = 12 + i32::from_be_bytes(field(8, 4).try_into().unwrap());
        let delta = i32::from_be_bytes(field(23, 4).try_into().unwrap());
        if size <= 12 {
            break;
        }
        found.push((position as u64, u64::try_from(size).unwrap(), base, base + i64::from(delta)));
        position += usize::try_from(size).unwrap();
    }
    found
}

fn file(log: &TempLog, base: i64, suffix: &str) -> PathBuf {
    log.path().join(format!("{base:020}.{suffix}"))
}

/// The base offsets of the segments, by the names of the files.
fn bases(log: &TempLog) -> Vec<i64> {
    let names = names(&log.path());
    names.iter().filter_map(|name| name.strip_suffix(".log")?.parse().ok()).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn set_len(path: &Path, len: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

fn write_at(path: &Path, position: u64, bytes: &[u8]) {
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, position).unwrap();
}

fn append_bytes(path: &Path, bytes: &[u8]) {
    write_at(path, len(path), bytes);
}

fn flip(path: &Path, position: u64) {
    let mut byte = [0];
    fs::File::open(path).unwrap().read_exact_at(&mut byte, position).unwrap();
    write_at(path, position, &[byte[0] ^ 1]);
}

/// Forgets what is known beside the log, as a directory that was restored from a copy of the segments alone.
fn forget(log: &TempLog) {
    for name in names(&log.path()).iter().filter(|name| name.starts_with(".stratalog")) {
        fs::remove_file(log.path().join(name)).unwrap();
    }
}

/// A copy of a log's directory with the same settings.
fn copy_of(log: &TempLog) -> TempLog {
    let copy = TempLog { temp: fast_dir(), config: log.config.clone() };
    copy_dir(&log.path(), &copy.path());
    copy
}

/// Opens, compares with the first `count` records that [`fill`] writes, appends one, and does it again: many faults
/// only show at the second open.
fn holds(log: &TempLog, count: i64) {
    for count in [count, count + 1] {
        let mut writer = log.open();
        assert_eq!(writer.end(), at(count), "{:?}", writer.recovery());
        assert_eq!(pairs(&writer.reader()), expected(0..count));
        fill(&mut writer, 1);
        writer.close().unwrap();
        let reader = log.reader();
        assert_eq!(pairs(&reader), expected(0..count + 1));
        for offset in 0..=count {
            assert_eq!(reader.record(at(offset)).unwrap().unwrap().offset, at(offset));
        }
    }
    let writer = log.open();
    assert!(writer.recovery().clean, "{:?}", writer.recovery());
    assert_eq!(writer.recovery().cut, None);
}

/// A batch of one record for each value at its own offset.
fn batch(base: i64, values: &[&[u8]]) -> Vec<u8> {
    let mut builder =
        BatchBuilder::new(BatchOptions { base_offset: at(base), leader_epoch: 0, ..BatchOptions::default() });
    for value in values {
        builder.push(Record::value_only(value)).unwrap();
    }
    builder.finish().unwrap().to_vec()
}

/// Changes a field of a batch and makes its CRC right again.
fn with_field(mut batch: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c(&batch[CRC_START..]);
    batch[CRC_AT..CRC_START].copy_from_slice(&crc.to_be_bytes());
    batch
}

/// A log of `count` records, closed.
fn closed(count: u64) -> TempLog {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, count);
    writer.close().unwrap();
    log
}

/// A log of `count` records whose writer was killed.
fn killed(count: u64) -> TempLog {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, count);
    drop(writer);
    log
}

fn open_fds() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// How many descriptors of this process lead into a directory: other tests run beside this one.
fn fds_in(dir: &Path) -> usize {
    let fds = fs::read_dir("/proc/self/fd").unwrap();
    fds.filter(|fd| fs::read_link(fd.as_ref().unwrap().path()).is_ok_and(|to| to.starts_with(dir))).count()
}

fn maps_of(dir: &Path) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains(dir.to_str().unwrap())).count()
}

fn reader_of(path: &Path) -> LogReader {
    LogReader::open(path, ReadOptions::default()).unwrap()
}
