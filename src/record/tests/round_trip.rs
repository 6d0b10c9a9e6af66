//! What is written is read back, by both ways of writing and every codec.

use super::*;

fn check(made: &[Made], options: &BatchOptions, bytes: &[u8]) {
    let batch = BatchRef::parse(bytes).unwrap();
    assert_eq!(batch.as_bytes(), bytes);
    batch.validate_for_append().unwrap();
    batch.validate_for_preserve().unwrap();
    assert_eq!(batch.codec(), Ok(options.compression.codec()));
    assert_eq!((batch.base_offset(), batch.leader_epoch()), (options.base_offset, options.leader_epoch));
    assert_eq!(
        (batch.timestamp_type(), batch.is_transactional()),
        (options.timestamp_type, options.transactional)
    );
    let stamp = options.producer.map_or((-1, -1, -1), |p| (p.id, p.epoch, p.base_sequence));
    assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.base_sequence()), stamp);
    let times: Vec<_> = made.iter().map(|made| made.timestamp.map_or(options.append_time, at)).collect();
    let by_log = options.timestamp_type == TimestampType::LogAppendTime;
    assert_eq!(batch.base_timestamp(), times[0]);
    assert_eq!(
        batch.max_timestamp(),
        if by_log { options.append_time } else { *times.iter().max().unwrap() }
    );

    let mut scratch = Scratch::new();
    let records: Vec<_> = batch.records(&mut scratch).unwrap().map(Result::unwrap).collect();
    assert_eq!(records.len(), made.len());
    for (index, (record, made)) in records.iter().zip(made).enumerate() {
        assert_eq!(record.offset(), options.base_offset.checked_add(index as u64).unwrap());
        assert_eq!(record.timestamp(), if by_log { options.append_time } else { times[index] });
        assert_eq!((record.key(), record.value()), (made.key.as_deref(), made.value.as_deref()));
        let headers: Vec<_> = record.headers().map(|h| (h.key_str().unwrap(), h.value)).collect();
        let expected: Vec<_> =
            made.headers.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        assert_eq!(headers, expected);
        let owned = OwnedRecord::new(record, batch.header());
        assert_eq!((owned.key.as_deref(), owned.value.as_deref()), (record.key(), record.value()));
        assert_eq!(owned.headers.len(), headers.len());
        for ((key, value), header) in owned.headers.iter().zip(record.headers()) {
            assert_eq!((key.as_ref(), value.as_deref()), (header.key, header.value));
        }
        assert_eq!(owned.timestamp_type, options.timestamp_type);
    }
}

proptest! {
    #[test]
    fn both_ways_of_writing_agree_and_are_read_back(
        made in proptest::collection::vec(made(), 1..40),
        options in options(),
    ) {
        with_records(&made, |records| {
            let bytes = encoded(records, &options);
            assert!(batch_size_bound(records) >= bytes.len() as u64);
            check(&made, &options, &bytes);
            assert_eq!(built(records, &options), bytes);
        });
    }

    #[test]
    fn every_codec_gives_the_records_back(
        made in proptest::collection::vec(made(), 1..20),
        options in options(),
    ) {
        with_records(&made, |records| {
            for codec in available() {
                let options = BatchOptions { compression: codec.into(), ..options };
                check(&made, &options, &built(records, &options));
            }
        });
    }

    #[test]
    fn room_for_one_byte_less_is_refused(made in proptest::collection::vec(made(), 1..5), options in options()) {
        with_records(&made, |records| {
            let size = usize::try_from(batch_size(records, &options)).unwrap();
            for room in [0, HEADER_BYTES, size - 1] {
                let error = encode_batch(records, &options, &mut vec![0; room]).unwrap_err();
                assert_eq!(error, BatchError::NoRoom { available_bytes: room as u64 });
            }
            let mut longer = vec![7; size + 9];
            let header = encode_batch(records, &options, &mut longer).unwrap();
            assert_eq!(header.size_bytes() as usize, size);
            assert_eq!(longer[size..], [7; 9]);
        });
    }
}

/// Each length of key and value around the lengths at which a varint grows, as last record and with others after it.
#[test]
fn records_of_every_length_are_written_in_their_room() {
    let long = vec![0x5A; 17_000];
    let lengths = || (0..70).chain(8_180..8_200).chain([16_383, 16_384, 17_000]);
    let times = [0, 63, 64, -65, 8_191, 8_192, 1 << 27, 1 << 40];
    for (length, time) in lengths().zip(times.iter().cycle()) {
        let plain = Record::value_only(&long[..length]);
        let keyed = plain.key(&long[..length % 67]);
        let key_only = Record::tombstone(&long[..length]);
        for record in [plain, keyed, key_only, key_only.value(b""), plain.key(b"")] {
            let records = [record.timestamp(at(0)), record.timestamp(at(*time)), record.timestamp(at(1))];
            for count in 1..=3 {
                let options = BatchOptions::default();
                let bytes = encoded(&records[..count], &options);
                assert_eq!(built(&records[..count], &options), bytes);
                let mut scratch = Scratch::new();
                let read: Vec<_> = BatchRef::parse(&bytes)
                    .unwrap()
                    .records(&mut scratch)
                    .unwrap()
                    .map(Result::unwrap)
                    .collect();
                assert_eq!(read.len(), count);
                for (read, record) in read.iter().zip(&records) {
                    assert_eq!((read.key(), read.value()), (record.key, record.value));
                    assert_eq!(Some(read.timestamp()), record.timestamp);
                }
                let mut longer = vec![0xEE; bytes.len() + 64];
                encode_batch(&records[..count], &options, &mut longer).unwrap();
                assert!(longer.starts_with(&bytes), "room after it changes nothing");
                assert!(longer[bytes.len()..].iter().all(|byte| *byte == 0xEE), "and is left as it was");
            }
        }
    }
}

#[test]
fn a_builder_is_used_again() {
    let mut builder = BatchBuilder::new(options_with(Codec::None));
    assert_eq!(builder.finish(), Err(BatchError::NoRecords));
    let long = vec![1u8; 3000];
    builder.push(Record::value_only(&long).timestamp(at(50))).unwrap();
    builder.push(Record::value_only(b"x").timestamp(at(40))).unwrap();
    let first = builder.finish().unwrap().to_vec();
    assert_eq!(builder.count(), 0);
    assert_eq!(builder.len_bytes(), HEADER_BYTES as u64);
    builder.set_base_offset(offset(102));
    builder.push(Record::value_only(b"y").timestamp(at(7))).unwrap();
    assert_eq!(builder.count(), 1);
    let second = builder.finish().unwrap().to_vec();
    let expected = BatchOptions { base_offset: offset(102), ..options_with(Codec::None) };
    assert_eq!(second, encoded(&[Record::value_only(b"y").timestamp(at(7))], &expected));
    let first = BatchRef::parse(&first).unwrap();
    assert_eq!((first.base_timestamp(), first.max_timestamp()), (at(50), at(50)));

    builder.push(Record::value_only(b"forgotten")).unwrap();
    builder.reset(BatchOptions { compression: available().last().unwrap().into(), ..expected });
    assert!(builder.is_empty());
    builder.push(Record::value_only(b"y").timestamp(at(7))).unwrap();
    let third = builder.finish().unwrap();
    let mut scratch = Scratch::new();
    let records: Vec<_> = BatchRef::parse(third).unwrap().records(&mut scratch).unwrap().collect();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].as_ref().unwrap().value(), Some(&b"y"[..]));
}

#[test]
fn a_builder_says_when_the_next_record_is_too_much() {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let record = Record::value_only(&[0; 100]);
    assert!(!builder.is_full(&record, 1), "the first record always fits");
    builder.push(record).unwrap();
    let with_two = builder.size_with(&record);
    assert!(!builder.is_full(&record, with_two));
    assert!(builder.is_full(&record, with_two - 1));
}

#[test]
fn offsets_past_the_largest_are_refused() {
    let options = BatchOptions { base_offset: Offset::MAX, ..BatchOptions::default() };
    let records = [Record::value_only(b"a"); 2];
    let refused = BatchError::BadOffsets { base_offset: i64::MAX, last_offset_delta: 1 };
    assert_eq!(encode_batch(&records, &options, &mut [0; 200]), Err(refused.clone()));
    let mut builder = BatchBuilder::new(options);
    builder.push(records[0]).unwrap();
    builder.push(records[1]).unwrap();
    assert_eq!(builder.finish(), Err(refused));
    assert_eq!(builder.count(), 2, "the records are still there");
    builder.set_base_offset(offset(3));
    assert_eq!(BatchRef::parse(builder.finish().unwrap()).unwrap().last_offset(), offset(4));
    assert_eq!(encode_batch(&[], &options, &mut [0; 200]), Err(BatchError::NoRecords));
}
