//! The options of `append`.

use std::{path::PathBuf, time::Duration};

use clap::ValueEnum;
use stratalog::{
    FsyncPolicy, LogConfig, Offset, OpenMode, Preallocate, RecoveryMode, Retention, SyncMethod, Timestamp,
    record::{Compression, TimestampType},
};

use super::layout::Layout;
use crate::{
    broker::{Acks, BrokerArgs},
    failure::Failure,
    grammar,
    template::Template,
};

/// Append records from standard input or files, a line each, and acknowledge them as --sync says
///
/// Records are appended whenever --batch-size bytes have gathered, when the input pauses for 50 ms, when the first of
/// them has waited for 200 ms, and at the end of the input; unless --sync says otherwise they are made durable at once,
/// and acknowledged then. A line's delimiter is no part of the record; a carriage return before it is; a last line without
/// a delimiter is a record too.
///
/// With -b they go to a topic of a broker: to the partition that -p names, or, with a key, to the one that Kafka's own
/// producers would choose for it, and those without a key to one after the other, a batch each. A batch whose answer was
/// lost is sent again, and is in the log once all the same (with --acks 0 it is sent once, and nobody knows).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  seq 1 100000 | logctl append ./data/orders-0 --create
  printf 'k1=v1\\nk2=\\n' | logctl append ./data/orders-0 -K = -Z --report '%o\\n'
  printf 'a: 1\\nb: 2\\n' | logctl append ./data/orders-0 -f '%k: %v\\n' -z zstd:3
  logctl cat A -J | logctl append B --create --format jsonl
  printf 'k1=v1\\nk2=v2\\n' | logctl append -b localhost:9092 orders -K = -z zstd --report '%p:%o\\n'")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    /// Partition directory; with -b a topic
    pub(super) target: Option<PathBuf>,
    /// What the input is: lines, jsonl (as cat -J prints them), csv (as cat --csv does), raw (each FILE is one record), or
    /// a template as of rpk: '%k %v\n'
    ///
    /// A template says what the input looks like. %k key, %v value, %d timestamp in milliseconds, %o offset (kept with
    /// --preserve). %t topic, %p partition, %e leader epoch, %x producer id and %y epoch are read and left: the records go
    /// to the one log that is named. A field ends where the text behind it in the template begins: '%k: %v\n'; or
    /// it has its size in bytes before it: '%K %V %k%v', '%K{big32}%k%V{big32}%v'; or it is a {json} value; or it is what
    /// matches {re[EXPRESSION]}: '%k{re[\d+]}'. %H count of headers, %h{..} each of them: '%H %h{%k=%v,}'.
    /// Numbers are digits or {hex4} {hex8} {hex16} {hex32} {hex64}, {big8} to {big64}, {little8} to {little64}, {byte},
    /// {bool}, or always the same: %V{3}. Texts may be {hex}, {base64} or {json} (the space in it is left out).
    /// %% %{ %} are these signs; \n \t \r \0 \\ and \xNN are understood. What ends the last record may be missing.
    /// Avro and times other than milliseconds are not read. Columns of csv: key, value, timestamp, offset, headers,
    /// header.NAME; nothing between two commas is null, "" is empty.
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "lines", value_parser = InputFormat::parse)]
    pub(super) format: InputFormat,
    /// Read FILE instead of standard input; repeat for more
    #[arg(short = 'l', long, value_name = "FILE")]
    pub(super) file: Vec<PathBuf>,
    /// Split each line at the first SEP into key and value; a line without SEP has no key. Escapes as in -D
    #[arg(short = 'K', long, value_name = "SEP", value_parser = non_empty)]
    pub(super) key_sep: Option<Bytes>,
    /// Key of every record that brings none; taken as it is
    #[arg(short, long, value_name = "KEY")]
    pub(super) key: Option<String>,
    /// Header of every record; repeat for more
    #[arg(short = 'H', long, value_name = "NAME=VALUE", value_parser = header)]
    pub(super) header: Vec<(String, String)>,
    /// What ends a line; \n \t \r \0 \\ and \xNN are understood; default: \n
    #[arg(short = 'D', long, value_name = "DELIM", value_parser = non_empty)]
    pub(super) delim: Option<Bytes>,
    /// Turn empty values into null (tombstones)
    #[arg(short = 'Z', long)]
    pub(super) null: bool,
    /// Timestamp of every record that brings none; default: when it is appended
    #[arg(long, value_name = "TIME", value_parser = grammar::time, allow_hyphen_values = true)]
    pub(super) timestamp: Option<Timestamp>,
    /// Compress batches: none, gzip, snappy, lz4 or zstd, with a level as in zstd:3
    #[arg(short = 'z', long, value_name = "CODEC", default_value = "none", value_parser = compression)]
    pub(super) compression: Compression,
    /// Bytes of a batch before it is compressed
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = grammar::size_u32)]
    pub(super) batch_size: u32,
    /// The largest batch that is allowed, and so the largest record; default: 1 MiB or --batch-size
    #[arg(long, value_name = "SIZE", value_parser = grammar::size_u32)]
    pub(super) max_batch_bytes: Option<u32>,
    /// How long a record waits for others before it is appended; default: until the input pauses, 200 ms at most
    #[arg(long, value_name = "DURATION", value_parser = grammar::duration)]
    pub(super) linger: Option<Duration>,
    /// When records become durable: batch (each is acknowledged once it is), every:N records, every:SIZE bytes (with a
    /// unit), interval:DURATION, close or never (both: not before the end)
    #[arg(long, value_name = "POLICY", default_value = "batch", value_parser = Sync::parse)]
    pub(super) sync: Sync,
    /// Sync with fsync instead of fdatasync
    #[arg(long)]
    pub(super) full_sync: bool,
    /// Print each record with this template once it is acknowledged, and not before: '%o\n'
    #[arg(long, value_name = "TEMPLATE", value_parser = Template::parse)]
    pub(super) report: Option<Template>,
    /// Copy the input to standard output, as tee does
    #[arg(long, conflicts_with = "report")]
    pub(super) tee: bool,
    /// Append at most so many records a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) rate: Option<u64>,
    /// Make the directory, or the topic, if it is missing
    #[arg(long)]
    pub(super) create: bool,
    /// Keep the offsets that JSON lines, CSV or %o bring; the log must be empty or end where they begin
    #[arg(long)]
    pub(super) preserve: bool,
    /// Append only if the log ends at OFFSET
    #[arg(long, value_name = "OFFSET", value_parser = grammar::offset)]
    pub(super) expect: Option<Offset>,
    /// The largest size of a segment
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = grammar::size_u32, help_heading = "Log settings")]
    pub(super) segment_bytes: u32,
    /// Begin a new segment once the first record of the present one is this old; 0: never
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = grammar::duration, help_heading = "Log settings")]
    pub(super) segment_age: Duration,
    /// Bytes of log between two index entries
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = grammar::size_u32, help_heading = "Log settings")]
    pub(super) index_interval: u32,
    /// How blocks are reserved ahead of the data
    #[arg(long, value_name = "HOW", default_value = "stepped", help_heading = "Log settings")]
    pub(super) preallocate: Reserve,
    /// Delete the oldest segments while more than this remains
    #[arg(long, value_name = "SIZE", value_parser = grammar::size, help_heading = "Log settings")]
    pub(super) retention_bytes: Option<u64>,
    /// Delete segments whose newest record is older than this
    #[arg(long, value_name = "DURATION", value_parser = grammar::duration, help_heading = "Log settings")]
    pub(super) retention_age: Option<Duration>,
    /// Stop while the file system still has this much room
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = grammar::size, help_heading = "Log settings")]
    pub(super) min_free: u64,
    /// Whose clock timestamps tell: the producer's, or this log's at append
    #[arg(long, value_name = "TYPE", default_value = "create", help_heading = "Log settings")]
    pub(super) timestamp_type: WhoseClock,
    /// Refuse to open a log where opening it finds damage, instead of cutting a torn tail
    #[arg(long, help_heading = "Log settings")]
    pub(super) refuse_damage: bool,
    #[command(flatten)]
    pub(super) broker: BrokerArgs,
    /// With -b: who must have a batch before it is acknowledged; default: all
    #[arg(long, value_name = "WHO", help_heading = "Brokers")]
    pub(super) acks: Option<Acks>,
}

/// clap reads `Vec<u8>` as a list; this is one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

/// `--format`.
#[derive(Debug, Clone)]
pub(super) enum InputFormat {
    /// A record for each line.
    Lines,
    /// A record for each JSON line, as `cat -J` prints them.
    Jsonl,
    /// A record for each row but the first.
    Csv,
    /// One record: the whole of the input, or of each FILE.
    Raw,
    /// What the template finds.
    Layout(Box<Layout>),
}

impl InputFormat {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "lines" => Ok(Self::Lines),
            "jsonl" | "json" => Ok(Self::Jsonl),
            "csv" => Ok(Self::Csv),
            "raw" => Ok(Self::Raw),
            template if template.contains('%') => {
                Layout::parse(template).map(|layout| Self::Layout(Box::new(layout)))
            }
            _ => Err(format!(
                "`{text}` is no format: use lines, jsonl, csv, raw or a template such as '%k %v\\n'"
            )),
        }
    }
}

/// `--preallocate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Reserve {
    Stepped,
    Whole,
    Off,
}

/// `--timestamp-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WhoseClock {
    Create,
    Append,
}

/// `--sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Never,
    Batch,
    Close,
    EveryRecords(u64),
    EveryBytes(u64),
    Interval(Duration),
}

impl Sync {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a policy: write batch, close, never, every:1000, every:16MiB or interval:1s"
            )
        };
        match text.split_once(':') {
            None => match text {
                "never" => Ok(Self::Never),
                "batch" => Ok(Self::Batch),
                "close" => Ok(Self::Close),
                _ => Err(wrong()),
            },
            Some(("every", much)) => match (much.parse(), grammar::size(much)) {
                (Ok(0), _) | (_, Ok(0)) => Err("every:0 says nothing: write batch".to_owned()),
                (Ok(records), _) => Ok(Self::EveryRecords(records)),
                (_, Ok(bytes)) => Ok(Self::EveryBytes(bytes)),
                _ => Err(wrong()),
            },
            Some(("interval", time)) => Ok(Self::Interval(grammar::duration(time)?)),
            Some(_) => Err(wrong()),
        }
    }
}

fn non_empty(text: &str) -> Result<Bytes, String> {
    match grammar::escapes(text)? {
        bytes if bytes.is_empty() => Err("must not be empty".to_owned()),
        bytes => Ok(Bytes(bytes)),
    }
}

/// What readers unpack a batch to, at most.
const UNPACKED_BYTES: u32 = 128 << 20;

fn compression(text: &str) -> Result<Compression, String> {
    text.parse().map_err(|e: stratalog::record::CompressionError| e.to_string())
}

/// `name=value`, or `name:value` where there is no `=` before the colon.
fn header(text: &str) -> Result<(String, String), String> {
    let at = text.find(['=', ':']).ok_or_else(|| format!("`{text}` is not a header: write NAME=VALUE"))?;
    let (name, value) = text.split_at(at);
    Ok((name.to_owned(), value.get(1..).unwrap_or_default().to_owned()))
}

impl Args {
    /// The settings that the log is opened with.
    pub(super) fn log_config(&self) -> Result<LogConfig, Failure> {
        let mut config = LogConfig::default();
        config.open = if self.create { OpenMode::CreateIfMissing } else { OpenMode::MustExist };
        config.segment_bytes = self.segment_bytes;
        config.index_interval_bytes = self.index_interval;
        config.max_batch_bytes = self.max_batch_bytes.unwrap_or(config.max_batch_bytes.max(self.batch_size));
        config.preallocate = match self.preallocate {
            Reserve::Stepped => Preallocate::Stepped,
            Reserve::Whole => Preallocate::Whole,
            Reserve::Off => Preallocate::Off,
        };
        config.fsync = match self.sync {
            Sync::Batch => FsyncPolicy::Commit,
            Sync::Never | Sync::Close => FsyncPolicy::Never,
            Sync::EveryRecords(count) => FsyncPolicy::EveryRecords(count),
            Sync::EveryBytes(bytes) => FsyncPolicy::EveryBytes(bytes),
            Sync::Interval(time) => FsyncPolicy::Interval(time),
        };
        config.sync_method = if self.full_sync { SyncMethod::Full } else { SyncMethod::Data };
        config.retention = Retention { bytes: self.retention_bytes, age: self.retention_age };
        config.roll_after = Some(self.segment_age).filter(|age| !age.is_zero());
        config.recovery =
            if self.refuse_damage { RecoveryMode::RefuseAnyDamage } else { RecoveryMode::TruncateTornTail };
        config.min_free_bytes = self.min_free;
        config.timestamp_type = match self.timestamp_type {
            WhoseClock::Create => TimestampType::CreateTime,
            WhoseClock::Append => TimestampType::LogAppendTime,
        };
        config.validate().map_err(|e| Failure::usage(e.to_string()))?;
        if self.compression != Compression::default() && self.batch_limit() > UNPACKED_BYTES {
            return Err(Failure::usage(format!(
                "with --compression a batch has at most {UNPACKED_BYTES} bytes: one that unpacks to more is not read back"
            ))
            .hint("lower --max-batch-bytes or --batch-size"));
        }
        Ok(config)
    }

    /// The largest batch that the log takes.
    pub(super) fn batch_limit(&self) -> u32 {
        let most = self.max_batch_bytes.unwrap_or(LogConfig::default().max_batch_bytes.max(self.batch_size));
        most.min(self.segment_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies() {
        assert_eq!(Sync::parse("batch"), Ok(Sync::Batch));
        assert_eq!(Sync::parse("every:1000"), Ok(Sync::EveryRecords(1000)));
        assert_eq!(Sync::parse("every:16MiB"), Ok(Sync::EveryBytes(16 << 20)));
        assert_eq!(Sync::parse("interval:1s"), Ok(Sync::Interval(Duration::from_secs(1))));
        for text in ["", "always", "every", "every:0", "every:0k", "every:x", "interval:", "interval:5"] {
            assert!(Sync::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn headers_take_either_sign() {
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(header("a=b:c"), pair("a", "b:c"));
        assert_eq!(header("a:b=c"), pair("a", "b=c"));
        assert_eq!(header("a="), pair("a", ""));
        assert!(header("a").is_err());
    }
}
