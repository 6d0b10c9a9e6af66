//! A whole data directory: every partition in it, then the small files that say what a broker knows of them.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{
    Flow, How,
    files::{Destination, LOCK},
    finished,
    listing::Listing,
    partition::{self, Done},
};
use crate::{
    failure::Failure,
    scope::{Found, reachable},
    target::topic_partition,
};

/// A broker that stopped cleanly leaves it: with it there, the next one checks nothing.
const CLEAN_MARKER: &str = ".kafka_cleanshutdown";
/// More than this is none of the files that are meant.
const FILE_BYTES: u64 = 64 << 20;

/// What came of it.
pub(super) struct Whole {
    pub(super) partitions: Vec<(PathBuf, Listing, Done)>,
    pub(super) total: Done,
    /// Names in the data directory that are neither a partition nor a broker's file.
    pub(super) left: Vec<String>,
}

/// Copies the partitions one by one, each as it is when its turn comes.
pub(super) fn copy(
    source: &Path,
    partitions: &[Found],
    to: &Path,
    how: &How,
    flow: &mut Flow,
) -> Result<Whole, Failure> {
    let Some(root) = Destination::open(to, source, how.resume)? else {
        return finished::prove_all(source, partitions, to, flow);
    };
    // Before the partitions: what they say is then true of what is copied.
    let (files, left) = root_files(source)?;
    let marker = marker_of(source);
    let mut whole = Whole { partitions: Vec::new(), total: Done::default(), left };
    remove_deleted(to, partitions)?;
    let mut is_whole = true;
    for found in partitions {
        if reachable(&found.path).is_err() {
            is_whole = false;
            continue;
        }
        let Some(name) = found.path.file_name() else { continue };
        let place = to.join(name);
        let copied = Destination::open_within(&place, &found.path)
            .and_then(|destination| partition::copy(&found.path, destination, how, flow));
        match copied {
            Ok((listing, done)) => {
                whole.total.add(&done);
                whole.partitions.push((found.path.clone(), listing, done));
            }
            // The topic was deleted meanwhile.
            Err(failure) if partition::is_gone(&failure) && fs::symlink_metadata(&found.path).is_err() => {
                remove_flat(&place)?;
            }
            Err(failure) => return Err(failure),
        }
    }
    let is_clean = marker.is_some() && marker == marker_of(source);
    let kept: Vec<_> = files.into_iter().filter(|(name, _)| is_clean || name != CLEAN_MARKER).collect();
    whole.total.files += kept.len() as u64;
    whole.total.bytes += kept.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
    // Without a partition whose disk was not there it is an unfinished copy, and says so.
    if is_whole {
        root.finish(&kept)?;
    }
    Ok(whole)
}

pub(super) type SmallFiles = Vec<(String, Vec<u8>)>;

/// The small files of a broker or a store, and the names of what is none of them.
pub(super) fn root_files(source: &Path) -> Result<(SmallFiles, Vec<String>), Failure> {
    let fail = |error: std::io::Error| Failure::io("list", source.display(), &error);
    let (mut files, mut left) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(source).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(metadata) = entry.metadata() else { continue };
        // This is of the link itself where it is one, as of a partition that was moved to another disk.
        let may_be_directory = metadata.is_dir() || metadata.is_symlink();
        let is_partition = may_be_directory && topic_partition(&name).is_some();
        // A file that is being replaced has its new bytes under such a name for a moment.
        let is_passing = name == LOCK || Path::new(&name).extension().is_some_and(|suffix| suffix == "tmp");
        if is_partition || is_passing {
            continue;
        }
        if !metadata.is_file() || metadata.len() > FILE_BYTES {
            left.push(name);
            continue;
        }
        match fs::read(entry.path()) {
            Ok(bytes) => files.push((name, bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io("read", entry.path().display(), &error)),
        }
    }
    files.sort();
    left.sort();
    Ok((files, left))
}

/// The marker of a clean stop, told from a later one by its time.
fn marker_of(source: &Path) -> Option<(SystemTime, Vec<u8>)> {
    let path = source.join(CLEAN_MARKER);
    let time = fs::metadata(&path).and_then(|found| found.modified()).ok()?;
    fs::read(path).ok().map(|bytes| (time, bytes))
}

/// Partitions that an interrupted copy has and the source has not any more.
fn remove_deleted(to: &Path, partitions: &[Found]) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::io("list", to.display(), &error);
    for entry in fs::read_dir(to).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let is_partition = name.to_str().and_then(topic_partition).is_some();
        let is_there = partitions.iter().any(|found| found.path.file_name() == Some(&name));
        if is_partition && !is_there && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_flat(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a directory of files, which the copy itself made.
fn remove_flat(dir: &Path) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::io("remove", dir.display(), &error);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(fail)?,
    };
    for entry in entries {
        fs::remove_file(entry.map_err(fail)?.path()).map_err(fail)?;
    }
    fs::remove_dir(dir).map_err(fail)
}
