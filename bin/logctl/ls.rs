//! `logctl ls`: the partitions of a data directory, or the segments of one partition.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use stratalog::{LogReader, LogStats, ReadOptions, SegmentInfo, Timestamp};

use crate::{
    failure::{Code, Failure},
    globals::{self, Globals},
    json_line::ObjectLine,
    output::Output,
    printer::time_text,
    target::{Target, topic_partition},
};

/// List the partitions of a data directory, or the segments of a partition
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
NEWEST is the largest timestamp; - where there is none, or where only reading would tell (as in
the last segment).

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

/// A partition of a data directory.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) topic: String,
    pub(crate) partition: u32,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let directory = args.target.clone().or_else(|| globals.dir.clone());
    if globals.topic.is_none()
        && let Some(partitions) = directory.as_deref().and_then(partitions_of)
    {
        return list_partitions(args, &partitions, globals);
    }
    let target = Target::existing(globals, args.target.as_deref())?;
    if target.is_file {
        return Err(Failure::usage(format!("{}: a file", target.path.display()))
            .hint("`logctl info` shows what a segment holds"));
    }
    list_segments(args, &target, globals)
}

/// The partitions in a directory that holds some and no log of its own; sorted by topic and number.
pub(crate) fn partitions_of(dir: &Path) -> Option<Vec<Found>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).ok()?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|suffix| suffix == "log") && path.is_file() {
            return None;
        }
        if let Some((topic, partition)) = entry.file_name().to_str().and_then(topic_partition)
            && path.is_dir()
        {
            found.push(Found { path, topic, partition });
        }
    }
    found.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    (!found.is_empty()).then_some(found)
}

fn list_partitions(args: &Args, partitions: &[Found], globals: &Globals) -> Result<ExitCode, Failure> {
    let mut rows: Vec<(&Found, LogStats)> = Vec::new();
    let mut failed = 0;
    for found in partitions {
        match LogReader::open(&found.path, ReadOptions::default()) {
            Ok(reader) => rows.push((found, reader.stats())),
            Err(error) => {
                failed += 1;
                globals::eprint(&format!("error: {}: {error}", found.path.display()));
            }
        }
    }
    let records = |stats: &LogStats| stats.end.since(stats.start);
    match args.sort {
        Sort::Name => {}
        Sort::Bytes => rows.sort_by_key(|(_, stats)| std::cmp::Reverse(stats.bytes)),
        Sort::Records => rows.sort_by_key(|(_, stats)| std::cmp::Reverse(records(stats))),
    }
    let mut out = globals.stdout()?;
    if args.json {
        for (found, stats) in &rows {
            ObjectLine::new(out.buffer(), "partition")
                .text("path", &found.path.to_string_lossy())
                .text("topic", &found.topic)
                .bare("partition", found.partition)
                .bare("start", stats.start)
                .bare("end", stats.end)
                .bare("segments", stats.segments)
                .bare("bytes", stats.bytes)
                .bare("clean", stats.clean)
                .end();
            out.spill()?;
        }
    } else {
        let lines = rows.iter().map(|(found, stats)| {
            [
                format!("{}-{}", found.topic, found.partition),
                stats.start.to_string(),
                stats.end.to_string(),
                stats.segments.to_string(),
                stats.bytes.to_string(),
            ]
        });
        table(
            &mut out,
            ["PARTITION", "START", "END", "SEGMENTS", "BYTES"],
            &lines.collect::<Vec<_>>(),
            globals,
        )?;
    }
    out.flush()?;
    if failed == 0 { Ok(ExitCode::SUCCESS) } else { Err(Failure::quiet(Code::Partly)) }
}

fn list_segments(args: &Args, target: &Target, globals: &Globals) -> Result<ExitCode, Failure> {
    let segments = LogReader::open(&target.path, ReadOptions::default())?.segments();
    let mut out = globals.stdout()?;
    if args.json {
        for segment in &segments {
            ObjectLine::new(out.buffer(), "segment")
                .text("file", &segment.path.to_string_lossy())
                .bare("base_offset", segment.base_offset)
                .bare("next_offset", segment.next_offset)
                .bare("bytes", segment.size_bytes)
                .maybe("max_timestamp", newest(segment).map(Timestamp::millis))
                .bare("sealed", segment.sealed)
                .end();
            out.spill()?;
        }
    } else {
        let lines = segments.iter().map(|segment| {
            [
                segment.base_offset.to_string(),
                segment.next_offset.to_string(),
                segment.size_bytes.to_string(),
                newest(segment).map_or_else(|| "-".to_owned(), |at| time_text(at.millis())),
                segment.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            ]
        });
        table(&mut out, ["BASE", "NEXT", "BYTES", "NEWEST", "FILE"], &lines.collect::<Vec<_>>(), globals)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn newest(segment: &SegmentInfo) -> Option<Timestamp> {
    segment.max_timestamp.filter(|at| *at > Timestamp::NONE)
}

/// Columns as wide as they need: the first as text, the others with their ends below each other.
fn table<const N: usize>(
    out: &mut Output,
    heads: [&str; N],
    rows: &[[String; N]],
    globals: &Globals,
) -> Result<(), Failure> {
    let mut widths = heads.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let mut text = String::new();
        for (nth, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let is_last = nth + 1 == N;
            let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
            match nth {
                0 => text.extend([*cell, &pad]),
                _ if is_last && cell.contains('.') => text.extend(["  ", cell]),
                _ => text.extend(["  ", &pad, cell]),
            }
        }
        text.push('\n');
        text
    };
    if !globals.quiet {
        let head = line(heads);
        let head = out.bold(head.trim_end());
        out.line(head)?;
    }
    for row in rows {
        let cells = row.each_ref().map(String::as_str);
        out.foreign(line(cells).as_bytes())?;
    }
    Ok(())
}
