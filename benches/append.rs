//! Appending: against a loop that copies, checksums and writes the same bytes and does nothing else.

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "each bench uses some of it")]
mod support;

use std::{
    fmt::Write as _,
    hint::black_box,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput};
use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogWriter, OpenMode,
    record::{BatchOptions, Record, batch_size, crc32c},
};
use support::{Goal, heading, pair, quantile, reserved, time, timed, warm, workspace, write_at};

fn config(fsync: FsyncPolicy) -> LogConfig {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = fsync;
    config
}

/// `total` bytes of records, `count` a call, into a new log.
fn ours(dir: &Path, value: &[u8], count: usize, calls: usize, fsync: FsyncPolicy) -> Duration {
    let mut log = LogWriter::open(dir, config(fsync)).expect("a log");
    let records = vec![Record::value_only(value); count];
    // The first append reserves; the bare loop has its blocks before it begins.
    log.append_records(&records[..1], AppendOptions::default()).expect("an append");
    let took = timed(|| {
        for _ in 0..calls {
            black_box(log.append_records(&records, AppendOptions::default()).expect("an append"));
        }
    });
    drop(log);
    std::fs::remove_dir_all(dir).expect("a directory");
    took
}

/// The same bytes: copied record by record, one checksum a call, one positioned write a call.
fn bare(dir: &Path, value: &[u8], count: usize, calls: usize, checksum: bool) -> Duration {
    let records = vec![Record::value_only(value); count];
    let size = usize::try_from(batch_size(&records, &BatchOptions::default())).expect("a size");
    let file = reserved(&dir.join("bare"), (size * (calls + 1)) as u64).expect("a file");
    let mut buffer = vec![0_u8; size];
    let each = size / count;
    write_at(&file, &buffer, 0);
    let took = timed(|| {
        for call in 1..=calls {
            if checksum {
                let copied = each.min(value.len());
                for place in buffer.chunks_exact_mut(each) {
                    place[..copied].copy_from_slice(&black_box(value)[..copied]);
                }
                black_box(crc32c(&buffer[21..]));
            }
            write_at(&file, &buffer, (call * size) as u64);
        }
    });
    drop(file);
    std::fs::remove_file(dir.join("bare")).expect("a file");
    took
}

fn throughput() {
    heading("append");
    let temp = workspace();
    let dir = temp.path().join("t-0");
    let rows = [
        ("1 KiB x 100 a call, written", 1024, 100, 2_500, 0.9),
        ("100 B x 100 a call, written", 100, 100, 20_000, 0.75),
        ("1 KiB, 1 MiB a call, written", 1024, 1_000, 250, 0.8),
        ("100 B, 1 MiB a call, written", 100, 9_700, 250, 0.6),
    ];
    for (work, size, count, calls, goal) in rows {
        let value = vec![0x5a; size];
        warm(1024);
        pair(
            work,
            &Goal::Share(goal),
            9,
            || bare(temp.path(), &value, count, calls, true),
            || ours(&dir, &value, count, calls, FsyncPolicy::Never),
        );
    }
    for (work, size, calls, goal) in [
        ("1 KiB, one a call, handed to the kernel", 1024, 100_000, 0.85),
        ("100 B, one a call, handed to the kernel", 100, 200_000, 0.75),
    ] {
        let value = vec![0x5a; size];
        warm(512);
        pair(
            work,
            &Goal::Share(goal),
            9,
            || bare(temp.path(), &value, 1, calls, false),
            || ours(&dir, &value, 1, calls, FsyncPolicy::Never),
        );
    }
    durable(temp.path());
}

fn durable(temp: &Path) {
    let value = vec![0x5a; 1024];
    let calls = 2_000;
    let size = batch_size(&[Record::value_only(&value)], &BatchOptions::default());
    let bare = || {
        // The same steps of reservation as a segment's, so the same extents are converted.
        let path = temp.join("bare");
        let file = reserved(&path, 64 << 10).expect("a file");
        let bytes = vec![0x5a; usize::try_from(size).expect("a size")];
        let (mut end, mut step) = (64 << 10, 128 << 10);
        let took = timed(|| {
            for call in 0..calls {
                let position = call * size;
                if position + size > end {
                    end = position + step;
                    step *= 2;
                    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, end).expect("room");
                }
                write_at(&file, &bytes, position);
                file.sync_data().expect("a sync");
            }
        });
        std::fs::remove_file(path).expect("a file");
        took
    };
    let dir = temp.join("t-0");
    let calls = usize::try_from(calls).expect("a count");
    pair("1 KiB each, durable", &Goal::Share(0.95), 7, bare, || {
        ours(&dir, &value, 1, calls, FsyncPolicy::Commit)
    });
}

/// How long each append takes while segments of 1 MiB are rolled.
fn latency(place: &Path, noise: &str) {
    let value = vec![0x5a; 1024];
    let calls = 60_000;
    let sample = |work: &mut dyn FnMut()| {
        let mut all = Vec::with_capacity(calls);
        for _ in 0..calls {
            let began = Instant::now();
            work();
            all.push(began.elapsed());
        }
        all
    };
    let size = batch_size(&[Record::value_only(&value)], &BatchOptions::default());
    let bytes = vec![0x5a; usize::try_from(size).expect("a size")];
    // The same rolls: a new file with its blocks for every MiB, and no indexes, names or order of anything.
    let next = |number: usize| reserved(&place.join(format!("bare-{number}")), 1 << 20).expect("a file");
    let (mut file, mut number, mut position) = (next(0), 0, 0);
    let mut bare = sample(&mut || {
        if position + size > 1 << 20 {
            file.set_len(position).expect("a trim");
            number += 1;
            file = next(number);
            position = 0;
        }
        write_at(&file, &bytes, position);
        position += size;
    });
    let mut settings = config(FsyncPolicy::Never);
    settings.segment_bytes = 1 << 20;
    let mut log = LogWriter::open(place.join("t-0"), settings).expect("a log");
    let mut ours = sample(&mut || {
        log.append_records(&[Record::value_only(&value)], AppendOptions::default()).expect("an append");
    });
    let figures = |all: &mut Vec<Duration>| {
        let [middle, high, most] = [0.5, 0.999, 1.0].map(|share| quantile(all, share).as_secs_f64());
        (middle, high, most)
    };
    let ((b50, b999, bmax), (o50, o999, omax)) = (figures(&mut bare), figures(&mut ours));
    let met = o999 <= 3.0 * b999 && omax - bmax <= 5e-3;
    println!(
        "| latency over rolls of 1 MiB, written{noise} | p50 {} p99.9 {} max {} | p50 {} p99.9 {} max {} | p99.9 {:.2}x, max {:+.2} ms | p99.9 <= 3x, max <= +5 ms | {} |",
        time(b50),
        time(b999),
        time(bmax),
        time(o50),
        time(o999),
        time(omax),
        o999 / b999,
        (omax - bmax) * 1e3,
        if met { "met" } else { "MISSED" },
    );
}

/// The same on a file system with a journal, in an image, beside four processes that sync all the time.
fn latency_beside_syncs(temp: &Path) {
    let image = temp.join("image");
    let mount = temp.join("mount");
    std::fs::create_dir_all(&mount).expect("a directory");
    let run = |command: &str| {
        Command::new("sh")
            .args(["-c", command])
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let (image, mounted) = (image.display().to_string(), mount.display().to_string());
    let made =
        run(&format!("truncate -s 1G {image} && mkfs.ext4 -q {image} && mount -o loop {image} {mounted}"));
    if !made {
        println!(
            "| latency on a journalled loop device | | | | | not run: needs root, mkfs.ext4 and a loop device |"
        );
        return;
    }
    // Bounded in count and time, whatever becomes of this process.
    let load = "i=0; while [ $i -lt 3000 ] && [ -e $0.go ]; do dd if=/dev/zero of=$0 bs=16k count=4 conv=fsync,notrunc 2>/dev/null; i=$((i+1)); done";
    for index in 0..4 {
        std::fs::write(mount.join(format!("noise-{index}.go")), []).expect("a file");
    }
    let mut noisy: Vec<_> = (0..4)
        .filter_map(|index| {
            Command::new("timeout")
                .args(["60", "sh", "-c", load, &format!("{mounted}/noise-{index}")])
                .spawn()
                .ok()
        })
        .collect();
    latency(&mount, ", ext4 with a journal, beside four fsyncing processes");
    for index in 0..4 {
        std::fs::remove_file(mount.join(format!("noise-{index}.go"))).expect("a file");
    }
    for process in &mut noisy {
        let _ = process.wait();
    }
    run(&format!("for i in 1 2 3 4 5 6 7 8 9 10; do umount {mounted} && break; sleep 0.3; done"));
}

/// The command on 4,000,000 lines against `cat > file; sync file`.
fn command(temp: &Path) {
    let lines = temp.join("lines");
    let mut text = String::new();
    for line in 0..4_000_000 {
        writeln!(text, "a line of text with its number {line:012}").expect("memory");
    }
    std::fs::write(&lines, text).expect("lines");
    let (source, target) = (lines.display().to_string(), temp.join("t-0").display().to_string());
    let logctl = env!("CARGO_BIN_EXE_logctl");
    let shell = |command: &str| {
        timed(|| {
            assert!(
                Command::new("sh").args(["-c", command]).status().is_ok_and(|status| status.success()),
                "{command}"
            );
        })
    };
    let copy = temp.join("copy").display().to_string();
    warm(1024);
    pair(
        "logctl append of 4,000,000 lines (175 MB), durable at the end",
        &Goal::Times(2.0, Duration::ZERO),
        7,
        || {
            let took = shell(&format!("cat {source} > {copy}; sync {copy}"));
            shell(&format!("rm {copy}"));
            took
        },
        || {
            let took = shell(&format!("{logctl} append -q --create {target} < {source}"));
            shell(&format!("rm -r {target}"));
            took
        },
    );
}

/// What a log takes that is open and does nothing.
fn idle(temp: &Path) {
    let resident = || -> i64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap_or_default();
        line.split_ascii_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
    };
    let before = resident();
    let mut logs = Vec::new();
    for index in 0..20 {
        let mut log =
            LogWriter::open(temp.join(format!("idle-{index}")), config(FsyncPolicy::Commit)).expect("a log");
        let value = vec![1; 1024];
        log.append_records(&vec![Record::value_only(&value); 500], AppendOptions::default())
            .expect("an append");
        log.maintain().expect("maintenance");
        log.maintain().expect("maintenance");
        logs.push(log);
    }
    let each = (resident() - before) / 20;
    let disk =
        Command::new("du").args(["-sk", &temp.join("idle-0").display().to_string()]).output().expect("du");
    let disk =
        String::from_utf8_lossy(&disk.stdout).split_ascii_whitespace().next().unwrap_or_default().to_owned();
    // 500 KiB of it are records.
    println!(
        "| an idle log | | {each} KiB of memory beyond its maps, {disk} KiB of disk with 500 KiB of records | | 128 KiB, 1 MiB | {} |",
        if each <= 128 { "met" } else { "MISSED" }
    );
}

fn curves(criterion: &mut Criterion) {
    let temp = workspace();
    let mut group = criterion.benchmark_group("append_records");
    group.sample_size(10).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300));
    for count in [1_usize, 10, 100, 1_000] {
        let value = vec![0x5a; 1024];
        group.throughput(Throughput::Bytes((count * value.len()) as u64));
        group.bench_function(format!("1 KiB x {count}"), |bencher| {
            bencher.iter_custom(|rounds| {
                let rounds = usize::try_from(rounds).unwrap_or(1);
                ours(&temp.path().join("c-0"), &value, count, rounds, FsyncPolicy::Never)
            });
        });
    }
    group.finish();
}

fn main() {
    throughput();
    let temp = workspace();
    latency(temp.path(), "");
    latency_beside_syncs(temp.path());
    command(temp.path());
    idle(temp.path());
    if std::env::var_os("STRATALOG_BENCH_TABLE_ONLY").is_none() {
        let mut criterion = Criterion::default().configure_from_args();
        curves(&mut criterion);
        criterion.final_summary();
    }
}
