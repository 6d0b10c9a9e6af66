//! `logctl offsets`: the offset at a time, in the shape of Kafka's `GetOffsetShell`.

use std::{path::PathBuf, process::ExitCode};

use stratalog::{Access, Isolation, Offset, Timestamp};

use crate::{
    failure::Failure,
    globals::Globals,
    grammar,
    report::{Cell, Column, Rows},
    scope::Scope,
    source::Source,
    target::Target,
};

/// Print offsets: the first, the next to be written, the first of a time
///
/// A line `TOPIC:PARTITION:OFFSET` for each partition; nothing after the last colon where there is no such record.
#[derive(Debug, clap::Args)]
#[command(visible_alias = "query")]
#[command(after_long_help = "\
Examples:
  logctl offsets data/orders-0
  logctl offsets data --time earliest                # every partition of a data directory
  logctl offsets data/orders-0 --time 2026-11-30T08:00:00Z
  logctl offsets data/orders-0 --time -15m -J")]
pub(crate) struct Args {
    /// A partition directory, one .log file, or a data directory
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// earliest (-2), latest (-1), max-timestamp (-3), or a time: the first record of that time or later
    #[arg(long, value_name = "WHEN", default_value = "latest", value_parser = when, allow_hyphen_values = true)]
    time: When,
    /// JSON lines
    #[arg(short = 'J', long)]
    json: bool,
}

/// `--time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Earliest,
    Latest,
    /// The record with the largest timestamp.
    Newest,
    At(Timestamp),
}

fn when(text: &str) -> Result<When, String> {
    Ok(match text {
        "earliest" | "start" | "-2" => When::Earliest,
        "latest" | "end" | "-1" => When::Latest,
        "max-timestamp" | "-3" => When::Newest,
        _ => When::At(grammar::signed_time(text)?),
    })
}

const COLUMNS: &[Column] =
    &[Column::field("topic"), Column::field("partition"), Column::field("path"), Column::field("offset")];

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let scope = Scope::find(globals, args.target.as_deref())?;
    let mut out = globals.report(args.json)?;
    let outcome = scope.each(globals, |target| {
        let offset = look(target, args.time)?;
        if out.is_json() {
            let mut rows = Rows::new("offset", COLUMNS);
            rows.push([
                target.topic().map_or(Cell::Absent, Cell::text),
                Cell::maybe(target.partition_number()),
                Cell::text(target.path.to_string_lossy()),
                Cell::maybe(offset),
            ]);
            return rows.print(&mut out, false);
        }
        let name = match (target.topic(), target.partition_number()) {
            (Some(topic), Some(partition)) => format!("{topic}:{partition}"),
            _ => target.path.display().to_string(),
        };
        let offset = offset.map(|offset| offset.to_string()).unwrap_or_default();
        out.foreign(format!("{name}:{offset}\n").as_bytes())
    });
    out.finish()?;
    outcome.map(|()| ExitCode::SUCCESS)
}

fn look(target: &Target, time: When) -> Result<Option<Offset>, Failure> {
    let source = Source::open(target, Access::Normal, Isolation::Uncommitted)?;
    match time {
        When::Earliest => Ok(Some(source.start())),
        When::Latest => Ok(Some(source.end())),
        When::At(at) => source.first_not_before(at),
        When::Newest => {
            let newest = match &source {
                Source::Log(reader) => reader.max_timestamp()?.map(|(newest, _)| newest),
                Source::File(file) => file.max_timestamp()?,
            };
            let newest = newest.filter(|at| *at > Timestamp::NONE);
            newest.map_or(Ok(None), |newest| source.first_not_before(newest))
        }
    }
}
