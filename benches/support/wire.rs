//! A client that does nothing but send a frame and take what comes back, and a null server: the same socket calls as ours,
//! and in place of a log what a row says.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use stratalog::{
    Timestamp,
    protocol::{
        self, Request,
        messages::{
            create_topics::{CreatableTopic, CreateTopicsRequest},
            fetch::{FetchPartition, FetchRequest, FetchTopic},
            produce::{PartitionProduceData, ProduceRequest, TopicProduceData},
        },
        wire::{Records, Writer},
    },
    record::{BatchBuilder, BatchOptions, Record},
};

/// What a broker gives its sockets by default (`socket.send.buffer.bytes` and its like), and so the null server.
const SOCKET_BUFFER: usize = 102_400;
/// Room for the largest answer that a row asks for.
const SCRAP: usize = 2 << 20;

/// What becomes of record bytes that a client gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// The kernel throws them away: the nearest to a network card that loopback has.
    Drop,
    Copy,
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    scrap: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a server");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, scrap: vec![0; SCRAP] }
    }

    pub(crate) fn send(&mut self, frame: &[u8]) {
        self.stream.write_all(frame).expect("a server that takes it");
    }

    /// Sends a frame and reads the whole answer; what it says without its length.
    pub(crate) fn ask(&mut self, frame: &[u8]) -> &[u8] {
        self.send(frame);
        self.answer()
    }

    /// A small answer.
    pub(crate) fn answer(&mut self) -> &[u8] {
        let mut have = 0;
        loop {
            have += self.stream.read(&mut self.scrap[have..]).expect("an answer");
            if let Some(length) = self.scrap[..have].first_chunk() {
                let end = 4 + u32::from_be_bytes(*length) as usize;
                if have >= end {
                    return &self.scrap[4..end];
                }
            }
        }
    }

    /// Sends a fetch and takes the answer, whose first `head` bytes are no records. How many bytes of records came.
    pub(crate) fn fetch(&mut self, frame: &[u8], head: usize, take: Take) -> usize {
        self.send(frame);
        self.stream.read_exact(&mut self.scrap[..head]).expect("an answer");
        let length = u32::from_be_bytes(*self.scrap.first_chunk().expect("a length")) as usize;
        let records = length + 4 - head;
        let flags = if take == Take::Drop { RecvFlags::TRUNC } else { RecvFlags::empty() };
        let mut left = records;
        while left > 0 {
            let most = left.min(SCRAP);
            let (_, count) = recv(&self.stream, &mut self.scrap[..most], flags).expect("records");
            assert!(count > 0, "the server closed");
            left -= count;
        }
        records
    }
}

/// A server of one connection after another that answers each frame by what `answer` does, until its clients are gone.
pub(crate) fn null_server(
    connections: usize,
    answer: impl Fn(&TcpStream, &[u8]) + Send + Clone + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for _ in 0..connections {
            let (stream, _) = listener.accept().expect("a client");
            let answer = answer.clone();
            thread::spawn(move || serve(&stream, &answer));
        }
    });
    address
}

fn serve(stream: &TcpStream, answer: &impl Fn(&TcpStream, &[u8])) {
    stream.set_nodelay(true).expect("a socket");
    sockopt::set_socket_send_buffer_size(stream, SOCKET_BUFFER).expect("a socket");
    sockopt::set_socket_recv_buffer_size(stream, SOCKET_BUFFER).expect("a socket");
    let mut buffer = vec![0; SCRAP];
    let mut have = 0;
    loop {
        match recv(stream, &mut buffer[have..], RecvFlags::empty()) {
            Ok((_, count)) if count > 0 => have += count,
            _ => return,
        }
        if let Some(length) = buffer[..have].first_chunk() {
            let end = 4 + u32::from_be_bytes(*length) as usize;
            if have >= end {
                answer(stream, &buffer[4..end]);
                have = 0;
            }
        }
    }
}

/// Sends all of it.
pub(crate) fn put(stream: &TcpStream, mut bytes: &[u8], is_more: bool) {
    let flags = if is_more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
    while !bytes.is_empty() {
        match send(stream, bytes, flags) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(_) => return,
        }
    }
}

fn frame<'a, R: Request<'a>>(version: i16, request: &R) -> Vec<u8> {
    let mut writer = Writer::new();
    protocol::write_request(&mut writer, 7, Some("bench"), version, request).expect("a request");
    writer.bytes().to_vec()
}

/// A batch of so many records of so many bytes.
pub(crate) fn batch(count: usize, record_bytes: usize) -> Vec<u8> {
    let value: Vec<u8> = (0..record_bytes).map(|at| u8::try_from(at * 7 % 251).expect("a byte")).collect();
    let record = Record::value_only(&value).timestamp(Timestamp::from_millis(1_790_000_000_000));
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..count {
        builder.push(record).expect("a record");
    }
    builder.finish().expect("a batch").to_vec()
}

/// A `Produce` request of one batch for each of so many partitions of `t`.
pub(crate) fn produce(topic: &str, partitions: i32, acks: i16, batch: &[u8]) -> Vec<u8> {
    let partition = |index| PartitionProduceData { index, records: Some(Records::Bytes(batch)) };
    let partition_data = (0..partitions).map(partition).collect();
    let topic_data = vec![TopicProduceData { name: topic, partition_data, ..Default::default() }];
    frame(9, &ProduceRequest { acks, timeout_ms: 30_000, topic_data, ..Default::default() })
}

/// A `Fetch` request for partition 0.
pub(crate) fn fetch(
    topic: &str,
    offset: i64,
    max_bytes: i32,
    (min_bytes, max_wait_ms): (i32, i32),
) -> Vec<u8> {
    let partition =
        FetchPartition { fetch_offset: offset, partition_max_bytes: max_bytes, ..Default::default() };
    let topics = vec![FetchTopic { topic, partitions: vec![partition], ..Default::default() }];
    let request = FetchRequest { max_wait_ms, min_bytes, max_bytes: 50 << 20, topics, ..Default::default() };
    frame(11, &request)
}

/// A `CreateTopics` request.
pub(crate) fn create(topic: &str, partitions: i32) -> Vec<u8> {
    let topic = CreatableTopic {
        name: topic,
        num_partitions: partitions,
        replication_factor: 1,
        ..Default::default()
    };
    frame(5, &CreateTopicsRequest { topics: vec![topic], timeout_ms: 30_000, ..Default::default() })
}
