//! Many logs in one store: memory, opening, the first append to each; and whether ten times as many logs or segments
//! make one record dearer.

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "each bench uses some of it")]
mod support;

use std::{
    fs::{self, File},
    hint::black_box,
    io::Write as _,
    path::Path,
    time::Duration,
};

use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogWriter, OpenMode, ReadOptions, Store, StoreConfig,
    record::Record,
};
use support::{Goal, heading, pair, timed, workspace};

const LOGS: i32 = 1_000;

fn config(fsync: FsyncPolicy) -> StoreConfig {
    let mut config = StoreConfig::default();
    config.log.open = OpenMode::CreateIfMissing;
    config.log.fsync = fsync;
    // Room for all of them: this is about memory and calls, not about letting go.
    config.descriptors = Some(12_000);
    config
}

fn store(dir: &Path, fsync: FsyncPolicy) -> Store {
    Store::open(dir, config(fsync)).expect("a store")
}

fn append(store: &Store, partition: i32, records: &[Record<'_>]) {
    let log = store.log("t", partition).expect("a log");
    black_box(log.append_records(records, AppendOptions::default()).expect("an append"));
}

/// Resident memory of this process, in KiB: all of it, and what belongs to nobody else.
fn resident() -> (u64, u64) {
    let text = fs::read_to_string("/proc/self/smaps_rollup").expect("/proc");
    let of = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).expect("a line");
        line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number")
    };
    (of("Rss:"), of("Private_Dirty:"))
}

fn thousand_logs() {
    heading("1,000 logs in one store");
    let value = vec![0x5a; 1024];
    let records = [Record::value_only(&value)];
    let bare = || {
        let temp = workspace();
        let dirs: Vec<_> = (0..LOGS).map(|log| temp.path().join(format!("t-{log}"))).collect();
        for dir in &dirs {
            fs::create_dir(dir).expect("a directory");
        }
        timed(|| {
            for dir in &dirs {
                let mut file = File::create_new(dir.join("00000000000000000000.log")).expect("a file");
                file.write_all(&value).expect("room");
                file.sync_data().expect("a sync");
                File::open(dir).and_then(|dir| dir.sync_all()).expect("a sync");
            }
        })
    };
    let first = || {
        let temp = workspace();
        let store = store(temp.path(), FsyncPolicy::Commit);
        store.create_topic("t", LOGS).expect("a topic");
        timed(|| (0..LOGS).for_each(|partition| append(&store, partition, &records)))
    };
    pair("first append to each, durable", &Goal::Times(1.2, Duration::ZERO), 3, bare, first);

    let temp = workspace();
    let opened = store(temp.path(), FsyncPolicy::Commit);
    let created = timed(|| drop(opened.create_topic("t", LOGS).expect("a topic")));
    println!("| (making the topic) | | {:.2} ms each | | | |", created.as_secs_f64() * 1e3 / f64::from(LOGS));
    let before = resident();
    (0..LOGS).for_each(|partition| append(&opened, partition, &records));
    assert_eq!(opened.open_logs(), LOGS.unsigned_abs() as usize);
    for when in ["after an append to each", "idle: after `maintain`"] {
        let after = resident();
        println!(
            "| 1,000 open logs, {when} | | {} MiB (private {} MiB), {} descriptors, {} maps | | <= 200 MiB | |",
            (after.0 - before.0) >> 10,
            after.1.saturating_sub(before.1) >> 10,
            fs::read_dir("/proc/self/fd").expect("/proc").count(),
            fs::read_to_string("/proc/self/maps").expect("/proc").lines().count(),
        );
        opened.maintain().expect("a pass");
        opened.maintain().expect("a pass");
    }
    opened.close().expect("a close");
    let reopen = || {
        let mut again = None;
        let took = timed(|| again = Some(store(temp.path(), FsyncPolicy::Commit)));
        drop(again);
        took
    };
    pair("open of the store", &Goal::AtMost(Duration::from_millis(50)), 9, || Duration::ZERO, reopen);
}

/// A store of so many logs, with some records in each.
fn filled(dir: &Path, logs: i32) -> Store {
    let store = store(dir, FsyncPolicy::Never);
    store.create_topic("t", logs).expect("a topic");
    let value = vec![0x5a; 1024];
    for partition in 0..logs {
        append(&store, partition, &[Record::value_only(&value)]);
    }
    store
}

fn many_logs() {
    heading("10x logs, 10x segments");
    let value = vec![0x5a; 1024];
    let records = vec![Record::value_only(&value); 10];
    let (few_dir, many_dir) = (workspace(), workspace());
    let (few, many) = (filled(few_dir.path(), 100), filled(many_dir.path(), LOGS));
    let rounds = |store: &Store, logs: i32| {
        timed(|| {
            for at in 0..20_000 {
                append(store, at * 7 % logs, &records);
            }
        })
    };
    pair(
        "append, 100 -> 1,000 logs",
        &Goal::Times(1.2, Duration::ZERO),
        5,
        || rounds(&few, 100),
        || rounds(&many, LOGS),
    );
    let readers = |store: &Store, logs: i32| -> Vec<_> {
        (0..logs).map(|log| store.log("t", log).expect("a log").reader().expect("a reader")).collect()
    };
    let (of_few, of_many) = (readers(&few, 100), readers(&many, LOGS));
    let reads = |readers: &[stratalog::LogReader]| {
        timed(|| {
            for at in 0..20_000 {
                let reader = &readers[at * 7 % readers.len()];
                black_box(reader.record(reader.start()).expect("a read"));
            }
        })
    };
    pair(
        "read, 100 -> 1,000 logs",
        &Goal::Times(1.2, Duration::ZERO),
        5,
        || reads(&of_few),
        || reads(&of_many),
    );
}

fn of_segments(dir: &Path, segments: u64) -> LogConfig {
    let mut config = config(FsyncPolicy::Never).log;
    config.segment_bytes = 64 << 10;
    let mut log = LogWriter::open(dir, config.clone()).expect("a log");
    let value = vec![0x5a; 1000];
    let records = vec![Record::value_only(&value); 10];
    while (log.reader().segments().len() as u64) < segments {
        log.append_records(&records, AppendOptions::default()).expect("an append");
        if log.lag().bytes > 16 << 20 {
            log.sync().expect("a sync");
        }
    }
    log.close().expect("a close");
    config
}

fn many_segments() {
    let (few_dir, many_dir) = (workspace(), workspace());
    let config = of_segments(few_dir.path(), 200);
    of_segments(many_dir.path(), 2_000);
    let open = |dir: &Path| LogWriter::open(dir, config.clone()).expect("a log");
    // Ten times as much, so each segment may cost as much as before.
    pair(
        "open, 10 x 200 segments -> 2,000",
        &Goal::Times(1.2, Duration::ZERO),
        9,
        || timed(|| (0..10).for_each(|_| drop(open(few_dir.path())))),
        || timed(|| drop(open(many_dir.path()))),
    );
    let read = |dir: &Path| {
        let reader = stratalog::LogReader::open(dir, ReadOptions::default()).expect("a reader");
        // The same few segments, near the end: what the others cost is looking past them.
        let first = reader.end().value() - 400;
        let at = |offset| stratalog::Offset::new(offset).expect("an offset");
        black_box(reader.record(at(first)).expect("a read"));
        timed(|| {
            for step in 0..20_000 {
                black_box(reader.record(at(first + step * 7 % 400)).expect("a read"));
            }
        })
    };
    pair(
        "read, 200 -> 2,000 segments",
        &Goal::Times(1.2, Duration::ZERO),
        5,
        || read(few_dir.path()),
        || read(many_dir.path()),
    );
    let value = vec![0x5a; 1024];
    let records = vec![Record::value_only(&value); 10];
    let appends = |dir: &Path| {
        let mut log = LogWriter::open(dir, config.clone()).expect("a log");
        timed(|| {
            for _ in 0..2_000 {
                log.append_records(&records, AppendOptions::default()).expect("an append");
            }
        })
    };
    let copies = (workspace(), workspace());
    pair(
        "append with rolls, 200 -> 2,000 segments",
        &Goal::Times(1.2, Duration::ZERO),
        5,
        || fresh(few_dir.path(), copies.0.path(), &appends),
        || fresh(many_dir.path(), copies.1.path(), &appends),
    );
}

/// The work on a copy, so that what one round adds the next does not find.
fn fresh(from: &Path, to: &Path, work: &dyn Fn(&Path) -> Duration) -> Duration {
    let copy = to.join("t-0");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir(&copy).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), copy.join(entry.file_name())).expect("a copy");
    }
    work(&copy)
}

fn main() {
    if !std::env::args().any(|arg| arg == "--bench") {
        // A test run: it builds.
        return;
    }
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    if wanted("thousand") {
        thousand_logs();
    }
    if wanted("logs") {
        many_logs();
    }
    if wanted("segments") {
        many_segments();
    }
}
