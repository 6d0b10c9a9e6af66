//! How long a client waits, and for what it stops.

use std::{
    cell::Cell,
    thread,
    time::{Duration, Instant},
};

use super::connection::Lost;
use crate::{failure::Failure, stop::Stop};

/// How often a wait looks whether it is to end.
pub(super) const STEP: Duration = Duration::from_millis(50);
/// A connection is made within this time, or not.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// A request is answered within this time (beyond what it may wait itself), or the connection is given up.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// For so long is tried again what passes: leaders that move, brokers that start.
const TRIES: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// When to give up.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    stop: Stop,
    /// What is on its way when a signal comes may take so long still.
    grace: Duration,
    stopped: Cell<Option<Instant>>,
}

impl Patience {
    /// Ends at once with a signal or the time limit.
    pub(crate) fn new(stop: &Stop) -> Self {
        Self { stop: stop.clone(), grace: Duration::ZERO, stopped: Cell::new(None) }
    }

    /// What is on its way may come to its end.
    pub(crate) fn with_grace(stop: &Stop) -> Self {
        Self { grace: Duration::from_secs(5), ..Self::new(stop) }
    }

    /// `Err` once there is a reason to stop and the grace is over.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Err(reason) = self.stop.check() else { return Ok(()) };
        let since = self.stopped.get().unwrap_or_else(Instant::now);
        self.stopped.set(Some(since));
        if since.elapsed() >= self.grace { Err(reason) } else { Ok(()) }
    }

    /// `Err` where it is time to give up what began at `begun`; `what` did not come.
    pub(super) fn within(
        &self,
        limit: Duration,
        begun: Instant,
        what: impl FnOnce() -> String,
    ) -> Result<(), Lost> {
        self.check().map_err(Lost::Final)?;
        if begun.elapsed() < limit {
            return Ok(());
        }
        Err(Lost::Again(Failure::unreachable(what())))
    }

    /// Begins a row of tries.
    pub(crate) fn tries(&self) -> Tries<'_> {
        Tries { patience: self, begun: Instant::now(), pause: FIRST_PAUSE }
    }
}

/// Tries in a row, with pauses that grow.
pub(crate) struct Tries<'p> {
    patience: &'p Patience,
    begun: Instant,
    pause: Duration,
}

impl Tries<'_> {
    /// Sleeps before the next try; `failure` where there is none.
    pub(crate) fn again(&mut self, failure: Failure) -> Result<(), Failure> {
        // No new try is made once a signal has come.
        self.patience.stop.check()?;
        if self.begun.elapsed() >= TRIES {
            return Err(failure);
        }
        let until = Instant::now() + self.pause;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            thread::sleep(left.min(STEP));
            self.patience.stop.check()?;
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }

    /// The same for what passes soon, or is a mistake: no longer than `limit`.
    pub(crate) fn again_within(&mut self, limit: Duration, failure: Failure) -> Result<(), Failure> {
        if self.begun.elapsed() >= limit { Err(failure) } else { self.again(failure) }
    }
}
