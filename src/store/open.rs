//! Opening a data directory: the lock, who it is, what lies in it.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use parking_lot::Mutex;

use super::{
    Inner, Store, StoreConfig,
    identity::{Identity, META_PROPERTIES},
    names::{Place, place_of},
    removal,
    slots::{Slot, Slots, Topics},
};
use crate::{
    error::{Error, Result},
    log::{StoreFiles, StoreRight, refuse_unfinished_copy},
    sys::{Dir, DirLock, EntryKind, LOCK_NAME},
};

/// The broker's number in a data directory that is made without one.
const DEFAULT_NODE: i32 = 1;

/// What a data directory's names come to.
#[derive(Default)]
struct Listed {
    topics: BTreeMap<String, Vec<i32>>,
    deleted: Vec<std::ffi::OsString>,
    has_others_logs: bool,
    warnings: Vec<String>,
}

impl Store {
    /// Locks a data directory and looks at what lies in it. Logs are opened when first used.
    ///
    /// Fails with [`Error::NotFound`] where there is no data directory and [`StoreConfig::log`] does not allow making one,
    /// with [`Error::Locked`] where a broker, another store or the writer of a partition works in it, and with
    /// [`Error::UnsupportedVersion`] where it is of a newer version. What is merely odd is passed over, with a warning.
    /// Topics that were being made or removed when the process was killed are removed.
    pub fn open(dir: impl AsRef<Path>, config: StoreConfig) -> Result<Self> {
        config.validate()?;
        let path = dir.as_ref();
        let dir = Arc::new(open_dir(path, &config)?);
        let lock =
            DirLock::try_exclusive(&dir).map_err(|error| Error::not_locked(dir.path_of(LOCK_NAME), error))?;
        refuse_unfinished_copy(&dir)?;
        lock.leave_note(&format!("pid {} since {}\n", std::process::id(), config.log.clock.now().millis()));
        let mut listed = Listed::take(&dir)?;
        let identity = identify(&dir, &config, &mut listed.warnings)?;
        let files = StoreFiles::load(&dir, config.log.file_mode, &mut listed.warnings)?;
        finish_removals(&dir, &files, &mut listed)?;
        for warning in &listed.warnings {
            tracing::warn!(dir = %dir.path().display(), "{warning}");
        }
        let bounds = config.bounds();
        let logs = config.of_logs();
        let right = StoreRight::new(files, bounds.segments, &logs);
        let inner = Inner {
            dir,
            identity,
            topics: Mutex::new(slots_of(&listed.topics)),
            slots: Slots::new(right, logs, bounds.logs),
            config,
            changing: Mutex::default(),
            is_closed: false.into(),
            next_producer_id: Mutex::default(),
            has_others_logs: listed.has_others_logs,
            warnings: listed.warnings,
            lock: Mutex::new(Some(lock)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

fn open_dir(path: &Path, config: &StoreConfig) -> Result<Dir> {
    let opened =
        if config.may_create() { Dir::create_all(path, config.log.dir_mode) } else { Dir::open(path) };
    let not_found = || Error::NotFound { path: path.to_owned() };
    let dir = opened.map_err(|error| if error.is_not_found() { not_found() } else { error.into() })?;
    if !config.may_create() && !is_data_dir(&dir)? {
        return Err(not_found());
    }
    Ok(dir)
}

/// True where a broker or a store has been.
fn is_data_dir(dir: &Dir) -> Result<bool> {
    if dir.exists(META_PROPERTIES)? {
        return Ok(true);
    }
    let is_partition = |entry: &crate::sys::Entry| {
        entry.kind == EntryKind::Dir && matches!(place_of(&entry.name), Place::Partition(..))
    };
    Ok(dir.list()?.iter().any(is_partition))
}

/// Who the directory says it is. One without a word gets one, where it may be made.
fn identify(dir: &Dir, config: &StoreConfig, warnings: &mut Vec<String>) -> Result<Identity> {
    let Some(found) = Identity::load(dir, warnings)? else {
        if !config.may_create() {
            warnings.push(format!(
                "{}: not there; a broker makes its own",
                dir.path_of(META_PROPERTIES).display()
            ));
            return Ok(Identity::default());
        }
        let node_id = config.node_id.unwrap_or(DEFAULT_NODE);
        return Identity::create(dir, config.cluster_id.as_deref(), node_id, config.log.file_mode);
    };
    let differs = |name, wanted: String, found: String| {
        let reason = format!("{wanted}, and {META_PROPERTIES} says {found}");
        Err(Error::InvalidConfig { name, reason })
    };
    match (&config.cluster_id, &found.cluster_id) {
        (Some(wanted), Some(found)) if wanted != found => {
            return differs("cluster_id", wanted.clone(), found.clone());
        }
        _ => {}
    }
    match (config.node_id, found.node_id) {
        (Some(wanted), Some(found)) if wanted != found => {
            return differs("node_id", wanted.to_string(), found.to_string());
        }
        _ => {}
    }
    Ok(found)
}

impl Listed {
    /// Names only: nothing in them is opened.
    fn take(dir: &Dir) -> Result<Self> {
        let mut listed = Self::default();
        for entry in dir.list()? {
            let path = dir.path_of(&entry.name);
            match (entry.kind, place_of(&entry.name)) {
                (EntryKind::Dir, Place::Partition(topic, partition)) => {
                    listed.topics.entry(topic.to_owned()).or_default().push(partition);
                }
                (EntryKind::Dir, Place::Deleted) => listed.deleted.push(entry.name),
                (EntryKind::Dir, Place::Others(what)) => {
                    listed.has_others_logs |= what.contains("moving");
                    listed.warnings.push(format!("{}: {what}; left alone", path.display()));
                }
                (EntryKind::Dir, Place::Unknown) => listed.warnings.push(format!(
                    "{}: not topic-partition; left alone, and a broker will not start over it",
                    path.display()
                )),
                (EntryKind::Symlink, Place::Partition(..)) => {
                    listed.has_others_logs = true;
                    listed.warnings.push(format!("{}: a symbolic link; left alone", path.display()));
                }
                _ => {}
            }
        }
        for partitions in listed.topics.values_mut() {
            partitions.sort_unstable();
        }
        Ok(listed)
    }
}

/// Ends what a killed process had begun to make or to remove.
fn finish_removals(dir: &Dir, files: &StoreFiles, listed: &mut Listed) -> Result<()> {
    let mut unfinished = Vec::new();
    for (topic, partitions) in &listed.topics {
        let Some(first) = partitions.first() else { continue };
        if removal::is_unfinished(dir, topic, *first)? {
            unfinished.push(topic.clone());
        }
    }
    for topic in unfinished {
        let partitions = listed.topics.remove(&topic).unwrap_or_default();
        if let Some(first) = partitions.first() {
            files.begin_changes(&topic, *first)?;
        }
        let removed = removal::remove_names(dir, &topic, &partitions)?;
        files.forget(&topic);
        listed.deleted.extend(removed.into_iter().map(Into::into));
        listed.warnings.push(format!("{topic}: was being made or removed; removed"));
    }
    for name in &listed.deleted {
        // What cannot be removed does no harm.
        if let Err(error) = removal::remove_dir(dir, name) {
            listed.warnings.push(format!("a deleted directory stays: {error}"));
        }
    }
    Ok(())
}

fn slots_of(topics: &BTreeMap<String, Vec<i32>>) -> Topics {
    let slots = |(topic, partitions): (&String, &Vec<i32>)| {
        let slots = partitions.iter().map(|partition| (*partition, Slot::new(topic, *partition)));
        (topic.clone(), slots.collect())
    };
    topics.iter().map(slots).collect()
}
