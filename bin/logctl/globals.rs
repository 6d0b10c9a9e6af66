//! Options that every verb has, and what follows from them: the target, colours, progress, the time limit.

use std::{
    collections::BTreeMap,
    env,
    io::{self, IsTerminal},
    path::PathBuf,
    time::Duration,
};

use clap::{ArgAction, ArgMatches, ValueEnum, parser::ValueSource};

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
    /// Partition of that topic; default: 0 where it is the only one. Verbs that can go over many take all
    #[arg(short, long, global = true, value_name = "N")]
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
    /// Show what is printed through PAGER (less) where a person is looking
    #[arg(long, global = true)]
    pub(crate) pager: bool,
    /// Take this profile of the configuration file; see `logctl config --help`
    #[arg(long, global = true, value_name = "NAME", env = "LOGCTL_PROFILE")]
    pub(crate) profile: Option<String>,
    /// Give up after this long (30s, 5m), with exit code 124
    #[arg(long, global = true, value_name = "DURATION", value_parser = grammar::duration)]
    pub(crate) timeout: Option<Duration>,
    /// What the configuration file tells clients of brokers.
    #[arg(skip)]
    pub(crate) connection: BTreeMap<&'static str, String>,
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// Verbs whose output is records: those have forms of their own.
const OF_RECORDS: [&str; 6] = ["append", "cat", "tail", "get", "export", "import"];
/// Arguments that name what a verb works on.
const PLACES: [&str; 6] = ["target", "paths", "files", "a", "source", "from"];

impl Globals {
    /// Sets straight what only the whole command line tells: a topic that the configuration file names says nothing about
    /// a place that is named on the command line.
    pub(crate) fn settle(&mut self, matches: &ArgMatches) -> Result<(), Failure> {
        let is_given = |matches: &ArgMatches, id: &str| {
            matches!(matches.try_contains_id(id), Ok(true))
                && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let verb = matches.subcommand();
        // What `topic` does has options of its own.
        let verb = verb
            .and_then(|(_, of_verb)| of_verb.subcommand())
            .filter(|_| verb.is_some_and(|(name, _)| name == "topic"))
            .or(verb);
        let names_place = verb.is_some_and(|(_, of_verb)| PLACES.iter().any(|id| is_given(of_verb, id)));
        let has_topic = is_given(matches, "topic");
        if names_place && !has_topic {
            self.topic = None;
        }
        if !is_given(matches, "partition") && (has_topic || self.topic.is_none()) {
            self.partition = None;
        }
        let may_be_broker =
            verb.is_some_and(|(_, of_verb)| crate::broker::may_be_broker(of_verb, &self.connection));
        if may_be_broker
            && is_given(matches, "dir")
            && verb.is_some_and(|(_, verb)| is_given(verb, "brokers"))
        {
            return Err(Failure::usage("--dir names a directory and --brokers brokers: give one of them"));
        }
        if self.partition.is_some() && self.topic.is_none() && !may_be_broker {
            return Err(Failure::usage("--partition says nothing without --topic"));
        }
        if let Some((name, _)) = verb.filter(|(name, _)| OF_RECORDS.contains(name))
            && is_given(matches, "output")
        {
            return Err(Failure::usage(format!(
                "--output is for what is no record, and `{name}` is about records"
            ))
            .hint("-J prints records as JSON lines; --format and its templates print them in any form"));
        }
        Ok(())
    }

    /// Standard output, with colours if they are wanted there.
    pub(crate) fn stdout(&self) -> Result<Output, Failure> {
        let is_terminal = io::stdout().is_terminal();
        Output::stdout(self.colour(is_terminal), self.pager && is_terminal)
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
            let label = if self.colour_stderr() { "\x1b[1;31merror:\x1b[0m" } else { "error:" };
            labelled(label, &failure.to_string());
        }
    }

    /// Starts to watch for signals and `--timeout`.
    pub(crate) fn stop(&self) -> Stop {
        Stop::watch(self.timeout)
    }
}

/// A line on standard error in one write, without the control bytes that names of files may bring onto a terminal. That
/// it cannot be written is no reason to stop.
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
