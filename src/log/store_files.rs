//! The files that Kafka keeps in a data directory, while a store holds all of it: the text checkpoints and the clean
//! marker.
//!
//! They are read once and kept here; logs change what is here, and the store writes it down now and then. What a broker
//! finds after a kill is thus older than the logs, never newer: a recovery point that is too low costs a scan. Only the
//! marker and a point that has to be lowered are changed on the disk at once.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use super::{
    kafka_files::{
        CLEAN_MARKER, CLEANED, HIGH_WATERMARKS, KafkaHints, LOG_STARTS, MAX_BYTES, RECOVERY_POINTS,
    },
    text_checkpoint::{self, Lines, TopicPartition},
};
use crate::{error::Result, offset::Offset, sys::Dir};

const MARKER_MAX_BYTES: usize = 64 << 10;

/// How far a log is, as a broker would be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// A broker has to look at nothing below it: the base of the active segment, or of the one that holds the log's own
    /// recovery point.
    pub(crate) recovery_point: Offset,
    pub(crate) start: Offset,
    /// Where the first segment begins.
    pub(crate) first_base: Offset,
    /// Up to where consumers may see the log.
    pub(crate) high_watermark: Offset,
}

/// What the files say, and what is to be written to them.
#[derive(Debug)]
pub(crate) struct StoreFiles {
    dir: Arc<Dir>,
    file_mode: u32,
    state: Mutex<State>,
    /// One at a time rewrites the files; appends do not wait for that.
    writing: Mutex<()>,
}

#[derive(Debug)]
struct State {
    tables: [Table; 4],
    /// The marker was there when the store was opened.
    was_clean: bool,
    /// It is there now.
    has_marker: bool,
    broker_epoch: i64,
    partitions: BTreeMap<TopicPartition, Condition>,
}

/// A partition that is not as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// Changed, and not closed since.
    Changed,
    /// Closed: trimmed, synced, its time indexes complete.
    Closed,
}

#[derive(Debug)]
struct Table {
    name: &'static str,
    lines: Lines,
    /// The file says something else, or nothing that can be read.
    is_changed: bool,
}

const POINTS: usize = 0;
const STARTS: usize = 1;
const WATERMARKS: usize = 2;
const NAMES: [&str; 4] = [RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED];

impl StoreFiles {
    /// Reads what is there. A file that cannot be read is as good as absent, with a warning, and is written anew at the
    /// next turn: a broker would not start over it.
    pub(crate) fn load(dir: &Arc<Dir>, file_mode: u32, warnings: &mut Vec<String>) -> Result<Self> {
        let tables = NAMES.map(|name| Table::load(dir, name, warnings));
        let has_marker = dir.exists(CLEAN_MARKER)?;
        let marker = dir.read_small(CLEAN_MARKER, MARKER_MAX_BYTES).ok().flatten().unwrap_or_default();
        let state = State {
            tables,
            was_clean: has_marker,
            has_marker,
            broker_epoch: broker_epoch(&marker),
            partitions: BTreeMap::new(),
        };
        Ok(Self { dir: Arc::clone(dir), file_mode, state: Mutex::new(state), writing: Mutex::new(()) })
    }

    pub(crate) fn dir(&self) -> &Arc<Dir> {
        &self.dir
    }

    /// True where the last broker or store stopped cleanly.
    pub(crate) fn was_clean(&self) -> bool {
        self.state.lock().was_clean
    }

    pub(super) fn hints(&self, topic: &str, partition: i32) -> KafkaHints {
        let key = (topic.to_owned(), partition);
        let state = self.state.lock();
        let offset = |table: usize| state.tables[table].lines.get(&key).copied().and_then(Offset::new);
        KafkaHints {
            clean: state.was_clean && !state.partitions.contains_key(&key),
            recovery_point: offset(POINTS),
            log_start: offset(STARTS),
        }
    }

    /// A partition is about to change: the marker goes, durably.
    pub(crate) fn begin_changes(&self, topic: &str, partition: i32) -> Result<()> {
        let mut state = self.state.lock();
        if state.has_marker {
            self.dir.remove(CLEAN_MARKER)?;
            self.dir.sync()?;
            state.has_marker = false;
        }
        state.partitions.insert((topic.to_owned(), partition), Condition::Changed);
        Ok(())
    }

    /// A partition was closed and is as a clean stop leaves it.
    pub(crate) fn note_closed(&self, topic: &str, partition: i32) {
        self.state.lock().partitions.insert((topic.to_owned(), partition), Condition::Closed);
    }

    /// True where a broker may be told that it need not look at the partition.
    pub(crate) fn is_known_clean(&self, topic: &str, partition: i32) -> bool {
        self.state.lock().is_known_clean(&(topic.to_owned(), partition))
    }

    pub(super) fn lower_recovery_point(&self, topic: &str, partition: i32, most: Offset) -> Result<()> {
        {
            let mut state = self.state.lock();
            let table = &mut state.tables[POINTS];
            match table.lines.get_mut(&(topic.to_owned(), partition)) {
                Some(point) if *point > most.value() => *point = most.value(),
                _ => return Ok(()),
            }
            table.is_changed = true;
        }
        self.write()
    }

    pub(super) fn note_progress(&self, topic: &str, partition: i32, progress: &Progress) {
        let key = (topic.to_owned(), partition);
        let mut state = self.state.lock();
        let start = (progress.start > progress.first_base).then_some(progress.start);
        state.tables[POINTS].set(&key, Some(progress.recovery_point));
        state.tables[STARTS].set(&key, start);
        state.tables[WATERMARKS].set(&key, Some(progress.high_watermark));
    }

    /// Takes all lines of a topic out of all files. What a deleted topic's say must not meet a new one of its name.
    pub(crate) fn forget(&self, topic: &str) {
        let mut state = self.state.lock();
        for table in &mut state.tables {
            let before = table.lines.len();
            table.lines.retain(|(known, _), _| known != topic);
            table.is_changed |= table.lines.len() != before;
        }
        state.partitions.retain(|(known, _), _| known != topic);
    }

    /// Writes down what has changed: each file as a whole, so that a crash leaves the old one or the new one.
    pub(crate) fn write(&self) -> Result<()> {
        let _alone = self.writing.lock();
        for table in 0..NAMES.len() {
            let (name, text) = {
                let mut state = self.state.lock();
                let table = &mut state.tables[table];
                if !std::mem::take(&mut table.is_changed) {
                    continue;
                }
                (table.name, text_checkpoint::render(&table.lines))
            };
            if let Err(error) = self.dir.write_replace(name, text.as_bytes(), self.file_mode) {
                self.state.lock().tables[table].is_changed = true;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// The last turn, after all logs were closed: the checkpoints, and at the very end the marker, if every one of
    /// `partitions` is known to be clean. True where the marker stands.
    pub(crate) fn finish<'a>(&self, mut partitions: impl Iterator<Item = (&'a str, i32)>) -> Result<bool> {
        self.write()?;
        let epoch = {
            let state = self.state.lock();
            if state.has_marker {
                return Ok(true);
            }
            if !partitions.all(|(topic, number)| state.is_known_clean(&(topic.to_owned(), number))) {
                return Ok(false);
            }
            state.broker_epoch
        };
        let text = format!("{{\"version\":0,\"brokerEpoch\":{epoch}}}");
        self.dir.write_replace(CLEAN_MARKER, text.as_bytes(), self.file_mode)?;
        self.state.lock().has_marker = true;
        Ok(true)
    }
}

impl State {
    fn is_known_clean(&self, key: &TopicPartition) -> bool {
        self.partitions.get(key).map_or(self.was_clean, |condition| *condition == Condition::Closed)
    }
}

impl Table {
    fn load(dir: &Dir, name: &'static str, warnings: &mut Vec<String>) -> Self {
        let read = match dir.read_small(name, MAX_BYTES) {
            Ok(None) => Ok(Lines::new()),
            Ok(Some(bytes)) => text_checkpoint::parse(&bytes),
            Err(error) => Err(error.to_string()),
        };
        let is_changed = read.is_err();
        let lines = read.unwrap_or_else(|what| {
            warnings.push(format!("{}: {what}; taken as absent", dir.path_of(name).display()));
            Lines::new()
        });
        Self { name, lines, is_changed }
    }

    fn set(&mut self, key: &TopicPartition, offset: Option<Offset>) {
        let now = offset.map(Offset::value);
        if self.lines.get(key).copied() != now {
            match now {
                Some(now) => self.lines.insert(key.clone(), now),
                None => self.lines.remove(key),
            };
            self.is_changed = true;
        }
    }
}

/// The epoch in `{"version":0,"brokerEpoch":11}`: a controller compares it with the last one it gave. -1, as Kafka has it,
/// where nothing like that is there.
fn broker_epoch(marker: &[u8]) -> i64 {
    let text = std::str::from_utf8(marker).unwrap_or_default();
    let number = text.split_once("\"brokerEpoch\"").map(|(_, rest)| rest.trim_start());
    let number = number.and_then(|rest| rest.strip_prefix(':')).map_or("", str::trim_start);
    let len = number.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'-').count();
    number[..len].parse().unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn at(value: i64) -> Offset {
        Offset::new(value).unwrap()
    }

    fn load(temp: &tempfile::TempDir) -> (StoreFiles, Vec<String>) {
        let mut warnings = Vec::new();
        let dir = Arc::new(Dir::open(temp.path()).unwrap());
        (StoreFiles::load(&dir, 0o644, &mut warnings).unwrap(), warnings)
    }

    #[test]
    fn the_brokers_epoch_is_found_or_minus_one() {
        for (text, epoch) in [
            (r#"{"version":0,"brokerEpoch":11}"#, 11),
            (r#"{ "brokerEpoch" : -1 , "x":2}"#, -1),
            ("", -1),
            ("garbage", -1),
            (r#"{"brokerEpoch":99999999999999999999}"#, -1),
        ] {
            assert_eq!(broker_epoch(text.as_bytes()), epoch, "{text}");
        }
        assert_eq!(broker_epoch(&[0xff; 20]), -1);
    }

    #[test]
    fn a_partition_is_clean_until_it_changes_and_after_it_was_closed() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join(CLEAN_MARKER), r#"{"version":0,"brokerEpoch":7}"#).unwrap();
        let (files, warnings) = load(&temp);
        assert!(warnings.is_empty() && files.was_clean());
        assert!(files.hints("t", 0).clean && files.is_known_clean("t", 0));
        files.begin_changes("t", 0).unwrap();
        assert!(!temp.path().join(CLEAN_MARKER).exists());
        assert!(!files.hints("t", 0).clean && !files.is_known_clean("t", 0));
        assert!(files.hints("t", 1).clean, "another one is as it was");
        assert!(!files.finish([("t", 0), ("t", 1)].into_iter()).unwrap());
        files.note_closed("t", 0);
        assert!(!files.hints("t", 0).clean, "its own checkpoint says so now, and nobody else");
        assert!(files.finish([("t", 0), ("t", 1)].into_iter()).unwrap());
        let marker = fs::read_to_string(temp.path().join(CLEAN_MARKER)).unwrap();
        assert_eq!(marker, r#"{"version":0,"brokerEpoch":7}"#);
    }

    #[test]
    fn a_lowered_point_is_on_the_disk_at_once_and_progress_at_the_next_turn() {
        let temp = tempfile::tempdir().unwrap();
        let points = temp.path().join(RECOVERY_POINTS);
        fs::write(&points, "0\n2\nother 3 77\nt 0 500\n").unwrap();
        let (files, _) = load(&temp);
        let text = || fs::read_to_string(&points).unwrap();
        files.lower_recovery_point("t", 0, at(600)).unwrap();
        files.lower_recovery_point("absent", 0, at(1)).unwrap();
        assert_eq!(text(), "0\n2\nother 3 77\nt 0 500\n");
        files.lower_recovery_point("t", 0, at(400)).unwrap();
        assert_eq!(text(), "0\n2\nother 3 77\nt 0 400\n");
        let progress =
            Progress { recovery_point: at(450), start: at(9), first_base: at(5), high_watermark: at(480) };
        files.note_progress("t", 0, &progress);
        assert_eq!(text(), "0\n2\nother 3 77\nt 0 400\n");
        files.write().unwrap();
        assert_eq!(text(), "0\n2\nother 3 77\nt 0 450\n");
        let read = |name| fs::read_to_string(temp.path().join(name)).unwrap();
        assert_eq!(read(LOG_STARTS), "0\n1\nt 0 9\n");
        assert_eq!(read(HIGH_WATERMARKS), "0\n1\nt 0 480\n");
        files.note_progress("t", 0, &Progress { start: at(5), ..progress });
        files.write().unwrap();
        assert_eq!(read(LOG_STARTS), "0\n0\n", "a start at the first segment's is not listed");
        files.forget("t");
        files.write().unwrap();
        assert_eq!(text(), "0\n1\nother 3 77\n");
    }

    #[test]
    fn garbled_files_count_for_nothing_and_are_written_anew() {
        let long = vec![0xa7; 1 << 20];
        for garbage in [&[0; 4096][..], b"aa", b"0\n5\nt 0 1\nt 1 1\n", b"0\n-1\n", &long] {
            let temp = tempfile::tempdir().unwrap();
            for name in NAMES {
                fs::write(temp.path().join(name), garbage).unwrap();
            }
            let (files, warnings) = load(&temp);
            assert_eq!(warnings.len(), NAMES.len());
            assert_eq!(files.hints("t", 0), KafkaHints::default());
            files.write().unwrap();
            for name in NAMES {
                assert_eq!(fs::read(temp.path().join(name)).unwrap(), b"0\n0\n", "{name}");
            }
        }
    }
}
