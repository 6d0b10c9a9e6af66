//! Who holds a log's lock, for whoever only looks.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::kafka_files::data_dir_of;
use crate::{
    error::{Error, Result},
    sys::{Dir, DirLock, Holder, LOCK_NAME, ParentLock},
};

/// Who holds the lock that a writer of a log needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockHolder {
    /// The lock file: the log's own, or that of the data directory it lies in, which a broker or a
    /// [`Store`](crate::Store) holds.
    pub path: PathBuf,
    /// The process, where it is known: from the kernel, else from the note that a writer of ours leaves in the file.
    pub pid: Option<u32>,
    /// Since when, UTC, where the note says so.
    pub since: Option<String>,
}

/// `pid 4711 since 2026-11-30T08:00:00Z`, as far as it is known.
impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, &self.since) {
            (Some(pid), Some(since)) => write!(f, "pid {pid} since {since}"),
            (Some(pid), None) => write!(f, "pid {pid}"),
            (None, _) => f.write_str("a process that is not known"),
        }
    }
}

impl LockHolder {
    fn of(dir: &Dir, holder: &Holder) -> Self {
        let noted = holder.note.as_deref().and_then(parse_lock_note);
        let (pid, since) = noted.map_or((None, None), |(pid, since)| (Some(pid), Some(since.to_owned())));
        Self { path: dir.path_of(LOCK_NAME), pid: holder.process.or(pid), since }
    }
}

/// Who holds the log in `dir`: its writer, in this process or another, or whoever has the data directory around it.
/// `None` where a writer could open it now.
///
/// Asks the kernel only: it takes no lock, changes nothing, and can stand in nobody's way. The answer may be old when it
/// is there; what a lock file says is never believed without a lock on it. [`Error::NotFound`] where there is no directory.
pub fn lock_holder(dir: impl AsRef<Path>) -> Result<Option<LockHolder>> {
    let path = dir.as_ref();
    let dir = Dir::open(path).map_err(|error| {
        if error.is_not_found() { Error::NotFound { path: path.to_owned() } } else { error.into() }
    })?;
    if let Some(holder) = DirLock::holder(&dir)? {
        return Ok(Some(LockHolder::of(&dir, &holder)));
    }
    let Some((parent, ..)) = data_dir_of(&dir)? else { return Ok(None) };
    Ok(ParentLock::holder(&parent)?.map(|holder| LockHolder::of(&parent, &holder)))
}

/// The note that a writer leaves in the lock file.
pub(crate) fn parse_lock_note(note: &str) -> Option<(u32, &str)> {
    let (pid, since) = note.trim().strip_prefix("pid ")?.split_once(" since ")?;
    Some((pid.parse().ok()?, since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LogConfig, LogWriter, OpenMode};

    #[test]
    fn only_a_lock_makes_a_holder() {
        let place = tempfile::TempDir::new().unwrap();
        let path = place.path().join("a");
        assert!(matches!(lock_holder(&path), Err(Error::NotFound { .. })));
        let config = LogConfig { open: OpenMode::CreateIfMissing, ..LogConfig::default() };
        let writer = LogWriter::open(&path, config).unwrap();
        let holder = lock_holder(&path).unwrap().unwrap();
        assert_eq!(holder.pid, Some(std::process::id()));
        assert!(holder.since.as_ref().is_some_and(|since| since.ends_with('Z')), "{holder:?}");
        assert_eq!(holder.path, path.join(LOCK_NAME));
        writer.close().unwrap();
        // The note is still there.
        let note = std::fs::read_to_string(path.join(LOCK_NAME)).unwrap();
        assert_eq!(parse_lock_note(&note).map(|note| note.0), holder.pid);
        assert_eq!(lock_holder(&path).unwrap(), None);
        // Asking took nothing that stays.
        LogWriter::open(&path, LogConfig::default()).unwrap().close().unwrap();
    }
}
