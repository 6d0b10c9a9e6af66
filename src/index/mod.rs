//! Sparse maps from offsets and timestamps into one segment: Kafka's `.index` and `.timeindex`.
//!
//! Lives here: looking up without locks, adding entries that become visible whole, the rule when an entry is due,
//! building both anew from a walk over the log.
//! Not here: which segment, what a batch looks like, whether an entry tells the truth (segment: it looks at the batch).
//! Holds always: entries strictly increase when written; only the published ones are read; no content of a file can make a
//! look-up fail, end elsewhere than at an entry, or run longer than its logarithm. An index is a hint: it can be deleted.
//!
//! ```text
//! .index      8 bytes an entry:  relative offset i32 | position i32      (last offset of a batch, where that batch begins)
//! .timeindex  12 bytes an entry: timestamp i64 | relative offset i32     (largest timestamp so far, last offset of the
//!                                                                         first batch that has it)
//! ```
//! All big-endian; an offset is relative to the segment's base. There is no header and no checksum.

mod builder;
mod file;
mod offset;
mod pacer;
mod time;

use std::fmt;

pub(crate) use builder::IndexBuilder;
pub(crate) use offset::{OffsetEntry, OffsetIndex};
pub(crate) use pacer::{BatchAt, IndexPacer};
pub(crate) use time::{TimeEntry, TimeIndex};

/// What came of adding an entry.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Append {
    /// It is there, visible to readers.
    Stored,
    /// Nothing new in it (a timestamp no larger than the last): nothing to store.
    Unchanged,
    /// Every slot is used: time to roll.
    Full,
    /// No room was reserved for it.
    Unreserved,
    /// Not above the last entry, or too far from the base to be written as an entry.
    OutOfOrder,
}

/// What is wrong with an index file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexProblem {
    /// The entry, where it is one.
    pub(crate) entry: Option<u32>,
    pub(crate) reason: String,
}

impl IndexProblem {
    fn at(entry: u32, reason: impl Into<String>) -> Self {
        Self { entry: Some(entry), reason: reason.into() }
    }
}

impl fmt::Display for IndexProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for IndexProblem {}

#[cfg(test)]
mod tests;
