//! The directory that is being made: a mark while it is not whole, private names for files that are not.

use std::{
    cell::Cell,
    fs::{self, File, TryLockError},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
};

use stratalog::transfer::{UNFINISHED_COPY as MARK, copy_file};

use super::{Flow, listing::Item};
use crate::failure::{Code, Failure};

pub(super) const LOCK: &str = ".lock";

/// The private name of a file that is being copied. A writer would take it for a leftover and remove it.
fn part_name(number: u64) -> String {
    format!(".stratalog-copy-{number}.new")
}

pub(super) struct Destination {
    path: PathBuf,
    parts: Cell<u64>,
    /// Keeps writers out, and other copies.
    #[expect(dead_code, reason = "held, not used")]
    lock: File,
}

impl Destination {
    /// Makes the directory, or opens the one that an interrupted copy of the same source left.
    /// With `resume`, `None` where there is something without the mark of an unfinished copy: perhaps it was finished.
    pub(super) fn open(path: &Path, source: &Path, resume: bool) -> Result<Option<Self>, Failure> {
        let (destination, of) = Self::lock(path, source)?;
        if destination.check_mark(&of, resume)? {
            return Ok(Some(destination));
        }
        let names = destination.names()?;
        match names.iter().find(|name| *name != LOCK) {
            Some(_) if resume => return Ok(None),
            Some(name) => {
                let what = format!("{} is not empty: it holds {name}", path.display());
                return Err(
                    Failure::other(what).hint("copy to a directory that does not exist, or an empty one")
                );
            }
            None => {}
        }
        destination.mark(&of)?;
        Ok(Some(destination))
    }

    /// The same for a partition in a data directory that is being copied: what is in it is this copy's, whole or not.
    pub(super) fn open_within(path: &Path, source: &Path) -> Result<Self, Failure> {
        let (destination, of) = Self::lock(path, source)?;
        if !destination.check_mark(&of, true)? {
            destination.mark(&of)?;
        }
        Ok(destination)
    }

    fn lock(path: &Path, source: &Path) -> Result<(Self, PathBuf), Failure> {
        let fail = |op: &'static str| move |error: io::Error| Failure::io(op, path.display(), &error);
        let of = fs::canonicalize(source).map_err(|error| match error.kind() {
            ErrorKind::NotFound => gone(source),
            _ => Failure::io("find", source.display(), &error),
        })?;
        fs::create_dir_all(path).map_err(fail("create"))?;
        let full = fs::canonicalize(path).map_err(fail("find"))?;
        if full == of {
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
        Ok((Self { path: path.to_owned(), parts: Cell::new(0), lock }, of))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// True where this is an unfinished copy of `of` that may be gone on with; false where it is none.
    fn check_mark(&self, of: &Path, resume: bool) -> Result<bool, Failure> {
        let mark = self.path.join(MARK);
        match fs::read(&mark) {
            Ok(found) if found == of.as_os_str().as_encoded_bytes() && resume => Ok(true),
            Ok(found) if found == of.as_os_str().as_encoded_bytes() => {
                let what = format!("{} holds an unfinished copy of this log", self.path.display());
                Err(Failure::other(what).hint("--resume goes on with it; or remove the directory"))
            }
            Ok(found) => {
                let other = String::from_utf8_lossy(&found).into_owned();
                let what = format!("{} holds an unfinished copy of {other}", self.path.display());
                Err(Failure::other(what).hint("copy to another directory"))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Failure::io("read", mark.display(), &error)),
        }
    }

    /// Before any file of the log: without the mark nobody would know that some are missing.
    fn mark(&self, of: &Path) -> Result<(), Failure> {
        let mark = self.path.join(MARK);
        fs::write(&mark, of.as_os_str().as_encoded_bytes())
            .map_err(|error| Failure::io("write", mark.display(), &error))?;
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

    /// Links a file.
    pub(super) fn link(&self, from: &Path, name: &str) -> Result<Linked, Failure> {
        let to = self.path.join(name);
        if fs::symlink_metadata(&to).is_ok() {
            fs::remove_file(&to).map_err(|error| Failure::io("remove", to.display(), &error))?;
        }
        match fs::hard_link(from, &to) {
            Ok(()) => Ok(Linked::Yes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Linked::Gone),
            // Another file system, too many links, or none here.
            Err(_) => Ok(Linked::No),
        }
    }

    /// Copies the first bytes of a file to a private name, which [`Unsettled::settle`] changes.
    pub(super) fn copy(
        &self,
        from: &Path,
        item: &Item,
        may_share: bool,
        flow: &mut Flow,
    ) -> Result<Copied, Failure> {
        self.parts.set(self.parts.get() + 1);
        let part = self.path.join(part_name(self.parts.get()));
        let source = match File::open(from) {
            Ok(source) => source,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Copied::Gone),
            Err(error) => return Err(Failure::io("open", from.display(), &error)),
        };
        let fail = |error: io::Error| Failure::io("write", part.display(), &error);
        let target = File::create(&part).map_err(fail)?;
        let permissions = source.metadata().map_err(fail)?.permissions();
        target.set_permissions(permissions).map_err(fail)?;
        let mut goes_on = true;
        let copied = copy_file(&source, &target, item.bytes, may_share, &mut |done| {
            goes_on = flow.tell(done);
            goes_on
        });
        let copied = copied.map_err(fail)?;
        if !goes_on {
            return Ok(Copied::Stopped);
        }
        if copied.bytes < item.bytes {
            // The log was cut, or the index trimmed, after it was listed.
            return Err(gone(from));
        }
        let file = Unsettled { file: target, part, to: self.path.join(&item.name) };
        Ok(Copied::Whole(file, copied.is_shared))
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

/// What came of copying a file.
pub(super) enum Copied {
    /// And whether it shares its blocks.
    Whole(Unsettled, bool),
    /// There is a reason to stop.
    Stopped,
    /// There is no such file any more.
    Gone,
}

/// What came of linking a file.
pub(super) enum Linked {
    Yes,
    /// It cannot be linked and has to be copied.
    No,
    /// There is no such file any more.
    Gone,
}

/// A file that is whole under its private name, and not durable yet.
pub(super) struct Unsettled {
    file: File,
    part: PathBuf,
    to: PathBuf,
}

impl Unsettled {
    fn settle(self) -> Result<(), Failure> {
        self.file.sync_all().map_err(|error| Failure::io("sync", self.part.display(), &error))?;
        fs::rename(&self.part, &self.to).map_err(|error| Failure::io("rename to", self.to.display(), &error))
    }
}

/// The file that is being made durable while the next one is copied. Dropping it waits.
#[derive(Default)]
pub(super) struct Settling(Option<JoinHandle<Result<(), Failure>>>);

impl Settling {
    /// Waits for the one before, and begins with this one.
    pub(super) fn next(&mut self, file: Unsettled) -> Result<(), Failure> {
        self.finish()?;
        self.0 = Some(thread::spawn(move || file.settle()));
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        match self.0.take().map(JoinHandle::join) {
            Some(Ok(settled)) => settled,
            Some(Err(_)) => Err(Failure::other("the thread that syncs has ended")),
            None => Ok(()),
        }
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        // Why it is dropped is told; a file that is not durable has a private name.
        let _ = self.finish();
    }
}

pub(super) fn gone(path: &Path) -> Failure {
    Failure::not_found(format!("{} went away while it was copied", path.display()))
}

fn sync(path: &Path) -> Result<(), Failure> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| Failure::io("sync", path.display(), &error))
}
