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

/// What the lock-free pieces are made of. A model of them puts other atomics in this place.
mod atomics {
    pub(super) use std::sync::atomic::{AtomicU32, Ordering, fence};
}

mod append;
mod birth;
mod buffer;
mod checkpoint;
mod committed;
mod control;
mod cursor;
mod cut;
mod described;
mod ends;
pub(crate) mod epochs;
mod examine;
mod fit;
mod follow;
mod group;
mod grouped;
mod kafka_files;
mod keeper;
mod lock_holder;
mod lookup;
mod open;
mod open_cut;
mod open_segments;
mod pending;
mod producers;
mod publish;
mod quota;
mod reader;
mod recovery;
mod repair;
mod report;
mod request;
mod retention;
mod scanned;
mod shared;
mod shared_writer;
mod store_files;
mod summary;
mod survey;
mod sync;
mod tail;
mod text_checkpoint;
mod transactions;
mod trust;
pub(crate) mod txn_index;
mod view;
mod waiters;
mod waiters_page;
mod waiting;
mod wake;
mod walk;
mod watch;
mod writer;

pub use append::{AppendOptions, Offsets};
pub(crate) use birth::make_empty_log;
pub(crate) use checkpoint::{CHECKPOINT_NAME, Checkpoint, Found, Point};
pub use cursor::{Cursor, CursorInfo};
pub(crate) use described::describe;
pub use described::{Described, Fact, Line};
pub use examine::{Dropped, RepairOptions, RepairPlan, repair_plan};
pub use kafka_files::topic_and_partition;
pub(crate) use kafka_files::{hints_for, topic_partition};
pub(crate) use lock_holder::parse_lock_note;
pub use lock_holder::{LockHolder, lock_holder};
pub(crate) use open::{StoreRight, refuse_unfinished_copy, unfinished_copy_of};
pub use pending::{Appended, Durability, Pending};
pub(crate) use producers::{Marker, marker_of, snapshot_flaw};
pub use producers::{Producer, ProducerInfo};
pub use reader::LogReader;

pub use report::{Cut, Readable, RecoveryReport};
pub use retention::Maintenance;
pub use shared::Wait;
pub use shared_writer::SharedWriter;
pub(crate) use store_files::StoreFiles;
pub use sync::Lag;
pub(crate) use text_checkpoint::parse as parse_text_checkpoint;
pub use transactions::OpenTransaction;
pub(crate) use transactions::Transactions;
pub use txn_index::AbortedTransaction;
pub use view::{Access, Follow, Isolation, LogStats, Position, ReadOptions, ReadOutcome, SegmentInfo};
pub use walk::{Batches, OwnedRecords, Records};
pub use writer::LogWriter;
