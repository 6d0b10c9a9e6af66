//! Batches byte for byte as Kafka's format has them.

use super::*;

const TWO_RECORDS: &str = "0000000000000005 00000049 00000003 02 902eeedd 0000 00000001 00000000000003e8
    00000000000003f2 ffffffffffffffff ffff ffffffff 00000002
    | 10 00 00 00 02 6b 02 76 00 | 1c 00 14 02 01 0a 68656c6c6f 02 02 68 01";
const COMMIT: &str = "0000000000000007 00000042 00000000 02 74452339 0030 00000000 00000000000003e8
    00000000000003e8 000000000000002a 0001 ffffffff 00000001
    | 20 00 00 00 08 00000001 0c 000000000009 00";

fn two_records() -> [Record<'static>; 2] {
    [
        Record::new().key(b"k").value(b"v").timestamp(at(1000)),
        Record::value_only(b"hello").timestamp(at(1010)).headers(&[Header { key: "h", value: None }]),
    ]
}

fn two_records_options() -> BatchOptions {
    BatchOptions { base_offset: offset(5), leader_epoch: 3, ..BatchOptions::default() }
}

#[test]
fn two_records_are_written_as_kafka_writes_them() {
    assert_eq!(encoded(&two_records(), &two_records_options()), hex(TWO_RECORDS));
    assert_eq!(built(&two_records(), &two_records_options()), hex(TWO_RECORDS));
}

#[test]
fn two_records_are_read_back() {
    let bytes = hex(TWO_RECORDS);
    let batch = BatchRef::parse(&bytes).unwrap();
    batch.check_crc().unwrap();
    batch.validate_for_append().unwrap();
    assert_eq!(batch.size_bytes(), 85);
    assert_eq!((batch.base_offset(), batch.last_offset()), (offset(5), offset(6)));
    assert_eq!(batch.next_offset(), Some(offset(7)));
    assert_eq!((batch.leader_epoch(), batch.attributes(), batch.codec()), (3, 0, Ok(Codec::None)));
    assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (at(1000), at(1010)));
    assert_eq!((batch.producer_id(), batch.producer_epoch()), (-1, -1));
    assert_eq!((batch.base_sequence(), batch.last_sequence(), batch.record_count()), (-1, -1, 2));
    assert_eq!(batch.header().to_bytes()[..], bytes[..HEADER_BYTES]);

    let mut scratch = Scratch::new();
    let records: Vec<_> = batch.records(&mut scratch).unwrap().map(Result::unwrap).collect();
    let [first, second] = records[..] else { panic!("{records:?}") };
    assert_eq!((first.offset(), first.timestamp()), (offset(5), at(1000)));
    assert_eq!((first.key(), first.value(), first.header_count()), (Some(&b"k"[..]), Some(&b"v"[..]), 0));
    assert_eq!((second.offset(), second.timestamp(), second.offset_delta()), (offset(6), at(1010), 1));
    assert_eq!((second.key(), second.value()), (None, Some(&b"hello"[..])));
    let headers: Vec<_> = second.headers().collect();
    assert_eq!(headers, [RecordHeaderRef { key: b"h", value: None }]);
    assert_eq!(headers[0].key_str(), Some("h"));

    let owned = OwnedRecord::new(&second, batch.header());
    assert_eq!((owned.offset, owned.timestamp, owned.leader_epoch), (offset(6), at(1010), 3));
    assert_eq!((owned.key, owned.value.as_deref()), (None, Some(&b"hello"[..])));
    assert_eq!(owned.headers, [("h".into(), None)]);
    assert!(!owned.is_control);
}

#[test]
fn a_commit_marker_goes_both_ways() {
    let marker = EndTxnMarker { coordinator_epoch: 9 };
    let bytes = end_txn_marker(offset(7), 0, (42, 1), true, marker, at(1000));
    assert_eq!(bytes, hex(COMMIT));

    let batch = BatchRef::parse(&bytes).unwrap();
    assert!(batch.is_control() && batch.is_transactional());
    assert_eq!(batch.validate_for_append(), Err(BatchError::ControlBatch));
    batch.validate_for_preserve().unwrap();
    let mut scratch = Scratch::new();
    let record = batch.records(&mut scratch).unwrap().next().unwrap().unwrap();
    assert_eq!(control_type(record.key().unwrap()), Ok(ControlType::Commit));
    assert_eq!(EndTxnMarker::parse(record.value().unwrap()), Ok(marker));
    assert!(OwnedRecord::new(&record, batch.header()).is_control);
}

#[test]
fn one_bit_less_is_another_batch() {
    let mut bytes = hex(TWO_RECORDS);
    bytes[84] ^= 1;
    let batch = BatchRef::parse(&bytes).unwrap();
    let Err(BatchError::CrcMismatch { stored, computed }) = batch.check_crc() else { panic!("not noticed") };
    assert_eq!(stored, 0x902e_eedd);
    assert_eq!(computed, batch.computed_crc());
    assert!(batch.validate_for_append().is_err() && batch.validate_for_preserve().is_err());
}
