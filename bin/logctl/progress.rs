//! One line on standard error that says how far a long job is: only on a terminal, only after a second, and gone when the
//! job is done.

use std::{
    env,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::globals::Globals;

/// Nothing is drawn before: what is done sooner needs no line.
const AFTER: Duration = Duration::from_secs(1);
/// How often it is drawn, in a second.
const RATE: u8 = 8;
const KNOWN: &str =
    "{msg} [{bar:24}] {percent} % {binary_bytes}/{binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
const UNKNOWN: &str = "{msg} {binary_bytes}, {binary_bytes_per_sec}";

/// The line. Dropping it wipes it.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// When it is to appear; `None` once it has.
    due: Option<Instant>,
}

impl Progress {
    /// Nothing is drawn yet. `total_bytes`: 0 when it is not known.
    pub(crate) fn new(globals: &Globals, label: &'static str, total_bytes: u64) -> Self {
        let due = Instant::now().checked_add(AFTER);
        if !globals.progress() || is_dumb(env::var("TERM").ok().as_deref()) {
            return Self { bar: None, due };
        }
        Self { bar: Some(bar(label, total_bytes, ProgressDrawTarget::hidden())), due }
    }

    /// Tells how much is done, as often as one likes.
    pub(crate) fn update(&mut self, done_bytes: u64) {
        let Some(bar) = &self.bar else { return };
        if let Some(due) = self.due {
            if Instant::now() < due {
                return;
            }
            self.due = None;
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(RATE));
        }
        bar.set_position(done_bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(label: &'static str, total_bytes: u64, target: ProgressDrawTarget) -> ProgressBar {
    let (total, template) = if total_bytes > 0 { (Some(total_bytes), KNOWN) } else { (None, UNKNOWN) };
    // A template of our own is right, or the test below fails.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(total, target);
    bar.set_style(style.progress_chars("=> "));
    bar.set_message(label);
    bar
}

/// A terminal that cannot wipe a line.
fn is_dumb(term: Option<&str>) -> bool {
    term == Some("dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_sound() {
        for template in [KNOWN, UNKNOWN] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn a_dumb_terminal_is_spared() {
        assert!(is_dumb(Some("dumb")));
        assert!(!is_dumb(Some("xterm-256color")) && !is_dumb(None));
    }
}
