//! Waiting for more records, and learning that old ones were cut.

use std::{
    io,
    os::fd::OwnedFd,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use super::{reader::LogReader, shared::Wait, view::Position, watch::watch};
use crate::{config::is_past, error::Error, offset::Offset, sys::Event};

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
        let begun: Vec<Offset> = {
            let epochs = self.shared().epochs.read();
            let higher = epochs.entries().iter().filter(|entry| entry.0 > epoch && entry.1 < at.offset);
            higher.map(|entry| entry.1).collect()
        };
        let end = self.shared().written();
        let cut = if begun.is_empty() { None } else { self.borne_out(epoch, at.offset, &begun) };
        cut.or((at.offset > end).then_some(end))
    }

    /// The first of these places, at which higher epochs are said to have begun, where the batches say so too. A file of
    /// epochs that rotted, or is another time's, is no cut.
    #[cold]
    fn borne_out(&self, epoch: i32, at: Offset, begun: &[Offset]) -> Option<Offset> {
        self.borrow_memory(|window, _| {
            let mut batch_at = |offset: Offset| {
                let found = self.locate(offset.max(self.start()), window);
                window.clear();
                found.map(|found| {
                    found.map(|(_, found)| (found.header.base_offset(), found.header.leader_epoch()))
                })
            };
            let before = at.saturating_sub(1);
            let last = batch_at(before).ok().flatten().filter(|(base, _)| *base <= before);
            if last.is_some_and(|(_, found)| found == epoch) {
                return None;
            }
            let is_of_another = |found: i32| !(0..=epoch).contains(&found);
            let mut places = begun.iter().copied();
            let place = places.find(|start| match batch_at(*start) {
                Ok(Some((base, found))) if base < at => is_of_another(found),
                // Retention took it, which whoever reads on is told.
                Err(Error::OffsetOutOfRange { .. }) => false,
                // No batch says otherwise.
                Ok(_) | Err(_) => true,
            });
            // It was cut, and the file does not say where: rather too early than too late.
            place.or_else(|| last.filter(|(_, found)| is_of_another(*found)).and(begun.first().copied()))
        })
    }

    /// Sleeps until there is a record at or past `at`, or the deadline.
    ///
    /// A reader of another process's log is woken by its writer, through a page that both have mapped. One that may not
    /// write to that page (it stores one flag there), or whose log has no writer that lives, looks every 10 ms.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use stratalog::{AppendOptions, LogConfig, LogReader, LogWriter, OpenMode, Position, ReadOptions, Wait, record::Record};
    ///
    /// # let temp = tempfile::tempdir().unwrap();
    /// # let dir = temp.path().join("orders-0");
    /// # let mut config = LogConfig::default();
    /// # config.open = OpenMode::CreateIfMissing;
    /// # let mut log = LogWriter::open(&dir, config)?;
    /// # log.append_records(&[Record::value_only(b"a")], AppendOptions::default())?;
    /// let reader = LogReader::open(&dir, ReadOptions::default())?;
    /// let mut at = Position::from(reader.start());
    /// let mut seen = 0;
    /// loop {
    ///     for record in reader.owned_records(at) {
    ///         at = Position::after(&record?);
    ///         seen += 1;
    ///     }
    ///     match reader.wait_past(at, Instant::now() + Duration::from_millis(20)) {
    ///         Wait::Advanced => {}
    ///         // The records from `end` on are other ones now: what was made of them is to be taken back.
    ///         Wait::Truncated { end } => at.offset = end,
    ///         // Nothing came in time; a program that follows for ever goes on at `TimedOut`.
    ///         _ => break,
    ///     }
    /// }
    /// assert_eq!(seen, 1);
    /// # Ok::<(), stratalog::Error>(())
    /// ```
    pub fn wait_past(&self, at: impl Into<Position>, deadline: Instant) -> Wait {
        let at = at.into();
        let Some(follower) = &self.inner.follower else { return self.wait_inside(at, deadline) };
        loop {
            if let Err(error) = follower.look(self.shared()) {
                tracing::debug!(%error, "refresh");
            }
            if let Some(done) = self.told(at) {
                return done;
            }
            if is_past(deadline) {
                return Wait::TimedOut;
            }
            let look = || follower.has_moved() || self.told(at).is_some();
            follower.sleeper().sleep(self.shared(), deadline, look);
        }
    }

    /// The same in the writer's process. What committed reads come to takes a look at the log, so it is asked for while
    /// nothing is locked that a writer needs.
    fn wait_inside(&self, at: Position, deadline: Instant) -> Wait {
        loop {
            let seen = self.followed_end();
            if let Some(done) = self.told(at) {
                return done;
            }
            if is_past(deadline) {
                return Wait::TimedOut;
            }
            let has_moved = || self.followed_end() != seen || self.shared().is_over();
            if !self.shared().waiters().wait_until(deadline, has_moved) {
                return Wait::TimedOut;
            }
        }
    }

    /// The same for a task that must not block: ready, or woken once there may be more.
    ///
    /// For a log that another process writes this starts a thread, one for all clones of the reader, which sleeps in the
    /// task's place. It ends soon after nobody waits any more, or the reader is gone.
    pub fn poll_past(&self, at: impl Into<Position>, context: &mut Context<'_>) -> Poll<Wait> {
        let at = at.into();
        self.shared().waiters().register(context.waker());
        if let Some(follower) = &self.inner.follower {
            if let Err(error) = watch(&self.inner) {
                // Without a thread nobody else wakes it.
                tracing::warn!(%error, "no thread to wait for another process: the task polls");
                context.waker().wake_by_ref();
            }
            if let Err(error) = follower.look(self.shared()) {
                tracing::debug!(%error, "refresh");
            }
        }
        match self.told(at) {
            Some(done) => Poll::Ready(done),
            None => Poll::Pending,
        }
    }

    /// Takes back what [`LogReader::poll_past`] asked for: who polled and will not look again, because its time is up or its
    /// task is dropped, is held until the log moves otherwise, which may be never.
    pub fn forget_waker(&self, waker: &Waker) {
        self.shared().waiters().forget(waker);
    }

    /// A descriptor for somebody else's event loop: readable (`POLLIN`) from now on, and again each time there may be more,
    /// until it is read (8 bytes, an `eventfd`). So: wait for it, read it, [`LogReader::refresh`], read the log to its
    /// end, and begin again.
    ///
    /// Each call makes a descriptor of its own, which is signalled as long as this reader or a clone of it lives. For a log
    /// that another process writes a thread is started, one for all clones, which sleeps until that process publishes
    /// something; it ends within a second of the last clone.
    pub fn event_fd(&self) -> io::Result<OwnedFd> {
        let event = Arc::new(Event::new()?);
        let descriptor = event.descriptor()?;
        self.shared().waiters().register_event(&event);
        self.inner.events.lock().push(event);
        watch(&self.inner)?;
        Ok(descriptor)
    }

    /// What a wait for more than `at` comes to, as things stand.
    fn told(&self, at: Position) -> Option<Wait> {
        // In the writer's own process nothing is ever cut.
        if self.is_following()
            && let Some(end) = self.cut_below(at)
        {
            return Some(Wait::Truncated { end });
        }
        if self.end() > at.offset {
            return Some(Wait::Advanced);
        }
        if let Some(end) = self.cut_below(at) {
            return Some(Wait::Truncated { end });
        }
        (!self.is_following() && self.shared().is_over()).then_some(Wait::Closed)
    }
}
