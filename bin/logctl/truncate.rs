//! `logctl truncate`: cuts the newest records off. What is cut is kept, unless told otherwise.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use stratalog::{
    Access, Cut, Error, Isolation, LogConfig, LogReader, LogWriter, Offset, Timestamp, inspect::Partition,
};

use crate::{
    change::{Change, carry_out},
    consent::Consent,
    failure::Failure,
    globals::Globals,
    grammar::{self, Border},
    newest::{beyond_newest, newest_of, times_text},
    output::{Output, counted},
    recovered::{tell_loss, tell_warnings},
    scope::Scope,
    source::Source,
    target::Target,
};

/// Cut the newest records off a log
///
/// What is cut is kept in the directory. A new leader epoch begins, by which readers notice. A batch is cut whole or
/// not at all: an offset inside one is refused, and the message names the two beside it that are not. Refused while a writer or a broker holds the log.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  logctl truncate data/orders-0 --to 1200                    # shows what would go
  logctl truncate data/orders-0 --to 1200 --yes
  logctl truncate data/orders-0 --to @2026-11-30T08:00:00Z --yes --backup /var/backups/orders")]
pub(crate) struct Args {
    /// Partition directory
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// The first offset that goes; or a time: the first record of that time or later
    #[arg(long, value_name = "OFFSET", value_parser = grammar::past_border, allow_hyphen_values = true)]
    to: Border,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    consent: Consent,
    /// JSON lines: the plan, and what was done
    #[arg(short = 'J', long)]
    json: bool,
}

/// What becomes of the bytes that are cut.
#[derive(Debug, clap::Args)]
pub(crate) struct Kept {
    /// Move what is cut to this directory, which is made if need be
    #[arg(long, value_name = "DIR")]
    backup: Option<PathBuf>,
    /// Do not keep what is cut
    #[arg(long, conflicts_with = "backup")]
    discard: bool,
}

/// Where the offset of a verb that cuts may lie.
pub(crate) const RANGE_HINT: &str = "name an offset of this range, its end included; nothing was changed";

/// What would be cut.
struct Plan {
    start: Offset,
    end: Offset,
    to: Offset,
    bytes: u64,
    /// Segments that go wholly.
    segments: u64,
    /// Of what goes.
    newest: Option<Timestamp>,
    /// A cut that was begun before and is finished first.
    pending: Option<Offset>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let target = partition_directory(globals, args.target.as_deref())?;
    let scope = Scope { targets: vec![target], directory: None };
    carry_out(&Truncate { args, globals }, scope, &args.consent, (globals, args.json))
}

struct Truncate<'a> {
    args: &'a Args,
    globals: &'a Globals,
}

impl Change for Truncate<'_> {
    type Plan = Offset;

    fn plan(&self, target: &Target, out: &mut Output) -> Result<Option<Offset>, Failure> {
        let mut plan = plan(target, self.args)?;
        plan.pending = Partition::open(&target.path)?.pending_cut().and_then(|pending| pending.offset);
        self.args.print_plan(out, target, &plan)?;
        Ok((plan.to < plan.end || plan.pending.is_some()).then_some(plan.to))
    }

    fn apply(&self, target: &Target, to: Offset, out: &mut Output) -> Result<(), Failure> {
        self.args.kept.prepare()?;
        let mut writer = LogWriter::open_cut(&target.path, LogConfig::default(), to)?;
        let cut = writer.recovery().cut.clone();
        tell_warnings(writer.recovery());
        tell_loss(writer.recovery(), self.globals);
        let epoch = writer.leader_epoch();
        // The next open need not scan; what was cut stays cut without it.
        writer.sync()?;
        writer.close()?;
        if let Some(mut cut) = cut {
            cut.kept_in = self.args.kept.settle(cut.kept_in)?;
            Args::print_done(out, &cut, epoch, self.globals)?;
        }
        Ok(())
    }
}

/// The target of a verb that works on a log as a whole.
pub(crate) fn partition_directory(globals: &Globals, target: Option<&Path>) -> Result<Target, Failure> {
    let target = Target::existing(globals, target)?;
    target.must_be_directory()?;
    Ok(target)
}

fn plan(target: &Target, args: &Args) -> Result<Plan, Failure> {
    let source = Source::open(target, Access::Normal, Isolation::Uncommitted)?;
    let (start, end) = (source.start(), source.end());
    let to = args.to.resolve(start, end, |at| match source.first_not_before(at)? {
        None if end > start => Err(beyond_newest(at, false)),
        found => Ok(found),
    })?;
    if to < start || to > end {
        return Err(Failure::from(Error::OffsetOutOfRange { requested: to, start, end }).hint(RANGE_HINT));
    }
    let mut plan = Plan { start, end, to, bytes: 0, segments: 0, newest: None, pending: None };
    let Source::Log(reader) = source else { return Ok(plan) };
    if to < end {
        measure(&reader, &mut plan)?;
        plan.newest = newest_of(&reader.segments(), &(to..end))?;
    }
    Ok(plan)
}

fn measure(reader: &LogReader, plan: &mut Plan) -> Result<(), Failure> {
    let mut batches = reader.batches(plan.to);
    let first = match batches.next_batch() {
        Ok(Some(batch)) => Some((batch.base_offset(), batch.last_offset())),
        // What is damaged can be cut as well.
        Ok(None) | Err(Error::Corrupt(_)) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some((first, last)) = first.filter(|(first, _)| *first < plan.to) {
        return Err(Error::InsideBatch { offset: plan.to, first, last }.into());
    }
    let place = first.and(batches.position_of_last());
    for segment in reader.segments() {
        if segment.base_offset >= plan.to {
            plan.bytes += segment.size_bytes;
            plan.segments += 1;
        } else if let Some((_, position)) = place.filter(|(base, _)| *base == segment.base_offset) {
            plan.bytes += segment.size_bytes.saturating_sub(position);
        }
    }
    Ok(())
}

impl Kept {
    /// The same for one of many partitions: a directory of its own in the one that was named.
    pub(crate) fn within(&self, partition: Option<&OsStr>) -> Self {
        let backup = match (&self.backup, partition) {
            (Some(dir), Some(name)) => Some(dir.join(name)),
            (dir, _) => dir.clone(),
        };
        Self { backup, discard: self.discard }
    }

    fn word(&self) -> String {
        match (&self.backup, self.discard) {
            (Some(dir), _) => format!("moved to {}", dir.display()),
            (None, true) => "not kept".to_owned(),
            (None, false) => "kept in the directory".to_owned(),
        }
    }

    /// Makes the directory for them, before anything is cut.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        let Some(dir) = &self.backup else { return Ok(()) };
        fs::create_dir_all(dir).map_err(|error| Failure::io("create", dir.display(), &error))
    }

    /// Does with the files that hold what was cut what was asked for; where they are now.
    pub(crate) fn settle(&self, mut files: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
        if let Some(dir) = self.backup.as_ref().filter(|_| !files.is_empty()) {
            self.prepare()?;
            for file in &mut files {
                *file = move_durably(file, dir)?;
            }
            sync_directory(dir)?;
        }
        if self.discard {
            for file in std::mem::take(&mut files) {
                fs::remove_file(&file).map_err(|error| Failure::io("remove", file.display(), &error))?;
            }
        }
        Ok(files)
    }
}

/// Keeps files in a directory, made if need be, by a link or else a copy, durably. A name that is taken there is refused.
pub(crate) fn keep_in(dir: &Path, files: &[PathBuf]) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| Failure::io("create", dir.display(), &error))?;
    for file in files {
        let to = dir.join(file.file_name().unwrap_or_default());
        match fs::hard_link(file, &to) {
            Ok(()) => continue,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Failure::io("keep", to.display(), &error).note("nothing was changed"));
            }
            // Another file system, or one without links.
            Err(_) => {}
        }
        let copied = File::create_new(&to).and_then(|mut copy| {
            io::copy(&mut File::open(file)?, &mut copy)?;
            copy.sync_all()
        });
        copied.map_err(|error| Failure::io("keep", to.display(), &error).note("nothing was changed"))?;
    }
    sync_directory(dir)
}

/// Moves a file to a directory, which may lie on another disk, under a name that is free there.
fn move_durably(file: &Path, dir: &Path) -> Result<PathBuf, Failure> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.trim_start_matches('.');
    let mut to = dir.join(name);
    let mut copy = loop {
        match File::create_new(&to) {
            Ok(copy) => break copy,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let longer = format!("{}+", to.display());
                to = PathBuf::from(longer);
            }
            Err(error) => return Err(Failure::io("create", to.display(), &error)),
        }
    };
    let moved = File::open(file)
        .and_then(|mut from| io::copy(&mut from, &mut copy))
        .and_then(|_| copy.sync_all())
        .and_then(|()| fs::remove_file(file));
    moved.map_err(|error| {
        Failure::io("move", file.display(), &error).note(format!("it is still in {}", file.display()))
    })?;
    Ok(to)
}

fn sync_directory(dir: &Path) -> Result<(), Failure> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| Failure::io("sync", dir.display(), &error))
}

impl Args {
    fn print_plan(&self, out: &mut Output, target: &Target, plan: &Plan) -> Result<(), Failure> {
        if out.is_json() {
            let mut line = out.object("plan");
            if let Some(pending) = plan.pending {
                line = line.bare("pending_cut", pending);
            }
            line.text("verb", "truncate")
                .text("path", &target.path.to_string_lossy())
                .bare("start", plan.start)
                .bare("end", plan.end)
                .bare("to", plan.to)
                .bare("bytes", plan.bytes)
                .bare("segments", plan.segments)
                .maybe("time", self.to.time().map(Timestamp::millis))
                .maybe("newest_timestamp", plan.newest.map(Timestamp::millis))
                .text("cut_bytes_are", &self.kept.word())
                .end();
            return Ok(());
        }
        let path = target.path.display();
        if let Some(pending) = plan.pending {
            let text = format!("{path}: finish the cut at offset {pending}, which was begun before\n");
            out.foreign(text.as_bytes())?;
            if plan.to == plan.end {
                return Ok(());
            }
        }
        if plan.to == plan.end {
            return out.foreign(format!("{path}: nothing to cut: the log ends at {}\n", plan.end).as_bytes());
        }
        let text = format!(
            "{path}: cut offsets {} up to {}: {}, {} wholly; {}{}\n",
            plan.to,
            plan.end,
            counted(plan.bytes, "byte"),
            counted(plan.segments, "segment"),
            self.kept.word(),
            times_text(self.to, plan.newest),
        );
        out.foreign(text.as_bytes())
    }

    fn print_done(out: &mut Output, cut: &Cut, epoch: i32, globals: &Globals) -> Result<(), Failure> {
        if out.is_json() {
            let kept: Vec<_> = cut.kept_in.iter().map(|file| file.to_string_lossy()).collect();
            let kept = serde_json::to_string(&kept).unwrap_or_else(|_| "[]".to_owned());
            out.object("done")
                .text("verb", "truncate")
                .bare("end", cut.offset)
                .bare("bytes", cut.bytes)
                .bare("leader_epoch", epoch)
                .bare("kept_in", kept)
                .end();
            return Ok(());
        }
        if globals.quiet {
            return Ok(());
        }
        out.line(format!("cut: the log ends at offset {}, leader epoch {epoch} begins", cut.offset))?;
        for file in &cut.kept_in {
            let size = fs::metadata(file).map_or(0, |found| found.len());
            out.foreign(format!("  kept: {} ({})\n", file.display(), counted(size, "byte")).as_bytes())?;
        }
        Ok(())
    }
}
