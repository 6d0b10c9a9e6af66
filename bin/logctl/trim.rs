//! `logctl trim`: drops the oldest records, as Kafka's `DeleteRecords` does.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::Value;
use stratalog::{Access, Error, Isolation, LogConfig, LogWriter, Offset, SegmentInfo, Timestamp};

use crate::{
    change::{Change, carry_out, close},
    consent::Consent,
    failure::Failure,
    globals::Globals,
    grammar::{self, Border},
    newest::{beyond_newest, newest_of, times_text},
    output::{Output, counted},
    recovered::tell_recovery,
    scope::Scope,
    source::Source,
    target::{Target, topic_partition},
    truncate::{RANGE_HINT, keep_in},
};

/// Drop the oldest records of a log, or of many
///
/// The log begins at the offset given; files with nothing else in them are removed, and nothing is kept of them but in
/// --backup. Refused while a writer or a broker holds the log.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("where").required(true).args(["before", "offset_json_file"])))]
#[command(after_long_help = "\
The file of --offset-json-file is that of kafka-delete-records:
  {\"partitions\":[{\"topic\":\"orders\",\"partition\":0,\"offset\":1200}],\"version\":1}
Offset -1 stands for the end.

Exit code 8: some partitions could not be looked at or changed; the others were.

Examples:
  logctl trim data/orders-0 --before 1200                    # shows what would go
  logctl trim data/orders-0 --before 1200 --yes
  logctl trim data/orders-0 --before -7d --yes
  logctl trim data --topic orders --before @2026-11-01 --yes # of a topic
  logctl trim data/orders-0 --before end --yes               # everything
  logctl trim data --offset-json-file offsets.json --yes     # many at once")]
pub(crate) struct Args {
    /// Partition directory, or a data directory: every partition of it, or of the topic given by --topic
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// The first offset that stays; or a time: the first record of that time or later; or end
    #[arg(long, value_name = "OFFSET", value_parser = grammar::past_border, allow_hyphen_values = true)]
    before: Option<Border>,
    /// Partitions of the data directory and their offsets, as kafka-delete-records takes them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["topic", "partition"])]
    offset_json_file: Option<PathBuf>,
    /// Keep the files that go in this directory, which is made if need be
    #[arg(long, value_name = "DIR")]
    backup: Option<PathBuf>,
    #[command(flatten)]
    consent: Consent,
    /// JSON lines: the plan, and what was done
    #[arg(short = 'J', long)]
    json: bool,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let (scope, borders) = match (&args.offset_json_file, args.before) {
        (Some(file), _) => scope_of_file(args, globals, file)?,
        (None, Some(before)) => {
            let scope = Scope::find(globals, args.target.as_deref())?;
            let borders = scope.targets.iter().map(|target| (target.path.clone(), before)).collect();
            (scope, borders)
        }
        // clap wants one of them.
        (None, None) => return Err(Failure::usage("no --before given")),
    };
    let is_many = scope.is_many();
    carry_out(&Trim { args, globals, borders, is_many }, scope, &args.consent, (globals, args.json))
}

/// The partitions that a file names, in a data directory, and from where on they stay.
fn scope_of_file(
    args: &Args,
    globals: &Globals,
    file: &Path,
) -> Result<(Scope, BTreeMap<PathBuf, Border>), Failure> {
    let Some(directory) = args.target.as_ref().or(globals.dir.as_ref()) else {
        return Err(Failure::usage("no data directory given").hint("name it, or give it with --dir"));
    };
    if !directory.is_dir() {
        return Err(Failure::not_found(format!("no such directory: {}", directory.display())));
    }
    let text = fs::read(file).map_err(|error| Failure::io("read", file.display(), &error))?;
    let borders = parse(&text).map_err(|what| {
        Failure::usage(format!("{}: {what}", file.display()))
            .hint(r#"{"partitions":[{"topic":"orders","partition":0,"offset":1200}],"version":1}"#)
    })?;
    let borders: BTreeMap<PathBuf, Border> =
        borders.into_iter().map(|(name, border)| (directory.join(name), border)).collect();
    let targets = borders.keys().map(|path| Target::new(path.clone(), false)).collect();
    Ok((Scope { targets, directory: Some(directory.clone()) }, borders))
}

/// The file of `kafka-delete-records`: directories of partitions, each with its offset.
fn parse(text: &[u8]) -> Result<BTreeMap<String, Border>, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("no JSON: {error}"))?;
    match value.get("version").map(Value::as_i64) {
        None | Some(Some(1)) => {}
        Some(_) => return Err("a version other than 1".to_owned()),
    }
    let partitions = value.get("partitions").and_then(Value::as_array).ok_or("no array \"partitions\"")?;
    let mut borders = BTreeMap::new();
    for entry in partitions {
        let topic = entry.get("topic").and_then(Value::as_str);
        let number = |field: &str| entry.get(field).and_then(Value::as_i64);
        let (Some(topic), Some(partition), Some(offset)) = (topic, number("partition"), number("offset"))
        else {
            return Err(format!("{entry} has not a topic, a partition and an offset"));
        };
        let name = format!("{topic}-{partition}");
        if topic_partition(&name).is_none_or(|(found, _)| found != topic) {
            return Err(format!("{entry} names no partition"));
        }
        let border = match offset {
            -1 => Border::End,
            offset => Border::Offset(Offset::new(offset).ok_or_else(|| format!("{entry}: no such offset"))?),
        };
        if borders.insert(name, border).is_some() {
            return Err(format!("{topic}-{partition} is named twice"));
        }
    }
    Ok(borders)
}

struct Trim<'a> {
    args: &'a Args,
    globals: &'a Globals,
    borders: BTreeMap<PathBuf, Border>,
    is_many: bool,
}

/// From where on records stay, and the `.log` files that go.
struct Plan {
    before: Offset,
    going: Vec<PathBuf>,
}

impl Change for Trim<'_> {
    type Plan = Plan;

    fn plan(&self, target: &Target, out: &mut Output) -> Result<Option<Plan>, Failure> {
        if !target.path.exists() {
            return Err(Failure::not_found("no such partition"));
        }
        target.must_be_directory()?;
        let Some(border) = self.borders.get(&target.path) else { return Ok(None) };
        let source = Source::open(target, Access::Normal, Isolation::Uncommitted)?;
        let (start, end) = (source.start(), source.end());
        let before = border.resolve(start, end, |at| match source.first_not_before(at)? {
            None if end > start => Err(beyond_newest(at, self.is_many)),
            found => Ok(found),
        })?;
        if before > end {
            let range = Error::OffsetOutOfRange { requested: before, start, end };
            return Err(Failure::from(range).hint(RANGE_HINT));
        }
        let going = wholly_below(&source, before);
        let bytes: u64 = going.iter().map(|segment| segment.size_bytes).sum();
        let is_needless = before <= start;
        let newest = match &source {
            Source::Log(reader) if !is_needless => newest_of(&reader.segments(), &(start..before))?,
            _ => None,
        };
        if out.is_json() {
            out.object("plan")
                .text("verb", "trim")
                .text("path", &target.path.to_string_lossy())
                .bare("start", start)
                .bare("end", end)
                .bare("before", before.max(start))
                .bare("segments", going.len())
                .bare("bytes", bytes)
                .maybe("time", border.time().map(Timestamp::millis))
                .maybe("newest_timestamp", newest.map(Timestamp::millis))
                .end();
        } else {
            let path = target.path.display();
            let text = if is_needless {
                format!("{path}: nothing to drop: the log begins at {start}\n")
            } else {
                format!(
                    "{path}: drop offsets {start} up to {before}; {} of {} go{}\n",
                    counted(going.len() as u64, "segment"),
                    counted(bytes, "byte"),
                    times_text(*border, newest)
                )
            };
            out.foreign(text.as_bytes())?;
        }
        let going = going.into_iter().map(|segment| segment.path).collect();
        Ok((!is_needless).then_some(Plan { before, going }))
    }

    fn apply(&self, target: &Target, plan: Plan, out: &mut Output) -> Result<(), Failure> {
        let mut writer = LogWriter::open(&target.path, LogConfig::default())?;
        tell_recovery(writer.recovery(), self.globals);
        if let Some(backup) = &self.args.backup {
            let name = target.path.file_name().filter(|_| self.is_many);
            let dir = name.map_or_else(|| backup.clone(), |name| backup.join(name));
            keep_in(&dir, &with_indexes(&plan.going))?;
        }
        writer.advance_start(plan.before)?;
        let done = writer.maintain()?;
        let start = writer.start();
        close(writer, target)?;
        if out.is_json() {
            out.object("done")
                .text("verb", "trim")
                .text("path", &target.path.to_string_lossy())
                .bare("start", start)
                .bare("segments", done.dropped_segments)
                .bare("bytes", done.dropped_bytes)
                .end();
        } else if !self.globals.quiet {
            let text = format!(
                "{}: dropped: the log begins at offset {start}; {} of {} removed\n",
                target.path.display(),
                counted(done.dropped_segments as u64, "segment"),
                counted(done.dropped_bytes, "byte")
            );
            out.foreign(text.as_bytes())?;
        }
        Ok(())
    }
}

/// Segments with nothing at or above an offset. The last one always stays.
fn wholly_below(source: &Source, before: Offset) -> Vec<SegmentInfo> {
    let Source::Log(reader) = source else { return Vec::new() };
    let segments = reader.segments();
    let next_bases: Vec<Offset> = segments.iter().skip(1).map(|next| next.base_offset).collect();
    let going = segments.into_iter().zip(next_bases).take_while(|(_, next)| *next <= before);
    going.map(|(segment, _)| segment).collect()
}

/// These `.log` files, and what lies beside them.
fn with_indexes(logs: &[PathBuf]) -> Vec<PathBuf> {
    let suffixes = ["log", "index", "timeindex", "txnindex"];
    let all = logs.iter().flat_map(|log| suffixes.map(|suffix| log.with_extension(suffix)));
    all.filter(|file| file.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_kafkas_tool() {
        let at = |value| Border::Offset(Offset::new(value).unwrap());
        let text = r#"{"partitions":[{"topic":"a-b","partition":1,"offset":7},{"topic":"a","partition":0,"offset":-1}],"version":1}"#;
        let wanted = BTreeMap::from([("a-b-1".to_owned(), at(7)), ("a-0".to_owned(), Border::End)]);
        assert_eq!(parse(text.as_bytes()), Ok(wanted));
        assert_eq!(parse(br#"{"partitions":[]}"#), Ok(BTreeMap::new()));
        for (text, what) in [
            ("[]", "no array"),
            ("x", "no JSON"),
            (r#"{"partitions":[],"version":2}"#, "version"),
            (r#"{"partitions":[{"topic":"a","partition":0}]}"#, "has not"),
            (r#"{"partitions":[{"topic":"../a","partition":0,"offset":1}]}"#, "no partition"),
            (r#"{"partitions":[{"topic":"a","partition":-1,"offset":1}]}"#, "no partition"),
            (r#"{"partitions":[{"topic":"a","partition":0,"offset":-2}]}"#, "no such offset"),
            (
                r#"{"partitions":[{"topic":"a","partition":0,"offset":1},{"topic":"a","partition":0,"offset":2}]}"#,
                "twice",
            ),
        ] {
            assert!(parse(text.as_bytes()).is_err_and(|error| error.contains(what)), "{text}");
        }
    }
}
