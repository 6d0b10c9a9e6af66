//! Producers at work while the server is killed and started again, over and over.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use stratalog::protocol::{
    self, ApiKey,
    messages::produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData},
    wire::{Records, Writer},
};

use crate::{
    client::{Client, Wanted, batch, decode},
    serve::serve,
};

const PRODUCERS: usize = 8;
const KILLS: usize = 4;

/// The offset that was acknowledged; `None` where nothing was, whatever became of the record.
fn produce(stream: &mut TcpStream, value: &str) -> Option<i64> {
    let batch = batch(&[value.as_bytes()]);
    let partition = PartitionProduceData { index: 0, records: Some(Records::Bytes(&batch)) };
    let data = TopicProduceData { name: "t", partition_data: vec![partition], ..Default::default() };
    let request = ProduceRequest { acks: -1, topic_data: vec![data], ..Default::default() };
    let mut writer = Writer::new();
    protocol::write_request(&mut writer, 1, None, 9, &request).unwrap();
    stream.write_all(writer.bytes()).ok()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    stream.read_exact(&mut frame).ok()?;
    let (_, body) = protocol::read_response_header(&frame, ApiKey::Produce, 9).unwrap();
    let told: ProduceResponse<'_> = decode(body.rest(), 9);
    let told = &told.responses[0].partition_responses[0];
    (told.error_code == 0).then_some(told.base_offset)
}

/// Sends values one by one, each once, until it is over. What was acknowledged, in order.
fn work(name: usize, address: &Mutex<SocketAddr>, is_over: &AtomicBool) -> Vec<(i64, String)> {
    let mut acknowledged = Vec::new();
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        let to = *address.lock().unwrap();
        let Ok(mut stream) = TcpStream::connect(to) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        while !is_over.load(Ordering::Relaxed) {
            let value = format!("{name} {number:08}");
            number += 1;
            match produce(&mut stream, &value) {
                Some(offset) => acknowledged.push((offset, value)),
                None => break,
            }
        }
    }
    acknowledged
}

#[test]
fn nothing_acknowledged_is_lost_doubled_or_out_of_order() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let mut served = serve(&[], &dir, &[]);
    Client::new(served.address).topic("t");
    let address = Mutex::new(served.address);
    let is_over = AtomicBool::new(false);
    let acknowledged: Vec<Vec<(i64, String)>> = thread::scope(|scope| {
        let (address, is_over) = (&address, &is_over);
        let producers: Vec<_> =
            (0..PRODUCERS).map(|name| scope.spawn(move || work(name, address, is_over))).collect();
        for _ in 0..KILLS {
            thread::sleep(Duration::from_millis(300));
            served.kill();
            served = serve(&[], &dir, &[]);
            *address.lock().unwrap() = served.address;
        }
        thread::sleep(Duration::from_millis(100));
        is_over.store(true, Ordering::Relaxed);
        producers.into_iter().map(|producer| producer.join().unwrap()).collect()
    });
    let mut client = Client::new(served.address);
    let mut stored: Vec<(i64, Vec<u8>)> = Vec::new();
    loop {
        let next = stored.last().map_or(0, |(offset, _)| offset + 1);
        let read = client.fetch(&Wanted::new("t", next));
        assert_eq!(read.code, 0);
        let records: Vec<_> = read.records().into_iter().filter(|(offset, _)| *offset >= next).collect();
        if records.is_empty() {
            break;
        }
        stored.extend(records);
    }
    // Offsets without gaps; each value once, and each producer's in the order in which it sent them.
    let mut newest = [const { String::new() }; PRODUCERS];
    for (at, (offset, value)) in (0..).zip(&stored) {
        assert_eq!(*offset, at);
        let value = String::from_utf8(value.clone()).unwrap();
        let name: usize = value.split(' ').next().unwrap().parse().unwrap();
        assert!(newest[name] < value, "{value} behind {}", newest[name]);
        newest[name] = value;
    }
    let mut count = 0;
    for (offset, value) in acknowledged.iter().flatten() {
        let found = usize::try_from(*offset).ok().and_then(|at| stored.get(at));
        assert_eq!(found.map(|(_, value)| value.as_slice()), Some(value.as_bytes()), "{offset}");
        count += 1;
    }
    assert!(count > 20 && count <= stored.len(), "{count} of {}", stored.len());
}
