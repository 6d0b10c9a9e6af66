//! The lock that makes one writer per directory: held by the kernel, for as long as a descriptor is open.
//!
//! Two locks on one descriptor of `.lock`. An open-file-description lock (`F_OFD_SETLK`) excludes and is excluded by the
//! record locks that a JVM takes (`FileChannel.tryLock`, which is what a Kafka broker does), and unlike those it is not lost
//! when the process opens and closes the file once more. `flock` on top excludes tools that know nothing else.
//! What the file contains decides nothing: it is a note for people.

use std::{
    io,
    os::{fd::AsFd, unix::fs::MetadataExt},
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, fcntl},
    libc,
};

use super::{Dir, Error, File, Open, Stat};

/// The name of the lock file, in a partition's directory and in a data directory, as Kafka has it.
pub(crate) const LOCK_NAME: &str = ".lock";

/// The mode of a lock file that has to be made.
const LOCK_MODE: u32 = 0o644;
/// How often a lock is tried again when the file was replaced while it was taken.
const REPLACED_TRIES: usize = 100;
/// How often a refused `flock` is tried again, a millisecond apart: a holder that is closing frees its record lock a
/// moment before its `flock`.
const FLOCK_TRIES: usize = 50;
/// How much of the note is shown.
const NOTE_BYTES: usize = 200;

/// Why a directory could not be locked.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Somebody has it; what is known of them, for people.
    Held { holder: Option<String> },
    /// The lock could not be tried: permission, read-only file system, no locks there, not a file.
    Cannot(Error),
}

impl From<Error> for LockError {
    fn from(error: Error) -> Self {
        Self::Cannot(error)
    }
}

/// Who has a lock, as far as can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The process, where the kernel names it.
    pub(crate) process: Option<u32>,
    /// What the holder wrote into the file.
    pub(crate) note: Option<String>,
}

/// Asks the kernel who has these bytes of the lock file exclusively, by either kind of lock.
fn look(dir: &Dir, range: Range) -> Result<Option<Holder>, Error> {
    let file = match dir.open_file(LOCK_NAME, Open::Read) {
        Ok(file) => std::fs::File::from(file.into_fd()),
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut lock = record(libc::F_RDLCK, range);
    let asked = fcntl(file.as_fd(), FcntlArg::F_OFD_GETLK(&mut lock));
    asked.map_err(|source| {
        Error::new("look at the lock of", dir.path_of(LOCK_NAME), io::Error::from(source))
    })?;
    if i32::from(lock.l_type) != libc::F_UNLCK {
        let process = u32::try_from(lock.l_pid).ok().filter(|process| *process > 0);
        // The kernel names who holds a plain record lock, as a JVM does, which leaves no note.
        let note = if process.is_some() { None } else { note(&file) };
        return Ok(Some(Holder { process, note }));
    }
    Ok(flock_holder(&file).map(|process| Holder { process: Some(process), note: None }))
}

/// Exclusive or shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Exclusive,
    Shared,
}

/// Refuse at once, or sleep in the kernel until it is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    No,
    Yes,
}

/// Which bytes of the lock file: a record lock has a range.
#[derive(Debug, Clone, Copy)]
struct Range {
    start: i64,
    /// 0: to the end, however long.
    len: i64,
}

/// As a JVM locks.
const WHOLE: Range = Range { start: 0, len: 0 };
/// Held shared by each writer of a partition in a data directory.
const WRITERS: Range = Range { start: 0, len: 1 };
/// Held exclusively while a file of the data directory is rewritten.
const REWRITE: Range = Range { start: 1, len: 1 };

/// A locked directory. Freed when dropped, or when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct DirLock {
    held: Held,
}

/// A descriptor that holds locks.
#[derive(Debug)]
struct Held {
    file: std::fs::File,
    /// Who took them: a forked child that drops its copy must not free its parent's.
    process: u32,
}

impl Held {
    fn new(file: std::fs::File) -> Self {
        Self { file, process: std::process::id() }
    }
}

impl Drop for Held {
    /// Frees the locks by name rather than by the last close: a child process that is between `fork` and `exec` still has
    /// a copy of the descriptor, and who reopens a log at once would find it locked by nobody.
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // In the opposite order of taking. Neither can fail in a way that the close does not mend.
            let _ = fs4::FileExt::unlock(&self.file);
            let _ = fcntl(self.file.as_fd(), FcntlArg::F_OFD_SETLK(&record(libc::F_UNLCK, WHOLE)));
        }
    }
}

impl DirLock {
    /// Locks the directory for this holder alone, or says at once why not.
    pub(crate) fn try_exclusive(dir: &Dir) -> Result<Self, LockError> {
        Self::take(dir, Mode::Exclusive, Wait::No)
    }

    /// The same, waiting until it is free.
    #[cfg_attr(not(test), expect(dead_code, reason = "a writer does not wait for another"))]
    pub(crate) fn exclusive(dir: &Dir) -> Result<Self, LockError> {
        Self::take(dir, Mode::Exclusive, Wait::Yes)
    }

    /// Locks the directory against exclusive holders, or says at once why not.
    #[cfg_attr(not(test), expect(dead_code, reason = "readers take no lock"))]
    pub(crate) fn try_shared(dir: &Dir) -> Result<Self, LockError> {
        Self::take(dir, Mode::Shared, Wait::No)
    }

    /// The same, waiting until it is free.
    #[cfg_attr(not(test), expect(dead_code, reason = "readers take no lock"))]
    pub(crate) fn shared(dir: &Dir) -> Result<Self, LockError> {
        Self::take(dir, Mode::Shared, Wait::Yes)
    }

    /// True where somebody holds the directory exclusively. Takes no lock and changes nothing; where it cannot be told,
    /// nobody does.
    pub(crate) fn is_held(dir: &Dir) -> bool {
        let Ok(file) = dir.open_file(LOCK_NAME, Open::Read) else { return false };
        let file = std::fs::File::from(file.into_fd());
        let mut lock = record(libc::F_RDLCK, WHOLE);
        fcntl(file.as_fd(), FcntlArg::F_OFD_GETLK(&mut lock)).is_ok()
            && i32::from(lock.l_type) != libc::F_UNLCK
    }

    /// Who holds the directory exclusively. Takes no lock and changes nothing. `None` where nobody does, and where there is
    /// no lock file. The note in the file outlives its writer, so it is read only where the kernel says that it is locked.
    pub(crate) fn holder(dir: &Dir) -> Result<Option<Holder>, Error> {
        look(dir, WHOLE)
    }

    /// Leaves a note for people in the lock file: who holds it, since when. Best effort; nothing is decided from it.
    pub(crate) fn leave_note(&self, text: &str) {
        use std::os::unix::fs::FileExt;
        let line = format!("{}\n", text.trim_end());
        let file = &self.held.file;
        let _ = file.set_len(0).and_then(|()| file.write_all_at(line.as_bytes(), 0));
    }

    /// The descriptor that a forked child would have a copy of.
    #[cfg(test)]
    pub(super) fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        self.held.file.as_fd()
    }

    fn take(dir: &Dir, mode: Mode, wait: Wait) -> Result<Self, LockError> {
        let lock_path = dir.path_of(LOCK_NAME);
        for _ in 0..REPLACED_TRIES {
            let held = Held::new(open_lock_file(dir)?);
            take_record(&held.file, &lock_path, mode, wait, WHOLE)?;
            take_flock(&held.file, &lock_path, mode, wait)?;
            if is_current(dir, &held.file)? {
                return Ok(Self { held });
            }
        }
        Err(replaced_too_often(&lock_path))
    }
}

/// A share in the lock of a data directory, held by the writer of one partition in it: no broker and no store can take
/// the directory meanwhile, other partitions' writers can.
#[derive(Debug)]
pub(crate) struct ParentLock {
    held: Held,
    lock_path: std::path::PathBuf,
}

impl ParentLock {
    /// Takes the share, or says at once why not.
    pub(crate) fn try_shared(parent: &Dir) -> Result<Self, LockError> {
        let lock_path = parent.path_of(LOCK_NAME);
        for _ in 0..REPLACED_TRIES {
            let held = Held::new(open_lock_file(parent)?);
            take_record(&held.file, &lock_path, Mode::Shared, Wait::No, WRITERS)?;
            if is_current(parent, &held.file)? {
                return Ok(Self { held, lock_path });
            }
        }
        Err(replaced_too_often(&lock_path))
    }

    /// Who holds the whole data directory: a broker, a store. Shares in it do not count. Takes no lock.
    pub(crate) fn holder(parent: &Dir) -> Result<Option<Holder>, Error> {
        look(parent, WRITERS)
    }

    /// Waits until no other partition's writer rewrites a file of the data directory, and keeps them out meanwhile.
    pub(crate) fn rewrite(&self) -> Result<RewriteGuard<'_>, LockError> {
        take_record(&self.held.file, &self.lock_path, Mode::Exclusive, Wait::Yes, REWRITE)?;
        Ok(RewriteGuard { lock: self })
    }
}

/// Until it is dropped, files of the data directory may be rewritten.
#[derive(Debug)]
pub(crate) struct RewriteGuard<'a> {
    lock: &'a ParentLock,
}

impl Drop for RewriteGuard<'_> {
    fn drop(&mut self) {
        let free = record(libc::F_UNLCK, REWRITE);
        // It cannot fail on a descriptor that holds it; should it, closing the descriptor frees it.
        let _ = fcntl(self.lock.held.file.as_fd(), FcntlArg::F_OFD_SETLK(&free));
    }
}

/// A lock on one file by itself, for its holder alone. Freed when dropped, or when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct FileLock {
    _held: Held,
}

impl FileLock {
    /// Locks the file, which must be open to write, or says at once why not.
    pub(crate) fn try_exclusive(file: &File) -> Result<Self, LockError> {
        let cannot = |source| LockError::from(Error::new("lock", file.path(), source));
        // A copy of the descriptor has the same locks: both kinds belong to what was opened.
        let held = Held::new(file.as_fd().try_clone_to_owned().map_err(cannot)?.into());
        let taken = take_record(&held.file, file.path(), Mode::Exclusive, Wait::No, WHOLE)
            .and_then(|()| take_flock(&held.file, file.path(), Mode::Exclusive, Wait::No));
        match taken {
            Ok(()) => Ok(Self { _held: held }),
            // What the file says is no note for people; the kernel's table knows who has it by `flock`.
            Err(LockError::Held { .. }) => Err(LockError::Held {
                holder: flock_holder(&held.file).map(|process| format!("process {process}")),
            }),
            Err(cannot) => Err(cannot),
        }
    }

    /// True where somebody holds the file. Takes no lock; where it cannot be told, nobody does.
    pub(crate) fn is_held(file: &File) -> bool {
        let mut lock = record(libc::F_RDLCK, WHOLE);
        fcntl(file.as_fd(), FcntlArg::F_OFD_GETLK(&mut lock)).is_ok()
            && i32::from(lock.l_type) != libc::F_UNLCK
    }
}

/// Opens, or makes, the lock file to read and write: `flock` over NFS needs a writable descriptor for an exclusive lock.
fn open_lock_file(dir: &Dir) -> Result<std::fs::File, LockError> {
    let file: File = dir.open_file(LOCK_NAME, Open::CreateOrOpen { mode: LOCK_MODE })?;
    // Root opens it all the same; a file made read-only is somebody's wish.
    if file.stat()?.mode & 0o222 == 0 {
        let reason = io::Error::new(io::ErrorKind::PermissionDenied, "the lock file is read-only");
        return Err(Error::new("lock", file.path(), reason).into());
    }
    // The same descriptor, not a copy: closing one of two would free the plain record locks that other code of this
    // process has on the file.
    Ok(std::fs::File::from(file.into_fd()))
}

fn take_record(
    file: &std::fs::File,
    path: &std::path::Path,
    mode: Mode,
    wait: Wait,
    range: Range,
) -> Result<(), LockError> {
    let kind = match mode {
        Mode::Exclusive => libc::F_WRLCK,
        Mode::Shared => libc::F_RDLCK,
    };
    let lock = record(kind, range);
    loop {
        let taken = match wait {
            Wait::No => fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&lock)),
            Wait::Yes => fcntl(file.as_fd(), FcntlArg::F_OFD_SETLKW(&lock)),
        };
        match taken {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN | Errno::EACCES) => {
                return Err(LockError::Held { holder: holder(file, kind, range) });
            }
            Err(source) => return Err(Error::new("lock", path, io::Error::from(source)).into()),
        }
    }
}

fn take_flock(file: &std::fs::File, path: &std::path::Path, mode: Mode, wait: Wait) -> Result<(), LockError> {
    let cannot = |source: io::Error| LockError::from(Error::new("lock", path, source));
    if wait == Wait::Yes {
        // Called by their paths: std has methods of the same names that take other locks on some systems.
        return match mode {
            Mode::Exclusive => fs4::FileExt::lock(file),
            Mode::Shared => fs4::FileExt::lock_shared(file),
        }
        .map_err(cannot);
    }
    for _ in 0..FLOCK_TRIES {
        let taken = match mode {
            Mode::Exclusive => fs4::FileExt::try_lock(file),
            Mode::Shared => fs4::FileExt::try_lock_shared(file),
        };
        match taken {
            Ok(()) => return Ok(()),
            Err(fs4::TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            Err(fs4::TryLockError::Error(source)) if source.kind() == io::ErrorKind::Interrupted => {}
            Err(fs4::TryLockError::Error(source)) => return Err(cannot(source)),
        }
    }
    // The record lock is ours, so nobody who locks as a JVM or as we do has the directory. A holder of `flock` alone on
    // this machine is a holder all the same. Else the file system answers one kind of lock with the other (NFS), our own
    // two stand against each other, and no waiting helps: that is "cannot", not "held".
    if let Some(pid) = flock_holder(file) {
        return Err(LockError::Held { holder: Some(format!("process {pid}, by flock")) });
    }
    Err(cannot(io::Error::new(
        io::ErrorKind::WouldBlock,
        "flock is refused though nobody holds a record lock: the file system confuses the two, or a program \
         elsewhere holds flock alone",
    )))
}

/// True where the lock file is still the one that its name leads to: a broker removes `.lock` on a clean stop, and a
/// lock on a removed file excludes nobody.
fn is_current(dir: &Dir, file: &std::fs::File) -> Result<bool, LockError> {
    let ours = file.metadata().map_err(|source| Error::new("look at", dir.path_of(LOCK_NAME), source))?;
    let named: Option<Stat> = dir.stat(LOCK_NAME)?;
    Ok(named.is_some_and(|named| (named.device, named.inode) == (ours.dev(), ours.ino())))
}

/// What can be said of who stands in the way: the kernel names the process behind a plain record lock (a JVM); behind a
/// lock like ours there is only the note.
fn holder(file: &std::fs::File, kind: i32, range: Range) -> Option<String> {
    let mut lock = record(kind, range);
    fcntl(file.as_fd(), FcntlArg::F_OFD_GETLK(&mut lock)).ok()?;
    if i32::from(lock.l_type) == libc::F_UNLCK {
        return None;
    }
    if lock.l_pid > 0 {
        return Some(format!("process {}", lock.l_pid));
    }
    note(file)
}

fn note(file: &std::fs::File) -> Option<String> {
    use std::os::unix::fs::FileExt;
    let mut bytes = [0_u8; NOTE_BYTES];
    let read = file.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8_lossy(bytes.get(..read)?);
    let line: String = text.lines().next()?.chars().filter(|c| !c.is_control()).collect();
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_string())
}

/// The process that holds `flock` on this file, from the kernel's table of locks on this machine.
fn flock_holder(file: &std::fs::File) -> Option<u32> {
    let meta = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    find_flock(
        &std::fs::read_to_string("/proc/locks").ok()?,
        &format!("{major:02x}:{minor:02x}:{}", meta.ino()),
    )
}

/// `1: FLOCK  ADVISORY  WRITE 4711 fe:00:123456 0 EOF`
fn find_flock(table: &str, file: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (kind, _, _) = (words.next()?, words.next()?, words.next()?);
        let (pid, named) = (words.next()?, words.next()?);
        (kind == "FLOCK" && named == file).then(|| pid.parse().ok())?
    })
}

/// A record lock as the kernel wants it; `l_pid` must be 0 for an open-file-description lock.
fn record(kind: i32, range: Range) -> libc::flock {
    libc::flock {
        l_type: i16::try_from(kind).unwrap_or_default(),
        l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: range.start,
        l_len: range.len,
        l_pid: 0,
    }
}

fn replaced_too_often(path: &std::path::Path) -> LockError {
    let reason = io::Error::new(io::ErrorKind::ResourceBusy, "the lock file is being replaced all the time");
    Error::new("lock", path, reason).into()
}
