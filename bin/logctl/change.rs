//! The frame of the verbs that change logs: every plan is printed before the first byte changes, `--yes` is asked for once,
//! then it goes log by log, each told when it is done.
//!
//! Holds always: without `--yes` nothing was changed; one log that fails hides none of the others.

use std::process::ExitCode;

use stratalog::{Error, LogWriter};

use crate::{
    consent::Consent,
    failure::Failure,
    globals::{Globals, warn},
    lock::tell_locked,
    output::Output,
    scope::Scope,
    target::Target,
};

/// What a verb does to one log.
pub(crate) trait Change {
    /// What it decided to do.
    type Plan;

    /// Looks at a log and prints what would be done there; `None` where nothing is to be done.
    fn plan(&self, target: &Target, out: &mut Output) -> Result<Option<Self::Plan>, Failure>;

    /// Does it, and prints what was done.
    fn apply(&self, target: &Target, plan: Self::Plan, out: &mut Output) -> Result<(), Failure>;
}

/// Closes a log from which something was taken. A disk so full that not even the marks of a closed log can be written is
/// no failure of that: what was done is durable.
pub(crate) fn close(writer: LogWriter, target: &Target) -> Result<(), Failure> {
    match writer.close() {
        Err(Error::StorageFull { .. }) => {
            let path = target.path.display();
            warn(&format!(
                "{path}: the disk is full: the log was not closed, and the next to open it reads its end again"
            ));
            Ok(())
        }
        closed => Ok(closed?),
    }
}

/// Plans, asks, and does it.
pub(crate) fn carry_out<C: Change>(
    change: &C,
    scope: Scope,
    consent: &Consent,
    (globals, json): (&Globals, bool),
) -> Result<ExitCode, Failure> {
    let mut out = globals.report(json)?;
    let stop = globals.stop();
    let mut due = Vec::new();
    let planned = scope.each(globals, |target| {
        stop.check()?;
        let plan = change.plan(target, &mut out)?;
        // With --yes the lock itself decides; where nothing is to be done nobody takes it.
        if consent.only_plans() || plan.is_none() {
            tell_locked(target, &mut out)?;
        }
        due.extend(plan.map(|plan| (target.clone(), plan)));
        out.spill()
    });
    out.flush()?;
    if planned.as_ref().is_err_and(Failure::ends_all) || due.is_empty() {
        out.finish()?;
        return planned.map(|()| ExitCode::SUCCESS);
    }
    match consent.is_given() {
        Ok(true) => {}
        Ok(false) => {
            out.finish()?;
            return planned.map(|()| ExitCode::SUCCESS);
        }
        Err(refused) => {
            out.finish()?;
            return Err(refused);
        }
    }
    let total = due.len();
    let mut finished = 0;
    let (targets, mut plans): (Vec<_>, std::collections::VecDeque<_>) = due.into_iter().unzip();
    let due = Scope { targets, directory: scope.directory };
    let done = due.each(globals, |target| {
        stop.check()?;
        if let Some(plan) = plans.pop_front() {
            change.apply(target, plan, &mut out)?;
            finished += 1;
        }
        // What is gone is told before the next log is touched.
        out.flush()
    });
    if done.as_ref().is_err_and(Failure::ends_all) && total > 1 {
        globals.note(format!("stopped: {finished} of {total} logs were changed, and these wholly"));
    }
    out.finish()?;
    done.and(planned).map(|()| ExitCode::SUCCESS)
}
