//! Messages of formats 0 and 1: made by hand here, by Kafka in `tests/`.
// Most of them wrap messages, which takes a codec.
#![cfg(feature = "gzip")]

use proptest::prelude::*;

use super::*;
use crate::record::{BatchRef, Compression, compress, unpack_old};

/// A message, its CRC right.
fn message(
    magic: i8,
    offset: i64,
    attributes: u8,
    timestamp: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Vec<u8> {
    let mut body = vec![magic.cast_unsigned(), attributes];
    if magic > 0 {
        body.extend_from_slice(&timestamp.to_be_bytes());
    }
    for field in [key, value] {
        let length = field.map_or(-1, |field| i32::try_from(field.len()).unwrap());
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(field.unwrap_or_default());
    }
    let mut bytes = offset.to_be_bytes().to_vec();
    bytes.extend_from_slice(&i32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend_from_slice(&crc32(&body).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn set_crc(message: &mut [u8]) {
    let crc = crc32(&message[OLD_CRC_START..]);
    message[OLD_CRC_AT..OLD_CRC_START].copy_from_slice(&crc.to_be_bytes());
}

/// A wrapper of these, with gzip.
fn wrapper(magic: i8, offset: i64, attributes: u8, inner: &[Vec<u8>]) -> Vec<u8> {
    let mut packed = Vec::new();
    compress(Compression::new(Codec::Gzip), &inner.concat(), &mut packed).unwrap();
    message(magic, offset, attributes | 1, 90, None, Some(&packed))
}

type Told = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

fn told(bytes: &[u8]) -> Result<Vec<Told>, BatchError> {
    let message = OldMessage::parse(bytes)?;
    let mut scratch = Scratch::new();
    let read = message.messages(&mut scratch)?.map(|message| {
        let message = message?;
        message.check_crc()?;
        let own = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
        Ok((message.offset().value(), message.timestamp().millis(), own(message.key()), own(message.value())))
    });
    read.collect()
}

/// What is read of the batch that is made of it.
fn made(bytes: &[u8]) -> Result<(i64, i64, TimestampType, Vec<Told>), BatchError> {
    let mut scratch = Scratch::new();
    let mut out = b"leftover".to_vec();
    OldMessage::parse(bytes)?.to_batch(&mut scratch, &mut out)?;
    let batch = BatchRef::parse(&out)?;
    assert_eq!(batch.as_bytes().len(), out.len());
    batch.check_crc()?;
    batch.validate_for_preserve()?;
    assert_eq!((batch.codec()?, batch.leader_epoch(), batch.producer_id()), (Codec::None, -1, -1));
    let header = unpack_old(bytes, &mut scratch)?;
    assert_eq!(&header, batch.header(), "the same, in the other's memory");
    assert_eq!(scratch.unpacked(), batch.payload());
    let own = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
    let records = batch.records(&mut scratch)?.map(|record| {
        let record = record?;
        assert_eq!(record.header_count(), 0);
        Ok((record.offset().value(), record.timestamp().millis(), own(record.key()), own(record.value())))
    });
    let records = records.collect::<Result<Vec<_>, BatchError>>()?;
    Ok((batch.last_offset().value(), batch.max_timestamp().millis(), batch.timestamp_type(), records))
}

#[test]
fn a_message_by_itself() {
    for (magic, timestamp) in [(0, -1), (1, 77)] {
        let bytes = message(magic, 5, 0, timestamp, Some(b"k"), None);
        let read = OldMessage::parse(&bytes).unwrap();
        assert_eq!((read.magic(), read.offset().value(), read.codec()), (magic, 5, Ok(Codec::None)));
        assert_eq!(read.timestamp_type(), (magic > 0).then_some(TimestampType::CreateTime));
        let one = vec![(5, timestamp, Some(b"k".to_vec()), None)];
        assert_eq!(told(&bytes), Ok(one.clone()));
        assert_eq!(made(&bytes), Ok((5, timestamp, TimestampType::CreateTime, one)));
        // Bytes behind it are not its.
        let longer = [bytes.clone(), vec![1; 70]].concat();
        assert_eq!(OldMessage::parse(&longer), Ok(read));
        let header = BatchHeader::parse_stored(&longer).unwrap();
        assert_eq!((header.magic(), header.size_bytes() as usize), (magic, bytes.len()));
        assert_eq!((header.base_offset().value(), header.last_offset().value()), (5, 5));
        assert_eq!(BatchHeader::parse_stored(&bytes), Ok(header), "short of a header of format 2");
    }
}

#[test]
fn format_0_wraps_messages_with_their_own_offsets() {
    let inner = [message(0, 7, 0, 0, None, Some(b"a")), message(0, 9, 0, 0, Some(b"k"), Some(b""))];
    let bytes = wrapper(0, 9, 0, &inner);
    let want = vec![(7, -1, None, Some(b"a".to_vec())), (9, -1, Some(b"k".to_vec()), Some(Vec::new()))];
    assert_eq!(told(&bytes), Ok(want.clone()));
    assert_eq!(made(&bytes), Ok((9, -1, TimestampType::CreateTime, want)));
}

#[test]
fn format_1_wraps_messages_that_count_from_0() {
    let inner = [message(1, 0, 0, 50, None, Some(b"a")), message(1, 3, 0, 40, None, Some(b"b"))];
    let record = |offset, timestamp, value: &[u8]| (offset, timestamp, None, Some(value.to_vec()));
    let bytes = wrapper(1, 103, 0, &inner);
    let want = vec![record(100, 50, b"a"), record(103, 40, b"b")];
    assert_eq!(told(&bytes), Ok(want.clone()));
    assert_eq!(made(&bytes), Ok((103, 50, TimestampType::CreateTime, want)));
    // What the log's clock says counts for all of them.
    let bytes = wrapper(1, 103, 1 << 3, &inner);
    let want = vec![record(100, 90, b"a"), record(103, 90, b"b")];
    assert_eq!(told(&bytes), Ok(want.clone()));
    assert_eq!(made(&bytes), Ok((103, 90, TimestampType::LogAppendTime, want)));
}

#[test]
fn a_wrapper_reaches_back_to_where_what_is_before_it_ends() {
    let at = |offset| Offset::new(offset).unwrap();
    let bytes = wrapper(1, 103, 0, &[message(1, 0, 0, 50, None, None)]);
    let header = BatchHeader::parse_stored(&bytes).unwrap();
    let reaching = |next| {
        let header = header.reaching_back_to(at(next));
        (header.base_offset().value(), header.last_offset().value())
    };
    assert_eq!(reaching(90), (90, 103));
    assert_eq!(reaching(103), (103, 103));
    assert_eq!(reaching(110), (103, 103));
    assert_eq!(reaching(0), (0, 103));
    let alone = BatchHeader::parse_stored(&message(1, 5, 0, 0, None, None)).unwrap();
    assert_eq!(alone.reaching_back_to(at(2)), alone);
}

#[test]
fn no_changed_byte_goes_unseen() {
    let bytes = wrapper(1, 3, 0, &[message(1, 0, 0, 5, Some(b"k"), Some(b"v"))]);
    assert!(made(&bytes).is_ok());
    for at in 8..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(made(&other).is_err(), "byte {at}");
    }
    for end in 0..bytes.len() {
        assert!(OldMessage::parse(&bytes[..end]).is_err(), "cut at {end}");
    }
    assert!(OldMessage::parse(&[0; 64]).is_err());
}

#[test]
fn what_no_broker_wrote_is_an_error() {
    let plain = message(1, 0, 0, 5, None, Some(b"v"));
    let reason = |bytes: &[u8]| match (told(bytes), made(bytes)) {
        (Err(told), Err(made)) => {
            assert_eq!(told, made);
            told.to_string()
        }
        other => panic!("{other:?}"),
    };
    assert!(
        reason(&wrapper(1, 9, 0, &[wrapper(1, 0, 0, std::slice::from_ref(&plain))]))
            .contains("compressed once more")
    );
    assert!(reason(&wrapper(0, 9, 0, std::slice::from_ref(&plain))).contains("another message format"));
    assert!(reason(&wrapper(1, 9, 0, &[])).contains("no message"));
    assert!(reason(&wrapper(1, 2, 0, &[message(1, 3, 0, 5, None, None)])).contains("larger than its own"));
    assert!(
        reason(&wrapper(0, 2, 0, &[message(0, 3, 0, 5, None, None)])).contains("past that of what wraps")
    );
    let back = [message(1, 1, 0, 5, None, None), message(1, 1, 0, 5, None, None)];
    assert!(reason(&wrapper(1, 9, 0, &back)).contains("not after the one before"));
    assert!(reason(&wrapper(1, 9, 0, &[plain.clone(), vec![0; 20]])).contains("length"));
    assert!(reason(&wrapper(1, 9, 0, &[plain[..20].to_vec()])).contains("no message"));
    assert!(reason(&message(1, 9, 1, 5, None, None)).contains("null"));
    assert!(reason(&message(1, 9, 4, 5, None, Some(b""))).contains("codec 4"));
    let mut wrong = plain.clone();
    wrong[12] ^= 1;
    assert!(reason(&wrapper(1, 9, 0, &[wrong])).contains("CRC"));
    // Fields that do not fill the message, under a right checksum.
    for (at, byte) in [(29, 7), (33, 0), (33, 200)] {
        let mut wrong = message(1, 0, 0, 5, Some(b""), Some(b"v"));
        wrong[at] = byte;
        set_crc(&mut wrong);
        assert!(matches!(OldMessage::parse(&wrong), Err(BatchError::BadMessage { .. })), "{at}");
    }
}

#[test]
fn offsets_at_the_edges_are_refused_not_wrapped() {
    let far = [message(0, 0, 0, 0, None, None), message(0, i64::MAX - 1, 0, 0, None, None)];
    assert!(matches!(made(&wrapper(0, i64::MAX - 1, 0, &far)), Err(BatchError::BadOffsets { .. })));
    assert!(OldMessage::parse(&message(0, -1, 0, 0, None, None)).is_err());
    assert!(told(&wrapper(1, 0, 0, &[message(1, -5, 0, 0, None, None)])).is_err());
    assert!(told(&wrapper(1, i64::MAX, 0, &[message(1, i64::MIN, 0, 0, None, None)])).is_err());
}

#[test]
fn what_unpacks_to_more_than_the_limit_is_refused() {
    let bytes = wrapper(1, 0, 0, &[message(1, 0, 0, 5, None, Some(&vec![0; 1 << 20]))]);
    let message = OldMessage::parse(&bytes).unwrap();
    let refused = message.to_batch(&mut Scratch::with_limit(1 << 16), &mut Vec::new());
    assert_eq!(refused, Err(BatchError::TooLargeDecompressed { limit: 1 << 16 }));
}

#[test]
fn the_error_names_the_format() {
    assert!(is_legacy(0) && is_legacy(1) && !is_legacy(2) && !is_legacy(-1));
    let text = BatchError::UnsupportedMagic { magic: 1 }.to_string();
    assert!(text.contains("message format 1"), "{text}");
}

fn field() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![Just(None), proptest::collection::vec(any::<u8>(), 0..20).prop_map(Some)]
}

proptest! {
    #[test]
    fn what_is_wrapped_comes_back(
        magic in 0_i8..2,
        base in 0_i64..1 << 40,
        records in proptest::collection::vec((1_i64..5, any::<i64>(), field(), field()), 1..20),
    ) {
        let mut offset = -1;
        let mut inner = Vec::new();
        let mut want = Vec::new();
        let first = records[0].0 - 1;
        for (step, timestamp, key, value) in records {
            offset += step;
            let own = if magic == 0 { base + offset } else { offset - first };
            inner.push(message(magic, own, 0, timestamp, key.as_deref(), value.as_deref()));
            want.push((base + offset, if magic == 0 { -1 } else { timestamp }, key, value));
        }
        let bytes = wrapper(magic, base + offset, 0, &inner);
        prop_assert_eq!(told(&bytes), Ok(want.clone()));
        let (last, _, _, records) = made(&bytes).unwrap();
        prop_assert_eq!(last, base + offset);
        prop_assert_eq!(records, want);
    }

    #[test]
    fn no_bytes_do_anything_but_fail(
        magic in 0_u8..3,
        codec in 0_u8..8,
        length in 14_i32..80,
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        fix in any::<bool>(),
    ) {
        let mut bytes = [vec![0; 18], bytes].concat();
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        (bytes[16], bytes[17]) = (magic, codec);
        let end = bytes.len().min(usize::try_from(length).unwrap() + 12);
        if fix {
            set_crc(&mut bytes[..end]);
        }
        let _ = told(&bytes);
        let _ = made(&bytes);
        let _ = BatchHeader::parse_stored(&bytes);
    }

    #[test]
    fn noise_in_a_wrapper_does_nothing_but_fail(
        magic in 0_i8..2,
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        flips in proptest::collection::vec((0_usize..200, any::<u8>()), 0..4),
    ) {
        let mut inner = [message(magic, 0, 0, 1, Some(b"k"), Some(b"v")), message(magic, 1, 0, 2, None, None)].concat();
        for (at, byte) in flips {
            let at = at % inner.len();
            inner[at] = byte;
        }
        for inner in [inner.clone(), [inner, noise.clone()].concat(), noise] {
            let bytes = wrapper(magic, 1000, 0, &[inner]);
            let _ = told(&bytes);
            let _ = made(&bytes);
        }
    }
}
