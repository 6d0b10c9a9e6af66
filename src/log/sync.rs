//! What is not durable yet, and making it so.
//!
//! A sync is led by whoever needs it first and covers everything written by then: each file that has bytes on their way,
//! oldest first, then the directory if names changed, and only then the durable end. A failed sync is final: what the
//! page cache holds may never reach the disk, so the log is poisoned and everybody is told.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};

use super::{checkpoint::Point, shared::Shared};
use crate::{
    config::{FsyncPolicy, SyncMethod},
    error::{Error, Result},
    offset::Offset,
    sys::File,
};

/// Keeps what is not durable, and one leader at a time.
#[derive(Debug)]
pub(crate) struct Syncer {
    pending: Mutex<Pending>,
    /// Held during the system calls. Who gets it later finds the work done.
    leader: Mutex<()>,
}

/// Written and not durable.
#[derive(Debug)]
struct Pending {
    /// Files with bytes that no sync covers, oldest first. A file is listed before its bytes are published, so a
    /// leader that first reads how far the log is written finds here every file below that.
    files: Vec<Arc<File>>,
    names_changed: bool,
    bytes: u64,
    /// Bytes ever written, and how many of them the last sync covered.
    total_bytes: u64,
    synced_bytes: u64,
    /// When the oldest of the bytes came, by the log's monotonic clock.
    since: Option<Duration>,
    /// Where the log is written up to.
    written: Point,
    /// Where the last sync got to.
    synced: Point,
}

/// How far durability lags behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Bytes of batches that are written and not durable.
    pub bytes: u64,
    /// Offsets that are written and not durable.
    pub records: u64,
    /// How long the oldest of them has waited.
    pub age: Duration,
}

impl Syncer {
    pub(crate) fn new(written: Point) -> Self {
        let pending = Pending {
            files: Vec::new(),
            names_changed: false,
            bytes: 0,
            total_bytes: 0,
            synced_bytes: 0,
            since: None,
            written,
            synced: written,
        };
        Self { pending: Mutex::new(pending), leader: Mutex::new(()) }
    }

    /// Notes that `bytes` more were written to `file` and end at `written`, and publishes that end: under one lock, so
    /// that a sync covers exactly what is published when it begins. [`Shared::wake`] comes after.
    pub(crate) fn publish(
        &self,
        shared: &Shared,
        (file, bytes): (&Arc<File>, u64),
        written: Point,
        now: impl FnOnce() -> Duration,
    ) {
        let mut pending = self.pending.lock();
        if !pending.files.last().is_some_and(|last| Arc::ptr_eq(last, file)) {
            pending.files.push(Arc::clone(file));
        }
        pending.bytes += bytes;
        pending.total_bytes += bytes;
        pending.written = written;
        if pending.since.is_none() {
            pending.since = Some(now());
        }
        shared.store_written(&written);
    }

    /// Notes a segment that was closed and one that was begun: the trim and the new name are not durable yet.
    pub(crate) fn note_roll(&self, shared: &Shared, trimmed: &Arc<File>, written: Point) {
        let mut pending = self.pending.lock();
        if !pending.files.iter().any(|file| Arc::ptr_eq(file, trimmed)) {
            pending.files.push(Arc::clone(trimmed));
        }
        pending.names_changed = true;
        pending.written = written;
        shared.store_written(&written);
    }

    /// Notes that a file was cut to its real length.
    pub(crate) fn note_trim(&self, file: &Arc<File>) {
        let mut pending = self.pending.lock();
        if !pending.files.iter().any(|known| Arc::ptr_eq(known, file)) {
            pending.files.push(Arc::clone(file));
        }
    }

    /// Notes that a name came or went in the directory.
    pub(crate) fn note_names(&self) {
        self.pending.lock().names_changed = true;
    }

    /// Where the last successful sync got to.
    pub(crate) fn synced(&self) -> Point {
        self.pending.lock().synced
    }

    /// How many bytes the syncs have covered so far, since the log was opened.
    pub(crate) fn synced_bytes(&self) -> u64 {
        self.pending.lock().synced_bytes
    }

    pub(crate) fn lag(&self, shared: &Shared, now: Duration) -> Lag {
        let pending = self.pending.lock();
        Lag {
            bytes: pending.bytes,
            records: pending.written.offset.since(shared.durable()),
            age: pending.since.map_or(Duration::ZERO, |since| now.saturating_sub(since)),
        }
    }

    /// True where the policy wants a sync now.
    pub(crate) fn is_due(
        &self,
        policy: FsyncPolicy,
        shared: &Shared,
        now: impl FnOnce() -> Duration,
    ) -> bool {
        match policy {
            // What a sync under way covers is not durable yet.
            FsyncPolicy::Commit => self.pending.lock().written.offset > shared.durable(),
            FsyncPolicy::EveryBytes(most) => {
                let pending = self.pending.lock();
                pending.total_bytes - pending.synced_bytes >= most
            }
            FsyncPolicy::EveryRecords(most) => {
                self.pending.lock().written.offset.since(shared.durable()) >= most
            }
            FsyncPolicy::Interval(most) => {
                let since = self.pending.lock().since;
                since.is_some_and(|since| now().saturating_sub(since) >= most)
            }
            FsyncPolicy::Never => false,
        }
    }

    /// Makes everything durable that is written now, names and trims too, or learns that somebody else has done so up to
    /// `wanted`.
    pub(crate) fn sync(&self, shared: &Shared, wanted: Offset, method: SyncMethod) -> Result<Offset> {
        self.lead(shared, method, || shared.durable() >= wanted && (!self.has_names() || shared.is_over()))
    }

    /// The same for one who needs no more than the records below `wanted`: that others have written meanwhile is nothing to
    /// him, and he leads no sync for them where somebody else's covered his own.
    pub(crate) fn cover(&self, shared: &Shared, wanted: Offset, method: SyncMethod) -> Result<Offset> {
        self.lead(shared, method, || shared.durable() >= wanted)
    }

    fn lead(&self, shared: &Shared, method: SyncMethod, is_done: impl Fn() -> bool) -> Result<Offset> {
        let leading = self.leader.lock();
        if shared.is_poisoned() {
            shared.check_writable()?;
        }
        if is_done() {
            return Ok(shared.durable());
        }
        // The directory may be another writer's by now.
        shared.check_writable()?;
        // From here on a crash leaves it open whether the page cache can be believed.
        shared.control.set_syncing(true);
        let covered = self.take();
        match covered.run(shared, method) {
            Ok(()) => {
                shared.control.set_syncing(false);
                {
                    let mut pending = self.pending.lock();
                    pending.synced = covered.written;
                    pending.synced_bytes = covered.total_bytes;
                }
                shared.store_durable(covered.written.offset);
                drop(leading);
                shared.wake();
                Ok(covered.written.offset)
            }
            Err(error) => {
                shared.poison(&error.to_string());
                Err(error)
            }
        }
    }

    /// Ends the log once no sync is under way: what is not durable by then nobody makes durable any more.
    pub(crate) fn close(&self, shared: &Shared) {
        let leading = self.leader.lock();
        shared.close();
        drop(leading);
        shared.wake();
    }

    fn has_names(&self) -> bool {
        let pending = self.pending.lock();
        pending.names_changed || !pending.files.is_empty()
    }

    fn take(&self) -> Covered {
        let mut pending: MutexGuard<'_, Pending> = self.pending.lock();
        pending.bytes = 0;
        pending.since = None;
        Covered {
            files: std::mem::take(&mut pending.files),
            names_changed: std::mem::take(&mut pending.names_changed),
            written: pending.written,
            total_bytes: pending.total_bytes,
        }
    }
}

/// What one sync covers.
struct Covered {
    files: Vec<Arc<File>>,
    names_changed: bool,
    written: Point,
    total_bytes: u64,
}

impl Covered {
    fn run(&self, shared: &Shared, method: SyncMethod) -> Result<()> {
        for file in &self.files {
            match method {
                SyncMethod::Data => file.sync_data().map_err(Error::from)?,
                SyncMethod::Full => file.sync_all().map_err(Error::from)?,
            }
        }
        // After the files: a name may be durable before its bytes, never bytes be promised under a name that is not.
        if self.names_changed {
            shared.dir.sync().map_err(Error::from)?;
        }
        Ok(())
    }
}
