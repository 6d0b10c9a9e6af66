//! The checker's locks and words, with the names and signatures that the crate uses.
#![expect(unreachable_pub, reason = "stands for a module of the crate")]

use std::ops::{Deref, DerefMut};

pub use loom::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Without poisoning, as the crate's.
#[derive(Debug)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

#[derive(Debug)]
pub struct Condvar(loom::sync::Condvar);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(self.0.lock().ok())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().expect("not waiting")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("not waiting")
    }
}

/// Not modelled: a look that comes too early finds nothing.
pub fn linger<T>(_: impl FnMut() -> Option<T>) -> Option<T> {
    None
}

impl Condvar {
    pub fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(held) = guard.0.take() {
            guard.0 = self.0.wait(held).ok();
        }
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
