//! Disks whose power can be cut: an ext4 in an image file that lies on a reflinking xfs, both mounted through loop devices.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;

/// On a disk, not in memory: the page cache of a memory file system cannot be doubted.
pub(crate) fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let command = || format!("{program} {}", arguments.join(" "));
    let done =
        Command::new(program).args(arguments).output().map_err(|error| format!("{}: {error}", command()))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", command(), String::from_utf8_lossy(&done.stderr).trim()))
}

/// A mounted image. Unmounted with its owner; the loop device goes with the mount.
#[derive(Debug)]
pub(crate) struct Mounted {
    at: PathBuf,
}

impl Mounted {
    fn new(image: &Path, at: PathBuf, kind: &str) -> Result<Self, String> {
        fs::create_dir_all(&at).map_err(|error| error.to_string())?;
        let (from, to) = (image.display().to_string(), at.display().to_string());
        run("mount", &["-t", kind, "-o", "loop", &from, &to])?;
        Ok(Self { at })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = self.at.display().to_string();
        // Something may still look at it for a moment.
        for _ in 0..50 {
            if run("umount", &[&at]).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Err(error) = run("umount", &["-l", &at]) {
            eprintln!("left mounted: {error}");
        }
    }
}

/// The disk under test, and what it lies on. Unmounted from the inside out.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) live: Mounted,
    under: Mounted,
    temp: TempDir,
}

impl Disk {
    /// Fails with the reason where this machine cannot do it.
    pub(crate) fn new() -> Result<Self, String> {
        let temp = scratch();
        let host = temp.path().join("xfs.img");
        sized(&host, 1 << 30)?;
        run("mkfs.xfs", &["-q", "-m", "reflink=1", &host.display().to_string()])?;
        let under = Mounted::new(&host, temp.path().join("under"), "xfs")?;
        let image = under.path().join("disk.img");
        sized(&image, 200 << 20)?;
        run("mkfs.ext4", &["-q", &image.display().to_string()])?;
        let live = Mounted::new(&image, temp.path().join("live"), "ext4")?;
        Ok(Self { live, under, temp })
    }

    /// The disk as it would be, were the power cut at this moment: what reached the device, and no page cache.
    pub(crate) fn cut(&self) -> Result<PathBuf, String> {
        let (image, clone) = (self.under.path().join("disk.img"), self.under.path().join("cut.img"));
        let (from, to) = (image.display().to_string(), clone.display().to_string());
        let _ = fs::remove_file(&clone);
        run("cp", &["--reflink=always", &from, &to])?;
        Ok(clone)
    }

    /// Mounts a cut disk, which replays its journal.
    pub(crate) fn after(&self, clone: &Path) -> Result<Mounted, String> {
        Mounted::new(clone, self.temp.path().join("after"), "ext4")
    }

    /// Keeps a cut disk where it outlives this test.
    pub(crate) fn keep(clone: &Path) -> PathBuf {
        let kept = std::env::temp_dir().join(format!("stratalog-power-{}.img", std::process::id()));
        if let Err(error) = fs::copy(clone, &kept) {
            eprintln!("not kept: {error}");
        }
        kept
    }
}

fn sized(path: &Path, bytes: u64) -> Result<(), String> {
    let file = fs::File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    file.set_len(bytes).map_err(|error| format!("{}: {error}", path.display()))
}
