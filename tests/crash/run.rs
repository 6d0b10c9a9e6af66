//! A workload under the recorder: does things to a log and notes in the model when each was acknowledged.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    time::Duration,
};

use stratalog::{
    AppendOptions, Clock, Durability, Error, FsyncPolicy, LogConfig, LogWriter, Offset, Offsets, OpenMode,
    Producer, Timestamp,
    record::{BatchOptions, Record, encode_batch},
    sim::Recording,
};
use tempfile::TempDir;

use super::model::{Model, producer_of, read_all};

pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) root: TempDir,
    pub(crate) recording: Recording,
    pub(crate) model: Model,
    pub(crate) config: LogConfig,
    pub(crate) writer: Option<LogWriter>,
    /// What was cut before the run, or in it, must have begun an epoch: no smaller one may be met again.
    pub(crate) least_epoch: i32,
    /// Which open of the log its records come from.
    pub(crate) tag: String,
}

/// Many small directories are made and removed: in memory where the machine has a place for that.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

pub(crate) fn log_dir(root: &Path) -> PathBuf {
    root.join("t-0")
}

/// Borders are met often: five or so records a segment, an index entry for each batch.
pub(crate) fn config(fsync: FsyncPolicy) -> LogConfig {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.segment_bytes = 1024;
    config.segment_index_bytes = 480;
    config.index_interval_bytes = 0;
    config.fsync = fsync;
    config.clock = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
    config
}

pub(crate) fn value(tag: &str, offset: i64) -> Vec<u8> {
    let len = usize::try_from(40 + (offset.unsigned_abs() * 67) % 190).unwrap();
    format!("{tag}:{offset}/").into_bytes().into_iter().cycle().take(len).collect()
}

pub(crate) fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

/// One record, its own batch, at the end.
pub(crate) fn put(writer: &mut LogWriter, tag: &str) -> Result<Durability, Error> {
    let value = value(tag, writer.end().value());
    let appended = writer.append_records(&[Record::value_only(&value)], AppendOptions::default())?;
    Ok(appended.durability)
}

/// The producer of what is appended at an offset, and how it goes on numbering.
fn next_of(writer: &LogWriter, offset: i64) -> Producer {
    let id = producer_of(offset);
    let known = writer.producers().into_iter().find(|info| info.id == id);
    Producer { id, epoch: 0, sequence: known.map_or(0, |info| info.last_sequence + 1) }
}

impl Run {
    pub(crate) fn new(name: &str, config: LogConfig) -> Self {
        Self::over(name, scratch(), Model::default(), config)
    }

    /// A run that begins with what a directory holds.
    pub(crate) fn over(name: &str, root: TempDir, model: Model, config: LogConfig) -> Self {
        let recording = Recording::install(root.path()).unwrap();
        // Short, and another one for each run, so that the records of two can be told apart.
        let mut hash = DefaultHasher::new();
        name.hash(&mut hash);
        let tag = format!("{:08x}", hash.finish() >> 32);
        Self { name: name.to_owned(), root, recording, model, config, writer: None, least_epoch: 0, tag }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        log_dir(self.root.path())
    }

    pub(crate) fn now(&self) -> usize {
        self.recording.event_count()
    }

    pub(crate) fn log(&mut self) -> &mut LogWriter {
        self.writer.as_mut().unwrap()
    }

    pub(crate) fn try_open(&mut self) -> Result<(), Error> {
        let writer = LogWriter::open(self.dir(), self.config.clone())?;
        let now = self.now();
        let contents = read_all(&writer.reader()).unwrap();
        self.model.opened(&contents, now);
        self.tag.push('+');
        self.writer = Some(writer);
        Ok(())
    }

    /// Opens the log and cuts everything from `end` on.
    pub(crate) fn try_cut(&mut self, end: i64) -> Result<(), Error> {
        let begun = self.now();
        self.model.ask_cut(end, begun);
        let writer = LogWriter::open_cut(self.dir(), self.config.clone(), at(end))?;
        assert_eq!(writer.end().value(), end);
        let now = self.now();
        let contents = read_all(&writer.reader()).unwrap();
        self.model.opened(&contents, now);
        self.tag.push('+');
        self.writer = Some(writer);
        Ok(())
    }

    pub(crate) fn cut(&mut self, end: i64) {
        self.try_cut(end).unwrap();
    }

    pub(crate) fn open(&mut self) {
        self.try_open().unwrap();
    }

    /// Appends `count` records in one call.
    pub(crate) fn try_append(&mut self, count: i64) -> Result<Durability, Error> {
        let (now, first) = (self.now(), self.log().end().value());
        let values: Vec<_> = (first..first + count).map(|offset| value(&self.tag, offset)).collect();
        for (offset, value) in (first..).zip(&values) {
            self.model.begin(offset, value.clone(), now);
        }
        let records: Vec<_> = values.iter().map(|value| Record::value_only(value)).collect();
        let producer = self.model.is_numbered.then(|| next_of(self.log(), first));
        let appended =
            self.log().append_records(&records, AppendOptions { producer, ..Default::default() })?;
        assert_eq!(appended.base_offset.value(), first);
        let now = self.now();
        for offset in first..first + count {
            self.model.written(offset, now);
        }
        if appended.durability == Durability::Durable {
            self.model.durable_up_to(first + count, now);
        }
        self.note_durable();
        Ok(appended.durability)
    }

    pub(crate) fn append(&mut self, count: i64) {
        self.try_append(count).unwrap();
    }

    /// So many single appends.
    pub(crate) fn fill(&mut self, count: usize) {
        for _ in 0..count {
            self.append(1);
        }
    }

    /// A batch with an offset of its own.
    pub(crate) fn try_append_at(&mut self, offset: i64) -> Result<Durability, Error> {
        let value = value(&self.tag, offset);
        let options = BatchOptions { base_offset: at(offset), ..BatchOptions::default() };
        let mut batch = vec![0; 1024];
        let header = encode_batch(&[Record::value_only(&value)], &options, &mut batch).unwrap();
        batch.truncate(header.size_bytes() as usize);
        let now = self.now();
        if self.log().end() == at(0) {
            // An empty segment is replaced by one that begins there.
            self.model.ask_start(offset, now);
        }
        self.model.begin(offset, value, now);
        let options = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
        let appended = self.log().append(&batch, options)?;
        let now = self.now();
        self.model.written(offset, now);
        if appended.durability == Durability::Durable {
            self.model.durable_up_to(offset + 1, now);
        }
        Ok(appended.durability)
    }

    fn note_durable(&mut self) {
        let (end, now) = (self.log().durable_end().value(), self.now());
        self.model.durable_up_to(end, now);
    }

    pub(crate) fn sync(&mut self) {
        self.log().sync().unwrap();
        self.note_durable();
    }

    pub(crate) fn maintain(&mut self) {
        self.try_maintain().unwrap();
    }

    pub(crate) fn try_maintain(&mut self) -> Result<(), Error> {
        let begun = self.now();
        self.config.clock.advance(Duration::from_secs(2));
        // Where it will start is known only afterwards; the most it can do is start at the end.
        let end = self.log().end().value();
        let before = self.log().start().value();
        let done = self.log().maintain();
        let start = self.log().start().value();
        if done.is_err() {
            // It may have got as far as the checkpoint.
            self.model.ask_start(end, begun);
        }
        if start > before {
            let now = self.now();
            self.model.start_is(start, begun, now);
        }
        self.note_durable();
        done.map(drop)
    }

    pub(crate) fn advance_start(&mut self, start: i64) {
        self.try_advance_start(start).unwrap();
    }

    pub(crate) fn try_advance_start(&mut self, start: i64) -> Result<(), Error> {
        let begun = self.now();
        self.model.ask_start(start, begun);
        self.log().advance_start(at(start))?;
        let now = self.now();
        self.model.start_is(start, begun, now);
        self.note_durable();
        Ok(())
    }

    pub(crate) fn close(&mut self) {
        let end = self.log().end().value();
        self.writer.take().unwrap().close().unwrap();
        let now = self.now();
        self.model.durable_up_to(end, now);
    }

    /// The process dies.
    pub(crate) fn kill(&mut self) {
        self.writer = None;
    }
}

/// Copies a directory of files and directories.
pub(crate) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() { copy_dir(&path, &to) } else { fs::copy(&path, &to).map(drop).unwrap() }
    }
}
