//! `logctl man`: manual pages, made from the command line's own description and the topics.

use std::{
    io::{IsTerminal, Write},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use clap::CommandFactory;

use crate::{
    failure::Failure,
    globals::Globals,
    help,
    manual::{Topic, roff},
};

/// Show the manual page of a verb or topic, or write all pages to a directory
///
/// On a terminal the page is shown by `man`; otherwise it is printed as roff. A word is a verb or a topic if there is
/// one of that name (offsets is both: offsets.1 and offsets.7 tell them apart), else a directory; one with a slash in
/// it is always a directory, and made if need be. The pages go to man1 and man7 in it, and their paths are printed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl man cat
  logctl man recipes
  logctl man ./share/man && man -M ./share/man logctl-verify | head -n 5")]
pub(crate) struct Args {
    /// Which page, or where to write all of them; default: logctl(1)
    #[arg(value_name = "VERB|TOPIC|DIR")]
    what: Option<String>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let mut command = crate::Cli::command();
    command.build();
    let not_made = |e| Failure::io("make", "the manual page", &e);
    let Some(what) = &args.what else {
        return show(&roff::front(&command).map_err(not_made)?, globals);
    };
    if let Some(verb) = command.find_subcommand(what.strip_suffix(".1").unwrap_or(what)) {
        return show(&roff::of_verb(&command, verb).map_err(not_made)?, globals);
    }
    if let Some(topic) = Topic::find(what.strip_suffix(".7").unwrap_or(what)) {
        return show(&roff::of_topic(topic), globals);
    }
    let dir = Path::new(what);
    if !what.contains('/') && !dir.is_dir() {
        return Err(help::unknown(&command, what).hint(format!(
            "`logctl help` lists them; to write all pages to a new directory: `logctl man ./{what}`"
        )));
    }
    let paths = roff::write_all(&command, dir).map_err(|e| Failure::io("write", dir.display(), &e))?;
    let mut out = globals.stdout()?;
    for path in paths {
        out.foreign(format!("{}\n", path.display()).as_bytes())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// On a terminal through `man`, where there is one.
fn show(page: &[u8], globals: &Globals) -> Result<ExitCode, Failure> {
    if std::io::stdout().is_terminal()
        && let Ok(mut viewer) = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn()
    {
        // It may be left before it has read all.
        let _ = viewer.stdin.take().map(|mut stdin| stdin.write_all(page));
        let status = viewer.wait().map_err(|e| Failure::io("wait for", "man", &e))?;
        if status.success() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let mut out = globals.stdout()?;
    out.bytes(page)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
