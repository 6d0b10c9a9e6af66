//! `logctl topic rm`.

use std::process::ExitCode;

use super::{describe::Missing, names, place::Place};
use crate::{
    broker::BrokerArgs,
    consent::Consent,
    failure::Failure,
    globals::Globals,
    report::{Cell, Column, Rows},
};

/// Remove topics with all their records
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl topic rm -b localhost:9092 orders --dry-run
  logctl topic rm --dir data orders --yes")]
pub(super) struct Args {
    /// Topics
    #[arg(value_name = "TOPIC")]
    names: Vec<String>,
    #[command(flatten)]
    consent: Consent,
    /// JSON lines
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    broker: BrokerArgs,
}

const COLUMNS: &[Column] = &[
    Column::text("topic", "TOPIC"),
    Column::number("partitions", "PARTITIONS"),
    Column::number("offsets", "OFFSETS"),
];

pub(super) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let names = names(&args.names, globals);
    if names.is_empty() {
        return Err(
            Failure::usage("no topic given").hint("write its name: logctl topic rm -b HOST:PORT NAME")
        );
    }
    let place = Place::find(&args.broker, globals)?;
    let mut missing = Missing::default();
    let mut found = missing.look(&place, &names, globals)?;
    let mut out = globals.report(args.json)?;
    let stop = globals.stop();
    let mut rows = Rows::new("plan", COLUMNS);
    for topic in &mut found {
        stop.check()?;
        place.fill_offsets(topic)?;
        let many = |start: Option<i64>, end: Option<i64>| Some(end?.saturating_sub(start?).max(0));
        let offsets = topic.partitions.iter().filter_map(|partition| many(partition.start, partition.end));
        let offsets = offsets.fold(0_i64, i64::saturating_add);
        rows.push([Cell::text(&topic.name), Cell::number(topic.partitions.len()), Cell::number(offsets)]);
    }
    rows.print(&mut out, !globals.quiet)?;
    out.finish()?;
    if found.is_empty() || !args.consent.is_given()? {
        return missing.outcome();
    }
    for topic in &found {
        stop.check()?;
        place.remove(topic)?;
        globals.note(format!("removed topic `{}` from {}", topic.name, place.name()));
    }
    missing.outcome()
}
