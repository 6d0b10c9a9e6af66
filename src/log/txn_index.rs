//! `.txnindex`: the aborted transactions whose marker lies in a segment, as Kafka writes them (`AbortedTxn`,
//! `TransactionIndex`). Big-endian entries of 34 bytes, no header; absent where there are none.
//!
//! | at | field | type |
//! | ---: | --- | --- |
//! | 0 | version, 0 | i16 |
//! | 2 | producer id | i64 |
//! | 10 | first offset of the transaction | i64 |
//! | 18 | last offset: that of the ABORT marker | i64 |
//! | 26 | last stable offset once the marker was written | i64 |
//!
//! A hint: what a reader is told comes from the batches.

use std::fmt;

use crate::{
    offset::Offset,
    segment::{FileKind, file_name},
    sys::{self, Dir},
};

/// The size of an entry.
pub(crate) const ENTRY_BYTES: usize = 34;
/// Larger files are not read: two million transactions aborted in one segment.
const MAX_BYTES: usize = 64 << 20;
const VERSION: i16 = 0;

/// A transaction that was aborted: what its producer wrote from its first to its last offset is not for those who read
/// committed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AbortedTransaction {
    /// The producer's id.
    pub producer_id: i64,
    /// The offset of its first record. It may lie in an earlier segment, or before the log's start.
    pub first_offset: Offset,
    /// The offset of the marker that ended it.
    pub last_offset: Offset,
    /// Where committed reads ended once the marker was written, not held back by a high watermark: the first offset of
    /// the oldest transaction then open, or the offset after the marker.
    pub last_stable_offset: Offset,
}

impl AbortedTransaction {
    /// The entry's bytes.
    pub(crate) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..2].copy_from_slice(&VERSION.to_be_bytes());
        let fields = [
            self.producer_id,
            self.first_offset.value(),
            self.last_offset.value(),
            self.last_stable_offset.value(),
        ];
        for (place, field) in bytes[2..].chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    /// Reads an entry. Checked: the version, that nothing is negative, and that the transaction ends after it begins.
    fn parse(bytes: &[u8; ENTRY_BYTES]) -> Result<Self, Wrong> {
        let (version, mut rest) = bytes
            .split_first_chunk()
            .map_or((0, &[][..]), |(version, rest)| (i16::from_be_bytes(*version), rest));
        if version != VERSION {
            return Err(Wrong::Version(version));
        }
        let mut field = || {
            let (field, after) = rest.split_first_chunk()?;
            rest = after;
            Some(i64::from_be_bytes(*field))
        };
        let mut next = || field().filter(|value| *value >= 0);
        let producer_id = next().ok_or(Wrong::Negative)?;
        let mut offset = || next().and_then(Offset::new).ok_or(Wrong::Negative);
        let entry = Self {
            producer_id,
            first_offset: offset()?,
            last_offset: offset()?,
            last_stable_offset: offset()?,
        };
        let is_possible = entry.first_offset < entry.last_offset
            && entry.last_offset.next().is_some_and(|after| entry.last_stable_offset <= after);
        if is_possible { Ok(entry) } else { Err(Wrong::Offsets) }
    }
}

/// Why a file is no transaction index of its segment, and the entry at which it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) entry: usize,
    pub(crate) wrong: Wrong,
}

/// What is wrong with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The file ends inside it.
    Short,
    /// It is of a version that is not known. A broker ends over one.
    Version(i16),
    /// A field is negative.
    Negative,
    /// The transaction does not end after it begins, or is stable further on than it reaches.
    Offsets,
    /// Its marker lies before the segment.
    BelowSegment,
    /// Its marker lies at or before the one of the entry before.
    Order,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}: ", self.entry)?;
        match self.wrong {
            Wrong::Short => write!(f, "the file ends in it"),
            Wrong::Version(version) => write!(f, "version {version} where {VERSION} is known"),
            Wrong::Negative => write!(f, "a negative number"),
            Wrong::Offsets => write!(f, "offsets that no transaction has"),
            Wrong::BelowSegment => write!(f, "its marker lies before the segment"),
            Wrong::Order => write!(f, "not behind the entry before it"),
        }
    }
}

/// The entries of the segment `base`, by rising last offset. Nothing is checked against the log.
pub(crate) fn parse(bytes: &[u8], base: Offset) -> Result<Vec<AbortedTransaction>, Flaw> {
    let mut chunks = bytes.chunks_exact(ENTRY_BYTES);
    let mut entries: Vec<AbortedTransaction> = Vec::with_capacity(chunks.len());
    for chunk in &mut chunks {
        let flaw = |wrong| Flaw { entry: entries.len(), wrong };
        let bytes = chunk.first_chunk().ok_or(flaw(Wrong::Short))?;
        let entry = AbortedTransaction::parse(bytes).map_err(flaw)?;
        if entry.last_offset < base {
            return Err(flaw(Wrong::BelowSegment));
        }
        if entries.last().is_some_and(|last| last.last_offset >= entry.last_offset) {
            return Err(flaw(Wrong::Order));
        }
        entries.push(entry);
    }
    if chunks.remainder().is_empty() {
        Ok(entries)
    } else {
        Err(Flaw { entry: entries.len(), wrong: Wrong::Short })
    }
}

/// The bytes of a whole file.
pub(crate) fn encode(entries: &[AbortedTransaction]) -> Vec<u8> {
    entries.iter().flat_map(|entry| entry.to_bytes()).collect()
}

/// Reads the file of the segment `base`; `None` where there is none.
///
/// The outer error is the system's (a file of more than 64 MiB among it), the inner says that the file is none of its
/// segment.
pub(crate) fn load(dir: &Dir, base: Offset) -> sys::Result<Option<Result<Vec<AbortedTransaction>, Flaw>>> {
    let bytes = dir.read_small(file_name(base, FileKind::TxnIndex), MAX_BYTES)?;
    Ok(bytes.map(|bytes| parse(&bytes, base)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(value: i64) -> Offset {
        Offset::new(value).unwrap()
    }

    fn entry(producer_id: i64, first: i64, last: i64, stable: i64) -> AbortedTransaction {
        AbortedTransaction {
            producer_id,
            first_offset: at(first),
            last_offset: at(last),
            last_stable_offset: at(stable),
        }
    }

    fn some() -> Vec<AbortedTransaction> {
        vec![entry(0, 0, 10, 2), entry(1, 5, 15, 16), entry(2, 18, 35, 25), entry(3, 32, 50, 40)]
    }

    fn wrong(bytes: &[u8], base: i64) -> (usize, Wrong) {
        let flaw = parse(bytes, at(base)).unwrap_err();
        assert!(flaw.to_string().starts_with("entry "));
        (flaw.entry, flaw.wrong)
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(parse(&encode(&some()), at(10)), Ok(some()));
        assert_eq!(parse(&[], at(10)), Ok(Vec::new()));
        let widest = [entry(i64::MAX, 0, i64::MAX - 1, i64::MAX)];
        assert_eq!(parse(&encode(&widest), Offset::ZERO), Ok(widest.to_vec()));
    }

    #[test]
    fn the_bytes_are_kafkas() {
        // The first entry of `transactions` among the fixtures.
        let bytes = include_bytes!(
            "../../fixtures/kafka/4.4.0/transactions/transactions-0/00000000000000000008.txnindex"
        );
        let entries = parse(bytes, at(8)).unwrap();
        assert_eq!(entries.len(), 12);
        assert_eq!(encode(&entries), bytes);
        assert_eq!(entries[0].to_bytes()[..2], [0, 0]);
    }

    #[test]
    fn entries_that_cannot_be_are_refused() {
        let good = encode(&some());
        assert_eq!(wrong(&good, 11), (0, Wrong::BelowSegment));
        for cut in 1..ENTRY_BYTES {
            assert_eq!(wrong(&good[..good.len() - cut], 0), (3, Wrong::Short), "{cut}");
        }
        for (at, byte, expected) in [
            (34, 1, Wrong::Version(256)),
            (35, 1, Wrong::Version(1)),
            (36, 0x80, Wrong::Negative),
            (44, 0xFF, Wrong::Negative),
            (52, 0x80, Wrong::Negative),
            (60, 0x80, Wrong::Negative),
        ] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            assert_eq!(wrong(&bytes, 0), (1, expected), "byte {at}");
        }
        for (bad, expected) in [
            (entry(1, 15, 15, 15), Wrong::Offsets),
            (entry(1, 16, 15, 15), Wrong::Offsets),
            (entry(1, 5, 15, 17), Wrong::Offsets),
            (entry(1, 5, i64::MAX, 5), Wrong::Offsets),
            (entry(1, 5, 10, 5), Wrong::Order),
            (entry(1, 5, 9, 5), Wrong::Order),
        ] {
            assert_eq!(wrong(&encode(&[some()[0], bad]), 0), (1, expected), "{bad:?}");
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic() {
        for fill in [0x00, 0x7F, 0x80, 0xFF] {
            for len in 0..200 {
                let _ = parse(&vec![fill; len], at(5));
            }
        }
    }
}
