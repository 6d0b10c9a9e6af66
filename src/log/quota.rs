//! A bound on bytes, with a queue of those who wait for some.

use crate::sys::sync::{Arc, Condvar, Mutex};

/// So many bytes at most are taken at a time. Who comes first is served first; one that wants more than there are at all
/// is served alone.
#[derive(Debug)]
pub(crate) struct Quota {
    limit: u64,
    state: Mutex<State>,
    given: Condvar,
}

#[derive(Debug)]
struct State {
    taken: u64,
    /// Numbers of those who come: the next one's, and the one who is served next.
    coming: u64,
    served: u64,
}

/// Bytes that are taken, until this goes.
#[derive(Debug)]
pub(crate) struct Share {
    quota: Arc<Quota>,
    bytes: u64,
}

impl Quota {
    pub(crate) fn new(limit: u64) -> Self {
        let state = State { taken: 0, coming: 0, served: 0 };
        Self { limit, state: Mutex::new(state), given: Condvar::new() }
    }

    /// Takes `bytes`, when they are there and everybody who came before has been served.
    pub(crate) fn take(quota: &Arc<Self>, bytes: u64) -> Share {
        let mut state = quota.state.lock();
        let number = state.coming;
        state.coming += 1;
        while state.served != number || !quota.has_room(state.taken, bytes) {
            quota.given.wait(&mut state);
        }
        state.served += 1;
        state.taken = state.taken.saturating_add(bytes);
        if state.served != state.coming {
            quota.given.notify_all();
        }
        drop(state);
        Share { quota: Arc::clone(quota), bytes }
    }

    /// How much is taken.
    pub(crate) fn taken(&self) -> u64 {
        self.state.lock().taken
    }

    fn has_room(&self, taken: u64, bytes: u64) -> bool {
        taken == 0 || taken.saturating_add(bytes) <= self.limit
    }

    fn give(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.taken = state.taken.saturating_sub(bytes);
        if state.served != state.coming {
            self.given.notify_all();
        }
    }
}

impl Share {
    /// Puts another share of the same quota to this one: they are given back together.
    pub(crate) fn add(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.quota, &other.quota));
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.quota.give(self.bytes);
        }
    }
}
