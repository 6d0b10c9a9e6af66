//! `logctl topic describe` and `logctl topic config`: what there is to know of topics.

use std::process::ExitCode;

use super::{names, place::Place, rows};
use crate::{
    broker::BrokerArgs,
    failure::{Code, Failure},
    globals::Globals,
};

/// Describe topics: partitions with their offsets, leaders and replicas, and what each topic was told
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl topic describe -b localhost:9092 orders
  logctl topic describe --dir data -J                # every topic")]
pub(super) struct Args {
    /// Topics; default: all but the broker's own
    #[arg(value_name = "TOPIC")]
    names: Vec<String>,
    /// JSON lines: an object for each topic, partition and setting
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    broker: BrokerArgs,
}

/// Print the settings of topics
///
/// Those that a topic was told itself; with --all also those that it has from its broker or by default.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl topic config -b localhost:9092 orders --all
  logctl topic config --dir data orders")]
pub(super) struct ConfigArgs {
    /// Topics; default: all but the broker's own
    #[arg(value_name = "TOPIC")]
    names: Vec<String>,
    /// All settings that hold, wherever their values come from (of brokers)
    #[arg(long)]
    all: bool,
    /// JSON lines
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    broker: BrokerArgs,
}

pub(super) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let place = Place::find(&args.broker, globals)?;
    let mut missing = Missing::default();
    let mut found = missing.look(&place, &names(&args.names, globals), globals)?;
    let mut out = globals.report(args.json)?;
    let stop = globals.stop();
    let mut is_first = true;
    for topic in &mut found {
        stop.check()?;
        place.fill_offsets(topic)?;
        let mut settings = place.settings(topic)?;
        settings.retain(|setting| setting.is_own);
        let is_table = !out.is_json();
        let between = |out: &mut crate::output::Output| if is_table { out.line("") } else { Ok(()) };
        if !std::mem::take(&mut is_first) {
            between(&mut out)?;
        }
        rows::topics(std::slice::from_ref(topic), &mut out, !globals.quiet)?;
        between(&mut out)?;
        rows::partitions(topic, &mut out, !globals.quiet)?;
        if !settings.is_empty() {
            between(&mut out)?;
            rows::settings(&topic.name, &settings, &mut out, !globals.quiet)?;
        }
    }
    out.finish()?;
    missing.outcome()
}

pub(super) fn run_config(args: &ConfigArgs, globals: &Globals) -> Result<ExitCode, Failure> {
    let place = Place::find(&args.broker, globals)?;
    if args.all && matches!(place, Place::Directory(_)) {
        return Err(Failure::usage("what a topic of a directory is not told, its server decides")
            .hint("ask the server with -b; `logctl serve --print-config` prints what it would go by"));
    }
    let mut missing = Missing::default();
    let found = missing.look(&place, &names(&args.names, globals), globals)?;
    let mut out = globals.report(args.json)?;
    let stop = globals.stop();
    for (nth, topic) in found.iter().enumerate() {
        stop.check()?;
        let mut settings = place.settings(topic)?;
        settings.retain(|setting| args.all || setting.is_own);
        rows::settings(&topic.name, &settings, &mut out, nth == 0 && !globals.quiet)?;
    }
    out.finish()?;
    missing.outcome()
}

/// Topics that were named and are not there: of one that is the failure, of several each is told and the others go on.
#[derive(Default)]
pub(super) struct Missing(usize);

impl Missing {
    /// The topics that are there. Where none is named, all but the broker's own.
    pub(super) fn look(
        &mut self,
        place: &Place,
        names: &[String],
        globals: &Globals,
    ) -> Result<Vec<rows::Topic>, Failure> {
        let mut found = place.look(names, &mut |failure| {
            if names.len() == 1 {
                return Err(failure);
            }
            self.0 += 1;
            globals.complain(&failure);
            Ok(())
        })?;
        found.retain(|topic| !names.is_empty() || !topic.is_internal);
        Ok(found)
    }

    /// How a verb ends that did the others.
    pub(super) fn outcome(self) -> Result<ExitCode, Failure> {
        if self.0 > 0 { Err(Failure::quiet(Code::Partly)) } else { Ok(ExitCode::SUCCESS) }
    }
}
