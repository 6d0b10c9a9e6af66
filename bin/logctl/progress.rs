//! One line on standard error that says how far a long job is: only on a terminal, only after a second.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use crate::globals::Globals;

/// The line. Dropping it wipes it.
pub(crate) struct Progress {
    enabled: bool,
    shown: bool,
    label: &'static str,
    total_bytes: u64,
    started: Instant,
    due: Instant,
}

impl Progress {
    /// Nothing is drawn yet. `total_bytes`: 0 when it is not known.
    pub(crate) fn new(globals: &Globals, label: &'static str, total_bytes: u64) -> Self {
        let started = Instant::now();
        let due = started + Duration::from_secs(1);
        Self { enabled: globals.progress(), shown: false, label, total_bytes, started, due }
    }

    /// Tells how much is done; draws at most five times a second.
    pub(crate) fn update(&mut self, done_bytes: u64) {
        if !self.enabled || Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + Duration::from_millis(200);
        self.shown = true;
        let mib = done_bytes >> 20;
        let rate = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = mib.saturating_mul(1000) / rate;
        let label = self.label;
        let text = match done_bytes.saturating_mul(100).checked_div(self.total_bytes) {
            Some(percent) => format!("\r\x1b[K{label} {mib} MiB, {} %, {rate} MiB/s", percent.min(100)),
            None => format!("\r\x1b[K{label} {mib} MiB, {rate} MiB/s"),
        };
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
