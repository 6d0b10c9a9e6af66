//! Reading: against a loop that reads the same file, checks the same checksums and walks the same varints by hand.

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "each bench uses some of it")]
mod support;

use std::{fs::File, hint::black_box, os::unix::fs::FileExt, path::Path, time::Duration};

use criterion::{Criterion, Throughput};
use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogReader, LogWriter, Offset, OpenMode, ReadOptions,
    record::{Record, Scratch, crc32c},
};
use support::{Goal, heading, pair, quantile, time, timed, warm, workspace};

const BLOCK: usize = 256 << 10;

/// A log of `calls` batches of `count` records.
fn make(dir: &Path, size: usize, count: usize, calls: usize) {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = FsyncPolicy::Never;
    let mut log = LogWriter::open(dir, config).expect("a log");
    let value = vec![0x5a; size];
    let records = vec![Record::value_only(&value); count];
    for _ in 0..calls {
        log.append_records(&records, AppendOptions::default()).expect("an append");
    }
    log.close().expect("a clean close");
}

/// A varint by hand: shares no code with the library.
fn varint(bytes: &[u8], at: &mut usize) -> i64 {
    let mut value = 0_u64;
    let mut shift = 0;
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Every record of a file: blocks of 256 KiB, a checksum a batch, every varint.
fn bare(file: &File) -> (u64, u64) {
    let mut buffer = vec![0_u8; BLOCK];
    let (mut kept, mut position) = (0, 0_u64);
    let (mut records, mut bytes) = (0, 0);
    loop {
        let read = file.read_at(&mut buffer[kept..], position).expect("a read");
        if read == 0 {
            return (records, bytes);
        }
        position += read as u64;
        let held = kept + read;
        let mut at = 0;
        while held - at >= 61 {
            let length = u32::from_be_bytes(buffer[at + 8..at + 12].try_into().expect("four bytes"));
            let size = 12 + usize::try_from(length).expect("a size");
            if held - at < size {
                break;
            }
            let batch = &buffer[at..at + size];
            let stored = u32::from_be_bytes(batch[17..21].try_into().expect("four bytes"));
            assert_eq!(crc32c(&batch[21..]), stored);
            let count = u32::from_be_bytes(batch[57..61].try_into().expect("four bytes"));
            let mut place = 61;
            for _ in 0..count {
                let length = usize::try_from(varint(batch, &mut place)).expect("a length");
                let end = place + length;
                place += 1;
                varint(batch, &mut place);
                varint(batch, &mut place);
                let key = varint(batch, &mut place);
                place += usize::try_from(key).unwrap_or(0);
                let value = varint(batch, &mut place);
                bytes += u64::try_from(value).unwrap_or(0);
                place += usize::try_from(value).unwrap_or(0);
                varint(batch, &mut place);
                assert_eq!(place, end);
                records += 1;
            }
            at += size;
        }
        buffer.copy_within(at..held, 0);
        kept = held - at;
    }
}

/// Batch by batch, the way that costs least.
fn ours(reader: &LogReader) -> (u64, u64) {
    let mut batches = reader.batches(reader.start());
    let mut scratch = Scratch::new();
    let (mut count, mut bytes) = (0, 0);
    while let Some(batch) = batches.next_batch().expect("a batch") {
        for record in batch.records(&mut scratch).expect("records") {
            count += 1;
            bytes += record.expect("a record").value().map_or(0, |value| value.len() as u64);
        }
    }
    (count, bytes)
}

/// Record by record.
fn one_by_one(reader: &LogReader) -> (u64, u64) {
    let mut records = reader.records(reader.start());
    let (mut count, mut bytes) = (0, 0);
    while let Some(record) = records.next_record().expect("a record") {
        count += 1;
        bytes += record.value().map_or(0, |value| value.len() as u64);
    }
    (count, bytes)
}

fn open(dir: &Path) -> (LogReader, File) {
    let reader = LogReader::open(dir, ReadOptions::default()).expect("a reader");
    (reader, File::open(dir.join("00000000000000000000.log")).expect("a segment"))
}

fn scans() {
    for (work, size, calls) in [
        ("read back 1 KiB records, CRC checked", 1024, 4_000),
        ("read back 100 B records, CRC checked", 100, 30_000),
    ] {
        let temp = workspace();
        let dir = temp.path().join("t-0");
        make(&dir, size, 100, calls);
        let (reader, file) = open(&dir);
        assert_eq!(bare(&file), ours(&reader), "the same records");
        warm(256);
        pair(
            work,
            &Goal::Share(0.95),
            11,
            || timed(|| _ = black_box(bare(&file))),
            || timed(|| _ = black_box(ours(&reader))),
        );
        pair(
            &format!("{work}, one by one"),
            &Goal::Share(0.75),
            11,
            || timed(|| _ = black_box(bare(&file))),
            || timed(|| _ = black_box(one_by_one(&reader))),
        );
    }
}

/// Offsets in no order, the same on every run.
fn shuffled(count: u64, of: u64) -> impl Iterator<Item = Offset> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count).filter_map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Offset::from_u64((state >> 33) % of)
    })
}

fn random() {
    let looks = 50_000;
    for (work, count, calls) in [("batches of one", 1_usize, 200_000_usize), ("batches of 100", 100, 4_000)] {
        let temp = workspace();
        let dir = temp.path().join("t-0");
        make(&dir, 1024, count, calls);
        let (reader, file) = open(&dir);
        let total = (count * calls) as u64;
        let size = file.metadata().expect("a file").len() / calls as u64;
        let mut buffer = vec![0; usize::try_from(size).expect("a size")];
        let sample = |look: &mut dyn FnMut(Offset)| {
            let mut all: Vec<Duration> =
                shuffled(looks, total).map(|offset| timed(|| look(offset))).collect();
            quantile(&mut all, 0.5)
        };
        let mut bare = || {
            sample(&mut |offset| {
                let position = offset.to_u64() / count as u64 * size;
                file.read_exact_at(&mut buffer, position).expect("a batch");
                black_box(crc32c(&buffer[21..]));
            })
        };
        let ours = || {
            sample(&mut |offset| {
                let found = reader.with_record(offset, |record, _| record.value().map_or(0, <[u8]>::len));
                assert_eq!(black_box(found.expect("a look-up")), Some(1024));
            })
        };
        let (bare, ours) = ((bare(), bare()).1, (ours(), ours()).1);
        let goal = if count == 1 { Duration::from_nanos(1_500) } else { bare + Duration::from_micros(1) };
        println!(
            "| one 1 KiB record at a random offset, hot: {work} | p50 {} | p50 {} | | p50 <= {} | {} |",
            time(bare.as_secs_f64()),
            time(ours.as_secs_f64()),
            time(goal.as_secs_f64()),
            if ours <= goal { "met" } else { "MISSED" },
        );
    }
}

fn curves(criterion: &mut Criterion) {
    let temp = workspace();
    let dir = temp.path().join("t-0");
    make(&dir, 1024, 100, 1_000);
    let (reader, _) = open(&dir);
    let mut group = criterion.benchmark_group("read");
    group.sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300));
    group.throughput(Throughput::Bytes(100_000 * 1024));
    group.bench_function("records, 1 KiB", |bencher| bencher.iter(|| ours(&reader)));
    group.throughput(Throughput::Elements(1));
    let mut offsets = shuffled(u64::MAX, 100_000);
    group.bench_function("one record, batches of 100", |bencher| {
        bencher.iter(|| {
            let offset = offsets.next().expect("endless");
            reader.with_record(offset, |record, _| record.offset()).expect("a record")
        });
    });
    group.finish();
}

fn main() {
    heading("read");
    scans();
    random();
    if std::env::var_os("STRATALOG_BENCH_TABLE_ONLY").is_none() {
        let mut criterion = Criterion::default().configure_from_args();
        curves(&mut criterion);
        criterion.final_summary();
    }
}
