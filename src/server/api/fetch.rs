//! `Fetch`: pieces of files, as they lie there, now or when there are enough of them.
//!
//! A request that waits holds readers and numbers, no bytes. Each look makes the pieces anew; only those of the last look are
//! sent.

use std::{
    borrow::Cow,
    task::{Context, Poll},
    time::Duration,
};

use super::{Call, Fault, Outcome, find_topic, read};
use crate::{
    FileSlice, Isolation, LogReader, Offset, Wait,
    protocol::{
        EncodeError,
        messages::fetch::{
            AbortedTransaction, EpochEndOffset, FetchPartition, FetchRequest, FetchResponse, FetchTopic,
            FetchableTopicResponse, PartitionData,
        },
        wire::{Reader, Records, Uuid},
    },
    record::Codec,
    server::{
        broker::Broker,
        error_code::{ErrorCode, Refusal},
        partition_offsets::check_leader_epoch,
        reply::Reply,
        topics::Topic,
    },
};

/// A request that waits for records.
#[derive(Debug)]
pub(in crate::server) struct Parked {
    correlation_id: i32,
    version: i16,
    /// By the monotonic clock.
    deadline: Duration,
    min_bytes: u64,
    max_bytes: u32,
    is_committed: bool,
    topics: Vec<WantedTopic>,
}

#[derive(Debug)]
struct WantedTopic {
    name: String,
    id: Uuid,
    partitions: Vec<Wanted>,
}

/// A partition that is asked for.
#[derive(Debug)]
struct Wanted {
    index: i32,
    offset: i64,
    max_bytes: u32,
    known_epoch: i32,
    last_epoch: i32,
    source: Result<Source, ErrorCode>,
}

/// Where its records come from.
#[derive(Debug)]
struct Source {
    /// Of all that consumers may see, committed or not.
    reader: LogReader,
    /// The end at the last look.
    seen: Offset,
}

/// What a look at a partition came to.
#[derive(Debug)]
struct Found {
    code: ErrorCode,
    high_watermark: i64,
    stable: i64,
    start: i64,
    aborted: Option<Vec<AbortedTransaction>>,
    diverging: Option<(i32, i64)>,
    slice: Option<FileSlice>,
}

impl Found {
    fn refused(code: ErrorCode) -> Self {
        Self { code, high_watermark: -1, stable: -1, start: -1, aborted: None, diverging: None, slice: None }
    }

    fn bytes(&self) -> u32 {
        self.slice.as_ref().map_or(0, FileSlice::len)
    }
}

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: FetchRequest<'_> = read(call, body)?;
    // No session is ever given out, so nobody can go on with one.
    if request.session_epoch > 0 {
        let error_code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND.value();
        return call.reply(&FetchResponse { error_code, ..Default::default() });
    }
    let largest = call.broker.settings().fetch_max_bytes;
    let max_bytes = u32::try_from(request.max_bytes).unwrap_or(0).min(largest);
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let mut parked = Parked {
        correlation_id: call.header.correlation_id,
        version: call.version(),
        deadline: call.broker.monotonic().saturating_add(wait),
        min_bytes: u64::try_from(request.min_bytes).unwrap_or(0).min(max_bytes.into()),
        max_bytes,
        is_committed: request.isolation_level == 1,
        topics: request.topics.iter().map(|topic| wanted_topic(call, topic)).collect(),
    };
    match parked.answer(call.broker, wait.is_zero() || call.broker.is_draining())? {
        Some(reply) => Ok(Outcome::Reply(reply)),
        None => Ok(Outcome::Fetch(parked)),
    }
}

fn wanted_topic(call: &Call<'_>, asked: &FetchTopic<'_>) -> WantedTopic {
    let topic = find_topic(&call.broker.topics, asked.topic, asked.topic_id);
    let wanted = |partition: &FetchPartition| Wanted {
        index: partition.partition,
        offset: partition.fetch_offset,
        max_bytes: u32::try_from(partition.partition_max_bytes).unwrap_or(0),
        known_epoch: partition.current_leader_epoch,
        last_epoch: partition.last_fetched_epoch,
        source: topic
            .as_ref()
            .map_err(|code| *code)
            .and_then(|topic| source(call, topic, partition.partition)),
    };
    let partitions = asked.partitions.iter().map(wanted).collect();
    WantedTopic { name: asked.topic.to_owned(), id: asked.topic_id, partitions }
}

fn source(call: &Call<'_>, topic: &Topic, index: i32) -> Result<Source, ErrorCode> {
    let partition = topic.partition(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let compression = partition.settings().compression;
    if call.version() < 10 && compression.is_some_and(|wanted| wanted.codec() == Codec::Zstd) {
        return Err(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
    }
    let reader = partition.reader().map_err(|error| told(topic.name(), index, &error.into()))?;
    Ok(Source { reader, seen: Offset::ZERO })
}

/// The code of what went wrong; a line in the log where it is ours to mend.
fn told(topic: &str, partition: i32, refusal: &Refusal) -> ErrorCode {
    if matches!(
        refusal.code,
        ErrorCode::KAFKA_STORAGE_ERROR | ErrorCode::CORRUPT_MESSAGE | ErrorCode::UNKNOWN_SERVER_ERROR
    ) {
        tracing::error!(topic, partition, %refusal, "records cannot be read");
    }
    refusal.code
}

impl Parked {
    /// When it is answered whatever there is.
    pub(in crate::server) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Has the task woken when there is more than at the last look.
    pub(in crate::server) fn register(&mut self, context: &mut Context<'_>) {
        for wanted in self.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            let Ok(source) = &wanted.source else { continue };
            match source.reader.poll_past(source.seen, context) {
                // The look that follows tells.
                Poll::Ready(Wait::Closed) => wanted.source = Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
                Poll::Ready(_) | Poll::Pending => {}
            }
        }
    }

    /// The reply, if there is enough for it. `is_last`: whatever there is.
    pub(in crate::server) fn answer(
        &mut self,
        broker: &Broker,
        is_last: bool,
    ) -> Result<Option<Reply>, EncodeError> {
        let found = self.look(broker);
        let bytes: u64 = found.iter().map(|found| u64::from(found.bytes())).sum();
        let is_enough = is_last
            || found.is_empty()
            || bytes >= self.min_bytes
            || found.iter().any(|found| !found.code.is_none() || found.diverging.is_some())
            || bytes > 0 && self.is_at_older_segment();
        if is_enough { self.reply(found).map(Some) } else { Ok(None) }
    }

    /// True where what is asked for begins in a segment that is full: no more will come to the piece, and the next is there.
    fn is_at_older_segment(&self) -> bool {
        self.topics.iter().flat_map(|topic| &topic.partitions).any(|wanted| {
            wanted.source.as_ref().is_ok_and(|source| {
                let last = source.reader.segments().last().map(|segment| segment.base_offset.value());
                last.is_some_and(|base| base > wanted.offset)
            })
        })
    }

    fn look(&mut self, broker: &Broker) -> Vec<Found> {
        let (mut left, mut has_records) = (self.max_bytes, false);
        let (is_committed, version) = (self.is_committed, self.version);
        let mut all = Vec::new();
        for topic in &mut self.topics {
            for wanted in &mut topic.partitions {
                let limit = wanted.max_bytes.min(left);
                let mut found = wanted.look(limit, is_committed).unwrap_or_else(|refusal| {
                    let gone = match broker.topics.by_name(&topic.name) {
                        _ if !topic.id.is_zero() => find_topic(&broker.topics, "", topic.id).err(),
                        None => Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
                        Some(_) => None,
                    };
                    // Who deletes a topic closes its logs: it is not the leader that changed.
                    let code = gone.unwrap_or_else(|| told(&topic.name, wanted.index, &refusal));
                    let mut found = Found::refused(code);
                    if code == ErrorCode::OFFSET_OUT_OF_RANGE
                        && let Ok(source) = &wanted.source
                    {
                        // Where to go on.
                        found.start = source.reader.start().value();
                    }
                    found
                });
                if found.code == ErrorCode::KAFKA_STORAGE_ERROR && version <= 5 {
                    found.code = ErrorCode::NOT_LEADER_OR_FOLLOWER;
                }
                // The first batch of all goes out whole, whatever the limits; the others when they fit.
                if has_records && found.bytes() > limit {
                    found.slice = None;
                }
                has_records |= found.bytes() > 0;
                left = left.saturating_sub(found.bytes());
                all.push(found);
            }
        }
        all
    }

    fn reply(&self, found: Vec<Found>) -> Result<Reply, EncodeError> {
        let mut slices = Vec::new();
        let mut found = found.into_iter();
        let mut responses = Vec::with_capacity(self.topics.len());
        for topic in &self.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for (wanted, found) in topic.partitions.iter().zip(&mut found) {
                partitions.push(self.data(wanted.index, found, &mut slices));
            }
            responses.push(FetchableTopicResponse {
                topic: Cow::Borrowed(&topic.name),
                topic_id: topic.id,
                partitions,
            });
        }
        let response = FetchResponse { responses, ..Default::default() };
        Reply::new(self.correlation_id, self.version, &response, slices)
    }

    fn data<'a>(&self, index: i32, found: Found, slices: &mut Vec<FileSlice>) -> PartitionData<'a> {
        let records = match found.slice.filter(|slice| !slice.is_empty()) {
            Some(slice) => {
                let gap = Records::Gap(slice.len());
                slices.push(slice);
                gap
            }
            None => Records::Bytes(&[]),
        };
        let aborted = if self.is_committed { Some(found.aborted.unwrap_or_default()) } else { None };
        let (epoch, end_offset) = found.diverging.unwrap_or((-1, -1));
        PartitionData {
            partition_index: index,
            error_code: found.code.value(),
            high_watermark: found.high_watermark,
            last_stable_offset: found.stable,
            log_start_offset: found.start,
            diverging_epoch: EpochEndOffset { epoch, end_offset },
            aborted_transactions: aborted,
            records: Some(records),
            ..Default::default()
        }
    }
}

/// Those transactions of which something may be in `slice`, which holds `from` and what follows it in its segment.
fn begun_within(
    reader: &LogReader,
    from: Offset,
    slice: &FileSlice,
    mut aborted: Vec<crate::AbortedTransaction>,
) -> Vec<crate::AbortedTransaction> {
    if aborted.is_empty() {
        return aborted;
    }
    let segments = reader.segments();
    let next = segments.iter().find(|segment| segment.base_offset > from).map(|segment| segment.base_offset);
    let end = slice.position().saturating_add(slice.len().into());
    // Where a transaction begins cannot always be found: one too many does no harm.
    let is_sent = |first: Offset| {
        first <= from
            || next.is_none_or(|next| first < next)
                && reader.slice(first, 0).ok().flatten().is_none_or(|begin| begin.position() < end)
    };
    let mut firsts: Vec<Offset> = aborted.iter().map(|aborted| aborted.first_offset).collect();
    firsts.sort_unstable();
    let beyond = firsts.partition_point(|first| is_sent(*first));
    if let Some(beyond) = firsts.get(beyond) {
        aborted.retain(|aborted| aborted.first_offset < *beyond);
    }
    aborted
}

impl Wanted {
    /// What there is of it now, at most `limit` bytes but the first batch always whole.
    fn look(&mut self, limit: u32, is_committed: bool) -> Result<Found, Refusal> {
        let source = match &mut self.source {
            Ok(source) => source,
            Err(code) => return Err(Refusal::new(*code, "the partition cannot be read")),
        };
        let reader = &source.reader;
        // Before anything is read: what comes later than this wakes.
        source.seen = reader.end();
        if self.known_epoch >= 0 {
            check_leader_epoch(reader, self.known_epoch)?;
        }
        let out_of_range = || Refusal::new(ErrorCode::OFFSET_OUT_OF_RANGE, "there is no such offset");
        let offset = Offset::new(self.offset).ok_or_else(out_of_range)?;
        let mut diverging = None;
        if self.last_epoch >= 0 {
            let (epoch, end) = reader.end_offset_for_epoch(self.last_epoch).ok_or_else(out_of_range)?;
            diverging = (epoch < self.last_epoch || end < offset).then_some((epoch, end.value()));
        }
        if offset < reader.start() || offset > reader.written_end() {
            return Err(out_of_range());
        }
        let visible = if is_committed {
            let options = crate::ReadOptions { isolation: Isolation::Committed, ..reader.options() };
            reader.clone().with_options(options)
        } else {
            reader.clone()
        };
        let slice = if diverging.is_some() { None } else { visible.slice(offset, limit)? };
        let high_watermark = reader.end();
        let stable = reader.last_stable_offset()?.min(high_watermark);
        let aborted = if is_committed && slice.is_some() {
            let aborted = reader.aborted_transactions(offset..stable)?;
            let aborted = match &slice {
                Some(slice) => begun_within(reader, offset, slice, aborted),
                None => aborted,
            };
            let told = |aborted: &crate::AbortedTransaction| AbortedTransaction {
                producer_id: aborted.producer_id,
                first_offset: aborted.first_offset.value(),
            };
            Some(aborted.iter().map(told).collect())
        } else {
            None
        };
        Ok(Found {
            code: ErrorCode::NONE,
            high_watermark: high_watermark.value(),
            stable: stable.value(),
            start: reader.start().value(),
            aborted,
            diverging,
            slice,
        })
    }
}
