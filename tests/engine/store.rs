//! Stores: a data directory of many logs.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use stratalog::{
    AppendOptions, Error, FsyncPolicy, LogReader, LogWriter, OpenMode, ReadOptions, Store, StoreConfig,
    StoreLog, Wait, record::Record,
};

use crate::{
    lock::Broker,
    support::{all, at, copy_dir, expected, fast_dir, pairs},
};

const MARKER: &str = ".kafka_cleanshutdown";
const POINTS: &str = "recovery-point-offset-checkpoint";
const STARTS: &str = "log-start-offset-checkpoint";
const WATERMARKS: &str = "replication-offset-checkpoint";
const CHECKPOINTS: [&str; 4] = [POINTS, STARTS, WATERMARKS, "cleaner-offset-checkpoint"];

/// Small segments, nothing synced by itself.
fn config() -> StoreConfig {
    let mut config = StoreConfig::default();
    config.log.open = OpenMode::CreateIfMissing;
    config.log.segment_bytes = 4096;
    config.log.index_interval_bytes = 0;
    config.log.fsync = FsyncPolicy::Never;
    config
}

fn open(dir: &Path) -> Store {
    Store::open(dir, config()).unwrap()
}

/// Appends records, each its own batch, whose values are their offsets.
fn fill(log: &StoreLog, count: u64) {
    for _ in 0..count {
        let value = log.end().unwrap().to_string();
        log.append_records(&[Record::value_only(value.as_bytes())], AppendOptions::default()).unwrap();
    }
}

fn read(store: &Store, topic: &str, partition: i32) -> Vec<(i64, String)> {
    pairs(&store.reader(topic, partition, ReadOptions::default()).unwrap())
}

fn names(store: &Store) -> Vec<(String, Vec<i32>)> {
    store.topics().into_iter().map(|topic| (topic.name, topic.partitions)).collect()
}

fn entries(dir: &Path) -> BTreeSet<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    fs::read_dir(dir).unwrap().map(name).collect()
}

fn text(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

fn fixture(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kafka/4.4.0").join(case)
}

// ---- what a broker left ----------------------------------------------------------------------------------------------

#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod of_a_broker {
    use super::*;
    use crate::kafka_dirs::{assert_is, lines, state_of};

    /// What Kafka itself found in these partitions, which are in a case of their own too.
    const TOLD: [(&str, &str, &str); 3] = [
        ("store-clean", "transactions", "transactions"),
        ("store-killed", "killed", "killed"),
        ("store-killed", "killed-preallocated", "killed-preallocated"),
    ];

    fn told(case: &str, topic: &str) -> Option<Vec<serde_json::Value>> {
        let (.., of) = TOLD.iter().find(|(store, known, _)| (*store, *known) == (case, topic))?;
        Some(lines(&fixture(of).join(format!("{topic}-0.expected.jsonl"))))
    }

    fn topics_of(case: &str) -> Vec<(String, Vec<i32>)> {
        let of = |list: &[(&str, &[i32])]| {
            list.iter().map(|(name, partitions)| ((*name).to_owned(), partitions.to_vec())).collect()
        };
        match case {
            "store-clean" => of(&[
                ("__consumer_offsets", &[0, 1, 2, 3]),
                ("__transaction_state", &[0, 1, 2, 3]),
                ("grouped", &[0, 1, 2]),
                ("transactions", &[0]),
            ]),
            _ => of(&[("killed", &[0]), ("killed-preallocated", &[0])]),
        }
    }

    /// The state of all files but the lock's, which is there as soon as a store is open.
    fn state(dir: &Path) -> std::collections::BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
        let mut state = state_of(dir);
        state.remove(&dir.join(".lock"));
        state
    }

    #[test]
    fn it_is_listed_and_read_exactly_and_not_touched() {
        for case in ["store-clean", "store-killed"] {
            let temp = tempfile::tempdir().unwrap();
            copy_dir(&fixture(case).join("data"), temp.path());
            let before = state(temp.path());
            let store = Store::open(temp.path(), StoreConfig::default()).unwrap();
            assert_eq!(store.was_clean(), case == "store-clean");
            assert_eq!(names(&store), topics_of(case));
            assert_eq!(store.cluster_id(), Some("c3RyYXRhbG9nLXRlc3QtMQ"));
            assert_eq!((store.node_id(), store.directory_id().map(str::len)), (Some(1), Some(22)));
            for topic in store.topics() {
                assert_eq!(store.topic_id(&topic.name).unwrap().map(|id| id.len()), Some(22));
                for partition in topic.partitions {
                    let reader = store.reader(&topic.name, partition, ReadOptions::default()).unwrap();
                    match told(case, &topic.name) {
                        Some(expected) => assert_is(&reader, &expected),
                        None => drop(all(&reader)),
                    }
                }
            }
            assert_eq!(store.open_logs(), 0, "reading opens nothing for writing");
            assert!(matches!(store.log("__cluster_metadata", 0), Err(Error::NotFound { .. })));
            assert_eq!(store.close().unwrap(), case == "store-clean");
            assert_eq!(state(temp.path()), before, "{case} was changed");
        }
    }

    #[test]
    fn it_is_gone_on_with_and_closed_as_a_broker_would() {
        for case in ["store-clean", "store-killed"] {
            let temp = tempfile::tempdir().unwrap();
            copy_dir(&fixture(case).join("data"), temp.path());
            let store = Store::open(temp.path(), StoreConfig::default()).unwrap();
            for topic in store.topics() {
                for partition in topic.partitions {
                    let log = store.log(&topic.name, partition).unwrap();
                    let end = log.end().unwrap();
                    assert_eq!(log.recovery().unwrap().cut, None);
                    if let Some(expected) = told(case, &topic.name) {
                        assert_is(&log.reader().unwrap(), &expected);
                    }
                    let record = [Record::value_only(b"more")];
                    let appended = log.append_records(&record, AppendOptions::default()).unwrap();
                    assert_eq!(appended.base_offset, end);
                    assert!(!temp.path().join(MARKER).exists(), "a broker must look at what we write");
                }
            }
            assert!(store.close().unwrap());
            let epoch = if case == "store-clean" { 11 } else { -1 };
            assert_eq!(text(temp.path(), MARKER), format!("{{\"version\":0,\"brokerEpoch\":{epoch}}}"));
            // What is not in the directory any more keeps its lines, as long as nobody makes a topic of that name.
            assert!(text(temp.path(), STARTS).contains("trimmed 0 145"));
            let store = Store::open(temp.path(), StoreConfig::default()).unwrap();
            assert!(store.was_clean());
            for topic in store.topics() {
                for partition in topic.partitions {
                    let log = store.log(&topic.name, partition).unwrap();
                    assert!(log.recovery().unwrap().clean, "{} {partition}", topic.name);
                    let last = all(&log.reader().unwrap()).pop().unwrap();
                    assert_eq!(last.value.as_deref(), Some(&b"more"[..]));
                    let watermark = format!("{} {partition} {}\n", topic.name, log.end().unwrap());
                    assert!(text(temp.path(), WATERMARKS).contains(&watermark), "{watermark}");
                }
            }
        }
    }
}

#[test]
fn state_files_that_make_no_sense_never_stop_a_store() {
    let random: Vec<u8> = (0_u32..1 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let garbage: [&[u8]; 6] = [b"", &[0; 4096], b"aa", b"0\n5\nt 0 1\nt 1 1\n", b"0\n-1\n", &random];
    let files = CHECKPOINTS.into_iter().chain([MARKER, "meta.properties", "t-0/leader-epoch-checkpoint"]);
    for file in files {
        for bytes in garbage {
            let temp = fast_dir();
            let store = open(temp.path());
            store.create_topic("t", 2).unwrap();
            fill(&store.log("t", 0).unwrap(), 100);
            store.close().unwrap();
            fs::write(temp.path().join(file), bytes).unwrap();
            let store = open(temp.path());
            let is_named = store.warnings().iter().any(|warning| warning.contains(file));
            let says_nothing = bytes.is_empty() && file != "meta.properties";
            assert!(
                is_named || says_nothing || file == MARKER || file.starts_with("t-0"),
                "{file}: {bytes:?}"
            );
            assert_eq!(read(&store, "t", 0), expected(0..100), "{file}");
            fill(&store.log("t", 0).unwrap(), 1);
            store.close().unwrap();
            if CHECKPOINTS.contains(&file) && !bytes.is_empty() {
                assert!(text(temp.path(), file).starts_with("0\n"), "{file}: a broker would die over it");
            }
            let store = open(temp.path());
            assert_eq!(read(&store, "t", 0), expected(0..101), "{file}");
        }
    }
}

#[test]
fn without_any_of_the_small_files_all_records_are_there() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 1).unwrap();
    fill(&store.log("t", 0).unwrap(), 150);
    store.close().unwrap();
    let removed = |dir: &Path| {
        for name in entries(dir) {
            if !name.ends_with(".log") && !dir.join(&name).is_dir() {
                fs::remove_file(dir.join(name)).unwrap();
            }
        }
    };
    removed(temp.path());
    removed(&temp.path().join("t-0"));
    let mut must_exist = config();
    must_exist.log.open = OpenMode::MustExist;
    let store = Store::open(temp.path(), must_exist).unwrap();
    let log = store.log("t", 0).unwrap();
    assert_eq!(pairs(&log.reader().unwrap()), expected(0..150));
    fill(&log, 5);
    assert!(store.close().unwrap());
    assert_eq!(read(&open(temp.path()), "t", 0), expected(0..155));
}

#[test]
fn a_state_file_is_replaced_as_a_whole_and_a_half_written_one_is_nothing() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 1).unwrap();
    for name in CHECKPOINTS.into_iter().chain([MARKER]) {
        fs::write(temp.path().join(format!("{name}.tmp")), "0\n").unwrap();
    }
    fill(&store.log("t", 0).unwrap(), 10);
    assert!(store.close().unwrap());
    assert!(open(temp.path()).warnings().is_empty());
}

// ---- locks -----------------------------------------------------------------------------------------------------------

#[test]
fn one_holder_at_a_time_store_broker_or_writer() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 2).unwrap();
    fill(&store.log("t", 0).unwrap(), 3);
    let is_locked = |opened: Result<Store, Error>| match opened {
        Err(Error::Locked { path, holder }) => {
            assert_eq!(path, temp.path().join(".lock"));
            holder
        }
        other => panic!("{other:?}"),
    };
    let holder = is_locked(Store::open(temp.path(), config()));
    assert!(holder.unwrap().contains(&std::process::id().to_string()));
    for partition in ["t-0", "t-1"] {
        let opened = LogWriter::open(temp.path().join(partition), config().log);
        assert!(matches!(opened, Err(Error::Locked { .. })), "{opened:?}");
    }
    assert_eq!(read(&store, "t", 0), expected(0..3));
    store.close().unwrap();

    // One writer of a partition keeps stores out, and nothing is changed.
    let writer = LogWriter::open(temp.path().join("t-1"), config().log).unwrap();
    is_locked(Store::open(temp.path(), config()));
    drop(writer);

    let broker = Broker::over(temp.path());
    let before = entries(temp.path());
    let holder = is_locked(Store::open(temp.path(), config()));
    assert!(holder.unwrap().starts_with("process "));
    assert_eq!(entries(temp.path()), before);
    drop(broker);
    assert_eq!(read(&open(temp.path()), "t", 0), expected(0..3));
}

#[test]
fn the_lock_is_free_after_a_close_though_handles_are_left() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 1).unwrap();
    let (log, other) = (store.log("t", 0).unwrap(), store.clone());
    fill(&log, 3);
    let reader = log.reader().unwrap();
    store.close().unwrap();
    let again = open(temp.path());
    assert!(matches!(log.end(), Err(Error::Closed)));
    assert!(matches!(other.create_topic("u", 1), Err(Error::Closed)));
    assert!(matches!(other.log("t", 0), Err(Error::Closed)));
    assert!(matches!(other.clone().close(), Err(Error::Closed)));
    assert_eq!(pairs(&reader), expected(0..3));
    fill(&again.log("t", 0).unwrap(), 1);
}

// ---- the clean marker ------------------------------------------------------------------------------------------------

#[test]
fn the_marker_goes_first_and_comes_last() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 3).unwrap();
    for partition in 0..3 {
        fill(&store.log("t", partition).unwrap(), 120);
    }
    let mut dead = store.log("t", 0).unwrap().reader().unwrap().segments();
    let active = dead.pop().unwrap().base_offset;
    assert!(!temp.path().join(MARKER).exists());
    assert!(store.close().unwrap());
    let points = text(temp.path(), POINTS);
    assert!(points.starts_with("0\n3\n") && points.contains(&format!("t 0 {active}\n")), "{points}");
    assert!(text(temp.path(), WATERMARKS).contains("t 1 120\n"));

    // Opened and not changed: it stays. Changed: it is gone before.
    let store = open(temp.path());
    assert!(store.was_clean());
    assert_eq!(store.log("t", 1).unwrap().end().unwrap(), at(120));
    assert!(temp.path().join(MARKER).exists());
    fill(&store.log("t", 1).unwrap(), 1);
    assert!(!temp.path().join(MARKER).exists());
    drop(store);
    assert!(!temp.path().join(MARKER).exists(), "a store that was dropped vouches for nothing");

    // Killed: nobody says that the other two are clean, unless they are looked at.
    let store = open(temp.path());
    assert!(!store.was_clean());
    fill(&store.log("t", 1).unwrap(), 1);
    assert!(!store.close().unwrap());
    assert!(!temp.path().join(MARKER).exists());
    let store = open(temp.path());
    store.recover_all().unwrap();
    assert!(store.close().unwrap());
    assert!(temp.path().join(MARKER).exists());
    let store = open(temp.path());
    for (partition, end) in [(0, 120), (1, 122), (2, 120)] {
        assert_eq!(read(&store, "t", partition), expected(0..end));
    }
    assert_eq!(text(temp.path(), POINTS).lines().count(), 5, "logs that were not used keep their lines");
}

#[test]
fn recovery_of_all_goes_on_behind_a_log_that_cannot_be_recovered() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 3).unwrap();
    for partition in 0..3 {
        fill(&store.log("t", partition).unwrap(), 10);
    }
    drop(store);
    let store = open(temp.path());
    fs::remove_dir_all(temp.path().join("t-1")).unwrap();
    store.recover_all().unwrap_err();
    let left: Vec<_> = store.unclean_logs().unwrap().iter().map(StoreLog::partition).collect();
    assert_eq!(left, [1]);
    for partition in [0, 2] {
        assert_eq!(read(&store, "t", partition), expected(0..10));
    }
    assert!(!store.close().is_ok_and(|is_clean| is_clean));
}

#[test]
fn the_leader_epoch_is_known_without_opening_the_log() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 2).unwrap();
    let log = store.log("t", 0).unwrap();
    assert_eq!(log.leader_epoch().unwrap(), Some(0), "a topic that is made begins with it");
    assert!(!log.is_open());
    log.set_leader_epoch(4).unwrap();
    fill(&log, 3);
    assert_eq!(log.leader_epoch().unwrap(), Some(4));
    log.rest().unwrap();
    for _ in 0..2 {
        assert_eq!(log.leader_epoch().unwrap(), Some(4));
        assert!(!log.is_open());
    }
    log.set_leader_epoch(6).unwrap();
    fill(&log, 3);
    assert_eq!(log.leader_epoch().unwrap(), Some(6));
    log.rest().unwrap();
    assert_eq!(log.leader_epoch().unwrap(), Some(6));
    assert_eq!(store.log("t", 1).unwrap().leader_epoch().unwrap(), Some(0));
    store.close().unwrap();
    let store = open(temp.path());
    let log = store.log("t", 0).unwrap();
    assert_eq!((log.leader_epoch().unwrap(), log.is_open()), (Some(6), false));
    store.delete_topic("t").unwrap();
    assert!(matches!(log.leader_epoch(), Err(Error::NotFound { .. })));
}

#[test]
fn a_log_that_changed_under_a_clean_marker_is_not_taken_for_clean_again() {
    // Closed by a store, then gone on with by a broker's hand that left its files untrimmed and no word of it.
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 1).unwrap();
    let log = store.log("t", 0).unwrap();
    fill(&log, 10);
    log.sync().unwrap();
    store.close().unwrap();
    let index = temp.path().join("t-0/00000000000000000000.index");
    let trimmed = fs::metadata(&index).unwrap().len();
    fs::OpenOptions::new().write(true).open(&index).unwrap().set_len(10 << 20).unwrap();
    fs::remove_file(temp.path().join(MARKER)).unwrap();
    let store = open(temp.path());
    store.recover_all().unwrap();
    assert!(store.close().unwrap());
    assert_eq!(fs::metadata(&index).unwrap().len(), trimmed, "a broker with the marker would die over it");
}

#[test]
fn a_killed_store_recovers_each_log_by_its_own_rule() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 2).unwrap();
    for partition in 0..2 {
        let log = store.log("t", partition).unwrap();
        fill(&log, 100);
        log.sync().unwrap();
    }
    store.maintain().unwrap();
    drop(store);
    // A torn tail in a log that the next store does not touch, nor the one after.
    let last =
        entries(&temp.path().join("t-1")).into_iter().filter(|name| name.ends_with(".log")).max().unwrap();
    let path = temp.path().join("t-1").join(last);
    let mut bytes = fs::read(&path).unwrap();
    // The last record's last byte says that it has no headers: 0.
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 2;
    bytes.truncate(end);
    bytes.extend_from_slice(&[0xa5; 20]);
    fs::write(&path, bytes).unwrap();
    for _ in 0..2 {
        let store = open(temp.path());
        fill(&store.log("t", 0).unwrap(), 1);
        assert!(!store.close().unwrap());
    }
    let store = open(temp.path());
    let log = store.log("t", 1).unwrap();
    assert!(log.recovery().unwrap().cut.is_some(), "{:?}", log.recovery());
    assert_eq!(pairs(&log.reader().unwrap()), expected(0..100));
    assert_eq!(read(&store, "t", 0), expected(0..102));
}

// ---- topics ----------------------------------------------------------------------------------------------------------

#[test]
fn topics_are_made_and_removed() {
    let temp = fast_dir();
    let store = open(temp.path());
    let id = store.create_topic("orders.eu", 3).unwrap();
    assert_eq!(names(&store), [("orders.eu".to_owned(), vec![0, 1, 2])]);
    assert_eq!(store.topic_id("orders.eu").unwrap(), Some(id.clone()));
    for partition in 0..3 {
        let metadata = text(temp.path(), &format!("orders.eu-{partition}/partition.metadata"));
        assert_eq!(metadata, format!("version: 0\ntopic_id: {id}"));
        let log = temp.path().join(format!("orders.eu-{partition}/00000000000000000000.log"));
        assert_eq!(fs::metadata(log).unwrap().len(), 0);
    }
    assert!(matches!(store.create_topic("orders.eu", 1), Err(Error::TopicExists { .. })));
    for (name, count) in [("orders_eu", 1), ("a/b", 1), ("..", 1), ("", 1), ("n", 0), (&"x".repeat(250), 1)] {
        assert!(matches!(store.create_topic(name, count), Err(Error::InvalidTopic { .. })), "{name}");
    }
    let long = "x".repeat(249);
    store.create_topic(&long, 2).unwrap();
    fill(&store.log(&long, 1).unwrap(), 3);
    fill(&store.log("orders.eu", 0).unwrap(), 30);
    store.log("orders.eu", 0).unwrap().advance_start(at(7)).unwrap();
    store.maintain().unwrap();
    assert!(text(temp.path(), STARTS).contains("orders.eu 0 7\n"));
    let old = store.log("orders.eu", 0).unwrap();
    store.delete_topic("orders.eu").unwrap();
    store.delete_topic(&long).unwrap();
    assert_eq!(store.topics(), []);
    assert!(matches!(old.end(), Err(Error::NotFound { .. })));
    assert!(matches!(store.delete_topic("orders.eu"), Err(Error::NotFound { .. })));
    assert!(matches!(store.log("orders.eu", 0), Err(Error::NotFound { .. })));
    let left: Vec<_> = entries(temp.path())
        .into_iter()
        .filter(|name| name.contains("orders") || name.contains('x'))
        .collect();
    assert_eq!(left, [""; 0]);

    // The name is free at once, and nothing of the old topic meets the new one.
    let again = store.create_topic("orders.eu", 1).unwrap();
    assert_ne!(again, id);
    assert!(!text(temp.path(), STARTS).contains("orders.eu"));
    assert!(matches!(old.end(), Err(Error::NotFound { .. })), "an old handle is not the new log's");
    assert_eq!(store.log("orders.eu", 0).unwrap().end().unwrap(), at(0));
    assert!(store.close().unwrap());
}

#[test]
fn readers_of_a_deleted_topic_go_on_or_are_told() {
    let temp = fast_dir();
    let mut config = config();
    config.descriptors = Some(64);
    let store = Store::open(temp.path(), config).unwrap();
    store.create_topic("t", 1).unwrap();
    let log = store.log("t", 0).unwrap();
    fill(&log, 2500);
    let (with_files, without) = (log.reader().unwrap(), log.reader().unwrap());
    let other = store.reader("t", 0, ReadOptions::default()).unwrap();
    let mut records = with_files.records(at(0));
    assert!(records.next_record().unwrap().is_some());
    let waiting = std::thread::spawn({
        let reader = without.clone();
        move || reader.wait_past(reader.end(), Instant::now() + Duration::from_secs(60))
    });
    store.delete_topic("t").unwrap();
    assert_eq!(waiting.join().unwrap(), Wait::Closed);
    // What is open is read to its end; then a typed error, neither silence nor a wrong record.
    let mut next = 1;
    let error = loop {
        match records.next_record() {
            Ok(Some(record)) => assert_eq!(record.offset(), at(next)),
            Ok(None) => panic!("silently at the end at {next}"),
            Err(error) => break error,
        }
        next += 1;
    };
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    for reader in [without, other] {
        let error = reader.record(at(250)).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
    }
}

#[test]
fn a_partition_that_somebody_else_writes_to_is_not_deleted() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 2).unwrap();
    store.close().unwrap();
    // Reached by another name, so that its writer sees no data directory above.
    let elsewhere = fast_dir();
    let store = open(temp.path());
    let writer = {
        fs::rename(temp.path().join("t-1"), elsewhere.path().join("plain")).unwrap();
        let writer = LogWriter::open(elsewhere.path().join("plain"), config().log);
        fs::rename(elsewhere.path().join("plain"), temp.path().join("t-1")).unwrap();
        writer.unwrap()
    };
    assert!(matches!(store.delete_topic("t"), Err(Error::Locked { .. })));
    assert_eq!(names(&store), [("t".to_owned(), vec![0, 1])]);
    fill(&store.log("t", 0).unwrap(), 2);
    drop(writer);
    store.delete_topic("t").unwrap();
}

#[test]
fn foreign_entries_are_named_and_left_alone() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 1).unwrap();
    fill(&store.log("t", 0).unwrap(), 3);
    store.close().unwrap();
    let deleted = "t-1.0123456789abcdef0123456789abcdef-delete";
    let dirs = [
        "lost+found",
        "foo",
        "foo-bar",
        "t-007",
        "a b-0",
        "t-2.0123456789abcdef0123456789abcdef-stray",
        "t-3.0123456789abcdef0123456789abcdef-future",
        "t-4.nothex-delete",
    ];
    for dir in dirs.into_iter().chain([deleted]) {
        fs::create_dir_all(temp.path().join(dir).join("inner")).unwrap();
        fs::write(temp.path().join(dir).join("inner/file"), "x").unwrap();
    }
    symlink(temp.path().join("t-0"), temp.path().join("linked-0")).unwrap();
    fs::write(temp.path().join("foo-7"), "a file of a partition's name").unwrap();
    let status = std::process::Command::new("mkfifo").arg(temp.path().join("pipe-0")).status().unwrap();
    assert!(status.success());
    let odd: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(b"\xff\xfe-0".to_vec());
    fs::create_dir(temp.path().join(odd)).unwrap();
    let store = open(temp.path());
    assert_eq!(names(&store), [("t".to_owned(), vec![0])]);
    for dir in dirs {
        assert!(temp.path().join(dir).join("inner/file").exists(), "{dir}");
        assert!(
            store.warnings().iter().any(|warning| warning.contains(dir)),
            "{dir}: {:?}",
            store.warnings()
        );
    }
    assert!(!temp.path().join(deleted).exists(), "a deletion that was begun is ended");
    assert_eq!(read(&store, "t", 0), expected(0..3));
    assert!(!store.warnings().iter().any(|warning| warning.contains("foo-7")));
}

#[test]
fn what_was_being_made_or_removed_is_ended_at_the_next_open() {
    // The directories as a kill leaves them between any two steps.
    let made = |states: &[(&str, bool)]| {
        let temp = fast_dir();
        let store = open(temp.path());
        store.create_topic("other", 1).unwrap();
        fill(&store.log("other", 0).unwrap(), 3);
        store.create_topic("t", 3).unwrap();
        for partition in 0..3 {
            fill(&store.log("t", partition).unwrap(), 3);
        }
        store.close().unwrap();
        for (partition, (name, has_mark)) in states.iter().enumerate() {
            let dir = temp.path().join(format!("t-{partition}"));
            if *has_mark {
                fs::write(dir.join(".stratalog-unfinished"), "").unwrap();
            }
            if !name.is_empty() {
                fs::rename(&dir, temp.path().join(name)).unwrap();
            }
        }
        temp
    };
    let gone = |partition: u32| format!("t-{partition}.0123456789abcdef0123456789abcde{partition}-delete");
    let (gone_0, gone_1, gone_2) = (gone(0), gone(1), gone(2));
    for (states, stays) in [
        ([("", false), ("", false), ("", false)], true),
        ([("", true), ("", false), ("", false)], false),
        ([("", true), (&gone_1, false), ("", false)], false),
        ([("", true), ("", false), (&gone_2, false)], false),
        ([("", true), (&gone_1, false), (&gone_2, false)], false),
        ([(&gone_0, true), (&gone_1, false), (&gone_2, false)], false),
    ] {
        let temp = made(&states);
        for _ in 0..2 {
            let store = open(temp.path());
            let mut expected_topics = vec![("other".to_owned(), vec![0])];
            if stays {
                expected_topics.push(("t".to_owned(), vec![0, 1, 2]));
            }
            assert_eq!(names(&store), expected_topics, "{states:?}");
            assert_eq!(read(&store, "other", 0), expected(0..3));
            drop(store);
        }
        let left = entries(temp.path());
        assert!(stays || !left.iter().any(|name| name.starts_with("t-")), "{left:?}");
        let store = open(temp.path());
        if !stays {
            store.create_topic("t", 2).unwrap();
        }
        assert!(store.close().is_ok());
    }
}

#[test]
fn a_new_directory_says_who_it_is() {
    let temp = fast_dir();
    let dir = temp.path().join("a/b");
    let mut must_exist = StoreConfig::default();
    assert!(matches!(Store::open(&dir, must_exist.clone()), Err(Error::NotFound { .. })));
    assert!(matches!(Store::open(temp.path(), must_exist.clone()), Err(Error::NotFound { .. })));
    assert_eq!(entries(temp.path()), BTreeSet::new(), "nothing is made where nobody asked for it");
    let mut wanted = config();
    wanted.cluster_id = Some("my-cluster".to_owned());
    wanted.node_id = Some(7);
    let store = Store::open(&dir, wanted).unwrap();
    assert_eq!((store.cluster_id(), store.node_id()), (Some("my-cluster"), Some(7)));
    assert!(store.close().unwrap());
    let text = text(&dir, "meta.properties");
    assert!(text.contains("version=1\n") && text.contains("cluster.id=my-cluster\n"), "{text}");
    must_exist.node_id = Some(8);
    assert!(matches!(
        Store::open(&dir, must_exist.clone()),
        Err(Error::InvalidConfig { name: "node_id", .. })
    ));
    must_exist.node_id = Some(7);
    let store = Store::open(&dir, must_exist).unwrap();
    assert_eq!(store.directory_id().map(str::len), Some(22));
    drop(store);
    fs::write(dir.join("meta.properties"), "version=2\n").unwrap();
    assert!(matches!(Store::open(&dir, config()), Err(Error::UnsupportedVersion { .. })));
}

// ---- many logs -------------------------------------------------------------------------------------------------------

fn descriptors_under(dir: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let under = |entry: std::io::Result<fs::DirEntry>| {
        fs::read_link(entry.unwrap().path()).is_ok_and(|target| target.starts_with(dir))
    };
    links.filter(|_| true).map(under).filter(|is_under| *is_under).count()
}

#[test]
fn a_thousand_logs_work_with_few_descriptors() {
    let temp = fast_dir();
    let mut config = config();
    config.descriptors = Some(120);
    let store = Store::open(temp.path(), config.clone()).unwrap();
    for topic in 0..10 {
        store.create_topic(&format!("t{topic}"), 100).unwrap();
    }
    let logs = || {
        let store = store.clone();
        (0..10).flat_map(move |topic| {
            let store = store.clone();
            (0..100).map(move |partition| store.log(&format!("t{topic}"), partition).unwrap())
        })
    };
    let mut most = 0;
    for round in 0..2 {
        for log in logs() {
            fill(&log, 1);
            assert_eq!(log.end().unwrap(), at(round + 1));
        }
        most = most.max(descriptors_under(temp.path()));
    }
    assert!(most <= 120, "{most} descriptors");
    assert!(store.open_logs() <= 15);
    // Many segments of one log, read at random, share the same bound.
    let log = store.log("t0", 0).unwrap();
    fill(&log, 3000);
    // What is not durable keeps its files open.
    log.sync().unwrap();
    let reader = log.reader().unwrap();
    let mut at_offset = 1;
    for _ in 0..500 {
        at_offset = at_offset * 7919 % 3001;
        assert!(reader.record(at(at_offset)).unwrap().is_some());
    }
    assert!(reader.segments().len() > 40);
    assert!(descriptors_under(temp.path()) <= 120, "{} descriptors", descriptors_under(temp.path()));
    drop(reader);
    assert!(store.clone().close().unwrap());
    assert_eq!(descriptors_under(temp.path()), 1, "the directory's own");
    let store = Store::open(temp.path(), config).unwrap();
    assert_eq!(read(&store, "t9", 99), expected(0..2));
    assert_eq!(store.open_logs(), 0);
}

#[test]
fn a_log_that_is_let_go_goes_on_where_it_was() {
    let temp = fast_dir();
    let mut config = config();
    config.descriptors = Some(16);
    let store = Store::open(temp.path(), config).unwrap();
    store.create_topic("t", 6).unwrap();
    let logs: Vec<_> = (0..6).map(|partition| store.log("t", partition).unwrap()).collect();
    let pinned = logs[0].reader().unwrap();
    let mut follower = None;
    for round in 0..30 {
        for log in &logs {
            fill(log, 1);
            assert_eq!(log.end().unwrap(), at(round + 1));
        }
        follower.get_or_insert_with(|| store.reader("t", 5, ReadOptions::default()).unwrap());
    }
    assert!(store.open_logs() <= 3);
    assert_eq!(pinned.end(), at(30), "a log with a reader in the process stays open");
    assert_eq!(pairs(&pinned), expected(0..30));
    let follower = follower.unwrap();
    follower.refresh().unwrap();
    assert_eq!(pairs(&follower), expected(0..30));
    let pending =
        logs[3].append_records_deferred(&[Record::value_only(b"30")], AppendOptions::default()).unwrap();
    store.close_idle(0);
    assert_eq!(store.open_logs(), 2, "the reader's and the pending append's");
    pending.wait().unwrap();
    drop(pinned);
    store.close_idle(0);
    assert_eq!(store.open_logs(), 0);
    assert!(store.close().unwrap());
}

#[test]
fn settings_of_one_logs_own_last_through_being_let_go() {
    let temp = fast_dir();
    let store = open(temp.path());
    store.create_topic("t", 2).unwrap();
    let logs = [store.log("t", 0).unwrap(), store.log("t", 1).unwrap()];
    let mut own = config().log;
    own.retention.bytes = Some(8192);
    logs[0].set_config(own).unwrap();
    for log in &logs {
        fill(log, 300);
        log.rest().unwrap();
        fill(log, 1);
    }
    let done = store.maintain().unwrap();
    assert!(done.dropped_segments > 0 && done.failed.is_empty(), "{done:?}");
    assert!(logs[0].start().unwrap() > at(0));
    assert_eq!(logs[1].start().unwrap(), at(0));
    store.close().unwrap();
}

#[test]
fn many_threads_on_many_logs_with_few_descriptors() {
    let temp = fast_dir();
    let mut config = config();
    config.descriptors = Some(16);
    let store = Store::open(temp.path(), config).unwrap();
    store.create_topic("t", 8).unwrap();
    store.create_topic("gone", 2).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                for round in 0..40 {
                    let log = store.log("t", (thread + round) % 8).unwrap();
                    let record = [Record::value_only(b"x")];
                    log.append_records(&record, AppendOptions::default()).unwrap();
                    if round % 10 == 0 {
                        store.maintain().unwrap();
                    }
                }
            });
        }
        let store = store.clone();
        scope.spawn(move || {
            for _ in 0..5 {
                fill(&store.log("gone", 1).unwrap(), 3);
                store.delete_topic("gone").unwrap();
                store.create_topic("gone", 2).unwrap();
            }
        });
    });
    let total: i64 = (0..8).map(|partition| store.log("t", partition).unwrap().end().unwrap().value()).sum();
    assert_eq!(total, 160);
    assert!(store.close().unwrap());
}

#[test]
fn opens_and_closes_leave_no_descriptor() {
    let temp = fast_dir();
    for round in 0..20 {
        let store = open(temp.path());
        let name = format!("t{round}");
        store.create_topic(&name, 1).unwrap();
        fill(&store.log(&name, 0).unwrap(), 2);
        drop(store.log("absent", 0));
        if round % 2 == 0 {
            store.close().unwrap();
        } else {
            drop(store);
        }
        assert_eq!(descriptors_under(temp.path()), 0);
    }
    assert_eq!(
        LogReader::open(temp.path().join("t3-0"), ReadOptions::default()).map(|r| pairs(&r)).unwrap(),
        expected(0..2)
    );
}
