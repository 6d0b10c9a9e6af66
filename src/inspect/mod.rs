//! Looking at files from outside: single files read as they are, whole partition directories checked.
//!
//! Lives here: walking a `.log` piece by piece through any damage, index files entry by entry, Kafka's small text files, and
//! the check of a partition directory.
//! Not here: reading a log as a log (log), what a batch means (record), putting anything right (log), printing (`logctl`).
//! Holds always: no lock is taken and nothing is changed, not even a file's times of change; files are opened read-only, links and
//! FIFOs never; memory is one block, or one batch whose CRC was right, for each file open; damage hides nothing behind it.

mod epoch_check;
mod finding;
mod index_check;
mod index_file;
mod log_file;
mod look;
mod parallel;
mod partition;
mod pieces;
mod report;
mod segment_check;
mod sidecar;
mod small_file;
mod source;
#[cfg(test)]
mod tests;
mod txn_check;

pub use crate::log::{Described, Fact, Line};
pub use finding::{Finding, FindingKind, Severity};
pub use index_file::{Entries, IndexEntry, IndexFile, OffsetIndexEntry, TimeIndexEntry};
pub use log_file::{LogFile, base_offset_of};
pub use parallel::SegmentPool;
pub use partition::{Partition, verify, verify_data_directory, verify_file};
pub use pieces::{Entry, OldEntry, Piece, Pieces, Reason, Tail};
pub use report::{SegmentReport, VerifyOptions, VerifyReport};
pub use sidecar::{EpochCheckpoint, LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, PartitionMetadata};
pub use small_file::small_file;
