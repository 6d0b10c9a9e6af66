//! Records of a walk, lent one by one, or owned for ease.

use super::{Batches, Last, damaged};
use crate::{
    error::Result,
    log::{reader::LogReader, view::Position},
    offset::Offset,
    record::{BatchHeader, Codec, HEADER_BYTES, OwnedRecord, RecordRef, RecordsPlace, Scratch, unpack_old},
};

/// The records of a log from a position on, lent one by one.
#[derive(Debug)]
pub struct Records {
    batches: Batches,
    scratch: Scratch,
    from: Offset,
    current: Option<Current>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    last: Last,
    is_unpacked: bool,
    place: RecordsPlace,
}

impl Records {
    pub(in crate::log) fn new(reader: LogReader, from: Position) -> Self {
        let mut batches = Batches::new(reader, from);
        batches.with_control = false;
        Self { batches, scratch: Scratch::new(), from: from.offset, current: None }
    }

    /// Whether control records (transaction markers) are returned too. By default they are not.
    #[must_use]
    pub fn include_control(mut self, include: bool) -> Self {
        self.batches.with_control = include;
        self
    }

    /// The most bytes that one batch may unpack to (128 MiB by default); a larger one is an error.
    #[must_use]
    pub fn unpack_limit(mut self, limit_bytes: u64) -> Self {
        self.scratch = Scratch::with_limit(limit_bytes);
        self
    }

    /// The next record; `None` at the end, and more once there is more. Errors as for [`Batches::next_batch`].
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<RecordRef<'_>>> {
        if !self.ready()? {
            return Ok(None);
        }
        let Some(current) = &mut self.current else { return Ok(None) };
        let area = area(&self.batches, &self.scratch, current);
        let mut records = crate::record::Records::resume(area, &current.last.header, current.place);
        let record = records.next();
        current.place = records.place(area);
        match record {
            Some(Ok(record)) => Ok(Some(record)),
            Some(Err(error)) => Err(damaged(&self.batches, current.last, error.to_string())),
            None => Ok(None),
        }
    }

    /// The batch that the last record returned came in.
    pub fn batch(&self) -> Option<BatchHeader> {
        self.current.map(|current| current.last.header)
    }

    /// Where the last record's batch lies: the base offset of its segment and the byte position there.
    pub fn position_of_batch(&self) -> Option<(Offset, u64)> {
        self.batches.position_of_last()
    }

    /// Where to go on once all records of the present batch were returned.
    pub fn position(&self) -> Position {
        self.batches.position()
    }

    /// True once there is a record to be lent.
    #[inline]
    fn ready(&mut self) -> Result<bool> {
        match &self.current {
            Some(current) if !current.place.is_last() => Ok(true),
            _ => self.next_batch_with_records(),
        }
    }

    fn next_batch_with_records(&mut self) -> Result<bool> {
        loop {
            if let Some(current) = &self.current
                && !current.place.is_last()
            {
                return Ok(true);
            }
            self.check_exhausted()?;
            let Some(last) = self.batches.advance()? else { return Ok(false) };
            if let Err(error) = self.begin(last) {
                self.current = None;
                return Err(error);
            }
        }
    }

    /// A batch whose records were all lent holds nothing after them.
    fn check_exhausted(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let area = area(&self.batches, &self.scratch, &current);
        match crate::record::Records::resume(area, &current.last.header, current.place).next() {
            Some(Err(error)) => Err(damaged(&self.batches, current.last, error.to_string())),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, mut last: Last) -> Result<()> {
        let is_unpacked = if last.header.is_legacy() {
            let bytes = self.batches.window.held(u64::from(last.position));
            let made = unpack_old(bytes, &mut self.scratch);
            last.header = made.map_err(|error| damaged(&self.batches, last, error.to_string()))?;
            true
        } else {
            let batch = self.batches.lend(last)?;
            let unpacked = batch.area(&mut self.scratch).map(<[u8]>::len);
            unpacked.map_err(|error| damaged(&self.batches, last, error.to_string()))?;
            batch.codec().is_ok_and(|codec| codec != Codec::None) && last.header.record_count() > 0
        };
        let mut current = Current { last, is_unpacked, place: RecordsPlace::default() };
        let area = area(&self.batches, &self.scratch, &current);
        let mut records =
            crate::record::Records::resume(area, &last.header, RecordsPlace::first(&last.header));
        current.place = records.place(area);
        // Only the first batch can hold records before the offset asked for.
        while last.header.base_offset() < self.from && !current.place.is_last() {
            match records.next() {
                Some(Ok(record)) if record.offset() >= self.from => break,
                Some(Ok(_)) => current.place = records.place(area),
                // Met again, and reported, when the record is asked for.
                _ => break,
            }
        }
        self.current = Some(current);
        Ok(())
    }
}

fn area<'a>(batches: &'a Batches, scratch: &'a Scratch, current: &Current) -> &'a [u8] {
    if current.is_unpacked {
        return scratch.unpacked();
    }
    let size = usize::try_from(current.last.header.size_bytes()).unwrap_or(usize::MAX);
    let held = batches.window.held(u64::from(current.last.position));
    held.get(HEADER_BYTES..size).unwrap_or_default()
}

/// The records of a log from a position to its end, each with its own memory. A plain iterator.
///
/// After [`Error::Corrupt`](crate::Error::Corrupt) it goes on behind the damage; any other error is its last item.
#[derive(Debug)]
pub struct OwnedRecords {
    records: Records,
    is_over: bool,
}

impl OwnedRecords {
    pub(in crate::log) fn new(records: Records) -> Self {
        Self { records, is_over: false }
    }

    fn next_owned(&mut self) -> Result<Option<OwnedRecord>> {
        if !self.records.ready()? {
            return Ok(None);
        }
        let Some(header) = self.records.batch() else { return Ok(None) };
        let record = self.records.next_record()?;
        Ok(record.map(|record| OwnedRecord::new(&record, &header)))
    }
}

impl Iterator for OwnedRecords {
    type Item = Result<OwnedRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.next_owned();
        // The same call would fail in the same way for ever.
        self.is_over = next.as_ref().is_err_and(|error| !error.is_corruption());
        next.transpose()
    }
}
