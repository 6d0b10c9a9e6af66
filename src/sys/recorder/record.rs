//! The recorder: events in order, and faults to order.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use super::image::Image;

/// The recorders that are installed now, by the real path of their root.
static INSTALLED: Mutex<Vec<(PathBuf, Weak<Recorder>)>> = Mutex::new(Vec::new());

/// A file under the root, whatever names it has had. Never given to another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(super) usize);

/// One change, in the order in which it took effect. Directories are named by their path under the root.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the system call of that name")]
pub enum Event {
    CreateDir {
        dir: PathBuf,
        name: OsString,
    },
    Create {
        dir: PathBuf,
        name: OsString,
        file: FileId,
    },
    Rename {
        dir: PathBuf,
        from: OsString,
        to: OsString,
    },
    Remove {
        dir: PathBuf,
        name: OsString,
    },
    Write {
        file: FileId,
        position: u64,
        bytes: Vec<u8>,
    },
    /// A store into a mapped file.
    Store {
        file: FileId,
        position: u64,
        bytes: Vec<u8>,
    },
    SetLen {
        file: FileId,
        len: u64,
    },
    /// Blocks up to `end`; the file is at least that long afterwards unless `keep_size`.
    Preallocate {
        file: FileId,
        end: u64,
        keep_size: bool,
    },
    /// Succeeded; covers the events before `began`.
    Sync {
        file: FileId,
        began: usize,
    },
    /// Succeeded; covers the events before `began`.
    SyncDir {
        dir: PathBuf,
        began: usize,
    },
}

/// The calls that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the system call of that name")]
pub enum Call {
    CreateDir,
    Create,
    Rename,
    Remove,
    Write,
    SetLen,
    Preallocate,
    Sync,
    SyncDir,
    /// Changes nothing, so it is not counted among the others: it fails only when asked for by name.
    Read,
}

/// A failure to order.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Which calls it concerns; `None`: all that change something.
    pub call: Option<Call>,
    /// How many of them succeed first.
    pub after: usize,
    /// How many of them fail then.
    pub times: usize,
    /// With which error number.
    pub errno: i32,
    /// For a write: how many bytes reach the file before the error.
    pub short_bytes: Option<usize>,
}

impl Fault {
    /// The call after `after` others, of any kind that changes something, fails once.
    pub fn nth(after: usize, errno: i32) -> Self {
        Self { call: None, after, times: 1, errno, short_bytes: None }
    }
}

/// Notes what happens under one directory.
#[derive(Debug)]
pub(super) struct Recorder {
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    /// Inode to file, for files that have a name or had one.
    files: HashMap<u64, FileId>,
    file_count: usize,
    baseline: Baseline,
    faults: Vec<Fault>,
    calls: usize,
}

/// What was there, durable, when recording began.
#[derive(Debug, Clone, Default)]
pub(super) struct Baseline {
    pub(super) dirs: Vec<PathBuf>,
    pub(super) names: BTreeMap<PathBuf, FileId>,
    pub(super) bytes: BTreeMap<FileId, Vec<u8>>,
}

/// Records until it is dropped.
#[derive(Debug)]
pub struct Recording {
    recorder: Arc<Recorder>,
}

impl Recording {
    /// Begins to record what this crate does under `root`, by handles opened from now on. What is there is taken to be
    /// durable.
    ///
    /// # Errors
    /// Where the root cannot be read.
    pub fn install(root: impl AsRef<Path>) -> io::Result<Self> {
        let root = fs::canonicalize(root)?;
        let mut state = State::default();
        state.survey(&root, &root)?;
        let recorder = Arc::new(Recorder { root: root.clone(), state: Mutex::new(state) });
        let mut installed = INSTALLED.lock();
        installed.retain(|(_, known)| known.strong_count() > 0);
        installed.push((root, Arc::downgrade(&recorder)));
        Ok(Self { recorder })
    }

    /// The events so far.
    pub fn events(&self) -> Vec<Event> {
        self.recorder.state.lock().events.clone()
    }

    /// How many events there are so far.
    pub fn event_count(&self) -> usize {
        self.recorder.event_count()
    }

    /// How many calls were tried so far, failed ones included, `Read` not: the sweep of "fail each call once" ends here.
    pub fn calls(&self) -> usize {
        self.recorder.state.lock().calls
    }

    /// Orders a failure, counted from now on.
    pub fn fail(&self, fault: Fault) {
        self.recorder.state.lock().faults.push(fault);
    }

    /// True where an ordered failure still waits for its call.
    pub fn is_failing(&self) -> bool {
        self.recorder.state.lock().faults.iter().any(|fault| fault.times > 0)
    }

    /// Takes all ordered failures back.
    pub fn heal(&self) {
        self.recorder.state.lock().faults.clear();
    }

    /// The disk at the moment after the first `event_count` events, with all that may or may not have reached it.
    pub fn image(&self, event_count: usize) -> Image {
        let state = self.recorder.state.lock();
        let events = state.events.get(..event_count).unwrap_or(&state.events);
        Image::new(&state.baseline, events)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        INSTALLED.lock().retain(|(_, known)| !std::ptr::eq(known.as_ptr(), Arc::as_ptr(&self.recorder)));
    }
}

impl Recorder {
    /// The recorder over a real path, and the path under its root.
    pub(super) fn over(path: &Path) -> Option<(Arc<Self>, PathBuf)> {
        INSTALLED.lock().iter().rev().find_map(|(root, known)| {
            let under = path.strip_prefix(root).ok()?;
            Some((known.upgrade()?, under.to_path_buf()))
        })
    }

    /// The file that was opened; one that somebody else made since is taken as it is now.
    pub(super) fn known_file(&self, under: &Path, inode: u64) -> FileId {
        let mut state = self.state.lock();
        if let Some(id) = state.files.get(&inode) {
            return *id;
        }
        let id = state.new_file(inode);
        let bytes = fs::read(self.root.join(under)).unwrap_or_default();
        state.baseline.bytes.insert(id, bytes);
        state.baseline.names.insert(under.to_path_buf(), id);
        id
    }

    pub(super) fn new_file(&self, inode: u64) -> FileId {
        self.state.lock().new_file(inode)
    }

    pub(super) fn event_count(&self) -> usize {
        self.state.lock().events.len()
    }

    pub(super) fn note(&self, event: Event) {
        self.state.lock().events.push(event);
    }

    /// May this call go ahead? If not: the error, and for a write how many bytes go ahead all the same.
    pub(super) fn admit(&self, call: Call) -> Result<(), (io::Error, Option<usize>)> {
        let mut state = self.state.lock();
        if call != Call::Read {
            state.calls += 1;
        }
        for fault in &mut state.faults {
            let concerned = fault.call.map_or(call != Call::Read, |wanted| wanted == call);
            if !concerned || fault.times == 0 {
                continue;
            }
            if fault.after > 0 {
                fault.after -= 1;
                continue;
            }
            fault.times -= 1;
            return Err((io::Error::from_raw_os_error(fault.errno), fault.short_bytes));
        }
        Ok(())
    }
}

impl State {
    fn new_file(&mut self, inode: u64) -> FileId {
        let id = FileId(self.file_count);
        self.file_count += 1;
        self.files.insert(inode, id);
        id
    }

    fn survey(&mut self, root: &Path, dir: &Path) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let under = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
            let meta = fs::symlink_metadata(&path)?;
            if meta.is_dir() {
                self.baseline.dirs.push(under);
                self.survey(root, &path)?;
            } else if meta.is_file() {
                let id = self.new_file(meta.ino());
                self.baseline.bytes.insert(id, fs::read(&path)?);
                self.baseline.names.insert(under, id);
            }
        }
        Ok(())
    }
}
