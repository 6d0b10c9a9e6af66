//! Waking readers: against a bare condition variable and a bare futex, with the same bytes written before.
//!
//! The reader of "another process" is one that opened the directory, in a thread of this one: it knows nothing of the
//! writer but its files, and it is the kernel's shared futex that wakes it. So is the bare loop's.

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "each bench uses some of it")]
mod support;

/// The very files that the engine publishes by.
mod atomics {
    pub(super) use std::sync::atomic::{AtomicU32, Ordering, fence};
}
#[path = "../src/log/publish.rs"]
#[expect(dead_code, reason = "only the writer's half is measured")]
mod publish;
#[path = "../src/log/wake.rs"]
#[expect(dead_code, reason = "only the writer's half is measured")]
mod wake;

use std::{
    hint::black_box,
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::thread::futex;
use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogReader, LogWriter, Offset, OpenMode, ReadOptions, Wait,
    record::{BatchOptions, Record, batch_size},
};
use support::{Goal, heading, pair, reserved, timed, workspace, write_at};

const WAKES: u64 = 300;
/// Long enough for the waiter to be asleep again.
const PAUSE: Duration = Duration::from_micros(300);

/// How long it takes, all in all, from before each publish until the waiter has seen it.
fn wakes(seen: &AtomicU64, mut publish: impl FnMut(u64)) -> Duration {
    let mut all = Duration::ZERO;
    for wake in 1..=WAKES {
        std::thread::sleep(PAUSE);
        let began = Instant::now();
        publish(wake);
        while seen.load(Ordering::Acquire) < wake {
            std::hint::spin_loop();
        }
        all += began.elapsed();
    }
    all
}

fn value() -> Vec<u8> {
    vec![0x5a; 100]
}

/// Writes the bytes of one batch.
fn writing(place: &Path) -> impl FnMut(u64) {
    let size = batch_size(&[Record::value_only(&value())], &BatchOptions::default());
    let bytes = vec![0x5a; usize::try_from(size).expect("a size")];
    let file = reserved(&place.join("bare"), 1 << 20).expect("a file");
    move |number| write_at(&file, &bytes, number * size)
}

fn bare_condvar(place: &Path) -> Duration {
    let shared = Arc::new((Mutex::new(0_u64), Condvar::new(), AtomicU64::new(0)));
    let other = Arc::clone(&shared);
    let waiter = std::thread::spawn(move || {
        let mut done = 0;
        while done < WAKES {
            let mut value = other.0.lock().expect("a lock");
            while *value == done {
                value = other.1.wait(value).expect("a lock");
            }
            done = *value;
            drop(value);
            other.2.store(done, Ordering::Release);
        }
    });
    let mut write = writing(place);
    let took = wakes(&shared.2, |wake| {
        write(wake);
        *shared.0.lock().expect("a lock") = wake;
        shared.1.notify_all();
    });
    waiter.join().expect("a thread");
    took
}

fn bare_futex(place: &Path) -> Duration {
    let shared = Arc::new((AtomicU32::new(0), AtomicU64::new(0)));
    let other = Arc::clone(&shared);
    let waiter = std::thread::spawn(move || {
        let mut done = 0;
        while u64::from(done) < WAKES {
            while other.0.load(Ordering::Acquire) == done {
                let _ = futex::wait(&other.0, futex::Flags::empty(), done, None);
            }
            done = other.0.load(Ordering::Acquire);
            other.1.store(u64::from(done), Ordering::Release);
        }
    });
    let mut write = writing(place);
    let took = wakes(&shared.1, |wake| {
        write(wake);
        shared.0.fetch_add(1, Ordering::SeqCst);
        futex::wake(&shared.0, futex::Flags::empty(), i32::MAX.unsigned_abs()).expect("a wake-up");
    });
    waiter.join().expect("a thread");
    took
}

fn ours(place: &Path, open: impl Fn(&LogWriter) -> LogReader) -> Duration {
    let dir = place.join("t-0");
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = FsyncPolicy::Never;
    let mut log = LogWriter::open(&dir, config).expect("a log");
    let reader = open(&log);
    let seen = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&seen);
    let waiter = std::thread::spawn(move || {
        let mut at = Offset::ZERO;
        while at.value().unsigned_abs() < WAKES {
            let until = Instant::now() + Duration::from_secs(60);
            assert_eq!(reader.wait_past(at, until), Wait::Advanced);
            at = reader.end();
            told.store(at.value().unsigned_abs(), Ordering::Release);
        }
    });
    let value = value();
    let took = wakes(&seen, |_| {
        log.append_records(&[Record::value_only(&value)], AppendOptions::default()).expect("an append");
    });
    waiter.join().expect("a thread");
    drop(log);
    std::fs::remove_dir_all(dir).expect("a directory");
    took
}

/// What it costs to publish an end, and to tell other processes of it, where none waits.
fn publish_without_waiters() {
    const TIMES: u32 = 10_000_000;
    let page: [AtomicU64; 14] = std::array::from_fn(|_| AtomicU64::new(0));
    let (flag, word) = (AtomicU32::new(0), AtomicU32::new(0));
    let woken = AtomicBool::new(false);
    let bare = || {
        timed(|| {
            for end in 0..TIMES {
                black_box(&page)[publish::WRITTEN].store(u64::from(end), Ordering::Release);
            }
        }) / TIMES
    };
    let ours = || {
        timed(|| {
            for end in 0..TIMES {
                let store = |word: usize, value| black_box(&page)[word].store(value, Ordering::Release);
                publish::store_written(store, (0, u64::from(end)), false, u64::from(end));
                let words = wake::WakeWords { flag: black_box(&flag), word: &word };
                words.published(|_| woken.store(true, Ordering::Relaxed));
            }
        }) / TIMES
    };
    let work = "publish, no waiter in another process (bare: one store)";
    pair(work, &Goal::AtMost(Duration::from_nanos(10)), 9, bare, ours);
    assert!(!woken.load(Ordering::Relaxed));
}

fn main() {
    let temp = workspace();
    let place = temp.path();
    heading("attach");
    let goal = Goal::Times(1.15, Duration::ZERO);
    let from_outside =
        |log: &LogWriter| LogReader::open(log.path(), ReadOptions::default()).expect("a reader");
    pair(
        "write 100 B and wake a reader in the process",
        &goal,
        9,
        || bare_condvar(place),
        || ours(place, LogWriter::reader),
    );
    pair(
        "write 100 B and wake a reader from outside",
        &goal,
        9,
        || bare_futex(place),
        || ours(place, from_outside),
    );
    publish_without_waiters();
}
