//! `logctl`: works on logs in Kafka's on-disk format from the shell.
//!
//! Lives here: the command line and the exit codes. Not here: what a verb does (a file each), how bytes are stored
//! (the library, of which this command sees only the public API).
//!
//! Holds always: standard output is data only and everything else goes to standard error; verbs that read take no lock
//! of a log and change no file but the cursor that they are told to keep; and the exit code tells what happened: the
//! table is `manual::exit_codes::EXIT_CODES`.

#![expect(
    rustdoc::invalid_html_tags,
    rustdoc::broken_intra_doc_links,
    reason = "comments of options are the help that a terminal shows, not Markdown"
)]

mod append;
mod broker;
mod cat;
mod change;
mod check;
mod completions;
mod config;
mod consent;
mod copy;
mod counts;
mod csv;
mod cursor;
mod damage;
mod decode;
mod diff;
mod dump;
mod export;
mod failure;
mod filter;
mod get;
mod globals;
mod grammar;
mod help;
mod import;
mod info;
mod json;
mod json_line;
mod lock;
mod log_lines;
mod ls;
mod man;
mod manual;
mod mistakes;
mod newest;
mod offsets;
mod output;
mod pager;
mod printer;
mod progress;
mod recovered;
mod repair;
mod report;
mod retain;
mod roll;
mod scope;
mod serve;
mod serve_settings;
mod source;
mod stop;
mod stream;
mod tail;
mod target;
mod template;
mod topic;
mod trim;
mod truncate;
mod verify;
mod version;
mod view;

use std::{
    env,
    ffi::OsString,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::{
    ArgMatches, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind,
    parser::ValueSource,
};

use config::Config;
use failure::Failure;
use globals::Globals;
use log_lines::LogFormat;

/// What `logctl --help` says after the options.
fn after_long_help() -> String {
    format!(
        "{}\n\
         Topics (logctl help TOPIC):\n{}\n\
         Environment:\n  \
         LOGCTL_DIR      as --dir\n  \
         LOGCTL_BROKERS  as --brokers, where no directory is named\n  \
         LOGCTL_PROFILE  as --profile\n  \
         LOGCTL_CONFIG   the configuration file; empty: none (logctl config --help)\n  \
         LOGCTL_LOG      which messages of the library are shown, as in stratalog=debug\n  \
         NO_COLOR        no colours\n  \
         CLICOLOR_FORCE  colours also where the output is no terminal\n  \
         PAGER           what --pager runs\n\
         \n\
         {EXAMPLES}",
        manual::exit_codes::table(),
        manual::topic_list(),
    )
}

const EXAMPLES: &str = "Examples:
  seq 1 100000 | logctl append ./data/orders-0 --create
  logctl cat ./data/orders-0 -o @-1h: -J | jq -r .value
  logctl tail ./data/orders-0 -n 20 -f --format '%d{strftime[%F %T]} %p:%o %k=%v\\n'
  logctl info ./data/orders-0
  logctl verify ./data/orders-0 --deep || logctl repair ./data/orders-0 --yes
  logctl offsets ./data --time @2026-11-30T08:00:00Z";

/// What `logctl -h` says after the options.
const AFTER_HELP: &str = "`logctl VERB --help` has examples, `logctl help recipes` common tasks.";

/// Work on logs in Apache Kafka's on-disk format: append, read, follow, look, check.
#[derive(Debug, Parser)]
#[command(
    name = "logctl",
    version,
    propagate_version = true,
    max_term_width = 110,
    disable_help_subcommand = true
)]
#[command(after_help = AFTER_HELP, after_long_help = after_long_help())]
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
    Cursor(cursor::Args),
    Topic(topic::Args),
    Serve(serve::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
    Help(help::Args),
}

fn main() -> ExitCode {
    if let Some(code) = completions::answer() {
        return code;
    }
    let line: Vec<OsString> = env::args_os().collect();
    let command = without_empty_variables(Cli::command().color(colour_choice(&line)));
    // Help and usage are told whatever the file is like, and the file's mistakes behind them.
    let profile = value_of(&line, "--profile");
    let loaded = Config::load(profile.clone())
        .and_then(|config| config::with_defaults(command.clone(), &config).map(|command| (command, config)));
    let (command, config, failure) = match loaded {
        Ok((command, config)) => (command, config, None),
        Err(failure) => (command, Config::default(), Some(failure)),
    };
    let matches = match command.try_get_matches_from(&line) {
        Ok(matches) => matches,
        Err(error) => return usage(error, &line),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return usage(error, &line),
    };
    let mut globals = cli.globals;
    globals.connection = config.connection();
    let lines = if let Verb::Serve(args) = &cli.verb { Some(args.log_format) } else { None };
    trace_to_stderr(&globals, &config, &matches, lines);
    let failure = match &cli.verb {
        Verb::Config(args) => failure.filter(|_| !args.needs_no_file()),
        _ if config::is_asked_for(profile) => failure,
        _ => {
            if let Some(failure) = failure.filter(|_| !globals.quiet) {
                globals::warn(&format!("no settings from the configuration file: {failure}"));
            }
            None
        }
    };
    if let Err(failure) = failure.map_or(Ok(()), Err).and_then(|()| globals.settle(&matches)) {
        globals.complain(&failure);
        return ExitCode::from(failure.code.number());
    }
    let outcome: Result<ExitCode, Failure> = match cli.verb {
        Verb::Append(args) => append::run(&args, &globals),
        Verb::Cat(args) => cat::run(&args, &globals),
        Verb::Tail(args) => tail::run(&args, &globals),
        Verb::Get(args) => get::run(&args, &globals),
        Verb::Info(args) => info::run(&args, &globals),
        Verb::Dump(args) => args.in_form(globals.output).and_then(|args| dump::run(&args, &globals)),
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
        Verb::Cursor(args) => cursor::run(&args, &globals),
        Verb::Topic(args) => topic::run(&args, &globals),
        Verb::Serve(args) => serve::run(&args, &globals),
        Verb::Config(args) => config::run(&args, &globals, &config, &matches),
        Verb::Completions(args) => completions::run(&args, &globals),
        Verb::Man(args) => man::run(&args, &globals),
        Verb::Help(args) => help::run(&args, &globals),
    };
    outcome.unwrap_or_else(|failure| {
        globals.complain(&failure);
        ExitCode::from(failure.code.number())
    })
}

/// A variable that is set to nothing is as good as none.
fn without_empty_variables(mut command: clap::Command) -> clap::Command {
    let is_empty = |arg: &&clap::Arg| {
        arg.get_env().is_some_and(|name| env::var_os(name).is_some_and(|value| value.is_empty()))
    };
    let empty: Vec<_> = command.get_arguments().filter(is_empty).map(|arg| arg.get_id().clone()).collect();
    for id in empty {
        command = command.mut_arg(id, |arg| arg.env(clap::builder::Resettable::Reset));
    }
    command
}

/// What clap has to say: help, the version, or a mistake.
fn usage(mut error: clap::Error, line: &[OsString]) -> ExitCode {
    let has = |options: &[&str]| line.iter().any(|word| options.iter().any(|option| word == option));
    match error.kind() {
        ErrorKind::DisplayVersion if has(&["-v", "--verbose", "-vV", "-Vv"]) => {
            return told(io::stdout().write_all(version::long().as_bytes()));
        }
        ErrorKind::DisplayHelp if has(&["--pager"]) && io::stdout().is_terminal() => {
            if pager::show(error.render().ansi().to_string().as_bytes()) {
                return ExitCode::SUCCESS;
            }
        }
        _ => {
            let command = Cli::command();
            let verb = line.iter().skip(1).filter_map(|word| word.to_str());
            let verb = verb.into_iter().find_map(|word| command.find_subcommand(word));
            mistakes::explain(&mut error, verb.map(clap::Command::get_name), line);
        }
    }
    // A word that would command the terminal is told without colours, and with its control bytes made visible.
    let commands = |word: &OsString| word.to_string_lossy().chars().any(char::is_control);
    if error.use_stderr() && line.iter().any(commands) {
        globals::eprint(error.render().to_string().trim_end());
    } else {
        let printed = error.print();
        if !error.use_stderr() {
            return told(printed);
        }
        // Where there is nobody to read it there is nobody to tell so.
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Help and the version are what was asked for: where they cannot be written that is told, as of any output.
fn told(written: io::Result<()>) -> ExitCode {
    let Err(error) = written.and_then(|()| io::stdout().flush()) else { return ExitCode::SUCCESS };
    let failure = Failure::stdout(&error);
    if !failure.is_quiet() {
        globals::eprint(&format!("error: {failure}"));
    }
    ExitCode::from(failure.code.number())
}

/// The value of a long option that is needed before the rest can be read.
fn value_of(line: &[OsString], option: &str) -> Option<String> {
    let mut words = line.iter().skip(1).map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    while let Some(word) = words.next() {
        match word.strip_prefix(option) {
            Some("") => return words.next().map(std::borrow::Cow::into_owned),
            Some(rest) if rest.starts_with('=') => return rest.get(1..).map(str::to_owned),
            _ => {}
        }
    }
    None
}

/// clap knows the rules for a terminal and the environment by itself.
fn colour_choice(line: &[OsString]) -> ColorChoice {
    match value_of(line, "--color").as_deref() {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// The library's own messages, filtered by `LOGCTL_LOG`, by how often `-v` was given, or by the file's `log`. `lines`: those of
/// a server, which is all that is seen of it, so that it says more unasked.
fn trace_to_stderr(globals: &Globals, config: &Config, matches: &ArgMatches, lines: Option<LogFormat>) {
    use tracing_subscriber::{EnvFilter, fmt};
    let unasked = if lines.is_some() { 2 } else { 0 };
    let level = match (globals.quiet, globals.verbose.saturating_add(unasked)) {
        // What a user should know without asking, the verbs say themselves.
        (true, _) | (_, 0) => "error",
        (_, 1) => "warn",
        (_, 2) => "info",
        (_, 3) => "debug",
        _ => "trace",
    };
    let says_level =
        ["verbose", "quiet"].iter().any(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    let named = env::var("LOGCTL_LOG").ok().filter(|filter| !filter.is_empty());
    let of_file = config.log_filter().filter(|_| !says_level).map(str::to_owned);
    let filter = named.or(of_file).and_then(|filter| {
        let parsed = EnvFilter::try_new(&filter);
        parsed.inspect_err(|error| globals::warn(&format!("filter of messages `{filter}`: {error}"))).ok()
    });
    let filter = filter.unwrap_or_else(|| EnvFilter::new(level));
    if let Some(format) = lines {
        return log_lines::begin(format, filter);
    }
    // A subscriber is already there only in tests.
    let _ =
        fmt().with_env_filter(filter).with_writer(io::stderr).without_time().with_target(false).try_init();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::Cli::command().debug_assert();
    }
}
