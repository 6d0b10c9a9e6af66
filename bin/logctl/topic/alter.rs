//! `logctl topic alter`: settings set and unset, partitions added.

use std::process::ExitCode;

use super::{describe::Missing, names, pair, place::Place};
use crate::{
    broker::{BrokerArgs, admin::Change},
    consent::Consent,
    failure::Failure,
    globals::Globals,
    report::{Cell, Column, Rows},
};

/// Change the settings of topics, or add partitions
///
/// The plan is printed first, and done with --yes: a setting such as retention.ms may delete records, and partitions that
/// were added stay, while keys go to other ones than before.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl topic alter -b localhost:9092 orders --set retention.ms=-1 --yes
  logctl topic alter -b localhost:9092 orders --unset retention.ms --dry-run
  logctl topic alter --dir data orders --partitions 6 --dry-run")]
pub(super) struct Args {
    /// Topics
    #[arg(value_name = "TOPIC")]
    names: Vec<String>,
    /// So many partitions are to be there; more than there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    partitions: Option<i32>,
    /// Set a setting, as retention.ms=86400000; repeat for more
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Take a setting back to what it is by default; repeat for more
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
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
    Column::text("key", "KEY"),
    Column::text("from", "FROM"),
    Column::text("to", "TO"),
];

pub(super) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let names = names(&args.names, globals);
    if names.is_empty() {
        return Err(
            Failure::usage("no topic given").hint("write its name: logctl topic alter -b HOST:PORT NAME")
        );
    }
    let set = args.set.iter().map(|(name, value)| Change::Set(name.clone(), value.clone()));
    let changes: Vec<Change> = set.chain(args.unset.iter().cloned().map(Change::Unset)).collect();
    if changes.is_empty() && args.partitions.is_none() {
        return Err(
            Failure::usage("nothing to change").hint("give --set KEY=VALUE, --unset KEY or --partitions N")
        );
    }
    let place = Place::find(&args.broker, globals)?;
    let mut missing = Missing::default();
    let found = missing.look(&place, &names, globals)?;
    let mut out = globals.report(args.json)?;
    let stop = globals.stop();
    let mut rows = Rows::new("plan", COLUMNS);
    for topic in &found {
        stop.check()?;
        // What cannot be done is told before anything is.
        place.change(topic, &changes, args.partitions, true)?;
        let before = place.settings(topic)?;
        let value = |name: &str| {
            let known = before.iter().find(|setting| setting.name == name);
            known.and_then(|setting| setting.value.clone()).map_or(Cell::Absent, Cell::Text)
        };
        for change in &changes {
            let (name, to) = match change {
                Change::Set(name, to) => (name, Cell::text(to)),
                Change::Unset(name) => (name, Cell::text("(default)")),
            };
            rows.push([Cell::text(&topic.name), Cell::text(name), value(name), to]);
        }
        if let Some(count) = args.partitions {
            let have = Cell::text(topic.partitions.len().to_string());
            rows.push([
                Cell::text(&topic.name),
                Cell::text("(partitions)"),
                have,
                Cell::text(count.to_string()),
            ]);
        }
    }
    rows.print(&mut out, !globals.quiet)?;
    out.finish()?;
    if !args.consent.is_given()? {
        return missing.outcome();
    }
    for topic in &found {
        stop.check()?;
        place.change(topic, &changes, args.partitions, false)?;
        globals.note(format!("changed topic `{}`", topic.name));
    }
    missing.outcome()
}
