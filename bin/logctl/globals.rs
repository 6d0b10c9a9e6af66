//! Options that every verb has, and what follows from them: the target, colours, progress, the time limit.

use std::{
    env,
    io::{self, IsTerminal},
    path::PathBuf,
    time::Duration,
};

use clap::{ArgAction, ValueEnum};

use crate::{
    failure::Failure,
    grammar,
    output::{Output, push_foreign},
    report::Form,
    stop::Stop,
};

/// Options before or after the verb.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Data directory that holds partitions; a TARGET that is a bare name is looked up in it
    #[arg(short, long, global = true, value_name = "DIR", env = "LOGCTL_DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Topic in the data directory given by --dir or TARGET
    #[arg(short, long, global = true, value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
    /// Partition of that topic; default: 0
    #[arg(short, long, global = true, value_name = "N", requires = "topic")]
    pub(crate) partition: Option<u32>,
    /// How to print what is no record; -J is the same as jsonl
    #[arg(long, global = true, value_name = "FORM", default_value = "table")]
    pub(crate) output: Form,
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more; repeat for still more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to colour; also `NO_COLOR`, `CLICOLOR_FORCE` and `TERM=dumb`
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// No progress on standard error
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
    /// Give up after this long (30s, 5m), with exit code 124
    #[arg(long, global = true, value_name = "DURATION", value_parser = grammar::duration)]
    pub(crate) timeout: Option<Duration>,
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

impl Globals {
    /// Standard output, with colours if they are wanted there.
    pub(crate) fn stdout(&self) -> Result<Output, Failure> {
        Output::stdout(self.colour(io::stdout().is_terminal()))
    }

    /// Standard output of a verb that prints objects; `json_lines`: its `-J`.
    pub(crate) fn report(&self, json_lines: bool) -> Result<Output, Failure> {
        let mut out = self.stdout()?;
        out.set_form(if json_lines { Form::Jsonl } else { self.output });
        Ok(out)
    }

    /// Whether to colour what goes to standard error.
    pub(crate) fn colour_stderr(&self) -> bool {
        self.colour(io::stderr().is_terminal())
    }

    /// What stands before an error on standard error.
    pub(crate) fn error_label(&self) -> &'static str {
        if self.colour_stderr() { "\x1b[1;31merror:\x1b[0m" } else { "error:" }
    }

    fn colour(&self, terminal: bool) -> bool {
        colour(self.color, terminal, |name| env::var_os(name).map(|v| v.to_string_lossy().into_owned()))
    }

    /// Whether a progress line may be drawn on standard error (after one second; see `progress.rs`).
    pub(crate) fn progress(&self) -> bool {
        !self.quiet && !self.no_progress && io::stderr().is_terminal()
    }

    /// A note on standard error, unless `-q`.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            eprint(text.as_ref());
        }
    }

    /// Tells of a failure, unless all was said.
    pub(crate) fn complain(&self, failure: &Failure) {
        if !failure.is_quiet() {
            labelled(self.error_label(), &failure.to_string());
        }
    }

    /// Starts to watch for signals and `--timeout`.
    pub(crate) fn stop(&self) -> Stop {
        Stop::watch(self.timeout)
    }
}

/// A line on standard error in one write. That it cannot be written is no reason to stop.
pub(crate) fn eprint(text: &str) {
    labelled("", text);
}

/// The same behind a label of our own; names in the text may be anybody's.
fn labelled(label: &str, text: &str) {
    let mut line = label.as_bytes().to_vec();
    if !line.is_empty() {
        line.push(b' ');
    }
    push_foreign(&mut line, text.as_bytes(), io::stderr().is_terminal());
    line.push(b'\n');
    let _ = io::Write::write_all(&mut io::stderr(), &line);
}

/// Data was left out: that is told also with `-q`.
pub(crate) fn warn(text: &str) {
    eprint(&format!("warning: {text}"));
}

/// The flag first, then `NO_COLOR` (<https://no-color.org>), `CLICOLOR_FORCE`, `TERM=dumb`, and at last the terminal.
fn colour(when: When, terminal: bool, var: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| var(name).is_some_and(|v| !v.is_empty());
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto if set("NO_COLOR") => false,
        When::Auto if set("CLICOLOR_FORCE") && var("CLICOLOR_FORCE").as_deref() != Some("0") => true,
        When::Auto => terminal && var("TERM").as_deref() != Some("dumb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(terminal: bool, vars: &[(&str, &str)]) -> bool {
        colour(When::Auto, terminal, |name| {
            vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn colour_rules() {
        assert!(auto(true, &[]));
        assert!(!auto(false, &[]));
        assert!(!auto(true, &[("NO_COLOR", "1")]));
        assert!(auto(true, &[("NO_COLOR", "")]));
        assert!(auto(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!auto(false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!auto(false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
        assert!(!auto(true, &[("TERM", "dumb")]));
        let no = |_: &str| Some("1".to_owned());
        assert!(colour(When::Always, false, no));
        assert!(!colour(When::Never, true, |_| None));
    }
}
