//! `logctl topic`: topics of brokers, or of a data directory, made, looked at, changed and removed.
//!
//! Lives here: the verb's actions (a file each), the two places they work on (`place.rs`: brokers by their protocol, a data
//! directory by the library's store), and rows that several of them print (`rows.rs`).
//! Not here: requests and answers (`broker/admin.rs`), how a topic lies in a directory (the library).
//! Holds always: what looks takes no lock; what changes or removes prints its plan first, and does nothing without `--yes`.

mod alter;
mod create;
mod describe;
mod list;
mod place;
mod remove;
mod rows;

use std::process::ExitCode;

use crate::{failure::Failure, globals::Globals};

/// Make, list, describe, change or remove topics of brokers, or of a data directory
///
/// With -b (or `LOGCTL_BROKERS`) those of brokers, with --dir those of a data directory that nobody serves at the time.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  logctl topic create -b localhost:9092 payments --partitions 3 --config retention.ms=86400000
  logctl topic ls -b localhost:9092
  logctl topic describe -b localhost:9092 orders
  logctl topic config -b localhost:9092 orders --all
  logctl topic alter -b localhost:9092 orders --set max.message.bytes=2000000 --yes
  logctl topic rm -b localhost:9092 orders           # prints the plan
  logctl topic ls --dir data -J | jq -r .topic
  logctl topic create --dir new payments --partitions 3")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Create(create::Args),
    #[command(visible_alias = "list")]
    Ls(list::Args),
    Describe(describe::Args),
    Alter(alter::Args),
    #[command(visible_alias = "delete")]
    Rm(remove::Args),
    Config(describe::ConfigArgs),
}

/// Runs the verb.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    match &args.action {
        Action::Create(args) => create::run(args, globals),
        Action::Ls(args) => list::run(args, globals),
        Action::Describe(args) => describe::run(args, globals),
        Action::Alter(args) => alter::run(args, globals),
        Action::Rm(args) => remove::run(args, globals),
        Action::Config(args) => describe::run_config(args, globals),
    }
}

/// `KEY=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is no setting: write KEY=VALUE")),
    }
}

/// The topics that are named, or the one of `--topic`.
fn names(named: &[String], globals: &Globals) -> Vec<String> {
    if named.is_empty() { globals.topic.iter().cloned().collect() } else { named.to_vec() }
}
