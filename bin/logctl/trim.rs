//! `logctl trim`: drops the oldest records, as Kafka's `DeleteRecords` does.

use std::{path::PathBuf, process::ExitCode};

use stratalog::{Access, Error, Isolation, LogConfig, LogWriter, Offset};

use crate::{
    consent::Consent,
    failure::Failure,
    globals::Globals,
    grammar::{self, Border},
    output::counted,
    source::Source,
    truncate::{RANGE_HINT, partition_directory},
};

/// Drop the oldest records of a log
///
/// The log begins at the offset given; files with nothing else in them are removed, and nothing is kept of them. Refused
/// while a writer or a broker holds the log.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  logctl trim data/orders-0 --before 1200                    # shows what would go
  logctl trim data/orders-0 --before 1200 --yes
  logctl trim data/orders-0 --before -7d --yes
  logctl trim data/orders-0 --before end --yes               # everything")]
pub(crate) struct Args {
    /// Partition directory
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// The first offset that stays; or a time: the first record of that time or later; or end
    #[arg(long, value_name = "OFFSET", value_parser = grammar::border, allow_hyphen_values = true)]
    before: Border,
    #[command(flatten)]
    consent: Consent,
    /// JSON lines: the plan, and what was done
    #[arg(short = 'J', long)]
    json: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let target = partition_directory(globals, args.target.as_deref())?;
    let source = Source::open(&target, Access::Normal, Isolation::Uncommitted)?;
    let (start, end) = (source.start(), source.end());
    let before = args.before.resolve(start, end, |at| source.first_not_before(at))?;
    if before > end {
        return Err(Failure::from(Error::OffsetOutOfRange { requested: before, start, end }).hint(RANGE_HINT));
    }
    let (segments, bytes) = wholly_below(&source, before);
    let mut out = globals.report(args.json)?;
    let is_needless = before <= start;
    if out.is_json() {
        out.object("plan")
            .text("verb", "trim")
            .text("path", &target.path.to_string_lossy())
            .bare("start", start)
            .bare("end", end)
            .bare("before", before.max(start))
            .bare("segments", segments)
            .bare("bytes", bytes)
            .end();
    } else {
        let path = target.path.display();
        let text = if is_needless {
            format!("{path}: nothing to drop: the log begins at {start}\n")
        } else {
            format!(
                "{path}: drop offsets {start} up to {before}; {} of {} removed\n",
                counted(segments, "segment"),
                counted(bytes, "byte")
            )
        };
        out.foreign(text.as_bytes())?;
    }
    out.flush()?;
    if is_needless || !args.consent.is_given()? {
        return Ok(ExitCode::SUCCESS);
    }
    drop(source);
    let mut writer = LogWriter::open(&target.path, LogConfig::default())?;
    writer.advance_start(before)?;
    let done = writer.maintain()?;
    let start = writer.start();
    writer.close()?;
    if out.is_json() {
        out.object("done")
            .text("verb", "trim")
            .bare("start", start)
            .bare("segments", done.dropped_segments)
            .bare("bytes", done.dropped_bytes)
            .end();
    } else if !globals.quiet {
        out.line(format!(
            "dropped: the log begins at offset {start}; {} of {} removed",
            counted(done.dropped_segments as u64, "segment"),
            counted(done.dropped_bytes, "byte")
        ))?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Segments with nothing at or above an offset, and their bytes. The last one always stays.
fn wholly_below(source: &Source, before: Offset) -> (u64, u64) {
    let Source::Log(reader) = source else { return (0, 0) };
    let segments = reader.segments();
    let next_bases = segments.iter().skip(1).map(|next| next.base_offset);
    let going = segments.iter().zip(next_bases).take_while(|(_, next)| *next <= before);
    going.fold((0, 0), |(count, bytes), (segment, _)| (count + 1, bytes + segment.size_bytes))
}
