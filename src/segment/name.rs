//! File names of a partition directory, both ways (Kafka: `LogFileUtils`).
//!
//! A segment's files carry its base offset in 20 digits. Exactly that is recognised: a name that merely resembles it
//! belongs to somebody else and is left alone.

use std::{ffi::OsStr, fmt};

use crate::{offset::Offset, sys, sys::Dir};

/// What a file of a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FileKind {
    /// Record batches: the truth.
    Log,
    /// Offsets to positions.
    Index,
    /// Timestamps to offsets.
    TimeIndex,
    /// Aborted transactions.
    TxnIndex,
    /// Producer state as of the offset in the name.
    Snapshot,
}

impl FileKind {
    const ALL: [Self; 5] = [Self::Log, Self::Index, Self::TimeIndex, Self::TxnIndex, Self::Snapshot];
    /// The files whose content follows from the `.log` and that are dropped and rebuilt with it.
    pub(crate) const SIDECARS: [Self; 3] = [Self::Index, Self::TimeIndex, Self::TxnIndex];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::Index => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TxnIndex => ".txnindex",
            Self::Snapshot => ".snapshot",
        }
    }
}

/// What Kafka appends to the name of a file that is coming or going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// To be removed.
    Deleted,
    /// Output of a compaction that has not finished.
    Cleaned,
    /// Output of a compaction that is being swapped in.
    Swap,
}

impl Fate {
    const ALL: [Self; 3] = [Self::Deleted, Self::Cleaned, Self::Swap];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Deleted => ".deleted",
            Self::Cleaned => ".cleaned",
            Self::Swap => ".swap",
        }
    }
}

/// The name of one file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentFileName {
    pub(crate) base: Offset,
    pub(crate) kind: FileKind,
    pub(crate) fate: Option<Fate>,
}

impl SegmentFileName {
    /// A live file's name.
    pub(crate) const fn live(base: Offset, kind: FileKind) -> Self {
        Self { base, kind, fate: None }
    }

    /// Reads a name; `None` for a name that is not exactly one of ours.
    pub(crate) fn parse(name: &OsStr) -> Option<Self> {
        let mut name = name.to_str()?;
        let fate = Fate::ALL.into_iter().find(|fate| match name.strip_suffix(fate.suffix()) {
            Some(rest) => {
                name = rest;
                true
            }
            None => false,
        });
        let (digits, suffix) = name.split_at_checked(20)?;
        let kind = FileKind::ALL.into_iter().find(|kind| kind.suffix() == suffix)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self { base: Offset::new(digits.parse().ok()?)?, kind, fate })
    }
}

impl fmt::Display for SegmentFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = self.fate.map_or("", Fate::suffix);
        write!(f, "{:020}{}{fate}", self.base.value(), self.kind.suffix())
    }
}

/// The name of a live file.
pub(crate) fn file_name(base: Offset, kind: FileKind) -> String {
    SegmentFileName::live(base, kind).to_string()
}

/// The base offset of the newest segment in a directory, by the names of the `.log` files.
///
/// Only what was there before a listing began is sure to be in it: one that runs while another process begins segments
/// may miss one and name a later one. A list that is taken after this, and believed up to here, lacks none.
pub(crate) fn newest_log(dir: &Dir) -> sys::Result<Option<Offset>> {
    let entries = dir.list()?;
    let names = entries.iter().filter_map(|entry| SegmentFileName::parse(&entry.name));
    Ok(names.filter(|name| name.kind == FileKind::Log && name.fate.is_none()).map(|name| name.base).max())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Option<SegmentFileName> {
        SegmentFileName::parse(OsStr::new(name))
    }

    #[test]
    fn names_are_written_and_read_as_inverses() {
        for value in [0, 1, 42, i64::MAX] {
            for kind in FileKind::ALL {
                for fate in [None, Some(Fate::Deleted), Some(Fate::Cleaned), Some(Fate::Swap)] {
                    let name = SegmentFileName { base: Offset::new(value).unwrap(), kind, fate };
                    assert_eq!(parse(&name.to_string()), Some(name));
                }
            }
        }
        assert_eq!(file_name(Offset::new(42).unwrap(), FileKind::Log), "00000000000000000042.log");
    }

    #[test]
    fn names_that_only_resemble_ours_are_nobodys() {
        for name in [
            "",
            ".log",
            "0.log",
            "+0000000000000000005.log",
            "-0000000000000000005.log",
            "000000000000000000000.log",
            "0000000000000000000.log",
            "00000000000000000007.LOG",
            "00000000000000000000.log.tmp",
            "00000000000000000000.log.swp",
            "00000000000000000000.log~",
            "00000000000000000000.log.bak",
            "00000000000000000000.log.deleted.deleted",
            "99999999999999999999.log",
            "0000000000000000000\u{e9}.log",
            "leader-epoch-checkpoint",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
