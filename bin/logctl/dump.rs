//! `logctl dump`: what stands in the files of a log, byte position by byte position.
//!
//! The text is that of Kafka's own `kafka-dump-log`, so that what reads the one reads the other. It differs where that tool gives
//! up: behind damage the dump goes on at the next batch, and damage makes the exit code 4.

mod coordinator;
mod index;
mod log;
mod old;
mod problems;
mod small_file;
mod unknown;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use stratalog::{Error, inspect::LogFile, record::Scratch};

use crate::{
    failure::{Code, Failure},
    globals::Globals,
    output::Output,
    report::Form,
    stop::Stop,
    target::Target,
};
use coordinator::Decoder;
use problems::Problems;

/// Print what stands in the files of a log, in the text of Kafka's own dump tool or as JSON lines
///
/// .log, .index, .timeindex, .snapshot, .txnindex and .checkpoint files as Kafka's tool prints them; also
/// leader-epoch-checkpoint, partition.metadata, meta.properties, quorum-state, `.kafka_cleanshutdown`, the checkpoints of
/// a data directory, and the files of this tool's own beside a log (.stratalog-*), of which Kafka's knows nothing; and whatever else has batches
/// in it, such as what a repair cut off (.stratalog-cut-*). Of
/// any other file it says that it is ignored, as Kafka's does, and what it looks like; the exit code is then 1 where
/// nothing else was to be dumped (Kafka's is 0).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Exit code 4 where anything is damaged, 3 where a file is not there; the dump goes on behind it.

Examples:
  logctl dump data/orders-0/00000000000000000000.log
  logctl dump data/orders-0/*.log --deep-iteration --print-data-log
  logctl dump data/orders-0/*.{index,timeindex} --verify-index-only
  logctl dump data/orders-0/00000000000000000000.log -J --deep-iteration | jq 'select(.value)'
  logctl dump data/__consumer_offsets-7/*.log --offsets-decoder --skip-record-metadata
  logctl dump data/recovery-point-offset-checkpoint data/orders-0/leader-epoch-checkpoint -J")]
#[expect(clippy::struct_excessive_bools, reason = "they are the flags of Kafka's tool")]
pub(crate) struct Args {
    /// The files, or directories (without any: the one that --dir, --topic and --partition name) for all .log, .index, .timeindex, .snapshot and .txnindex files in them
    #[arg(value_name = "FILE")]
    paths: Vec<PathBuf>,
    /// The same as a list, as Kafka's tool takes them
    #[arg(long, value_name = "FILE,...", value_delimiter = ',')]
    files: Vec<PathBuf>,
    /// One line for each record too
    #[arg(long)]
    deep_iteration: bool,
    /// Keys and values too; implies --deep-iteration
    #[arg(long)]
    print_data_log: bool,
    /// Keys and values as the records of the topic `__consumer_offsets`; implies --print-data-log
    #[arg(long, group = "decoder")]
    offsets_decoder: bool,
    /// Keys and values as the records of the topic `__transaction_state`; implies --print-data-log
    #[arg(long, group = "decoder")]
    transaction_log_decoder: bool,
    /// Keys and values as the records of the topic `__share_group_state`; implies --print-data-log
    #[arg(long, group = "decoder")]
    share_group_state_decoder: bool,
    /// Values as the records of the topic `__cluster_metadata`; implies --print-data-log
    #[arg(long, group = "decoder")]
    cluster_metadata_decoder: bool,
    /// Only keys and values of records, nothing else of them
    #[arg(long)]
    skip_record_metadata: bool,
    /// Check index entries against the log and do not print them
    #[arg(long)]
    verify_index_only: bool,
    /// Only the check by which Kafka decides at its start whether to rebuild an index
    #[arg(long, conflicts_with = "verify_index_only")]
    index_sanity_check: bool,
    /// Only whole batches within the first BYTES of each .log
    #[arg(long, value_name = "BYTES", value_parser = crate::grammar::size)]
    max_bytes: Option<u64>,
    /// JSON lines: an object for each file, batch, record (with --deep-iteration), index entry and problem
    #[arg(short = 'J', long)]
    json: bool,
    /// Keys and values in hexadecimal digits; implies --print-data-log
    #[arg(long, conflicts_with_all = ["decoder", "json"])]
    hex: bool,
    /// Accepted, as Kafka's tool takes it, and not needed: no message is too large
    #[arg(long, value_name = "BYTES", hide = true)]
    max_message_size: Option<u32>,
    /// Kafka's tool prints remote segments in the words of its own classes; that is not done here
    #[arg(long, hide = true)]
    remote_log_metadata_decoder: bool,
    /// Classes of Java
    #[arg(long, hide = true, value_name = "CLASS", num_args = 0..=1, default_missing_value = "")]
    value_decoder_class: Option<String>,
    /// Classes of Java
    #[arg(long, hide = true, value_name = "CLASS", num_args = 0..=1, default_missing_value = "")]
    key_decoder_class: Option<String>,
}

impl Args {
    /// With what the global `--output` says.
    pub(crate) fn in_form(mut self, form: Form) -> Result<Self, Failure> {
        match form {
            Form::Table => {}
            Form::Jsonl => self.json = true,
            Form::Json if self.json => {}
            Form::Json => {
                return Err(Failure::usage("a dump is too long for one JSON value")
                    .hint("--output jsonl (or -J) prints an object on each line"));
            }
        }
        Ok(self)
    }

    fn is_deep(&self) -> bool {
        self.deep_iteration || self.prints_data()
    }

    fn prints_data(&self) -> bool {
        self.print_data_log || self.hex || self.decoder().is_some()
    }

    fn is_json(&self) -> bool {
        self.json
    }

    fn decoder(&self) -> Option<Decoder> {
        match () {
            () if self.offsets_decoder => Some(Decoder::Offsets),
            () if self.transaction_log_decoder => Some(Decoder::Transactions),
            () if self.share_group_state_decoder => Some(Decoder::ShareState),
            () if self.cluster_metadata_decoder => Some(Decoder::Metadata),
            () => None,
        }
    }

    /// What Kafka's tool can do and this one cannot.
    fn refuse(&self) -> Result<(), Failure> {
        let (flag, what) = match () {
            () if self.remote_log_metadata_decoder => {
                ("--remote-log-metadata-decoder", "records of remote segments are not decoded")
            }
            () if self.value_decoder_class.is_some() => {
                ("--value-decoder-class", "classes of Java are not run")
            }
            () if self.key_decoder_class.is_some() => ("--key-decoder-class", "classes of Java are not run"),
            () => return Ok(()),
        };
        Err(Failure::usage(format!("{flag}: {what}"))
            .hint("--print-data-log prints keys and values as they are, --hex in hexadecimal digits, -J without loss"))
    }
}

/// What a run has in hand.
struct Dump<'a> {
    args: &'a Args,
    out: Output,
    problems: Problems,
    scratch: Scratch,
    /// The batch made of the last message of format 0 or 1.
    made: Vec<u8>,
    stop: Stop,
    globals: &'a Globals,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    args.refuse()?;
    let named = if args.paths.is_empty() && args.files.is_empty() {
        Some(Target::existing(globals, None)?.path)
    } else {
        None
    };
    let mut dump = Dump {
        args,
        out: globals.stdout()?,
        problems: Problems::default(),
        scratch: Scratch::new(),
        made: Vec::new(),
        stop: globals.stop(),
        globals,
    };
    let mut result = Ok(());
    for path in args.paths.iter().chain(&args.files).chain(&named) {
        result = dump.file(path);
        if result.is_err() {
            break;
        }
    }
    dump.out.flush()?;
    dump.problems.print();
    result?;
    dump.problems.outcome()
}

impl Dump<'_> {
    fn file(&mut self, path: &Path) -> Result<(), Failure> {
        self.stop.check()?;
        if path.is_dir() {
            return self.directory(path);
        }
        let suffix = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('.'));
        let suffix = suffix.map_or("", |(_, suffix)| suffix);
        if !self.args.is_json() {
            self.named_line(&format!("Dumping {}", path.display()))?;
        }
        let dumped = match suffix {
            "log" | "checkpoint" => self.log(path),
            "index" => self.offset_index(path),
            "timeindex" => self.time_index(path),
            _ => match self.small_file(path) {
                Ok(false) if is_of_batches(path) => self.log(path),
                Ok(false) => self.unknown(path),
                known => known.map(|_| ()),
            },
        };
        match dumped {
            Err(Stopped::Failure(failure)) => Err(failure),
            Err(Stopped::Unreadable(error)) => self.unreadable(path, &error),
            Ok(()) => Ok(()),
        }
    }
}

impl Dump<'_> {
    /// A line in which the name of a file stands, which may be anything.
    fn named_line(&mut self, text: &str) -> Result<(), Failure> {
        self.out.foreign(text.as_bytes())?;
        self.out.bytes(b"\n")
    }

    /// A file that cannot be read; told behind what was printed before it.
    fn unreadable(&mut self, path: &Path, error: &Error) -> Result<(), Failure> {
        self.out.flush()?;
        self.problems.unreadable(path, error, self.globals);
        Ok(())
    }

    /// What is read here of a directory, in the order of names.
    fn directory(&mut self, path: &Path) -> Result<(), Failure> {
        let failed = |error: &std::io::Error| Failure::io("list", path.display(), error);
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            let file = entry.path();
            let is_read =
                file.extension().is_some_and(|suffix| READ_SUFFIXES.iter().any(|read| suffix == *read));
            if is_read && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(Failure::not_found(format!(
                "{}: no .log, .index, .timeindex, .snapshot or .txnindex in it",
                path.display()
            ))
            .hint(
                "name files, or the directory of a partition (`logctl ls` lists those of a data directory)",
            ));
        }
        files.iter().try_for_each(|file| self.file(file))
    }
}

/// True where there are batches in a file whose name says nothing: cut from a log, or exported.
fn is_of_batches(path: &Path) -> bool {
    let found = LogFile::open(path).and_then(|file| file.first_offset(u64::MAX));
    // What cannot be read is told by who looks at its first bytes.
    found.is_ok_and(|found| found.is_some())
}

/// The files of a directory that are dumped.
const READ_SUFFIXES: [&str; 5] = ["log", "index", "timeindex", "snapshot", "txnindex"];

/// Why a file's dump ended early.
enum Stopped {
    /// The run ends: output or a signal.
    Failure(Failure),
    /// Only this file cannot be read.
    Unreadable(Error),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Unreadable(error)
    }
}

/// A file of the same segment.
fn companion(path: &Path, suffix: &str) -> PathBuf {
    let stem = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('.').next());
    path.with_file_name(format!("{}.{suffix}", stem.unwrap_or_default()))
}

/// A file's path as an absolute one, as Kafka's tool names it in its complaints.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// How a failed run is told apart.
fn code_of(error: &Error) -> Code {
    match error {
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Code::NotFound,
        Error::NotFound { .. } => Code::NotFound,
        _ => Code::Other,
    }
}
