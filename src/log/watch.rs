//! The one thread that the engine starts, and only where it is asked to wake somebody whom nobody else wakes: a task or an
//! event loop that waits for a log of another process.

use std::{
    io,
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    follow::{CEILING, Follower},
    reader::Inner,
};
use crate::config::{deadline_in, is_past};

/// How long the thread stays where nobody waits: whoever was woken often waits again at once.
const LINGER: Duration = Duration::from_secs(1);

/// Whether the thread runs.
#[derive(Debug, Default)]
pub(super) struct Watch {
    is_running: Mutex<bool>,
}

/// Sees to it that what is registered gets woken. The thread ends within a quarter of a second of the reader's last
/// clone, and a second after nobody is registered any more.
pub(super) fn watch(inner: &Arc<Inner>) -> io::Result<()> {
    let Some(follower) = &inner.follower else { return Ok(()) };
    let mut is_running = follower.watch.is_running.lock();
    if !*is_running {
        let reader = Arc::downgrade(inner);
        thread::Builder::new().name("stratalog-watch".to_owned()).spawn(move || run(&reader))?;
        *is_running = true;
    }
    Ok(())
}

fn run(reader: &Weak<Inner>) {
    let mut until = deadline_in(LINGER);
    loop {
        let Some(inner) = reader.upgrade() else { return };
        let Some(follower) = &inner.follower else { return };
        // Wakes whoever is registered where something changed.
        if let Err(error) = follower.look(&inner.shared) {
            tracing::debug!(%error, "refresh");
        }
        if inner.shared.waiters().has_registered() {
            until = deadline_in(LINGER);
        } else if is_past(until) {
            let mut is_running = follower.watch.is_running.lock();
            // Who registers does so before it asks for the thread.
            if !inner.shared.waiters().has_registered() {
                *is_running = false;
                return;
            }
        }
        let (sleeper, shared) = (follower.sleeper(), Arc::clone(&inner.shared));
        // The reader's last clone must not be kept by this.
        drop(inner);
        let look = || reader.upgrade().is_none_or(|inner| has_moved(&inner));
        sleeper.sleep(&shared, deadline_in(CEILING), look);
    }
}

fn has_moved(inner: &Inner) -> bool {
    inner.follower.as_ref().is_some_and(Follower::has_moved)
}
