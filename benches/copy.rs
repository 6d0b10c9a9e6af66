//! `logctl copy` beside the plain copies that a shell and a program have, of the same log, in turns.
//!
//! `cargo bench --bench copy -- [SIZE_MIB] [ROUNDS] [DIRECTORY]`: 2048 MiB, 5 rounds, and a temporary directory unless
//! told otherwise. Every round runs each method once, in another order than the round before, so that what else the machine
//! does falls on all of them. Plain copies are measured as they are and made durable (`fsync` of each file), which is what
//! `logctl copy` always does; a ratio over 1 is faster.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where its own calls fail")]

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
    process::Command,
    time::Instant,
};

use stratalog::{AppendOptions, FsyncPolicy, LogConfig, LogWriter, OpenMode, record::Record};

/// One way to copy a directory of files.
struct Method {
    name: &'static str,
    copy: fn(&Path, &Path),
    /// The others are made durable in a second measurement.
    is_durable: bool,
}

const METHODS: [Method; 4] = [
    Method { name: "logctl copy", copy: logctl, is_durable: true },
    Method { name: "cp -r", copy: cp, is_durable: false },
    Method { name: "copy_file_range", copy: copy_file_range, is_durable: false },
    Method { name: "read/write 1 MiB", copy: read_write, is_durable: false },
];

fn logctl(from: &Path, to: &Path) {
    let done = Command::new(env!("CARGO_BIN_EXE_logctl")).args(["copy", "-q"]).arg(from).arg(to).status();
    assert!(done.unwrap().success());
}

fn cp(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
}

fn copy_file_range(from: &Path, to: &Path) {
    each(from, to, |source, target| {
        io::copy(&mut &*source, &mut &*target).unwrap();
    });
}

fn read_write(from: &Path, to: &Path) {
    let mut buffer = vec![0; 1 << 20];
    each(from, to, |mut source, mut target| {
        loop {
            let count = source.read(&mut buffer).unwrap();
            if count == 0 {
                break;
            }
            target.write_all(&buffer[..count]).unwrap();
        }
    });
}

fn each(from: &Path, to: &Path, mut copy: impl FnMut(&File, &File)) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&File::open(entry.path()).unwrap(), &File::create(to.join(entry.file_name())).unwrap());
    }
}

fn make_durable(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        File::open(entry.unwrap().path()).unwrap().sync_all().unwrap();
    }
    File::open(dir).unwrap().sync_all().unwrap();
}

/// A log of so many MiB that do not compress, in segments of 1 GiB, closed.
fn write_log(dir: &Path, mib: u64) {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = FsyncPolicy::Never;
    let mut log = LogWriter::open(dir, config).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut value = vec![0; 255 << 10];
    for _ in 0..mib * 4 {
        for word in value.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let _ = log.append_records(&[Record::value_only(&value)], AppendOptions::default()).unwrap();
    }
    log.close().unwrap();
}

fn median(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let mib: u64 = given.first().map_or(2048, |text| text.parse().unwrap());
    let rounds: usize = given.get(1).map_or(5, |text| text.parse().unwrap());
    let place = match given.get(2) {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    }
    .unwrap();
    let from = place.path().join("log-0");
    write_log(&from, mib);
    let to = place.path().join("copy-0");
    // Seconds of each method: as it is, and durable.
    let mut seconds = vec![(Vec::new(), Vec::new()); METHODS.len()];
    for round in 0..=rounds {
        for turn in 0..METHODS.len() {
            let nth = (turn + round) % METHODS.len();
            let method = &METHODS[nth];
            assert!(Command::new("sync").status().unwrap().success());
            let began = Instant::now();
            (method.copy)(&from, &to);
            let plain = began.elapsed().as_secs_f64();
            if !method.is_durable {
                make_durable(&to);
            }
            let durable = began.elapsed().as_secs_f64();
            fs::remove_dir_all(&to).unwrap();
            // The first round warms up.
            if round > 0 {
                seconds[nth].0.push(plain);
                seconds[nth].1.push(durable);
            }
        }
    }
    report(mib, rounds, place.path(), &mut seconds);
}

#[expect(clippy::cast_precision_loss, reason = "sizes for people")]
fn report(mib: u64, rounds: usize, place: &Path, seconds: &mut [(Vec<f64>, Vec<f64>)]) {
    println!("{mib} MiB, {rounds} rounds, in {}", place.display());
    let rate = |seconds: f64| mib as f64 / 1024.0 / seconds;
    let ours = seconds[0].1.clone();
    println!("{:<18} {:>24} {:>24} {:>28}", "GiB/s", "as it is", "durable", "logctl copy / this, durable");
    for (method, (plain, durable)) in METHODS.iter().zip(seconds) {
        // Round by round, before anything is sorted.
        let mut ratios: Vec<f64> = durable.iter().zip(&ours).map(|(theirs, ours)| theirs / ours).collect();
        let mut plain_ratios: Vec<f64> =
            plain.iter().zip(&ours).map(|(theirs, ours)| theirs / ours).collect();
        let shown = |(middle, least, most): (f64, f64, f64)| {
            format!("{:.2} [{:.2}..{:.2}]", rate(middle), rate(most), rate(least))
        };
        let (middle, least, most) = median(&mut ratios);
        let told = format!("{middle:.2} [{least:.2}..{most:.2}]");
        let (against_plain, ..) = median(&mut plain_ratios);
        println!(
            "{:<18} {:>24} {:>24} {told:>28}   ({against_plain:.2} of it as it is)",
            method.name,
            if method.is_durable { "-".to_owned() } else { shown(median(plain)) },
            shown(median(durable)),
        );
    }
}
