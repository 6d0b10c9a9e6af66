//! Finding the place of an offset and of a time, against a binary search over a plain array and a bare read.

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "each bench uses some of it")]
mod support;

use std::{fs::File, hint::black_box, os::unix::fs::FileExt, path::Path, time::Duration};

use criterion::Criterion;
use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogReader, LogWriter, Offset, OpenMode, ReadOptions, Timestamp,
    record::Record,
};
use support::{Goal, heading, pair, timed, workspace};

const RECORDS: i64 = 400_000;
const LOOKS: u32 = 20_000;

fn make(dir: &Path) {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = FsyncPolicy::Never;
    let mut log = LogWriter::open(dir, config).expect("a log");
    let value = vec![0x5a; 200];
    for at in 0..RECORDS / 10 {
        let records: Vec<_> = (0..10)
            .map(|index| Record::value_only(&value).timestamp(Timestamp::from_millis(at * 10 + index)))
            .collect();
        log.append_records(&records, AppendOptions::default()).expect("an append");
    }
    log.close().expect("a close");
}

fn shuffled(of: i64) -> impl Iterator<Item = i64> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(state >> 33).unwrap_or(0) % of
    })
}

/// The entries of an index file as a plain array.
fn entries(path: &Path) -> Vec<(u32, u32)> {
    let bytes = std::fs::read(path).expect("an index");
    let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
    bytes.chunks_exact(8).map(|entry| (word(&entry[..4]), word(&entry[4..]))).collect()
}

fn main() {
    heading("index");
    let temp = workspace();
    let dir = temp.path().join("t-0");
    make(&dir);
    let reader = LogReader::open(&dir, ReadOptions::default()).expect("a reader");
    let file = File::open(dir.join("00000000000000000000.log")).expect("a segment");
    let plain = entries(&dir.join("00000000000000000000.index"));
    let mut buffer = vec![0; 8 << 10];
    let bare = |buffer: &mut [u8]| {
        timed(|| {
            for offset in shuffled(RECORDS).take(LOOKS as usize) {
                let relative = u32::try_from(offset).expect("small");
                let at = plain.partition_point(|entry| entry.0 <= relative);
                let position = at.checked_sub(1).map_or(0, |at| plain[at].1);
                black_box(file.read_at(buffer, u64::from(position)).expect("a read"));
            }
        }) / LOOKS
    };
    pair(
        "find an offset (to a slice), hot",
        &Goal::Times(1.0, Duration::from_micros(1)),
        9,
        || bare(&mut buffer),
        || {
            timed(|| {
                for offset in shuffled(RECORDS).take(LOOKS as usize) {
                    let offset = Offset::new(offset).expect("not negative");
                    black_box(reader.slice(offset, 1).expect("a slice"));
                }
            }) / LOOKS
        },
    );
    let mut buffer = vec![0; 8 << 10];
    pair(
        "find a time, hot",
        &Goal::Times(1.0, Duration::from_micros(4)),
        9,
        || bare(&mut buffer),
        || {
            timed(|| {
                for at in shuffled(RECORDS).take(LOOKS as usize) {
                    black_box(reader.offset_for_timestamp(Timestamp::from_millis(at)).expect("an answer"));
                }
            }) / LOOKS
        },
    );
    if std::env::var_os("STRATALOG_BENCH_TABLE_ONLY").is_none() {
        let mut criterion = Criterion::default().configure_from_args();
        let mut offsets = shuffled(RECORDS);
        criterion.bench_function("slice at a random offset", |bencher| {
            bencher.iter(|| {
                reader.slice(Offset::new(offsets.next().expect("endless")).expect("not negative"), 1)
            });
        });
        criterion.final_summary();
    }
}
