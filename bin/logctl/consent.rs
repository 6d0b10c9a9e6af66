//! What every verb that destroys asks for: the plan first, then `--yes`.

use crate::failure::Failure;

/// `--yes` and `--dry-run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Consent {
    /// Do what the plan says; without this it is printed, nothing is done, and the exit code is 1
    #[arg(short, long)]
    yes: bool,
    /// Print the plan, do nothing, and end with exit code 0; where the log is locked the plan says by whom
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

impl Consent {
    /// True where nothing is to be done but to plan.
    pub(crate) fn only_plans(&self) -> bool {
        !self.yes
    }

    /// To be asked when the plan was printed. True: go on. False: the plan was all that was wanted.
    pub(crate) fn is_given(&self) -> Result<bool, Failure> {
        if self.yes || self.dry_run {
            return Ok(self.yes);
        }
        Err(Failure::other("nothing was changed")
            .hint("--yes does what the plan says; --dry-run prints it alone"))
    }
}
