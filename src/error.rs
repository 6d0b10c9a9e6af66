//! What can go wrong, one variant for each thing a caller can do about it.

use std::{fmt, io, path::PathBuf};

use crate::{offset::Offset, record::BatchError, sys};

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed.
///
/// Variants are told apart by what a caller can do: wait, make room, fix a setting, reopen, repair, or report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a call. Not sticky unless it was a sync (then [`Error::Poisoned`] follows).
    #[error("cannot {op} {path}: {source}", path = path.display())]
    Io {
        /// What was tried, as a verb: `open`, `read`, `write`, `sync`, ...
        op: &'static str,
        /// The file or directory it was tried on.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// There is no log here. Create it with [`OpenMode::CreateIfMissing`](crate::OpenMode::CreateIfMissing).
    #[error("no log at {path}", path = path.display())]
    NotFound {
        /// The directory that was asked for.
        path: PathBuf,
    },
    /// Another writer holds the directory. Wait for it or end it.
    #[error("{path} is locked by another writer{}", holder.as_ref().map(|h| format!(" ({h})")).unwrap_or_default(), path = path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// What is known of the holder: its own note (`pid 4711 since 2025-11-30T10:53:20Z`), or the process that the
        /// kernel names.
        holder: Option<String>,
    },
    /// The directory, or the data directory it lies in, is a copy that is not finished: files may be missing, and finishing it
    /// would write over what is appended now. Finish it, or remove the mark.
    #[error(
        "{path} says that this is an unfinished copy of {of}: finish it with `logctl copy --resume`, or remove that file to take what is there as it is",
        path = path.display(), of = of.display()
    )]
    UnfinishedCopy {
        /// The file that marks it.
        path: PathBuf,
        /// What is being copied.
        of: PathBuf,
    },
    /// The lock could not be tried at all (permission, read-only file system, a file system without locks).
    #[error("cannot lock {path}: {source}", path = path.display())]
    CannotLock {
        /// The lock file, or the cursor's.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another consumer holds the cursor. Wait for it, end it, or take a name of your own.
    #[error("{path} is in use by another consumer{}", holder.as_ref().map(|h| format!(" ({h})")).unwrap_or_default(), path = path.display())]
    CursorInUse {
        /// The cursor's file.
        path: PathBuf,
        /// The process that the kernel names, if it does.
        holder: Option<String>,
    },
    /// Stored bytes are not what was written. `logctl verify` lists all of them.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// The offset lies outside the log.
    #[error("offset {requested} is out of range: the log holds {start} up to, not including, {end}")]
    OffsetOutOfRange {
        /// What was asked for.
        requested: Offset,
        /// The first offset there is.
        start: Offset,
        /// The end: the offset after the last.
        end: Offset,
    },
    /// The offset lies inside a batch, where the log cannot be cut: batches are kept or cut whole.
    #[error(
        "offset {offset} lies inside the batch of offsets {first} to {last}: batches are cut whole, so cut at {first} or at {behind}",
        behind = .last.value().saturating_add(1)
    )]
    InsideBatch {
        /// What was asked for.
        offset: Offset,
        /// The batch's first offset.
        first: Offset,
        /// Its last.
        last: Offset,
    },
    /// The log's end is not where the caller expected it: somebody else appended, or an append is being tried twice.
    #[error("expected the log to end at {expected}, it ends at {end}")]
    UnexpectedOffset {
        /// What the caller expected.
        expected: Offset,
        /// Where the log ends.
        end: Offset,
    },
    /// Records that the reader had already passed were cut; go on at `end`.
    #[error("the log was cut: its records from {end} on are not the ones read before")]
    Truncated {
        /// The first offset whose record may differ from what was read.
        end: Offset,
    },
    /// A producer with a newer epoch has taken over. Nothing was written; this one must not go on. (Kafka:
    /// `INVALID_PRODUCER_EPOCH`.)
    #[error(
        "producer {producer_id} is fenced: epoch {epoch}, the log has seen {current_epoch}; the log ends at {end}"
    )]
    ProducerFenced {
        /// The producer's id.
        producer_id: i64,
        /// The epoch of the batch.
        epoch: i16,
        /// The producer's epoch now.
        current_epoch: i16,
        /// Where the log ends.
        end: Offset,
    },
    /// A producer's batch neither follows the one before nor is one of its last five. Nothing was written. (Kafka:
    /// `OUT_OF_ORDER_SEQUENCE_NUMBER`.)
    #[error(
        "producer {producer_id}, epoch {epoch}: sequence {found} came where {expected} follows (known epoch {current_epoch}); the log ends at {end}"
    )]
    OutOfOrderSequence {
        /// The producer's id.
        producer_id: i64,
        /// The epoch of the batch.
        epoch: i16,
        /// The sequence number that would follow: 0 in a new epoch.
        expected: i32,
        /// The first sequence number of the batch.
        found: i32,
        /// The producer's epoch as the log knows it.
        current_epoch: i16,
        /// Where the log ends.
        end: Offset,
    },
    /// A producer with an open transaction sent a batch that does not belong to it. Nothing was written. (Kafka:
    /// `INVALID_TXN_STATE`.)
    #[error(
        "producer {producer_id}, epoch {epoch}: a batch outside of its open transaction; the log ends at {end}"
    )]
    TransactionOpen {
        /// The producer's id.
        producer_id: i64,
        /// The epoch of the batch.
        epoch: i16,
        /// Where the log ends.
        end: Offset,
    },
    /// The bytes handed in are not a batch that may be appended. Nothing was written.
    #[error("invalid batch: {0}")]
    InvalidBatch(#[from] BatchError),
    /// More bytes than the settings allow in one record, batch or call. Nothing was written.
    #[error("{what} of {size_bytes} bytes is larger than {limit} = {limit_bytes}")]
    TooLarge {
        /// `record`, `batch` or `append`.
        what: &'static str,
        /// Its size.
        size_bytes: u64,
        /// The name of the setting that bounds it.
        limit: &'static str,
        /// The bound.
        limit_bytes: u64,
    },
    /// A setting makes no sense.
    #[error("invalid setting {name}: {reason}")]
    InvalidConfig {
        /// The setting's name.
        name: &'static str,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// A topic cannot have this name, or so many partitions.
    #[error("invalid topic {topic:?}: {reason}")]
    InvalidTopic {
        /// The name.
        topic: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is a topic of this name already.
    #[error("topic {topic:?} exists")]
    TopicExists {
        /// The name.
        topic: String,
    },
    /// A file was written by a newer version of this crate, or in a format that is not read here.
    #[error("{path}: {what} is not supported here", path = path.display())]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// The format and version found.
        what: String,
    },
    /// The disk is full, or filled to the reserve. Nothing was written; the log goes on by itself once there is room.
    #[error("no space left for {path} ({reason})", path = path.display())]
    StorageFull {
        /// The file that needed room.
        path: PathBuf,
        /// What bound was met.
        reason: String,
    },
    /// A sync failed, so nothing written since the durable end can be trusted. Reads go on; reopen to write.
    #[error(
        "the log is poisoned: a sync failed ({reason}); records below {durable_end} are durable, reopen to go on"
    )]
    Poisoned {
        /// Everything below it is durable.
        durable_end: Offset,
        /// The first failure.
        reason: String,
    },
    /// The writer was closed.
    #[error("the log is closed")]
    Closed,
    /// A reader was asked to follow the durable end of a log whose policy never makes anything durable.
    #[error("the log's fsync policy is `never`: there is no durable end to follow")]
    NeverDurable,
}

impl Error {
    /// True where trying the same call again later can succeed without anybody changing the call.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Locked { .. } | Self::CursorInUse { .. } | Self::StorageFull { .. } | Self::Io { .. }
        )
    }

    /// True where the process, or the machine, may open no more files (`EMFILE`, `ENFILE`; std has no kind for them).
    pub(crate) fn is_out_of_descriptors(&self) -> bool {
        matches!(self, Self::Io { source, .. } if matches!(source.raw_os_error(), Some(23 | 24)))
    }

    /// True where stored bytes are damaged.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Self::Corrupt(_))
    }
}

/// Damaged bytes: where they are and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Corruption {
    /// The file.
    pub path: PathBuf,
    /// The byte position in it at which the damaged thing begins.
    pub position: u64,
    /// The offset of the damaged batch, or the first that is missing, where it is known.
    pub offset: Option<Offset>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.path.display(), self.position)?;
        if let Some(offset) = self.offset {
            write!(f, " (offset {offset})")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Corruption {}

impl From<sys::Error> for Error {
    fn from(error: sys::Error) -> Self {
        if error.is_storage_full() {
            let reason = error.source.to_string();
            return Self::StorageFull { path: error.path, reason };
        }
        Self::Io { op: error.op, path: error.path, source: error.source }
    }
}

impl Error {
    /// Why the lock file at `path` could not be locked.
    pub(crate) fn not_locked(path: PathBuf, error: sys::LockError) -> Self {
        match error {
            sys::LockError::Held { holder } => Self::Locked { path, holder },
            sys::LockError::Cannot(error) => Self::CannotLock { path: error.path, source: error.source },
        }
    }
}
