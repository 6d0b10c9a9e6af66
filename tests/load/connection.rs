//! A client's connection, for clients that live on when the server dies: what the network does is an error and no panic.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use stratalog::{
    protocol::{
        self, Message, Request,
        messages::{
            create_topics::{
                CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse,
            },
            fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData},
            init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
            list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic},
            produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData},
        },
        wire::{Reader, Records, Writer},
    },
    record::{BatchBuilder, BatchOptions, ProducerStamp, Record},
};

/// Nothing here takes so long, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

const FETCH: i16 = 11;
const PRODUCE: i16 = 9;

pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    next_id: i32,
}

/// What is fetched from one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) max_bytes: i32,
    pub(crate) max_wait_ms: i32,
    pub(crate) is_committed: bool,
}

#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) code: i16,
    pub(crate) high_watermark: i64,
    pub(crate) start: i64,
    pub(crate) bytes: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, next_id: 1 })
    }

    /// Sends a request and returns its correlation id.
    pub(crate) fn send<'a, R: Request<'a>>(&mut self, version: i16, request: &R) -> io::Result<i32> {
        let id = self.next_id;
        self.next_id += 1;
        let mut writer = Writer::new();
        protocol::write_request(&mut writer, id, Some("load"), version, request).unwrap();
        self.stream.write_all(writer.bytes())?;
        Ok(id)
    }

    /// The body of the next response, which must be the one to this request.
    fn body<'a, R: Request<'a>>(&mut self, id: i32, version: i16) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut frame)?;
        let (header, body) = protocol::read_response_header(&frame, R::API, version).unwrap();
        assert_eq!(header.correlation_id, id, "responses come in the order of the requests");
        Ok(body.rest().to_vec())
    }

    /// Makes a topic, with settings.
    pub(crate) fn create_topic(
        &mut self,
        name: &str,
        num_partitions: i32,
        settings: &[(&str, &str)],
    ) -> io::Result<()> {
        let configs =
            settings.iter().map(|(name, value)| CreatableTopicConfig { name, value: Some(value) }).collect();
        let topic =
            CreatableTopic { name, num_partitions, replication_factor: 1, configs, ..Default::default() };
        let id = self.send(5, &CreateTopicsRequest { topics: vec![topic], ..Default::default() })?;
        let body = self.body::<CreateTopicsRequest<'_>>(id, 5)?;
        let told: CreateTopicsResponse<'_> = decode(&body, 5);
        assert_eq!(told.topics[0].error_code, 0, "{told:?}");
        Ok(())
    }

    /// An id that no other producer has.
    pub(crate) fn producer_id(&mut self) -> io::Result<(i64, i16)> {
        let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
        let id = self.send(4, &request)?;
        let body = self.body::<InitProducerIdRequest<'_>>(id, 4)?;
        let told: InitProducerIdResponse = decode(&body, 4);
        assert_eq!(told.error_code, 0);
        Ok((told.producer_id, told.producer_epoch))
    }

    /// Sends a batch, to be acknowledged by all.
    pub(crate) fn send_produce(&mut self, topic: &str, index: i32, batch: &[u8]) -> io::Result<i32> {
        let partition = PartitionProduceData { index, records: Some(Records::Bytes(batch)) };
        let data = TopicProduceData { name: topic, partition_data: vec![partition], ..Default::default() };
        self.send(
            PRODUCE,
            &ProduceRequest { acks: -1, timeout_ms: 60_000, topic_data: vec![data], ..Default::default() },
        )
    }

    /// Code and first offset.
    pub(crate) fn produced(&mut self, id: i32) -> io::Result<(i16, i64)> {
        let body = self.body::<ProduceRequest<'_>>(id, PRODUCE)?;
        let told: ProduceResponse<'_> = decode(&body, PRODUCE);
        let told = &told.responses[0].partition_responses[0];
        Ok((told.error_code, told.base_offset))
    }

    pub(crate) fn send_fetch(&mut self, wanted: &Wanted<'_>) -> io::Result<i32> {
        let partition = FetchPartition {
            partition: wanted.partition,
            fetch_offset: wanted.offset,
            partition_max_bytes: wanted.max_bytes,
            ..Default::default()
        };
        let topic = FetchTopic { topic: wanted.topic, partitions: vec![partition], ..Default::default() };
        let request = FetchRequest {
            max_wait_ms: wanted.max_wait_ms,
            min_bytes: 1,
            max_bytes: 50 << 20,
            isolation_level: i8::from(wanted.is_committed),
            topics: vec![topic],
            ..Default::default()
        };
        self.send(FETCH, &request)
    }

    pub(crate) fn fetched(&mut self, id: i32) -> io::Result<Fetched> {
        let body = self.body::<FetchRequest<'_>>(id, FETCH)?;
        let told: FetchResponse<'_> = decode(&body, FETCH);
        assert_eq!(told.error_code, 0);
        let data: &PartitionData<'_> = &told.responses[0].partitions[0];
        Ok(Fetched {
            code: data.error_code,
            high_watermark: data.high_watermark,
            start: data.log_start_offset,
            bytes: data.records.and_then(Records::bytes).unwrap_or_default().to_vec(),
        })
    }

    pub(crate) fn fetch(&mut self, wanted: &Wanted<'_>) -> io::Result<Fetched> {
        let id = self.send_fetch(wanted)?;
        self.fetched(id)
    }

    /// The first offset that is there.
    pub(crate) fn start(&mut self, topic: &str, partition_index: i32) -> io::Result<i64> {
        let partition = ListOffsetsPartition { partition_index, timestamp: -2, ..Default::default() };
        let topic = ListOffsetsTopic { name: topic, partitions: vec![partition] };
        let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
        let id = self.send(5, &request)?;
        let body = self.body::<ListOffsetsRequest<'_>>(id, 5)?;
        let told: ListOffsetsResponse<'_> = decode(&body, 5);
        let told = &told.topics[0].partitions[0];
        assert_eq!(told.error_code, 0);
        Ok(told.offset)
    }
}

pub(crate) fn decode<'r, M: Message<'r>>(body: &'r [u8], version: i16) -> M {
    M::decode(Reader::new(body), version).unwrap()
}

/// A batch of these values, made now.
pub(crate) fn batch(producer: Option<ProducerStamp>, values: &[Vec<u8>]) -> Vec<u8> {
    let now = stratalog::Clock::system().now();
    let mut builder = BatchBuilder::new(BatchOptions { producer, ..BatchOptions::default() });
    for value in values {
        builder.push(Record::value_only(value).timestamp(now)).unwrap();
    }
    builder.finish().unwrap().to_vec()
}
