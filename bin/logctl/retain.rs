//! `logctl retain`: runs retention once, with the limits given.

use std::{ops::Range, path::PathBuf, process::ExitCode, time::Duration};

use stratalog::{
    LogConfig, LogReader, LogWriter, Offset, ReadOptions, Retention, SegmentInfo, Timestamp,
    inspect::{LogFile, Piece},
};

use crate::{
    change::{Change, carry_out, close},
    consent::Consent,
    failure::Failure,
    globals::Globals,
    grammar::{self, Border},
    newest::{newest_of, times_text},
    output::{Output, counted},
    recovered::tell_recovery,
    scope::Scope,
    target::Target,
};

/// Drop the oldest segments of a log, as its retention settings would
///
/// By size: the oldest go while what is left is at least that large. By age: those go whose newest record is older. Whole
/// segments go, and nothing is kept of them. Refused while a writer or a broker holds the log.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("limits").required(true).multiple(true).args(["bytes", "age"])))]
#[command(after_long_help = "\
Examples:
  logctl retain data/orders-0 --age 7d --dry-run
  logctl retain data/orders-0 --age 7d --bytes 10GiB --yes
  logctl retain data --topic orders --age 7d --yes   # every partition of a topic

Exit code 8: some partitions could not be looked at or changed; the others were.")]
pub(crate) struct Args {
    /// Partition directory, or a data directory: every partition of it, or of the topic given by --topic
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// Keep at least so many bytes (Kafka: retention.bytes)
    #[arg(long, value_name = "SIZE", value_parser = grammar::size)]
    bytes: Option<u64>,
    /// Keep records this young (Kafka: retention.ms)
    #[arg(long, value_name = "DURATION", value_parser = grammar::duration)]
    age: Option<Duration>,
    #[command(flatten)]
    consent: Consent,
    /// JSON lines: the plan, and what was done
    #[arg(short = 'J', long)]
    json: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let scope = Scope::find(globals, args.target.as_deref())?;
    let mut config = LogConfig::default();
    config.retention = Retention { bytes: args.bytes, age: args.age };
    carry_out(&Retain { args, globals, config }, scope, &args.consent, (globals, args.json))
}

struct Retain<'a> {
    args: &'a Args,
    globals: &'a Globals,
    config: LogConfig,
}

impl Change for Retain<'_> {
    type Plan = ();

    fn plan(&self, target: &Target, out: &mut Output) -> Result<Option<()>, Failure> {
        target.must_be_directory()?;
        let segments = LogReader::open(&target.path, ReadOptions::default())?.segments();
        let now = self.config.clock.now();
        let going = going(&segments, self.args, now)?;
        let newest_gone = newest_of(going, &range_of(going))?;
        let limit = self.args.age.map(|age| oldest_kept(now, age));
        let bytes = going.iter().map(|segment| segment.size_bytes).sum::<u64>();
        if out.is_json() {
            out.object("plan")
                .text("verb", "retain")
                .text("path", &target.path.to_string_lossy())
                .bare("segments", going.len())
                .bare("bytes", bytes)
                .maybe("start", going.last().map(|last| last.next_offset))
                .maybe("time", limit.map(Timestamp::millis))
                .maybe("newest_timestamp", newest_gone.map(Timestamp::millis))
                .end();
        } else {
            let path = target.path.display();
            out.foreign(
                match going.last() {
                    None => format!(
                        "{path}: nothing to drop: {} within the limits\n",
                        counted(segments.len() as u64, "segment")
                    ),
                    Some(last) => format!(
                        "{path}: drop {} of {}, up to offset {}{}\n",
                        counted(going.len() as u64, "segment"),
                        counted(bytes, "byte"),
                        last.next_offset,
                        times_text(limit.map_or(Border::Offset(last.next_offset), Border::Time), newest_gone)
                    ),
                }
                .as_bytes(),
            )?;
        }
        Ok((!going.is_empty()).then_some(()))
    }

    fn apply(&self, target: &Target, (): (), out: &mut Output) -> Result<(), Failure> {
        let mut writer = LogWriter::open(&target.path, self.config.clone())?;
        tell_recovery(writer.recovery(), self.globals);
        let done = writer.maintain()?;
        close(writer, target)?;
        let path = target.path.display();
        if out.is_json() {
            out.object("done")
                .text("verb", "retain")
                .text("path", &target.path.to_string_lossy())
                .bare("start", done.start)
                .bare("segments", done.dropped_segments)
                .bare("bytes", done.dropped_bytes)
                .end();
        } else if !self.globals.quiet {
            out.foreign(
                format!(
                    "{path}: dropped {} of {}: the log begins at offset {}\n",
                    counted(done.dropped_segments as u64, "segment"),
                    counted(done.dropped_bytes, "byte"),
                    done.start
                )
                .as_bytes(),
            )?;
        }
        Ok(())
    }
}

/// Records of this time and newer ones stay.
fn oldest_kept(now: Timestamp, age: Duration) -> Timestamp {
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.millis().saturating_sub(age))
}

/// From the first offset of these segments up to the end of the last.
fn range_of(segments: &[SegmentInfo]) -> Range<Offset> {
    match segments {
        [] => Offset::ZERO..Offset::ZERO,
        [one] => one.base_offset..one.next_offset,
        [first, .., last] => first.base_offset..last.next_offset,
    }
}

/// The segments that the writer's retention would drop now, by the same rules: whole ones, oldest first.
fn going<'s>(segments: &'s [SegmentInfo], args: &Args, now: Timestamp) -> Result<&'s [SegmentInfo], Failure> {
    let sealed = segments.len().saturating_sub(1);
    let mut left: u64 = segments.iter().map(|segment| segment.size_bytes).sum();
    let mut by_size = 0;
    if let Some(limit) = args.bytes {
        for segment in segments.iter().take(sealed) {
            if left.saturating_sub(segment.size_bytes) < limit {
                break;
            }
            left -= segment.size_bytes;
            by_size += 1;
        }
    }
    let mut by_age = 0;
    if let Some(age) = args.age {
        let oldest_kept = oldest_kept(now, age);
        for segment in segments {
            if newest(segment)? >= oldest_kept {
                break;
            }
            by_age += 1;
        }
        // An empty last segment stays.
        if segments.last().is_some_and(|last| last.size_bytes == 0) {
            by_age = by_age.min(sealed);
        }
    }
    Ok(segments.get(..by_size.max(by_age)).unwrap_or_default())
}

/// The newest record's time; the file's where no record has one.
fn newest(segment: &SegmentInfo) -> Result<Timestamp, Failure> {
    if let Some(known) = segment.max_timestamp {
        return Ok(known);
    }
    let file = LogFile::open(&segment.path)?;
    let mut pieces = file.pieces_from(0, segment.size_bytes);
    let mut newest = None;
    while let Some(piece) = pieces.next_piece()? {
        if let Piece::Batch(entry) = piece {
            newest = newest.max(Some(entry.header.max_timestamp()).filter(|at| *at > Timestamp::NONE));
        }
    }
    if let Some(newest) = newest {
        return Ok(newest);
    }
    let fail = |error| Failure::io("look at", segment.path.display(), &error);
    let changed = std::fs::metadata(&segment.path).and_then(|found| found.modified()).map_err(fail)?;
    let since = changed.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}
