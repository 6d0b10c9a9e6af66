//! Batches that a real broker wrote, read by the record room alone: each must be exactly what Kafka's own reader says.
//!
//! `fixtures/kafka/4.4.0/CASE/TOPIC-0/` is a partition's directory, `TOPIC-0.expected.jsonl` beside it has a line for
//! every batch and record: bytes in base64, above 1 KiB their length and SHA-256.
#![expect(clippy::unwrap_used, reason = "a fixture that cannot be read fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use stratalog::record::{
    BatchError, BatchOptions, BatchRef, Batches, Header, ProducerStamp, Record, RecordRef, Scratch,
    TimestampType, batch_size, control_type, encode_batch, is_legacy, probe,
};

/// The partition directories there are, each with its lines of `expected.jsonl`.
fn cases() -> Vec<(PathBuf, Vec<Value>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kafka/4.4.0");
    let mut cases = Vec::new();
    for case in fs::read_dir(&root).unwrap_or_else(|error| panic!("{}: {error}", root.display())) {
        let case = case.unwrap().path();
        for file in fs::read_dir(&case).into_iter().flatten() {
            let file = file.unwrap().path();
            let name = file.file_name().unwrap().to_str().unwrap();
            let Some(partition) = name.strip_suffix(".expected.jsonl") else { continue };
            let lines = fs::read_to_string(&file).unwrap();
            let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert!(!lines.is_empty(), "{} is empty", file.display());
            cases.push((case.join(partition), lines));
        }
    }
    assert!(!cases.is_empty(), "no cases in {}", root.display());
    cases
}

/// The expected lines by the segment file they speak of; records go with the batch before them.
fn by_file(lines: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut files = BTreeMap::<String, Vec<Value>>::new();
    let mut file = String::new();
    for line in lines {
        if let Some(name) = line.get("file") {
            name.as_str().unwrap().clone_into(&mut file);
        }
        files.entry(file.clone()).or_default().push(line.clone());
    }
    files
}

fn bytes_line(bytes: Option<&[u8]>) -> Value {
    match bytes {
        None => Value::Null,
        Some(bytes) if bytes.len() <= 1024 => json!(BASE64_STANDARD.encode(bytes)),
        Some(bytes) => {
            json!({ "length": bytes.len(), "sha256": format!("{:x}", Sha256::digest(bytes)) })
        }
    }
}

fn batch_line(batch: &BatchRef<'_>, file: &str, position: usize) -> Value {
    let mut line = json!({
        "batch": batch.base_offset().value(),
        "last": batch.last_offset().value(),
        "file": file,
        "position": position,
        "size": batch.size_bytes(),
        "magic": 2,
        "codec": batch.codec().unwrap().name(),
        "timestampType": batch.timestamp_type().name(),
        "crc": batch.crc(),
        "maxTimestamp": batch.max_timestamp().millis(),
        "epoch": batch.leader_epoch(),
        "producerId": batch.producer_id(),
        "producerEpoch": batch.producer_epoch(),
        "baseSequence": batch.base_sequence(),
        "transactional": batch.is_transactional(),
        "control": batch.is_control(),
    });
    if let Some(horizon) = batch.delete_horizon() {
        line["deleteHorizon"] = json!(horizon.millis());
    }
    line
}

fn record_line(record: &RecordRef<'_>, batch: &BatchRef<'_>) -> Value {
    let headers: Vec<Value> = record
        .headers()
        .map(|header| json!({ "key": header.key_str().unwrap(), "value": bytes_line(header.value) }))
        .collect();
    let mut line = json!({
        "offset": record.offset().value(),
        "timestamp": record.timestamp().millis(),
        "key": bytes_line(record.key()),
        "value": bytes_line(record.value()),
        "headers": headers,
    });
    if batch.is_control() {
        line["controlType"] = json!(control_type(record.key().unwrap()).unwrap().name());
    }
    line
}

/// Writes the batch's records anew: the bytes must be the producer's and broker's, CRC included.
fn assert_written_alike(batch: &BatchRef<'_>, records: &[RecordRef<'_>]) {
    let headers: Vec<Vec<Header<'_>>> = records
        .iter()
        .map(|record| {
            record.headers().map(|h| Header { key: h.key_str().unwrap(), value: h.value }).collect()
        })
        .collect();
    let again: Vec<Record<'_>> = records
        .iter()
        .zip(&headers)
        .map(|(record, headers)| Record {
            timestamp: Some(record.timestamp()),
            key: record.key(),
            value: record.value(),
            headers,
        })
        .collect();
    let producer = ProducerStamp {
        id: batch.producer_id(),
        epoch: batch.producer_epoch(),
        base_sequence: batch.base_sequence(),
    };
    let options = BatchOptions {
        base_offset: batch.base_offset(),
        leader_epoch: batch.leader_epoch(),
        producer: Some(producer),
        transactional: batch.is_transactional(),
        ..BatchOptions::default()
    };
    let mut bytes = vec![0; usize::try_from(batch_size(&again, &options)).unwrap()];
    encode_batch(&again, &options, &mut bytes).unwrap();
    assert!(bytes == batch.as_bytes(), "the batch at {} is written otherwise", batch.base_offset());
}

/// Whether we would have written the batch like this: not compressed, nothing taken out or put over it since.
fn is_as_produced(batch: &BatchRef<'_>) -> bool {
    batch.codec().unwrap().id() == 0
        && batch.record_count() == batch.last_offset_delta() + 1
        && batch.timestamp_type() == TimestampType::CreateTime
        && !batch.is_control()
        && !batch.has_delete_horizon()
}

#[test]
fn every_batch_and_record_is_what_kafka_says() {
    let mut codecs = BTreeSet::new();
    let mut written_alike = 0;
    let mut scratch = Scratch::new();
    for (partition, lines) in cases() {
        for (file, expected) in by_file(&lines) {
            if expected[0]["magic"] != 2 {
                continue;
            }
            let path = partition.join(&file);
            let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let mut expected = expected.into_iter();
            let mut batches = Batches::new(&bytes);
            let mut position = 0;
            loop {
                let batch = match batches.next() {
                    None => break,
                    Some(Err(BatchError::BadLength { length: 0 })) => {
                        assert!(batches.remainder().iter().all(|byte| *byte == 0), "{}", path.display());
                        break;
                    }
                    Some(batch) => batch.unwrap_or_else(|e| panic!("{} at {position}: {e}", path.display())),
                };
                batch.check_crc().unwrap();
                batch.validate_for_preserve().unwrap();
                assert_eq!(
                    batch_line(&batch, &file, position),
                    expected.next().unwrap(),
                    "{}",
                    path.display()
                );
                position = batches.position();
                let codec = batch.codec().unwrap();
                codecs.insert(codec.name());
                if !codec.is_available() {
                    let missing = batch.check_records(&mut scratch);
                    assert_eq!(missing, Err(BatchError::CodecMissing { codec }));
                    expected.by_ref().take(usize::try_from(batch.record_count()).unwrap()).for_each(drop);
                    continue;
                }
                let records: Vec<_> = batch.records(&mut scratch).unwrap().map(Result::unwrap).collect();
                for record in &records {
                    assert_eq!(record_line(record, &batch), expected.next().unwrap(), "{}", path.display());
                }
                if is_as_produced(&batch) {
                    assert_written_alike(&batch, &records);
                    written_alike += 1;
                }
            }
            assert_eq!(expected.next(), None, "{} has less than expected", path.display());
        }
    }
    assert_eq!(
        codecs,
        BTreeSet::from(["gzip", "lz4", "none", "snappy", "zstd"]),
        "the cases have every codec"
    );
    assert!(written_alike > 100, "only {written_alike} batches were written anew");
}

#[test]
fn older_formats_are_told_apart() {
    let mut found = BTreeSet::new();
    for (partition, lines) in cases() {
        for (file, expected) in by_file(&lines) {
            let magic = expected[0]["magic"].as_i64().unwrap();
            if magic == 2 {
                continue;
            }
            let magic = i8::try_from(magic).unwrap();
            let bytes = fs::read(partition.join(&file)).unwrap();
            let probe = probe(&bytes).unwrap().unwrap();
            assert_eq!((probe.magic, is_legacy(magic)), (magic, true));
            assert_eq!(json!(probe.size_bytes), expected[0]["size"]);
            let error = Batches::new(&bytes).next().unwrap().unwrap_err();
            assert_eq!(error, BatchError::UnsupportedMagic { magic });
            assert!(error.to_string().contains(&format!("message format {magic}")), "{error}");
            found.insert(magic);
        }
    }
    assert_eq!(found, BTreeSet::from([0, 1]));
}
