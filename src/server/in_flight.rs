//! How many bytes of large requests are received or carried out at a time, over all connections.
//!
//! As with a broker a request may begin while the bound is not reached, and may then be larger than what was left: one that
//! is larger than the bound gets through too, and two that have begun never wait for each other.

use std::{sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex};

/// The bytes that are in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    /// `None`: no bound, and nothing is counted.
    most: Option<u64>,
    taken: Mutex<u64>,
    freed: Condvar,
}

/// A request's share, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    in_flight: Arc<InFlight>,
    bytes: u64,
}

impl InFlight {
    pub(super) fn new(most: Option<u64>) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::new(0), freed: Condvar::new() })
    }

    /// A share for a request of so many bytes. Waits for at most so long where others have all there is; `None` where they
    /// still have it then.
    pub(super) fn take(self: &Arc<Self>, bytes: u64, patience: Duration) -> Option<Share> {
        let Some(most) = self.most else { return Some(Share { in_flight: Arc::clone(self), bytes: 0 }) };
        let mut taken = self.taken.lock();
        // Nothing in flight: whatever the bound is, somebody must get through.
        let is_full = |taken: &mut u64| *taken > 0 && *taken >= most;
        if !patience.is_zero() {
            self.freed.wait_while_for(&mut taken, is_full, patience);
        }
        if is_full(&mut taken) {
            return None;
        }
        *taken = taken.saturating_add(bytes);
        Some(Share { in_flight: Arc::clone(self), bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut taken = self.in_flight.taken.lock();
            *taken = taken.saturating_sub(self.bytes);
            drop(taken);
            self.in_flight.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_had_while_the_bound_is_not_reached() {
        let in_flight = InFlight::new(Some(100));
        let take = |bytes| in_flight.take(bytes, Duration::ZERO);
        let (first, second) = (take(60).unwrap(), take(60).unwrap());
        assert!(take(1).is_none());
        drop(first);
        let third = take(1000).unwrap();
        assert!(take(1).is_none());
        drop((second, third));
        assert_eq!(*in_flight.taken.lock(), 0);
        drop(take(1000).unwrap());
        let none = InFlight::new(Some(0));
        let only = none.take(5, Duration::ZERO).unwrap();
        assert!(none.take(5, Duration::ZERO).is_none());
        drop(only);
        let unbounded = InFlight::new(None);
        let all: Vec<_> = (0..3).map(|_| unbounded.take(u64::MAX, Duration::ZERO).unwrap()).collect();
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn who_waits_gets_what_is_given_back() {
        let in_flight = InFlight::new(Some(1));
        let share = in_flight.take(1, Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| in_flight.take(1, Duration::from_secs(60)).is_some());
            drop(share);
            assert!(waits.join().unwrap());
        });
    }
}
