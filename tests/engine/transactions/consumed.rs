//! Directories that a broker wrote: both isolation levels give what its consumer was given, whatever lies beside the log.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use stratalog::{Isolation, LogConfig, LogReader, LogWriter, ReadOptions, Wait};

use super::{committed, filtered_as_by_a_client, offsets};
use crate::support::{at, copy_dir, fast_dir};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0");

/// What a consumer was given at one isolation level.
#[derive(Debug)]
struct Consumed {
    isolation: Isolation,
    start: i64,
    end: i64,
    offsets: Vec<i64>,
}

/// Each case with its partition's name.
fn cases() -> Vec<(PathBuf, String, Vec<Consumed>)> {
    let mut found = Vec::new();
    for case in fs::read_dir(FIXTURES).unwrap() {
        let case = case.unwrap().path();
        let Ok(text) = fs::read_to_string(case.join("consumed.jsonl")) else { continue };
        let consumed = text.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            Consumed {
                isolation: match line["isolation"].as_str().unwrap() {
                    "read_committed" => Isolation::Committed,
                    _ => Isolation::Uncommitted,
                },
                start: line["start"].as_i64().unwrap(),
                end: line["end"].as_i64().unwrap(),
                offsets: serde_json::from_value(line["offsets"].clone()).unwrap(),
            }
        });
        let partition = format!("{}-0", case.file_name().unwrap().to_str().unwrap());
        found.push((case.clone(), partition, consumed.collect()));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(found.len() >= 13, "fixtures are missing: {found:?}");
    found
}

fn assert_consumed(reader: &LogReader, expected: &[Consumed], what: &str) {
    for consumed in expected {
        let mut options = reader.options();
        options.isolation = consumed.isolation;
        let reader = reader.clone().with_options(options);
        let what = format!("{what}, {:?}", consumed.isolation);
        assert_eq!(reader.start().value(), consumed.start, "{what}");
        assert_eq!(reader.end().value(), consumed.end, "{what}");
        assert_eq!(offsets(&reader), consumed.offsets, "{what}");
        if consumed.isolation == Isolation::Committed {
            assert_eq!(reader.last_stable_offset().unwrap().value(), consumed.end, "{what}");
            assert_eq!(filtered_as_by_a_client(&reader), consumed.offsets, "{what}");
        }
    }
}

/// What is done to the files beside the `.log` files.
type Harm = fn(&mut Vec<u8>);

const HARMS: [(&str, Harm); 5] = [
    ("empty", |bytes| bytes.clear()),
    ("without its second half", |bytes| bytes.truncate(bytes.len() / 2)),
    ("without its last byte", |bytes| {
        bytes.pop();
    }),
    ("garbled", |bytes| bytes.iter_mut().for_each(|byte| *byte ^= 0x5A)),
    ("zeros", |bytes| bytes.fill(0)),
];

/// The kinds of files beside the `.log` files; `.stratalog-` stands for all of ours.
const KINDS: [&str; 6] =
    [".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint", ".stratalog-"];

fn is_of(name: &str, kind: &str) -> bool {
    if kind == ".stratalog-" { name.starts_with(kind) } else { name.ends_with(kind) }
}

/// The files of a kind in a directory.
fn files_of(dir: &Path, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| is_of(path.file_name().unwrap().to_str().unwrap(), kind)).collect()
}

/// A copy of the case and what lies beside the partition.
fn copy_of(case: &Path, partition: &str) -> (tempfile::TempDir, PathBuf) {
    let temp = fast_dir();
    copy_dir(case, temp.path());
    let dir = temp.path().join(partition);
    (temp, dir)
}

/// Looked at from outside, by a writer, and again by a writer that finds what the first one left.
fn look(temp: &Path, dir: &Path, expected: &[Consumed], what: &str) {
    let outside = LogReader::open(dir, ReadOptions::default()).unwrap();
    assert_consumed(&outside, expected, &format!("{what}, from outside"));
    // The writer changes the directory, so it is given another copy.
    let copy = fast_dir();
    copy_dir(temp, copy.path());
    let dir = copy.path().join(dir.file_name().unwrap());
    for what in [format!("{what}, by a writer"), format!("{what}, by a writer again")] {
        let log = LogWriter::open(&dir, LogConfig::default()).unwrap();
        assert_consumed(&log.reader(), expected, &what);
        log.close().unwrap();
    }
    let outside = LogReader::open(&dir, ReadOptions::default()).unwrap();
    assert_consumed(&outside, expected, &format!("{what}, after a writer"));
}

#[test]
fn each_isolation_level_gives_what_a_consumer_was_given() {
    for (case, partition, expected) in cases() {
        let reader = LogReader::open(case.join(&partition), ReadOptions::default()).unwrap();
        assert_consumed(&reader, &expected, &partition);
    }
}

#[test]
fn whatever_lies_beside_the_log() {
    for (case, partition, expected) in cases() {
        // Ours are there once a writer was.
        let (temp, dir) = copy_of(&case, &partition);
        LogWriter::open(&dir, LogConfig::default()).unwrap().close().unwrap();
        let whole =
            BTreeMap::from([("as Kafka left it", case.clone()), ("with ours", temp.path().to_owned())]);
        for (state, from) in whole {
            if partition != "transactions-0" && state != "with ours" {
                continue;
            }
            look(&from, &from.join(&partition), &expected, &format!("{partition} {state}"));
            for kind in KINDS {
                let (temp, dir) = copy_of(&from, &partition);
                let files = files_of(&dir, kind);
                if files.is_empty() {
                    continue;
                }
                for file in &files {
                    fs::remove_file(file).unwrap();
                }
                look(temp.path(), &dir, &expected, &format!("{partition} {state}, {kind} missing"));
                // Only where there is more than one thing to be said of transactions is every harm tried.
                let harms = if partition == "transactions-0" { &HARMS[..] } else { &HARMS[3..4] };
                for (how, harm) in harms {
                    for file in &files {
                        let mut bytes =
                            fs::read(from.join(&partition).join(file.file_name().unwrap())).unwrap();
                        harm(&mut bytes);
                        fs::write(file, bytes).unwrap();
                    }
                    look(temp.path(), &dir, &expected, &format!("{partition} {state}, {kind} {how}"));
                }
            }
        }
    }
}

/// The files of another state: of the log as it was before its last segment, and as it was after more.
#[test]
fn whatever_state_of_the_log_it_is_of() {
    let case = Path::new(FIXTURES).join("transactions");
    let (_, partition, expected) = cases().into_iter().find(|found| found.0 == case).unwrap();
    let (now, now_dir) = copy_of(&case, &partition);
    LogWriter::open(&now_dir, LogConfig::default()).unwrap().close().unwrap();

    let (_earlier, earlier_dir) = copy_of(&case, &partition);
    for file in fs::read_dir(&earlier_dir).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("00000000000000000008.") && !name.ends_with(".snapshot")
            || name.starts_with("00000000000000000144.")
        {
            fs::remove_file(file).unwrap();
        }
    }
    LogWriter::open(&earlier_dir, LogConfig::default()).unwrap().close().unwrap();
    let (_later, later_dir) = copy_of(&case, &partition);
    let mut later = super::Written::new(LogWriter::open(&later_dir, LogConfig::default()).unwrap());
    for commit in [false, true, false] {
        later.data(Some(500), 3);
        later.end(500, commit);
        later.log.roll().unwrap();
    }
    later.log.close().unwrap();

    for (state, other) in [("earlier", &earlier_dir), ("later", &later_dir)] {
        for kind in KINDS {
            // A checkpoint that promises more than the files hold tells of loss: that is another log.
            if kind == ".stratalog-" && state == "later" {
                continue;
            }
            let (temp, dir) = copy_of(now.path(), &partition);
            for file in files_of(&dir, kind) {
                fs::remove_file(file).unwrap();
            }
            let others = files_of(other, kind);
            for file in &others {
                fs::copy(file, dir.join(file.file_name().unwrap())).unwrap();
            }
            look(temp.path(), &dir, &expected, &format!("{kind} of an {state} state"));
        }
    }
    // The transaction index of the other segment under this one's name.
    let (temp, dir) = copy_of(&case, &partition);
    fs::copy(dir.join("00000000000000000008.txnindex"), dir.join("00000000000000000000.txnindex")).unwrap();
    look(temp.path(), &dir, &expected, "a transaction index of another segment");
}

#[test]
fn the_aborted_transactions_are_those_that_the_index_of_the_broker_lists() {
    let dir = Path::new(FIXTURES).join("transactions/transactions-0");
    let index = fs::read(dir.join("00000000000000000008.txnindex")).unwrap();
    let field = |entry: &[u8], at: usize| i64::from_be_bytes(entry[at..at + 8].try_into().unwrap());
    let kafkas: Vec<[i64; 4]> =
        index.chunks_exact(34).map(|entry| [2, 10, 18, 26].map(|at| field(entry, at))).collect();
    assert!(kafkas.len() >= 12);
    let reader = LogReader::open(&dir, committed()).unwrap();
    let list = |from: i64, to: i64| -> Vec<[i64; 4]> {
        let listed = reader.aborted_transactions(at(from)..at(to)).unwrap();
        listed
            .iter()
            .map(|aborted| {
                let offsets = [aborted.first_offset, aborted.last_offset, aborted.last_stable_offset];
                let [first, last, stable] = offsets.map(stratalog::Offset::value);
                [aborted.producer_id, first, last, stable]
            })
            .collect()
    };
    for from in 0..145 {
        for to in from..145 {
            let expected: Vec<_> =
                kafkas.iter().copied().filter(|entry| entry[2] >= from && entry[1] < to).collect();
            assert_eq!(list(from, to), expected, "{from}..{to}");
        }
    }
    assert_eq!(list(0, i64::MAX), kafkas);
    let open = reader.open_transactions().unwrap();
    assert_eq!(open.iter().map(|open| open.first_offset.value()).collect::<Vec<_>>(), [142]);
    let soon = std::time::Instant::now();
    assert_eq!(reader.wait_past(at(142), soon), Wait::TimedOut);
    assert_eq!(reader.wait_past(at(141), soon), Wait::Advanced);
}
