//! One partition of a broker, to be read up to the end that it has when it is opened.

use std::{cell::RefCell, ops::ControlFlow, rc::Rc};

use stratalog::{
    Error, Isolation, Offset, Timestamp,
    record::{BatchError, BatchRef, OldMessage, Scratch, is_legacy, probe},
};

use super::{
    aborted::Aborted,
    client::{Client, EARLIEST, LATEST, NEWEST, asked},
    fetch::{Fetched, Wanted},
};
use crate::{
    damage::Damage,
    failure::{Code, Failure},
    source::Visit,
    stop::Stop,
};

/// A partition and where it begins and ends.
pub(crate) struct Partition {
    client: Rc<RefCell<Client>>,
    topic: String,
    number: i32,
    isolation: Isolation,
    start: Offset,
    end: Offset,
}

impl Partition {
    /// Asks where it begins and ends.
    pub(crate) fn open(
        client: Rc<RefCell<Client>>,
        topic: &str,
        number: i32,
        isolation: Isolation,
    ) -> Result<Self, Failure> {
        let mut asked = client.borrow_mut();
        let start = asked.offset(topic, number, EARLIEST, Isolation::Uncommitted)?;
        let end = asked.offset(topic, number, LATEST, isolation)?;
        drop(asked);
        let (start, end) =
            (Offset::new(start).unwrap_or(Offset::ZERO), Offset::new(end).unwrap_or(Offset::ZERO));
        Ok(Self { client, topic: topic.to_owned(), number, isolation, start, end: end.max(start) })
    }

    pub(crate) fn start(&self) -> Offset {
        self.start
    }

    pub(crate) fn end(&self) -> Offset {
        self.end
    }

    /// Where what is decided ends, as of now.
    pub(crate) fn stable_end(&self) -> Result<i64, Failure> {
        self.client.borrow_mut().offset(&self.topic, self.number, LATEST, Isolation::Committed)
    }

    /// The first record that is not older than `at`.
    pub(crate) fn first_not_before(&self, at: Timestamp) -> Result<Option<Offset>, Failure> {
        let found = self.client.borrow_mut().offset(&self.topic, self.number, asked(at), self.isolation)?;
        Ok(Offset::new(found))
    }

    /// The record with the largest timestamp.
    pub(crate) fn newest(&self) -> Result<Option<Offset>, Failure> {
        let found = self.client.borrow_mut().offset(&self.topic, self.number, NEWEST, self.isolation)?;
        Ok(Offset::new(found))
    }

    /// What the partition is called in messages.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.topic, self.number)
    }

    /// Gives each batch from the one that holds `from` on, up to the end.
    pub(crate) fn visit_over(
        &self,
        damage: &mut Damage,
        from: Offset,
        stop: &Stop,
        visit: &mut Visit<'_>,
    ) -> Result<(), Failure> {
        let mut at = from;
        let patience = self.client.borrow().patience.clone();
        let mut tries = patience.tries();
        while at < self.end {
            stop.check()?;
            let wanted = Wanted { partition: self.number, offset: at.value() };
            let mut passing = None;
            let fetched =
                self.client.borrow_mut().fetch(&self.topic, &[wanted], self.isolation, true, &mut passing)?;
            let Some(fetched) = fetched.into_iter().find(|fetched| fetched.partition == self.number) else {
                let nothing = || Failure::unreachable(format!("{}: nothing was sent of it", self.name()));
                tries.again(passing.unwrap_or_else(nothing))?;
                continue;
            };
            if fetched.is_out_of_range {
                let (start, end) = (fetched.start.max(0), fetched.end.max(0));
                // What is told of a log's ends beside this error may be -1.
                let start = Offset::new(start).unwrap_or(Offset::ZERO).max(self.start);
                return Err(out_of_range(at, start, Offset::new(end).unwrap_or(start)));
            }
            let before = at;
            let mut walk = Walk::new(&self.name(), &fetched, self.isolation);
            if walk.each(damage, &mut at, &mut |batch| {
                stop.check()?;
                if batch.base_offset() >= self.end { Ok(ControlFlow::Break(())) } else { visit(batch) }
            })? {
                return Ok(());
            }
            if at > before {
                tries = patience.tries();
            } else if fetched.bytes.is_empty() && fetched.end <= at.value() {
                // It was cut since it was opened: there is no more.
                break;
            } else {
                tries.again(Failure::unreachable(format!(
                    "{}: no batch at offset {at} was sent, which is below its end",
                    self.name()
                )))?;
            }
        }
        damage.ends_at(self.end);
        Ok(())
    }
}

/// The failure for an offset that a broker does not have.
pub(crate) fn out_of_range(requested: Offset, start: Offset, end: Offset) -> Failure {
    Failure::from(Error::OffsetOutOfRange { requested, start, end })
        .hint("`logctl offsets -b` shows the range; `-o start` reads whatever there is")
}

/// The failure to find something in a partition, with what to do where that is a broker's.
pub(crate) fn told_at(partition: &Partition, failure: Failure) -> Failure {
    failure
        .at(partition.name())
        .hint("`logctl offsets -b` shows the range; `-o start` reads whatever there is")
}

/// The batches of one answer, checked.
pub(crate) struct Walk<'f> {
    name: String,
    fetched: &'f Fetched,
    aborted: Option<Aborted>,
    scratch: Scratch,
}

impl<'f> Walk<'f> {
    pub(crate) fn new(name: &str, fetched: &'f Fetched, isolation: Isolation) -> Self {
        let aborted = (isolation == Isolation::Committed).then(|| {
            let mut aborted = Aborted::default();
            aborted.told(fetched.aborted.iter().copied());
            aborted
        });
        Self { name: name.to_owned(), fetched, aborted, scratch: Scratch::new() }
    }

    /// Gives each batch that reaches `at` or beyond, and moves `at` behind it. True where `visit` had enough.
    pub(crate) fn each(
        &mut self,
        damage: &mut Damage,
        at: &mut Offset,
        visit: &mut Visit<'_>,
    ) -> Result<bool, Failure> {
        let mut rest = self.fetched.bytes.as_slice();
        loop {
            let corrupt = |from: Offset, what: &dyn std::fmt::Display| {
                Failure::new(Code::Corrupt, format!("{}: from offset {from} on: {what}", self.name))
                    .hint("damaged on its way or on the broker's disk: --skip-damaged goes on behind it")
            };
            let mut made = Vec::new();
            let batch = match step(rest, &mut self.scratch, &mut made) {
                Ok(None) => return Ok(false),
                Ok(Some((batch, size))) => {
                    rest = rest.get(size..).unwrap_or_default();
                    batch
                }
                // Nothing behind it can be found in this answer, and the next one would be the same.
                Err(error) => return Err(corrupt(*at, &error)),
            };
            if batch.last_offset() < *at {
                continue;
            }
            let next = batch.next_offset().unwrap_or(Offset::MAX);
            if let Err(error) = batch.check_crc() {
                damage.met((*at).max(batch.base_offset()), corrupt(batch.base_offset(), &error))?;
                damage.ends_at(next);
                *at = next;
                continue;
            }
            if self.aborted.as_mut().is_some_and(|aborted| aborted.hides(&batch, &mut self.scratch)) {
                *at = next;
                continue;
            }
            match visit(&batch) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(true),
                Err(failure) => {
                    damage.met(batch.base_offset(), failure)?;
                    damage.ends_at(next);
                }
            }
            *at = next;
        }
    }
}

/// The batch at the front, and its size there; `None` where what follows is cut. Messages of formats 0 and 1, which old
/// topics still hold, become a batch of format 2 with the same records, as a log's reader gives them.
fn step<'s>(
    bytes: &'s [u8],
    scratch: &mut Scratch,
    made: &'s mut Vec<u8>,
) -> Result<Option<(BatchRef<'s>, usize)>, BatchError> {
    let Some(probe) = probe(bytes)?.filter(|probe| u64::from(probe.size_bytes) <= bytes.len() as u64) else {
        return Ok(None);
    };
    if !is_legacy(probe.magic) {
        return BatchRef::parse(bytes).map(|batch| Some((batch, batch.as_bytes().len())));
    }
    let message = OldMessage::parse(bytes)?;
    message.to_batch(scratch, made)?;
    BatchRef::parse(made).map(|batch| Some((batch, message.as_bytes().len())))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stratalog::{LogReader, ReadOptions};

    use super::*;

    fn walked(bytes: Vec<u8>, at: i64) -> (Vec<(i64, Option<Vec<u8>>)>, Offset) {
        let fetched = Fetched {
            partition: 0,
            bytes,
            end: i64::MAX,
            start: 0,
            aborted: Vec::new(),
            is_out_of_range: false,
        };
        let mut found = Vec::new();
        let mut at = Offset::new(at).unwrap();
        let mut scratch = Scratch::new();
        let mut walk = Walk::new("t/0", &fetched, Isolation::Committed);
        let walked = walk.each(&mut Damage::new(false), &mut at, &mut |batch| {
            for record in batch.records(&mut scratch).unwrap().map(Result::unwrap) {
                found.push((record.offset().value(), record.value().map(<[u8]>::to_vec)));
            }
            Ok(ControlFlow::Continue(()))
        });
        assert!(matches!(walked, Ok(false)));
        (found, at)
    }

    /// Brokers send old messages as they lie in the file.
    #[test]
    fn old_messages_are_read_as_a_log_reads_them() {
        for case in ["magic0-gzip", "magic0-none", "magic1-snappy", "magic1-lz4", "magic1-appendtime"] {
            let dir =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kafka/4.4.0").join(case).join("old-0");
            let reader = LogReader::open(&dir, ReadOptions::default()).unwrap();
            let records = reader.owned_records(reader.start()).map(Result::unwrap);
            let expected: Vec<_> = records
                .map(|record| (record.offset.value(), record.value.map(|value| value.to_vec())))
                .collect();
            let mut found = Vec::new();
            for segment in reader.segments() {
                let bytes = std::fs::read(&segment.path).unwrap();
                let (records, end) = walked(bytes.clone(), segment.base_offset.value());
                assert_eq!(end, segment.next_offset, "{case}");
                // An answer may end anywhere: what is cut is asked for again.
                let (cut, begun) = walked(bytes[..bytes.len() - 1].to_vec(), segment.base_offset.value());
                assert!(cut.len() < records.len() && begun < end, "{case}");
                assert_eq!(cut, records[..cut.len()], "{case}");
                found.extend(records);
            }
            assert!(!expected.is_empty());
            assert_eq!(found, expected, "{case}");
        }
    }
}
