//! The locks and words of those parts whose every interleaving is tried by a model checker: it puts its own in their
//! place, under this path (`tests/loom`).

pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

pub(crate) use parking_lot::{Condvar, Mutex};

/// How often a thread lets others run before it falls asleep.
const YIELDS: usize = 24;

/// Looks a few times, letting other threads run in between, and returns the first thing seen: for what mostly is there or
/// comes sooner than a thread falls asleep and is woken.
pub(crate) fn linger<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..YIELDS {
        if let Some(seen) = look() {
            return Some(seen);
        }
        std::thread::yield_now();
    }
    look()
}
