//! What tests of whole logs need: a log in a temporary directory, and looking at all of it.

use std::path::PathBuf;

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

/// A file system in memory of a fixed size, mounted while this lives. `None` where mounting is not allowed.
pub struct SmallDisk {
    temp: TempDir,
}

impl SmallDisk {
    pub fn new(size_bytes: u64) -> Option<Self> {
        let temp = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size_bytes}"), "stratalog-test"])
            .arg(temp.path())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { temp });
        }
        eprintln!("skipped: a tmpfs cannot be mounted here");
        None
    }

    pub fn path(&self) -> &std::path::Path {
        self.temp.path()
    }

    /// Fills the disk but for so many bytes with a file that can be removed.
    pub fn fill_but(&self, left_bytes: u64) -> PathBuf {
        let ballast = self.path().join("ballast");
        let mut file = std::fs::File::create(&ballast).unwrap();
        let page = [1_u8; 4096];
        while std::io::Write::write_all(&mut file, &page).is_ok() {}
        let len = file.metadata().unwrap().len();
        file.set_len((len - left_bytes.min(len)) / 4096 * 4096).unwrap();
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.temp.path()).status();
    }
}
