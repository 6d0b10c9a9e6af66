//! Tests of the room, on real directories.

mod dir;
mod file;
mod lock;
mod mmap;
#[cfg(feature = "sim")]
mod recorder;
mod slice;

use std::path::Path;

use super::Dir;

pub(super) fn open(path: &Path) -> Dir {
    Dir::open(path).unwrap()
}

/// How many descriptors of this process lead into a directory: other tests run beside and open their own.
pub(super) fn descriptors_under(path: &Path) -> usize {
    let path = std::fs::canonicalize(path).unwrap();
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(&path))
        .count()
}
