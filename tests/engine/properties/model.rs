//! The plain list that a log must be like, and the comparison of every answer with it.

use std::collections::BTreeMap;

use stratalog::{
    Error, LogReader, Offset, Records, Timestamp,
    record::{Batches as BatchesIn, OwnedRecord, Scratch},
};

use crate::support::at;

/// A record as it must come out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub is_control: bool,
}

impl From<OwnedRecord> for Kept {
    fn from(record: OwnedRecord) -> Self {
        Self {
            offset: record.offset.value(),
            timestamp: record.timestamp.millis(),
            key: record.key.map(|bytes| bytes.to_vec()),
            value: record.value.map(|bytes| bytes.to_vec()),
            headers: record
                .headers
                .into_iter()
                .map(|(key, value)| (key.to_vec(), value.map(|bytes| bytes.to_vec())))
                .collect(),
            is_control: record.is_control,
        }
    }
}

/// The log as a list: everything ever appended, and where it begins, is durable and ends now.
#[derive(Debug, Default)]
pub struct Model {
    pub records: BTreeMap<i64, Kept>,
    pub start: i64,
    pub durable: i64,
    pub end: i64,
    /// The offset after the last batch.
    pub last_batch_end: i64,
}

impl Model {
    pub fn readable(&self) -> impl DoubleEndedIterator<Item = &Kept> {
        self.records.range(self.start..self.end).map(|(_, record)| record)
    }

    pub fn data_from(&self, from: i64) -> Vec<&Kept> {
        self.records
            .range(from..self.end.max(from))
            .map(|(_, record)| record)
            .filter(|kept| !kept.is_control)
            .collect()
    }

    /// The first record that has a timestamp and whose timestamp is `target` or later, by looking at all.
    pub fn first_at(&self, target: i64) -> Option<(i64, i64)> {
        let found = self.readable().find(|kept| kept.timestamp >= target.max(0));
        found.map(|kept| (kept.offset, kept.timestamp))
    }

    pub fn max_timestamp(&self) -> Option<(i64, i64)> {
        let largest = self.readable().map(|kept| kept.timestamp).filter(|at| *at >= 0).max()?;
        self.first_at(largest).map(|(offset, at)| (at, offset))
    }

    /// Every time that separates two answers.
    pub fn times(&self) -> Vec<i64> {
        let mut times: Vec<i64> = self
            .readable()
            .flat_map(|kept| {
                [kept.timestamp.saturating_sub(1), kept.timestamp, kept.timestamp.saturating_add(1)]
            })
            .chain([0, -1, i64::MIN, i64::MAX])
            .collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    pub fn check_ends(&self, reader: &LogReader) {
        assert_eq!((reader.start(), reader.end()), (at(self.start), at(self.end)), "start and end");
        assert_eq!(reader.durable_end(), at(self.durable), "durable end");
        let segments = reader.segments();
        for pair in segments.windows(2) {
            assert!(pair[0].next_offset <= pair[1].base_offset, "segments overlap: {pair:?}");
            assert!(pair[0].sealed, "{pair:?}");
        }
        assert_eq!(segments.last().unwrap().next_offset, at(self.end));
    }

    pub fn check_all(&self, reader: &LogReader) {
        let found: Vec<Kept> =
            reader.owned_records(at(self.start)).map(|record| record.unwrap().into()).collect();
        let wanted: Vec<Kept> = self.data_from(self.start).into_iter().cloned().collect();
        assert_eq!(found, wanted, "all records");
    }

    pub fn check_time(&self, reader: &LogReader, target: i64) {
        let found = reader.offset_for_timestamp(Timestamp::from_millis(target)).unwrap();
        let found = found.map(|(offset, at)| (offset.value(), at.millis()));
        assert_eq!(found, self.first_at(target), "the first record at {target} or later");
    }

    pub fn check_max_timestamp(&self, reader: &LogReader) {
        let found = reader.max_timestamp().unwrap().map(|(at, offset)| (at.millis(), offset.value()));
        assert_eq!(found, self.max_timestamp(), "the largest timestamp");
    }

    pub fn check_last(&self, reader: &LogReader, count: u64) {
        let from = reader.last_records_from(count).unwrap();
        let data = self.data_from(self.start);
        let wanted = data.len().min(usize::try_from(count).unwrap());
        let found = data.iter().filter(|kept| kept.offset >= from.value()).count();
        assert_eq!(found, wanted, "the last {count} begin at {from}");
        let records: Vec<_> = reader.owned_records(from).map(Result::unwrap).collect();
        assert_eq!(records.len(), wanted, "the last {count} records from {from}");
    }

    /// Every way to read at one offset.
    pub fn check_offset(&self, reader: &LogReader, from: i64, max_bytes: u32) {
        self.check_record(reader, from);
        if from < self.start || from > self.end {
            assert_out_of_range(&reader.slice(at(from), max_bytes));
            let first = reader.owned_records(at(from)).next();
            assert!(matches!(first, Some(Err(Error::OffsetOutOfRange { .. }))), "{first:?}");
            return;
        }
        let found: Vec<Kept> =
            reader.owned_records(at(from)).take(5).map(|record| record.unwrap().into()).collect();
        let wanted: Vec<Kept> = self.data_from(from).into_iter().take(5).cloned().collect();
        assert_eq!(found, wanted, "records from {from}");
        self.check_bytes(reader, from, max_bytes);
        self.check_batches(reader, from);
    }

    fn check_record(&self, reader: &LogReader, offset: i64) {
        let found = reader.record(at(offset));
        if offset < self.start || offset >= self.end {
            assert_out_of_range(&found);
            return;
        }
        let wanted = self.records.get(&offset).filter(|kept| !kept.is_control);
        assert_eq!(found.unwrap().map(Kept::from).as_ref(), wanted, "the record at {offset}");
    }

    fn check_bytes(&self, reader: &LogReader, from: i64, max_bytes: u32) {
        let mut bytes = Vec::new();
        let outcome = reader.read(at(from), max_bytes, &mut bytes).unwrap();
        let slice = reader.slice(at(from), max_bytes).unwrap();
        assert_eq!(slice.is_none(), bytes.is_empty());
        if let Some(slice) = slice {
            let mut sliced = vec![0; slice.len() as usize];
            slice.read_into(&mut sliced).unwrap();
            assert!(sliced.starts_with(&bytes), "slice and read at {from}");
        }
        let mut scratch = Scratch::new();
        let (mut next, mut count) = (outcome.next.value(), 0);
        let mut seen = Vec::new();
        for batch in BatchesIn::new(&bytes) {
            let batch = batch.unwrap();
            count += 1;
            if count == 1 {
                assert!(batch.last_offset() >= at(from));
            }
            next = batch.next_offset().unwrap().value();
            for record in batch.records(&mut scratch).unwrap() {
                seen.push(Kept::from(OwnedRecord::new(&record.unwrap(), batch.header())));
            }
        }
        assert_eq!(next, outcome.next.value());
        assert_eq!(outcome.bytes, bytes.len());
        assert!(count <= 1 || bytes.len() <= max_bytes as usize);
        assert_eq!(count == 0, from >= self.end || !self.has_batch_from(from), "nothing to read at {from}");
        let wanted: Vec<Kept> =
            self.records.range(from..next.max(from)).map(|(_, kept)| kept.clone()).collect();
        let seen: Vec<Kept> = seen.into_iter().filter(|kept| kept.offset >= from).collect();
        assert_eq!(seen, wanted, "bytes read at {from}");
    }

    /// Gaps at the end exist only behind a roll that named its segment after them.
    fn has_batch_from(&self, from: i64) -> bool {
        from < self.end && self.last_batch_end > from
    }

    fn check_batches(&self, reader: &LogReader, from: i64) {
        let mut walk = reader.batches(at(from));
        let mut scratch = Scratch::new();
        let mut seen = Vec::new();
        let mut before = None;
        for _ in 0..3 {
            let Some(batch) = walk.next_batch().unwrap() else { break };
            assert!(before.is_none_or(|before| batch.base_offset() >= before));
            before = batch.next_offset();
            for record in batch.records(&mut scratch).unwrap() {
                let kept = Kept::from(OwnedRecord::new(&record.unwrap(), batch.header()));
                if kept.offset >= from {
                    seen.push(kept);
                }
            }
        }
        let to = before.map_or(self.end, Offset::value);
        let wanted: Vec<Kept> =
            self.records.range(from..to.max(from)).map(|(_, kept)| kept.clone()).collect();
        assert_eq!(seen, wanted, "batches from {from}");
    }
}

fn assert_out_of_range<T: std::fmt::Debug>(result: &Result<T, Error>) {
    assert!(matches!(result, Err(Error::OffsetOutOfRange { .. })), "{result:?}");
}

/// A walk that lives on while everything else happens: nothing missed, nothing twice.
#[derive(Debug)]
pub struct Walker {
    reader: LogReader,
    records: Records,
    next: i64,
}

impl Walker {
    pub fn new(reader: &LogReader) -> Self {
        let from = reader.start();
        Self { reader: reader.clone(), records: reader.records(from), next: from.value() }
    }

    pub fn reader(&self) -> &LogReader {
        &self.reader
    }

    pub fn drain(&mut self, model: &Model) {
        loop {
            match self.records.next_record() {
                Ok(Some(record)) => {
                    let offset = record.offset().value();
                    let wanted = model.data_from(self.next).first().map(|kept| kept.offset);
                    assert_eq!(Some(offset), wanted, "the walk goes on at {}", self.next);
                    assert_eq!(record.timestamp().millis(), model.records[&offset].timestamp);
                    assert_eq!(record.value(), model.records[&offset].value.as_deref());
                    self.next = offset + 1;
                }
                Ok(None) => {
                    let left = model.data_from(self.next);
                    assert!(left.is_empty(), "the walk ends at {} before {left:?}", self.next);
                    return;
                }
                Err(Error::OffsetOutOfRange { start, .. }) => {
                    assert!(
                        start.value() > self.next,
                        "the walk at {} is told it is below {start}",
                        self.next
                    );
                    self.next = start.value();
                    self.records = self.reader.records(start);
                }
                Err(error) => panic!("the walk at {}: {error}", self.next),
            }
        }
    }
}
