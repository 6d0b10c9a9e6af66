//! Who waits in this process.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::Waker,
    time::Instant,
};

use parking_lot::{Condvar, Mutex};

use crate::sys::Event;

/// Threads, tasks and event descriptors of this process that wait for anything to change.
///
/// Why no wake-up is lost: a waiter counts itself in (`SeqCst`) and then looks at the ends; the writer publishes and
/// then looks at the count (`SeqCst`). One of them sees the other. The mutex closes the gap between a waiter's look and
/// its sleep.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    count: AtomicUsize,
    registered: Mutex<Registered>,
    moved: Condvar,
}

/// Who is told without sleeping here.
#[derive(Debug, Default)]
struct Registered {
    /// Once each.
    wakers: Vec<Waker>,
    /// Each time, for as long as somebody has them.
    events: Vec<Weak<Event>>,
}

impl Waiters {
    /// Wakes all that wait. Costs one fence and one load where nobody does.
    pub(super) fn wake(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let wakers = {
            let mut registered = self.registered.lock();
            self.moved.notify_all();
            let events = registered.events.len();
            registered.events.retain(|event| {
                event.upgrade().is_some_and(|event| {
                    event.signal();
                    true
                })
            });
            let gone = events - registered.events.len();
            self.count.fetch_sub(registered.wakers.len() + gone, Ordering::SeqCst);
            std::mem::take(&mut registered.wakers)
        };
        // Somebody else's code: never under our lock.
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Sleeps until `is_done` or the deadline. True where it was done.
    pub(crate) fn wait_until(&self, deadline: Instant, mut is_done: impl FnMut() -> bool) -> bool {
        if is_done() {
            return true;
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        let mut registered = self.registered.lock();
        let done = loop {
            if is_done() {
                break true;
            }
            if self.moved.wait_until(&mut registered, deadline).timed_out() {
                break is_done();
            }
        };
        drop(registered);
        self.count.fetch_sub(1, Ordering::SeqCst);
        done
    }

    /// Registers a task to be woken at the next move. Look again afterwards before going to sleep.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut registered = self.registered.lock();
        if !registered.wakers.iter().any(|known| known.will_wake(waker)) {
            registered.wakers.push(waker.clone());
            self.count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Takes back what [`Waiters::register`] did: a task that has an end before anything moves is not kept.
    pub(crate) fn forget(&self, waker: &Waker) {
        let mut registered = self.registered.lock();
        if let Some(at) = registered.wakers.iter().position(|known| known.will_wake(waker)) {
            let known = registered.wakers.swap_remove(at);
            self.count.fetch_sub(1, Ordering::SeqCst);
            drop(registered);
            // Somebody else's code: never under our lock.
            drop(known);
        }
    }

    /// Has an event signalled at each move, until its owner lets go of it.
    pub(crate) fn register_event(&self, event: &Arc<Event>) {
        self.registered.lock().events.push(Arc::downgrade(event));
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// True where a task or an event is to be told of the next move.
    pub(crate) fn has_registered(&self) -> bool {
        let registered = self.registered.lock();
        !registered.wakers.is_empty() || registered.events.iter().any(|event| event.strong_count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    struct Bell;

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn who_takes_its_waker_back_is_not_kept() {
        let (waiters, bell) = (Waiters::default(), Arc::new(Bell));
        let other = Waker::from(Arc::new(Bell));
        waiters.register(&other);
        for _ in 0..3 {
            waiters.register(&Waker::from(Arc::clone(&bell)));
        }
        assert_eq!((Arc::strong_count(&bell), waiters.count.load(Ordering::SeqCst)), (2, 2));
        waiters.forget(&Waker::from(Arc::clone(&bell)));
        waiters.forget(&Waker::from(Arc::clone(&bell)));
        assert_eq!((Arc::strong_count(&bell), waiters.count.load(Ordering::SeqCst)), (1, 1));
        waiters.wake();
        assert!(!waiters.has_registered());
        waiters.forget(&other);
        assert_eq!(waiters.count.load(Ordering::SeqCst), 0);
    }
}
