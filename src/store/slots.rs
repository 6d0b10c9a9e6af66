//! The logs of a store: opened when first used, closed when others need their descriptors.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};

use super::names::dir_of;
use crate::{
    config::LogConfig,
    error::{Error, Result},
    log::{LogWriter, SharedWriter, StoreRight},
};

/// The partitions of each topic.
pub(super) type Topics = BTreeMap<String, BTreeMap<i32, Arc<Slot>>>;

/// A place for one log.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) state: RwLock<State>,
    /// When it was last used, in uses of any log.
    used: AtomicU64,
    /// The newest leader epoch, where that was asked for while the log was not open. Read and written under `state`.
    pub(super) known_epoch: Mutex<Option<i32>>,
    /// Settings of its own.
    pub(super) config: Mutex<Option<LogConfig>>,
}

#[derive(Debug)]
pub(super) enum State {
    /// Not open, or not any more: the next use opens it.
    Idle,
    Open(SharedWriter),
    Deleted,
    /// The store was closed.
    Over,
}

impl Slot {
    pub(super) fn new(topic: &str, partition: i32) -> Arc<Self> {
        Arc::new(Self {
            topic: topic.to_owned(),
            partition,
            state: RwLock::new(State::Idle),
            used: AtomicU64::new(0),
            known_epoch: Mutex::new(None),
            config: Mutex::new(None),
        })
    }

    pub(super) fn dir_name(&self) -> String {
        dir_of(&self.topic, self.partition)
    }
}

/// Opens logs and closes them again.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) right: StoreRight,
    /// Settings of logs that have none of their own.
    default: LogConfig,
    most_open: u64,
    uses: AtomicU64,
    /// The logs that are open, and some that are not any more.
    open: Mutex<Vec<Arc<Slot>>>,
}

impl Slots {
    pub(super) fn new(right: StoreRight, default: LogConfig, most_open: u64) -> Self {
        Self { right, default, most_open, uses: AtomicU64::new(1), open: Mutex::default() }
    }

    /// Uses a log, opening it where it is not open.
    pub(super) fn with<T>(
        &self,
        slot: &Arc<Slot>,
        use_it: impl FnOnce(&SharedWriter) -> Result<T>,
    ) -> Result<T> {
        slot.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        loop {
            {
                let state = slot.state.read();
                match &*state {
                    State::Open(writer) => return use_it(writer),
                    State::Deleted => return Err(self.not_found(slot)),
                    State::Over => return Err(Error::Closed),
                    State::Idle => {}
                }
            }
            self.open(slot)?;
        }
    }

    /// Uses a log if it is open.
    pub(super) fn if_open<T>(slot: &Slot, use_it: impl FnOnce(&SharedWriter) -> T) -> Option<T> {
        match &*slot.state.read() {
            State::Open(writer) => Some(use_it(writer)),
            _ => None,
        }
    }

    fn not_found(&self, slot: &Slot) -> Error {
        Error::NotFound { path: self.right.files.dir().path_of(slot.dir_name()) }
    }

    fn open(&self, slot: &Arc<Slot>) -> Result<()> {
        // Before the slot is locked: closing others takes their locks, and one at a time is held.
        self.make_room();
        let mut state = slot.state.write();
        if !matches!(*state, State::Idle) {
            return Ok(());
        }
        let config = slot.config.lock().clone().unwrap_or_else(|| self.default.clone());
        let name = slot.dir_name();
        let open = || LogWriter::open_in(&self.right, &name, (&slot.topic, slot.partition), config.clone());
        let writer = match open() {
            Err(error) if error.is_out_of_descriptors() => {
                // The rest of the process has more than was left to it.
                self.right.open_segments.close_idle(0);
                self.close_idle(self.open_count() / 2);
                open()
            }
            done => done,
        }?;
        *slot.known_epoch.lock() = None;
        *state = State::Open(SharedWriter::from(writer));
        drop(state);
        let mut open = self.open.lock();
        // It may be listed from the last time.
        if !open.iter().any(|known| Arc::ptr_eq(known, slot)) {
            open.push(Arc::clone(slot));
        }
        Ok(())
    }

    /// The logs that are open.
    pub(super) fn opened(&self) -> Vec<Arc<Slot>> {
        let mut open = self.open.lock();
        // One that is being opened or closed right now counts.
        open.retain(|slot| slot.state.try_read().is_none_or(|state| matches!(*state, State::Open(_))));
        open.clone()
    }

    pub(super) fn open_count(&self) -> u64 {
        self.open.lock().len() as u64
    }

    fn make_room(&self) {
        if self.open_count() >= self.most_open {
            self.close_idle(self.most_open - 1);
        }
    }

    /// Closes logs, those used longest ago first, until so many are open. One that is being used, or that a reader of
    /// this process has a hand on, stays. Returns how many were closed.
    pub(super) fn close_idle(&self, most: u64) -> usize {
        let mut open = self.opened();
        let mut surplus = open.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        open.sort_unstable_by_key(|slot| slot.used.load(Ordering::Relaxed));
        let mut closed_count = 0;
        for slot in open {
            if surplus == 0 {
                break;
            }
            let Some(mut state) = slot.state.try_write() else { continue };
            let State::Open(writer) = &*state else { continue };
            if writer.is_in_use() {
                continue;
            }
            // An error is what a crash would be: the next use recovers the log.
            if let Err(error) = self.close(&slot, &mut state, State::Idle) {
                tracing::warn!(log = %slot.dir_name(), %error, "an idle log was not closed cleanly");
            }
            closed_count += 1;
            surplus -= 1;
        }
        self.opened();
        closed_count
    }

    /// Closes a log, if it is open, and leaves `after` in its place whatever the close comes to.
    pub(super) fn close(&self, slot: &Slot, state: &mut State, after: State) -> Result<()> {
        let State::Open(writer) = std::mem::replace(state, after) else { return Ok(()) };
        writer.close()?;
        self.right.files.note_closed(&slot.topic, slot.partition);
        Ok(())
    }
}
