//! When to stop early: SIGINT, SIGTERM, `--timeout`.
//!
//! A verb asks between two units of its work, finishes the unit it is in, and ends with [`Stop::check`]'s failure. A
//! second signal ends the process at once.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::{Code, Failure};

/// Watches for signals and the deadline.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    signal: Arc<AtomicUsize>,
    deadline: Option<Instant>,
}

impl Stop {
    /// Starts to watch. From now on the first SIGINT or SIGTERM only leaves a note.
    pub(crate) fn watch(timeout: Option<Duration>) -> Self {
        static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
        let signal = SIGNAL.get_or_init(|| {
            let signal = Arc::new(AtomicUsize::new(0));
            let again = Arc::new(AtomicBool::new(false));
            for (number, value, code) in [(SIGINT, 2, 130), (SIGTERM, 15, 143)] {
                // Order matters: the shutdown looks at `again` before this very signal sets it. Where a handler cannot
                // be set the signal keeps its default, which ends the process: nothing acknowledged is lost by it.
                let _ = signal_hook::flag::register_conditional_shutdown(number, code, Arc::clone(&again));
                let _ = signal_hook::flag::register(number, Arc::clone(&again));
                let _ = signal_hook::flag::register_usize(number, Arc::clone(&signal), value);
            }
            signal
        });
        Self {
            signal: Arc::clone(signal),
            deadline: timeout.and_then(|after| Instant::now().checked_add(after)),
        }
    }

    /// Why to stop now, if there is a reason.
    pub(crate) fn reason(&self) -> Option<Code> {
        match self.signal.load(Ordering::Relaxed) {
            0 => self.deadline.filter(|at| Instant::now() >= *at).map(|_| Code::TimedOut),
            number => Some(Code::Signal(i32::try_from(number).unwrap_or(i32::MAX))),
        }
    }

    /// `Err` once there is a reason to stop: quiet for a signal, with a word for the deadline.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.reason() {
            None => Ok(()),
            Some(Code::TimedOut) => Err(Failure::new(Code::TimedOut, "the time given by --timeout is over")),
            Some(code) => Err(Failure::quiet(code)),
        }
    }

    /// The earlier of `at` and the deadline.
    pub(crate) fn no_later_than(&self, at: Instant) -> Instant {
        self.deadline.map_or(at, |deadline| deadline.min(at))
    }
}
