//! Headers, stamping, the two validations, and walking batches.

use super::*;

fn plain(base: i64, count: usize) -> Vec<u8> {
    let options = BatchOptions { base_offset: offset(base), ..BatchOptions::default() };
    encoded(&vec![Record::value_only(b"some value").timestamp(at(77)); count], &options)
}

/// A batch with one header field overwritten, its CRC made right.
fn patched(place: usize, bytes: &[u8]) -> Vec<u8> {
    let mut batch = plain(10, 3);
    batch[place..][..bytes.len()].copy_from_slice(bytes);
    let crc = crc32c(&batch[CRC_START..]);
    batch[CRC_AT..][..4].copy_from_slice(&crc.to_be_bytes());
    batch
}

const LAST_OFFSET_DELTA_AT: usize = 23;
const BASE_SEQUENCE_AT: usize = 53;
const COUNT_AT: usize = 57;

#[test]
fn a_probe_needs_seventeen_bytes() {
    let batch = plain(10, 3);
    for length in 0..PROBE_BYTES {
        assert_eq!(probe(&batch[..length]), Ok(None));
    }
    let size_bytes = u32::try_from(batch.len()).unwrap();
    assert_eq!(probe(&batch[..17]), Ok(Some(Probe { base_offset: 10, size_bytes, magic: 2 })));
    assert_eq!(probe(&[0; 17]), Err(BatchError::BadLength { length: 0 }));
    for length in [-1, i32::MIN, 13, i32::MAX, i32::MAX - 11] {
        assert_eq!(
            probe(&patched(BATCH_LENGTH_AT, &length.to_be_bytes())),
            Err(BatchError::BadLength { length })
        );
    }
    for magic in [0i8, 1] {
        let found = probe(&patched(MAGIC_AT, &magic.to_be_bytes())).unwrap().unwrap();
        assert_eq!(found.magic, magic);
    }
    for magic in [-1i8, 3, 127] {
        let refused = Err(BatchError::UnsupportedMagic { magic });
        assert_eq!(probe(&patched(MAGIC_AT, &magic.to_be_bytes())), refused);
    }
    let longest = patched(BATCH_LENGTH_AT, &(i32::MAX - 12).to_be_bytes());
    assert_eq!(probe(&longest).unwrap().unwrap().size_bytes, MAX_BATCH_BYTES);
}

#[test]
fn what_the_header_says_is_checked() {
    let parse = |place, bytes: &[u8]| BatchRef::parse(&patched(place, bytes)).map(|batch| *batch.header());
    assert_eq!(parse(MAGIC_AT, &[1]), Err(BatchError::UnsupportedMagic { magic: 1 }));
    assert_eq!(parse(BATCH_LENGTH_AT, &48i32.to_be_bytes()), Err(BatchError::BadLength { length: 48 }));
    let bad = |base_offset, last_offset_delta| Err(BatchError::BadOffsets { base_offset, last_offset_delta });
    assert_eq!(parse(BASE_OFFSET_AT, &(-1i64).to_be_bytes()), bad(-1, 2));
    assert_eq!(parse(BASE_OFFSET_AT, &(i64::MAX - 1).to_be_bytes()), bad(i64::MAX - 1, 2));
    assert_eq!(parse(LAST_OFFSET_DELTA_AT, &(-1i32).to_be_bytes()), bad(10, -1));
    let bad_count = Err(BatchError::BadCount { count: -1, last_offset_delta: 2 });
    assert_eq!(parse(COUNT_AT, &(-1i32).to_be_bytes()), bad_count);

    let last = patched(BASE_OFFSET_AT, &(i64::MAX - 2).to_be_bytes());
    let last = BatchRef::parse(&last).unwrap();
    assert_eq!((last.last_offset(), last.next_offset()), (Offset::MAX, None));
    last.validate_for_append().unwrap();
    assert!(last.validate_for_preserve().is_err(), "no offset is left after it");

    let batch = plain(10, 3);
    let size = batch.len() as u64;
    for cut in HEADER_BYTES..batch.len() {
        let short = BatchError::TooShort { needed_bytes: size, available_bytes: cut as u64 };
        assert_eq!(BatchRef::parse(&batch[..cut]), Err(short));
        assert!(BatchHeader::parse(&batch[..cut]).is_ok());
    }
}

#[test]
fn an_empty_batch_of_61_bytes_is_read() {
    let mut batch = patched(COUNT_AT, &0i32.to_be_bytes());
    batch.truncate(HEADER_BYTES);
    mend(&mut batch);
    let mut scratch = Scratch::new();
    let parsed = BatchRef::parse(&batch).unwrap();
    assert_eq!(parsed.records(&mut scratch).unwrap().count(), 0);
    assert_eq!(parsed.last_offset(), offset(12));
    parsed.validate_for_preserve().unwrap();
    assert_eq!(parsed.validate_for_append(), Err(BatchError::NoRecords));
    batch[22] = 4;
    mend(&mut batch);
    assert_eq!(BatchRef::parse(&batch).unwrap().records(&mut scratch).unwrap().count(), 0);
}

#[test]
fn counts_codecs_and_offsets_decide_what_may_be_appended() {
    let check = |place, bytes: &[u8]| {
        let batch = patched(place, bytes);
        let batch = BatchRef::parse(&batch).unwrap();
        (batch.validate_for_append(), batch.validate_for_preserve())
    };
    assert_eq!(check(COUNT_AT, &3i32.to_be_bytes()), (Ok(()), Ok(())));
    let fewer = Err(BatchError::BadCount { count: 2, last_offset_delta: 2 });
    assert_eq!(check(COUNT_AT, &2i32.to_be_bytes()), (fewer, Ok(())));
    let more = Err(BatchError::BadCount { count: 4, last_offset_delta: 2 });
    assert_eq!(check(COUNT_AT, &4i32.to_be_bytes()), (more.clone(), more));
    let largest = Err(BatchError::BadCount { count: 3, last_offset_delta: i32::MAX });
    assert_eq!(check(LAST_OFFSET_DELTA_AT, &i32::MAX.to_be_bytes()), (largest, Ok(())));
    for id in 5..8u8 {
        let unknown = Err(BatchError::UnknownCodec { id });
        assert_eq!(check(21, &[0, id]), (unknown.clone(), unknown));
    }
    assert_eq!(check(21, &[0xFF, 0x80]), (Ok(()), Ok(())), "unknown attribute bits are let through");
    assert_eq!(check(21, &[0, 0x20]), (Err(BatchError::ControlBatch), Ok(())));
}

#[test]
fn the_declared_count_is_checked_against_the_records() {
    let mut scratch = Scratch::new();
    let mut walk = |count: i32| -> Vec<_> {
        let batch = patched(COUNT_AT, &count.to_be_bytes());
        let batch = BatchRef::parse(&batch).unwrap();
        batch
            .records(&mut scratch)
            .unwrap()
            .map(|record| record.map(|record| record.offset().value()))
            .collect()
    };
    assert_eq!(walk(3), [Ok(10), Ok(11), Ok(12)]);
    assert_eq!(walk(2), [Ok(10), Ok(11), Err(BatchError::CountMismatch { declared: 2, found: 2 })]);
    assert_eq!(walk(4), [Ok(10), Ok(11), Ok(12), Err(BatchError::CountMismatch { declared: 4, found: 3 })]);
    assert_eq!(walk(0), [Err(BatchError::CountMismatch { declared: 0, found: 0 })]);
    assert_eq!(walk(i32::MAX).len(), 4);
}

#[test]
fn base_offset_and_epoch_lie_outside_the_crc() {
    let mut bytes = plain(0, 3);
    let crc = BatchRef::parse(&bytes).unwrap().crc();
    let mut batch = BatchMut::parse(&mut bytes).unwrap();
    batch.set_base_offset(offset(1000)).unwrap();
    batch.set_leader_epoch(6);
    assert!(batch.set_base_offset(Offset::MAX).is_err());
    assert_eq!(batch.header().base_offset(), offset(1000));
    let parsed = BatchRef::parse(&bytes).unwrap();
    parsed.check_crc().unwrap();
    assert_eq!((parsed.crc(), parsed.base_offset(), parsed.leader_epoch()), (crc, offset(1000), 6));

    let head = bytes.first_chunk_mut().unwrap();
    stamp_header(head, offset(4), -1);
    let parsed = BatchRef::parse(&bytes).unwrap();
    parsed.check_crc().unwrap();
    assert_eq!((parsed.base_offset(), parsed.leader_epoch()), (offset(4), -1));
}

#[test]
fn stamping_a_time_makes_the_crc_anew() {
    let mut bytes = plain(0, 3);
    bytes.extend([9; 5]);
    let original = bytes.clone();
    let mut scratch = Scratch::new();
    BatchMut::parse(&mut bytes).unwrap().set_log_append_time(at(5000));
    let batch = BatchRef::parse(&bytes).unwrap();
    batch.check_crc().unwrap();
    assert_eq!((batch.timestamp_type(), batch.max_timestamp()), (TimestampType::LogAppendTime, at(5000)));
    assert!(batch.records(&mut scratch).unwrap().all(|record| record.unwrap().timestamp() == at(5000)));

    BatchMut::parse(&mut bytes).unwrap().set_max_timestamp(at(6000));
    let batch = BatchRef::parse(&bytes).unwrap();
    batch.check_crc().unwrap();
    assert_eq!((batch.timestamp_type(), batch.max_timestamp()), (TimestampType::LogAppendTime, at(6000)));

    BatchMut::parse(&mut bytes).unwrap().set_create_time(at(77));
    assert_eq!(bytes, original, "and back again, with what follows the batch untouched");
}

#[test]
fn sequences_go_on_at_zero() {
    let at_sequence = |sequence: i32| {
        BatchRef::parse(&patched(BASE_SEQUENCE_AT, &sequence.to_be_bytes())).unwrap().last_sequence()
    };
    assert_eq!(at_sequence(-1), -1);
    assert_eq!(at_sequence(0), 2);
    assert_eq!(at_sequence(i32::MAX - 2), i32::MAX);
    assert_eq!(at_sequence(i32::MAX - 1), 0);
    assert_eq!(at_sequence(i32::MAX), 1);
    let batch = plain(0, 3);
    let mut scratch = Scratch::new();
    let records = BatchRef::parse(&batch).unwrap().records(&mut scratch).unwrap();
    let sequences: Vec<_> = records.map(|record| record.unwrap().sequence(i32::MAX)).collect();
    assert_eq!(sequences, [i32::MAX, 0, 1]);
}

#[test]
fn a_delete_horizon_takes_the_base_timestamps_place() {
    let batch = patched(21, &[0, 0x40]);
    let parsed = BatchRef::parse(&batch).unwrap();
    assert_eq!(parsed.delete_horizon(), Some(at(77)));
    assert_eq!(BatchRef::parse(&plain(0, 1)).unwrap().delete_horizon(), None);
}

#[test]
fn batches_are_walked_up_to_a_cut_one() {
    let (first, second) = (plain(0, 2), plain(2, 5));
    let bytes = [first.as_slice(), &second].concat();
    for cut in 0..=bytes.len() {
        let mut batches = Batches::new(&bytes[..cut]);
        let found: Vec<_> = batches.by_ref().map(|batch| batch.unwrap().base_offset().value()).collect();
        let (whole, end) = match cut {
            _ if cut == bytes.len() => (vec![0, 2], bytes.len()),
            _ if cut >= first.len() => (vec![0], first.len()),
            _ => (vec![], 0),
        };
        assert_eq!(found, whole, "cut at {cut}");
        assert_eq!(batches.position(), end);
        assert_eq!(batches.remainder(), &bytes[end..cut]);
    }
}

#[test]
fn batches_stop_at_what_is_none() {
    for tail in [vec![0; 40], patched(MAGIC_AT, &[0]), patched(BASE_OFFSET_AT, &[0xFF; 8])] {
        let first = plain(0, 2);
        let bytes = [first.as_slice(), &tail].concat();
        let mut batches = Batches::new(&bytes);
        assert!(batches.next().unwrap().is_ok());
        assert!(batches.next().unwrap().is_err());
        assert!(batches.next().is_none());
        assert_eq!(batches.position(), first.len());
        assert_eq!(batches.remainder(), tail);
    }
}
