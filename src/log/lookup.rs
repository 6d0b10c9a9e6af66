//! Looking up single records: by offset, by time, and counted from the end.

use std::sync::Arc;

use super::{
    reader::{LogReader, RETRIES, is_gone},
    view::{Isolation, ReadOptions},
};
use crate::{
    error::{Error, Result},
    offset::{Offset, Timestamp},
    record::{BatchHeader, BatchRef, HEADER_BYTES, OwnedRecord, Scratch},
    segment::{Located, Segment, Window, corruption},
    sys::File,
};

impl LogReader {
    /// One record. `None` where none has this offset: it was compacted away, or is a control record. For committed reads
    /// also where its transaction was aborted.
    pub fn record(&self, offset: Offset) -> Result<Option<OwnedRecord>> {
        self.with_record(offset, OwnedRecord::new)
    }

    /// Looks at one record without copying it.
    pub fn with_record<T>(
        &self,
        offset: Offset,
        look: impl FnOnce(&crate::record::RecordRef<'_>, &BatchHeader) -> T,
    ) -> Result<Option<T>> {
        self.check_follow()?;
        let (start, (end, era)) = (self.start(), self.visible()?);
        let out_of_range = || Error::OffsetOutOfRange { requested: offset, start: self.start(), end };
        if offset < start || offset >= end {
            return Err(out_of_range());
        }
        self.borrow_memory(|window, scratch| {
            // The batch is wanted, not its header alone.
            window.set_largest(usize::MAX);
            let Some((segment, located)) = self.locate(offset, window)? else { return Ok(None) };
            let Located { position, header } = located;
            if header.base_offset() > offset || header.is_control() {
                return Ok(None);
            }
            let log = Arc::clone(&segment.open()?.log);
            let bytes = batch_bytes(&log, &located, segment.end().position, window)?;
            let damaged =
                |error: String| corruption(&log, u64::from(position), Some(header.base_offset()), error);
            let batch = BatchRef::parse(bytes).map_err(|error| damaged(error.to_string()))?;
            if self.options().verify_crc {
                batch.check_crc().map_err(|error| damaged(error.to_string()))?;
            }
            if self.is_committed()
                && header.is_transactional()
                && self.is_aborted(&header, era).ok_or_else(out_of_range)?
            {
                return Ok(None);
            }
            for record in batch.records(scratch).map_err(|error| damaged(error.to_string()))? {
                let record = record.map_err(|error| damaged(error.to_string()))?;
                if record.offset() == offset {
                    return Ok(Some(look(&record, &header)));
                }
                if record.offset() > offset {
                    break;
                }
            }
            Ok(None)
        })
    }

    /// The first record, in the order of offsets, whose timestamp is `at` or later; `None` where there is none. A
    /// negative timestamp is none ([`Timestamp::NONE`]), so a record that has one is never the answer.
    ///
    /// For committed reads one below the last stable offset, as a broker answers: it may be of an aborted transaction, and
    /// a walk from there begins with the next record that is not.
    pub fn offset_for_timestamp(&self, at: Timestamp) -> Result<Option<(Offset, Timestamp)>> {
        self.check_follow()?;
        let at = at.max(Timestamp::from_millis(0));
        let end = self.visible_end()?;
        self.borrow_memory(|window, scratch| {
            for _ in 0..RETRIES {
                match self.find_timestamp(at, (window, scratch)) {
                    Err(error) if is_gone(&error) => {
                        self.look_again()?;
                    }
                    found => return Ok(found?.filter(|found| found.0 < end)),
                }
            }
            Ok(None)
        })
    }

    fn find_timestamp(
        &self,
        at: Timestamp,
        (window, scratch): (&mut Window, &mut Scratch),
    ) -> Result<Option<(Offset, Timestamp)>> {
        let segments = self.shared().segments();
        let start = self.start();
        for segment in &segments[Self::floor(&segments, start)..] {
            window.clear();
            let found = self.with_segment(segment, |segment| {
                // Timestamps are no larger than the largest, so most segments are passed over unread.
                if segment.largest()?.is_none_or(|(largest, _)| largest < at) {
                    return Ok(None);
                }
                segment.find_timestamp(at, start, (&mut *window, &mut *scratch))
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The largest timestamp in the log and the offset of the first record that has it.
    pub fn max_timestamp(&self) -> Result<Option<(Timestamp, Offset)>> {
        self.check_follow()?;
        let (start, end) = (self.start(), self.visible_end()?);
        let segments = self.shared().segments();
        let mut largest: Option<Timestamp> = None;
        for segment in &segments[Self::floor(&segments, start)..] {
            let found = self.with_segment(segment, Segment::largest)?.map(|(timestamp, _)| timestamp);
            if found <= largest {
                continue;
            }
            let is_visible = segment.base() >= start && segment.end().next <= end;
            let found = if is_visible { found } else { self.largest_in(segment, (start, end))? };
            largest = largest.max(found);
        }
        let Some(largest) = largest else { return Ok(None) };
        Ok(self.offset_for_timestamp(largest)?.map(|(offset, timestamp)| (timestamp, offset)))
    }

    /// The largest timestamp of those records of a segment that lie in the range, by looking at each.
    fn largest_in(&self, segment: &Segment, (start, end): (Offset, Offset)) -> Result<Option<Timestamp>> {
        let (from, to) = (start.max(segment.base()), end.min(segment.end().next));
        let all = ReadOptions { isolation: Isolation::Uncommitted, ..self.options() };
        let mut records = self.clone().with_options(all).records(from).include_control(true);
        let mut largest = None;
        while let Some(record) = records.next_record()?.filter(|record| record.offset() < to) {
            largest = largest.max(Some(record.timestamp()));
        }
        Ok(largest.filter(|largest| *largest > Timestamp::NONE))
    }

    /// Where the last `count` records begin (all records where there are fewer): counted from batch headers, walking
    /// back from the end by as many offsets as are missing, so that gaps cost a few steps and not a scan of the log.
    /// Records that cannot be read count as none: whoever reads on from there meets the damage.
    pub fn last_records_from(&self, count: u64) -> Result<Offset> {
        let (start, end) = (self.start(), self.visible_end()?);
        let mut from = end;
        let mut counted = 0;
        let mut step = count;
        while counted < count && from > start {
            let lower = from.saturating_sub(step).max(start);
            counted += self.count_records(lower, from)?;
            from = lower;
            step = step.saturating_mul(2).max(1);
        }
        self.skip_records(from, counted.saturating_sub(count))
    }

    /// How many records there are in `from..to`.
    fn count_records(&self, from: Offset, to: Offset) -> Result<u64> {
        let mut batches = self.batches(from);
        let mut scratch = Scratch::new();
        let mut count = 0;
        loop {
            let batch = match batches.next_batch() {
                Ok(Some(batch)) if batch.base_offset() < to => batch,
                Ok(_) => break,
                Err(error) if error.is_corruption() => continue,
                Err(error) => return Err(error),
            };
            if batch.is_control() {
                continue;
            }
            if batch.base_offset() >= from && batch.last_offset() < to {
                count += u64::from(batch.record_count().unsigned_abs());
                continue;
            }
            // Only some of its records lie in the range.
            for record in batch.records(&mut scratch)? {
                let offset = record?.offset();
                count += u64::from(offset >= from && offset < to);
            }
        }
        Ok(count)
    }

    fn skip_records(&self, from: Offset, count: u64) -> Result<Offset> {
        if count == 0 {
            return Ok(from);
        }
        let mut records = self.records(from);
        let mut at = from;
        let mut left = count;
        while left > 0 {
            match records.next_record() {
                Ok(Some(record)) => at = record.offset().next().unwrap_or(Offset::MAX),
                Ok(None) => break,
                Err(error) if error.is_corruption() => continue,
                Err(error) => return Err(error),
            }
            left -= 1;
        }
        Ok(at)
    }
}

/// All bytes of a batch whose header was just looked at.
fn batch_bytes<'w>(log: &File, located: &Located, end: u32, window: &'w mut Window) -> Result<&'w [u8]> {
    let size = usize::try_from(located.header.size_bytes()).unwrap_or(usize::MAX).max(HEADER_BYTES);
    Ok(window.bytes(log, u64::from(located.position), size, u64::from(end))?)
}
