//! What a handle reports to.

use std::{ffi::OsStr, io, os::fd::OwnedFd};

#[cfg(feature = "sim")]
use std::{path::PathBuf, sync::Arc};

#[cfg(feature = "sim")]
use super::record::{Call, Event, FileId, Recorder};

/// May a write go ahead?
#[derive(Debug)]
pub(in crate::sys) enum Admitted {
    Whole,
    /// Only this many bytes, then this error.
    #[cfg_attr(not(feature = "sim"), expect(dead_code, reason = "only the recorder cuts a write short"))]
    Part(usize, io::Error),
}

/// A handle's line to the recorder, if one is installed over the directory it lies in.
#[derive(Debug, Clone)]
pub(in crate::sys) struct Tap {
    #[cfg(feature = "sim")]
    line: Option<Line>,
}

#[cfg(feature = "sim")]
#[derive(Debug, Clone)]
struct Line {
    recorder: Arc<Recorder>,
    of: Of,
}

#[cfg(feature = "sim")]
#[derive(Debug, Clone)]
enum Of {
    /// The directory's path under the recorded root.
    Dir(PathBuf),
    File(FileId),
}

#[cfg(not(feature = "sim"))]
#[expect(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "the recorder's half has the same signatures"
)]
impl Tap {
    pub(in crate::sys) fn none() -> Self {
        Self {}
    }
    pub(in crate::sys) fn of_dir(_: &OwnedFd) -> Self {
        Self {}
    }
    pub(in crate::sys) fn of_file(&self, _: &OsStr, _: u64) -> Self {
        Self {}
    }
    pub(in crate::sys) fn is_recording(&self) -> bool {
        false
    }
    pub(in crate::sys) fn admit_create(&self) -> io::Result<()> {
        Ok(())
    }
    pub(in crate::sys) fn admit_create_dir(&self) -> io::Result<()> {
        Ok(())
    }
    pub(in crate::sys) fn admit_rename(&self) -> io::Result<()> {
        Ok(())
    }
    pub(in crate::sys) fn admit_remove(&self) -> io::Result<()> {
        Ok(())
    }
    pub(in crate::sys) fn admit_read(&self) -> io::Result<()> {
        Ok(())
    }
    pub(in crate::sys) fn admit_write(&self, _: usize) -> io::Result<Admitted> {
        Ok(Admitted::Whole)
    }
    pub(in crate::sys) fn admit_preallocate(&self) -> io::Result<()> {
        Ok(())
    }
    pub(in crate::sys) fn admit_set_len(&self) -> io::Result<()> {
        Ok(())
    }
    pub(in crate::sys) fn begin_sync(&self) -> io::Result<usize> {
        Ok(0)
    }
    pub(in crate::sys) fn begin_dir_sync(&self) -> io::Result<usize> {
        Ok(0)
    }
    pub(in crate::sys) fn note_create(&self, _: &OsStr, _: u64) -> Self {
        Self {}
    }
    pub(in crate::sys) fn note_create_dir(&self, _: &OsStr) {}
    pub(in crate::sys) fn note_rename(&self, _: &OsStr, _: &OsStr) {}
    pub(in crate::sys) fn note_remove(&self, _: &OsStr) {}
    pub(in crate::sys) fn note_write(&self, _: &[&[u8]], _: u64) {}
    pub(in crate::sys) fn note_store(&self, _: usize, _: impl FnOnce() -> Vec<u8>) {}
    pub(in crate::sys) fn note_preallocate(&self, _: u64, _: bool) {}
    pub(in crate::sys) fn note_set_len(&self, _: u64) {}
    pub(in crate::sys) fn note_sync(&self, _: usize) {}
    pub(in crate::sys) fn note_dir_sync(&self, _: usize) {}
}

#[cfg(feature = "sim")]
impl Tap {
    pub(in crate::sys) fn none() -> Self {
        Self { line: None }
    }

    pub(in crate::sys) fn of_dir(fd: &OwnedFd) -> Self {
        let found = crate::sys::dir::real_path(fd).and_then(|path| Recorder::over(&path));
        Self { line: found.map(|(recorder, under)| Line { recorder, of: Of::Dir(under) }) }
    }

    pub(in crate::sys) fn of_file(&self, name: &OsStr, inode: u64) -> Self {
        let line = self.dir().map(|(recorder, dir)| {
            let id = recorder.known_file(&dir.join(name), inode);
            Line { recorder: Arc::clone(recorder), of: Of::File(id) }
        });
        Self { line }
    }

    pub(in crate::sys) fn is_recording(&self) -> bool {
        self.line.is_some()
    }

    pub(in crate::sys) fn admit_create(&self) -> io::Result<()> {
        self.admit(Call::Create)
    }
    pub(in crate::sys) fn admit_create_dir(&self) -> io::Result<()> {
        self.admit(Call::CreateDir)
    }
    pub(in crate::sys) fn admit_rename(&self) -> io::Result<()> {
        self.admit(Call::Rename)
    }
    pub(in crate::sys) fn admit_remove(&self) -> io::Result<()> {
        self.admit(Call::Remove)
    }
    pub(in crate::sys) fn admit_read(&self) -> io::Result<()> {
        self.admit(Call::Read)
    }
    pub(in crate::sys) fn admit_preallocate(&self) -> io::Result<()> {
        self.admit(Call::Preallocate)
    }
    pub(in crate::sys) fn admit_set_len(&self) -> io::Result<()> {
        self.admit(Call::SetLen)
    }

    pub(in crate::sys) fn admit_write(&self, len: usize) -> io::Result<Admitted> {
        let Some(line) = &self.line else { return Ok(Admitted::Whole) };
        match line.recorder.admit(Call::Write) {
            Ok(()) => Ok(Admitted::Whole),
            Err((error, Some(part))) if part > 0 => Ok(Admitted::Part(part.min(len), error)),
            Err((error, _)) => Err(error),
        }
    }

    pub(in crate::sys) fn begin_sync(&self) -> io::Result<usize> {
        self.admit(Call::Sync)?;
        Ok(self.line.as_ref().map_or(0, |line| line.recorder.event_count()))
    }

    pub(in crate::sys) fn begin_dir_sync(&self) -> io::Result<usize> {
        self.admit(Call::SyncDir)?;
        Ok(self.line.as_ref().map_or(0, |line| line.recorder.event_count()))
    }

    pub(in crate::sys) fn note_create(&self, name: &OsStr, inode: u64) -> Self {
        let line = self.dir().map(|(recorder, dir)| {
            let id = recorder.new_file(inode);
            recorder.note(Event::Create { dir: dir.clone(), name: name.to_os_string(), file: id });
            Line { recorder: Arc::clone(recorder), of: Of::File(id) }
        });
        Self { line }
    }

    pub(in crate::sys) fn note_create_dir(&self, name: &OsStr) {
        if let Some((recorder, dir)) = self.dir() {
            recorder.note(Event::CreateDir { dir: dir.clone(), name: name.to_os_string() });
        }
    }

    pub(in crate::sys) fn note_rename(&self, from: &OsStr, to: &OsStr) {
        if let Some((recorder, dir)) = self.dir() {
            recorder.note(Event::Rename {
                dir: dir.clone(),
                from: from.to_os_string(),
                to: to.to_os_string(),
            });
        }
    }

    pub(in crate::sys) fn note_remove(&self, name: &OsStr) {
        if let Some((recorder, dir)) = self.dir() {
            recorder.note(Event::Remove { dir: dir.clone(), name: name.to_os_string() });
        }
    }

    pub(in crate::sys) fn note_write(&self, parts: &[&[u8]], position: u64) {
        if let Some((recorder, file)) = self.file() {
            recorder.note(Event::Write { file, position, bytes: parts.concat() });
        }
    }

    pub(in crate::sys) fn note_store(&self, position: usize, bytes: impl FnOnce() -> Vec<u8>) {
        if let Some((recorder, file)) = self.file() {
            recorder.note(Event::Store { file, position: position as u64, bytes: bytes() });
        }
    }

    pub(in crate::sys) fn note_preallocate(&self, end: u64, keep_size: bool) {
        if let Some((recorder, file)) = self.file() {
            recorder.note(Event::Preallocate { file, end, keep_size });
        }
    }

    pub(in crate::sys) fn note_set_len(&self, len: u64) {
        if let Some((recorder, file)) = self.file() {
            recorder.note(Event::SetLen { file, len });
        }
    }

    pub(in crate::sys) fn note_sync(&self, began: usize) {
        if let Some((recorder, file)) = self.file() {
            recorder.note(Event::Sync { file, began });
        }
    }

    pub(in crate::sys) fn note_dir_sync(&self, began: usize) {
        if let Some((recorder, dir)) = self.dir() {
            recorder.note(Event::SyncDir { dir: dir.clone(), began });
        }
    }

    fn admit(&self, call: Call) -> io::Result<()> {
        self.line.as_ref().map_or(Ok(()), |line| line.recorder.admit(call).map_err(|(error, _)| error))
    }

    fn dir(&self) -> Option<(&Arc<Recorder>, &PathBuf)> {
        match self.line.as_ref()? {
            Line { recorder, of: Of::Dir(dir) } => Some((recorder, dir)),
            Line { of: Of::File(_), .. } => None,
        }
    }

    fn file(&self) -> Option<(&Arc<Recorder>, FileId)> {
        match self.line.as_ref()? {
            Line { recorder, of: Of::File(file) } => Some((recorder, *file)),
            Line { of: Of::Dir(_), .. } => None,
        }
    }
}
