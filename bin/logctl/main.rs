//! `logctl`: works on logs in Kafka's on-disk format from the shell.
//!
//! Lives here: the command line and the exit codes. Not here: what a verb does (a file each), how bytes are stored
//! (the library, of which this command sees only the public API).
//!
//! Holds always: standard output is data only and everything else goes to standard error; verbs that read take no lock
//! of a log and change no file but the cursor that they are told to keep; and the exit code tells what happened:
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | done; `verify`: the log is clean; `diff`: the same |
//! | 1 | any other failure; a plan that was not carried out for want of `--yes` |
//! | 2 | the command line makes no sense |
//! | 3 | target or offset not found |
//! | 4 | corruption found; `diff`: they differ |
//! | 5 | the directory is locked, or the cursor held, by another process |
//! | 8 | some of several partitions could not be read |
//! | 124 | `--timeout` is over |
//! | 130, 143 | ended by SIGINT, SIGTERM |
//! | 141 | the reader of standard output went away |

mod append;
mod cat;
mod consent;
mod copy;
mod damage;
mod diff;
mod dump;
mod export;
mod failure;
mod get;
mod globals;
mod grammar;
mod import;
mod info;
mod json;
mod json_line;
mod ls;
mod offsets;
mod output;
mod printer;
mod progress;
mod repair;
mod retain;
mod roll;
mod source;
mod stop;
mod stream;
mod tail;
mod target;
mod template;
mod trim;
mod truncate;
mod verify;
mod view;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;
use globals::Globals;

/// What scripts depend on; the same as the table above.
const EXIT_CODES: &str = "Exit codes:
  0    done; for verify: nothing is damaged; for diff: the same
  1    any other failure; a plan that was not carried out for want of --yes
  2    the command line makes no sense
  3    target or offset not found
  4    corruption found; for diff: they differ
  5    the directory is locked, or the cursor held, by another process
  8    some of several partitions could not be read
  124  --timeout is over
  130  ended by SIGINT (143: by SIGTERM)
  141  the reader of standard output went away

Environment: LOGCTL_DIR (--dir), LOGCTL_LOG (filter for messages of the library, as in
stratalog=debug), NO_COLOR, CLICOLOR_FORCE.";

/// Work on logs in Apache Kafka's on-disk format: append, read, follow, look, check.
#[derive(Debug, Parser)]
#[command(name = "logctl", version, propagate_version = true, max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    #[command(visible_alias = "produce")]
    Append(Box<append::Args>),
    #[command(visible_aliases = ["consume", "read"])]
    Cat(cat::Args),
    Tail(tail::Args),
    Get(get::Args),
    #[command(visible_alias = "stat")]
    Info(info::Args),
    Dump(dump::Args),
    Verify(verify::Args),
    Diff(diff::Args),
    Truncate(truncate::Args),
    #[command(visible_alias = "delete-records")]
    Trim(trim::Args),
    Roll(roll::Args),
    Retain(retain::Args),
    Repair(repair::Args),
    Export(export::Args),
    Import(import::Args),
    Copy(copy::CopyArgs),
    Snapshot(copy::SnapshotArgs),
    Ls(ls::Args),
    Offsets(offsets::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    trace_to_stderr(&cli.globals);
    let globals = cli.globals;
    let outcome: Result<ExitCode, Failure> = match cli.verb {
        Verb::Append(args) => append::run(&args, &globals),
        Verb::Cat(args) => cat::run(&args, &globals),
        Verb::Tail(args) => tail::run(&args, &globals),
        Verb::Get(args) => get::run(&args, &globals),
        Verb::Info(args) => info::run(&args, &globals),
        Verb::Dump(args) => dump::run(&args, &globals),
        Verb::Verify(args) => verify::run(&args, &globals),
        Verb::Diff(args) => diff::run(&args, &globals),
        Verb::Truncate(args) => truncate::run(&args, &globals),
        Verb::Trim(args) => trim::run(&args, &globals),
        Verb::Roll(args) => roll::run(&args, &globals),
        Verb::Retain(args) => retain::run(&args, &globals),
        Verb::Repair(args) => repair::run(&args, &globals),
        Verb::Export(args) => export::run(&args, &globals),
        Verb::Import(args) => import::run(&args, &globals),
        Verb::Copy(args) => copy::run(&args, &globals),
        Verb::Snapshot(args) => copy::run_snapshot(&args, &globals),
        Verb::Ls(args) => ls::run(&args, &globals),
        Verb::Offsets(args) => offsets::run(&args, &globals),
    };
    outcome.unwrap_or_else(|failure| report(&failure, &globals))
}

/// Says what went wrong, and ends with its code.
fn report(failure: &Failure, globals: &Globals) -> ExitCode {
    if !failure.is_quiet() {
        let label = if globals.colour_stderr() { "\x1b[1;31merror:\x1b[0m" } else { "error:" };
        globals::eprint(&format!("{label} {failure}"));
    }
    ExitCode::from(failure.code.number())
}

/// The library's own messages, filtered by `LOGCTL_LOG` or by how often `-v` was given.
fn trace_to_stderr(globals: &Globals) {
    use tracing_subscriber::{EnvFilter, fmt};
    let level = match (globals.quiet, globals.verbose) {
        // What a user should know without asking, the verbs say themselves.
        (true, _) | (_, 0) => "error",
        (_, 1) => "warn",
        (_, 2) => "info",
        (_, 3) => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("LOGCTL_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    // A subscriber is already there only in tests.
    let _ = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .try_init();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }
}
