//! `logctl verify` of a log in the page cache, against two threads that do nothing but read the same files and take their
//! CRC-32C.

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "each bench uses some of it")]
mod support;

use std::{
    fs::File,
    hint::black_box,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogWriter, OpenMode,
    record::{Record, crc32c},
};
use support::{Goal, heading, pair, timed, workspace};

/// The blocks that the bare loop reads: of the sizes from 64 KiB to 4 MiB the fastest here.
const BLOCK: usize = 256 << 10;
/// How much one thread takes at a time.
const SHARE: u64 = 8 << 20;

/// A log of about `total_bytes` in batches of `count` records of `size` bytes.
fn make(dir: &Path, total_bytes: u64, segment_bytes: u32, size: usize, count: usize) {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = FsyncPolicy::Never;
    config.segment_bytes = segment_bytes;
    let mut log = LogWriter::open(dir, config).expect("a log");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let value: Vec<u8> = (0..size)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect();
    let records = vec![Record::value_only(&value); count];
    for _ in 0..total_bytes / (size * count) as u64 {
        log.append_records(&records, AppendOptions::default()).expect("an append");
    }
    log.close().expect("a clean close");
}

/// Reads all of these files and takes their checksums, on two threads.
fn bare(files: &[PathBuf]) {
    let files: Vec<(File, u64)> = files
        .iter()
        .map(|path| {
            let file = File::open(path).expect("a segment");
            let len = file.metadata().expect("a file").len();
            (file, len)
        })
        .collect();
    let shares: Vec<(&File, u64, u64)> = files
        .iter()
        .flat_map(|(file, len)| (0..len.div_ceil(SHARE)).map(move |nth| (file, nth * SHARE, *len)))
        .collect();
    let next = AtomicUsize::new(0);
    let turn = || {
        let mut buffer = vec![0_u8; BLOCK];
        while let Some((file, from, len)) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
            let end = (from + SHARE).min(*len);
            let mut at = *from;
            while at < end {
                let count = usize::try_from(end - at).expect("a size").min(BLOCK);
                file.read_exact_at(&mut buffer[..count], at).expect("a block");
                black_box(crc32c(&buffer[..count]));
                at += count as u64;
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(turn);
        turn();
    });
}

fn verify(dir: &Path, more: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_logctl"));
    command.arg("verify").arg(dir).args(more).stdout(Stdio::null());
    assert!(command.status().expect("a run").success());
}

fn main() {
    heading("verify");
    let total = 2 << 30;
    for (work, segment_bytes, size, count) in [
        ("2 GiB in two segments, batches of 16 KiB", 1 << 30, 1024, 16),
        ("2 GiB in one segment, batches of 16 KiB", i32::MAX.unsigned_abs(), 1024, 16),
        ("2 GiB in 16 segments, batches of 100 KiB", 128 << 20, 1024, 100),
        ("2 GiB in two segments, batches of one 1 KiB record", 1 << 30, 1024, 1),
    ] {
        let temp = workspace();
        let dir = temp.path().join("t-0");
        make(&dir, total - (total >> 7), segment_bytes, size, count);
        let files: Vec<PathBuf> = std::fs::read_dir(&dir)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|suffix| suffix == "log"))
            .collect();
        pair(work, &Goal::Share(0.9), 9, || timed(|| bare(&files)), || timed(|| verify(&dir, &[])));
    }
}
