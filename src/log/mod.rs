//! One directory, one log: a Kafka partition with a unique writer and any number of readers.
//!
//! Lives here: opening and recovery, appending, rolling, making durable, retention, reading by offset and time, waiting,
//! and the hints beside the log (checkpoint, summary, control page, epochs, what Kafka keeps in the data directory).
//! Not here: what a batch means (record), how a segment's files are laid out (segment), system calls (sys), sockets.
//! Holds always: `start <= durable end <= written end`; a published byte never changes; nothing is acknowledged as
//! durable that a successful sync does not cover; every file but `.log` can be deleted.
//!
//! ```text
//! LogWriter (unique, holds the lock)        LogReader (cheap clone)
//!      |  stage: check, stamp, encode            |
//!      v                                         v
//!   SegmentWriter ------ publishes ------>  Shared: ends, segments, waiters
//!      |                                         ^
//!      v                                         |
//!   Syncer: what is not durable, one leader at a time; Keeper: recovery points
//! ```

mod append;
mod buffer;
mod checkpoint;
mod control;
mod cut;
mod epochs;
mod follow;
mod kafka_files;
mod keeper;
mod lookup;
mod open;
mod pending;
mod reader;
mod recovery;
mod repair;
mod report;
mod retention;
mod scanned;
mod shared;
mod summary;
mod survey;
mod sync;
mod trust;
mod view;
mod waiting;
mod walk;
mod writer;

pub use append::{AppendOptions, Offsets};
pub(crate) use checkpoint::{Checkpoint, Found};
pub use kafka_files::topic_and_partition;
pub use pending::{Appended, Durability, Pending};
pub use reader::LogReader;
pub use repair::{Dropped, repair_plan};
pub use report::{Cut, RecoveryReport};
pub use retention::Maintenance;
pub use shared::Wait;
pub use sync::Lag;
pub use view::{Access, Follow, LogStats, Position, ReadOptions, ReadOutcome, SegmentInfo};
pub use walk::{Batches, OwnedRecords, Records};
pub use writer::LogWriter;
