//! A directory, held open: everything in it is reached by name under its descriptor.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RenameFlags},
    io::Errno,
};

use super::{Error, File, Result, error::retry, recorder::Tap};

/// An open directory. It stays the same directory when its path is renamed or replaced.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    path: PathBuf,
    tap: Tap,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: EntryKind,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Dir,
    Symlink,
    /// A FIFO, socket or device; or gone before it could be looked at.
    Other,
}

impl EntryKind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Dir,
            FileType::Symlink => Self::Symlink,
            _ => Self::Other,
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::File => "a regular file",
            Self::Dir => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Other => "a FIFO, socket or device",
        }
    }
}

/// What is known of a name without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) kind: EntryKind,
    /// The length in bytes.
    pub(crate) len: u64,
    /// What it occupies on disk, reserved blocks included.
    pub(crate) blocks_bytes: u64,
    /// When its bytes were last changed, in milliseconds since the epoch.
    pub(crate) mtime_ms: i64,
    pub(crate) inode: u64,
    pub(crate) device: u64,
    /// The permission bits.
    pub(crate) mode: u32,
}

impl Stat {
    pub(super) fn of(stat: &rustix::fs::Stat) -> Self {
        Self {
            kind: EntryKind::of(FileType::from_raw_mode(stat.st_mode)),
            len: u64::try_from(stat.st_size).unwrap_or(0),
            blocks_bytes: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
            mtime_ms: stat
                .st_mtime
                .saturating_mul(1000)
                .saturating_add(i64::try_from(stat.st_mtime_nsec / 1_000_000).unwrap_or(0)),
            inode: stat.st_ino,
            device: stat.st_dev,
            mode: stat.st_mode & 0o7777,
        }
    }
}

/// How a file is opened.
#[expect(clippy::enum_variant_names, reason = "opening is one of the things done")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    Read,
    ReadWrite,
    /// Fails where the name exists.
    CreateNew {
        mode: u32,
    },
    /// [`File::is_new`] tells which it was.
    CreateOrOpen {
        mode: u32,
    },
}

/// The kinds of file system that this crate treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// ext2, ext3, ext4
    Ext,
    Xfs,
    Btrfs,
    Tmpfs,
    Other(u64),
}

impl Dir {
    /// Opens an existing directory.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = retry(|| rustix::fs::open(or_here(path), flags, Mode::empty()))
            .map_err(|source| Error::new("open", path, source))?;
        let tap = Tap::of_dir(&fd);
        Ok(Self { fd, path: path.to_path_buf(), tap })
    }

    /// Opens a directory, making it and its missing parents. Each directory that got a new name in it is synced, so
    /// that what is created exists after a power cut.
    pub(crate) fn create_all(path: impl AsRef<Path>, mode: u32) -> Result<Self> {
        let path = path.as_ref();
        match Self::open(path) {
            Err(error) if error.is_not_found() => {}
            other => return other,
        }
        let named = path.components().next_back().is_some_and(|last| matches!(last, Component::Normal(_)));
        let (Some(parent), Some(name), true) = (path.parent(), path.file_name(), named) else {
            return Self::open(path);
        };
        let parent = Self::create_all(or_here(parent), mode)?;
        parent.tap.admit_create_dir().map_err(|source| Error::new("create", path, source))?;
        match retry(|| rustix::fs::mkdirat(&parent.fd, name, Mode::from_raw_mode(mode & 0o7777))) {
            Ok(()) => parent.tap.note_create_dir(name),
            // Somebody else made it just now; whether they synced it is not known.
            Err(Errno::EXIST) => {}
            Err(source) => return Err(Error::new("create", path, source)),
        }
        parent.sync()?;
        Self::open(path)
    }

    /// Opens a directory in this one, not through a symbolic link.
    pub(crate) fn subdir(&self, name: impl AsRef<OsStr>) -> Result<Self> {
        let name = name.as_ref();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = self.on("open", name, |name| rustix::fs::openat(&self.fd, name, flags, Mode::empty()))?;
        let tap = Tap::of_dir(&fd);
        Ok(Self { fd, path: self.path.join(name), tap })
    }

    /// Makes a directory in this one and opens it. Its name is not durable before a [`Dir::sync`] of this one.
    pub(crate) fn create_dir(&self, name: impl AsRef<OsStr>, mode: u32) -> Result<Self> {
        let name = name.as_ref();
        self.tap.admit_create_dir().map_err(|source| Error::new("create", self.path_of(name), source))?;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        self.on("create", name, |name| rustix::fs::mkdirat(&self.fd, name, mode))?;
        self.tap.note_create_dir(name);
        self.subdir(name)
    }

    /// Removes an empty directory; false where there is none.
    pub(crate) fn remove_dir(&self, name: impl AsRef<OsStr>) -> Result<bool> {
        self.unlink(name.as_ref(), AtFlags::REMOVEDIR)
    }

    /// The path it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the directory really is now, symbolic links resolved; the path it was opened by where that cannot be told.
    pub(crate) fn real_path(&self) -> PathBuf {
        real_path(&self.fd).unwrap_or_else(|| self.path.clone())
    }

    /// The path of a name in it, for messages.
    pub(crate) fn path_of(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    /// The directory that holds this one, following no path; `None` for the root.
    pub(crate) fn parent(&self) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = retry(|| rustix::fs::openat(&self.fd, "..", flags, Mode::empty()))
            .map_err(|source| Error::new("open", self.path.join(".."), source))?;
        // The kernel knows its real name; without /proc the message is less pretty.
        let path = real_path(&fd).unwrap_or_else(|| self.path.join(".."));
        let tap = Tap::of_dir(&fd);
        let parent = Self { fd, path, tap };
        let (here, above) = (self.identity()?, parent.identity()?);
        Ok((here != above).then_some(parent))
    }

    /// The names in it, in no order, without `.` and `..`. Opens nothing.
    pub(crate) fn list(&self) -> Result<Vec<Entry>> {
        let fail = |source: Errno| Error::new("list", &self.path, source);
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => self.stat(name)?.map_or(EntryKind::Other, |stat| stat.kind),
                known => EntryKind::of(known),
            };
            entries.push(Entry { name: name.to_os_string(), kind });
        }
        Ok(entries)
    }

    /// What a name stands for, links not followed; `None` where there is no such name.
    pub(crate) fn stat(&self, name: impl AsRef<OsStr>) -> Result<Option<Stat>> {
        let found = self.on("look at", name.as_ref(), |name| {
            match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => Ok(None),
                other => other.map(Some),
            }
        })?;
        Ok(found.as_ref().map(Stat::of))
    }

    /// True where the name exists, whatever it is.
    pub(crate) fn exists(&self, name: impl AsRef<OsStr>) -> Result<bool> {
        Ok(self.stat(name)?.is_some())
    }

    /// Opens a regular file. Anything else in its place is a clear error, and nothing hangs on a FIFO.
    pub(crate) fn open_file(&self, name: impl AsRef<OsStr>, how: Open) -> Result<File> {
        let name = name.as_ref();
        match how {
            Open::Read => self.open_with(name, OFlags::RDONLY, None),
            Open::ReadWrite => self.open_with(name, OFlags::RDWR, None),
            Open::CreateNew { mode } => self.open_with(name, OFlags::RDWR, Some(mode)),
            Open::CreateOrOpen { mode } => loop {
                // In two steps, because only the exclusive one tells that the name is new and needs a directory sync.
                match self.open_with(name, OFlags::RDWR, Some(mode)) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    other => return other,
                }
                match self.open_with(name, OFlags::RDWR, None) {
                    Err(error) if error.is_not_found() => {}
                    other => return other,
                }
            },
        }
    }

    /// Renames a file in this directory over whatever file has the new name, or a directory to a free name.
    pub(crate) fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        check_name(to).map_err(|source| Error::new("rename to", self.path_of(to), source))?;
        self.tap.admit_rename().map_err(|source| Error::new("rename", self.path_of(from), source))?;
        self.on("rename", from, |from| rustix::fs::renameat(&self.fd, from, &self.fd, to))?;
        self.tap.note_rename(from, to);
        Ok(())
    }

    /// Renames a file to a name that must be free: `AlreadyExists` where it is not. Where the file system cannot do both
    /// at once (NFS) it looks first, and two that do so at the same moment may both believe that they were the first.
    pub(crate) fn rename_new(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let taken =
            || Error::new("rename to", self.path_of(to), io::Error::from(io::ErrorKind::AlreadyExists));
        check_name(to).map_err(|source| Error::new("rename to", self.path_of(to), source))?;
        self.tap.admit_rename().map_err(|source| Error::new("rename", self.path_of(from), source))?;
        let renamed = self.on("rename", from, |from| {
            match rustix::fs::renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE) {
                Ok(()) => Ok(Some(true)),
                Err(Errno::EXIST) => Ok(Some(false)),
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(None),
                Err(source) => Err(source),
            }
        })?;
        match renamed {
            Some(true) => {}
            Some(false) => return Err(taken()),
            None if self.exists(to)? => return Err(taken()),
            None => self.on("rename", from, |from| rustix::fs::renameat(&self.fd, from, &self.fd, to))?,
        }
        self.tap.note_rename(from, to);
        Ok(())
    }

    /// Removes a file; false where there is none.
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> Result<bool> {
        self.unlink(name.as_ref(), AtFlags::empty())
    }

    fn unlink(&self, name: &OsStr, flags: AtFlags) -> Result<bool> {
        self.tap.admit_remove().map_err(|source| Error::new("remove", self.path_of(name), source))?;
        let removed = self.on("remove", name, |name| match rustix::fs::unlinkat(&self.fd, name, flags) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(source) => Err(source),
        })?;
        if removed {
            self.tap.note_remove(name);
        }
        Ok(removed)
    }

    /// Makes the names in this directory durable.
    pub(crate) fn sync(&self) -> Result<()> {
        let fail = |source: io::Error| Error::new("sync", &self.path, source);
        let began = self.tap.begin_dir_sync().map_err(fail)?;
        retry(|| rustix::fs::fsync(&self.fd)).map_err(|source| fail(source.into()))?;
        self.tap.note_dir_sync(began);
        Ok(())
    }

    /// Makes this directory's own name durable, by a sync of the directory that holds it. False where this user may not
    /// open that one: then nobody but its owner can see to it.
    pub(crate) fn sync_name(&self) -> Result<bool> {
        match self.parent() {
            Ok(Some(parent)) => parent.sync().map(|()| true),
            Ok(None) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Rewrites a small file as a whole: afterwards, and after a power cut at any moment, it holds the old bytes or
    /// the new ones. Temporary file, sync, rename, sync of the directory.
    pub(crate) fn write_replace(&self, name: impl AsRef<OsStr>, bytes: &[u8], mode: u32) -> Result<()> {
        let name = name.as_ref();
        let mut temporary = name.to_os_string();
        temporary.push(".tmp");
        self.replace(name, &temporary, bytes, mode, true)?;
        self.sync()
    }

    /// The same with a temporary name of the caller's and without the sync of the directory; without `sync` the bytes
    /// are not made durable either.
    pub(crate) fn replace(
        &self,
        name: &OsStr,
        temporary: &OsStr,
        bytes: &[u8],
        mode: u32,
        sync: bool,
    ) -> Result<()> {
        // What a killed predecessor left behind.
        self.remove(temporary)?;
        let written = self.open_file(temporary, Open::CreateNew { mode }).and_then(|file| {
            file.write_all_at(bytes, 0)?;
            if sync {
                file.sync_all()?;
            }
            self.rename(temporary, name)
        });
        if written.is_err() {
            // Best effort: the next call removes it as well, and nobody reads it.
            let _ = self.remove(temporary);
        }
        written
    }

    /// All bytes of a file that must not be larger than `max_bytes`; `None` where there is no such file.
    pub(crate) fn read_small(&self, name: impl AsRef<OsStr>, max_bytes: usize) -> Result<Option<Vec<u8>>> {
        let name = name.as_ref();
        let file = match self.open_file(name, Open::Read) {
            Err(error) if error.is_not_found() => return Ok(None),
            other => other?,
        };
        let too_large =
            || Error::new("read", self.path_of(name), io::Error::from(io::ErrorKind::FileTooLarge));
        let len = usize::try_from(file.len()?).map_err(|_| too_large())?;
        if len > max_bytes {
            return Err(too_large());
        }
        let mut bytes = vec![0_u8; len];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(Some(bytes))
    }

    /// How many bytes this user may still write on the file system.
    pub(crate) fn free_bytes(&self) -> Result<u64> {
        let stat = retry(|| rustix::fs::fstatvfs(&self.fd))
            .map_err(|source| Error::new("look at", &self.path, source))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// How many bytes the file system has, and how many of them this user may still write.
    pub(crate) fn space_bytes(&self) -> Result<(u64, u64)> {
        let stat = retry(|| rustix::fs::fstatvfs(&self.fd))
            .map_err(|source| Error::new("look at", &self.path, source))?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok((bytes(stat.f_blocks), bytes(stat.f_bavail)))
    }

    /// The kind of file system it lies on.
    pub(crate) fn file_system(&self) -> Result<FileSystem> {
        let stat = retry(|| rustix::fs::fstatfs(&self.fd))
            .map_err(|source| Error::new("look at", &self.path, source))?;
        Ok(match u64::try_from(stat.f_type).unwrap_or(0) {
            0xEF53 => FileSystem::Ext,
            0x5846_5342 => FileSystem::Xfs,
            0x9123_683E => FileSystem::Btrfs,
            0x0102_1994 => FileSystem::Tmpfs,
            other => FileSystem::Other(other),
        })
    }

    /// True where `path`, links followed, leads to this directory.
    #[cfg_attr(not(test), expect(dead_code, reason = "nobody looks for a replaced directory yet"))]
    pub(crate) fn is_same(&self, path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        match rustix::fs::stat(or_here(path)) {
            Ok(stat) => Ok((stat.st_dev, stat.st_ino) == self.identity()?),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(source) => Err(Error::new("look at", path, source)),
        }
    }

    /// Device and inode: two handles of one directory have the same.
    pub(crate) fn identity(&self) -> Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.fd).map_err(|source| Error::new("look at", &self.path, source))?;
        Ok((stat.st_dev, stat.st_ino))
    }

    fn open_with(&self, name: &OsStr, access: OFlags, create: Option<u32>) -> Result<File> {
        // O_NONBLOCK matters to FIFOs alone: without it, opening one waits for its other end.
        let mut flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut mode = Mode::empty();
        if let Some(bits) = create {
            flags |= OFlags::CREATE | OFlags::EXCL;
            mode = Mode::from_raw_mode(bits & 0o7777);
            // A create that will be refused with "exists" counts as a call all the same: it is tried.
            self.tap.admit_create().map_err(|source| Error::new("create", self.path_of(name), source))?;
        }
        let op = if create.is_some() { "create" } else { "open" };
        check_name(name).map_err(|source| Error::new(op, self.path_of(name), source))?;
        let opened = retry(|| rustix::fs::openat(&self.fd, name, flags, mode));
        let fd = match opened {
            Ok(fd) => fd,
            Err(source @ (Errno::LOOP | Errno::ISDIR | Errno::NXIO)) => {
                let kind = self.stat(name).ok().flatten().map(|stat| stat.kind);
                return Err(match kind {
                    Some(kind) if kind != EntryKind::File => self.not_a_file(name, kind),
                    _ => Error::new(op, self.path_of(name), source),
                });
            }
            Err(source) => return Err(Error::new(op, self.path_of(name), source)),
        };
        let stat =
            rustix::fs::fstat(&fd).map_err(|source| Error::new("look at", self.path_of(name), source))?;
        let stat = Stat::of(&stat);
        if stat.kind != EntryKind::File {
            return Err(self.not_a_file(name, stat.kind));
        }
        let tap = if create.is_some() {
            self.tap.note_create(name, stat.inode)
        } else {
            self.tap.of_file(name, stat.inode)
        };
        Ok(File::from_parts(fd, self.path_of(name), create.is_some(), tap))
    }

    fn not_a_file(&self, name: &OsStr, kind: EntryKind) -> Error {
        let reason = format!("is {}, not a regular file", kind.describe());
        Error::new("open", self.path_of(name), io::Error::new(io::ErrorKind::InvalidInput, reason))
    }

    /// One call on one name, with its context.
    fn on<T>(
        &self,
        op: &'static str,
        name: &OsStr,
        mut call: impl FnMut(&OsStr) -> rustix::io::Result<T>,
    ) -> Result<T> {
        check_name(name)
            .and_then(|()| retry(|| call(name)).map_err(io::Error::from))
            .map_err(|source| Error::new(op, self.path_of(name), source))
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A name is one component: it can lead nowhere else.
fn check_name(name: &OsStr) -> io::Result<()> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') || bytes.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file in a directory"));
    }
    Ok(())
}

/// An empty path, the parent of a bare name, means the current directory.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// What the kernel calls an open directory now.
pub(super) fn real_path(fd: &OwnedFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}
