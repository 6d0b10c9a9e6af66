//! `logctl import`: a stream that `export` wrote, or a `.log` file, into a log.
//!
//! Lives here: the command line, the order of things. Not here: reading the stream (`stream`), the log's end of it
//! (`sink.rs`), the proof that what is there is the stream's first part (`stored.rs`). Holds always: each batch is checked
//! before it is appended; offsets are kept; what was imported before the first mistake is whole and stays; nothing is
//! appended to a log that holds something else.

mod sink;
mod stored;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, atomic::AtomicU64},
};

use stratalog::{
    FsyncPolicy, LogConfig, LogWriter, Offset, OpenMode, Timestamp,
    record::{BatchError, Codec, Compression, OldMessage, Record, Scratch, TimestampType, message_format},
};

use crate::{
    export::is_start_file,
    failure::{Code, Failure},
    globals::Globals,
    grammar,
    json::JsonLine,
    output::counted,
    progress::Progress,
    recovered::tell_recovery,
    stop::Stop,
    stream::{Format, Item, Items, Limits, Opened},
    target::Target,
};
use sink::{Placed, Sink};

/// What is imported becomes durable after so much, so that an interrupted import need not begin anew.
const SYNC_BYTES: u64 = 64 << 20;
/// The longest line or row that is taken where --max-batch-bytes does not say it: as much as a batch may unpack to.
const LINE_BYTES: usize = 128 << 20;

/// Append a stream that `export` wrote to a log: batches byte for byte, or records; their offsets are kept
///
/// Each batch is checked before it is appended; the first that is damaged ends the import, and what lies before it stays.
/// raw keeps every byte. jsonl and csv keep records: offset, timestamp, key, value, headers; jsonl the leader epoch too.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
After an interrupt --resume goes on: it proves that what is in the log is the first part of the input,
and appends the rest.

Where a log was trimmed `export` has noted where it begins, in FILE.start beside its stream, and
that is kept. Through a pipe, or where that file was left behind, --start OFFSET says it: without
it records that had been trimmed are there again.

Messages of formats 0 and 1 are never written. --convert makes batches of format 2 of them, with the
same offsets, timestamps, keys and values; lost are how they were batched and compressed, and their
checksums.

Examples:
  logctl export data/orders-0 -z gzip | logctl import backups/orders-0 --create
  logctl import backups/orders-0 --create --from data/orders-0/*.log
  logctl import backups/orders-0 --create --resume --from data/orders-0/*.log
  logctl import backups/orders-0 --create --dry-run --deep --from data/orders-0/*.log
  logctl cat data/orders-0 -J | logctl import backups/orders-0 --create --batch-compression zstd")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    /// Partition directory
    target: Option<PathBuf>,
    /// Read these files, one after the other; default: standard input
    #[arg(short = 'l', long, value_name = "FILE", num_args = 1..)]
    from: Vec<PathBuf>,
    /// What the input is; default: found out from its first bytes
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// What the input is packed with; default: found out from its first bytes
    #[arg(short = 'z', long, value_name = "CODEC", value_parser = codec)]
    compression: Option<Codec>,
    /// Make the directory if it is missing
    #[arg(long)]
    create: bool,
    /// Go on with an import that was interrupted
    #[arg(long)]
    resume: bool,
    /// Import only if the log ends at OFFSET
    #[arg(long, value_name = "OFFSET", value_parser = grammar::offset)]
    expect: Option<Offset>,
    /// Where the log begins; default for an empty log: what FILE.start tells, else the first offset of the input
    #[arg(long, value_name = "OFFSET", value_parser = grammar::offset)]
    start: Option<Offset>,
    /// Check all of the input and what it meets in the log, and append nothing
    #[arg(long)]
    dry_run: bool,
    /// Unpack each batch and check every record in it
    #[arg(long)]
    deep: bool,
    /// Make batches of format 2 of messages of formats 0 and 1
    #[arg(long)]
    convert: bool,
    /// Compress batches made of records: none, gzip, snappy, lz4 or zstd, with a level as in zstd:3
    #[arg(long, value_name = "CODEC", default_value = "none", value_parser = compression)]
    batch_compression: Compression,
    /// Bytes of a batch made of records, before it is compressed
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = grammar::size_u32)]
    batch_size: u32,
    /// The largest batch that is taken; default: --segment-bytes, and lines and rows of 128 MiB
    #[arg(long, value_name = "SIZE", value_parser = grammar::size_u32)]
    max_batch_bytes: Option<u32>,
    /// The largest size of a segment
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = grammar::size_u32)]
    segment_bytes: u32,
}

fn codec(text: &str) -> Result<Codec, String> {
    compression(text).map(Compression::codec)
}

fn compression(text: &str) -> Result<Compression, String> {
    text.parse().map_err(|error: stratalog::record::CompressionError| error.to_string())
}

impl Args {
    fn config(&self) -> Result<LogConfig, Failure> {
        let mut config = LogConfig::default();
        config.open = if self.create { OpenMode::CreateIfMissing } else { OpenMode::MustExist };
        config.segment_bytes = self.segment_bytes;
        config.max_batch_bytes = self.limit_bytes();
        config.fsync = FsyncPolicy::EveryBytes(SYNC_BYTES);
        config.validate().map_err(|error| Failure::usage(error.to_string()))?;
        Ok(config)
    }

    fn limits(&self) -> Limits {
        let batch_bytes = self.limit_bytes();
        // A line takes six bytes of JSON for one of a record at most (`\u0001`); names and numbers come on top.
        let six = usize::try_from(batch_bytes).unwrap_or(usize::MAX).saturating_mul(6);
        let most = if self.max_batch_bytes.is_some() { usize::MAX } else { LINE_BYTES };
        Limits { batch_bytes, line_bytes: six.saturating_add(64 << 10).min(most) }
    }

    fn limit_bytes(&self) -> u32 {
        self.max_batch_bytes.unwrap_or(self.segment_bytes).min(self.segment_bytes)
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let config = args.config()?;
    let target = Target::directory(globals, args.target.as_deref())?;
    let stop = globals.stop();
    // Input that is not there must not leave a directory behind.
    let total = total_bytes(&args.from)?;
    if args.from.is_empty() && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        globals.note("reading from the terminal; end with Ctrl-D, or name files with --from");
    }
    let mut sink = if args.dry_run {
        Sink::dry(args, &target.path)?
    } else {
        let writer =
            LogWriter::open(&target.path, config).map_err(|error| add_create_hint(error.into(), args))?;
        tell_recovery(writer.recovery(), globals);
        Sink::new(args, writer)
    };
    if let Some(expected) = args.expect.filter(|expected| *expected != sink.end()) {
        return Err(stratalog::Error::UnexpectedOffset { expected, end: sink.end() }.into());
    }
    let mut progress = Progress::new(globals, "import", total);
    let mut imported = all_inputs(args, &mut sink, &stop, &mut progress);
    drop(progress);
    if imported.is_ok() {
        imported = sink.check_end();
    }
    conclude(args, &target, sink, imported, globals)
}

fn total_bytes(files: &[PathBuf]) -> Result<u64, Failure> {
    let mut total = 0;
    for path in files {
        match std::fs::metadata(path) {
            Ok(found) => total += found.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Failure::not_found(format!("no such file: {}", path.display())));
            }
            Err(error) => return Err(Failure::io("open", path.display(), &error)),
        }
    }
    Ok(total)
}

fn add_create_hint(failure: Failure, args: &Args) -> Failure {
    if failure.code == Code::NotFound && !args.create { failure.hint("--create makes it") } else { failure }
}

fn all_inputs(args: &Args, sink: &mut Sink, stop: &Stop, progress: &mut Progress) -> Result<(), Failure> {
    let read_bytes = Arc::new(AtomicU64::new(0));
    let mut scratch = Scratch::new();
    let mut inputs: Vec<_> = args.from.iter().map(|path| Some(path.as_path())).collect();
    if inputs.is_empty() {
        inputs.push(None);
    }
    for path in inputs.into_iter().filter(|path| !path.is_some_and(is_start_file)) {
        let opened = Opened::new(path, args.format, args.compression, args.limits(), &read_bytes)?;
        let mut items = opened.items();
        let imported = one_input(args, &mut items, sink, &mut scratch, stop, progress);
        // What was read before a mistake or a signal is whole; after a failed append nothing is left here.
        let flushed = sink.flush();
        imported.and(flushed)?;
    }
    Ok(())
}

fn one_input(
    args: &Args,
    items: &mut Items,
    sink: &mut Sink,
    scratch: &mut Scratch,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<(), Failure> {
    loop {
        stop.check()?;
        let Some(item) = items.next_item()? else { return Ok(()) };
        let taken = match item {
            Item::Batch(batch) => {
                let checked = if args.deep { batch.check_records(scratch) } else { Ok(()) };
                checked.map_err(|error| damaged(&error)).and_then(|()| sink.batch(&batch))
            }
            Item::Old(message) if args.convert => old_message(&message, scratch, sink),
            Item::Old(message) => {
                let name = message_format(message.magic());
                let what = format!("a message of {name} (offset {}), which is not written", message.offset());
                Err(Failure::other(what)
                    .hint("--convert makes batches of format 2; see --help for what is lost"))
            }
            Item::Record(line) => record(&line, sink),
        };
        taken.map_err(|failure| failure.at(items.place()))?;
        progress.update(items.read_bytes());
    }
}

fn damaged(error: &BatchError) -> Failure {
    Failure::new(Code::Corrupt, error.to_string())
}

fn old_message(message: &OldMessage<'_>, scratch: &mut Scratch, sink: &mut Sink) -> Result<(), Failure> {
    for inner in message.messages(scratch).map_err(|error| damaged(&error))? {
        let inner =
            inner.and_then(|inner| inner.check_crc().map(|()| inner)).map_err(|error| damaged(&error))?;
        let mut record = Record::new();
        (record.key, record.value) = (inner.key(), inner.value());
        sink.record(&Placed {
            record,
            offset: inner.offset(),
            timestamp: inner.timestamp(),
            timestamp_type: inner.timestamp_type().unwrap_or(TimestampType::CreateTime),
            leader_epoch: None,
        })?;
    }
    sink.note_converted();
    Ok(())
}

fn record(line: &JsonLine<'_>, sink: &mut Sink) -> Result<(), Failure> {
    let offset =
        line.offset.and_then(Offset::new).filter(|offset| *offset < Offset::MAX).ok_or_else(|| {
            Failure::other("no `offset` from 0 to 9223372036854775806")
                .hint("`logctl append --format jsonl` gives records the log's next offsets")
        })?;
    let timestamp = line.timestamp.map(Timestamp::from_millis).ok_or_else(|| {
        Failure::other("no `timestamp`").hint("`logctl append --format jsonl` takes lines without one")
    })?;
    let headers: Vec<_> = line
        .headers
        .iter()
        .map(|(key, value)| stratalog::record::Header { key, value: value.as_deref() })
        .collect();
    let mut record = Record::new().headers(&headers);
    (record.key, record.value) = (line.key.as_deref(), line.value.as_deref());
    sink.record(&Placed {
        record,
        offset,
        timestamp,
        timestamp_type: if line.is_append_time {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        },
        leader_epoch: line.leader_epoch.filter(|epoch| *epoch >= 0),
    })
}

/// Closes the log, and says what came of it.
fn conclude(
    args: &Args,
    target: &Target,
    sink: Sink,
    imported: Result<(), Failure>,
    globals: &Globals,
) -> Result<ExitCode, Failure> {
    let (total, closed) = sink.close(imported.is_ok());
    let verb = if args.dry_run { "would be imported" } else { "imported" };
    let mut text = match total.first {
        None => format!("{}: nothing {verb}", target.path.display()),
        Some(first) => format!(
            "{}: {} {verb}, {}, offsets {first} to {}",
            target.path.display(),
            counted(total.batches, "batch"),
            counted(total.bytes, "byte"),
            total.end.saturating_sub(1),
        ),
    };
    if total.proved > 0 {
        text = format!("{text}; {} bytes were there and are the same", total.proved);
    }
    globals.note(text);
    if total.converted > 0 {
        globals.note(format!(
            "note: {} of formats 0 or 1 converted: their batching, compression and checksums are lost, and those of format 0 have no timestamps",
            counted(total.converted, "message"),
        ));
    }
    match imported.and(closed) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(failure) if args.dry_run => Err(failure),
        Err(failure) if failure.is_quiet() => {
            globals.note("the import is not finished: --resume goes on with it");
            Err(failure)
        }
        Err(failure) if total.first.is_some() => {
            Err(failure.note(format!("what lies before offset {} is imported", total.end)))
        }
        Err(failure) => Err(failure),
    }
}
