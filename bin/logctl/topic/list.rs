//! `logctl topic ls`.

use std::process::ExitCode;

use super::{place::Place, rows};
use crate::{broker::BrokerArgs, failure::Failure, globals::Globals};

/// List topics
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl topic ls -b localhost:9092
  logctl topic ls --dir data --internal")]
pub(super) struct Args {
    /// Also those of the broker itself, as `__consumer_offsets`
    #[arg(long)]
    internal: bool,
    /// JSON lines
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    broker: BrokerArgs,
}

pub(super) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let place = Place::find(&args.broker, globals)?;
    let mut found = place.look(&super::names(&[], globals), &mut Err)?;
    found.retain(|topic| args.internal || !topic.is_internal);
    let mut out = globals.report(args.json)?;
    rows::topics(&found, &mut out, !globals.quiet)?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}
