//! `logctl offsets`: the offset at a time, in the shape of Kafka's `GetOffsetShell`.

use std::{path::PathBuf, process::ExitCode};

use stratalog::{Access, Isolation, Offset, Timestamp};

use crate::{
    failure::{Code, Failure},
    globals::{self, Globals},
    grammar,
    json_line::ObjectLine,
    ls::partitions_of,
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
        _ => When::At(grammar::time(text.strip_prefix('@').unwrap_or(text))?),
    })
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let directory = args.target.clone().or_else(|| globals.dir.clone());
    let mut out = globals.stdout()?;
    let mut failed = None;
    let partitions = directory.as_deref().filter(|_| globals.topic.is_none()).and_then(partitions_of);
    if let Some(partitions) = partitions {
        for found in partitions {
            match look(&Target::new(found.path.clone(), false), args.time) {
                Ok(offset) => {
                    print(args, out.buffer(), &format!("{}:{}", found.topic, found.partition), offset);
                }
                Err(failure) => {
                    globals::eprint(&format!("error: {}: {failure}", found.path.display()));
                    failed = Some(Failure::quiet(Code::Partly));
                }
            }
            out.spill()?;
        }
    } else {
        let target = Target::existing(globals, args.target.as_deref())?;
        let name = match (target.topic(), target.partition_number()) {
            (Some(topic), Some(partition)) => format!("{topic}:{partition}"),
            _ => target.path.display().to_string(),
        };
        let offset = look(&target, args.time)?;
        print(args, out.buffer(), &name, offset);
    }
    out.flush()?;
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
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

fn print(args: &Args, out: &mut Vec<u8>, name: &str, offset: Option<Offset>) {
    if args.json {
        let (topic, partition) = name.rsplit_once(':').unwrap_or((name, ""));
        ObjectLine::new(out, "offset")
            .text("topic", topic)
            .maybe("partition", partition.parse::<u32>().ok())
            .maybe("offset", offset)
            .end();
        return;
    }
    let offset = offset.map(|offset| offset.to_string()).unwrap_or_default();
    out.extend_from_slice(format!("{name}:{offset}\n").as_bytes());
}
