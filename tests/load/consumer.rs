//! A consumer of one partition, that goes on where it was when the connection breaks.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use stratalog::record::{Batches, Scratch};

use crate::{
    connection::{Connection, PATIENCE, Wanted},
    history::{Sent, Told},
    kills::{Run, TOPIC},
    producer,
};

const OFFSET_OUT_OF_RANGE: i16 = 1;
/// The log is being opened: asked again.
const NOT_LEADER: i16 = 6;

pub(crate) struct Consumer<'r> {
    run: &'r Run,
    partition: u16,
    is_committed: bool,
    max_bytes: i32,
    next: i64,
    told: Vec<Told>,
}

impl<'r> Consumer<'r> {
    pub(crate) fn new(run: &'r Run, number: u16) -> Self {
        // Those of one partition differ in what they ask for.
        let round = number / run.partitions;
        Self {
            run,
            partition: number % run.partitions,
            is_committed: round % 2 == 1,
            max_bytes: if round < 2 { 1 << 20 } else { 1500 },
            next: 0,
            told: Vec::new(),
        }
    }

    /// Consumes until it has all that is there when the run is over.
    pub(crate) fn work(mut self) -> Vec<Told> {
        let mut since = Instant::now();
        loop {
            let had = self.told.len();
            // A connection that breaks is what this is about.
            if self.connect().is_ok() || self.run.has_failed() {
                return self.told;
            }
            if self.told.len() != had {
                since = Instant::now();
            }
            assert!(since.elapsed() < PATIENCE, "a consumer of {} stands at {}", self.partition, self.next);
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn connect(&mut self) -> io::Result<()> {
        let mut connection = Connection::new(self.run.address())?;
        while self.run.end(self.partition).is_none_or(|end| self.next < end) && !self.run.has_failed() {
            let wanted = Wanted {
                topic: TOPIC,
                partition: self.partition.into(),
                offset: self.next,
                max_bytes: self.max_bytes,
                max_wait_ms: 300,
                is_committed: self.is_committed,
            };
            let fetched = connection.fetch(&wanted)?;
            match fetched.code {
                0 => self.told.push(Told::Bounds { end: fetched.high_watermark, start: fetched.start }),
                NOT_LEADER => continue,
                OFFSET_OUT_OF_RANGE => {
                    let start = connection.start(TOPIC, self.partition.into())?;
                    assert!(
                        start > self.next,
                        "{} is out of range, and the log starts at {start}",
                        self.next
                    );
                    self.told.push(Told::Skipped(start));
                    self.next = start;
                    continue;
                }
                code => panic!("error {code} at {} of partition {}", self.next, self.partition),
            }
            for (offset, sent) in records(self.partition, &fetched.bytes) {
                if offset >= self.next {
                    self.told.push(Told::Record(offset, sent));
                    self.next = offset + 1;
                }
            }
        }
        Ok(())
    }
}

/// The records of fetched batches, each looked through to its last byte.
pub(crate) fn records(partition: u16, bytes: &[u8]) -> Vec<(i64, Sent)> {
    let mut scratch = Scratch::new();
    let mut records = Vec::new();
    for batch in Batches::new(bytes) {
        let batch = batch.unwrap();
        batch.check_crc().unwrap();
        for record in batch.records(&mut scratch).unwrap() {
            let record = record.unwrap();
            let found = record.value().unwrap();
            let sent = Sent {
                producer: u16::from_be_bytes(*found.first_chunk().unwrap()),
                number: u32::from_be_bytes(*found[4..].first_chunk().unwrap()),
            };
            assert_eq!(found, producer::value(partition, sent), "{} holds something else", record.offset());
            records.push((record.offset().value(), sent));
        }
    }
    records
}
