//! An embeddable append-only segmented log in Apache Kafka's own on-disk format.
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
pub mod record;
mod segment;
mod sys;

pub use config::{Clock, FsyncPolicy, LogConfig, OpenMode, Preallocate, RecoveryMode, Retention, SyncMethod};
pub use error::{Corruption, Error, Result};
pub use log::{
    Access, AppendOptions, Appended, Batches, Cut, Durability, Follow, Lag, LogReader, LogStats, LogWriter,
    Maintenance, Offsets, OwnedRecords, Pending, Position, ReadOptions, ReadOutcome, Records, RecoveryReport,
    SegmentInfo, Wait, topic_and_partition,
};
pub use offset::{Offset, Timestamp};
pub use sys::FileSlice;

/// What this crate does to the disk, recorded, and the disks that a crash may leave. For its own tests.
#[cfg(feature = "sim")]
#[doc(hidden)]
pub mod sim {
    pub use crate::sys::recorder::{
        Call, Chance, Effect, Event, Everything, Fate, Fault, FileId, Image, Nothing, Recording, Survival,
    };
}
