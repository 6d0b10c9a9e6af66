//! `logctl ls`: the partitions of a data directory, or the segments of one partition.

use std::{path::PathBuf, process::ExitCode};

use stratalog::{LockHolder, LogReader, LogStats, ReadOptions, Timestamp};

use crate::{
    failure::Failure,
    globals::Globals,
    lock::{holder_of, lock_text},
    report::{Cell, Column, Rows},
    scope::Scope,
    target::Target,
};

/// List the partitions of a data directory, or the segments of a partition
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
NEWEST is the largest timestamp; - where there is none, or where only reading would tell (as in the
last segment, if another holds the newest of the log).

Exit code 8: some partitions could not be read; the others are listed.

Examples:
  logctl ls data                    # each partition: offsets, segments, bytes
  logctl ls data/orders-0           # each segment of one
  logctl ls data --sort bytes -J | jq -r .path")]
pub(crate) struct Args {
    /// A data directory or a partition directory
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// What to sort partitions by; numbers: the largest first
    #[arg(long, value_enum, value_name = "BY", default_value = "name")]
    sort: Sort,
    /// Also who holds each partition's lock
    #[arg(short = 'l', long)]
    long: bool,
    /// JSON lines: an object for each partition or segment
    #[arg(short = 'J', long)]
    json: bool,
}

/// `--sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    Name,
    Bytes,
    Records,
}

const PARTITIONS: &[Column] = &[
    Column::heading("PARTITION"),
    Column::field("path"),
    Column::field("topic"),
    Column::field("partition"),
    Column::number("start", "START"),
    Column::number("end", "END"),
    Column::number("segments", "SEGMENTS"),
    Column::number("bytes", "BYTES"),
    Column::field("clean"),
    Column::field("locked"),
    Column::field("lock"),
];

/// `--long`.
const PARTITIONS_LONG: &[Column] = &[
    Column::heading("PARTITION"),
    Column::field("path"),
    Column::field("topic"),
    Column::field("partition"),
    Column::number("start", "START"),
    Column::number("end", "END"),
    Column::number("segments", "SEGMENTS"),
    Column::number("bytes", "BYTES"),
    Column::field("clean"),
    Column::field("locked"),
    Column::text("lock", "LOCK"),
];

const SEGMENTS: &[Column] = &[
    Column::field("file"),
    Column::number("base_offset", "BASE"),
    Column::number("next_offset", "NEXT"),
    Column::number("bytes", "BYTES"),
    Column::text("max_timestamp", "NEWEST"),
    Column::field("sealed"),
    Column::heading("FILE"),
];

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let scope = Scope::find(globals, args.target.as_deref())?;
    let mut out = globals.report(args.json)?;
    let (rows, outcome) =
        if scope.is_many() { partitions(args, &scope, globals) } else { (segments(&scope)?, Ok(())) };
    rows.print(&mut out, !globals.quiet)?;
    out.finish()?;
    outcome.map(|()| ExitCode::SUCCESS)
}

fn partitions(args: &Args, scope: &Scope, globals: &Globals) -> (Rows, Result<(), Failure>) {
    let mut found: Vec<(&Target, LogStats, Option<LockHolder>)> = Vec::new();
    let open = |target: &Target| LogReader::open(&target.path, ReadOptions::default());
    let outcome = scope.each(globals, |target| {
        found.push((target, open(target)?.stats(), holder_of(target)?));
        Ok(())
    });
    let records = |stats: &LogStats| stats.end.since(stats.start);
    match args.sort {
        Sort::Name => {}
        Sort::Bytes => found.sort_by_key(|(_, stats, _)| std::cmp::Reverse(stats.bytes)),
        Sort::Records => found.sort_by_key(|(_, stats, _)| std::cmp::Reverse(records(stats))),
    }
    let mut rows = Rows::new("partition", if args.long { PARTITIONS_LONG } else { PARTITIONS });
    for (target, stats, holder) in found {
        let (topic, partition) = (target.topic().unwrap_or_default(), target.partition_number());
        rows.push([
            Cell::text(format!("{topic}-{}", partition.unwrap_or_default())),
            Cell::text(target.path.to_string_lossy()),
            Cell::text(topic),
            Cell::maybe(partition),
            Cell::number(stats.start),
            Cell::number(stats.end),
            Cell::number(stats.segments),
            Cell::number(stats.bytes),
            Cell::Flag(stats.clean),
            Cell::Flag(holder.is_some()),
            Cell::text(lock_text(holder.as_ref())),
        ]);
    }
    (rows, outcome)
}

fn segments(scope: &Scope) -> Result<Rows, Failure> {
    let mut rows = Rows::new("segment", SEGMENTS);
    for target in &scope.targets {
        if target.is_file {
            return Err(Failure::usage(format!("{}: a file", target.path.display()))
                .hint("`logctl info` shows what a segment holds"));
        }
        let reader = LogReader::open(&target.path, ReadOptions::default())?;
        let of_log = reader.max_timestamp()?;
        for segment in reader.segments() {
            let holds = |offset| segment.base_offset <= offset && offset < segment.next_offset;
            // The newest of the log is that of its segment, also of the last, which has no index that tells.
            let known =
                segment.max_timestamp.or(of_log.filter(|(_, offset)| holds(*offset)).map(|(at, _)| at));
            let newest = known.filter(|at| *at > Timestamp::NONE);
            let name = segment.path.file_name().map(|name| name.to_string_lossy().into_owned());
            rows.push([
                Cell::text(segment.path.to_string_lossy()),
                Cell::number(segment.base_offset),
                Cell::number(segment.next_offset),
                Cell::number(segment.size_bytes),
                Cell::time(newest.map(Timestamp::millis)),
                Cell::Flag(segment.sealed),
                Cell::text(name.unwrap_or_default()),
            ]);
        }
    }
    Ok(rows)
}
