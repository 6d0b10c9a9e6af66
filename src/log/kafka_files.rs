//! What Kafka keeps beside the partitions of a data directory: the clean marker and the text checkpoints.
//!
//! A broker believes these files, so whoever writes to a partition keeps them true: the marker goes before the first
//! change, the recovery point is lowered before a cut and set to the active segment's base at close (without the marker a
//! broker scans from there).

use std::{ffi::OsStr, path::Path, sync::Arc};

use crate::{
    error::{Error, Result},
    offset::Offset,
    sys::{Dir, LOCK_NAME, ParentLock},
};

const CLEAN_MARKER: &str = ".kafka_cleanshutdown";
const META_PROPERTIES: &str = "meta.properties";
const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
const LOG_STARTS: &str = "log-start-offset-checkpoint";
const MAX_BYTES: usize = 64 << 20;

/// The data directory that a partition lies in.
#[derive(Debug)]
pub(crate) struct DataDir {
    dir: Arc<Dir>,
    lock: ParentLock,
    topic: String,
    partition: i32,
    file_mode: u32,
}

/// What the data directory says of the partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KafkaHints {
    /// A broker stopped cleanly and nothing was written since.
    pub(crate) clean: bool,
    pub(crate) recovery_point: Option<Offset>,
    pub(crate) log_start: Option<Offset>,
}

/// Splits a partition directory's name at its last `-`, as Kafka does: `None` where it is not `topic-number`.
pub(crate) fn topic_partition(dir_name: &OsStr) -> Option<(&str, i32)> {
    let (topic, partition) = dir_name.to_str()?.rsplit_once('-')?;
    let digits = !partition.is_empty() && partition.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !topic.is_empty()).then_some((topic, partition.parse().ok()?))
}

/// The directory above `partition_dir`, if a broker could be working in it.
pub(crate) fn data_dir_of(partition_dir: &Dir) -> Result<Option<(Arc<Dir>, String, i32)>> {
    data_dir_above(&partition_dir.real_path())
}

/// The same by the partition's path, for a directory that does not exist yet.
pub(crate) fn data_dir_above(partition: &Path) -> Result<Option<(Arc<Dir>, String, i32)>> {
    let Some((topic, number)) = partition.file_name().and_then(topic_partition) else { return Ok(None) };
    let Some(parent) = partition.parent() else { return Ok(None) };
    let here = parent.as_os_str().is_empty();
    let Ok(parent) = Dir::open(if here { Path::new(".") } else { parent }) else { return Ok(None) };
    let marks = [
        META_PROPERTIES,
        LOCK_NAME,
        RECOVERY_POINTS,
        LOG_STARTS,
        "replication-offset-checkpoint",
        "cleaner-offset-checkpoint",
    ];
    for mark in marks {
        if parent.stat(mark)?.is_some() {
            return Ok(Some((Arc::new(parent), topic.to_owned(), number)));
        }
    }
    Ok(None)
}

impl DataDir {
    pub(crate) fn new(
        dir: Arc<Dir>,
        lock: ParentLock,
        topic: String,
        partition: i32,
        file_mode: u32,
    ) -> Self {
        Self { dir, lock, topic, partition, file_mode }
    }

    /// What the files say now. One that cannot be read as Kafka would is as good as absent, with a warning.
    pub(crate) fn hints(&self, warnings: &mut Vec<String>) -> Result<KafkaHints> {
        hints(&self.dir, &self.topic, self.partition, warnings)
    }

    /// Takes away the clean marker, durably. To be done before anything in the partition changes.
    pub(crate) fn remove_clean_marker(&self) -> Result<()> {
        if self.dir.remove(CLEAN_MARKER)? {
            self.dir.sync()?;
        }
        Ok(())
    }

    /// Makes the broker's recovery point for this partition at most `most`.
    pub(crate) fn lower_recovery_point(&self, most: Offset) -> Result<()> {
        self.rewrite(RECOVERY_POINTS, |now| now.filter(|now| *now > most).map(|_| most))
    }

    /// Tells a broker from where it has to look: the base of the active segment, and the log's start where that lies
    /// inside the first segment.
    pub(crate) fn note_close(&self, active_base: Offset, start: Offset, first_base: Offset) -> Result<()> {
        self.rewrite(RECOVERY_POINTS, |now| (now != Some(active_base)).then_some(active_base))?;
        self.rewrite(LOG_STARTS, |now| (start > first_base && now != Some(start)).then_some(start))
    }

    /// Rewrites one checkpoint with this partition's line changed to what `change` makes of it; `None` leaves it.
    fn rewrite(&self, name: &str, change: impl Fn(Option<Offset>) -> Option<Offset>) -> Result<()> {
        let locked = self.lock.rewrite();
        let _alone = locked.map_err(|error| Error::not_locked(self.dir.path_of(LOCK_NAME), error))?;
        let mut lines = match self.dir.read_small(name, MAX_BYTES)? {
            None => Vec::new(),
            // A file that Kafka could not read either is begun anew: it would keep a broker from starting.
            Some(bytes) => parse_checkpoint(&bytes).unwrap_or_default(),
        };
        let own = lines.iter_mut().find(|line| line.topic == self.topic && line.partition == self.partition);
        let Some(offset) = change(own.as_ref().and_then(|line| Offset::new(line.offset))) else {
            return Ok(());
        };
        match own {
            Some(line) => line.offset = offset.value(),
            None => lines.push(Line {
                topic: self.topic.clone(),
                partition: self.partition,
                offset: offset.value(),
            }),
        }
        Ok(self.dir.write_replace(name, render_checkpoint(&lines).as_bytes(), self.file_mode)?)
    }
}

/// What a data directory says of one of its partitions.
pub(crate) fn hints(
    dir: &Dir,
    topic: &str,
    partition: i32,
    warnings: &mut Vec<String>,
) -> Result<KafkaHints> {
    let mut offset_in = |name: &str| -> Result<Option<Offset>> {
        let Some(bytes) = dir.read_small(name, MAX_BYTES)? else { return Ok(None) };
        match parse_checkpoint(&bytes) {
            Ok(lines) => {
                let own = lines.iter().find(|line| line.topic == topic && line.partition == partition);
                Ok(own.and_then(|line| Offset::new(line.offset)))
            }
            Err(what) => {
                warnings.push(format!("{}: {what}; taken as absent", dir.path().join(name).display()));
                Ok(None)
            }
        }
    };
    let (recovery_point, log_start) = (offset_in(RECOVERY_POINTS)?, offset_in(LOG_STARTS)?);
    Ok(KafkaHints { clean: dir.stat(CLEAN_MARKER)?.is_some(), recovery_point, log_start })
}

/// The data directory's word on a partition for somebody who holds no lock.
pub(crate) fn hints_for(partition_dir: &Dir) -> KafkaHints {
    let found = data_dir_of(partition_dir).ok().flatten();
    found
        .and_then(|(dir, topic, partition)| hints(&dir, &topic, partition, &mut Vec::new()).ok())
        .unwrap_or_default()
}

#[derive(Debug, PartialEq, Eq)]
struct Line {
    topic: String,
    partition: i32,
    offset: i64,
}

fn parse_checkpoint(bytes: &[u8]) -> Result<Vec<Line>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not text".to_owned())?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = text.lines();
    if lines.next().map(str::trim) != Some("0") {
        return Err("unknown version".to_owned());
    }
    let count: usize =
        lines.next().and_then(|line| line.trim().parse().ok()).ok_or_else(|| "no count".to_owned())?;
    let mut found = Vec::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_ascii_whitespace();
        let parsed = (|| {
            let (topic, partition, offset) = (words.next()?, words.next()?, words.next()?);
            let line = Line {
                topic: topic.to_owned(),
                partition: partition.parse().ok()?,
                offset: offset.parse().ok()?,
            };
            words.next().is_none().then_some(line)
        })();
        found.push(parsed.ok_or_else(|| "malformed line".to_owned())?);
    }
    if found.len() == count { Ok(found) } else { Err("the count does not match".to_owned()) }
}

fn render_checkpoint(lines: &[Line]) -> String {
    use std::fmt::Write as _;
    let mut text = format!("0\n{}\n", lines.len());
    for line in lines {
        let _ = writeln!(text, "{} {} {}", line.topic, line.partition, line.offset);
    }
    text
}

/// `topic-partition` of a directory, for messages and records; the whole name and 0 where it is not of that form.
pub fn topic_and_partition(dir: &Path) -> (String, i32) {
    let name = dir.file_name().unwrap_or(dir.as_os_str());
    match topic_partition(name) {
        Some((topic, partition)) => (topic.to_owned(), partition),
        None => (name.to_string_lossy().into_owned(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partitions_name_splits_at_its_last_dash() {
        assert_eq!(topic_partition(OsStr::new("a-b.c-12")), Some(("a-b.c", 12)));
        for name in ["a", "a-", "-1", "a-x", "a--", "a-99999999999", "a-+1"] {
            assert_eq!(topic_partition(OsStr::new(name)), None, "{name}");
        }
        assert_eq!(topic_partition(OsStr::new("a--1")), Some(("a-", 1)));
    }

    #[test]
    fn checkpoints_are_kafkas_text() {
        let lines = vec![
            Line { topic: "t".into(), partition: 0, offset: 5 },
            Line { topic: "u-v".into(), partition: 3, offset: -1 },
        ];
        let text = render_checkpoint(&lines);
        assert_eq!(text, "0\n2\nt 0 5\nu-v 3 -1\n");
        assert_eq!(parse_checkpoint(text.as_bytes()), Ok(lines));
        assert_eq!(parse_checkpoint(b""), Ok(Vec::new()));
        for bad in ["1\n0\n", "0\n1\n", "0\n1\nt 0\n", "0\n1\nt 0 5 6\n", "aa", "0\n-1\n"] {
            assert!(parse_checkpoint(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
