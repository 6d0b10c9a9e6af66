//! The locks and words of those parts whose every interleaving is tried by a model checker: it puts its own in their
//! place, under this path (`tests/loom`).

pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

pub(crate) use parking_lot::{Condvar, Mutex};
