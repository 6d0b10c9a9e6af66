//! Sleeping on a word that processes share, and a descriptor for somebody else's event loop.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::AtomicU32,
    time::Duration,
};

use rustix::{
    event::{EventfdFlags, eventfd},
    io::Errno,
    thread::futex::{self, Flags, Timespec},
};

/// Sleeps while the word is `expected`, `timeout` at most. Returns early for any reason or none: look again.
///
/// Not private: the word may lie in a map of a file, and whoever wakes be another process.
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Duration) -> Woken {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match futex::wait(word, Flags::empty(), expected, Some(&timeout)) {
        Err(Errno::TIMEDOUT) => Woken::ByTime,
        // Another value by now, a signal, or a wake-up.
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Woken::ByWord,
        Err(_) => Woken::Cannot,
    }
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Somebody woke it, or may have.
    ByWord,
    ByTime,
    /// The kernel does not put anybody to sleep on this word; no time has passed.
    Cannot,
}

/// Wakes all who sleep on the word, in any process. Costs a system call: ask first whether anybody does.
pub(crate) fn wake_all(word: &AtomicU32) {
    // It fails for words that nobody can sleep on.
    let _ = futex::wake(word, Flags::empty(), u32::MAX >> 1);
}

/// An event descriptor: readable from a signal on until it is read.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    /// One that is readable already, so that whoever waits for it looks once.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Another descriptor of the same event.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }

    pub(crate) fn signal(&self) {
        // Full means that nobody has read it for long: it is readable.
        let _ = rustix::io::write(&self.0, &1_u64.to_le_bytes());
    }
}
