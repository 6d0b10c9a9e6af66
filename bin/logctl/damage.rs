//! What is done about stored bytes that cannot be read: the first ends the verb, or all are passed over and told.

use std::process::ExitCode;

use stratalog::Offset;

use crate::{
    failure::{Code, Failure},
    globals,
};

/// The damage of one walk.
#[derive(Debug)]
pub(crate) struct Damage {
    passes_over: bool,
    is_silent: bool,
    /// Where it began, and what it is: where it ends shows only later.
    open: Option<(Offset, String)>,
    was_met: bool,
}

impl Damage {
    /// With `pass_over` damage is told on standard error and left behind; else the first is a failure.
    pub(crate) fn new(pass_over: bool) -> Self {
        Self { passes_over: pass_over, is_silent: false, open: None, was_met: false }
    }

    /// Damage is left behind without a word: for a look ahead.
    pub(crate) fn ignored() -> Self {
        Self { is_silent: true, ..Self::new(true) }
    }

    /// A failed read: an error again, unless it is damage and passed over. What cannot be read begins at `from`.
    pub(crate) fn met(&mut self, from: Offset, failure: Failure) -> Result<(), Failure> {
        if failure.code != Code::Corrupt || !self.passes_over {
            return Err(failure);
        }
        self.was_met = true;
        match &mut self.open {
            Some((_, what)) => *what = format!("{what}; {}", failure.what()),
            None => self.open = Some((from, failure.what().to_owned())),
        }
        Ok(())
    }

    /// From here on there is something to read again, or nothing more. True where that ends a damage.
    pub(crate) fn ends_at(&mut self, at: Offset) -> bool {
        let Some((from, what)) = self.open.take() else { return false };
        if !self.is_silent {
            globals::warn(&if at > from {
                let count = at.since(from);
                format!("offsets {from} to {} cannot be read: {count} skipped: {what}", at.saturating_sub(1))
            } else {
                format!("damage before offset {at} skipped: {what}")
            });
        }
        true
    }

    /// How a verb ends that did all it could.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.was_met { ExitCode::from(Code::Corrupt.number()) } else { ExitCode::SUCCESS }
    }
}
