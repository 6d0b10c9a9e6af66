//! Bytes that mean harm: no panic, no allocation out of nowhere, no record that is not there.

use super::*;

/// Does everything that reads to `bytes`; how many records came out whole.
fn read_all(bytes: &[u8]) -> usize {
    let mut scratch = Scratch::with_limit(1 << 20);
    let mut whole = 0;
    let _ = probe(bytes);
    let _ = BatchHeader::parse(bytes);
    for batch in Batches::new(bytes).flatten() {
        let _ = (batch.validate_for_append(), batch.validate_for_preserve(), batch.delete_horizon());
        let _ = (batch.last_sequence(), batch.next_offset(), batch.header().to_bytes());
        let Ok(records) = batch.records(&mut scratch) else { continue };
        assert!(records.size_hint().1.unwrap() <= batch.payload().len().max(1 << 20));
        let mut failed = false;
        for record in records {
            assert!(!failed, "nothing comes after an error");
            let Ok(record) = record else {
                failed = true;
                continue;
            };
            whole += 1;
            assert!(record.offset() >= batch.base_offset() && record.offset() <= batch.last_offset());
            assert_eq!(record.headers().count(), record.header_count());
            let owned = OwnedRecord::new(&record, batch.header());
            assert_eq!(owned.key.as_deref(), record.key());
            if let Some(key) = record.key() {
                let _ = control_type(key);
            }
            if let Some(value) = record.value() {
                let _ = EndTxnMarker::parse(value);
            }
        }
    }
    let mut copy = bytes.to_vec();
    if let Ok(mut batch) = BatchMut::parse(&mut copy) {
        let _ = batch.set_base_offset(Offset::MAX);
        batch.set_log_append_time(at(i64::MIN));
        batch.set_leader_epoch(i32::MIN);
        assert!(BatchRef::parse(&copy).unwrap().check_crc().is_ok());
    }
    whole
}

fn some_records() -> Vec<Made> {
    let header = |key: &str, value: Option<&[u8]>| (key.to_owned(), value.map(<[u8]>::to_vec));
    let made = |timestamp, key: Option<&[u8]>, value: Option<&[u8]>, headers| Made {
        timestamp: Some(timestamp),
        key: key.map(<[u8]>::to_vec),
        value: value.map(<[u8]>::to_vec),
        headers,
    };
    vec![
        made(1000, Some(b"key"), Some(&[7; 90]), vec![header("a", Some(b"b")), header("", None)]),
        made(900, None, None, vec![]),
        made(i64::MAX, Some(b""), Some(b""), vec![header("c", Some(b""))]),
    ]
}

#[test]
fn every_cut_of_a_batch_is_noticed() {
    for codec in available() {
        let whole = with_records(&some_records(), |records| built(records, &options_with(codec)));
        for cut in 0..whole.len() {
            assert!(BatchRef::parse(&whole[..cut]).is_err());
            assert_eq!(read_all(&whole[..cut]), 0);
        }
        for cut in HEADER_BYTES..whole.len() {
            let mut mended = whole[..cut].to_vec();
            mend(&mut mended);
            let batch = BatchRef::parse(&mended).unwrap();
            batch.check_crc().unwrap();
            assert!(batch.check_records(&mut Scratch::new()).is_err(), "{codec} cut at {cut}");
            read_all(&mended);
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    for codec in available() {
        let whole = with_records(&some_records(), |records| built(records, &options_with(codec)));
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            read_all(&flipped);
            if bit / 8 >= CRC_AT {
                assert!(BatchRef::parse(&flipped).and_then(|batch| batch.check_crc()).is_err(), "bit {bit}");
            }
            mend(&mut flipped);
            read_all(&flipped);
        }
    }
}

#[test]
fn every_byte_of_a_record_set_to_anything_is_harmless() {
    let whole = with_records(&some_records(), |records| encoded(records, &BatchOptions::default()));
    for place in HEADER_BYTES..whole.len() {
        for byte in 0..=255 {
            let mut changed = whole.clone();
            changed[place] = byte;
            mend(&mut changed);
            read_all(&changed);
        }
    }
}

/// A batch of one record with these bytes for it.
fn batch_of(record: &[u8]) -> Vec<u8> {
    let mut batch = encoded(&[Record::new()], &BatchOptions::default());
    batch.truncate(HEADER_BYTES);
    batch.extend(record);
    mend(&mut batch);
    batch
}

#[test]
fn malformed_records_are_refused() {
    let walk = |record: &[u8]| BatchRef::parse(&batch_of(record)).unwrap().check_records(&mut Scratch::new());
    assert_eq!(walk(&[12, 0, 0, 0, 1, 1, 0]), Ok(()), "the smallest record there is");
    assert_eq!(walk(&[0x8C, 0x80, 0, 0, 0, 0, 1, 1, 0]), Ok(()), "a padded length, as Kafka reads it");
    let refused: &[(&str, &[u8])] = &[
        ("a length past the end", &[14, 0, 0, 0, 1, 1, 0]),
        ("a length too small", &[10, 0, 0, 0, 1, 1, 0]),
        ("a negative length", &[11, 0, 0, 0, 1, 1, 0]),
        ("a length of nothing", &[0]),
        ("a length without an end", &[0x80]),
        ("a length of six bytes", &[0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0, 0, 1, 1, 0]),
        ("a length of more than 32 bits", &[0x8C, 0x80, 0x80, 0x80, 0x10, 0, 0, 0, 1, 1, 0]),
        ("the longest length", &[0xFE, 0xFF, 0xFF, 0xFF, 0x0F, 0, 0, 0, 1, 1, 0]),
        ("bytes left over in the record", &[14, 0, 0, 0, 1, 1, 0, 0]),
        ("an offset past the last", &[12, 0, 0, 2, 1, 1, 0]),
        ("a negative offset", &[12, 0, 0, 1, 1, 1, 0]),
        ("a key length of -2", &[12, 0, 0, 0, 3, 1, 0]),
        ("a key past the record", &[12, 0, 0, 0, 6, 1, 0]),
        ("a value length of -2", &[12, 0, 0, 0, 1, 3, 0]),
        ("a value past the record", &[12, 0, 0, 0, 1, 4, 0]),
        ("a negative header count", &[12, 0, 0, 0, 1, 1, 1]),
        ("a header count past the record", &[12, 0, 0, 0, 1, 1, 2]),
        ("a huge header count", &[20, 0, 0, 0, 1, 1, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F]),
        ("a header without a name", &[16, 0, 0, 0, 1, 1, 2, 1, 1]),
        ("a header's value past the record", &[16, 0, 0, 0, 1, 1, 2, 0, 2]),
        ("a header's value of length -2", &[16, 0, 0, 0, 1, 1, 2, 0, 3]),
        ("bytes after the headers", &[18, 0, 0, 0, 1, 1, 2, 0, 1, 0]),
        (
            "a timestamp of eleven bytes",
            &[34, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 1, 1, 0, 0],
        ),
        (
            "a timestamp of more than 64 bits",
            &[30, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 0, 1, 1, 0],
        ),
        ("a second record", &[12, 0, 0, 0, 1, 1, 0, 12, 0, 0, 0, 1, 1, 0]),
        ("no record", &[]),
    ];
    for (what, record) in refused {
        let error = walk(record).expect_err(what);
        assert!(!error.to_string().is_empty());
    }
    let long = [30, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 1, 1, 0];
    assert_eq!(walk(&long), Ok(()), "a timestamp of exactly 64 bits");
}

#[test]
fn two_records_of_one_offset_are_refused() {
    let mut batch = encoded(&[Record::new(); 2], &BatchOptions::default());
    let last = batch.len() - 4;
    assert_eq!(batch[last], 2, "the second record's offset delta");
    batch[last] = 0;
    mend(&mut batch);
    let error = BatchRef::parse(&batch).unwrap().check_records(&mut Scratch::new()).unwrap_err();
    assert!(matches!(error, BatchError::BadRecord { index: 1, .. }), "{error}");
}

#[test]
fn header_names_need_not_be_text() {
    let batch = batch_of(&[18, 0, 0, 0, 1, 1, 2, 2, 0xFF, 1]);
    let mut scratch = Scratch::new();
    let record = BatchRef::parse(&batch).unwrap().records(&mut scratch).unwrap().next().unwrap().unwrap();
    let header = record.headers().next().unwrap();
    assert_eq!((header.key, header.key_str(), header.value), (&[0xFF][..], None, None));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
    }

    #[test]
    fn arbitrary_records_areas_are_harmless(
        area in proptest::collection::vec(any::<u8>(), 0..400),
        codec in 0u8..8,
        count in 0i32..20,
        last_offset_delta in 0i32..30,
    ) {
        let mut batch = encoded(&[Record::new()], &BatchOptions::default());
        batch.truncate(HEADER_BYTES);
        batch[22] = codec;
        batch[23..27].copy_from_slice(&last_offset_delta.to_be_bytes());
        batch[57..61].copy_from_slice(&count.to_be_bytes());
        batch.extend(area);
        mend(&mut batch);
        prop_assert!(read_all(&batch) <= usize::try_from(count).unwrap());
    }

    #[test]
    fn changed_streams_of_every_codec_are_harmless(
        made in proptest::collection::vec(made(), 1..6),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        front_only in any::<bool>(),
    ) {
        for codec in available() {
            let mut batch = with_records(&made, |records| built(records, &options_with(codec)));
            let area = &mut batch[HEADER_BYTES..];
            // Most of what can go wrong goes wrong in a stream's own header.
            let within = if front_only { area.len().min(24) } else { area.len() };
            for (place, byte) in &changes {
                area[place.index(within)] = *byte;
            }
            mend(&mut batch);
            read_all(&batch);
        }
    }
}
