//! One request of Kafka's protocol, by hand: a batch as it is, sent as a producer would send it again.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

const PRODUCE: i16 = 0;
/// The oldest with every codec; lengths in it are plain.
const VERSION: i16 = 7;
const CORRELATION: i32 = 7;
const LONGEST: Duration = Duration::from_secs(30);

/// What a broker makes of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Kafka's error code, 0 for none.
    pub(crate) error: i16,
    pub(crate) base_offset: i64,
}

/// `OUT_OF_ORDER_SEQUENCE_NUMBER`
pub(crate) const OUT_OF_ORDER: i16 = 45;
/// `INVALID_PRODUCER_EPOCH`
pub(crate) const FENCED: i16 = 47;

/// Sends one batch to one partition and waits until all replicas have it.
#[track_caller]
pub(crate) fn produce(address: &str, topic: &str, partition: usize, batch: &[u8]) -> Answer {
    let mut body = Vec::new();
    put_i16(&mut body, PRODUCE);
    put_i16(&mut body, VERSION);
    put_i32(&mut body, CORRELATION);
    put_text(&mut body, "test");
    put_i16(&mut body, -1); // no transactional id
    put_i16(&mut body, -1); // acknowledged by all
    put_i32(&mut body, i32::try_from(LONGEST.as_millis()).unwrap());
    put_i32(&mut body, 1);
    put_text(&mut body, topic);
    put_i32(&mut body, 1);
    put_i32(&mut body, i32::try_from(partition).unwrap());
    put_i32(&mut body, i32::try_from(batch.len()).unwrap());
    // Where it comes to lie is the broker's to say: a producer leaves offset 0 and no leader epoch there.
    body.extend_from_slice(&0_i64.to_be_bytes());
    body.extend_from_slice(&batch[8..12]);
    put_i32(&mut body, -1);
    body.extend_from_slice(&batch[16..]);

    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(LONGEST)).unwrap();
    socket.write_all(&i32::try_from(body.len()).unwrap().to_be_bytes()).unwrap();
    socket.write_all(&body).unwrap();
    let mut length = [0; 4];
    socket.read_exact(&mut length).unwrap();
    let mut reply = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
    socket.read_exact(&mut reply).unwrap();

    let mut rest = reply.as_slice();
    assert_eq!(i32::from_be_bytes(take(&mut rest)), CORRELATION);
    assert_eq!(i32::from_be_bytes(take(&mut rest)), 1, "topics");
    let name = usize::try_from(i16::from_be_bytes(take(&mut rest))).unwrap();
    rest = &rest[name..];
    assert_eq!(i32::from_be_bytes(take(&mut rest)), 1, "partitions");
    assert_eq!(usize::try_from(i32::from_be_bytes(take(&mut rest))).unwrap(), partition);
    Answer { error: i16::from_be_bytes(take(&mut rest)), base_offset: i64::from_be_bytes(take(&mut rest)) }
}

fn put_i16(into: &mut Vec<u8>, value: i16) {
    into.extend_from_slice(&value.to_be_bytes());
}

fn put_i32(into: &mut Vec<u8>, value: i32) {
    into.extend_from_slice(&value.to_be_bytes());
}

fn put_text(into: &mut Vec<u8>, text: &str) {
    put_i16(into, i16::try_from(text.len()).unwrap());
    into.extend_from_slice(text.as_bytes());
}

fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (head, tail) = rest.split_first_chunk().unwrap();
    *rest = tail;
    *head
}
