//! What a reader may be told, and what it tells: options, positions, outcomes, numbers.

use std::path::PathBuf;

use crate::{
    offset::{Offset, Timestamp},
    record::OwnedRecord,
};

/// How a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// How far. Default: everything written.
    pub follow: Follow,
    /// Whether records of transactions that are open or were aborted are read. Default: they are.
    pub isolation: Isolation,
    /// Check each batch's CRC before its bytes are handed out. Default: yes. Slices are never checked.
    pub verify_crc: bool,
    /// What the kernel is told about the reads to come.
    pub access: Access,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            follow: Follow::default(),
            isolation: Isolation::default(),
            verify_crc: true,
            access: Access::default(),
        }
    }
}

/// Which end a reader follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Follow {
    /// Everything written: a power cut may take the newest of it back.
    #[default]
    Written,
    /// Only what survives a power cut.
    Durable,
}

/// Which records of transactions are read (Kafka: `isolation.level`).
///
/// ```
/// use stratalog::{AppendOptions, Isolation, LogConfig, LogReader, LogWriter, OpenMode, ReadOptions};
/// use stratalog::record::{BatchOptions, ProducerStamp, Record, batch_size, encode_batch};
///
/// # let temp = tempfile::tempdir().unwrap();
/// # let dir = temp.path().join("orders-0");
/// # let mut config = LogConfig::default();
/// # config.open = OpenMode::CreateIfMissing;
/// # let mut log = LogWriter::open(&dir, config)?;
/// log.append_records(&[Record::value_only(b"of no transaction")], AppendOptions::default())?;
/// // A batch of a transaction that nobody has ended yet, as it comes from a broker.
/// let mut options = BatchOptions::default();
/// options.producer = Some(ProducerStamp { id: 7, epoch: 0, base_sequence: 0 });
/// options.transactional = true;
/// let records = [Record::value_only(b"open")];
/// let mut batch = vec![0; batch_size(&records, &options) as usize];
/// encode_batch(&records, &options, &mut batch)?;
/// log.append(&batch, AppendOptions::default())?;
///
/// let mut options = ReadOptions::default();
/// let all = LogReader::open(&dir, options.clone())?;
/// options.isolation = Isolation::Committed;
/// let committed = LogReader::open(&dir, options)?;
/// assert_eq!(all.owned_records(all.start()).count(), 2);
/// assert_eq!(committed.owned_records(committed.start()).count(), 1);
/// assert_eq!(committed.last_stable_offset()?.value(), 1);
/// # Ok::<(), stratalog::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// All of them.
    #[default]
    Uncommitted,
    /// Only those of committed transactions, and records of none: reading ends at the last stable offset
    /// ([`LogReader::last_stable_offset`](crate::LogReader::last_stable_offset)), and walks and look-ups of single
    /// records leave out what was aborted.
    ///
    /// The first look walks the batch headers of the log, later ones those of what was appended since; whoever looks
    /// then waits for it.
    Committed,
}

/// How a log will be read, for the kernel's read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Access {
    /// The kernel finds out by itself.
    #[default]
    Normal,
    /// From front to back.
    Sequential,
    /// Here and there.
    Random,
}

/// Where a reader stands: the offset of the next record, and the leader epoch of the last batch read, by which a cut
/// under the reader is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The next offset to be read.
    pub offset: Offset,
    /// The leader epoch of the batch before it, if one was read.
    pub leader_epoch: Option<i32>,
}

impl Position {
    /// Behind this record: where to go on once it was dealt with.
    pub fn after(record: &OwnedRecord) -> Self {
        let offset = record.offset.checked_add(1).unwrap_or(Offset::MAX);
        Self { offset, leader_epoch: Some(record.leader_epoch) }
    }
}

impl From<Offset> for Position {
    fn from(offset: Offset) -> Self {
        Self { offset, leader_epoch: None }
    }
}

/// What [`LogReader::read`](crate::LogReader::read) put into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOutcome {
    /// The offset after the last batch read: where to go on.
    pub next: Offset,
    /// How many bytes were read; 0 where nothing is there yet.
    pub bytes: usize,
}

/// One segment, as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Its first offset.
    pub base_offset: Offset,
    /// The offset after its last record.
    pub next_offset: Offset,
    /// Bytes of batches in its `.log`.
    pub size_bytes: u64,
    /// The largest timestamp, where it is known without reading.
    pub max_timestamp: Option<Timestamp>,
    /// Its `.log` file.
    pub path: PathBuf,
    /// False for the one that is being written.
    pub sealed: bool,
}

/// Numbers about a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStats {
    /// The first readable offset.
    pub start: Offset,
    /// The end of what survives a power cut.
    pub durable_end: Offset,
    /// The end of what is written.
    pub end: Offset,
    /// How many segments there are.
    pub segments: usize,
    /// Bytes of batches in all of them.
    pub bytes: u64,
    /// How many of them have their files open.
    pub open_segments: usize,
    /// True where the log was closed and not opened for writing since.
    pub clean: bool,
    /// The last recovery point: everything below it was durable when it was written. `None` where there is none.
    pub recovery_point: Option<Offset>,
}
