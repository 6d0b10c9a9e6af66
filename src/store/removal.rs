//! Making and removing the directories of a topic, safe against a crash at any step.
//!
//! A topic that is being made or removed has a mark: a private file in the directory of its lowest partition. With it,
//! none of the topic is there, and who finds it removes the rest. So:
//!
//! - **make**: every partition's directory is built whole under a name that means "deleted", the first one with the mark in
//!   it; renamed into place, the first one first; then the mark is taken away, durably: that is the moment in which the
//!   topic begins to be;
//! - **remove**: the mark is put, durably: that is the moment in which the topic ends; all directories are renamed to names
//!   that mean "deleted", the first one last; then what is in them is removed.
//!
//! A broker that comes in between finds partitions, and directories that it removes itself at its start; never one that it
//! does not know.

use std::{collections::BTreeMap, ffi::OsStr, sync::Arc};

use super::{
    identity::{Uuid, partition_metadata},
    names::{deleted_dir_of, dir_of},
    private_file,
    topic_settings::{KIND, TOPIC_FILE},
};
use crate::{
    config::LogConfig,
    error::Result,
    inspect::PARTITION_METADATA,
    log::make_empty_log,
    sys::{Dir, EntryKind, Open},
};

/// The mark: the topic is being made or removed.
const UNFINISHED: &str = ".stratalog-unfinished";

/// True where the partition's directory has the mark.
pub(super) fn is_unfinished(root: &Dir, topic: &str, partition: i32) -> Result<bool> {
    Ok(root.subdir(dir_of(topic, partition))?.exists(UNFINISHED)?)
}

/// Makes the directories of a topic. After an error none of them is left, or the mark.
pub(super) fn make_topic(
    root: &Dir,
    (topic, partition_count): (&str, i32),
    settings: &BTreeMap<String, String>,
    config: &LogConfig,
) -> Result<Uuid> {
    let topic_id = Uuid::random()?;
    let mut built = Vec::new();
    for partition in 0..partition_count {
        let name = deleted_dir_of(topic, partition, Uuid::random()?);
        let first = (partition == 0).then_some(settings);
        let made = make_partition(root, &name, topic_id, first, config);
        built.push((name, dir_of(topic, partition)));
        if let Err(error) = made {
            remove_built(root, &built);
            return Err(error);
        }
    }
    for (at, (from, to)) in built.iter().enumerate() {
        // No other may be there without the first.
        let named = root.rename_new(from, to).and_then(|()| if at == 0 { root.sync() } else { Ok(()) });
        if let Err(error) = named {
            // Only what has our names: something else may stand where one of them belongs.
            let renamed = if root.exists(from).unwrap_or(true) { at } else { at + 1 };
            undo(root, topic, &partitions_below(renamed));
            remove_built(root, &built[renamed..]);
            return Err(error.into());
        }
    }
    if let Err(error) = if partition_count > 1 { root.sync() } else { Ok(()) } {
        undo(root, topic, &partitions_below(built.len()));
        return Err(error.into());
    }
    Ok(topic_id)
}

fn partitions_below(count: usize) -> Vec<i32> {
    (0..i32::try_from(count).unwrap_or(i32::MAX)).collect()
}

/// Removes a topic that has its mark and that nobody was told of.
fn undo(root: &Dir, topic: &str, partitions: &[i32]) {
    let undone = || -> Result<()> {
        for name in remove_names(root, topic, partitions)? {
            remove_dir(root, OsStr::new(&name))?;
        }
        Ok(())
    };
    if let Err(error) = if partitions.is_empty() { Ok(()) } else { undone() } {
        tracing::warn!(topic, %error, "a topic that could not be made is removed at the next open");
    }
}

/// The topic begins to be. After an error none of it is left, or the mark.
pub(super) fn finish_topic(root: &Dir, topic: &str, partition_count: i32, file_mode: u32) -> Result<()> {
    let finished = take_mark_away(root, topic, 0);
    if finished.is_err() && begin_removal(root, topic, 0, file_mode).is_ok() {
        undo(root, topic, &(0..partition_count).collect::<Vec<_>>());
    }
    finished
}

/// Takes the mark away, durably.
pub(super) fn take_mark_away(root: &Dir, topic: &str, first: i32) -> Result<()> {
    let dir = root.subdir(dir_of(topic, first))?;
    dir.remove(UNFINISHED)?;
    Ok(dir.sync()?)
}

/// Makes more partitions of a topic, numbered from `first` to below `end`. A crash leaves the first so many of them, each
/// whole. After an error those that have their names stay; returns how many have, with it.
pub(super) fn make_partitions(
    root: &Dir,
    topic: &str,
    (first, end): (i32, i32),
    topic_id: Uuid,
    config: &LogConfig,
) -> (i32, Result<()>) {
    let mut built = Vec::new();
    let mut named = 0;
    let result = (|| {
        for partition in first..end {
            let name = deleted_dir_of(topic, partition, Uuid::random()?);
            let made = make_partition(root, &name, topic_id, None, config);
            built.push((name, dir_of(topic, partition)));
            made?;
        }
        for (from, to) in &built {
            root.rename_new(from, to)?;
            named += 1;
            // Each before the next: numbers without a gap, whatever a crash leaves.
            root.sync()?;
        }
        Ok(())
    })();
    if result.is_err() {
        remove_built(root, built.get(usize::try_from(named).unwrap_or(0)..).unwrap_or_default());
    }
    (named, result)
}

/// The first one of a topic has the mark, and what the topic is told.
fn make_partition(
    root: &Dir,
    name: &str,
    topic_id: Uuid,
    first: Option<&BTreeMap<String, String>>,
    config: &LogConfig,
) -> Result<()> {
    let dir = Arc::new(root.create_dir(name, config.dir_mode)?);
    if let Some(settings) = first {
        dir.open_file(UNFINISHED, Open::CreateNew { mode: config.file_mode })?;
        if !settings.is_empty() {
            let text = private_file::render(KIND, settings);
            dir.write_replace(TOPIC_FILE, text.as_bytes(), config.file_mode)?;
        }
    }
    make_empty_log(&dir, config)?;
    // Syncs the directory, and so all names in it.
    Ok(dir.write_replace(PARTITION_METADATA, partition_metadata(topic_id).as_bytes(), config.file_mode)?)
}

fn remove_built(root: &Dir, built: &[(String, String)]) {
    for (name, _) in built {
        if let Err(error) = remove_dir(root, OsStr::new(name)) {
            tracing::warn!(%error, "a part of a topic that could not be made stays until the next open");
        }
    }
}

/// The topic ends.
pub(super) fn begin_removal(root: &Dir, topic: &str, first: i32, file_mode: u32) -> Result<()> {
    let dir = root.subdir(dir_of(topic, first))?;
    dir.open_file(UNFINISHED, Open::CreateOrOpen { mode: file_mode })?;
    Ok(dir.sync()?)
}

/// Takes the names of a marked topic's partitions away, the marked one's last. Those that are gone already are passed over.
/// `partitions` rise. Returns the names that their directories have now.
pub(super) fn remove_names(root: &Dir, topic: &str, partitions: &[i32]) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    for (at, partition) in partitions.iter().enumerate().rev() {
        if at == 0 && !removed.is_empty() {
            // The mark must outlive the names of all others.
            root.sync()?;
        }
        let to = deleted_dir_of(topic, *partition, Uuid::random()?);
        match root.rename_new(dir_of(topic, *partition), &to) {
            Ok(()) => removed.push(to),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    root.sync()?;
    Ok(removed)
}

/// Removes a directory and everything in it. Links are removed, not followed.
pub(super) fn remove_dir(root: &Dir, name: &OsStr) -> Result<()> {
    let dir = match root.subdir(name) {
        Err(error) if error.is_not_found() => return Ok(()),
        opened => opened?,
    };
    for entry in dir.list()? {
        if entry.kind == EntryKind::Dir {
            remove_dir(&dir, &entry.name)?;
        } else {
            dir.remove(&entry.name)?;
        }
    }
    root.remove_dir(name)?;
    Ok(())
}
