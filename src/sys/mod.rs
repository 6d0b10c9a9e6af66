//! The operating system: files, directories, locks, maps and pages.
//!
//! Lives here: every system call of the crate, the only `unsafe` (`mmap.rs`), and under feature `sim` the recorder of
//! what was done to the disk.
//! Not here: offsets, records, indexes, file names with a meaning. This room knows bytes, names and positions.
//! Holds always: every error names the call and the path; everything is opened close-on-exec, never through a symbolic
//! link, never hanging on a FIFO; nothing is decided from what a lock file contains.
//!
//! | call | file | why |
//! | --- | --- | --- |
//! | `openat` `mkdirat` `renameat` `unlinkat` `fstatat` `getdents64` | `dir.rs` | names under one descriptor, so that a renamed parent changes nothing |
//! | `fstatvfs` `fstatfs` | `dir.rs` | free bytes; kinds of file system that need care |
//! | `pread` `pwrite` `pwritev` | `file.rs` | no shared cursor, so readers need no lock |
//! | `fallocate` `ftruncate` | `file.rs` | reserve ahead, trim at seal |
//! | `fdatasync` `fsync` | `file.rs`, `dir.rs` | durability of bytes; of names |
//! | `posix_fadvise` `preadv2(RWF_NOWAIT)` | `file.rs` | read-ahead advice; drop cached pages and see that they are gone |
//! | `open(O_DIRECT)` | `file.rs` | reading the device past a page cache that a failed sync made a liar |
//! | `copy_file_range` `lseek(SEEK_DATA)` | `file.rs` | copy a range, shared blocks where the file system can; skip holes |
//! | `ioctl(FICLONE)` `lseek(SEEK_HOLE)` | `copy.rs` | a copy of a file that shares its blocks; holes stay holes |
//! | `ioctl(FS_IOC_SETFLAGS)` | `file.rs` | no copy-on-write for mapped files on btrfs |
//! | `fcntl(F_OFD_SETLK, F_OFD_SETLKW, F_OFD_GETLK)` `flock` | `lock.rs` | one writer, JVMs included |
//! | `futex` `eventfd2` | `futex.rs` | sleeping on a word that processes share; telling an event loop |
//! | `mmap` | `mmap.rs`, `pages.rs` | index words; page-aligned buffers |
//! | `getrandom` `getrlimit` | `process.rs` | ids that nobody else has; how many descriptors there may be |
//! | `sendfile` `write` | `slice.rs` | stored bytes to a socket without a copy |

mod boot;
mod copy;
mod dir;
mod error;
mod file;
mod futex;
mod lock;
mod mmap;
mod pages;
mod process;
pub(crate) mod recorder;
mod slice;
pub(crate) mod sync;

pub(crate) use boot::boot_id;
pub use copy::{CopyOutcome, UNFINISHED_COPY, copy_file, drop_cached};
pub(crate) use dir::{Dir, Entry, EntryKind, FileSystem, Open, Stat};
pub(crate) use error::{Error, Result};
pub(crate) use file::{Access, File, Preallocated};
pub(crate) use futex::{Event, Woken, wait as futex_wait, wake_all as futex_wake_all};
pub(crate) use lock::{DirLock, FileLock, Holder, LOCK_NAME, LockError, ParentLock};
pub(crate) use mmap::MappedWords;
pub(crate) use pages::{PAGE_BYTES, PageBuf, PagePool};
pub(crate) use process::{descriptor_limit, random_bytes};
pub use slice::FileSlice;

#[cfg(test)]
mod tests;
