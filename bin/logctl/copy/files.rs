//! The directory that is being made: a mark while it is not whole, private names for files that are not.

use std::{
    fs::{self, File, TryLockError},
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
};

use crate::failure::{Code, Failure};

/// In a copy that is not finished; says of what.
const MARK: &str = ".stratalog-copy-of";
/// A file that is being copied. A writer would take it for a leftover and remove it.
const PART: &str = ".stratalog-copy.new";
const LOCK: &str = ".lock";
/// So much between two looks at signals and the clock.
const PIECE_BYTES: u64 = 16 << 20;

pub(super) struct Destination {
    path: PathBuf,
    /// Keeps writers out, and other copies.
    #[expect(dead_code, reason = "held, not used")]
    lock: File,
}

impl Destination {
    /// Makes the directory, or opens the one that an interrupted copy of the same source left.
    pub(super) fn open(path: &Path, source: &Path, resume: bool) -> Result<Self, Failure> {
        let fail = |op: &'static str| move |error: io::Error| Failure::io(op, path.display(), &error);
        let of = fs::canonicalize(source).map_err(|error| Failure::io("find", source.display(), &error))?;
        fs::create_dir_all(path).map_err(fail("create"))?;
        if fs::canonicalize(path).map_err(fail("find"))? == of {
            return Err(Failure::usage(format!("{}: the source itself", path.display())));
        }
        let lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK))
            .map_err(fail("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = format!("{} is locked: a writer or another copy is at work there", path.display());
                return Err(Failure::new(Code::Locked, what).hint("copy to another directory, or wait"));
            }
            Err(TryLockError::Error(error)) => return Err(fail("lock")(error)),
        }
        let destination = Self { path: path.to_owned(), lock };
        destination.check_mark(&of, resume)?;
        Ok(destination)
    }

    fn check_mark(&self, of: &Path, resume: bool) -> Result<(), Failure> {
        let mark = self.path.join(MARK);
        let fail = |error: io::Error| Failure::io("read", mark.display(), &error);
        let own = of.as_os_str().as_encoded_bytes();
        match fs::read(&mark) {
            Ok(found) if found == own && resume => return Ok(()),
            Ok(found) if found == own => {
                return Err(Failure::other(format!(
                    "{} holds an unfinished copy of this log",
                    self.path.display()
                ))
                .hint("--resume goes on with it; or remove the directory"));
            }
            Ok(found) => {
                let other = String::from_utf8_lossy(&found).into_owned();
                let what = format!("{} holds an unfinished copy of {other}", self.path.display());
                return Err(Failure::other(what).hint("copy to another directory"));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
        let names = self.names()?;
        if let Some(name) = names.iter().find(|name| *name != LOCK) {
            return Err(Failure::other(format!("{} is not empty: it holds {name}", self.path.display()))
                .hint("copy to a directory that does not exist, or an empty one; --resume goes on only with a copy that is unfinished"));
        }
        // Before any file of the log: without the mark nobody would know that some are missing.
        fs::write(&mark, own).map_err(|error| Failure::io("write", mark.display(), &error))?;
        sync(&mark)?;
        sync(&self.path)?;
        match self.path.canonicalize().ok().and_then(|full| full.parent().map(Path::to_owned)) {
            Some(parent) => sync(&parent),
            None => Ok(()),
        }
    }

    fn names(&self) -> Result<Vec<String>, Failure> {
        let fail = |error: io::Error| Failure::io("list", self.path.display(), &error);
        let entries = fs::read_dir(&self.path).map_err(fail)?;
        entries.map(|entry| Ok(entry.map_err(fail)?.file_name().to_string_lossy().into_owned())).collect()
    }

    /// Notes the leader epochs of what is going to be copied. Files that were copied under others may be those of a log
    /// that was cut since, and go.
    pub(super) fn begin(&self, name: &str, epochs: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(name);
        if fs::read(&path).unwrap_or_default() == epochs {
            return Ok(());
        }
        self.clear()?;
        fs::write(&path, epochs).map_err(|error| Failure::io("write", path.display(), &error))?;
        sync(&path)?;
        sync(&self.path)
    }

    /// Begins anew.
    pub(super) fn clear(&self) -> Result<(), Failure> {
        self.remove_all_but(&[])
    }

    /// Files of an earlier try that the source does not have any more.
    pub(super) fn remove_all_but(&self, names: &[&str]) -> Result<(), Failure> {
        for name in self.names()? {
            let is_ours = name == MARK || name == LOCK;
            if !is_ours && !names.contains(&name.as_str()) {
                let path = self.path.join(&name);
                fs::remove_file(&path).map_err(|error| Failure::io("remove", path.display(), &error))?;
            }
        }
        Ok(())
    }

    /// True where the file is there with this length: under its own name it is whole.
    pub(super) fn has(&self, name: &str, bytes: u64) -> Result<bool, Failure> {
        let path = self.path.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) => Ok(found.is_file() && found.len() == bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Failure::io("look at", path.display(), &error)),
        }
    }

    /// Links a file; false where that cannot be done and it has to be copied.
    pub(super) fn link(&self, from: &Path, name: &str) -> Result<bool, Failure> {
        let to = self.path.join(name);
        if fs::symlink_metadata(&to).is_ok() {
            fs::remove_file(&to).map_err(|error| Failure::io("remove", to.display(), &error))?;
        }
        match fs::hard_link(from, &to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(gone(from)),
            // Another file system, too many links, or none here.
            Err(_) => Ok(false),
        }
    }

    /// Copies the first `bytes` of a file, durably, under a private name until it is whole.
    pub(super) fn copy(
        &self,
        from: &Path,
        name: &str,
        bytes: u64,
        tell: &mut dyn FnMut(u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let part = self.path.join(PART);
        let mut source = File::open(from).map_err(|error| match error.kind() {
            ErrorKind::NotFound => gone(from),
            _ => Failure::io("open", from.display(), &error),
        })?;
        let fail = |error: io::Error| Failure::io("write", part.display(), &error);
        let mut target = File::create(&part).map_err(fail)?;
        let mut copied = 0;
        while copied < bytes {
            tell(copied)?;
            let mut piece = source.by_ref().take(PIECE_BYTES.min(bytes - copied));
            // The kernel copies, and shares blocks where it can.
            let count = io::copy(&mut piece, &mut target).map_err(fail)?;
            if count == 0 {
                // The log was cut, or the index trimmed, after it was listed.
                return Err(gone(from));
            }
            copied += count;
        }
        let permissions = source.metadata().and_then(|found| target.set_permissions(found.permissions()));
        permissions.and_then(|()| target.sync_all()).map_err(fail)?;
        let to = self.path.join(name);
        fs::rename(&part, &to).map_err(|error| Failure::io("rename to", to.display(), &error))
    }

    /// Writes the small files and takes the mark away: from now on it is a log, and free for a writer.
    pub(super) fn finish(self, beside: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        for (name, bytes) in beside {
            let path = self.path.join(name);
            fs::write(&path, bytes).map_err(|error| Failure::io("write", path.display(), &error))?;
            sync(&path)?;
        }
        sync(&self.path)?;
        let mark = self.path.join(MARK);
        fs::remove_file(&mark).map_err(|error| Failure::io("remove", mark.display(), &error))?;
        sync(&self.path)
    }
}

fn gone(path: &Path) -> Failure {
    Failure::not_found(format!("{} went away while it was copied", path.display()))
}

fn sync(path: &Path) -> Result<(), Failure> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| Failure::io("sync", path.display(), &error))
}
