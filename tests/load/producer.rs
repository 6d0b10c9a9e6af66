//! An idempotent producer: a few requests under way, all sent again in their order when the connection breaks.

use std::{
    collections::VecDeque,
    io, thread,
    time::{Duration, Instant},
};

use stratalog::record::ProducerStamp;

use crate::{
    connection::{Connection, PATIENCE, batch},
    history::Sent,
    kills::{Run, TOPIC},
};

/// Requests under way: as many as a server remembers of each producer.
const UNDER_WAY: usize = 5;
/// After so many batches it takes a new producer id.
const BATCHES_PER_ID: u64 = 700;

/// What a producer has to do with one partition.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) partition: u16,
    /// Records sent so far.
    pub(crate) count: u32,
    /// How many had been when the producer id in use was taken.
    base: u32,
    pub(crate) acknowledged: Vec<(i64, Sent)>,
}

struct UnderWay {
    lane: usize,
    first: u32,
    record_count: u32,
    batch: Vec<u8>,
    correlation_id: i32,
}

pub(crate) struct Producer<'r> {
    run: &'r Run,
    number: u16,
    stamp: Option<(i64, i16)>,
    lanes: [Lane; 2],
    under_way: VecDeque<UnderWay>,
    batch_count: u64,
    chance: u64,
}

/// A record's value: who, where, which, and bytes that follow from it.
pub(crate) fn value(partition: u16, sent: Sent) -> Vec<u8> {
    let padding = usize::try_from(u64::from(sent.number).wrapping_mul(2_654_435_761) % 300).unwrap();
    let mut value = Vec::with_capacity(8 + padding);
    value.extend(sent.producer.to_be_bytes());
    value.extend(partition.to_be_bytes());
    value.extend(sent.number.to_be_bytes());
    value.resize(8 + padding, sent.number.to_be_bytes()[3]);
    value
}

impl<'r> Producer<'r> {
    pub(crate) fn new(run: &'r Run, number: u16) -> Self {
        let lane = |partition| Lane { partition, count: 0, base: 0, acknowledged: Vec::new() };
        let half = run.partitions / 2;
        Self {
            run,
            number,
            stamp: None,
            lanes: [lane(number % run.partitions), lane((number + half) % run.partitions)],
            under_way: VecDeque::new(),
            batch_count: 0,
            chance: u64::from(number) + 1,
        }
    }

    /// Produces until the run is over and all of it is acknowledged.
    pub(crate) fn work(mut self) -> [Lane; 2] {
        let mut since = Instant::now();
        while !(self.run.is_over() && self.under_way.is_empty() || self.run.has_failed()) {
            let had = self.batch_count;
            // A connection that breaks is what this is about; whatever is under way is sent again over the next.
            let _ = self.connect();
            if self.batch_count != had {
                since = Instant::now();
            }
            assert!(since.elapsed() < PATIENCE, "producer {} gets nowhere", self.number);
            thread::sleep(Duration::from_millis(2));
        }
        self.lanes
    }

    fn connect(&mut self) -> io::Result<()> {
        let mut connection = Connection::new(self.run.address())?;
        for again in &mut self.under_way {
            let lane = &self.lanes[again.lane];
            again.correlation_id = connection.send_produce(TOPIC, lane.partition.into(), &again.batch)?;
        }
        loop {
            while self.under_way.len() < UNDER_WAY && !self.run.is_over() {
                if self.batch_count.is_multiple_of(BATCHES_PER_ID) {
                    if !self.under_way.is_empty() {
                        break;
                    }
                    self.begin_anew(&mut connection)?;
                }
                self.send(&mut connection)?;
            }
            let Some(first) = self.under_way.front() else { return Ok(()) };
            let (code, offset) = connection.produced(first.correlation_id)?;
            let Some(done) = self.under_way.pop_front() else { return Ok(()) };
            let lane = &mut self.lanes[done.lane];
            assert_eq!(code, 0, "producer {}: {} from {} on", self.number, done.record_count, done.first);
            for (number, offset) in (done.first..done.first + done.record_count).zip(offset..) {
                lane.acknowledged.push((offset, Sent { producer: self.number, number }));
            }
            if !self.run.pace.is_zero() {
                thread::sleep(self.run.pace);
            }
        }
    }

    fn begin_anew(&mut self, connection: &mut Connection) -> io::Result<()> {
        let stamp = connection.producer_id()?;
        self.run.take_producer_id(stamp.0);
        self.stamp = Some(stamp);
        for lane in &mut self.lanes {
            lane.base = lane.count;
        }
        Ok(())
    }

    fn send(&mut self, connection: &mut Connection) -> io::Result<()> {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let at = usize::from(self.chance.is_multiple_of(3));
        let lane = &mut self.lanes[at];
        let record_count = u32::try_from(1 + self.chance % 6).unwrap();
        let (partition, first) = (lane.partition, lane.count);
        let numbers = first..first + record_count;
        let values: Vec<_> =
            numbers.map(|number| value(partition, Sent { producer: self.number, number })).collect();
        let (id, epoch) = self.stamp.unwrap();
        let base_sequence = i32::try_from(first - lane.base).unwrap();
        let batch = batch(Some(ProducerStamp { id, epoch, base_sequence }), &values);
        lane.count += record_count;
        self.batch_count += 1;
        // Before it goes out: half of it may arrive.
        self.under_way.push_back(UnderWay { lane: at, first, record_count, batch, correlation_id: 0 });
        let sent = self.under_way.back_mut().unwrap();
        sent.correlation_id = connection.send_produce(TOPIC, partition.into(), &sent.batch)?;
        Ok(())
    }
}
