//! `logctl topic create`.

use std::process::ExitCode;

use super::{names, pair, place::Place};
use crate::{
    broker::{
        BrokerArgs,
        admin::{Made, NewTopic},
        check_topic,
    },
    failure::{Code, Failure},
    globals::Globals,
    output::{Output, counted},
};

/// Make topics
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl topic create -b localhost:9092 payments --partitions 3 --config cleanup.policy=delete
  logctl topic create --dir new payments refunds --if-not-exists")]
pub(super) struct Args {
    /// Their names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// How many partitions; default: as many as the broker gives, in a directory 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    partitions: Option<i32>,
    /// How many copies of each; default: as many as the broker makes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
    replication_factor: Option<i16>,
    /// A setting of the topics, as retention.ms=86400000; repeat for more
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    config: Vec<(String, String)>,
    /// Leave a topic that is there as it is, without an error
    #[arg(long)]
    if_not_exists: bool,
    /// Only check whether they could be made
    #[arg(long)]
    dry_run: bool,
    /// JSON lines
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    broker: BrokerArgs,
}

pub(super) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let names = names(&args.names, globals);
    if names.is_empty() {
        return Err(
            Failure::usage("no topic given").hint("write its name: logctl topic create -b HOST:PORT NAME")
        );
    }
    names.iter().try_for_each(|name| check_topic(name))?;
    let place = Place::find(&args.broker, globals)?;
    let mut out = globals.report(args.json)?;
    let stop = globals.stop();
    let mut failed = 0;
    for name in &names {
        stop.check()?;
        let new = NewTopic {
            name: name.clone(),
            partitions: args.partitions,
            replicas: args.replication_factor,
            settings: args.config.clone(),
        };
        let failure = match place.create(&new, args.dry_run)? {
            Made::New { partitions, replicas } => {
                tell(name, (partitions, replicas), args.dry_run, globals, &mut out)?;
                continue;
            }
            Made::WasThere if args.if_not_exists => {
                globals.note(format!("topic `{name}` is there already"));
                continue;
            }
            Made::WasThere => Failure::other(format!("topic `{name}` is there already"))
                .hint("--if-not-exists leaves it as it is; `logctl topic alter` changes it"),
            Made::Failed(failure) => failure,
        };
        if names.len() == 1 {
            return Err(failure);
        }
        failed += 1;
        globals.complain(&failure);
    }
    out.finish()?;
    if failed > 0 { Err(Failure::quiet(Code::Partly)) } else { Ok(ExitCode::SUCCESS) }
}

fn tell(
    name: &str,
    (partitions, replicas): (i32, i16),
    is_trial: bool,
    globals: &Globals,
    out: &mut Output,
) -> Result<(), Failure> {
    let known = u64::try_from(partitions).ok().filter(|count| *count > 0);
    if out.is_json() {
        let object = out
            .object(if is_trial { "plan" } else { "done" })
            .text("verb", "topic create")
            .text("topic", name);
        let object = match known {
            Some(count) => object.bare("partitions", count).bare("replicas", replicas),
            None => object,
        };
        object.end();
        return out.spill();
    }
    if globals.quiet {
        return Ok(());
    }
    let with = known.map(|count| format!(" with {}", counted(count, "partition"))).unwrap_or_default();
    let verb = if is_trial { "would make" } else { "made" };
    out.foreign(format!("{verb} topic {name}{with}\n").as_bytes())
}
