//! One suspect segment, read once from front to back: where it ends, what is damaged, and its indexes built anew.

use std::sync::Arc;

use super::{checkpoint::BatchMark, epochs::Epochs, recovery::mark_of, survey::LogFile};
use crate::{
    config::LogConfig,
    error::{Corruption, Result},
    index::IndexBuilder,
    offset::{Offset, Timestamp},
    segment::{FileKind, Scan, Tail, batch_at, corruption, file_name, unsupported},
    sys::{Dir, File, Open},
};

/// What reading a segment found.
#[derive(Debug)]
pub(crate) struct ScannedSegment {
    pub(crate) base: Offset,
    pub(crate) file: Arc<File>,
    pub(crate) file_len: u64,
    /// Where the last good batch ends, and the offset after it.
    pub(crate) end: u64,
    pub(crate) next: Offset,
    /// The last good batch.
    pub(crate) mark: Option<BatchMark>,
    /// What follows it.
    pub(crate) tail: Tail,
    /// Why the log is to be cut here, if it is.
    pub(crate) cut: Option<String>,
    /// Bytes that are no batch stay where they are: they were once durable.
    pub(crate) keeps_tail: bool,
    /// Damage between good batches.
    pub(crate) damage: Vec<Corruption>,
    /// Leader epochs in the order of their first batches.
    pub(crate) epochs: Vec<(i32, Offset)>,
    pub(crate) indexes: IndexBuilder,
    /// True where a producer numbered any of its batches.
    pub(crate) has_producers: bool,
    /// The largest timestamp of the first batch, by which the segment's age is told.
    pub(crate) first_timestamp: Option<Timestamp>,
}

/// Reads a segment. Damage below `floor` is passed over; at or above it the segment ends there.
pub(crate) fn scan_segment(
    dir: &Dir,
    log: LogFile,
    config: &LogConfig,
    floor: Offset,
) -> Result<ScannedSegment> {
    let file = Arc::new(dir.open_file(file_name(log.base, FileKind::Log), Open::ReadWrite)?);
    let mut scan = Scan::new(&file, log.base, 0, log.base)?;
    let mut indexes = IndexBuilder::new(log.base, config.index_interval_bytes, config.segment_index_bytes);
    let (mut epochs, mut damage): (Vec<(i32, Offset)>, Vec<Corruption>) = (Vec::new(), Vec::new());
    let (mut mark, mut first_timestamp) = (None, None);
    let mut good = (0, log.base);
    let mut has_producers = false;
    let tail = loop {
        match scan.next_batch()? {
            // To write behind what another writer understands and this one does not is not safe.
            Ok(batch) if batch.header.is_legacy() => return Err(unsupported(&file, batch.header.magic())),
            Ok(batch) => {
                let header = &batch.header;
                indexes.observe(&batch_at(batch.position, header));
                if epochs.last().is_none_or(|(epoch, _)| header.leader_epoch() > *epoch) {
                    epochs.push((header.leader_epoch(), header.base_offset()));
                }
                has_producers |= header.producer_id() >= 0;
                first_timestamp = first_timestamp.or(Some(header.max_timestamp()));
                mark = Some(mark_of(header));
                good = (batch.end(), scan.next_offset());
            }
            Err(Tail::Bad(reason)) if scan.next_offset() < floor => {
                damage.push(corruption(&file, scan.position(), Some(scan.next_offset()), reason.clone()));
                if !scan.resync()? {
                    break Tail::Bad(reason);
                }
            }
            Err(tail) => break tail,
        }
    };
    epochs.retain(|(epoch, _)| *epoch >= 0);
    let file_len = file.len()?;
    let (end, next) = good;
    let segment = ScannedSegment {
        base: log.base,
        file_len,
        end,
        next,
        mark,
        tail,
        cut: None,
        keeps_tail: false,
        damage,
        epochs,
        indexes,
        has_producers,
        first_timestamp,
        file: Arc::clone(&file),
    };
    Ok(segment)
}

impl ScannedSegment {
    /// Cuts off blocks that were reserved and never written.
    pub(crate) fn trim(&mut self, dir: &Dir) -> Result<()> {
        tracing::info!(dir = %dir.path().display(), base = %self.base, to = self.end, "segment trimmed");
        self.file.set_len(self.end)?;
        self.file_len = self.end;
        Ok(())
    }
}

/// Epochs that begin in scanned batches and are not noted; and those noted that begin beyond the end are dropped.
pub(super) fn learn_epochs(epochs: &mut Epochs, scanned: &[ScannedSegment], end: Offset) -> bool {
    let mut changed = false;
    for (epoch, start) in scanned.iter().flat_map(|segment| &segment.epochs) {
        if epochs.latest().is_none_or(|latest| *epoch > latest) {
            changed |= epochs.assign(*epoch, *start);
        }
    }
    // An epoch that begins at the end is the next batch's.
    let stale = epochs.entries().iter().any(|entry| entry.1 > end);
    if stale {
        changed |= end.next().is_some_and(|after| epochs.truncate_from_end(after));
    }
    changed
}
