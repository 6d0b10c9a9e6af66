//! Settings of a log: Kafka's words and Kafka's defaults, except where this says why not.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    error::{Error, Result},
    offset::Timestamp,
    record::{Compression, HEADER_BYTES, TimestampType},
};

/// How a log is opened, written, made durable and kept.
///
/// Make one with [`LogConfig::default`] and change fields:
///
/// ```
/// use stratalog::{FsyncPolicy, LogConfig, OpenMode};
///
/// let mut config = LogConfig::default();
/// config.open = OpenMode::CreateIfMissing;
/// config.fsync = FsyncPolicy::EveryBytes(1 << 20);
/// config.validate()?;
/// # Ok::<(), stratalog::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogConfig {
    /// Whether a missing directory is an error. Default: it is.
    pub open: OpenMode,
    /// The largest size of a `.log` file in bytes, `1024..=i32::MAX` (Kafka: `segment.bytes`). Default 1 GiB. A
    /// segment is closed and a new one begun before it would grow past this.
    pub segment_bytes: u32,
    /// The largest size of each index file in bytes, `24..=i32::MAX` (Kafka: `segment.index.bytes`). Default 10 MiB.
    /// A full index begins a new segment.
    pub segment_index_bytes: u32,
    /// Bytes of log between two index entries, `0..=i32::MAX` (Kafka: `index.interval.bytes`). Default 4096.
    pub index_interval_bytes: u32,
    /// The largest batch in bytes, its header included (Kafka: `max.message.bytes`), at most `segment_bytes`. Default
    /// 1,048,588; a smaller segment lowers it by itself.
    pub max_batch_bytes: u32,
    /// The size of an append buffer in bytes, `64 KiB..=64 MiB`: what goes to the kernel in one write. Default 1 MiB.
    pub append_buffer_bytes: u32,
    /// How many bytes of appends a [`SharedWriter`](crate::SharedWriter) holds in memory at most until they are written,
    /// at least 1. Default 64 MiB. Callers past that wait; an append that is larger than this goes alone.
    pub max_queued_bytes: u64,
    /// How blocks are reserved ahead of the data. Changes speed and disk use, nothing else.
    pub preallocate: Preallocate,
    /// When appended records become durable, and what an acknowledgement says. Default [`FsyncPolicy::Commit`]; Kafka's
    /// own default is what [`FsyncPolicy::Never`] does.
    pub fsync: FsyncPolicy,
    /// Which system call makes records durable.
    pub sync_method: SyncMethod,
    /// Which old segments may go. Default: none (Kafka drops records after seven days; a log inside a program must not
    /// lose what nobody asked it to lose).
    pub retention: Retention,
    /// A segment whose first batch is older than this, by record timestamps, is closed by the next append (Kafka:
    /// `segment.ms`). Default seven days; `None` never.
    pub roll_after: Option<Duration>,
    /// What opening does about bytes that do not check.
    pub recovery: RecoveryMode,
    /// Where the time comes from.
    pub clock: Clock,
    /// Appends that would leave fewer free bytes than this on the file system are refused with
    /// [`Error::StorageFull`]. Default 0: none is kept.
    pub min_free_bytes: u64,
    /// Permission bits of new files, before the process's umask. Default `0o644`.
    pub file_mode: u32,
    /// Permission bits of new directories, before the process's umask. Default `0o755`.
    pub dir_mode: u32,
    /// How [`LogWriter::append_records`](crate::LogWriter::append_records) compresses. Default: not at all. Batches that
    /// are appended whole keep the compression they have.
    pub compression: Compression,
    /// Which clock a record's timestamp tells: its producer's or this log's (Kafka: `message.timestamp.type`).
    pub timestamp_type: TimestampType,
    /// How long a producer is remembered after its last batch or transaction marker, told by their timestamps (Kafka:
    /// `producer.id.expiration.ms`), at least 1 ms. Default one day. It is looked at when the log is opened and, every
    /// ten minutes, by [`LogWriter::maintain`](crate::LogWriter::maintain); a producer with an open transaction is kept.
    /// At most 65,536 are remembered, whatever their age.
    pub producer_expiration: Duration,
}

/// Whether opening may create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OpenMode {
    /// The directory must exist, and hold a log or nothing at all.
    #[default]
    MustExist,
    /// The directory, and those above it, are created where they are missing.
    CreateIfMissing,
}

/// How blocks are reserved ahead of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Preallocate {
    /// In steps that double from 64 KiB to 64 MiB. Nothing is reserved before the first append.
    #[default]
    Stepped,
    /// The whole segment at once, at its first append (Kafka: `preallocate=true`).
    Whole,
    /// Never: files grow as they are written.
    Off,
}

/// When records become durable, and so what an acknowledgement promises.
///
/// *Durable* means that a sync which covers the record, and the name of its file, has succeeded: it survives a power
/// cut. *Written* means that the kernel has it: it survives the death of the process. Each acknowledgement says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FsyncPolicy {
    /// Every append is acknowledged once it is durable. No acknowledged record is ever lost.
    #[default]
    Commit,
    /// An append syncs once at least this many bytes are not durable. At most about that many bytes can be lost.
    EveryBytes(u64),
    /// An append syncs once at least this many records are not durable.
    EveryRecords(u64),
    /// An append, or [`LogWriter::maintain`](crate::LogWriter::maintain), syncs once the oldest record that is not
    /// durable has waited this long. Call `maintain` that often, or an idle log's last records wait for the next append.
    Interval(Duration),
    /// Only [`LogWriter::sync`](crate::LogWriter::sync) and closing make records durable.
    Never,
}

/// Which system call makes records durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SyncMethod {
    /// `fdatasync(2)`: the data and the length. Enough for every promise made here.
    #[default]
    Data,
    /// `fsync(2)`: file times as well.
    Full,
}

/// Which old segments may be dropped. Whole segments go, oldest first, never the one being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Retention {
    /// Drop old segments while what remains is at least this many bytes of `.log` files (Kafka: `retention.bytes`).
    pub bytes: Option<u64>,
    /// Drop old segments whose newest record is older than this (Kafka: `retention.ms`). Exactly this old is kept.
    pub age: Option<Duration>,
}

/// What opening does about bytes that do not check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RecoveryMode {
    /// Bytes that were never made durable and do not check are cut off and kept aside; damage to durable ones is
    /// reported, and everything else is served.
    #[default]
    TruncateTornTail,
    /// Any damage that opening finds refuses the open and changes nothing. What was closed cleanly is not read.
    RefuseAnyDamage,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            open: OpenMode::default(),
            segment_bytes: 1 << 30,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            max_batch_bytes: 1_048_588,
            append_buffer_bytes: 1 << 20,
            max_queued_bytes: 64 << 20,
            preallocate: Preallocate::default(),
            fsync: FsyncPolicy::default(),
            sync_method: SyncMethod::default(),
            retention: Retention::default(),
            roll_after: Some(Duration::from_secs(7 * 24 * 3600)),
            recovery: RecoveryMode::default(),
            clock: Clock::default(),
            min_free_bytes: 0,
            file_mode: 0o644,
            dir_mode: 0o755,
            compression: Compression::default(),
            timestamp_type: TimestampType::CreateTime,
            producer_expiration: Duration::from_secs(24 * 3600),
        }
    }
}

impl LogConfig {
    /// Says which setting makes no sense, if one does.
    pub fn validate(&self) -> Result<()> {
        let max = i32::MAX.unsigned_abs();
        in_range("segment_bytes", self.segment_bytes, 1024, max)?;
        in_range("segment_index_bytes", self.segment_index_bytes, 24, max)?;
        in_range("index_interval_bytes", self.index_interval_bytes, 0, max)?;
        in_range("max_batch_bytes", self.max_batch_bytes, u32::try_from(HEADER_BYTES).unwrap_or(61), max)?;
        in_range("append_buffer_bytes", self.append_buffer_bytes, 64 << 10, 64 << 20)?;
        if self.max_queued_bytes == 0 {
            return invalid(
                "max_queued_bytes",
                "0 leaves room for nothing; use 1 to write appends one by one",
            );
        }
        match self.fsync {
            FsyncPolicy::EveryBytes(0) | FsyncPolicy::EveryRecords(0) => {
                return invalid("fsync", "every 0 says nothing; use Commit to sync at each append");
            }
            _ => {}
        }
        if self.retention.age.is_some_and(|age| age.is_zero()) {
            return invalid("retention.age", "0 would drop records as they come; use None to keep them");
        }
        if self.roll_after.is_some_and(|after| after.as_millis() == 0) {
            return invalid("roll_after", "must be at least 1 ms, or None");
        }
        if self.producer_expiration.as_millis() == 0 {
            return invalid("producer_expiration", "must be at least 1 ms");
        }
        Ok(())
    }

    /// The bound on one batch: the setting, or the segment's size where that is smaller.
    pub(crate) fn batch_limit(&self) -> (&'static str, u32) {
        if self.max_batch_bytes <= self.segment_bytes {
            ("max_batch_bytes", self.max_batch_bytes)
        } else {
            ("segment_bytes", self.segment_bytes)
        }
    }
}

fn in_range(name: &'static str, value: u32, least: u32, most: u32) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    invalid(name, format!("{value} is not between {least} and {most}"))
}

fn invalid(name: &'static str, reason: impl Into<String>) -> Result<()> {
    Err(Error::InvalidConfig { name, reason: reason.into() })
}

/// Where a log's time comes from: the wall clock, for timestamps and ages, and a monotonic one, for intervals.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    /// Monotonic time counts from here.
    System(Instant),
    Manual(Arc<ManualTime>),
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

#[derive(Default)]
struct ManualTime {
    wall_ms: AtomicI64,
    monotonic_ms: AtomicU64,
}

impl Clock {
    /// The system's clocks.
    pub fn system() -> Self {
        Self(Source::System(Instant::now()))
    }

    /// A clock that stands still until it is moved, for tests. Clones share the same time.
    pub fn manual(now: Timestamp) -> Self {
        let time = ManualTime { wall_ms: AtomicI64::new(now.millis()), monotonic_ms: AtomicU64::new(0) };
        Self(Source::Manual(Arc::new(time)))
    }

    /// Moves a manual clock's wall time and monotonic time on together. A system clock does not move.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(time) = &self.0 {
            let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
            time.monotonic_ms.fetch_add(ms, Ordering::Relaxed);
            time.wall_ms.fetch_add(i64::try_from(ms).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
    }

    /// Sets a manual clock's wall time alone, as a person or a time service does. A system clock does not move.
    pub fn set_wall(&self, now: Timestamp) {
        if let Source::Manual(time) = &self.0 {
            time.wall_ms.store(now.millis(), Ordering::Relaxed);
        }
    }

    /// The wall clock's time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System(_) => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            Source::Manual(time) => Timestamp::from_millis(time.wall_ms.load(Ordering::Relaxed)),
        }
    }

    /// Time since some fixed moment, never running backwards.
    pub fn monotonic(&self) -> Duration {
        match &self.0 {
            Source::System(since) => since.elapsed(),
            Source::Manual(time) => Duration::from_millis(time.monotonic_ms.load(Ordering::Relaxed)),
        }
    }
}

/// The moment so far from now, for waits that must end.
pub(crate) fn deadline_in(wait: Duration) -> Instant {
    Instant::now() + wait
}

/// How long it is until the deadline; nothing where it has passed.
pub(crate) fn time_left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// True where the deadline has passed.
pub(crate) fn is_past(deadline: Instant) -> bool {
    Instant::now() >= deadline
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System(_) => "Clock::system",
            Source::Manual(_) => "Clock::manual",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_kafkas() {
        let config = LogConfig::default();
        config.validate().unwrap();
        assert_eq!(config.segment_bytes, 1_073_741_824);
        assert_eq!(config.segment_index_bytes, 10_485_760);
        assert_eq!(config.index_interval_bytes, 4096);
        assert_eq!(config.max_batch_bytes, 1_048_588);
    }

    #[test]
    fn senseless_settings_are_named() {
        let check = |change: fn(&mut LogConfig), name: &str| {
            let mut config = LogConfig::default();
            change(&mut config);
            match config.validate() {
                Err(Error::InvalidConfig { name: found, .. }) => assert_eq!(found, name),
                other => panic!("{name}: {other:?}"),
            }
        };
        check(|c| c.segment_bytes = 0, "segment_bytes");
        check(|c| c.segment_bytes = 1 << 31, "segment_bytes");
        check(|c| c.segment_index_bytes = 23, "segment_index_bytes");
        check(|c| c.max_batch_bytes = 60, "max_batch_bytes");
        check(|c| c.append_buffer_bytes = 1, "append_buffer_bytes");
        check(|c| c.max_queued_bytes = 0, "max_queued_bytes");
        check(|c| c.fsync = FsyncPolicy::EveryRecords(0), "fsync");
        check(|c| c.retention.age = Some(Duration::ZERO), "retention.age");
        check(|c| c.roll_after = Some(Duration::ZERO), "roll_after");
    }

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual(Timestamp::from_millis(1000));
        let other = clock.clone();
        clock.advance(Duration::from_secs(2));
        assert_eq!(other.now(), Timestamp::from_millis(3000));
        clock.set_wall(Timestamp::from_millis(5));
        assert_eq!(other.now(), Timestamp::from_millis(5));
        assert_eq!(other.monotonic(), Duration::from_secs(2));
    }
}
