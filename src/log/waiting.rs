//! Waiting for more records, and learning that old ones were cut.

use std::{
    task::{Context, Poll},
    time::{Duration, Instant},
};

use super::{reader::LogReader, shared::Wait, view::Position};
use crate::{
    config::{deadline_in, is_past},
    offset::Offset,
};

/// How long a reader of another process sleeps between two looks.
const SHORTEST_NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(10);

impl LogReader {
    /// The largest leader epoch not above `epoch` and the offset where it ends; `None` where that is not known.
    pub fn end_offset_for_epoch(&self, epoch: i32) -> Option<(i32, Offset)> {
        self.shared().epochs.read().end_offset_for(epoch, self.shared().written())
    }

    /// Which leader epoch began at which offset, oldest first.
    pub fn leader_epochs(&self) -> Vec<(i32, Offset)> {
        self.shared().epochs.read().entries().to_vec()
    }

    /// Where the records that `at` was told by were cut, if they were.
    pub(super) fn cut_below(&self, at: Position) -> Option<Offset> {
        // Who has read nothing has nothing to lose: an offset past the end is only out of range then. Batches without an
        // epoch (-1) tell nothing.
        let epoch = at.leader_epoch.filter(|epoch| *epoch >= 0)?;
        let end = self.shared().written();
        let cut = self.end_offset_for_epoch(epoch).map(|(_, end)| end);
        cut.filter(|cut| *cut < at.offset).or((at.offset > end).then_some(end))
    }

    /// Sleeps until there is a record at or past `at`, or the deadline.
    pub fn wait_past(&self, at: impl Into<Position>, deadline: Instant) -> Wait {
        let at = at.into();
        let mut nap = SHORTEST_NAP;
        loop {
            if let Some(done) = self.look(at) {
                return done;
            }
            if !self.is_following() {
                let moved = self.shared().waiters().wait_until(deadline, || self.look(at).is_some());
                return if moved { self.look(at).unwrap_or(Wait::TimedOut) } else { Wait::TimedOut };
            }
            if is_past(deadline) {
                return Wait::TimedOut;
            }
            let until = deadline.min(deadline_in(nap));
            self.shared().waiters().wait_until(until, || false);
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }

    /// The same for a task that must not block: ready, or woken once there may be more. A reader of another process has
    /// nobody to wake it and is told to look again at once.
    pub fn poll_past(&self, at: impl Into<Position>, context: &mut Context<'_>) -> Poll<Wait> {
        let at = at.into();
        self.shared().waiters().register(context.waker());
        if let Some(done) = self.look(at) {
            return Poll::Ready(done);
        }
        if self.is_following() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn look(&self, at: Position) -> Option<Wait> {
        if self.end() > at.offset && !self.is_following() {
            return Some(Wait::Advanced);
        }
        if let Err(error) = self.refresh() {
            tracing::debug!(%error, "refresh");
        }
        if let Some(end) = self.cut_below(at) {
            return Some(Wait::Truncated { end });
        }
        if self.end() > at.offset {
            return Some(Wait::Advanced);
        }
        (!self.is_following() && self.shared().is_over()).then_some(Wait::Closed)
    }
}
