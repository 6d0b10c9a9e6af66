//! `logctl diff`: are two logs the same, by the bytes of their files, by their batches, or by their records.
//!
//! Lives here: the command line, the answer. Not here: walking two logs side by side (`side.rs`), comparing files
//! (`bytes.rs`), whole data directories (`data_dir.rs`). Holds always: nothing is changed, no lock is taken, and the comparison ends at the first difference,
//! whose places on both sides are told.

mod bytes;
mod data_dir;
mod side;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::ValueEnum;
use stratalog::Offset;

use crate::{
    failure::{Code, Failure},
    globals::Globals,
    output::{Output, counted},
    progress::Progress,
    scope::partitions_of,
    stop::Stop,
    target::Target,
};

/// Compare two logs, or two data directories; exit code 0 where they are the same, 4 where they differ
///
/// It ends at the first difference of a log and tells where that is on both sides: file, position, offset. Without an option
/// batches are compared, which is what a copy must keep.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
What must be the same:
  bytes    every file but the private ones of this program: names, lengths, bytes
  batches  the batches, byte for byte, from the first readable offset on;
           segments may begin elsewhere
  records  what a consumer is given: offset, timestamp, key, value, headers; however
           they are batched or compressed

Exit code 4 also where one side is damaged: the message on standard error then names it (\"B is
damaged\"), and that they differ is not said. --by bytes compares damaged files too.

Examples:
  logctl diff data/orders-0 backup/orders-0
  logctl diff data/orders-0 backup/orders-0 --by bytes
  logctl diff data/orders-0 mirror/orders-0 --by records
  logctl diff data /mnt/other/data
  logctl diff a/00000000000000000000.log b/00000000000000000000.log -J")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    /// A partition directory, a data directory, or one .log file
    #[arg(value_name = "A")]
    a: PathBuf,
    /// What to compare it with: of the same kind
    #[arg(value_name = "B")]
    b: PathBuf,
    /// What must be the same
    #[arg(long, value_enum, value_name = "WHAT", default_value = "batches")]
    by: By,
    /// The same as --by bytes
    #[arg(long, conflicts_with_all = ["by", "records", "batches"])]
    bytes: bool,
    /// The same as --by batches
    #[arg(long, conflicts_with_all = ["by", "records"])]
    batches: bool,
    /// The same as --by records
    #[arg(long, conflicts_with = "by")]
    records: bool,
    /// Let the leader epochs of batches differ, which a copy through a broker gives anew
    #[arg(long, conflicts_with = "bytes")]
    ignore_epoch: bool,
    /// JSON lines: an object for the difference, and one that sums up
    #[arg(short = 'J', long)]
    json: bool,
}

/// `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Bytes,
    Batches,
    Records,
}

impl By {
    const fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Batches => "batches",
            Self::Records => "records",
        }
    }
}

/// A place on one side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    pub(crate) position: Option<u64>,
    pub(crate) offset: Option<Offset>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(position) = self.position {
            write!(f, " at byte {position}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " (offset {offset})")?;
        }
        Ok(())
    }
}

/// The first difference.
#[derive(Debug)]
pub(crate) struct Difference {
    /// A stable word for scripts.
    pub(crate) kind: &'static str,
    pub(crate) detail: String,
    pub(crate) a: Place,
    pub(crate) b: Place,
}

/// How much was the same.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Of data directories.
    pub(crate) partitions: u64,
    pub(crate) files: u64,
    pub(crate) batches: u64,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) difference: Option<Difference>,
}

/// What a comparison needs beside its two sides.
pub(crate) struct Watch {
    stop: Stop,
    progress: Progress,
}

impl Watch {
    pub(crate) fn new(globals: &Globals, label: &'static str, total_bytes: u64) -> Self {
        Self { stop: globals.stop(), progress: Progress::new(globals, label, total_bytes) }
    }

    /// To be called between two units of work, with all bytes that are done.
    pub(crate) fn tick(&mut self, done_bytes: u64) -> Result<(), Failure> {
        self.progress.update(done_bytes);
        self.stop.check()
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let by = match (args.bytes, args.records) {
        (true, _) => By::Bytes,
        (_, true) => By::Records,
        _ => args.by,
    };
    if by == By::Bytes && args.ignore_epoch {
        return Err(Failure::usage("--ignore-epoch says nothing about bytes").hint("use --by batches"));
    }
    refuse_topic(globals)?;
    if let (Some(in_a), Some(in_b)) = (partitions_of(&args.a), partitions_of(&args.b)) {
        let sides = ((args.a.as_path(), in_a), (args.b.as_path(), in_b));
        let (total, found) = data_dir::compare_all(sides.0, sides.1, by, args.ignore_epoch, globals)?;
        return conclude((&args.a, &args.b), by, &total, &found, args.json, globals);
    }
    let (a, b) = (Target::existing(globals, Some(&args.a))?, Target::existing(globals, Some(&args.b))?);
    if a.is_file != b.is_file {
        let (file, dir) = if a.is_file { (&a, &b) } else { (&b, &a) };
        let what = format!("{} is a file and {} a directory", file.path.display(), dir.path.display());
        return Err(Failure::usage(what).hint("compare two partition directories, or two files"));
    }
    let mut compared = compare(&a, &b, by, args.ignore_epoch, globals)?;
    let found: Vec<_> = compared.difference.take().into_iter().collect();
    conclude((&a.path, &b.path), by, &compared, &found, args.json, globals)
}

/// Two logs, or two files.
fn compare(
    a: &Target,
    b: &Target,
    by: By,
    ignore_epoch: bool,
    globals: &Globals,
) -> Result<Compared, Failure> {
    match by {
        By::Bytes => bytes::compare(a, b, globals),
        By::Batches => side::compare_batches(a, b, ignore_epoch, globals),
        By::Records => side::compare_records(a, b, globals),
    }
}

fn conclude(
    sides: (&Path, &Path),
    by: By,
    compared: &Compared,
    found: &[Difference],
    json: bool,
    globals: &Globals,
) -> Result<ExitCode, Failure> {
    print(sides, by, compared, found, json, globals)?;
    if found.is_empty() { Ok(ExitCode::SUCCESS) } else { Err(Failure::quiet(Code::Corrupt)) }
}

/// A side must be named whole: `--topic` is one topic, and there are two sides.
fn refuse_topic(globals: &Globals) -> Result<(), Failure> {
    if globals.topic.is_some() {
        return Err(Failure::usage("--topic names one partition, and two are compared")
            .hint("name both directories; with --dir a bare name is looked up there"));
    }
    Ok(())
}

fn print(
    (a, b): (&Path, &Path),
    by: By,
    compared: &Compared,
    found: &[Difference],
    json: bool,
    globals: &Globals,
) -> Result<(), Failure> {
    let mut out = globals.report(json)?;
    if out.is_json() {
        for found in found {
            json_difference(&mut out, by, found);
        }
        out.object("summary")
            .text("a", &a.to_string_lossy())
            .text("b", &b.to_string_lossy())
            .text("by", by.word())
            .bare("equal", found.is_empty())
            .bare("partitions", compared.partitions)
            .bare("files", compared.files)
            .bare("batches", compared.batches)
            .bare("records", compared.records)
            .bare("bytes", compared.bytes)
            .end();
        return out.finish();
    }
    for found in found {
        out.foreign(
            format!("{}: {}\n  A: {}\n  B: {}\n", found.kind, found.detail, found.a, found.b).as_bytes(),
        )?;
    }
    if by == By::Batches && found.iter().any(|found| found.kind == "batch") && !globals.quiet {
        out.line("--by records finds the record")?;
    }
    if !globals.quiet {
        let mut how_much = match by {
            By::Bytes => format!("{}, {}", counted(compared.files, "file"), counted(compared.bytes, "byte")),
            By::Batches => {
                format!("{}, {}", counted(compared.batches, "batch"), counted(compared.bytes, "byte"))
            }
            By::Records => counted(compared.records, "record"),
        };
        if compared.partitions > 0 {
            how_much = format!("{}, {how_much}", counted(compared.partitions, "partition"));
        }
        let (verdict, how_much) = match found {
            [] => ("the same", how_much),
            [_] => ("different", format!("{how_much} the same before that")),
            all => ("different", format!("{}, {how_much} the same", counted(all.len() as u64, "difference"))),
        };
        out.foreign(
            format!("{} and {}: {verdict} by {}: {how_much}\n", a.display(), b.display(), by.word())
                .as_bytes(),
        )?;
    }
    out.finish()
}

fn json_difference(out: &mut Output, by: By, found: &Difference) {
    out.object("difference")
        .text("by", by.word())
        .text("kind", found.kind)
        .text("a_file", &found.a.file.to_string_lossy())
        .maybe("a_position", found.a.position)
        .maybe("a_offset", found.a.offset)
        .text("b_file", &found.b.file.to_string_lossy())
        .maybe("b_position", found.b.position)
        .maybe("b_offset", found.b.offset)
        .text("detail", &found.detail)
        .end();
}
