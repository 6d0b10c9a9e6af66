//! An embeddable append-only segmented log in Apache Kafka's own on-disk format.
//!
//! A log is a directory: a Kafka partition, byte for byte. What is appended here a broker can serve, and what a broker
//! wrote can be read here, with nothing re-encoded. One writer at a time, any number of readers, no background threads.
//!
//! ```
//! use stratalog::{AppendOptions, LogConfig, LogWriter, OpenMode, record::Record};
//!
//! # let temp = tempfile::tempdir().unwrap();
//! # let dir = temp.path().join("orders-0");
//! let mut config = LogConfig::default();
//! config.open = OpenMode::CreateIfMissing;
//! let mut log = LogWriter::open(&dir, config)?;
//! let appended = log.append_records(&[Record::new().key(b"k").value(b"v")], AppendOptions::default())?;
//! // Durable by now: the default policy returns after a successful fdatasync.
//! for record in log.reader().owned_records(appended.base_offset) {
//!     println!("{}", record?.offset);
//! }
//! log.close()?;
//! # Ok::<(), stratalog::Error>(())
//! ```
//!
//! # Where to begin
//!
//! | you want to | look at |
//! | --- | --- |
//! | append | [`LogWriter`], [`LogConfig`], [`record::Record`] |
//! | append from many threads | [`SharedWriter`] |
//! | send again what may have arrived, without duplicates | [`Producer`], [`AppendOptions::producer`], [`Appended::duplicate`] |
//! | keep many logs in one data directory | [`Store`], [`StoreConfig`] |
//! | choose when data is safe | [`FsyncPolicy`], [`Appended::durability`], [`Pending`] |
//! | read: all, from an offset, from a time | [`LogReader::owned_records`], [`LogReader::records`], [`LogReader::record`], [`LogReader::offset_for_timestamp`] |
//! | read only what was committed | [`Isolation::Committed`], [`LogReader::last_stable_offset`] |
//! | keep a consumer's place over restarts | [`Cursor`] |
//! | wait for more | [`LogReader::wait_past`], [`LogReader::poll_past`], [`LogReader::event_fd`] |
//! | send stored bytes to a socket | [`LogReader::slice`], [`FileSlice::send_to`] |
//! | copy batches as they are | [`LogReader::batches`], [`LogWriter::append`], [`Offsets::Preserve`] |
//! | append only if nobody else has | [`AppendOptions::expected`] |
//! | cut the newest records, repair a damaged log | [`LogWriter::open_cut`], [`LogWriter::open_repaired`], [`repair_plan`] |
//! | delete old records | [`Retention`], [`LogWriter::maintain`], [`LogWriter::advance_start`] |
//! | know what a crash did | [`LogWriter::recovery`], [`RecoveryReport`] |
//! | handle errors | [`Error`]: a variant for each thing a caller can do |
//! | work on batches in memory | [`record`] |
//!
//! The repository's `examples/` hold programs that run: `quickstart`, `event_sourcing`, `import_kafka_dir`,
//! `durable_queue`, `multi_producer`, `tail_from_another_process`. Its `docs/` say how the files look (`FORMAT.md`), what
//! is safe when (`DURABILITY.md`) and how the code is laid out (`ARCHITECTURE.md`).
//!
//! # What holds
//!
//! - **An acknowledgement says what it is worth.** [`Durability::Durable`]: a sync that covers the record and the name of
//!   its file has succeeded. [`Durability::Written`]: the kernel has it, so it outlives the process, not the machine.
//! - **An append is whole or not there**, a call of many batches too, for every reader; across a crash each *batch* is.
//! - **An offset that was reported durable is never given to another record.** Where recovery cuts records that were only
//!   written, what comes next is marked by a new leader epoch, and a reader of another process that had passed the cut
//!   is told ([`Error::Truncated`], [`Wait::Truncated`]).
//! - **A published byte never changes**, so readers take no lock and a [`FileSlice`] stays true, even after retention has
//!   deleted its file.
//! - **Recovery cuts only what was never known to be durable**, keeps what it cuts in the directory, and reports it.
//! - **Only `.log` files hold records.** Every other file can be deleted: that costs time at the next open, and brings
//!   back records that [`LogWriter::advance_start`] hid in a segment that is still there.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `gzip` `snappy` `lz4` `zstd` | with `cli` | the codec; without it such batches can be kept, copied and sent, not unpacked |
//! | `server` | with `cli` | [`protocol`]: Kafka's wire protocol; all codecs |
//! | `cli` | yes | the command `logctl`, `server` and all codecs |
//!
//! An embedder writes `default-features = false` and names the codecs it needs. Features add items and never change
//! what others do.
//!
//! # Platform
//!
//! Linux only, Rust 1.89 or later. The engine is synchronous and starts no thread of its own
//! accord (one, where [`LogReader::event_fd`] or [`LogReader::poll_past`] asks for it on another process's log);
//! [`Pending::poll`] and [`LogReader::poll_past`] fit it into a program that must not block.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "stratalog runs on Linux only: it relies on fallocate, open-file-description locks and sendfile"
);

mod config;
mod error;
mod index;
pub mod inspect;
mod log;
mod offset;
#[cfg(feature = "server")]
pub mod protocol;
pub mod record;
mod segment;
#[cfg(feature = "server")]
pub mod server;
mod store;
mod sys;
pub mod transfer;

pub use config::{Clock, FsyncPolicy, LogConfig, OpenMode, Preallocate, RecoveryMode, Retention, SyncMethod};
pub use error::{Corruption, Error, Result};
pub use log::{
    AbortedTransaction, Access, AppendOptions, Appended, Batches, Cursor, CursorInfo, Cut, Dropped,
    Durability, Follow, Isolation, Lag, LockHolder, LogReader, LogStats, LogWriter, Maintenance, Offsets,
    OpenTransaction, OwnedRecords, Pending, Position, Producer, ProducerInfo, ReadOptions, ReadOutcome,
    Readable, Records, RecoveryReport, RepairOptions, RepairPlan, SegmentInfo, SharedWriter, Wait,
    lock_holder, repair_plan, topic_and_partition,
};
pub use offset::{Offset, Timestamp};
pub use store::{Store, StoreConfig, StoreLog, StoreMaintenance, Topic, Uuid};
pub use sys::FileSlice;

/// The examples of the README, compiled and run with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// What this crate does to the disk, recorded, and the disks that a crash may leave. For its own tests.
#[cfg(feature = "sim")]
#[doc(hidden)]
pub mod sim {
    pub use crate::sys::recorder::{
        Call, Chance, Effect, Event, Everything, Fate, Fault, FileId, Image, Nothing, Recording, Survival,
    };
}
