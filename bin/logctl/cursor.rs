//! `logctl cursor`: the places of consumers, as `tail --cursor` keeps them, looked at, moved and removed.
//!
//! Holds always: what looks changes nothing; a place is moved or removed after its plan and `--yes`, and never while a
//! consumer holds it.

use std::{path::PathBuf, process::ExitCode};

use stratalog::{Access, Cursor, Error, Isolation, LogReader, Offset, ReadOptions};

use crate::{
    consent::Consent,
    failure::{Code, Failure},
    globals::Globals,
    grammar::{self, Border},
    info::{Place, cursors},
    output::Output,
    printer::out_of_range,
    report::{Cell, Column, Rows},
    scope::Scope,
    source::Source,
    target::Target,
};

/// List, move or remove the cursors of consumers, which `tail --cursor` keeps
///
/// A cursor is a name and the offset that its consumer reads next. It lies in the log's directory and goes along with copies.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Exit code 3: there is no such cursor, or no such offset; 5: a consumer holds it.

Examples:
  logctl cursor ls data/orders-0
  logctl cursor ls data -J | jq -c '{cursor, lag}'                # of every log
  logctl cursor set data/orders-0 billing --to start --yes        # read all again
  logctl cursor set data/orders-0 billing --to -1h --dry-run
  logctl cursor rm data/orders-0 billing --yes")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    #[command(visible_alias = "list")]
    Ls(ListArgs),
    Set(SetArgs),
    Rm(RemoveArgs),
}

/// List the cursors of a log, or of all logs of a data directory, and how far behind they are
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Partition directory, or a data directory: every partition of it, or of the topic given by --topic
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// JSON lines
    #[arg(short = 'J', long)]
    json: bool,
}

/// Say where a consumer goes on; makes the cursor where there is none
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
struct SetArgs {
    /// Partition directory
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// The cursor's name
    #[arg(value_name = "NAME")]
    cursor: String,
    /// The offset that is read next; or a time: the first record of that time or later; or start, end
    #[arg(long, value_name = "OFFSET", value_parser = grammar::border, allow_hyphen_values = true)]
    to: Border,
    #[command(flatten)]
    consent: Consent,
    /// JSON lines: the plan, and what was done
    #[arg(short = 'J', long)]
    json: bool,
}

/// Remove a cursor: its consumer begins anew
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
struct RemoveArgs {
    /// Partition directory
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// The cursor's name
    #[arg(value_name = "NAME")]
    cursor: String,
    #[command(flatten)]
    consent: Consent,
    /// JSON lines: the plan, and what was done
    #[arg(short = 'J', long)]
    json: bool,
}

/// Runs the verb.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    match &args.action {
        Action::Ls(args) => list(args, globals),
        Action::Set(args) => {
            let target = log(args.target.as_ref(), globals)?;
            let to = offset_of(&target, args.to)?;
            let change = Change { target, name: &args.cursor, to: Some(to) };
            change.carry_out(&args.consent, args.json, globals)
        }
        Action::Rm(args) => {
            let target = log(args.target.as_ref(), globals)?;
            let change = Change { target, name: &args.cursor, to: None };
            change.carry_out(&args.consent, args.json, globals)
        }
    }
}

const COLUMNS: &[Column] = &[
    Column::text("path", "LOG"),
    Column::text("cursor", "CURSOR"),
    Column::number("offset", "NEXT"),
    Column::number("lag", "LAG"),
    Column::field("leader_epoch"),
    Column::field("in_use"),
    Column::field("error"),
    Column::heading("STATE"),
];

fn list(args: &ListArgs, globals: &Globals) -> Result<ExitCode, Failure> {
    let scope = Scope::find(globals, args.target.as_deref())?;
    let mut out = globals.report(args.json)?;
    let mut rows = Rows::new("cursor", COLUMNS);
    let outcome = scope.each(globals, |target| {
        target.must_be_directory()?;
        let end = LogReader::open(&target.path, ReadOptions::default())?.end();
        for place in cursors(end, target)? {
            rows.push([
                Cell::text(target.path.to_string_lossy()),
                Cell::text(&place.name),
                Cell::maybe(place.offset),
                Cell::maybe(place.lag),
                Cell::maybe(place.leader_epoch),
                Cell::Flag(place.in_use),
                place.error.as_ref().map_or(Cell::Absent, Cell::text),
                Cell::text(place.state()),
            ]);
        }
        Ok(())
    });
    rows.print(&mut out, true)?;
    out.finish()?;
    outcome.map(|()| ExitCode::SUCCESS)
}

fn log(target: Option<&PathBuf>, globals: &Globals) -> Result<Target, Failure> {
    let target = Target::existing(globals, target.map(PathBuf::as_path))?;
    target.must_be_directory()?;
    Ok(target)
}

/// The offset that was meant, in the log.
fn offset_of(target: &Target, to: Border) -> Result<Offset, Failure> {
    let source = Source::open(target, Access::Normal, Isolation::Uncommitted)?;
    let (start, end) = (source.start(), source.end());
    let offset = to.resolve(start, end, |at| source.first_not_before(at))?;
    if offset < start || offset > end {
        return Err(out_of_range(offset, start, end));
    }
    Ok(offset)
}

/// A cursor that is to be somewhere else, or nowhere.
struct Change<'a> {
    target: Target,
    name: &'a str,
    to: Option<Offset>,
}

impl Change<'_> {
    fn carry_out(&self, consent: &Consent, json: bool, globals: &Globals) -> Result<ExitCode, Failure> {
        let end = LogReader::open(&self.target.path, ReadOptions::default())?.end();
        let now = cursors(end, &self.target)?.into_iter().find(|place| place.name == self.name);
        let path = self.target.path.display();
        if now.is_none() && self.to.is_none() {
            let what = format!("{path}: there is no cursor {:?}", self.name);
            return Err(Failure::not_found(what).hint("`logctl cursor ls` lists them"));
        }
        let mut out = globals.report(json)?;
        self.tell("plan", now.as_ref(), &mut out)?;
        out.flush()?;
        let given = consent.is_given();
        if !matches!(given, Ok(true)) {
            out.finish()?;
            return given.map(|_| ExitCode::SUCCESS);
        }
        let mut cursor = Cursor::open(&self.target.path, self.name).map_err(|error| match error {
            Error::InvalidConfig { name, reason } => Failure::usage(format!("{name}: {reason}")),
            // Where it goes nobody needs to read it.
            Error::Corrupt(found) => Failure::new(Code::Corrupt, found.to_string())
                .hint("remove its file: its consumer then begins anew"),
            error => error.into(),
        })?;
        match self.to {
            Some(to) => cursor.commit(to)?,
            None => cursor.remove()?,
        }
        if out.is_json() {
            self.tell("done", now.as_ref(), &mut out)?;
        }
        out.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn tell(&self, kind: &'static str, now: Option<&Place>, out: &mut Output) -> Result<(), Failure> {
        let from = now.and_then(|place| place.offset);
        if out.is_json() {
            out.object(kind)
                .text("verb", if self.to.is_some() { "cursor set" } else { "cursor rm" })
                .text("path", &self.target.path.to_string_lossy())
                .text("cursor", self.name)
                .maybe("from", from)
                .maybe("to", self.to)
                .end();
            return Ok(());
        }
        let stands = match (now, from) {
            (None, _) => "is made".to_owned(),
            (Some(_), None) => "has no place".to_owned(),
            (Some(_), Some(from)) => format!("stands at {from}"),
        };
        let becomes = match self.to {
            Some(to) => format!("goes on at {to}"),
            None => "is removed".to_owned(),
        };
        let path = self.target.path.display();
        out.foreign(format!("{path}: cursor {}: {stands}, {becomes}\n", self.name).as_bytes())
    }
}
