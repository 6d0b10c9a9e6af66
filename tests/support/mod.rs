//! What tests of whole logs need: a log in a temporary directory, and looking at all of it.

mod small_disk;

use std::path::PathBuf;

pub(crate) use small_disk::SmallDisk;
use stratalog::{
    AppendOptions, Appended, FsyncPolicy, LogConfig, LogReader, LogWriter, Offset, OpenMode, ReadOptions,
    record::{OwnedRecord, Record},
};
use tempfile::TempDir;

/// A directory for one log, and the settings it is opened with.
pub struct TempLog {
    pub temp: TempDir,
    pub config: LogConfig,
}

impl TempLog {
    /// Small segments and an entry for every other batch, so that every border is met often; nothing synced by itself.
    pub fn small() -> Self {
        let mut config = LogConfig::default();
        config.open = OpenMode::CreateIfMissing;
        config.segment_bytes = 4096;
        config.index_interval_bytes = 0;
        config.fsync = FsyncPolicy::Never;
        Self { temp: tempfile::tempdir().unwrap(), config }
    }

    /// The same with other settings.
    pub fn with(change: impl FnOnce(&mut LogConfig)) -> Self {
        let mut log = Self::small();
        change(&mut log.config);
        log
    }

    /// The same on a file system in memory where there is one: for what has nothing to do with a disk and syncs often.
    pub fn in_memory(change: impl FnOnce(&mut LogConfig)) -> Self {
        let mut log = Self::with(change);
        log.temp = fast_dir();
        log
    }

    pub fn path(&self) -> PathBuf {
        self.temp.path().join("t-0")
    }

    pub fn open(&self) -> LogWriter {
        LogWriter::open(self.path(), self.config.clone()).unwrap()
    }

    pub fn reader(&self) -> LogReader {
        LogReader::open(self.path(), ReadOptions::default()).unwrap()
    }
}

/// A directory on a file system in memory where there is one.
pub fn fast_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn at(value: i64) -> Offset {
    Offset::new(value).unwrap()
}

/// Appends one record.
pub fn put(log: &mut LogWriter, value: &[u8]) -> Appended {
    log.append_records(&[Record::value_only(value)], AppendOptions::default()).unwrap()
}

/// Appends `count` records, each its own batch, whose values are their offsets.
pub fn fill(log: &mut LogWriter, count: u64) {
    for _ in 0..count {
        let value = log.end().to_string();
        put(log, value.as_bytes());
    }
}

pub fn all(reader: &LogReader) -> Vec<OwnedRecord> {
    reader.owned_records(reader.start()).collect::<Result<_, _>>().unwrap()
}

/// Offsets and values of all records.
pub fn pairs(reader: &LogReader) -> Vec<(i64, String)> {
    let text = |record: OwnedRecord| {
        let value = record.value.map(|value| String::from_utf8_lossy(&value).into_owned());
        (record.offset.value(), value.unwrap_or_default())
    };
    all(reader).into_iter().map(text).collect()
}

/// What [`fill`] leaves.
pub fn expected(offsets: std::ops::Range<i64>) -> Vec<(i64, String)> {
    offsets.map(|offset| (offset, offset.to_string())).collect()
}

/// Copies a directory with everything in it.
pub fn copy_dir(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
