//! `logctl config`: where the file is, and what holds in the end.

use std::{env, path::PathBuf, process::ExitCode};

use clap::{ArgMatches, parser::ValueSource};

use super::{
    Config,
    connection::{self, ClientFile, SERVERS},
    file::Setting,
    keys::{BROKERS, CONNECTION, GLOBAL},
};
use crate::{
    failure::Failure,
    globals::Globals,
    report::{Cell, Column, Rows},
};

/// Names the servers, as the key `brokers` does.
const BROKERS_VAR: &str = "LOGCTL_BROKERS";

/// Show the settings that hold, or where their file is
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The file is ${XDG_CONFIG_HOME:-~/.config}/logctl/config.toml, or what LOGCTL_CONFIG names (empty:
none). An option beats the environment, which beats the profile, which beats the rest of the file:

  dir = \"~/data\"            # of the options above: dir, topic, partition, output, quiet, verbose,
  output = \"jsonl\"          # color, progress (true or false), pager, timeout; log as in LOGCTL_LOG
  profile = \"local\"         # the one to take where neither --profile nor LOGCTL_PROFILE chooses

  [append]                  # the long options of a verb that say how it works
  compression = \"zstd\"

  [profiles.staging]        # the same keys and tables; [profiles.staging.append]
  dir = \"/mnt/staging\"

What a flag is set to by the file the command line takes back with =false, as in --quiet=false.
Servers (brokers, LOGCTL_BROKERS) and the table [connection], with the keys of
librdkafka, are what verbs with -b use where no directory is named: see
`logctl help brokers`.

Examples:
  logctl config path
  logctl config show
  logctl config show --profile staging -J | jq -r 'select(.origin != \"default\").key'
  logctl config show -F client.properties -X security.protocol=SASL_SSL")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print every setting that holds, and where it comes from
    Show(ShowArgs),
    /// Print the path of the file, whether it is there or not
    Path,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// JSON lines: an object for each setting
    #[arg(short = 'J', long)]
    json: bool,
    /// Add what a client's file says: key=value as for librdkafka and kcat, or Java's .properties
    #[arg(short = 'F', long, value_name = "FILE")]
    client_file: Option<PathBuf>,
    /// Add one of its keys; repeat for more
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = connection::pair)]
    setting: Vec<(&'static str, String)>,
}

impl Args {
    /// True where a file that makes no sense is no reason to stop.
    pub(crate) fn needs_no_file(&self) -> bool {
        matches!(self.action, Action::Path)
    }
}

const COLUMNS: &[Column] = &[
    Column::text("key", "KEY"),
    Column::text("value", "VALUE"),
    Column::text("origin", "ORIGIN"),
    Column::field("file"),
    Column::field("line"),
];

/// Runs the verb. `matches`: of the whole command line.
pub(crate) fn run(
    args: &Args,
    globals: &Globals,
    config: &Config,
    matches: &ArgMatches,
) -> Result<ExitCode, Failure> {
    match &args.action {
        Action::Path => path(globals),
        Action::Show(args) => show(args, globals, config, matches),
    }
}

fn path(globals: &Globals) -> Result<ExitCode, Failure> {
    let (Some(path), _) = super::place() else {
        return Err(Failure::not_found("there is no configuration file")
            .hint("LOGCTL_CONFIG is empty, or neither HOME nor XDG_CONFIG_HOME is set"));
    };
    let mut out = globals.report(false)?;
    out.without_array();
    if out.is_json() {
        out.object("config").text("path", &path.to_string_lossy()).bare("exists", path.is_file()).end();
    } else {
        out.foreign(path.to_string_lossy().as_bytes())?;
        out.line("")?;
        if !path.is_file() {
            globals.note("note: it is not there");
        }
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn show(
    args: &ShowArgs,
    globals: &Globals,
    config: &Config,
    matches: &ArgMatches,
) -> Result<ExitCode, Failure> {
    let mut rows = Rows::new("setting", COLUMNS);
    if let Some((name, origin)) = &config.profile {
        rows.push([Cell::text("profile"), Cell::text(name), Cell::text(origin), Cell::Absent, Cell::Absent]);
    }
    let of_file =
        |key: &str| config.settings.iter().find(|setting| setting.section.is_none() && setting.key == key);
    for key in GLOBAL.iter().filter(|key| key.name != BROKERS) {
        let from_file = of_file(key.name);
        if key.option.is_empty() {
            let named = env::var("LOGCTL_LOG").ok().filter(|filter| !filter.is_empty());
            match (named, from_file) {
                (Some(filter), _) => rows.push(plain(key.name, filter, "LOGCTL_LOG")),
                (None, Some(setting)) => rows.push(config.row(setting)),
                (None, None) => rows.push(built_in(key.name, None)),
            }
            continue;
        }
        let id = key.option.replace('-', "_");
        let values: Option<Vec<_>> = matches
            .try_get_raw(&id)
            .ok()
            .flatten()
            .map(|values| values.map(|value| value.to_string_lossy().into_owned()).collect());
        let value = values.map(|values| match (key.is_inverted, values.join(",").as_str()) {
            (true, "true") => "false".to_owned(),
            (true, _) => "true".to_owned(),
            (false, value) => value.to_owned(),
        });
        let value = if key.name == "verbose" { Some(globals.verbose.to_string()) } else { value };
        match (matches.value_source(&id), from_file, value) {
            (Some(ValueSource::CommandLine), _, Some(value)) => {
                rows.push(plain(key.name, value, &format!("--{}", key.option)));
            }
            (Some(ValueSource::EnvVariable), _, Some(value)) => {
                rows.push(plain(key.name, value, "LOGCTL_DIR"));
            }
            (_, Some(setting), _) => rows.push(config.row(setting)),
            (_, None, value) => rows.push(built_in(key.name, value)),
        }
    }
    let mut of_verbs: Vec<&Setting> = config
        .settings
        .iter()
        .filter(|setting| setting.section.is_some_and(|section| section != CONNECTION))
        .collect();
    of_verbs.sort_by_key(|setting| setting.name());
    for setting in of_verbs {
        rows.push(config.row(setting));
    }
    connections(args, config, &mut rows, globals)?;
    let mut out = globals.report(args.json)?;
    rows.print(&mut out, !globals.quiet)?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// What clients of brokers would be told, the strongest of each key.
fn connections(args: &ShowArgs, config: &Config, rows: &mut Rows, globals: &Globals) -> Result<(), Failure> {
    let mut found: std::collections::BTreeMap<&str, [Cell; 5]> = std::collections::BTreeMap::new();
    let name =
        |key: &'static str| if key == SERVERS { BROKERS.to_owned() } else { format!("{CONNECTION}.{key}") };
    for setting in &config.settings {
        match setting.section {
            // The key of the same meaning in the table is the weaker one.
            None if setting.key == BROKERS => drop(found.insert(SERVERS, config.row(setting))),
            Some(CONNECTION) if setting.key != SERVERS || !found.contains_key(SERVERS) => {
                found.insert(setting.key, config.row(setting));
            }
            _ => {}
        }
    }
    if let Some(list) = env::var(BROKERS_VAR).ok().filter(|list| !list.is_empty()) {
        let servers =
            connection::servers(&list).map_err(|what| Failure::usage(format!("{BROKERS_VAR}: {what}")))?;
        found.insert(SERVERS, plain(BROKERS, servers, BROKERS_VAR));
    }
    if let Some(path) = &args.client_file {
        let file = ClientFile::read(path)?;
        for (key, value) in file.keys {
            found.insert(key, plain(&name(key), shown(key, value), &format!("-F {}", path.display())));
        }
        if !file.ignored.is_empty() {
            globals.note(format!("note: {}: ignored: {}", path.display(), file.ignored.join(", ")));
        }
    }
    for (key, value) in &args.setting {
        found.insert(key, plain(&name(key), shown(key, value.clone()), "-X"));
    }
    for row in found.into_values() {
        rows.push(row);
    }
    Ok(())
}

fn plain(key: &str, value: String, origin: &str) -> [Cell; 5] {
    [Cell::text(key), Cell::Text(value), Cell::text(origin), Cell::Absent, Cell::Absent]
}

fn built_in(key: &str, value: Option<String>) -> [Cell; 5] {
    [
        Cell::text(key),
        value.map_or(Cell::Absent, Cell::Text),
        Cell::text("default"),
        Cell::Absent,
        Cell::Absent,
    ]
}

fn shown(key: &str, value: String) -> String {
    if connection::is_secret(key) { "********".to_owned() } else { value }
}

impl Config {
    fn row(&self, setting: &Setting) -> [Cell; 5] {
        let path = self.path.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let place = format!("{path}:{}", setting.line);
        let origin = match &setting.profile {
            Some(profile) => format!("profile {profile}, {place}"),
            None => place,
        };
        [
            Cell::text(setting.name()),
            Cell::text(shown(setting.key, setting.values.join(","))),
            Cell::Text(origin),
            Cell::Text(path),
            Cell::number(setting.line),
        ]
    }
}
