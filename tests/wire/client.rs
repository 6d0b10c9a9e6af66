//! A client in raw frames, written and read by the library's own codec.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use stratalog::{
    Timestamp,
    protocol::{
        self, ApiKey, Message, Request,
        messages::{
            fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData},
            list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic},
            metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse},
            produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData},
        },
        wire::{Records, Uuid, Writer},
    },
    record::{BatchBuilder, BatchOptions, Batches, Record, Scratch},
};

/// Nothing here takes so long; a test that waits for ever says nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    next_id: i32,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, next_id: 1 }
    }

    /// Sends a request and returns its correlation id.
    pub(crate) fn send<'a, R: Request<'a>>(&mut self, version: i16, request: &R) -> i32 {
        let id = self.next_id;
        self.next_id += 1;
        let mut writer = Writer::new();
        protocol::write_request(&mut writer, id, Some("wire"), version, request).unwrap();
        self.stream.write_all(writer.bytes()).unwrap();
        id
    }

    /// The next frame, without its length.
    pub(crate) fn frame(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut frame).unwrap();
        frame
    }

    /// The next frame, which must answer this request.
    pub(crate) fn frame_for(&mut self, id: i32, api: ApiKey, version: i16) -> Vec<u8> {
        let frame = self.frame();
        let (header, body) = protocol::read_response_header(&frame, api, version).unwrap();
        assert_eq!(header.correlation_id, id);
        body.rest().to_vec()
    }

    /// Makes a topic by asking for it, and returns its id.
    pub(crate) fn topic(&mut self, name: &str) -> Uuid {
        let topic = MetadataRequestTopic { name: Some(name), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
        let id = self.send(12, &request);
        let body = self.frame_for(id, ApiKey::Metadata, 12);
        let told: MetadataResponse<'_> = decode(&body, 12);
        assert_eq!(told.topics[0].error_code, 0, "{told:?}");
        told.topics[0].topic_id
    }

    pub(crate) fn send_produce(&mut self, (version, acks): (i16, i16), topic: &str, batch: &[u8]) -> i32 {
        let partition = PartitionProduceData { index: 0, records: Some(Records::Bytes(batch)) };
        let data = TopicProduceData { name: topic, partition_data: vec![partition], ..Default::default() };
        let request =
            ProduceRequest { acks, timeout_ms: 30_000, topic_data: vec![data], ..Default::default() };
        self.send(version, &request)
    }

    pub(crate) fn produced(&mut self, id: i32, version: i16) -> Produced {
        let body = self.frame_for(id, ApiKey::Produce, version);
        let told: ProduceResponse<'_> = decode(&body, version);
        let told = &told.responses[0].partition_responses[0];
        Produced {
            code: told.error_code,
            base_offset: told.base_offset,
            append_time: told.log_append_time_ms,
            bad_records: told.record_errors.iter().map(|error| error.batch_index).collect(),
        }
    }

    /// Produces one batch and waits.
    pub(crate) fn produce(&mut self, topic: &str, batch: &[u8]) -> Produced {
        let id = self.send_produce((9, -1), topic, batch);
        self.produced(id, 9)
    }

    pub(crate) fn send_fetch(&mut self, version: i16, wanted: &Wanted<'_>) -> i32 {
        let partition = FetchPartition {
            partition: wanted.partition,
            fetch_offset: wanted.offset,
            partition_max_bytes: wanted.max_bytes,
            ..Default::default()
        };
        let topic =
            FetchTopic { topic: wanted.topic, topic_id: wanted.topic_id, partitions: vec![partition] };
        let request = FetchRequest {
            max_wait_ms: wanted.max_wait_ms,
            min_bytes: wanted.min_bytes,
            max_bytes: 50 << 20,
            isolation_level: wanted.isolation_level,
            session_epoch: wanted.session_epoch,
            topics: vec![topic],
            ..Default::default()
        };
        self.send(version, &request)
    }

    pub(crate) fn fetched(&mut self, id: i32, version: i16) -> Fetched {
        let body = self.frame_for(id, ApiKey::Fetch, version);
        let told: FetchResponse<'_> = decode(&body, version);
        let none = PartitionData::default();
        let data = told.responses.first().map_or(&none, |topic| &topic.partitions[0]);
        Fetched {
            whole_code: told.error_code,
            session_id: told.session_id,
            code: data.error_code,
            high_watermark: data.high_watermark,
            stable: data.last_stable_offset,
            start: data.log_start_offset,
            has_aborted: data.aborted_transactions.is_some(),
            aborted: data
                .aborted_transactions
                .iter()
                .flatten()
                .map(|aborted| (aborted.first_offset, aborted.producer_id))
                .collect(),
            bytes: data.records.and_then(Records::bytes).unwrap_or_default().to_vec(),
        }
    }

    pub(crate) fn fetch(&mut self, wanted: &Wanted<'_>) -> Fetched {
        let id = self.send_fetch(11, wanted);
        self.fetched(id, 11)
    }

    /// Code, timestamp, offset.
    pub(crate) fn list_offset(&mut self, version: i16, topic: &str, timestamp: i64) -> (i16, i64, i64) {
        let partition = ListOffsetsPartition { timestamp, ..Default::default() };
        let topic = ListOffsetsTopic { name: topic, partitions: vec![partition] };
        let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
        let id = self.send(version, &request);
        let body = self.frame_for(id, ApiKey::ListOffsets, version);
        let told: ListOffsetsResponse<'_> = decode(&body, version);
        let told = &told.topics[0].partitions[0];
        (told.error_code, told.timestamp, told.offset)
    }

    /// True where the server has closed.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }

    pub(crate) fn finish(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

pub(crate) fn decode<'r, M: Message<'r>>(body: &'r [u8], version: i16) -> M {
    M::decode(protocol::wire::Reader::new(body), version).unwrap()
}

/// What a producer was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Produced {
    pub(crate) code: i16,
    pub(crate) base_offset: i64,
    pub(crate) append_time: i64,
    pub(crate) bad_records: Vec<i32>,
}

/// What is fetched: one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) topic: &'a str,
    pub(crate) topic_id: Uuid,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) max_bytes: i32,
    pub(crate) min_bytes: i32,
    pub(crate) max_wait_ms: i32,
    pub(crate) isolation_level: i8,
    pub(crate) session_epoch: i32,
}

impl<'a> Wanted<'a> {
    /// From an offset on, at once.
    pub(crate) fn new(topic: &'a str, offset: i64) -> Self {
        Self {
            topic,
            topic_id: Uuid::ZERO,
            partition: 0,
            offset,
            max_bytes: 1 << 20,
            min_bytes: 1,
            max_wait_ms: 0,
            isolation_level: 0,
            session_epoch: -1,
        }
    }
}

/// What a consumer was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) whole_code: i16,
    pub(crate) session_id: i32,
    pub(crate) code: i16,
    pub(crate) high_watermark: i64,
    pub(crate) stable: i64,
    pub(crate) start: i64,
    pub(crate) has_aborted: bool,
    /// First offsets and producers.
    pub(crate) aborted: Vec<(i64, i64)>,
    pub(crate) bytes: Vec<u8>,
}

impl Fetched {
    /// Offsets and values of the whole batches.
    pub(crate) fn records(&self) -> Vec<(i64, Vec<u8>)> {
        let mut scratch = Scratch::new();
        let mut records = Vec::new();
        for batch in Batches::new(&self.bytes) {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            for record in batch.records(&mut scratch).unwrap() {
                let record = record.unwrap();
                records.push((record.offset().value(), record.value().unwrap_or_default().to_vec()));
            }
        }
        records
    }
}

pub(crate) fn batch_with(options: BatchOptions, records: &[Record<'_>]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options);
    for record in records {
        builder.push(record.timestamp.map_or(record.timestamp(now()), |_| *record)).unwrap();
    }
    builder.finish().unwrap().to_vec()
}

/// A batch with these values, made now.
pub(crate) fn batch(values: &[&[u8]]) -> Vec<u8> {
    let records: Vec<_> = values.iter().map(|value| Record::value_only(value)).collect();
    batch_with(BatchOptions::default(), &records)
}

pub(crate) fn now() -> Timestamp {
    stratalog::Clock::system().now()
}
