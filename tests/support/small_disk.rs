//! A disk that is easily filled to its last page.

use std::path::PathBuf;

use tempfile::TempDir;

/// A file system in memory of a fixed size, mounted while this lives. `None` where mounting is not allowed.
pub(crate) struct SmallDisk {
    temp: TempDir,
}

impl SmallDisk {
    pub(crate) fn new(size_bytes: u64) -> Option<Self> {
        let temp = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size_bytes}"), "stratalog-test"])
            .arg(temp.path())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { temp });
        }
        eprintln!("skipped: a tmpfs cannot be mounted here");
        None
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.temp.path()
    }

    /// Fills the disk but for so many bytes with a file that can be removed.
    pub(crate) fn fill_but(&self, left_bytes: u64) -> PathBuf {
        let ballast = self.path().join("ballast");
        let mut file = std::fs::File::create(&ballast).unwrap();
        let page = [1_u8; 4096];
        while std::io::Write::write_all(&mut file, &page).is_ok() {}
        let len = file.metadata().unwrap().len();
        file.set_len((len - left_bytes.min(len)) / 4096 * 4096).unwrap();
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.temp.path()).status();
    }
}
