//! Many threads on one log: against a hand-written group commit that writes the same bytes, and against one thread alone.

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "each bench uses some of it")]
mod support;

use std::{
    fs::File,
    path::Path,
    sync::{Barrier, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogWriter, OpenMode, SharedWriter,
    record::{BatchOptions, Record, encode_batch},
};
use support::{Goal, heading, pair, quantile, reserved, time, warm, workspace, write_at};

fn config(fsync: FsyncPolicy) -> LogConfig {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = fsync;
    config
}

/// Runs `calls` on each of so many threads, which begin together. How long all of them took, and each call.
fn on_threads(count: usize, calls: usize, call: impl Fn() + Sync) -> (Duration, Vec<Duration>) {
    let barrier = Barrier::new(count + 1);
    thread::scope(|scope| {
        let (barrier, call) = (&barrier, &call);
        let threads: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(move || {
                    let mut each = Vec::with_capacity(calls);
                    barrier.wait();
                    for _ in 0..calls {
                        let began = Instant::now();
                        call();
                        each.push(began.elapsed());
                    }
                    each
                })
            })
            .collect();
        barrier.wait();
        let began = Instant::now();
        let each = threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect();
        (began.elapsed(), each)
    })
}

/// Group commit as one writes it by hand: callers put their bytes into a buffer; whoever finds nobody at it writes the
/// buffer, syncs, and tells all.
struct ByHand {
    file: File,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    filling: Vec<u8>,
    spare: Vec<u8>,
    position: u64,
    /// The group that is being filled, and how many are durable.
    group: u64,
    durable: u64,
    is_led: bool,
}

impl ByHand {
    fn new(path: &Path, bytes: u64) -> Self {
        let file = reserved(path, bytes).expect("a file");
        Self { file, state: Mutex::default(), done: Condvar::new() }
    }

    /// Makes the records of one call durable: encoded, with their checksum, as they are stored.
    fn append(&self, records: &[Record<'_>]) {
        let mut batch = vec![0; 1200];
        let size = encode_batch(records, &BatchOptions::default(), &mut batch).expect("a batch").size_bytes();
        let mut state = self.state.lock().expect("a lock");
        state.filling.extend_from_slice(&batch[..size as usize]);
        let group = state.group;
        while state.durable <= group {
            if state.is_led {
                state = self.done.wait(state).expect("a lock");
                continue;
            }
            state.is_led = true;
            state.group += 1;
            let spare = std::mem::take(&mut state.spare);
            let mut bytes = std::mem::replace(&mut state.filling, spare);
            let position = state.position;
            state.position += bytes.len() as u64;
            let led = state.group;
            drop(state);
            write_at(&self.file, &bytes, position);
            self.file.sync_data().expect("a sync");
            bytes.clear();
            state = self.state.lock().expect("a lock");
            state.spare = bytes;
            state.durable = led;
            state.is_led = false;
            self.done.notify_all();
        }
    }
}

fn durable(temp: &Path, count: usize, calls: usize, rounds: usize) {
    let value = vec![0x5a; 1024];
    let records = [Record::value_only(&value)];
    let (mut bare_calls, mut our_calls) = (Vec::new(), Vec::new());
    let bytes = (count * calls * 1200) as u64;
    let bare = || {
        let path = temp.join("bare");
        let log = ByHand::new(&path, bytes);
        let (took, mut each) = on_threads(count, calls, || log.append(&records));
        bare_calls.append(&mut each);
        drop(log);
        std::fs::remove_file(path).expect("a file");
        took
    };
    let dir = temp.join("t-0");
    let ours = || {
        let mut config = config(FsyncPolicy::Commit);
        // As the bare file has it.
        config.preallocate = stratalog::Preallocate::Whole;
        config.segment_bytes = u32::try_from(bytes + (1 << 20)).expect("a size");
        let log = SharedWriter::open(&dir, config).expect("a log");
        log.append_records(&records, AppendOptions::default()).expect("an append");
        let (took, mut each) = on_threads(count, calls, || {
            log.append_records(&records, AppendOptions::default()).expect("an append");
        });
        our_calls.append(&mut each);
        drop(log);
        std::fs::remove_dir_all(&dir).expect("a directory");
        took
    };
    pair(&format!("1 KiB each, durable, {count} threads"), &Goal::Share(0.95), rounds, bare, ours);
    let [b50, b99, o50, o99] = [(&mut bare_calls, 0.5), (&mut our_calls, 0.5)]
        .map(|(all, half)| [quantile(all, half), quantile(all, 0.99)].map(|at| at.as_secs_f64()))
        .concat()
        .try_into()
        .expect("four");
    println!(
        "| the same, latency of a call | p50 {} p99 {} | p50 {} p99 {} | p99 {:.2}x | p99 <= 1.2x | {} |",
        time(b50),
        time(b99),
        time(o50),
        time(o99),
        o99 / b99,
        if o99 <= 1.2 * b99 { "met" } else { "MISSED" },
    );
}

fn written(temp: &Path, count: usize, records: usize, calls: usize, rounds: usize) {
    let value = vec![0x5a; 1024];
    let records = vec![Record::value_only(&value); records];
    let dir = temp.join("t-0");
    let run = |count: usize, calls: usize, is_shared: bool| {
        let log = LogWriter::open(&dir, config(FsyncPolicy::Never)).expect("a log");
        let took = if is_shared {
            let log = SharedWriter::from(log);
            log.append_records(&records, AppendOptions::default()).expect("an append");
            on_threads(count, calls, || {
                log.append_records(&records, AppendOptions::default()).expect("an append");
            })
            .0
        } else {
            let mut log = log;
            log.append_records(&records, AppendOptions::default()).expect("an append");
            support::timed(|| {
                for _ in 0..calls {
                    log.append_records(&records, AppendOptions::default()).expect("an append");
                }
            })
        };
        std::fs::remove_dir_all(&dir).expect("a directory");
        took
    };
    let total = count * calls * records.len();
    warm(total * 1100 / (1 << 20) + 64);
    pair(
        &format!("1 KiB x {} a call, written, {count} threads against one", records.len()),
        &Goal::Share(0.9),
        rounds,
        || run(1, count * calls, false),
        || run(count, calls, true),
    );
}

fn main() {
    heading("many threads on one log");
    let temp = workspace();
    let rounds =
        std::env::var("STRATALOG_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(9);
    durable(temp.path(), 8, 1_500, rounds);
    durable(temp.path(), 64, 600, rounds);
    for (count, records, calls) in [(64, 1, 3_000), (64, 100, 40)] {
        written(temp.path(), count, records, calls, rounds);
    }
}
