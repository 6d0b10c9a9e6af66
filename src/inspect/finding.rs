//! What a check can find, and how bad it is.

use std::{fmt, path::PathBuf};

use crate::offset::Offset;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing, nothing to do: a legal gap, a file of somebody else.
    Note,
    /// Not as a clean close leaves it, yet nothing is lost and nothing reads wrongly: room not trimmed, a missing index.
    Warning,
    /// Bytes that are not what was written, or an index that leads to wrong answers.
    Damage,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Damage => "damage",
        })
    }
}

macro_rules! kinds {
    ($($(#[$meta:meta])* $variant:ident = $word:literal,)*) => {
        /// What is wrong. The word of each kind ([`FindingKind::as_str`]) is stable: scripts may depend on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingKind {
            $($(#[$meta])* $variant,)*
        }

        impl FindingKind {
            /// The kind's stable word, lower case with hyphens.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Every kind there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }
    };
}

kinds! {
    /// A file that cannot be opened or read.
    Unreadable = "unreadable",
    /// A file that was removed while the directory was being checked.
    Removed = "removed",
    /// A directory, link or device where a segment's file belongs. Never followed.
    NotAFile = "not-a-file",
    /// A `.log` of more than `i32::MAX` bytes: positions have 31 bits, so no log with it is opened. Not read.
    TooLarge = "too-large",
    /// The batch's checksum does not match its bytes.
    BadCrc = "bad-crc",
    /// A length field that cannot be: shorter than a batch header, or reaching past the end of the file.
    BadLength = "bad-length",
    /// A format version that does not exist.
    BadMagic = "bad-magic",
    /// Header fields that contradict each other (negative counts, an unknown codec).
    BadHeader = "bad-header",
    /// Zeros where a batch should begin, with more data behind them.
    ZeroedBytes = "zeroed-bytes",
    /// Message format 0 or 1, which is not read here: left unchecked.
    OldFormat = "old-format",
    /// Records that were not read: they unpack to more than the limit, or the codec is not built in (deep checks only).
    Unread = "unread",
    /// The batch's records cannot be read, or contradict its header (deep checks only).
    BadRecords = "bad-records",
    /// A batch that does not lie behind the one before it.
    OffsetOrder = "offset-order",
    /// A batch with an offset below the base offset of its segment.
    BelowBase = "below-base",
    /// An offset more than `i32::MAX` above the segment's base offset: indexes cannot hold it.
    OffsetRange = "offset-range",
    /// A segment that reaches into the next one.
    SegmentsOverlap = "segments-overlap",
    /// A `.log` without one batch whose name contradicts the segments beside it: nothing is believed of it.
    StraySegment = "stray-segment",
    /// A cut that was begun and not finished: the next open for writing finishes it.
    PendingCut = "pending-cut",
    /// No record between a segment's end and the next one's base offset, or between two batches of a segment (told once for
    /// each segment). Legal after compaction.
    OffsetGap = "offset-gap",
    /// The log ends before records that our own checkpoint knew to be durable.
    LostRecords = "lost-records",
    /// Bytes at the end of the last segment that begin a batch and do not complete it.
    TornTail = "torn-tail",
    /// Bytes at the end of a sealed segment that are no batch.
    BadTail = "bad-tail",
    /// Room that was reserved and not cut off: zeros behind the last batch or entry.
    Untrimmed = "untrimmed",
    /// The end of the last segment is not whole, but a writer is at work on it: look again later.
    BeingWritten = "being-written",
    /// An index whose length is no multiple of its entries' length.
    IndexLength = "index-length",
    /// Index entries that do not increase.
    IndexOrder = "index-order",
    /// An index entry that points at no batch's first byte.
    IndexPosition = "index-position",
    /// An index entry with another offset than the last one of the batch it points at.
    IndexOffset = "index-offset",
    /// A time index entry with an offset at which no batch ends.
    TimeIndexOffset = "time-index-offset",
    /// A time index entry with another timestamp than the largest up to its batch.
    TimeIndexTimestamp = "time-index-timestamp",
    /// The time index of a sealed segment does not end with the segment's largest timestamp.
    TimeIndexEnd = "time-index-end",
    /// No index beside a `.log`: it is rebuilt when the log is opened for writing.
    MissingIndex = "missing-index",
    /// A `.txnindex` that cannot be read, is missing, or names other aborted transactions than the log holds.
    TxnIndex = "txn-index",
    /// A `.snapshot` of the producers that cannot be read: a broker, and an open here, take an older one.
    Snapshot = "snapshot",
    /// An index or other companion of a segment that is not there.
    Orphan = "orphan",
    /// Leader epochs that go down from one batch to the next.
    EpochOrder = "epoch-order",
    /// `leader-epoch-checkpoint` cannot be read or contradicts the log.
    EpochCheckpoint = "epoch-checkpoint",
    /// A file that says how far a log is known to be durable, or where it begins, cannot be read: ours beside the segments, a
    /// broker's in a data directory.
    Checkpoint = "checkpoint",
    /// `partition.metadata` cannot be read.
    PartitionMetadata = "partition-metadata",
    /// A copy that was not finished: files of the log may be missing, and no writer opens it.
    UnfinishedCopy = "unfinished-copy",
    /// A file left over from a deletion, a compaction or a rewrite.
    LeftOver = "left-over",
    /// A name that belongs neither to Kafka nor to us: not looked at.
    ForeignName = "foreign-name",
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing found by a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The file (or directory entry) it was found in.
    pub file: PathBuf,
    /// The byte position at which it begins, where it has one.
    pub position: Option<u64>,
    /// The offset it concerns, where one is known.
    pub offset: Option<Offset>,
    /// What is wrong.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: Severity,
    /// True where [`LogWriter::open_repaired`](crate::LogWriter::open_repaired), which `logctl repair` is, gets rid of it: an index
    /// is rebuilt, room cut off, bytes that are no batch dropped and kept aside. Records that cannot be read are not had back
    /// by it.
    pub repairable: bool,
    /// The particulars, for a person.
    pub detail: String,
}

impl Finding {
    pub(crate) fn new(
        file: impl Into<PathBuf>,
        kind: FindingKind,
        severity: Severity,
        detail: String,
    ) -> Self {
        // Hints can always be rebuilt from the `.log`, room can be cut off, and what is no batch goes.
        let is_of_batches = matches!(
            kind,
            FindingKind::BadCrc
                | FindingKind::BadLength
                | FindingKind::BadMagic
                | FindingKind::BadHeader
                | FindingKind::ZeroedBytes
                | FindingKind::BadRecords
                | FindingKind::OffsetOrder
                | FindingKind::BelowBase
                | FindingKind::OffsetRange
                | FindingKind::SegmentsOverlap
                | FindingKind::StraySegment
                | FindingKind::LostRecords
                | FindingKind::BadTail
        );
        let is_of_files = matches!(
            kind,
            FindingKind::Untrimmed
                | FindingKind::TornTail
                | FindingKind::IndexLength
                | FindingKind::IndexOrder
                | FindingKind::IndexPosition
                | FindingKind::IndexOffset
                | FindingKind::TimeIndexOffset
                | FindingKind::TimeIndexTimestamp
                | FindingKind::TimeIndexEnd
                | FindingKind::MissingIndex
                | FindingKind::TxnIndex
                | FindingKind::Snapshot
                | FindingKind::Orphan
                | FindingKind::PendingCut
                | FindingKind::EpochCheckpoint
                | FindingKind::Checkpoint
        );
        let repairable = is_of_files || (is_of_batches && severity == Severity::Damage);
        Self { file: file.into(), position: None, offset: None, kind, severity, repairable, detail }
    }

    #[must_use]
    pub(crate) fn at(mut self, position: u64) -> Self {
        self.position = Some(position);
        self
    }

    #[must_use]
    pub(crate) fn with_offset(mut self, offset: Option<Offset>) -> Self {
        self.offset = offset;
        self
    }
}

/// One line: severity, file, position, offset, kind, particulars.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.severity, self.file.display())?;
        if let Some(position) = self.position {
            write!(f, " at byte {position}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " (offset {offset})")?;
        }
        write!(f, ": {}: {}", self.kind, self.detail)
    }
}
