//! `logctl offsets`: the offset at a time, in the shape of Kafka's `GetOffsetShell`.

use std::{path::PathBuf, process::ExitCode};

use stratalog::{Access, Isolation, Offset, Timestamp};

use crate::{
    broker::{self, BrokerArgs, Patience, Place},
    failure::{Code, Failure},
    globals::Globals,
    grammar,
    output::Output,
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
  logctl offsets data/orders-0 --time -15m -J
  logctl offsets -b localhost:9092 orders --time earliest
  logctl offsets -b localhost:9092                   # of all topics")]
pub(crate) struct Args {
    /// A partition directory, one .log file, or a data directory; with -b a topic, or nothing for all
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// earliest (-2), latest (-1), max-timestamp (-3), or a time: the first record of that time or later
    #[arg(long, value_name = "WHEN", default_value = "latest", value_parser = when, allow_hyphen_values = true)]
    time: When,
    /// JSON lines
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    broker: BrokerArgs,
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
    if let Some(place) = Place::find(&args.broker, globals, args.target.as_deref(), Patience::new)? {
        return of_brokers(args, globals, &place);
    }
    let scope = Scope::find(globals, args.target.as_deref())?;
    let mut out = globals.report(args.json)?;
    let outcome = scope.each(globals, |target| print(target, look(target, args.time)?, &mut out));
    out.finish()?;
    outcome.map(|()| ExitCode::SUCCESS)
}

/// A line, or an object.
fn print(target: &Target, offset: Option<Offset>, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        let mut rows = Rows::new("offset", COLUMNS);
        rows.push([
            target.topic().map_or(Cell::Absent, Cell::text),
            Cell::maybe(target.partition_number()),
            Cell::text(target.path.to_string_lossy()),
            Cell::maybe(offset),
        ]);
        return rows.print(out, false);
    }
    let name = match (target.topic(), target.partition_number()) {
        (Some(topic), Some(partition)) => format!("{topic}:{partition}"),
        _ => target.path.display().to_string(),
    };
    let offset = offset.map(|offset| offset.to_string()).unwrap_or_default();
    out.foreign(format!("{name}:{offset}\n").as_bytes())
}

/// The same of the partitions of a topic, or of all topics but the broker's own.
fn of_brokers(args: &Args, globals: &Globals, place: &Place) -> Result<ExitCode, Failure> {
    let topics = if let Some(topic) = place.named_topic() {
        vec![topic.to_owned()]
    } else {
        let told = place.client().borrow_mut().look(None)?;
        told.into_iter().filter(|topic| !topic.is_internal).map(|topic| topic.name).collect()
    };
    let mut out = globals.report(args.json)?;
    let at = match args.time {
        When::Earliest => broker::EARLIEST,
        When::Latest => broker::LATEST,
        When::Newest => broker::NEWEST,
        When::At(at) => broker::asked(at),
    };
    let stop = globals.stop();
    let is_many = topics.len() > 1;
    let mut failed = 0_usize;
    for topic in &topics {
        stop.check()?;
        let targets = place.partitions(topic)?;
        let number =
            |target: &Target| target.partition_number().and_then(|number| i32::try_from(number).ok());
        let numbers: Vec<i32> = targets.iter().filter_map(number).collect();
        let told = place.client().borrow_mut().list_offsets(topic, &numbers, at, Isolation::Uncommitted)?;
        for (target, (_, offset)) in targets.iter().zip(told) {
            match offset {
                Ok(offset) => print(target, Offset::new(offset), &mut out)?,
                Err(failure) if targets.len() == 1 && !is_many => return Err(failure),
                Err(failure) => {
                    failed += 1;
                    globals.complain(&failure);
                }
            }
        }
    }
    out.finish()?;
    if failed > 0 { Err(Failure::quiet(Code::Partly)) } else { Ok(ExitCode::SUCCESS) }
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
                Source::Broker(partition) => return partition.newest(),
            };
            let newest = newest.filter(|at| *at > Timestamp::NONE);
            newest.map_or(Ok(None), |newest| source.first_not_before(newest))
        }
    }
}
