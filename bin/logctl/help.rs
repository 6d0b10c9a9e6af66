//! `logctl help`: a verb's help, or a topic.

use std::process::ExitCode;

use clap::{Command, CommandFactory};

use crate::{
    failure::Failure,
    globals::Globals,
    manual::{self, Topic},
};

/// Print the help of a verb, or about a topic: `logctl help recipes`
#[derive(Debug, clap::Args)]
#[command(after_long_help = after())]
pub(crate) struct Args {
    /// A verb or a topic; default: what there is
    #[arg(value_name = "VERB|TOPIC")]
    name: Option<String>,
}

fn after() -> String {
    format!(
        "Topics:\n{}\nExamples:\n  logctl help recipes\n  logctl help offsets\n  logctl help cat",
        manual::topic_list()
    )
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let mut command = crate::Cli::command();
    command.build();
    let Some(name) = &args.name else { return print(&command.render_long_help(), globals) };
    if let Some(topic) = Topic::find(name) {
        let mut out = globals.stdout()?;
        out.bytes(topic.text().as_bytes())?;
        if command.find_subcommand(name).is_some() {
            out.line(format!("\nThe verb of this name: `logctl {name} --help`."))?;
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    match command.find_subcommand_mut(name) {
        Some(verb) => print(&verb.render_long_help(), globals),
        None => Err(unknown(&command, name)),
    }
}

fn print(help: &clap::builder::StyledStr, globals: &Globals) -> Result<ExitCode, Failure> {
    let mut out = globals.stdout()?;
    out.bytes(help.to_string().as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Neither a verb nor a topic.
pub(crate) fn unknown(command: &Command, name: &str) -> Failure {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
    let topics = manual::TOPICS.iter().map(|topic| topic.name);
    Failure::usage(format!("no verb or topic is called {name:?}")).hint(format!(
        "verbs: {}\n  topics: {}",
        verbs.collect::<Vec<_>>().join(", "),
        topics.collect::<Vec<_>>().join(", ")
    ))
}
