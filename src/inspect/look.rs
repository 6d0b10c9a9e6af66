//! What one batch says, whoever reads it and when: what a check needs of it, without its bytes.

use std::{mem, path::Path};

use super::{
    finding::{Finding, FindingKind, Severity},
    log_file::LogFile,
    pieces::{Entry, Piece},
};
use crate::{
    error::Result,
    log::{Marker, marker_of},
    record::{BatchError, BatchHeader, BatchRef, Scratch, TimestampType},
};

/// A segment is looked through in parts of this size: large enough that handing one out costs nothing, small enough that a
/// few of them are not much to wait for.
pub(super) const PART_BYTES: u64 = 8 << 20;

/// A batch whose checksum is right.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) position: u64,
    pub(super) header: BatchHeader,
    /// What it says of a transaction, where it is a control batch.
    pub(super) marker: Option<Marker>,
    /// What is wrong with its records.
    pub(super) flaw: Option<Box<Finding>>,
}

/// Some batches of a segment, one behind the other and all sound.
#[derive(Debug)]
pub(super) struct Part {
    /// Where the first of them begins.
    pub(super) from: u64,
    /// Where the last of them ends.
    pub(super) end: u64,
    pub(super) batches: Vec<Looked>,
}

/// Looks through parts of a segment before their turn. A part begins at the first byte that looks like a batch: whether that
/// is one of the log shows when the walk comes there.
pub(super) trait Ahead {
    /// The walk begins, in a file of so many bytes. False where nothing is looked at ahead.
    fn begin(&self, len_bytes: u64) -> bool;

    /// The part with this number, waiting for it; `None` where the caller is to walk it.
    fn part(&self, number: u64) -> Option<Part>;
}

/// Memory that one thread uses again and again.
#[derive(Debug, Default)]
pub(super) struct Room {
    buffer: Vec<u8>,
    scratch: Scratch,
}

/// Looks through the part with this number of a file that has `len_bytes`. Ends before the first byte that is not sound.
pub(super) fn look_through(
    path: &Path,
    number: u64,
    len_bytes: u64,
    is_deep: bool,
    room: &mut Room,
) -> Result<Part> {
    let log = LogFile::open(path)?;
    let from = number.saturating_mul(PART_BYTES);
    let until = from.saturating_add(PART_BYTES).min(len_bytes);
    let mut pieces = log.pieces_within(from, len_bytes, mem::take(&mut room.buffer)).by_headers(!is_deep);
    let mut part = Part { from, end: from, batches: Vec::new() };
    if !pieces.skip_to_batch()? {
        return Ok(part);
    }
    (part.from, part.end) = (pieces.position(), pieces.position());
    while part.end < until {
        match pieces.next_piece()? {
            Some(Piece::Batch(entry)) if entry.crc_ok() => {
                part.batches.push(look(&entry, path, is_deep, &mut room.scratch));
                part.end = entry.position + u64::from(entry.header.size_bytes());
            }
            _ => break,
        }
    }
    room.buffer = pieces.into_buffer();
    Ok(part)
}

/// Looks at a batch whose checksum is right; at its records too where `is_deep`.
pub(super) fn look(entry: &Entry<'_>, path: &Path, is_deep: bool, scratch: &mut Scratch) -> Looked {
    let (position, header) = (entry.position, entry.header);
    let marker = entry.batch.as_ref().filter(|_| header.is_control()).and_then(marker_of);
    let flaw = entry.batch.as_ref().filter(|_| is_deep);
    let flaw = flaw.and_then(|batch| records(path, position, batch, scratch)).map(Box::new);
    Looked { position, header, marker, flaw }
}

/// What is wrong with the records of a batch.
fn records(path: &Path, position: u64, batch: &BatchRef<'_>, scratch: &mut Scratch) -> Option<Finding> {
    let mut largest = None;
    let read = batch.records(scratch).and_then(|mut records| {
        records.try_for_each(|record| {
            largest = largest.max(Some(record?.timestamp()));
            Ok(())
        })
    });
    let finding = |kind, severity, detail: String| {
        let finding = Finding::new(path, kind, severity, detail).at(position);
        Some(finding.with_offset(Some(batch.base_offset())))
    };
    match (read, largest) {
        (Err(error), _) if is_limit(&error) => {
            finding(FindingKind::Unread, Severity::Warning, error.to_string())
        }
        (Err(error), _) => finding(FindingKind::BadRecords, Severity::Damage, error.to_string()),
        (Ok(()), Some(largest))
            if batch.timestamp_type() == TimestampType::CreateTime && largest != batch.max_timestamp() =>
        {
            // Searches by time go by the header; what a producer stored unchecked can be like this.
            let detail = format!(
                "the header's largest timestamp is {}, that of its records {largest}",
                batch.max_timestamp()
            );
            finding(FindingKind::BadRecords, Severity::Warning, detail)
        }
        (Ok(()), _) => None,
    }
}

/// True where the records were not read for our own reasons: nothing is known against them.
pub(super) fn is_limit(error: &BatchError) -> bool {
    matches!(error, BatchError::TooLargeDecompressed { .. } | BatchError::CodecMissing { .. })
}
