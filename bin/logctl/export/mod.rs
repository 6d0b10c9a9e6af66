//! `logctl export`: a log as a stream, to standard output or into files.
//!
//! Lives here: the command line and the walk. Not here: files and parts (`parts.rs`), the formats (`stream`). Holds
//! always: no lock of the log is taken and nothing in it is changed; the end is the log's when the verb begins; a damaged
//! batch is never written; and a file has its name only once it is whole and durable.

mod parts;

use std::{
    fs,
    io::Write,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::ExitCode,
};

use stratalog::{
    Access, Isolation, LogReader, Offset,
    inspect::{LogFile, Piece, Tail},
    record::{BatchRef, Compression, OldMessage, Scratch, probe},
};

use crate::{
    csv::{self, Columns},
    decode::TextStyle,
    failure::{Code, Failure},
    globals::Globals,
    grammar::{self, OffsetRange},
    json::{JsonStyle, push_record},
    output::counted,
    progress::Progress,
    source::Source,
    stop::Stop,
    stream::{Format, csv_columns},
    target::Target,
    view::{BatchView, View},
};
use parts::Parts;

/// What the file beside an export begins with.
const START_WORD: &str = "log-start-offset: ";

/// So much is read at once.
const READ_BYTES: u32 = 1 << 20;

/// Write a log as a stream: all of its batches, or its records as JSON lines or CSV
///
/// raw is the stored batches one after the other, and `import` makes the same log of them again, byte for byte: offsets
/// and their gaps, leader epochs, producers, transactions, codecs. jsonl and csv keep what a record is (offset, timestamp,
/// key, value, headers; jsonl the type of the timestamp and the leader epoch too), not how records were batched, and no
/// transactions.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A trimmed log begins within a batch, or behind deleted ones: raw has whole batches, so where the
log begins is written to FILE.start, where `import` looks. Through a pipe, give it --start (a note
tells the offset): without it records that were trimmed can be seen again.

With --split the parts are FILE.00001, FILE.00002 and so on, each of whole batches (or lines) and to
be imported by itself or after the one before. After an interrupt the same command with --resume goes
on behind the last whole part.

Examples:
  logctl export data/orders-0 --to orders.raw
  logctl export data/orders-0 -z zstd > orders.raw.zst
  logctl export data/orders-0 --to orders.raw --split 64MiB -z zstd:9 --resume
  logctl export data/orders-0 -o @-2d: --format csv --to orders.csv
  logctl export data/orders-0 | logctl import backups/orders-0 --create")]
pub(crate) struct Args {
    /// Partition directory, or one .log file
    target: Option<PathBuf>,
    /// Which records; default: all. raw: every batch that holds one of them, whole
    #[arg(short, long, value_name = "RANGE", value_parser = grammar::offset_range, allow_hyphen_values = true)]
    offset: Vec<OffsetRange>,
    /// What is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "raw")]
    format: Format,
    /// Pack the whole stream: none, gzip, snappy, lz4 or zstd, with a level as in zstd:3
    #[arg(short = 'z', long, value_name = "CODEC", default_value = "none", value_parser = compression)]
    compression: Compression,
    /// Where to; default: standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Begin a new file once one has this size; a single batch may be larger
    #[arg(long, value_name = "SIZE", value_parser = positive_size, requires = "to")]
    split: Option<u64>,
    /// Go on behind the parts that are there, after proving that the last of them is the log's
    #[arg(long, requires = "split")]
    resume: bool,
    /// Write over files that are there
    #[arg(long, requires = "to", conflicts_with = "resume")]
    force: bool,
    /// jsonl and csv: leave out what was aborted, and end before the first open transaction
    #[arg(long)]
    committed: bool,
}

fn compression(text: &str) -> Result<Compression, String> {
    text.parse().map_err(|error: stratalog::record::CompressionError| error.to_string())
}

fn positive_size(text: &str) -> Result<u64, String> {
    grammar::size(text).and_then(|size| if size == 0 { Err("must not be 0".to_owned()) } else { Ok(size) })
}

/// A batch, or a record's line, that is never divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit<'u> {
    pub(super) bytes: &'u [u8],
    /// Reading from here gives it again.
    pub(super) first: Offset,
    /// The offset after it.
    pub(super) next: Offset,
}

/// What was exported.
#[derive(Default)]
struct Done {
    first: Option<Offset>,
    next: Option<Offset>,
    units: u64,
    bytes: u64,
    /// Bytes of the log.
    walked_bytes: u64,
    old_messages: u64,
    control_batches: u64,
    transactional_batches: u64,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    if args.committed && args.format == Format::Raw {
        return Err(Failure::usage("--committed leaves out records, and raw is all batches as they are")
            .hint("use --format jsonl or csv"));
    }
    let range = OffsetRange::merge(&args.offset).map_err(Failure::usage)?;
    let target = Target::existing(globals, args.target.as_deref())?;
    let isolation = if args.committed { Isolation::Committed } else { Isolation::Uncommitted };
    let source = Source::open(&target, Access::Sequential, isolation)?;
    let (mut from, to) = source.resolve(&range)?;
    let mut parts = Parts::open(args)?;
    let resumed = parts.resume()?;
    if let Some(resumed) = &resumed {
        from = resumed.last;
    }
    let stop = globals.stop();
    let mut export = Export {
        args,
        target: &target,
        parts,
        progress: Progress::new(globals, "export", total_bytes(&source, &target)),
        // The stream's first, not that of the rest.
        done: Done { first: resumed.map(|resumed| resumed.first), ..Done::default() },
        columns: csv_columns(),
        style: TextStyle::default(),
    };
    let walked = match (args.format, &source) {
        (Format::Raw, Source::Log(reader)) => export.raw_log(reader, from, to, &stop),
        (Format::Raw, Source::File(_)) => export.raw_file(from, to, &stop),
        (Format::Raw, Source::Broker(_)) => {
            Err(Failure::usage("a broker's partition is not exported as it is"))
        }
        (Format::Jsonl | Format::Csv, _) => export.records(&source, from, to, &stop),
    };
    let Export { parts, done, progress, .. } = export;
    drop(progress);
    let hides_start = args.format == Format::Raw
        && args.offset.is_empty()
        && from == source.start()
        && done.first.is_some_and(|first| first != from);
    let is_whole = args.offset.is_empty() && from == source.start();
    if let (Some(file), Ok(()), true) = (&args.to, &walked, is_whole) {
        // Before the stream has its name: who finds the one finds the other.
        note_start(file, Some(source.start()).filter(|_| hides_start))?;
    }
    let finished = match walked {
        Ok(()) => parts.finish(),
        Err(failure) => Err(parts.give_up(failure, globals)),
    };
    let files = finished?;
    conclude(args, &source, (from, to), &done, files, globals);
    Ok(ExitCode::SUCCESS)
}

/// The file beside an export that tells where the log begins, where its first batch does not: a trimmed log.
fn start_file(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".start");
    name.into()
}

/// Where the log of an exported file or part begins, by what `export` noted beside it.
pub(crate) fn noted_start(stream: &Path) -> Option<Offset> {
    let whole = || Some(stream.with_extension("")).filter(|_| is_part(stream));
    let text = [Some(stream.to_owned()), whole()].into_iter().flatten();
    let text = text.into_iter().find_map(|stream| fs::read_to_string(start_file(&stream)).ok())?;
    text.strip_prefix(START_WORD)?.trim().parse().ok().and_then(Offset::new)
}

/// True for such a file, which is no stream: a pattern of the shell that names the parts may name it too.
pub(crate) fn is_start_file(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "start")
        && fs::read(path).is_ok_and(|text| text.starts_with(START_WORD.as_bytes()))
}

/// True for a name that ends with the number of a part.
fn is_part(path: &Path) -> bool {
    path.extension()
        .is_some_and(|suffix| suffix.len() >= 5 && suffix.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Writes that file; where there is nothing to tell it must not be there, as from an export before.
fn note_start(to: &Path, start: Option<Offset>) -> Result<(), Failure> {
    let path = start_file(to);
    let Some(start) = start else {
        if fs::read(&path).is_ok_and(|text| text.starts_with(START_WORD.as_bytes())) {
            fs::remove_file(&path).map_err(|error| Failure::io("remove", path.display(), &error))?;
        }
        return Ok(());
    };
    let write = || {
        let mut file = fs::File::create(&path)?;
        file.write_all(format!("{START_WORD}{start}\n").as_bytes())?;
        file.sync_all()
    };
    write().map_err(|error| Failure::io("write", path.display(), &error))
}

fn total_bytes(source: &Source, target: &Target) -> u64 {
    match source {
        Source::Log(reader) => reader.stats().bytes,
        Source::File(_) => fs::metadata(&target.path).map_or(0, |found| found.len()),
        Source::Broker(_) => 0,
    }
}

struct Export<'a> {
    args: &'a Args,
    target: &'a Target,
    parts: Parts,
    progress: Progress,
    done: Done,
    /// Of CSV.
    columns: Columns,
    style: TextStyle,
}

impl Export<'_> {
    fn unit(&mut self, unit: Unit<'_>) -> Result<(), Failure> {
        self.parts.write(unit)?;
        self.done.first.get_or_insert(unit.first);
        self.done.next = Some(unit.next);
        self.done.units += 1;
        self.done.bytes += unit.bytes.len() as u64;
        Ok(())
    }

    fn raw_log(&mut self, reader: &LogReader, from: Offset, to: Offset, stop: &Stop) -> Result<(), Failure> {
        let (mut at, mut chunk, mut wanted) = (from, Vec::new(), READ_BYTES);
        while at < to {
            stop.check()?;
            let outcome = match reader.read(at, wanted, &mut chunk) {
                // What lies before the damage is written: one batch after the other until it is met again.
                Err(error) if error.is_corruption() && wanted > 1 => {
                    wanted = 1;
                    continue;
                }
                outcome => outcome?,
            };
            if outcome.bytes == 0 {
                // Offsets without records at the end.
                break;
            }
            let mut rest = chunk.get(..outcome.bytes).unwrap_or_default();
            while !rest.is_empty() {
                let size = probe(rest).ok().flatten().map_or(rest.len(), |found| as_len(found.size_bytes));
                let (bytes, after) = rest.split_at(size.min(rest.len()));
                rest = after;
                let (first, next, is_old) = extent(bytes).map_err(|error| {
                    Failure::new(Code::Corrupt, format!("the batch behind offset {at}: {error}"))
                })?;
                if at >= to || (first >= to && !is_old) {
                    return Ok(());
                }
                at = next;
                self.done.old_messages += u64::from(is_old);
                self.unit(Unit { bytes, first, next })?;
            }
            at = outcome.next;
            self.progress.update(self.done.bytes);
        }
        Ok(())
    }

    fn raw_file(&mut self, from: Offset, to: Offset, stop: &Stop) -> Result<(), Failure> {
        let file = LogFile::open(&self.target.path)?;
        let path = file.path().display();
        let damaged = |position: u64, what: &dyn std::fmt::Display| {
            Failure::new(Code::Corrupt, format!("{path} at byte {position}: {what}")).hint(
                "`logctl repair` drops what cannot be read; `logctl cat -J --skip-damaged` prints the rest",
            )
        };
        let mut pieces = file.pieces();
        while let Some(piece) = pieces.next_piece()? {
            stop.check()?;
            let (bytes, position, is_old) = match &piece {
                Piece::Batch(entry) => match entry.batch.filter(|_| entry.crc_ok()) {
                    Some(batch) => (batch.as_bytes(), entry.position, false),
                    None => return Err(damaged(entry.position, &"the CRC does not fit")),
                },
                Piece::Old(entry) if entry.crc_ok() => (entry.message.as_bytes(), entry.position, true),
                Piece::Old(entry) => return Err(damaged(entry.position, &"the CRC does not fit")),
                Piece::Bad { position, reason, .. } => return Err(damaged(*position, reason)),
                _ => return Err(damaged(0, &"something that this version does not know")),
            };
            let (first, next, _) = extent(bytes).map_err(|error| damaged(position, &error))?;
            if next <= from {
                continue;
            }
            if first >= to && !is_old {
                return Ok(());
            }
            self.done.old_messages += u64::from(is_old);
            self.unit(Unit { bytes, first, next })?;
            self.progress.update(position);
            if next >= to {
                return Ok(());
            }
        }
        match pieces.tail() {
            Some(Tail::Partial { position, .. }) => Err(damaged(*position, &"the beginning of a batch")),
            Some(Tail::Bad { position, reason, .. }) => Err(damaged(*position, reason)),
            _ => Ok(()),
        }
    }

    fn records(&mut self, source: &Source, from: Offset, to: Offset, stop: &Stop) -> Result<(), Failure> {
        if from >= to {
            return Ok(());
        }
        let (mut scratch, mut line) = (Scratch::new(), Vec::new());
        source.visit(from, stop, &mut |batch| {
            if batch.base_offset() >= to {
                return Ok(ControlFlow::Break(()));
            }
            self.done.walked_bytes += u64::from(batch.size_bytes());
            self.progress.update(self.done.walked_bytes);
            self.done.control_batches += u64::from(batch.is_control());
            self.done.transactional_batches += u64::from(batch.is_transactional() && !batch.is_control());
            if !batch.is_control() {
                self.batch(batch, (from, to), &mut scratch, &mut line)?;
            }
            let is_over = batch.next_offset().is_none_or(|next| next >= to);
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
    }

    fn batch(
        &mut self,
        batch: &BatchRef<'_>,
        (from, to): (Offset, Offset),
        scratch: &mut Scratch,
        line: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let fail = |error: stratalog::record::BatchError| {
            let what = format!("the records of the batch at offset {}: {error}", batch.base_offset());
            Failure::new(Code::Corrupt, what)
        };
        let common = BatchView::new(batch);
        for record in batch.records(scratch).map_err(fail)? {
            let record = record.map_err(fail)?;
            let first = record.offset();
            if first < from || first >= to {
                continue;
            }
            line.clear();
            let view = View::new(self.target, common, &record);
            match self.args.format {
                Format::Csv => csv::push_row(line, &view, &self.columns, b"\n", &self.style),
                _ => push_record(line, &view, JsonStyle::default()),
            }
            let next = first.next().unwrap_or(Offset::MAX);
            self.unit(Unit { bytes: line, first, next })?;
        }
        Ok(())
    }
}

/// The first offset by which a stored batch is found, the one after it, and whether it is of format 0 or 1.
fn extent(bytes: &[u8]) -> Result<(Offset, Offset, bool), stratalog::record::BatchError> {
    let is_old = probe(bytes)?.is_some_and(|found| found.magic < 2);
    if is_old {
        let message = OldMessage::parse(bytes)?;
        let offset = message.offset();
        return Ok((offset, offset.next().unwrap_or(Offset::MAX), true));
    }
    let batch = BatchRef::parse(bytes)?;
    Ok((batch.base_offset(), batch.next_offset().unwrap_or(Offset::MAX), false))
}

fn as_len(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Says on standard error what was written, and what the stream does not tell of the log.
fn conclude(
    args: &Args,
    source: &Source,
    (from, to): (Offset, Offset),
    done: &Done,
    files: u64,
    globals: &Globals,
) {
    let noun = if args.format == Format::Raw { "batch" } else { "record" };
    let place = match &args.to {
        None => "standard output".to_owned(),
        Some(path) if args.split.is_some() => format!("{} of {}", counted(files, "part"), path.display()),
        Some(path) => path.display().to_string(),
    };
    let what = format!("{}, {}", counted(done.units, noun), counted(done.bytes, "byte"));
    globals.note(format!("exported offsets {from} up to {to} to {place}: {what}"));
    let is_raw = args.format == Format::Raw;
    let begins = args.offset.is_empty() && from == source.start();
    if is_raw && begins && done.first.is_some_and(|first| first != from) {
        let start = source.start();
        globals.note(match &args.to {
            None => format!(
                "note: the log begins at {start}, which the stream does not tell: logctl import DIR --create --start {start}"
            ),
            Some(file) => format!(
                "note: the log begins at {start}, which {} tells beside the stream; without it: logctl import DIR --create --start {start} --from {}",
                start_file(file).display(),
                if args.split.is_some() { format!("{}.*[0-9]", file.display()) } else { file.display().to_string() }
            ),
        });
    }
    if is_raw && args.offset.is_empty() && done.next.unwrap_or(source.start()) < to {
        globals.note(format!(
            "note: the log ends at {to}, behind its last record, which the stream does not tell"
        ));
    }
    if done.old_messages > 0 {
        globals.note(format!(
            "note: {} of formats 0 or 1 exported as they are; import writes none of them, and --convert makes format 2 of them",
            counted(done.old_messages, "message")
        ));
    }
    if !is_raw && done.transactional_batches + done.control_batches > 0 && !args.committed {
        globals.note(
            "note: there are transactions, which these lines do not tell: what was aborted is among them; --committed leaves it out, --format raw keeps it all",
        );
    }
}
