//! Opening: clean, with many segments, and after a kill with everything unverified.

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "each bench uses some of it")]
mod support;

use std::{fs::File, hint::black_box, os::unix::fs::FileExt, path::Path, time::Duration};

use criterion::Criterion;
use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogWriter, OpenMode,
    record::{Record, crc32c},
};
use support::{Goal, heading, pair, timed, warm, workspace};

fn config(segment_bytes: u32) -> LogConfig {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = FsyncPolicy::Never;
    config.segment_bytes = segment_bytes;
    config
}

/// A log of so many bytes of records of 1 KiB, 100 a batch; open.
fn filled(dir: &Path, bytes: u64, segment_bytes: u32) -> LogWriter {
    let mut log = LogWriter::open(dir, config(segment_bytes)).expect("a log");
    let value = vec![0x5a; 1024];
    let count = if segment_bytes < 1 << 20 { 10 } else { 100 };
    let records = vec![Record::value_only(&value); count];
    for _ in 0..bytes / (1024 * count as u64) {
        log.append_records(&records, AppendOptions::default()).expect("an append");
    }
    log
}

fn reopen(dir: &Path, segment_bytes: u32, clean: bool) -> Duration {
    let mut log = None;
    let took = timed(|| log = Some(LogWriter::open(dir, config(segment_bytes)).expect("a log")));
    let log = log.expect("opened");
    assert_eq!(log.recovery().clean, clean, "{:?}", log.recovery());
    log.close().expect("a close");
    took
}

fn clean() {
    for (work, bytes, segment_bytes, goal) in [
        ("clean open of 2 GiB", 2 << 30, 1 << 30, Duration::from_millis(1)),
        ("clean open of 1,000 segments", 100 << 20, 100 << 10, Duration::from_millis(5)),
    ] {
        let temp = workspace();
        let dir = temp.path().join("t-0");
        warm(2048);
        filled(&dir, bytes, segment_bytes).close().expect("a close");
        pair(work, &Goal::AtMost(goal), 9, || Duration::ZERO, || reopen(&dir, segment_bytes, true));
    }
}

/// One pass over the files: 1 MiB reads, a header and a checksum a batch.
fn pass(dir: &Path) {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("a name").path()).collect();
    names.retain(|path| path.extension().is_some_and(|suffix| suffix == "log"));
    names.sort();
    let mut buffer = vec![0_u8; 1 << 20];
    for name in names {
        let file = File::open(name).expect("a segment");
        let (mut kept, mut position) = (0, 0_u64);
        loop {
            let read = file.read_at(&mut buffer[kept..], position).expect("a read");
            if read == 0 {
                break;
            }
            position += read as u64;
            let held = kept + read;
            let mut at = 0;
            while held - at >= 61 {
                let length = u32::from_be_bytes(buffer[at + 8..at + 12].try_into().expect("four bytes"));
                let size = 12 + usize::try_from(length).expect("a size");
                if length == 0 || held - at < size {
                    break;
                }
                black_box(crc32c(&buffer[at + 21..at + size]));
                at += size;
            }
            buffer.copy_within(at..held, 0);
            kept = held - at;
            if kept == buffer.len() {
                break;
            }
        }
    }
}

fn sync(dir: &Path) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("a name").path();
        if path.extension().is_some_and(|suffix| suffix == "log") {
            File::open(path).expect("a segment").sync_data().expect("a sync");
        }
    }
}

/// Dropped and not closed is what a kill leaves: nothing synced, no clean mark, reserved blocks at the end.
fn killed() {
    let temp = workspace();
    let dir = temp.path().join("t-0");
    let bytes = 2_u64 << 30;
    let fresh = || {
        warm(2600);
        drop(filled(&dir, bytes, 1 << 30));
    };
    let remove = || std::fs::remove_dir_all(&dir).expect("a directory");
    let goal = Goal::Times(1.2, Duration::from_millis(2));
    pair(
        "open after a kill, 2 GiB unverified",
        &goal,
        3,
        || {
            fresh();
            let took = timed(|| {
                pass(&dir);
                sync(&dir);
            });
            remove();
            took
        },
        || {
            fresh();
            let took = reopen(&dir, 1 << 30, false);
            remove();
            took
        },
    );
}

fn curves(criterion: &mut Criterion) {
    let temp = workspace();
    let dir = temp.path().join("t-0");
    filled(&dir, 32 << 20, 1 << 20).close().expect("a close");
    let mut group = criterion.benchmark_group("open");
    group.sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300));
    group.bench_function("clean, 32 segments", |bencher| {
        bencher.iter(|| LogWriter::open(&dir, config(1 << 20)).expect("a log").close());
    });
    group.finish();
}

fn main() {
    heading("open");
    clean();
    killed();
    if std::env::var_os("STRATALOG_BENCH_TABLE_ONLY").is_none() {
        let mut criterion = Criterion::default().configure_from_args();
        curves(&mut criterion);
        criterion.final_summary();
    }
}
