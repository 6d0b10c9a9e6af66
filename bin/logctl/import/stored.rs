//! What the log has already, read beside the input to prove that it is the input's first part.

use stratalog::{
    LogReader, Offset, OwnedRecords,
    record::{BatchRef, probe},
};

use super::sink::Placed;
use crate::failure::{Code, Failure};

const READ_BYTES: u32 = 1 << 20;

/// A walk over the log, by batches or by records: whichever the input has.
pub(super) struct Stored {
    reader: LogReader,
    /// Everything below it was compared.
    next: Offset,
    chunk: Vec<u8>,
    used: usize,
    records: Option<OwnedRecords>,
}

impl Stored {
    pub(super) fn new(reader: LogReader) -> Self {
        let next = reader.start();
        Self { reader, next, chunk: Vec::new(), used: 0, records: None }
    }

    fn differs(at: Offset, what: &str) -> Failure {
        Failure::new(Code::Corrupt, format!("the log is not the first part of the input: at offset {at} {what}"))
            .hint("nothing was appended; `logctl diff` compares logs, and another directory takes the input as it is")
    }

    /// True where the batch is in the log, byte for byte. The log ends at `end`.
    pub(super) fn has_batch(&mut self, batch: &BatchRef<'_>, end: Offset) -> Result<bool, Failure> {
        let base = batch.base_offset();
        if base >= end {
            return self.check_passed(end).map(|()| false);
        }
        if self.used >= self.chunk.len() {
            self.used = 0;
            self.reader.read(self.next, READ_BYTES, &mut self.chunk)?;
        }
        let rest = self.chunk.get(self.used..).unwrap_or_default();
        let size = probe(rest).ok().flatten().map_or(0, |found| found.size_bytes);
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(rest.len());
        if rest.get(..size) != Some(batch.as_bytes()) {
            return Err(Self::differs(base, "it has another batch"));
        }
        self.used += size;
        self.next = batch.next_offset().unwrap_or(Offset::MAX);
        self.records = None;
        Ok(true)
    }

    /// The same of a record.
    pub(super) fn has_record(&mut self, placed: &Placed<'_>, end: Offset) -> Result<bool, Failure> {
        let offset = placed.offset;
        if offset >= end {
            return self.check_passed(end).map(|()| false);
        }
        let records = match &mut self.records {
            Some(records) => records,
            none => none.insert(self.reader.owned_records(self.next)),
        };
        let Some(found) = records.next().transpose()? else {
            return Err(Self::differs(offset, "it has no record"));
        };
        let record = &placed.record;
        let is_same = found.offset == offset
            && found.timestamp == placed.timestamp
            && found.key.as_deref() == record.key
            && found.value.as_deref() == record.value
            && found.headers.len() == record.headers.len()
            && found.headers.iter().zip(record.headers).all(|((key, value), header)| {
                &**key == header.key.as_bytes() && value.as_deref() == header.value
            });
        if !is_same {
            return Err(Self::differs(offset, "it has another record"));
        }
        self.next = offset.next().unwrap_or(Offset::MAX);
        self.chunk.clear();
        Ok(true)
    }

    /// The input is past the log's end: then all of the log must have been compared.
    pub(super) fn check_passed(&mut self, end: Offset) -> Result<(), Failure> {
        if self.next >= end {
            return Ok(());
        }
        let mut left = self.reader.batches(self.next);
        if let Some(batch) = left.next_batch()? {
            return Err(Self::differs(batch.base_offset(), "it has what the input has not"));
        }
        // Offsets without records.
        self.next = end;
        Ok(())
    }
}
