//! Record batches of several partitions, from all their leaders at once.

use std::{collections::BTreeMap, time::Duration};

use stratalog::{
    Isolation,
    protocol::{
        messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic},
        wire::Records,
    },
};

use super::{
    client::{Client, isolation_number},
    connection::{Lost, Sent},
    error_code,
};
use crate::failure::{Code, Failure};

/// Of one partition, and of an answer; a first batch that is larger comes whole all the same.
const PARTITION_BYTES: i32 = 4 << 20;
const ANSWER_BYTES: i32 = 32 << 20;
/// A leader that is alone may hold its answer back for so long; with others, their records would wait for it.
const HELD: Duration = Duration::from_millis(500);
const HELD_AMONG_OTHERS: Duration = Duration::from_millis(100);

/// From where on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) partition: i32,
    /// Batches; the last may be cut.
    pub(crate) bytes: Vec<u8>,
    /// The end of what may be read.
    pub(crate) end: i64,
    pub(crate) start: i64,
    /// Aborted transactions: producer and first offset.
    pub(crate) aborted: Vec<(i64, i64)>,
    /// Not served: the offset is none that it has.
    pub(crate) is_out_of_range: bool,
}

impl Client {
    /// One round: what each partition has from its offset on. `waits`: where there is nothing, the brokers hold their answers
    /// back for a little. A partition that cannot be read now is left out, its reason kept in `passing`.
    pub(crate) fn fetch(
        &mut self,
        topic: &str,
        wanted: &[Wanted],
        isolation: Isolation,
        waits: bool,
        passing: &mut Option<Failure>,
    ) -> Result<Vec<Fetched>, Failure> {
        let mut by_leader: BTreeMap<String, Vec<Wanted>> = BTreeMap::new();
        for wanted in wanted {
            match self.leader(topic, wanted.partition) {
                Ok(Some(leader)) => by_leader.entry(leader).or_default().push(*wanted),
                Ok(None) => {
                    *passing =
                        Some(Failure::unreachable(format!("{topic}/{}: it has no leader", wanted.partition)));
                }
                Err(failure) if failure.code == Code::Unreachable => *passing = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        let held = match (waits, by_leader.len()) {
            (false, _) => Duration::ZERO,
            (true, 1) => HELD,
            (true, _) => HELD_AMONG_OTHERS,
        };
        let mut on_their_way: Vec<(String, Sent)> = Vec::new();
        for (leader, wanted) in by_leader {
            match self.send_fetch(&leader, topic, &wanted, isolation, held) {
                Ok(sent) => on_their_way.push((leader, sent)),
                Err(Lost::Again(failure)) => *passing = Some(failure),
                Err(Lost::Final(failure)) => return Err(failure),
            }
        }
        let mut found = Vec::new();
        for (leader, sent) in on_their_way {
            match self.receive_fetch(&leader, topic, sent, held, isolation, passing) {
                Ok(fetched) => found.extend(fetched),
                Err(Lost::Again(failure)) => *passing = Some(failure),
                Err(Lost::Final(failure)) => return Err(failure),
            }
        }
        if passing.is_some() {
            self.forget(topic);
        }
        Ok(found)
    }

    fn send_fetch(
        &mut self,
        leader: &str,
        topic: &str,
        wanted: &[Wanted],
        isolation: Isolation,
        held: Duration,
    ) -> Result<Sent, Lost> {
        let partition = |wanted: &Wanted| FetchPartition {
            partition: wanted.partition,
            fetch_offset: wanted.offset,
            partition_max_bytes: PARTITION_BYTES,
            ..Default::default()
        };
        let topic_id = self.id(topic);
        let of_topic = FetchTopic { topic, topic_id, partitions: wanted.iter().map(partition).collect() };
        let request = FetchRequest {
            max_wait_ms: i32::try_from(held.as_millis()).unwrap_or(0),
            min_bytes: 1,
            max_bytes: ANSWER_BYTES,
            isolation_level: isolation_number(isolation),
            topics: vec![of_topic],
            ..Default::default()
        };
        // From version 13 on a topic goes by its id.
        self.send(leader, &request, (4, if topic_id.is_zero() { 12 } else { i16::MAX }))
    }

    fn receive_fetch(
        &mut self,
        leader: &str,
        topic: &str,
        sent: Sent,
        held: Duration,
        isolation: Isolation,
        passing: &mut Option<Failure>,
    ) -> Result<Vec<Fetched>, Lost> {
        let answer = self.receive(leader, sent, held)?;
        let told: FetchResponse<'_> = answer.read()?;
        let refused = |code: i16, what: String| {
            let failure = error_code::failure(code, what, None);
            if error_code::may_pass(code) { Lost::Again(failure) } else { Lost::Final(failure) }
        };
        if told.error_code != 0 {
            return Err(refused(told.error_code, format!("{leader}: Fetch")));
        }
        let id = self.id(topic);
        let mut found = Vec::new();
        for of_topic in told.responses.iter().filter(|told| told.topic == topic || told.topic_id == id) {
            for told in &of_topic.partitions {
                let partition = told.partition_index;
                let is_out_of_range = told.error_code == error_code::OFFSET_OUT_OF_RANGE;
                if told.error_code != 0 && !is_out_of_range {
                    match refused(told.error_code, format!("{topic}/{partition}: Fetch")) {
                        Lost::Again(failure) => {
                            *passing = Some(failure);
                            continue;
                        }
                        is_final @ Lost::Final(_) => return Err(is_final),
                    }
                }
                let aborted = told.aborted_transactions.iter().flatten();
                found.push(Fetched {
                    partition,
                    bytes: told.records.and_then(Records::bytes).unwrap_or_default().to_vec(),
                    end: match isolation {
                        Isolation::Uncommitted => told.high_watermark,
                        Isolation::Committed => told.last_stable_offset,
                    },
                    start: told.log_start_offset,
                    aborted: aborted.map(|told| (told.producer_id, told.first_offset)).collect(),
                    is_out_of_range,
                });
            }
        }
        Ok(found)
    }
}
