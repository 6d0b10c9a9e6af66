//! Batches in: what is taken, and what is said of what is not.

use std::{
    io::{Read, Write},
    thread,
    time::Duration,
};

use stratalog::{
    Timestamp,
    protocol::{
        ApiKey,
        messages::{
            metadata::{MetadataRequest, MetadataRequestTopic},
            produce::{PartitionProduceData, ProduceRequest, TopicProduceData},
        },
        wire::{Records, Writer},
    },
    record::{
        BatchMut, BatchOptions, Batches, Codec, Compression, Header, ProducerStamp, Record, Scratch,
        TimestampType,
    },
    server::{Layers, Server},
};

use crate::client::{Client, Wanted, batch, batch_with, now};

fn server_with(dir: &std::path::Path, settings: &[&str]) -> Server {
    let mut layers = Layers::new();
    layers.flag("--dir", "log.dirs", dir.to_str().unwrap());
    layers.flag("--listen", "listeners", "PLAINTEXT://127.0.0.1:0");
    for setting in settings {
        layers.set_override(setting);
    }
    Server::bind(layers.resolve().unwrap()).unwrap()
}

#[test]
fn every_version_and_codec_is_taken_and_read_back() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    let id = client.topic("t");
    let mut end = 0;
    for version in 3..=ApiKey::Produce.versions().last {
        for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            let options = BatchOptions { compression: Compression::new(codec), ..Default::default() };
            let value = format!("{version} {codec}").repeat(20);
            let sent = batch_with(options, &[Record::value_only(value.as_bytes()), Record::new().key(b"")]);
            let told = if version >= 13 {
                produce_by_id(&mut client, id, &sent)
            } else {
                let id = client.send_produce((version, 1), "t", &sent);
                client.produced(id, version)
            };
            if codec == Codec::Zstd && version < 7 {
                assert_eq!((told.code, told.base_offset), (76, -1));
                continue;
            }
            assert_eq!((told.code, told.base_offset, told.append_time), (0, end, -1), "{version} {codec}");
            let read = client.fetch(&Wanted::new("t", end));
            assert_eq!(read.records(), [(end, value.into_bytes()), (end + 1, Vec::new())]);
            end += 2;
        }
    }
}

fn produce_by_id(
    client: &mut Client,
    id: stratalog::protocol::wire::Uuid,
    sent: &[u8],
) -> crate::client::Produced {
    let partition = PartitionProduceData { index: 0, records: Some(Records::Bytes(sent)) };
    let data = TopicProduceData { topic_id: id, partition_data: vec![partition], ..Default::default() };
    let request = ProduceRequest { acks: -1, topic_data: vec![data], ..Default::default() };
    let id = client.send(13, &request);
    client.produced(id, 13)
}

/// Each codec into a topic of each: the records are the same, the batch is packed as its topic says.
#[test]
fn a_topic_may_say_how_its_records_are_compressed() {
    let codecs = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    let value = "some words that can be packed ".repeat(40);
    let headers = [Header { key: "h", value: Some(b"v") }, Header { key: "", value: None }];
    let time = Timestamp::from_millis(now().millis() - 1000);
    for (wanted, name) in codecs.into_iter().zip(["uncompressed", "gzip", "snappy", "lz4", "zstd"]) {
        let temp = tempfile::tempdir().unwrap();
        let server = server_with(temp.path(), &[&format!("compression.type={name}")]);
        let mut client = Client::new(server.address());
        client.topic("t");
        let mut end = 0;
        for codec in codecs {
            let producer =
                Some(ProducerStamp { id: 7, epoch: 1, base_sequence: i32::try_from(end).unwrap() });
            let options =
                BatchOptions { compression: Compression::new(codec), producer, ..Default::default() };
            let records = [
                Record::value_only(value.as_bytes()).timestamp(time).headers(&headers),
                Record::new().key(b"k").timestamp(now()),
            ];
            let sent = batch_with(options, &records);
            let told = client.produce("t", &sent);
            assert_eq!((told.code, told.base_offset), (0, end), "{codec} into {name}");
            let read = client.fetch(&Wanted::new("t", end));
            let batch = Batches::new(&read.bytes).next().unwrap().unwrap();
            assert_eq!(batch.codec(), Ok(wanted), "{codec} into {name}");
            batch.check_crc().unwrap();
            assert_eq!((batch.producer_id(), batch.producer_epoch()), (7, 1));
            assert_eq!(i64::from(batch.base_sequence()), end);
            let mut scratch = Scratch::new();
            let records: Vec<_> = batch.records(&mut scratch).unwrap().map(Result::unwrap).collect();
            assert_eq!(records.len(), 2);
            assert_eq!((records[0].value(), records[0].timestamp()), (Some(value.as_bytes()), time));
            let told: Vec<_> = records[0].headers().map(|header| (header.key_str(), header.value)).collect();
            assert_eq!(told, [(Some("h"), Some(&b"v"[..])), (Some(""), None)]);
            assert_eq!((records[1].key(), records[1].value()), (Some(&b"k"[..]), None));
            // What has its codec already is not touched.
            if codec == wanted {
                assert_eq!(read.bytes.len(), sent.len());
            }
            // Sent again it is known.
            assert_eq!(client.produce("t", &sent).base_offset, end);
            end += 2;
        }
    }
}

#[test]
fn a_level_is_gone_by_and_what_unpacks_to_too_much_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let server = server_with(temp.path(), &["compression.type=gzip", "compression.gzip.level=1"]);
    let mut client = Client::new(server.address());
    client.topic("t");
    let value: Vec<u8> = (0..60_000_u32).flat_map(|n| format!("{} ", n * n % 9973).into_bytes()).collect();
    let sent = batch(&[&value]);
    let packed = |level| {
        let compression = Compression::with_level(Codec::Gzip, level).unwrap();
        batch_with(BatchOptions { compression, ..Default::default() }, &[Record::value_only(&value)]).len()
    };
    assert!(packed(9) < packed(1));
    assert_eq!(client.produce("t", &sent).code, 0);
    assert_eq!(client.fetch(&Wanted::new("t", 0)).bytes.len(), packed(1));
    drop(client);
    drop(server);
    let server = server_with(temp.path(), &["compression.type=uncompressed"]);
    let mut client = Client::new(server.address());
    let zstd = BatchOptions { compression: Compression::new(Codec::Zstd), ..Default::default() };
    let records = vec![Record::value_only(&[0; 1000]); 40_000];
    let bomb = batch_with(zstd, &records);
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    assert_eq!(client.produce("t", &bomb).code, 10);
    let huge = batch_with(zstd, &[Record::value_only(&vec![0; 129 << 20])]);
    assert!(huge.len() < 1 << 20, "{}", huge.len());
    assert_eq!(client.produce("t", &huge).code, 10);
    assert_eq!(client.produce("t", &sent).base_offset, 1);
}

fn produce_frame(batch: &[u8]) -> Vec<u8> {
    let partition = PartitionProduceData { index: 0, records: Some(Records::Bytes(batch)) };
    let data = TopicProduceData { name: "t", partition_data: vec![partition], ..Default::default() };
    let request = ProduceRequest { acks: -1, topic_data: vec![data], ..Default::default() };
    let mut writer = Writer::new();
    stratalog::protocol::write_request(&mut writer, 1, None, 9, &request).unwrap();
    writer.bytes().to_vec()
}

/// While one request has all the room that there is, others wait for it; small ones do not.
#[test]
fn large_requests_have_a_bound_over_all_connections() {
    let temp = tempfile::tempdir().unwrap();
    let settings = ["queued.max.request.bytes=300000", "stratalog.other.request.max.bytes=2000"];
    let server = server_with(temp.path(), &settings);
    let mut clients: Vec<_> = (0..3).map(|_| Client::new(server.address())).collect();
    clients[0].topic("t");
    let small = batch(&[b"small"]);
    let request = produce_frame(&batch(&[&vec![7; 900_000]]));
    // Of so much the system's buffers hold a part: the server has begun with it.
    rustix::net::sockopt::set_socket_send_buffer_size(&clients[0].stream, 16 << 10).unwrap();
    let (first, second) = request.split_at(800_000);
    clients[0].stream.write_all(first).unwrap();
    let waiting = {
        let (stream, request) = (clients[1].stream.try_clone().unwrap(), request.clone());
        thread::spawn(move || (&stream).write_all(&request).unwrap())
    };
    assert_eq!(clients[2].produce("t", &small).base_offset, 0);
    let patience = clients[1].stream.read_timeout().unwrap();
    clients[1].stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(clients[1].stream.peek(&mut [0]).is_err(), "answered before there was room for it");
    clients[1].stream.set_read_timeout(patience).unwrap();
    clients[0].stream.write_all(second).unwrap();
    assert_eq!(clients[0].produced(1, 9).code, 0);
    waiting.join().unwrap();
    assert_eq!(clients[1].produced(1, 9).code, 0);
    assert_eq!(clients[2].produce("t", &small).base_offset, 3);
    // What is no Produce has its own bound.
    let name = "x".repeat(200);
    let topic = MetadataRequestTopic { name: Some(&name), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![topic; 20]), ..Default::default() };
    clients[2].send(9, &request);
    assert!(!matches!(clients[2].stream.read(&mut [0]), Ok(1..)));
}

#[test]
fn each_fault_has_its_code() {
    let temp = tempfile::tempdir().unwrap();
    let server = server_with(temp.path(), &["message.max.bytes=2000"]);
    let mut client = Client::new(server.address());
    client.topic("t");
    let good = batch(&[b"value"]);
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let twice = [good.clone(), good.clone()].concat();
    let mut elsewhere = good.clone();
    BatchMut::parse(&mut elsewhere).unwrap().set_base_offset(stratalog::Offset::new(5).unwrap()).unwrap();
    let large = batch(&[&[7; 3000]]);
    let future = Timestamp::from_millis(now().millis() + 100 * 86_400_000);
    let records = [Record::value_only(b"a"), Record::value_only(b"b").timestamp(future)];
    let untimely = batch_with(BatchOptions::default(), &records);
    let transactional = BatchOptions {
        producer: Some(ProducerStamp { id: 1, epoch: 0, base_sequence: 0 }),
        transactional: true,
        ..Default::default()
    };
    let transactional = batch_with(transactional, &[Record::value_only(b"a")]);
    let bomb = BatchOptions { compression: Compression::new(Codec::Zstd), ..Default::default() };
    let bomb = batch_with(bomb, &[Record::value_only(&vec![0; 40 << 20])]);
    assert!(bomb.len() < 8000, "{}", bomb.len());
    for (name, topic, sent, code) in [
        ("no such topic", "absent", &good, 3),
        ("nothing", "t", &Vec::new(), 87),
        ("half a batch", "t", &good[..40].to_vec(), 87),
        ("two batches", "t", &twice, 87),
        ("not at offset 0", "t", &elsewhere, 87),
        ("too large", "t", &large, 10),
        ("damaged", "t", &damaged, 2),
        ("in the future", "t", &untimely, 32),
        ("transactional", "t", &transactional, 48),
    ] {
        let told = client.produce(topic, sent);
        assert_eq!((told.code, told.base_offset), (code, -1), "{name}");
        assert_eq!(told.bad_records, if code == 32 { vec![1] } else { Vec::new() }, "{name}");
    }
    let id = client.send_produce((9, 5), "t", &good);
    assert_eq!(client.produced(id, 9).code, 21);
    // Nothing of all that was appended.
    assert_eq!(client.produce("t", &good).base_offset, 0);
    drop(server);
    let wide = server_with(temp.path(), &["message.max.bytes=1000000"]);
    let mut client = Client::new(wide.address());
    let told = client.produce("t", &bomb);
    assert!(matches!(told.code, 0 | 10), "{told:?}");
}

#[test]
fn a_compacted_topic_wants_keys_and_the_log_stamps_where_it_is_to() {
    let temp = tempfile::tempdir().unwrap();
    let server = server_with(
        temp.path(),
        &["log.cleanup.policy=compact", "log.message.timestamp.type=LogAppendTime", "compression.type=lz4"],
    );
    let mut client = Client::new(server.address());
    client.topic("t");
    let mixed = [Record::new().key(b"k"), Record::value_only(b"a"), Record::value_only(b"b")];
    let told = client.produce("t", &batch_with(BatchOptions::default(), &mixed));
    assert_eq!((told.code, told.bad_records), (87, vec![1, 2]));
    let keyed = [Record::new().key(b"k").value(&[b'v'; 500])];
    let before = now().millis();
    let told = client.produce("t", &batch_with(BatchOptions::default(), &keyed));
    assert!(told.code == 0 && told.append_time >= before, "{told:?}");
    let read = client.fetch(&Wanted::new("t", 0));
    let stored = stratalog::record::BatchRef::parse(&read.bytes).unwrap();
    assert_eq!(stored.codec(), Ok(Codec::Lz4));
    assert_eq!(stored.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(stored.max_timestamp().millis(), told.append_time);
    assert_eq!(read.records(), [(0, vec![b'v'; 500])]);
}

#[test]
fn what_a_producer_sends_again_is_not_appended_again() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    let numbered = |base_sequence| {
        let producer = Some(ProducerStamp { id: 7, epoch: 0, base_sequence });
        batch_with(BatchOptions { producer, ..Default::default() }, &[Record::value_only(b"v")])
    };
    assert_eq!(client.produce("t", &numbered(0)).base_offset, 0);
    assert_eq!(client.produce("t", &numbered(1)).base_offset, 1);
    let again = client.produce("t", &numbered(0));
    assert_eq!((again.code, again.base_offset), (0, 0));
    assert_eq!(client.produce("t", &numbered(5)).code, 45);
    assert_eq!(client.list_offset(5, "t", -1).2, 2);
}

#[test]
fn who_wants_no_answer_gets_none_and_is_cut_off_at_an_error() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    for _ in 0..3 {
        client.send_produce((9, 0), "t", &batch(&[b"v"]));
    }
    // The next answer is that of the next request; what was sent before it is visible once it is synced.
    while client.list_offset(5, "t", -1).2 < 3 {
        thread::sleep(Duration::from_millis(1));
    }
    client.send_produce((9, 0), "absent", &batch(&[b"v"]));
    assert!(client.is_closed());
}
