//! `logctl roll`: closes the segment that is being written and begins another.

use std::{path::PathBuf, process::ExitCode};

use stratalog::{LogConfig, LogReader, LogWriter, ReadOptions};

use crate::{
    failure::Failure, globals::Globals, lock::tell_locked, output::Output, recovered::tell_recovery,
    scope::Scope, target::Target,
};

/// Close the last segment of a log and begin a new one
///
/// Nothing is lost by it. Where the last segment is empty there is nothing to do. Refused while a writer or a broker
/// holds the log.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl roll data/orders-0
  logctl roll data --topic orders --dry-run          # every partition of a topic")]
pub(crate) struct Args {
    /// Partition directory, or a data directory: every partition of it, or of the topic given by --topic
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// A JSON line
    #[arg(short = 'J', long)]
    json: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let scope = Scope::find(globals, args.target.as_deref())?;
    let mut out = globals.report(args.json)?;
    let stop = globals.stop();
    let outcome = scope.each(globals, |target| {
        stop.check()?;
        roll(target, args, globals, &mut out)?;
        // What is done is told before the next log is touched.
        out.flush()
    });
    out.finish()?;
    outcome.map(|()| ExitCode::SUCCESS)
}

fn roll(target: &Target, args: &Args, globals: &Globals, out: &mut Output) -> Result<(), Failure> {
    target.must_be_directory()?;
    let reader = LogReader::open(&target.path, ReadOptions::default())?;
    let is_empty = reader.segments().last().is_some_and(|last| last.size_bytes == 0);
    let mut base = reader.end();
    drop(reader);
    if !is_empty && !args.dry_run {
        let mut writer = LogWriter::open(&target.path, LogConfig::default())?;
        tell_recovery(writer.recovery(), globals);
        writer.roll()?;
        base = writer.end();
        writer.close()?;
    }
    if out.is_json() {
        out.object(if args.dry_run { "plan" } else { "done" })
            .text("verb", "roll")
            .text("path", &target.path.to_string_lossy())
            .bare("rolled", !is_empty && !args.dry_run)
            .bare("base_offset", base)
            .end();
    } else if !globals.quiet {
        let path = target.path.display();
        let text = match (is_empty, args.dry_run) {
            (true, _) => format!("{path}: nothing to roll: the last segment is empty\n"),
            (false, true) => format!("{path}: would begin a segment at offset {base}\n"),
            (false, false) => format!("{path}: a new segment begins at offset {base}\n"),
        };
        out.foreign(text.as_bytes())?;
    }
    if is_empty || args.dry_run {
        tell_locked(target, out)?;
    }
    out.spill()
}
