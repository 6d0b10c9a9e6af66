//! `logctl copy` and `logctl snapshot`: a log as it is at this moment, in another directory.
//!
//! Lives here: the command lines, the order of things. Not here: bytes and names on the disk (`files.rs`). Holds always:
//! no lock of the source is taken and nothing in it is changed; of a log that is being written everything up to one moment
//! is copied, and nothing that was not published; a name in the copy that is not private stands for a whole, durable file;
//! the mark of an unfinished copy goes last.

mod files;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use stratalog::{Error, LogConfig, LogReader, LogWriter, Offset, ReadOptions, SegmentInfo};

use crate::{
    failure::{Code, Failure},
    globals::Globals,
    output::counted,
    progress::Progress,
    stop::Stop,
    target::Target,
    truncate::partition_directory,
};
use files::Destination;

/// How often a listing is begun anew because retention took a file from it.
const LISTINGS: usize = 20;

/// Files beside the segments that belong to a log. The checkpoint is ours: it has the start offset.
const BESIDE: [&str; 3] = [EPOCHS, "partition.metadata", ".stratalog-checkpoint"];
const EPOCHS: &str = "leader-epoch-checkpoint";

/// Copy a log to another directory, as it is at this moment
///
/// Works beside a writer: what is published when it begins is copied. Room that is reserved is not; blocks are shared
/// where the file system can. An interrupted copy is gone on with by --resume.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  logctl copy data/orders-0 /mnt/other/orders-0
  logctl copy data/orders-0 /mnt/other/orders-0 --resume
  logctl copy data/orders-0 /mnt/other/orders-0 && logctl diff data/orders-0 /mnt/other/orders-0")]
pub(crate) struct CopyArgs {
    /// Partition directory
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// Where the copy goes: a directory that does not exist, or an empty one
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// Go on with a copy that was interrupted: whole files in DST are not copied again
    #[arg(long)]
    resume: bool,
    /// Say what would be copied, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// JSON lines: an object for each file, and one that sums up
    #[arg(short = 'J', long)]
    json: bool,
}

/// Make a copy of a log as it is at this moment, quickly
///
/// Like `copy`; with --hardlink, segments that cannot change any more are linked instead of copied, which takes no room.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A linked file is one file under two names: do not let a broker write to a snapshot that was made
with --hardlink.

Examples:
  logctl snapshot data/orders-0 /backup/orders-0.2026-11-30
  logctl snapshot data/orders-0 data/.snapshots/orders-0 --hardlink")]
pub(crate) struct SnapshotArgs {
    #[command(flatten)]
    copy: CopyArgs,
    /// Link segments below the recovery point, where SRC and DST lie on one file system
    #[arg(long)]
    hardlink: bool,
}

/// A file to be copied.
struct Item {
    name: String,
    /// How much of it: the published part.
    bytes: u64,
    /// It cannot change any more: a link is as good as a copy.
    may_link: bool,
}

/// The log at one moment.
struct Listing {
    items: Vec<Item>,
    start: Offset,
    end: Offset,
    clean: bool,
    /// Read before the segments were listed, so that it knows of nothing that is not copied.
    beside: Vec<(String, Vec<u8>)>,
}

impl Listing {
    fn epochs(&self) -> &[u8] {
        self.beside.iter().find(|(name, _)| name == EPOCHS).map_or(&[], |(_, bytes)| bytes)
    }

    /// True where files of one name may have had other bytes when they were copied than when they were listed: the log
    /// was cut, which begins a leader epoch, or a writer opened one that was closed.
    fn is_outdated(&self, source: &Path) -> Result<bool, Failure> {
        let now = list(source, false)?;
        Ok(now.epochs() != self.epochs() || (self.clean && !now.clean))
    }
}

pub(crate) fn run(args: &CopyArgs, globals: &Globals) -> Result<ExitCode, Failure> {
    copy(args, false, globals)
}

pub(crate) fn run_snapshot(args: &SnapshotArgs, globals: &Globals) -> Result<ExitCode, Failure> {
    copy(&args.copy, args.hardlink, globals)
}

fn copy(args: &CopyArgs, links: bool, globals: &Globals) -> Result<ExitCode, Failure> {
    if globals.topic.is_some() {
        return Err(Failure::usage("--topic names one partition, and a copy has two places")
            .hint("name both directories; with --dir a bare SRC is looked up there"));
    }
    let source = partition_directory(globals, Some(&args.source))?;
    let stop = globals.stop();
    if args.dry_run {
        let listing = list(&source.path, links)?;
        return conclude(args, &source, &listing, &Done::default(), globals);
    }
    let destination = Destination::open(&args.destination, &source.path, args.resume)?;
    let mut tries = 0;
    let (listing, done) = loop {
        let listing = list(&source.path, links)?;
        destination.begin(EPOCHS, listing.epochs())?;
        let mut done = Done::default();
        match copy_all((&source, &listing), &destination, globals, &stop, &mut done) {
            Ok(()) if !listing.is_outdated(&source.path)? => break (listing, done),
            Ok(()) if tries < LISTINGS => {
                tries += 1;
                destination.clear()?;
            }
            Ok(()) => {
                let what = format!("{} was cut again and again meanwhile", source.path.display());
                return Err(Failure::other(what));
            }
            // Retention took a file, or the log was cut: what is there now is listed again.
            Err(failure) if is_gone(&failure) && tries < LISTINGS => tries += 1,
            Err(failure) => {
                let hint = "--resume goes on with it";
                if failure.is_quiet() {
                    globals.note(format!("the copy is not finished: {hint}"));
                    return Err(failure);
                }
                return Err(failure.hint(hint));
            }
        }
    };
    destination.finish(&listing.beside)?;
    carry_start(&args.destination, listing.start)?;
    conclude(args, &source, &listing, &done, globals)
}

/// A broker keeps the start of its logs beside them, where it does not come along.
fn carry_start(destination: &Path, start: Offset) -> Result<(), Failure> {
    let copied = LogReader::open(destination, ReadOptions::default())?.start();
    if copied >= start {
        return Ok(());
    }
    let mut writer = LogWriter::open(destination, LogConfig::default())?;
    writer.advance_start(start)?;
    Ok(writer.close()?)
}

/// What was done so far.
#[derive(Default)]
struct Done {
    bytes: u64,
    copied: u64,
    linked: u64,
    /// Found whole from a copy before.
    kept: u64,
}

fn copy_all(
    (source, listing): (&Target, &Listing),
    destination: &Destination,
    globals: &Globals,
    stop: &Stop,
    done: &mut Done,
) -> Result<(), Failure> {
    let mut progress = Progress::new(globals, "copy", listing.items.iter().map(|item| item.bytes).sum());
    let names: Vec<_> = listing.items.iter().map(|item| item.name.as_str()).chain([EPOCHS]).collect();
    destination.remove_all_but(&names)?;
    for item in &listing.items {
        stop.check()?;
        if destination.has(&item.name, item.bytes)? {
            done.kept += 1;
            done.bytes += item.bytes;
            continue;
        }
        let from = source.path.join(&item.name);
        if item.may_link && destination.link(&from, &item.name)? {
            done.linked += 1;
            done.bytes += item.bytes;
            continue;
        }
        let before = done.bytes;
        destination.copy(&from, &item.name, item.bytes, &mut |copied| {
            progress.update(before + copied);
            stop.check()
        })?;
        done.bytes += item.bytes;
        done.copied += 1;
    }
    Ok(())
}

fn is_gone(failure: &Failure) -> bool {
    failure.code == Code::NotFound || matches!(failure.source(), Some(Error::Truncated { .. }))
}

/// The files of the log and how much of each, at one moment.
fn list(source: &Path, links: bool) -> Result<Listing, Failure> {
    let mut beside = Vec::new();
    for name in BESIDE {
        match std::fs::read(source.join(name)) {
            Ok(bytes) => beside.push((name.to_owned(), bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io("read", source.join(name).display(), &error)),
        }
    }
    let reader = LogReader::open(source, ReadOptions::default())?;
    let stats = reader.stats();
    let segments = reader.segments();
    let mut items = Vec::new();
    for segment in &segments {
        // Below the recovery point nothing is ever cut or trimmed in place.
        let is_settled =
            segment.sealed && stats.recovery_point.is_some_and(|point| segment.next_offset <= point);
        let may_link = links && is_settled;
        items.push(Item { name: file_name(segment), bytes: segment.size_bytes, may_link });
        if segment.sealed || stats.clean {
            items.extend(sidecars(segment, may_link)?);
        }
    }
    items.extend(snapshots(source, stats.end)?);
    Ok(Listing { items, start: stats.start, end: stats.end, clean: stats.clean, beside })
}

fn file_name(segment: &SegmentInfo) -> String {
    segment.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The indexes of a segment that is not written to any more. Those of the last one are built by the next writer.
fn sidecars(segment: &SegmentInfo, may_link: bool) -> Result<Vec<Item>, Failure> {
    let mut items = Vec::new();
    for suffix in ["index", "timeindex", "txnindex"] {
        let path = segment.path.with_extension(suffix);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => {
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                items.push(Item { name, bytes: found.len(), may_link });
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io("look at", path.display(), &error)),
        }
    }
    Ok(items)
}

/// States of producers, up to the end that is copied: later ones speak of batches that are not.
fn snapshots(source: &Path, end: Offset) -> Result<Vec<Item>, Failure> {
    let fail = |error: std::io::Error| Failure::io("list", source.display(), &error);
    let mut items = Vec::new();
    for entry in std::fs::read_dir(source).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(digits) = name.strip_suffix(".snapshot").filter(|digits| digits.len() == 20) else {
            continue;
        };
        let is_within = digits.parse().ok().and_then(Offset::new).is_some_and(|offset| offset <= end);
        match entry.metadata() {
            Ok(found) if is_within && found.is_file() => {
                items.push(Item { name, bytes: found.len(), may_link: false });
            }
            _ => {}
        }
    }
    Ok(items)
}

fn conclude(
    args: &CopyArgs,
    source: &Target,
    listing: &Listing,
    done: &Done,
    globals: &Globals,
) -> Result<ExitCode, Failure> {
    let mut out = globals.report(args.json)?;
    let bytes: u64 = listing.items.iter().map(|item| item.bytes).sum();
    if out.is_json() {
        for item in &listing.items {
            out.object("file").text("name", &item.name).bare("bytes", item.bytes).end();
            out.spill()?;
        }
        out.object(if args.dry_run { "plan" } else { "summary" })
            .text("source", &source.path.to_string_lossy())
            .text("destination", &args.destination.to_string_lossy())
            .bare("start", listing.start)
            .bare("end", listing.end)
            .bare("files", listing.items.len())
            .bare("bytes", bytes)
            .bare("copied", done.copied)
            .bare("linked", done.linked)
            .bare("kept", done.kept)
            .end();
    } else if !globals.quiet {
        let verb = if args.dry_run { "would be copied" } else { "copied" };
        let text = format!(
            "{}: offsets {} up to {} {verb} to {}: {}, {} ({} linked, {} there already)\n",
            source.path.display(),
            listing.start,
            listing.end,
            args.destination.display(),
            counted(listing.items.len() as u64, "file"),
            counted(bytes, "byte"),
            done.linked,
            done.kept,
        );
        out.foreign(text.as_bytes())?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}
