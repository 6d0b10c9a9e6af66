//! `logctl copy` and `logctl snapshot`: a log, or a data directory of logs, as it is at this moment, in another directory.
//!
//! Lives here: the command lines, the answer. Not here: what there is to copy (`listing.rs`), the order of things
//! (`partition.rs`, `data_dir.rs`), bytes and names on the disk (`files.rs`), the proof (`check.rs`, `finished.rs`). Holds always: no lock
//! of the source is taken and nothing in it is changed; of a log that is being written everything up to one moment is
//! copied, and nothing that was not published; a name in the copy that is not private stands for a whole, durable file; the
//! mark of an unfinished copy goes last.

mod check;
mod data_dir;
mod files;
mod finished;
mod listing;
mod partition;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use crate::{
    failure::{Code, Failure},
    globals::Globals,
    grammar,
    output::{Output, counted},
    progress::Progress,
    scope::{Found, partitions_of, reachable},
    stop::Stop,
    truncate::partition_directory,
};
use files::Destination;
use listing::Listing;
use partition::Done;

/// Copy a log, or all logs of a data directory, as it is at this moment
///
/// Works beside a writer and takes no lock: of each log what is published when its turn comes is copied, also while it
/// rolls, or retention deletes. Room that is reserved is not copied, holes stay holes, and blocks are shared where the file
/// system can (btrfs, XFS). When it says that it is done, all of it is durable. Cursors come along.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Until it is done the copy holds a file .stratalog-copy-of, and --resume goes on with it: files that are
there whole are not copied again. No writer opens it before; who wants what is there as it is removes
that file. A copy that was finished is compared with SRC, and left as it is. Of a data directory the files that say what a broker knows come along
too; the marker of a clean stop only if nobody opened it meanwhile.

To move a partition to another disk end its writer, copy, compare, and only then remove: the last of
these examples.

Examples:
  logctl copy data/orders-0 /mnt/other/orders-0
  logctl copy data /mnt/other/data --rate 100MiB
  logctl copy data/orders-0 /mnt/other/orders-0 --resume --check
  logctl copy -d data -t orders -p 0 /mnt/other/orders-0
  logctl copy data/orders-0 /mnt/o-0 && logctl diff data/orders-0 /mnt/o-0 && rm -r data/orders-0")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct CopyArgs {
    /// What is copied, a partition or a data directory (left out with --topic), and where to: a directory that does not
    /// exist, or an empty one
    #[arg(value_names = ["SRC", "DST"], num_args = 1..=2, required = true)]
    places: Vec<PathBuf>,
    /// Go on with a copy that was interrupted: whole files in DST are not copied again
    #[arg(long)]
    resume: bool,
    /// Copy at most so many bytes a second
    #[arg(long, value_name = "SIZE", value_parser = positive_size)]
    rate: Option<u64>,
    /// When all is there, read both sides again, the copy from its disk, and compare their checksums
    #[arg(long)]
    check: bool,
    /// Do not share blocks with the source, also where the file system can
    #[arg(long)]
    no_reflink: bool,
    /// Make missing directories above DST too; without it they must be there, as a disk that is not mounted is not
    #[arg(long)]
    parents: bool,
    /// Say what would be copied, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// JSON lines: an object for each file, and one that sums up
    #[arg(short = 'J', long)]
    json: bool,
}

/// Make a copy of a log, or of a data directory, as it is at this moment, quickly
///
/// Like `copy`; with --hardlink, segments that cannot change any more are linked instead of copied, which takes no room and
/// no time. The segment that is being written is always copied: a link to it would go on growing with the log, and so are
/// segments above the recovery point, which a crash of the writer could still cut.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A linked file is one file under two names: do not let a broker write to a snapshot that was made
with --hardlink.

Examples:
  logctl snapshot data/orders-0 /backup/orders-0.2026-11-30
  logctl snapshot data/orders-0 data/.snapshots/orders-0 --hardlink --parents")]
pub(crate) struct SnapshotArgs {
    #[command(flatten)]
    copy: CopyArgs,
    /// Link segments below the recovery point, where SRC and DST lie on one file system
    #[arg(long, overrides_with = "no_hardlink")]
    hardlink: bool,
    /// Copy them, which is what is done without --hardlink
    #[arg(long, overrides_with = "hardlink")]
    no_hardlink: bool,
}

fn positive_size(text: &str) -> Result<u64, String> {
    grammar::size(text).and_then(|size| if size == 0 { Err("must not be 0".to_owned()) } else { Ok(size) })
}

/// How files are to be copied.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
struct How {
    links: bool,
    may_share: bool,
    check: bool,
    resume: bool,
}

/// How far it is, how fast it may be, whether to stop.
struct Flow {
    stop: Stop,
    progress: Progress,
    pace: Option<Pace>,
    /// Bytes of the files that are done.
    done_bytes: u64,
}

/// `--rate`.
struct Pace {
    per_second: u64,
    began: Instant,
    /// Bytes of the files that were copied, not linked or found.
    bytes: u64,
}

impl Pace {
    /// When what was copied is due, now that the present file has `done` bytes.
    fn due(&self, done: u64) -> Option<Instant> {
        let bytes = u128::from(self.bytes.saturating_add(done));
        let ms = u64::try_from(bytes * 1000 / u128::from(self.per_second)).ok()?;
        self.began.checked_add(Duration::from_millis(ms))
    }
}

impl Flow {
    /// So much of the present file is copied. False: there is a reason to stop.
    fn tell(&mut self, done: u64) -> bool {
        self.progress.update(self.done_bytes.saturating_add(done));
        if let Some(due) = self.pace.as_ref().and_then(|pace| pace.due(done)) {
            while self.stop.reason().is_none() {
                let early = due.saturating_duration_since(Instant::now());
                if early.is_zero() {
                    break;
                }
                std::thread::sleep(early.min(Duration::from_millis(20)));
            }
        }
        self.stop.reason().is_none()
    }

    /// A file of this size is there.
    fn pass(&mut self, bytes: u64) {
        self.done_bytes = self.done_bytes.saturating_add(bytes);
        self.progress.update(self.done_bytes);
    }

    /// The same, and it was copied just now.
    fn pass_copied(&mut self, bytes: u64) {
        self.pass(bytes);
        if let Some(pace) = &mut self.pace {
            pace.bytes = pace.bytes.saturating_add(bytes);
        }
        self.tell(0);
    }
}

/// What is copied.
enum Source {
    Partition(PathBuf),
    DataDirectory(PathBuf, Vec<Found>),
}

impl Source {
    fn path(&self) -> &Path {
        match self {
            Self::Partition(path) | Self::DataDirectory(path, _) => path,
        }
    }

    /// Partitions that stand there by name only, as links to a disk that is not mounted.
    fn unreachable(&self) -> Vec<Failure> {
        match self {
            Self::Partition(_) => Vec::new(),
            Self::DataDirectory(_, found) => {
                found.iter().filter_map(|found| reachable(&found.path).err()).collect()
            }
        }
    }
}

pub(crate) fn run(args: &CopyArgs, globals: &Globals) -> Result<ExitCode, Failure> {
    copy(args, false, globals)
}

pub(crate) fn run_snapshot(args: &SnapshotArgs, globals: &Globals) -> Result<ExitCode, Failure> {
    copy(&args.copy, args.hardlink && !args.no_hardlink, globals)
}

fn places(args: &CopyArgs, globals: &Globals) -> Result<(Source, PathBuf), Failure> {
    let (source, destination) = match args.places.as_slice() {
        [source, destination] => (Some(source.as_path()), destination),
        [destination] if globals.topic.is_some() => (None, destination),
        _ => {
            return Err(Failure::usage("a copy has two places, and one is named: required are SRC and DST")
                .hint("with --dir and --topic, which name SRC, DST alone is enough"));
        }
    };
    if globals.topic.is_none()
        && let Some(dir) = source
        && let Some(partitions) = partitions_of(dir)
    {
        return Ok((Source::DataDirectory(dir.to_owned(), partitions), destination.clone()));
    }
    let source = partition_directory(globals, source)?;
    Ok((Source::Partition(source.path), destination.clone()))
}

fn copy(args: &CopyArgs, links: bool, globals: &Globals) -> Result<ExitCode, Failure> {
    let (source, to) = places(args, globals)?;
    refuse_inside(&source, &to)?;
    let how = How { links, may_share: !args.no_reflink, check: args.check, resume: args.resume };
    let stop = globals.stop();
    let listed = planned(&source, links)?;
    let unreachable = source.unreachable();
    for failure in &unreachable {
        globals.complain(failure);
    }
    let partly = |ended: ExitCode| {
        if unreachable.is_empty() { Ok(ended) } else { Err(Failure::quiet(Code::Partly)) }
    };
    if args.dry_run {
        let total = total_of(&listed);
        return conclude((args, &how), (source.path(), &to), &listed, &total, &[], globals).and_then(partly);
    }
    if !args.parents {
        require_parent(&to)?;
    }
    let total = listed.iter().map(|(_, listing, _)| listing.total_bytes()).sum();
    drop(listed);
    let mut flow = Flow {
        stop,
        progress: Progress::new(globals, "copy", total),
        pace: args.rate.map(|per_second| Pace { per_second, began: Instant::now(), bytes: 0 }),
        done_bytes: 0,
    };
    let outcome = match &source {
        Source::Partition(path) => one(path, &to, &how, &mut flow),
        Source::DataDirectory(path, partitions) => data_dir::copy(path, partitions, &to, &how, &mut flow),
    };
    drop(flow);
    match outcome {
        Ok(whole) => {
            let places = (source.path(), to.as_path());
            conclude((args, &how), places, &whole.partitions, &whole.total, &whole.left, globals)?;
            if !unreachable.is_empty() {
                globals.note(partition::GO_ON);
            }
            partly(ExitCode::SUCCESS)
        }
        Err(failure) if failure.is_quiet() => {
            globals.note(partition::GO_ON);
            Err(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// A copy to a disk that is not mounted would fill the one that its mount point lies on.
fn require_parent(to: &Path) -> Result<(), Failure> {
    let above = to.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if above.is_dir() {
        return Ok(());
    }
    Err(Failure::not_found(format!("no such directory: {}", above.display()))
        .hint("is the disk mounted? --parents makes the directories above DST"))
}

/// Beside its partitions a broker stands no directory that it does not know.
fn refuse_inside(source: &Source, to: &Path) -> Result<(), Failure> {
    let Source::DataDirectory(path, _) = source else { return Ok(()) };
    let above = to.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (path.canonicalize(), above.canonicalize()) {
        (Ok(source), Ok(above)) if source == above => {
            Err(Failure::usage(format!("{} lies in the source", to.display())).hint("copy to another place"))
        }
        _ => Ok(()),
    }
}

type Copied = Vec<(PathBuf, Listing, Done)>;

fn planned(source: &Source, links: bool) -> Result<Copied, Failure> {
    let one = |path: &Path| Ok((path.to_owned(), Listing::of(path, links)?, Done::default()));
    match source {
        Source::Partition(path) => Ok(vec![one(path)?]),
        Source::DataDirectory(_, partitions) => partitions
            .iter()
            .filter(|found| reachable(&found.path).is_ok())
            .map(|found| one(&found.path))
            .filter(|listed: &Result<_, Failure>| !listed.as_ref().is_err_and(partition::is_gone))
            .collect(),
    }
}

fn total_of(listed: &Copied) -> Done {
    let mut total = Done::default();
    for (_, listing, _) in listed {
        total.files += listing.items.len() as u64;
        total.bytes += listing.total_bytes();
        total.add_small_files(listing);
    }
    total
}

fn one(path: &Path, to: &Path, how: &How, flow: &mut Flow) -> Result<data_dir::Whole, Failure> {
    let Some(destination) = Destination::open(to, path, how.resume)? else {
        let (listing, total) = finished::prove(path, to, flow)?;
        partition::carry_start(to, listing.start)?;
        let partitions = vec![(path.to_owned(), listing, total)];
        return Ok(data_dir::Whole { partitions, total, left: Vec::new() });
    };
    let (listing, done) = partition::copy(path, destination, how, flow)?;
    partition::carry_start(to, listing.start)?;
    let partitions = vec![(path.to_owned(), listing, done)];
    Ok(data_dir::Whole { partitions, total: done, left: Vec::new() })
}

fn conclude(
    (args, how): (&CopyArgs, &How),
    (source, to): (&Path, &Path),
    partitions: &Copied,
    total: &Done,
    left: &[String],
    globals: &Globals,
) -> Result<ExitCode, Failure> {
    let mut out = globals.report(args.json)?;
    if out.is_json() {
        json(&mut out, (args, source, to), partitions, total)?;
    } else if !globals.quiet {
        let what = match partitions.as_slice() {
            [(_, listing, _)] => format!("offsets {} up to {}", listing.start, listing.end),
            all => counted(all.len() as u64, "partition"),
        };
        let verb = match total.was_finished {
            true => "are whole already in",
            false if args.dry_run => "would be copied to",
            false => "copied to",
        };
        let mut text = format!(
            "{}: {what} {verb} {}: {}, {}",
            source.display(),
            to.display(),
            counted(total.files, "file"),
            counted(total.bytes, "byte"),
        );
        let checked = if (how.check && !args.dry_run) || total.was_finished { total.checked } else { 0 };
        let parts = [
            (total.linked, "linked"),
            (if total.was_finished { 0 } else { total.kept }, "there already"),
            (total.shared, "by sharing blocks"),
            (checked, "checked"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        if !parts.is_empty() {
            text = format!("{text} ({})", parts.join(", "));
        }
        text.push('\n');
        out.foreign(text.as_bytes())?;
    }
    out.finish()?;
    if !left.is_empty() {
        globals.note(format!("note: not copied, for it is no partition: {}", left.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

fn json(
    out: &mut Output,
    (args, source, to): (&CopyArgs, &Path, &Path),
    partitions: &Copied,
    total: &Done,
) -> Result<(), Failure> {
    let is_one = partitions.len() == 1;
    for (path, listing, _) in partitions {
        if !is_one {
            out.object("partition")
                .text("source", &path.to_string_lossy())
                .bare("start", listing.start)
                .bare("end", listing.end)
                .bare("files", listing.items.len() + listing.small_files().count())
                .bare(
                    "bytes",
                    listing.total_bytes() + listing.small_files().map(|(_, bytes)| bytes).sum::<u64>(),
                )
                .end();
        }
        for item in &listing.items {
            out.object("file").text("name", &item.name).bare("bytes", item.bytes).end();
            out.spill()?;
        }
        for (name, bytes) in listing.small_files() {
            out.object("file").text("name", name).bare("bytes", bytes).end();
        }
    }
    let only = partitions.first().filter(|_| is_one).map(|(_, listing, _)| listing);
    out.object(if args.dry_run { "plan" } else { "summary" })
        .text("source", &source.to_string_lossy())
        .text("destination", &to.to_string_lossy())
        .maybe("start", only.map(|listing| listing.start))
        .maybe("end", only.map(|listing| listing.end))
        .bare("partitions", partitions.len())
        .bare("files", total.files)
        .bare("bytes", total.bytes)
        .bare("copied", total.copied)
        .bare("linked", total.linked)
        .bare("shared", total.shared)
        .bare("kept", total.kept)
        .bare("checked", total.checked)
        .end();
    Ok(())
}
