//! When time means something for a group.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use crate::Clock;

/// Groups by the time at which they are to be looked at.
#[derive(Debug, Default)]
pub(super) struct Timer {
    inner: Mutex<Inner>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    by_time: BTreeSet<(Duration, String)>,
    by_group: HashMap<String, Duration>,
    is_stopping: bool,
}

impl Timer {
    /// A group is to be looked at then, or before: a look that comes too early does no harm, and a session that is renewed
    /// thousands of times costs nothing here.
    pub(super) fn set(&self, group: &str, due: Duration) {
        let mut inner = self.inner.lock();
        let known = inner.by_group.get(group).copied();
        if known.is_some_and(|known| known <= due) {
            return;
        }
        if let Some(known) = known {
            inner.by_time.remove(&(known, group.to_owned()));
        }
        let is_first = inner.by_time.first().is_none_or(|(first, _)| due < *first);
        inner.by_time.insert((due, group.to_owned()));
        inner.by_group.insert(group.to_owned(), due);
        drop(inner);
        if is_first {
            self.wake.notify_one();
        }
    }

    /// Sleeps until groups are to be looked at, and takes them. `None`: it is time to stop.
    pub(super) fn next(&self, clock: &Clock) -> Option<Vec<String>> {
        let mut inner = self.inner.lock();
        loop {
            if inner.is_stopping {
                return None;
            }
            let now = clock.monotonic();
            let mut due = Vec::new();
            while inner.by_time.first().is_some_and(|(first, _)| *first <= now) {
                if let Some((_, group)) = inner.by_time.pop_first() {
                    inner.by_group.remove(&group);
                    due.push(group);
                }
            }
            if !due.is_empty() {
                return Some(due);
            }
            match inner.by_time.first().map(|(first, _)| first.saturating_sub(now)) {
                Some(left) => {
                    self.wake.wait_for(&mut inner, left);
                }
                None => self.wake.wait(&mut inner),
            }
        }
    }

    pub(super) fn stop(&self) {
        self.inner.lock().is_stopping = true;
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    #[test]
    fn the_earliest_counts_and_a_later_one_is_found_out_by_looking() {
        let clock = Clock::manual(Timestamp::from_millis(0));
        let start = clock.monotonic();
        let at = |ms| start + Duration::from_millis(ms);
        let timer = Timer::default();
        timer.set("a", at(50));
        timer.set("a", at(20));
        timer.set("a", at(90));
        timer.set("b", at(10));
        clock.advance(Duration::from_millis(15));
        assert_eq!(timer.next(&clock), Some(vec!["b".to_owned()]));
        clock.advance(Duration::from_millis(15));
        assert_eq!(timer.next(&clock), Some(vec!["a".to_owned()]));
        timer.set("a", at(90));
        clock.advance(Duration::from_millis(80));
        assert_eq!(timer.next(&clock), Some(vec!["a".to_owned()]));
        timer.stop();
        assert_eq!(timer.next(&clock), None);
    }
}
