//! Batches in: what is taken, and what is said of what is not.

use stratalog::{
    Timestamp,
    protocol::ApiKey,
    record::{BatchMut, BatchOptions, Codec, Compression, ProducerStamp, Record, TimestampType},
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
    use stratalog::protocol::{
        messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData},
        wire::Records,
    };
    let partition = PartitionProduceData { index: 0, records: Some(Records::Bytes(sent)) };
    let data = TopicProduceData { topic_id: id, partition_data: vec![partition], ..Default::default() };
    let request = ProduceRequest { acks: -1, topic_data: vec![data], ..Default::default() };
    let id = client.send(13, &request);
    client.produced(id, 13)
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
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    client.send_produce((9, 0), "absent", &batch(&[b"v"]));
    assert!(client.is_closed());
}
