//! Batches into the partitions of a topic, each once.
//!
//! A numbered producer's batch is sent until it is acknowledged: one that arrived before is told by its numbers, and the
//! broker answers with the offsets that it has already. One batch is on its way at a time.

use stratalog::protocol::{
    ApiKey,
    messages::{
        init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
        metadata::MetadataRequest,
        produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData},
    },
    wire::Records,
};

use super::{client::Client, connection::Lost, error_code};
use crate::failure::{Code, Failure};

/// How long a broker may wait for its replicas.
const REPLICAS_MS: i32 = 30_000;

/// `--acks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Acks {
    /// Every replica in sync has it, as durably as the topic is told to
    All,
    /// The leader has it
    #[value(name = "1")]
    Leader,
    /// Nothing: nobody is asked whether it arrived
    #[value(name = "0")]
    None,
}

impl Acks {
    fn number(self) -> i16 {
        match self {
            Self::All => -1,
            Self::Leader => 1,
            Self::None => 0,
        }
    }

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Leader => "1",
            Self::None => "0",
        }
    }
}

/// Who sends, for the broker to know what it has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProducerId {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
}

/// What a broker said of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Produced {
    /// Of the first record; -1 where it is not told.
    pub(crate) base_offset: i64,
    /// The broker's time where the topic takes that for the records' own; else -1.
    pub(crate) append_time_ms: i64,
    pub(crate) log_start_offset: i64,
}

impl Client {
    /// A number for this producer; `None` from a broker that gives none, so that nothing may be sent twice.
    pub(crate) fn producer_id(&mut self) -> Result<Option<ProducerId>, Failure> {
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        let patience = self.patience.clone();
        let mut tries = patience.tries();
        loop {
            let failure = match self.ask_any(&request, (0, 5)) {
                Ok(answer) => {
                    let told: InitProducerIdResponse = answer.read()?;
                    if told.error_code == 0 {
                        return Ok(Some(ProducerId { id: told.producer_id, epoch: told.producer_epoch }));
                    }
                    let failure = error_code::failure(told.error_code, "InitProducerId", None);
                    if failure.code == Code::Refused {
                        return Ok(None);
                    }
                    if !error_code::may_pass(told.error_code) {
                        return Err(failure);
                    }
                    failure
                }
                Err(Lost::Again(failure)) => failure,
                Err(Lost::Final(_)) if !self.speaks(ApiKey::InitProducerId) => return Ok(None),
                Err(Lost::Final(failure)) => return Err(failure),
            };
            tries.again(failure)?;
        }
    }

    /// Sends a batch, as often as it takes where `is_numbered`; else once, and what may have arrived is a failure that says
    /// so.
    pub(crate) fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        batch: &[u8],
        acks: Acks,
        is_numbered: bool,
    ) -> Result<Produced, Failure> {
        let patience = self.patience.clone();
        let mut tries = patience.tries();
        loop {
            let Some(leader) = self.leader(topic, partition)? else {
                let failure = Failure::unreachable(format!("{topic}/{partition}: it has no leader"));
                tries.again(failure)?;
                self.forget(topic);
                continue;
            };
            let failure = match self.produce_once(&leader, topic, partition, batch, acks) {
                Ok((0 | error_code::DUPLICATE_SEQUENCE, told, _)) => return Ok(told),
                Ok((code, _, said)) => {
                    let failure = error_code::failure(code, format!("{topic}/{partition}"), said.as_deref());
                    // The replicas may have it all the same.
                    let may_be_there = matches!(code, 7 | 13 | 20);
                    if !error_code::may_pass(code) {
                        return Err(failure);
                    }
                    if may_be_there && !is_numbered {
                        return Err(unknown(failure));
                    }
                    failure
                }
                Err((Lost::Again(failure), is_sent)) => {
                    if is_sent && !is_numbered {
                        return Err(unknown(failure));
                    }
                    failure
                }
                Err((Lost::Final(failure), is_sent)) => {
                    return Err(if is_sent { unknown(failure) } else { failure });
                }
            };
            self.forget(topic);
            if let Err(given_up) = tries.again(failure) {
                return Err(unknown(given_up));
            }
        }
    }

    /// Waits until the brokers have dealt with what was sent and is not answered: each answers in order, and closes the
    /// connection where it could not do what nobody asked about.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        let request = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
        for address in self.addresses() {
            let asked = self.ask(&address, &request, (0, i16::MAX));
            asked
                .map_err(|lost| Failure::from(lost).note("which of the last records arrived is not known"))?;
        }
        Ok(())
    }

    /// Once: the error code, what was told, and the broker's words. With a failure: whether the batch was sent.
    fn produce_once(
        &mut self,
        leader: &str,
        topic: &str,
        partition: i32,
        batch: &[u8],
        acks: Acks,
    ) -> Result<(i16, Produced, Option<String>), (Lost, bool)> {
        let topic_id = self.id(topic);
        let data = PartitionProduceData { index: partition, records: Some(Records::Bytes(batch)) };
        let request = ProduceRequest {
            acks: acks.number(),
            timeout_ms: REPLICAS_MS,
            topic_data: vec![TopicProduceData { name: topic, topic_id, partition_data: vec![data] }],
            ..Default::default()
        };
        // From version 13 on a topic goes by its id.
        let versions = (3, if topic_id.is_zero() { 12 } else { i16::MAX });
        self.connection(leader).map_err(|lost| (lost, false))?;
        let is_sent = |lost| (lost, true);
        let sent = self.send(leader, &request, versions).map_err(is_sent)?;
        let mut told = Produced { base_offset: -1, append_time_ms: -1, log_start_offset: -1 };
        if acks == Acks::None {
            return Ok((0, told, None));
        }
        let answer = self.receive(leader, sent, std::time::Duration::ZERO).map_err(is_sent)?;
        let response: ProduceResponse<'_> = answer.read().map_err(|failure| (Lost::Final(failure), true))?;
        let of_partition =
            response.responses.first().and_then(|of_topic| of_topic.partition_responses.first());
        let Some(found) = of_partition.filter(|found| found.index == partition) else {
            let failure = Failure::other(format!("{leader}: Produce said nothing of {topic}/{partition}"));
            return Err((Lost::Final(failure), true));
        };
        told.base_offset = found.base_offset;
        told.append_time_ms = found.log_append_time_ms;
        told.log_start_offset = found.log_start_offset;
        let of_records = found.record_errors.iter().find_map(|record| {
            let what = record.batch_index_error_message.as_deref()?;
            Some(format!("record {} of the batch: {what}", record.batch_index))
        });
        let said = of_records.or_else(|| found.error_message.as_deref().map(str::to_owned));
        Ok((found.error_code, told, said))
    }
}

fn unknown(failure: Failure) -> Failure {
    if failure.is_quiet() || failure.code == Code::NotFound {
        return failure;
    }
    failure.note("whether the last batch arrived is not known")
}
