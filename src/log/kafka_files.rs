//! What Kafka keeps beside the partitions of a data directory: the clean marker and the text checkpoints.
//!
//! A broker believes these files, so whoever writes to a partition keeps them true: the marker goes before the first
//! change, the recovery point is lowered before a cut and set to the active segment's base at close (without the marker a
//! broker scans from there).

use std::{ffi::OsStr, path::Path, sync::Arc};

use super::{
    store_files::{Progress, StoreFiles},
    text_checkpoint::{self, Lines},
};
use crate::{
    error::{Error, Result},
    offset::Offset,
    sys::{Dir, LOCK_NAME, ParentLock},
};

/// There after a clean stop.
pub(super) const CLEAN_MARKER: &str = ".kafka_cleanshutdown";
const META_PROPERTIES: &str = "meta.properties";
/// From where a broker scans a partition.
pub(super) const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
/// Where a log starts that does not start with its first segment.
pub(super) const LOG_STARTS: &str = "log-start-offset-checkpoint";
/// Up to where a broker showed a log to consumers.
pub(super) const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
/// Up to where a broker compacted a log.
pub(super) const CLEANED: &str = "cleaner-offset-checkpoint";
/// More than this is no checkpoint.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// The data directory that a partition lies in.
#[derive(Debug)]
pub(crate) struct DataDir {
    dir: Arc<Dir>,
    right: Right,
    topic: String,
    partition: i32,
    file_mode: u32,
}

/// By what right its files are changed.
#[derive(Debug)]
enum Right {
    /// A share in the directory's lock, with other writers of single partitions.
    Share(ParentLock),
    /// A store holds the whole lock, and what the files say.
    Store(Arc<StoreFiles>),
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
    let marks = [META_PROPERTIES, LOCK_NAME, RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED];
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
        Self { dir, right: Right::Share(lock), topic, partition, file_mode }
    }

    /// In a data directory that a store holds.
    pub(crate) fn in_store(files: &Arc<StoreFiles>, topic: &str, partition: i32, file_mode: u32) -> Self {
        let right = Right::Store(Arc::clone(files));
        Self { dir: Arc::clone(files.dir()), right, topic: topic.to_owned(), partition, file_mode }
    }

    /// What the files say now. One that cannot be read as Kafka would is as good as absent, with a warning.
    pub(crate) fn hints(&self, warnings: &mut Vec<String>) -> Result<KafkaHints> {
        match &self.right {
            Right::Share(_) => hints(&self.dir, &self.topic, self.partition, warnings),
            Right::Store(files) => Ok(files.hints(&self.topic, self.partition)),
        }
    }

    /// Takes away the clean marker, durably. To be done before anything in the partition changes.
    pub(crate) fn remove_clean_marker(&self) -> Result<()> {
        if let Right::Store(files) = &self.right {
            return files.begin_changes(&self.topic, self.partition);
        }
        if self.dir.remove(CLEAN_MARKER)? {
            self.dir.sync()?;
        }
        Ok(())
    }

    /// Makes the broker's recovery point for this partition at most `most`.
    pub(crate) fn lower_recovery_point(&self, most: Offset) -> Result<()> {
        match &self.right {
            Right::Share(lock) => {
                self.rewrite(lock, RECOVERY_POINTS, |now| now.filter(|now| *now > most).map(|_| most))
            }
            Right::Store(files) => files.lower_recovery_point(&self.topic, self.partition, most),
        }
    }

    /// Tells a broker from where it has to look: the base of the active segment, and the log's start where that lies
    /// inside the first segment. A store writes it down with its other logs' later.
    pub(crate) fn note_close(&self, progress: &Progress) -> Result<()> {
        let Right::Share(lock) = &self.right else {
            self.note_progress(progress);
            return Ok(());
        };
        let Progress { recovery_point, start, first_base, .. } = *progress;
        self.rewrite(lock, RECOVERY_POINTS, |now| (now != Some(recovery_point)).then_some(recovery_point))?;
        self.rewrite(lock, LOG_STARTS, |now| (start > first_base && now != Some(start)).then_some(start))
    }

    /// The same while the log is open, for a store to write down at its next turn.
    pub(crate) fn note_progress(&self, progress: &Progress) {
        if let Right::Store(files) = &self.right {
            files.note_progress(&self.topic, self.partition, progress);
        }
    }

    /// True where a close has to bring all files to their final sizes though nothing was changed: a store is about to say
    /// that everything is clean, and nobody said so of this partition before.
    pub(crate) fn wants_whole_close(&self) -> bool {
        matches!(&self.right, Right::Store(files) if !files.is_known_clean(&self.topic, self.partition))
    }

    /// Rewrites one checkpoint with this partition's line changed to what `change` makes of it; `None` leaves it.
    fn rewrite(
        &self,
        lock: &ParentLock,
        name: &str,
        change: impl Fn(Option<Offset>) -> Option<Offset>,
    ) -> Result<()> {
        let locked = lock.rewrite();
        let _alone = locked.map_err(|error| Error::not_locked(self.dir.path_of(LOCK_NAME), error))?;
        let mut lines = match self.dir.read_small(name, MAX_BYTES)? {
            None => Lines::new(),
            // A file that Kafka could not read either is begun anew: it would keep a broker from starting.
            Some(bytes) => text_checkpoint::parse(&bytes).unwrap_or_default(),
        };
        let own = (self.topic.clone(), self.partition);
        let Some(offset) = change(lines.get(&own).copied().and_then(Offset::new)) else { return Ok(()) };
        lines.insert(own, offset.value());
        Ok(self.dir.write_replace(name, text_checkpoint::render(&lines).as_bytes(), self.file_mode)?)
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
        match text_checkpoint::parse(&bytes) {
            Ok(lines) => Ok(lines.get(&(topic.to_owned(), partition)).copied().and_then(Offset::new)),
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
}
