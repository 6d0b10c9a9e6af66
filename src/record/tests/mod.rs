//! Tests of the room as a whole: golden bytes, round trips, codecs, hostile bytes.

mod batch;
mod codecs;
mod golden;
mod hostile;
mod round_trip;

use proptest::prelude::*;

use super::*;
use crate::offset::{Offset, Timestamp};

fn offset(value: i64) -> Offset {
    Offset::new(value).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Bytes from hexadecimal digits; anything else between them is passed over.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|d| u8::try_from(d).unwrap()).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The batch of these records, by [`encode_batch`].
fn encoded(records: &[Record<'_>], options: &BatchOptions) -> Vec<u8> {
    let mut out = vec![0xA5; usize::try_from(batch_size(records, options)).unwrap()];
    let header = encode_batch(records, options, &mut out).unwrap();
    assert_eq!(header.size_bytes() as usize, out.len());
    out
}

/// The batch of these records, by [`BatchBuilder`].
fn built(records: &[Record<'_>], options: &BatchOptions) -> Vec<u8> {
    let mut builder = BatchBuilder::new(*options);
    for record in records {
        let expected = builder.size_with(record);
        builder.push(*record).unwrap();
        assert_eq!(builder.len_bytes(), expected);
    }
    builder.finish().unwrap().to_vec()
}

/// Makes length and CRC right again after a batch's bytes were changed.
fn mend(batch: &mut [u8]) {
    let length = i32::try_from(batch.len() - LOG_OVERHEAD_BYTES).unwrap();
    batch[BATCH_LENGTH_AT..][..4].copy_from_slice(&length.to_be_bytes());
    let crc = crc32c(&batch[CRC_START..]);
    batch[CRC_AT..][..4].copy_from_slice(&crc.to_be_bytes());
}

fn available() -> impl Iterator<Item = Codec> {
    Codec::ALL.into_iter().filter(|codec| codec.is_available())
}

fn options_with(codec: Codec) -> BatchOptions {
    BatchOptions { compression: codec.into(), base_offset: offset(100), ..BatchOptions::default() }
}

type MadeHeader = (String, Option<Vec<u8>>);

/// A record that owns what it is made of.
#[derive(Clone, Debug)]
struct Made {
    timestamp: Option<i64>,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<MadeHeader>,
}

fn made() -> impl Strategy<Value = Made> {
    let bytes = |most| proptest::option::of(proptest::collection::vec(any::<u8>(), 0..most));
    let header = (".{0,8}", bytes(80));
    let timestamp = prop_oneof![
        1 => Just(None),
        4 => (1_700_000_000_000i64..1_700_000_100_000).prop_map(Some),
        1 => any::<i64>().prop_map(Some),
    ];
    (timestamp, bytes(100), bytes(300), proptest::collection::vec(header, 0..4))
        .prop_map(|(timestamp, key, value, headers)| Made { timestamp, key, value, headers })
}

fn options() -> impl Strategy<Value = BatchOptions> {
    let producer =
        proptest::option::of((0i64.., 0i16.., 0i32..).prop_map(|(id, epoch, base_sequence)| ProducerStamp {
            id,
            epoch,
            base_sequence,
        }));
    (0..i64::MAX - 100, any::<i32>(), any::<bool>(), any::<i64>(), producer, any::<bool>()).prop_map(
        |(base, leader_epoch, by_log, append_time, producer, transactional)| BatchOptions {
            base_offset: offset(base),
            leader_epoch,
            compression: Compression::NONE,
            timestamp_type: if by_log { TimestampType::LogAppendTime } else { TimestampType::CreateTime },
            append_time: at(append_time),
            producer,
            transactional,
        },
    )
}

/// Calls `f` with what `made` says, borrowed.
fn with_records<T>(made: &[Made], f: impl FnOnce(&[Record<'_>]) -> T) -> T {
    let headers: Vec<Vec<Header<'_>>> = made
        .iter()
        .map(|made| made.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect())
        .collect();
    let records: Vec<Record<'_>> = made
        .iter()
        .zip(&headers)
        .map(|(made, headers)| Record {
            timestamp: made.timestamp.map(at),
            key: made.key.as_deref(),
            value: made.value.as_deref(),
            headers,
        })
        .collect();
    f(&records)
}
