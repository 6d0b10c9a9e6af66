//! What opening found and did, for whoever opened.

use std::{path::PathBuf, time::Duration};

use super::examine::Dropped;
use crate::{error::Corruption, offset::Offset};

/// What opening found and did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// The log had been closed and was believed: no record was read.
    pub clean: bool,
    /// There was nothing; the log was created.
    pub created: bool,
    /// How many bytes of batches were read and checked.
    pub scanned_bytes: u64,
    /// What was cut off the end, if anything was.
    pub cut: Option<Cut>,
    /// Index files that were written anew.
    pub rebuilt: Vec<PathBuf>,
    /// Offsets whose records were durable and are gone.
    pub lost: Option<std::ops::Range<Offset>>,
    /// What a repair dropped because it could not be read. The bytes are kept in the directory.
    pub dropped: Vec<Dropped>,
    /// Damage below the recovery point. Nothing was cut there; reading these places says so again.
    pub corrupt: Vec<Corruption>,
    /// Anything else that is odd: a file that could not be read and was taken as absent, say.
    pub warnings: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

/// What opening cut off. The bytes are kept in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// The log ends here now.
    pub offset: Offset,
    /// Bytes that were cut, reserved and never written ones not counted.
    pub bytes: u64,
    /// What was wrong with the first of them.
    pub reason: String,
    /// The files that keep them.
    pub kept_in: Vec<PathBuf>,
    /// True for records that were cut because somebody asked for it, be it by an open before this one that did not come to
    /// the end of the cut; nothing was wrong with them then.
    pub was_asked_for: bool,
    /// Whole batches among them, behind what was wrong. `None` where there were none, and where that was not looked at: for
    /// a cut that was asked for, or that an earlier open began.
    pub readable: Option<Readable>,
}

/// Batches that can be read among what was cut: blocks reach the disk in any order, so after a power cut they may lie
/// behind a hole. [`LogWriter::open_repaired`](crate::LogWriter::open_repaired) in place of an ordinary open keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Readable {
    /// How many.
    pub batches: u64,
    /// The records in them, as their headers say.
    pub records: u64,
    /// From the first offset in them up to the one after the last.
    pub offsets: std::ops::Range<Offset>,
}
