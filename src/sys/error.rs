//! The one error of this room: which call, on which path, and what the kernel said.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

/// The result of everything here that can fail.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// A refused system call, with its context added once, at the door.
#[derive(Debug)]
pub(crate) struct Error {
    /// What was tried, as a verb: `open`, `read`, `write`, `sync`, ...
    pub(crate) op: &'static str,
    /// The file or directory it was tried on.
    pub(crate) path: PathBuf,
    /// What the operating system said.
    pub(crate) source: io::Error,
}

impl Error {
    pub(crate) fn new(op: &'static str, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self { op, path: path.as_ref().to_path_buf(), source: source.into() }
    }

    /// The kind of the error underneath.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// True where the name is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }

    /// True where the disk or the quota is full: `ENOSPC`, `EDQUOT`.
    pub(crate) fn is_storage_full(&self) -> bool {
        self.source
            .raw_os_error()
            .is_some_and(|raw| raw == Errno::NOSPC.raw_os_error() || raw == Errno::DQUOT.raw_os_error())
            || matches!(self.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.op, self.path.display(), self.source)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Repeats a call that a signal interrupted.
pub(super) fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
