//! `logctl dump` and `logctl verify`: over directories that a real broker wrote, and over damage done to them here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::SystemTime,
};

use base64::Engine;
use serde_json::Value;
use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogWriter, OpenMode,
    inspect::{
        Finding, FindingKind, LogFile, Partition, Piece, Severity, VerifyOptions, VerifyReport, verify,
    },
    record::Record,
};
use tempfile::TempDir;

use FindingKind as Kind;
use Severity::{Damage, Note, Warning};

/// The cases whose partition directories are of message format 2, with a dump by Kafka's own tool.
const CASES: [&str; 15] = [
    "appendtime",
    "compacted",
    "gzip",
    "idempotent",
    "killed",
    "killed-preallocated",
    "large",
    "lz4",
    "odd",
    "plain",
    "snappy",
    "transactions",
    "trimmed",
    "unordered",
    "zstd",
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kafka/4.4.0")
}

fn logctl<S: AsRef<std::ffi::OsStr>>(dir: &Path, args: impl IntoIterator<Item = S>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_logctl"));
    command.current_dir(dir).args(args).env_remove("LOGCTL_DIR").env_remove("LOGCTL_LOG");
    command.output().expect("logctl runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A copy of a partition directory that may be damaged.
fn copy_of(case: &str) -> TempDir {
    let to = TempDir::new().unwrap();
    for entry in fs::read_dir(fixtures().join(case).join(format!("{case}-0"))).unwrap() {
        let entry = entry.unwrap();
        fs::write(to.path().join(entry.file_name()), fs::read(entry.path()).unwrap()).unwrap();
    }
    to
}

fn name(base: u64, suffix: &str) -> String {
    format!("{base:020}.{suffix}")
}

/// The segment files of a directory in name order, as the fixtures' dumps have them.
fn dumpable(dir: &Path, prefix: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            [".log", ".index", ".timeindex", ".txnindex", ".snapshot"]
                .iter()
                .any(|suffix| name.ends_with(suffix))
        })
        .map(|name| format!("{prefix}/{name}"))
        .collect();
    names.sort();
    names
}

// ---- over what Kafka wrote

#[test]
fn the_dump_is_that_of_kafkas_own_tool_byte_for_byte() {
    for case in CASES {
        let dir = fixtures().join(case);
        let topic = format!("{case}-0");
        let expected = fs::read(dir.join(format!("{topic}.dump-log.txt"))).unwrap();
        let mut args = vec!["dump".to_owned(), "--deep-iteration".to_owned()];
        args.extend(dumpable(&dir.join(&topic), &topic));
        let output = logctl(&dir, args);
        assert_eq!(output.status.code(), Some(0), "{case}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{case}");
        let printed = if case == "killed-preallocated" {
            // Kafka's tool throws at the zeros; ours says what they are and goes on.
            let rest = output.stdout.get(expected.len()..).expect("longer than Kafka's");
            assert_eq!(
                String::from_utf8_lossy(rest),
                "Found 1041561 zero bytes at the end of 00000000000000000360.log\n\
                 Dumping killed-preallocated-0/00000000000000000360.snapshot\n\
                 Dumping killed-preallocated-0/00000000000000000360.timeindex\n\
                 timestamp: 1700020314285 offset: 395\n"
            );
            output.stdout.get(..expected.len()).unwrap_or_default()
        } else {
            &output.stdout
        };
        assert!(!expected.is_empty(), "{case}");
        assert!(printed == expected, "{case}: the dump differs from Kafka's");
    }
}

#[test]
fn files_can_be_given_as_kafkas_tool_takes_them() {
    let dir = fixtures().join("odd");
    let files = dumpable(&dir.join("odd-0"), "odd-0");
    let one = logctl(&dir, ["dump".to_owned(), "--files".to_owned(), files.join(",")]);
    let other = logctl(&dir, [vec!["dump".to_owned()], files].concat());
    assert_eq!(one.status.code(), Some(0));
    assert_eq!(one.stdout, other.stdout);
    assert!(!stdout(&one).contains("| offset"), "records only where asked for");
}

#[test]
fn json_lines_hold_every_batch_and_record_that_kafkas_reader_finds() {
    for case in CASES {
        let dir = fixtures().join(case);
        let topic = format!("{case}-0");
        let logs = dumpable(&dir.join(&topic), &topic)
            .into_iter()
            .filter(|file| Path::new(file).extension().is_some_and(|suffix| suffix == "log"));
        let mut args = vec!["dump".to_owned(), "-J".to_owned(), "--deep-iteration".to_owned()];
        args.extend(logs);
        let output = logctl(&dir, args);
        assert_eq!(output.status.code(), Some(0), "{case}");
        let lines: Vec<Value> =
            stdout(&output).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        let of =
            |kind: &str| lines.iter().filter(|line| line["type"] == kind).cloned().collect::<Vec<Value>>();
        let expected = fs::read_to_string(dir.join(format!("{topic}.expected.jsonl"))).unwrap();
        let expected: Vec<Value> = expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

        let (batches, records) = (of("batch"), of("record"));
        let (want_batches, want_records): (Vec<&Value>, Vec<&Value>) =
            expected.iter().partition(|line| line.get("batch").is_some());
        assert_eq!((batches.len(), records.len()), (want_batches.len(), want_records.len()), "{case}");
        for (got, want) in batches.iter().zip(want_batches) {
            assert_eq!(got["base_offset"], want["batch"], "{case}");
            assert!(got["file"].as_str().unwrap().ends_with(want["file"].as_str().unwrap()), "{case}");
            for (ours, theirs) in [
                ("last_offset", "last"),
                ("position", "position"),
                ("size_bytes", "size"),
                ("codec", "codec"),
                ("crc", "crc"),
                ("computed_crc", "crc"),
                ("max_timestamp", "maxTimestamp"),
                ("leader_epoch", "epoch"),
                ("producer_id", "producerId"),
                ("producer_epoch", "producerEpoch"),
                ("base_sequence", "baseSequence"),
                ("transactional", "transactional"),
                ("control", "control"),
            ] {
                assert_eq!(got[ours], want[theirs], "{case}: {ours} of {want}");
            }
            assert_eq!(got["valid"], true);
        }
        for (got, want) in records.iter().zip(want_records) {
            assert_eq!(got["offset"], want["offset"], "{case}");
            assert_eq!(got["timestamp"], want["timestamp"], "{case}");
            assert_same_bytes(case, got, "key", &want["key"]);
            assert_same_bytes(case, got, "value", &want["value"]);
            assert_eq!(
                got["headers"].as_array().unwrap().len(),
                want["headers"].as_array().unwrap().len(),
                "{case}"
            );
        }
    }
}

/// Holds a field of ours (text, or base64 where it says so) against one of the fixtures: base64, or length and SHA-256.
fn assert_same_bytes(case: &str, record: &Value, field: &str, want: &Value) {
    use sha2::Digest;
    let base64 = base64::engine::general_purpose::STANDARD;
    let got = record[field].as_str().map(|text| match record.get(format!("{field}_encoding")) {
        Some(encoding) => {
            assert_eq!(encoding, "base64", "{case}");
            base64.decode(text).unwrap()
        }
        None => text.as_bytes().to_vec(),
    });
    match (got, want) {
        (None, Value::Null) => {}
        (Some(got), Value::String(want)) => {
            assert!(got == base64.decode(want).unwrap(), "{case}: {field} of {record}");
        }
        (Some(got), Value::Object(want)) => {
            let hash = want.get("sha256").and_then(Value::as_str).expect("a hash");
            assert_eq!(format!("{:x}", sha2::Sha256::digest(&got)), hash, "{case}");
        }
        (got, want) => panic!("{case}: {field} is {got:?}, not {want}"),
    }
}

#[test]
fn every_directory_of_kafka_verifies_clean() {
    let mut dirs: Vec<PathBuf> =
        CASES.iter().map(|case| fixtures().join(case).join(format!("{case}-0"))).collect();
    for store in ["store-clean", "store-killed"] {
        dirs.extend(
            fs::read_dir(fixtures().join(store).join("data"))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.is_dir()),
        );
    }
    assert!(dirs.len() > 25, "{}", dirs.len());
    for dir in dirs {
        let output = logctl(&dir, ["verify", "--deep", ".", "-J"]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{}: {text}", dir.display());
        for line in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            if line["type"] == "summary" {
                assert_eq!((&line["state"], &line["damage"]), (&Value::from("clean"), &Value::from(0)));
                continue;
            }
            // What a kill leaves: room. And the cluster metadata came without its indexes; compaction leaves gaps.
            let kind = line["kind"].as_str().unwrap();
            let allowed = match dir.to_str().unwrap() {
                path if path.contains("killed") => kind == "untrimmed",
                path if path.contains("__cluster_metadata") => kind == "missing-index",
                path if path.contains("compacted") => {
                    (kind, &line["severity"]) == ("offset-gap", &"note".into())
                }
                _ => false,
            };
            assert!(allowed, "{}: {line}", dir.display());
        }
    }
}

#[test]
fn verify_counts_what_there_is() {
    let report = verify_dir(&fixtures().join("plain/plain-0"));
    assert_eq!((report.segments, report.batches, report.records), (10, 129, 900));
    assert_eq!((report.start.unwrap().value(), report.end.unwrap().value()), (0, 900));
    let output = logctl(&fixtures(), ["verify", "plain/plain-0/00000000000000000091.log"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("no damage: 1 segment, 13 batches, 91 records"), "{}", stdout(&output));
}

/// Message formats 0 and 1.
const OLD_CASES: [&str; 9] = [
    "magic0-gzip",
    "magic0-lz4",
    "magic0-none",
    "magic0-snappy",
    "magic1-appendtime",
    "magic1-gzip",
    "magic1-lz4",
    "magic1-none",
    "magic1-snappy",
];

#[test]
fn old_message_formats_are_dumped_as_by_kafkas_own_tool_and_verify_clean() {
    for case in OLD_CASES {
        let dir = fixtures().join(case);
        let log = format!("old-0/{}", name(0, "log"));
        let dump = logctl(&dir, ["dump", "--deep-iteration", &log]);
        assert_eq!((dump.status.code(), stderr(&dump)), (Some(0), String::new()), "{case}");
        assert_eq!(stdout(&dump), fs::read_to_string(dir.join("old-0.dump-log.txt")).unwrap(), "{case}");
        for target in ["old-0", &log] {
            let verify = logctl(&dir, ["verify", "--deep", target]);
            assert_eq!(verify.status.code(), Some(0), "{case}: {}", stderr(&verify));
            assert!(stdout(&verify).contains("old-format"), "{case}: {}", stdout(&verify));
            assert!(stdout(&verify).contains("60 records"), "{case}: {}", stdout(&verify));
        }
        // And as records, whichever way they are asked for.
        let wanted: Vec<Value> = fs::read_to_string(dir.join("old-0.expected.jsonl"))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|line: &Value| line.get("offset").is_some())
            .collect();
        for args in [
            &["cat", "-J", "old-0"][..],
            &["cat", "-J", &log],
            &["dump", "-J", "--deep-iteration", &log],
            &["tail", "-J", "-n", "60", "old-0"],
        ] {
            let output = logctl(&dir, args);
            assert_eq!(output.status.code(), Some(0), "{case} {args:?}: {}", stderr(&output));
            let lines: Vec<Value> =
                stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let records: Vec<_> = lines.iter().filter(|line| line.get("offset").is_some()).collect();
            assert_eq!(records.len(), wanted.len(), "{case} {args:?}");
            for (got, want) in records.iter().zip(&wanted) {
                assert_eq!(
                    (&got["offset"], &got["timestamp"]),
                    (&want["offset"], &want["timestamp"]),
                    "{case}"
                );
                assert_same_bytes(case, got, "key", &want["key"]);
                assert_same_bytes(case, got, "value", &want["value"]);
            }
        }
        let one = logctl(&dir, ["get", "old-0", "37", "--raw"]);
        let want = base64::engine::general_purpose::STANDARD.decode(wanted[37]["value"].as_str().unwrap());
        assert_eq!(one.stdout, want.unwrap(), "{case}: {}", stderr(&one));
        let info = logctl(&dir, ["info", "old-0", "--batches"]);
        assert_eq!(info.status.code(), Some(0), "{case}: {}", stderr(&info));
        assert!(stdout(&info).contains("60 records"), "{case}: {}", stdout(&info));
    }
}

/// The lines of Kafka's tool with `--print-data-log` of a gzip wrapper of format 1, and without metadata of format 0.
#[test]
fn keys_and_values_of_old_messages_are_printed_where_asked_for() {
    let log = format!("old-0/{}", name(0, "log"));
    let output = logctl(&fixtures().join("magic1-gzip"), ["dump", "--print-data-log", &log]);
    let want = "| offset: 0 CreateTime: 1700000000000 keySize: 5 valueSize: 7 isValid: true crc: 1455136616 \
                key: key-0 payload: line 0 ";
    assert_eq!(stdout(&output).lines().nth(3), Some(want));
    let output =
        logctl(&fixtures().join("magic0-none"), ["dump", "--print-data-log", "--skip-record-metadata", &log]);
    let text = stdout(&output);
    assert_eq!(text.lines().nth(3), Some("| key: key-0 payload: line 0 "));
    assert!(text.contains("\n| payload: line 3 line 3 line 3 line 3 \n"), "without a key: {text}");
    assert!(text.contains("\n| key: key-5\n"), "without a value");
}

#[test]
fn damage_in_old_messages_is_found_and_passed_over() {
    for case in OLD_CASES {
        let dir = TempDir::new().unwrap();
        let good = fs::read(fixtures().join(case).join("old-0").join(name(0, "log"))).unwrap();
        let second = usize::try_from(i32::from_be_bytes(good[8..12].try_into().unwrap())).unwrap() + 12;
        let file = dir.path().join(name(0, "log"));
        let run = |bytes: &[u8], args: &[&str]| {
            fs::write(&file, bytes).unwrap();
            logctl(dir.path(), args.iter().copied().chain([name(0, "log").as_str()]))
        };
        let mut flipped = good.clone();
        let size =
            usize::try_from(i32::from_be_bytes(good[second + 8..second + 12].try_into().unwrap())).unwrap();
        flipped[second + 12 + size - 1] ^= 1;
        let dump = run(&flipped, &["dump"]);
        assert_eq!(dump.status.code(), Some(4), "{case}");
        assert!(stdout(&dump).contains("isvalid: false"), "{case}: {}", stdout(&dump));
        let before = fs::read_to_string(fixtures().join(case).join("old-0.dump-log.txt")).unwrap();
        let whole = before.lines().filter(|line| line.starts_with("offset: ")).count();
        assert_eq!(stdout(&dump).matches("isvalid: true").count(), whole - 1, "{case}");
        let verify = run(&flipped, &["verify", "-J"]);
        assert_eq!(verify.status.code(), Some(4), "{case}");
        assert!(stdout(&verify).contains("\"bad-crc\""), "{case}: {}", stdout(&verify));
        // Its length is wrong: the next message is searched for.
        let mut long = good.clone();
        long[second + 11] ^= 1;
        let dump = run(&long, &["dump"]);
        assert_eq!(dump.status.code(), Some(4), "{case}");
        assert!(stdout(&dump).contains("invalid bytes at position"), "{case}: {}", stdout(&dump));
        assert_eq!(stdout(&dump).matches("isvalid: true").count(), whole - 1, "{case}");
        let torn = run(&good[..good.len() - 3], &["dump"]);
        assert_eq!(torn.status.code(), Some(4), "{case}");
        assert!(stdout(&torn).contains("invalid bytes at the end of"), "{case}");
        let verify = run(&good[..good.len() - 3], &["verify"]);
        assert!(stdout(&verify).contains("torn-tail"), "{case}: {}", stdout(&verify));
    }
}

#[test]
fn keys_and_values_are_printed_as_digits_where_asked_for() {
    let log = format!("old-0/{}", name(0, "log"));
    let run = |args: &[&str]| {
        let output = logctl(
            &fixtures().join("magic0-none"),
            ["dump"].iter().chain(args).copied().chain([log.as_str()]),
        );
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let digits = run(&["--hex", "--skip-record-metadata", "--max-message-size", "100"]);
    assert_eq!(digits.lines().nth(3), Some("| key: 6b65792d30 payload: 6c696e65203020"));
    assert_eq!(run(&["--output", "jsonl"]), run(&["-J"]));
    assert_eq!(run(&["--output", "text"]), run(&[]));
}

/// A whole data directory's coordinator topics, held against the text of Kafka's own tool.
#[test]
fn kafkas_own_topics_are_decoded_as_by_kafkas_own_tool() {
    let dir = fixtures().join("store-clean/data");
    for (topic, option) in
        [("__consumer_offsets", "--offsets-decoder"), ("__transaction_state", "--transaction-log-decoder")]
    {
        let files: Vec<String> =
            (0..4).map(|number| format!("{topic}-{number}/{}", name(0, "log"))).collect();
        let output = logctl(&dir, ["dump".to_owned(), option.to_owned()].into_iter().chain(files.clone()));
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{topic}");
        let want = fs::read_to_string(fixtures().join(format!("store-clean/{topic}.dump-log.txt"))).unwrap();
        assert!(stdout(&output) == want, "{topic}: the dump differs from Kafka's");
        let short = logctl(&dir, ["dump", option, "--skip-record-metadata", &files[0]]);
        assert!(stdout(&short).contains("\n| key: {\"type\":\""), "{}", stdout(&short));
        let output =
            logctl(&dir, ["dump".to_owned(), option.to_owned(), "-J".to_owned()].into_iter().chain(files));
        let decoded: Vec<Value> = stdout(&output)
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["type"] == "record")
            .collect();
        assert_eq!(decoded.len(), want.lines().filter(|line| line.starts_with("| ")).count());
        for record in &decoded {
            assert!(record["decoded_key"]["data"].is_object(), "{record}");
            assert_eq!(record["decoded_value"].is_null(), record["value"].is_null(), "{record}");
            assert!(record["batch"]["codec"].is_string(), "the record is whole: {record}");
        }
    }
}

#[test]
fn a_clusters_metadata_is_dumped_as_by_kafkas_own_tool() {
    let dir = fixtures().join("store-clean/data");
    let topic = "__cluster_metadata-0";
    let files = [
        "00000000000000000000-0000000000.checkpoint",
        "00000000000000000000.log",
        "00000000000000000375.snapshot",
    ];
    let files = files.map(|file| format!("{topic}/{file}"));
    let run = |option: &str| {
        let output = logctl(&dir, ["dump", option, "--files", &files.join(",")]);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
        stdout(&output)
    };
    let want = fs::read_to_string(fixtures().join("store-clean/__cluster_metadata.dump-log.txt")).unwrap();
    assert!(run("--cluster-metadata-decoder") == want, "the dump differs from Kafka's");
    // Without the decoder Kafka's text is the same up to the values.
    let short = |line: &str| format!("{}\n", line.split(" payload: ").next().unwrap_or_default());
    assert!(run("--deep-iteration") == want.lines().map(short).collect::<String>());
    let output = logctl(&dir, ["dump", "--cluster-metadata-decoder", "-J", &files[1]]);
    let decoded = stdout(&output);
    let topic = decoded.lines().find(|line| line.contains("TOPIC_RECORD")).unwrap();
    let topic: Value = serde_json::from_str(topic).unwrap();
    assert!(topic["decoded_value"]["data"]["topicId"].is_string() && topic["value"].is_string(), "{topic}");
}

#[test]
fn what_kafkas_tool_does_with_classes_of_java_is_refused() {
    for option in ["--remote-log-metadata-decoder", "--value-decoder-class=a.B", "--key-decoder-class"] {
        let output = logctl(&fixtures(), ["dump", "plain/plain-0", option]);
        assert_eq!(output.status.code(), Some(2), "{option}");
        let err = stderr(&output);
        assert!(err.starts_with("error: ") && err.contains(option.split('=').next().unwrap()), "{err}");
    }
}

#[test]
fn a_missing_file_is_an_error_and_the_others_are_dumped() {
    let dir = fixtures().join("plain/plain-0");
    for missing in
        ["nope.log", "nope.index", "nope.timeindex", "nope.snapshot", "leader-epoch", "a/meta.properties"]
    {
        let output = logctl(&dir, ["dump", missing, "leader-epoch-checkpoint"]);
        assert_eq!((output.status.code(), stderr(&output)), (Some(3), format!("error: no file {missing}\n")));
        assert!(stdout(&output).ends_with("\nepoch: 0 startOffset: 0\n"), "{}", stdout(&output));
    }
}

#[test]
fn small_files_are_dumped_line_by_line() {
    let data = fixtures().join("store-clean/data");
    let run = |args: &[&str]| {
        let output = logctl(&data, ["dump"].iter().chain(args).copied());
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{args:?}");
        stdout(&output)
    };
    assert_eq!(
        run(&["grouped-0/leader-epoch-checkpoint"]),
        "Dumping grouped-0/leader-epoch-checkpoint\nepoch: 0 startOffset: 0\n"
    );
    let points = run(&["recovery-point-offset-checkpoint", "replication-offset-checkpoint"]);
    assert!(points.contains("\ntopic: __consumer_offsets partition: 0 offset: 43\n"), "{points}");
    let metadata = run(&["grouped-0/partition.metadata", "-J"]);
    let lines: Vec<Value> = metadata.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[1]["type"]), (2, &Value::from("partition-metadata")));
    assert_eq!(lines[1]["topic_id"].as_str().map(str::len), Some(22));
    assert!(run(&["meta.properties"]).contains("\nkey: node.id value: 1\n"));
    let starts = fixtures().join("trimmed/log-start-offset-checkpoint");
    assert!(run(&[starts.to_str().unwrap()]).ends_with("topic: trimmed partition: 0 offset: 145\n"));
    let clean = run(&[".kafka_cleanshutdown"]);
    assert_eq!(clean, "Dumping .kafka_cleanshutdown\nbrokerEpoch: 11 version: 0\n");
    let quorum = run(&["__cluster_metadata-0/quorum-state", "-J"]);
    let quorum: Value = serde_json::from_str(quorum.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&quorum["type"], &quorum["leader_id"]), (&Value::from("quorum-state"), &Value::from(1)));
    // One that cannot be read.
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("leader-epoch-checkpoint"), "0\n2\n0 0\n").unwrap();
    let broken = logctl(dir.path(), ["dump", "leader-epoch-checkpoint"]);
    assert_eq!(broken.status.code(), Some(4));
    assert!(stderr(&broken).contains("2 entries announced"), "{}", stderr(&broken));
    fs::write(dir.path().join(name(8, "txnindex")), [0; 40]).unwrap();
    let broken = logctl(dir.path(), ["dump", "-J", &name(8, "txnindex")]);
    assert_eq!(broken.status.code(), Some(4));
    assert!(stdout(&broken).contains("\"problem\""), "{}", stdout(&broken));
}

#[test]
fn our_own_small_files_are_dumped() {
    let dir = ours();
    drop(stratalog::Cursor::open(dir.path(), "mailer").unwrap());
    let mut cursor = stratalog::Cursor::open(dir.path(), "mailer").unwrap();
    cursor.commit(stratalog::Offset::new(7).unwrap()).unwrap();
    let run = |file: &str, json: bool| {
        let args = ["dump", file].into_iter().chain(json.then_some("-J"));
        let output = logctl(dir.path(), args);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{file}");
        stdout(&output)
    };
    let checkpoint = run(".stratalog-checkpoint", false);
    assert!(checkpoint.contains("clean: true startOffset: 0 knownEndOffset: 60"), "{checkpoint}");
    assert!(checkpoint.contains("recoveryPoint: 60 "), "{checkpoint}");
    assert!(run(".stratalog-control", false).contains("state: closed"));
    assert!(run(".stratalog-waiters", false).contains("version: 1 asleep: "));
    assert!(run(".stratalog-cursor-mailer", false).contains("offset: 7 leaderEpoch: none"));
    for file in
        [".stratalog-checkpoint", ".stratalog-control", ".stratalog-summary", ".stratalog-cursor-mailer"]
    {
        for line in run(file, true).lines() {
            assert!(serde_json::from_str::<Value>(line).unwrap()["type"].is_string(), "{line}");
        }
    }
    assert!(run(".stratalog-summary", true).contains("\"next_offset\":"));
}

/// Names, bytes, lengths and times of change of everything in a directory.
fn state(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime, u32)> {
    use std::os::unix::fs::PermissionsExt;
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let meta = fs::metadata(&path).unwrap();
            let bytes = fs::read(&path).unwrap();
            (path, (bytes, meta.modified().unwrap(), meta.permissions().mode()))
        })
        .collect()
}

#[test]
fn nothing_in_a_directory_changes() {
    for case in ["plain", "killed-preallocated", "transactions"] {
        let dir = copy_of(case);
        let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
        for entry in fs::read_dir(dir.path()).unwrap() {
            fs::File::open(entry.unwrap().path()).unwrap().set_modified(old).unwrap();
        }
        let dir_time = fs::metadata(dir.path()).unwrap().modified().unwrap();
        let before = state(dir.path());
        let files = dumpable(dir.path(), ".");
        for flags in [
            &["--deep-iteration"][..],
            &["--verify-index-only"],
            &["--index-sanity-check"],
            &["-J", "--print-data-log"],
        ] {
            let args =
                ["dump"].into_iter().chain(flags.iter().copied()).chain(files.iter().map(String::as_str));
            logctl(dir.path(), args);
        }
        for flags in [&["--deep"][..], &["-J"], &["--no-indexes"]] {
            logctl(dir.path(), ["verify", "."].into_iter().chain(flags.iter().copied()));
        }
        assert!(state(dir.path()) == before, "{case}");
        assert_eq!(fs::metadata(dir.path()).unwrap().modified().unwrap(), dir_time, "{case}");
    }
}

// ---- options of dump

#[test]
fn max_bytes_shows_whole_batches_only_and_no_tail() {
    let output =
        logctl(&fixtures(), ["dump", "--max-bytes", "3000", "plain/plain-0/00000000000000000091.log"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text.lines().filter(|line| line.starts_with("baseOffset")).count(), 2);
    assert!(!text.contains("invalid"), "{text}");
}

#[test]
fn keys_and_values_are_printed_where_asked_for() {
    let log = "odd/odd-0/00000000000000000010.log";
    let all = stdout(&logctl(&fixtures(), ["dump", "--print-data-log", "--max-bytes", "100", log]));
    assert!(all.ends_with("sequence: 10 headerKeys: [] key: v payload: v\n"), "{all}");
    let only = ["dump", "--print-data-log", "--skip-record-metadata", "--max-bytes", "100", log];
    assert!(stdout(&logctl(&fixtures(), only)).ends_with("\n| key: v payload: v\n"));
}

#[test]
fn a_directory_stands_for_its_files() {
    let dir = fixtures().join("odd");
    let files = dumpable(&dir.join("odd-0"), "odd-0");
    let all = logctl(&dir, [vec!["dump".to_owned()], files].concat());
    assert_eq!(logctl(&dir, ["dump", "odd-0"]).stdout, all.stdout);
    assert_eq!(logctl(&dir, ["dump", "."]).status.code(), Some(3), "nothing to dump");
}

#[test]
fn index_options() {
    let files = ["plain/plain-0/00000000000000000091.index", "plain/plain-0/00000000000000000091.timeindex"];
    let verify = stdout(&logctl(&fixtures(), ["dump", "--verify-index-only"].into_iter().chain(files)));
    assert_eq!(verify, format!("Dumping {}\nDumping {}\n", files[0], files[1]));
    let sanity = stdout(&logctl(&fixtures(), ["dump", "--index-sanity-check"].into_iter().chain(files)));
    let [index, time_index] = files;
    let expected = format!(
        "Dumping {index}\n{index} passed sanity check.\nDumping {time_index}\n{time_index} passed sanity check.\n"
    );
    assert_eq!(sanity, expected);
}

#[test]
fn files_that_are_not_read_are_named() {
    let dir = copy_of("plain");
    let log = name(0, "log");
    fs::write(dir.path().join("notes.txt"), "x").unwrap();
    let run = |args: &[&str]| logctl(dir.path(), ["dump"].into_iter().chain(args.iter().copied()));
    let unknown = run(&["notes.txt"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(stderr(&unknown), "Ignoring unknown file notes.txt: it looks like text\n");
    assert_eq!(run(&["notes.txt", &log]).status.code(), Some(0), "something else was dumped");
    let missing = run(&["00000000000000000007.log", &log]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(stdout(&missing).contains("Log starting offset: 0"), "the others are dumped all the same");
    assert_eq!(run(&["leader-epoch-checkpoint"]).status.code(), Some(0));
    assert_eq!(run(&["meta.properties"]).status.code(), Some(3), "there is none");
    assert_eq!(logctl(dir.path(), ["dump"]).status.code(), Some(2));
}

#[test]
fn fifos_links_and_directories_are_refused_and_nothing_hangs() {
    let dir = copy_of("odd");
    for (base, make) in [(100, "fifo"), (200, "link"), (300, "dir")] {
        let path = dir.path().join(name(base, "log"));
        match make {
            "fifo" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            "link" => std::os::unix::fs::symlink(name(0, "log"), &path).unwrap(),
            _ => fs::create_dir(&path).unwrap(),
        }
        let dump = logctl(dir.path(), ["dump", &name(base, "log")]);
        let code = if make == "dir" { 3 } else { 1 };
        assert_eq!(dump.status.code(), Some(code), "{make}: {}", stderr(&dump));
    }
    let report = verify_dir(dir.path());
    let found: Vec<(&str, Severity)> =
        report.findings.iter().map(|f| (f.file.file_name().unwrap().to_str().unwrap(), f.severity)).collect();
    // What hides behind a link may be a segment; the others are just in the way.
    assert_eq!(
        found,
        [(&*name(100, "log"), Warning), (&*name(200, "log"), Damage), (&*name(300, "log"), Warning)]
    );
}

#[test]
fn what_is_no_log_is_not_found() {
    let empty = TempDir::new().unwrap();
    assert_eq!(logctl(empty.path(), ["verify", "."]).status.code(), Some(3));
    assert_eq!(logctl(empty.path(), ["verify", "./nowhere"]).status.code(), Some(3));
    assert!(verify(empty.path().join("nowhere"), &VerifyOptions::default(), &mut |_| {}).is_err());
}

// ---- damage

fn verify_dir(dir: &Path) -> VerifyReport {
    let mut options = VerifyOptions::default();
    options.deep = true;
    verify(dir, &options, &mut |_| {}).expect("the directory can be listed")
}

/// Positions and offsets of the batches of a file.
fn batches(path: &Path) -> Vec<(u64, u64, i64, i64)> {
    let log = LogFile::open(path).unwrap();
    let mut pieces = log.pieces();
    let mut found = Vec::new();
    while let Some(piece) = pieces.next_piece().unwrap() {
        if let Piece::Batch(entry) = piece {
            let header = &entry.header;
            found.push((
                entry.position,
                u64::from(header.size_bytes()),
                header.base_offset().value(),
                header.last_offset().value(),
            ));
        }
    }
    found
}

fn edit(dir: &Path, file: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = dir.join(file);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Sets the length field of the batch at a position.
fn set_length(dir: &Path, file: &str, position: u64, length: i32) {
    edit(dir, file, |bytes| {
        bytes[at(position) + 8..at(position) + 12].copy_from_slice(&length.to_be_bytes());
    });
}

fn at(position: u64) -> usize {
    usize::try_from(position).unwrap()
}

/// Kind, file and position of what is worse than a note.
fn gist(report: &VerifyReport) -> Vec<(FindingKind, String, Option<u64>)> {
    report
        .findings
        .iter()
        .filter(|finding| finding.severity > Note)
        .map(|f| (f.kind, f.file.file_name().unwrap().to_str().unwrap().to_owned(), f.position))
        .collect()
}

/// Damages a copy of `plain` and expects exactly one finding worse than a note.
#[track_caller]
fn expect_one(
    change: impl FnOnce(&Path),
    kind: FindingKind,
    severity: Severity,
    file: &str,
    position: Option<u64>,
) -> Finding {
    let dir = copy_of("plain");
    change(dir.path());
    let report = verify_dir(dir.path());
    assert_eq!(gist(&report), [(kind, file.to_owned(), position)], "{:#?}", report.findings);
    let finding = report.findings.into_iter().find(|finding| finding.kind == kind).unwrap();
    assert_eq!(finding.severity, severity);
    let code = logctl(dir.path(), ["verify", "."]).status.code();
    assert_eq!(code, Some(if severity == Damage { 4 } else { 0 }));
    finding
}

const SEALED: u64 = 182;
const ACTIVE: u64 = 819;

fn batch_of(base: u64, number: usize) -> (u64, u64, i64, i64) {
    batches(&fixtures().join("plain/plain-0").join(name(base, "log")))[number]
}

fn last_of(base: u64) -> (u64, u64, i64, i64) {
    *batches(&fixtures().join("plain/plain-0").join(name(base, "log"))).last().unwrap()
}

#[test]
fn a_flipped_bit_in_the_middle() {
    let (position, size, base, _) = batch_of(SEALED, 5);
    let log = name(SEALED, "log");
    let flip = |dir: &Path| edit(dir, &log, |bytes| bytes[at(position + size / 2)] ^= 1);
    let finding = expect_one(flip, Kind::BadCrc, Damage, &log, Some(position));
    assert_eq!(finding.offset.unwrap().value(), base);
    assert!(finding.repairable, "a repair drops it, and its records are gone");

    let dir = copy_of("plain");
    flip(dir.path());
    let report = verify_dir(dir.path());
    assert_eq!((report.batches, report.end.unwrap().value()), (128, 900), "everything else is read");
}

#[test]
fn a_flipped_bit_in_the_last_batch() {
    let (position, _, _, _) = last_of(ACTIVE);
    let log = name(ACTIVE, "log");
    let finding = expect_one(
        |dir| edit(dir, &log, |bytes| *bytes.last_mut().unwrap() ^= 1),
        Kind::BadCrc,
        Damage,
        &log,
        Some(position),
    );
    assert!(finding.repairable, "nothing follows it");
}

#[test]
fn a_zeroed_header() {
    let (position, _, base, _) = batch_of(SEALED, 5);
    let log = name(SEALED, "log");
    let zero = |dir: &Path| edit(dir, &log, |bytes| bytes[at(position)..at(position) + 61].fill(0));
    let finding = expect_one(zero, Kind::ZeroedBytes, Damage, &log, Some(position));
    assert_eq!(finding.offset.unwrap().value(), base);
}

#[test]
fn lengths_that_cannot_be() {
    let (position, size, _, _) = batch_of(SEALED, 5);
    let log = name(SEALED, "log");
    for length in [0, 1, 48, -1, i32::MIN, i32::MAX, 0x00ff_ffff] {
        expect_one(
            |dir| set_length(dir, &log, position, length),
            Kind::BadLength,
            Damage,
            &log,
            Some(position),
        );
    }
    // Lengths that could be: only the checksum tells, and the search finds the next batch all the same.
    for length in [49, i32::try_from(size).unwrap() - 11, i32::try_from(size).unwrap() - 13] {
        expect_one(|dir| set_length(dir, &log, position, length), Kind::BadCrc, Damage, &log, Some(position));
    }
}

#[test]
fn lengths_that_cannot_be_at_the_end() {
    let (position, size, _, _) = last_of(ACTIVE);
    let log = name(ACTIVE, "log");
    let one_more = i32::try_from(size).unwrap() - 11;
    for (length, kind) in
        [(0, Kind::BadLength), (-1, Kind::BadLength), (i32::MAX, Kind::BadLength), (one_more, Kind::TornTail)]
    {
        expect_one(|dir| set_length(dir, &log, position, length), kind, Damage, &log, Some(position));
    }
}

#[test]
fn an_unknown_magic() {
    let (position, _, _, _) = batch_of(SEALED, 5);
    let log = name(SEALED, "log");
    for magic in [3, 0xff] {
        expect_one(
            |dir| edit(dir, &log, |bytes| bytes[at(position) + 16] = magic),
            Kind::BadMagic,
            Damage,
            &log,
            Some(position),
        );
    }
}

#[test]
fn a_torn_tail() {
    let (position, size, _, _) = last_of(ACTIVE);
    let log = name(ACTIVE, "log");
    // Fewer bytes than 7 of this batch are zeros, which say nothing.
    for kept in [7, 16, 17, 60, 61, size - 1] {
        let cut = |dir: &Path| edit(dir, &log, |bytes| bytes.truncate(at(position + kept)));
        assert!(expect_one(cut, Kind::TornTail, Damage, &log, Some(position)).repairable);
    }
}

#[test]
fn a_sealed_segment_cut_short() {
    let (position, size, _, _) = last_of(SEALED);
    let log = name(SEALED, "log");
    expect_one(
        |dir| edit(dir, &log, |bytes| bytes.truncate(at(position + size / 2))),
        Kind::BadTail,
        Damage,
        &log,
        Some(position),
    );
    // Cut between two batches the bytes are sound: only the indexes know better, and the gap.
    let dir = copy_of("plain");
    edit(dir.path(), &log, |bytes| bytes.truncate(at(position)));
    let report = verify_dir(dir.path());
    let kinds: Vec<Kind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [Kind::IndexPosition, Kind::TimeIndexOffset, Kind::OffsetGap]);
    // Where the writer promised that there are no gaps, the gap itself is damage.
    let mut options = VerifyOptions::default();
    options.gapless_from = stratalog::Offset::new(200);
    let report = verify(dir.path(), &options, &mut |_| {}).unwrap();
    let gap = report.findings.iter().find(|finding| finding.kind == Kind::OffsetGap).unwrap();
    assert_eq!((gap.severity, gap.offset.unwrap().value()), (Damage, 266));
}

#[test]
fn zeros_at_the_end() {
    let len =
        |base: u64| fs::metadata(fixtures().join("plain/plain-0").join(name(base, "log"))).unwrap().len();
    // Reserved room in the active segment, and in a sealed one that reaches the next.
    for base in [ACTIVE, SEALED] {
        let log = name(base, "log");
        expect_one(
            |dir| edit(dir, &log, |bytes| bytes.resize(bytes.len() + 4096, 0)),
            Kind::Untrimmed,
            Warning,
            &log,
            Some(len(base)),
        );
    }
    // The last batch of a sealed segment replaced by zeros is a loss.
    let (position, _, base, _) = last_of(SEALED);
    let dir = copy_of("plain");
    edit(dir.path(), &name(SEALED, "log"), |bytes| bytes[at(position)..].fill(0));
    let report = verify_dir(dir.path());
    let finding = report.findings.iter().find(|finding| finding.kind == Kind::ZeroedBytes).unwrap();
    assert_eq!((finding.position, finding.offset.unwrap().value()), (Some(position), base));
}

#[test]
fn garbage_behind_the_last_batch() {
    let log = name(ACTIVE, "log");
    let len = fs::metadata(fixtures().join("plain/plain-0").join(&log)).unwrap().len();
    for count in [61, 5000] {
        expect_one(
            |dir| edit(dir, &log, |bytes| bytes.resize(bytes.len() + count, 0xff)),
            Kind::BadMagic,
            Damage,
            &log,
            Some(len),
        );
    }
}

#[test]
fn batches_out_of_order() {
    // A whole batch repeated behind the last one, as a stray write would.
    let (position, size, base, _) = batch_of(ACTIVE, 3);
    let log = name(ACTIVE, "log");
    let len = fs::metadata(fixtures().join("plain/plain-0").join(&log)).unwrap().len();
    let finding = expect_one(
        |dir| {
            edit(dir, &log, |bytes| {
                let again = bytes[at(position)..at(position + size)].to_vec();
                bytes.extend(again);
            });
        },
        Kind::OffsetOrder,
        Damage,
        &log,
        Some(len),
    );
    assert_eq!(finding.offset.unwrap().value(), base);
}

#[test]
fn a_batch_below_its_segments_base() {
    let dir = copy_of("plain");
    let log = name(SEALED, "log");
    // The base offset lies outside the checksum.
    edit(dir.path(), &log, |bytes| bytes[..8].copy_from_slice(&100_i64.to_be_bytes()));
    let report = verify_dir(dir.path());
    assert!(gist(&report).contains(&(Kind::BelowBase, log, Some(0))), "{:?}", report.findings);
}

#[test]
fn an_offset_too_far_above_the_base() {
    let dir = copy_of("plain");
    let log = name(ACTIVE, "log");
    let (position, _, _, _) = last_of(ACTIVE);
    let far = (i64::from(i32::MAX) + 5000).to_be_bytes();
    edit(dir.path(), &log, |bytes| bytes[at(position)..at(position) + 8].copy_from_slice(&far));
    let report = verify_dir(dir.path());
    assert!(gist(&report).contains(&(Kind::OffsetRange, log, Some(position))), "{:?}", report.findings);
}

#[test]
fn a_segment_that_reaches_into_the_next() {
    let dir = copy_of("plain");
    let next = fs::read(dir.path().join(name(273, "log"))).unwrap();
    edit(dir.path(), &name(SEALED, "log"), |bytes| bytes.extend(&next));
    let report = verify_dir(dir.path());
    let overlap = report.findings.iter().find(|finding| finding.kind == Kind::SegmentsOverlap).unwrap();
    assert_eq!(overlap.offset.unwrap().value(), 273);
    assert!(overlap.file.ends_with(name(SEALED, "log")));
}

#[test]
fn a_missing_segment_is_a_gap() {
    let dir = copy_of("plain");
    for suffix in ["log", "index", "timeindex"] {
        fs::remove_file(dir.path().join(name(SEALED, suffix))).unwrap();
    }
    let report = verify_dir(dir.path());
    let found: Vec<_> =
        report.findings.iter().map(|f| (f.kind, f.severity, f.offset.unwrap().value())).collect();
    assert_eq!(found, [(Kind::OffsetGap, Note, 182)], "legal: compaction makes such gaps");
}

#[test]
fn an_offset_index_that_lies() {
    let index = name(SEALED, "index");
    let entries = fs::read(fixtures().join("plain/plain-0").join(&index)).unwrap();
    assert!(entries.len() >= 40);
    let position =
        |entry: usize| u32::from_be_bytes(entries[entry * 8 + 4..entry * 8 + 8].try_into().unwrap());
    let set = |entry: usize, field: usize, value: u32| {
        let index = index.clone();
        move |dir: &Path| {
            edit(dir, &index, |b| {
                b[entry * 8 + field..entry * 8 + field + 4].copy_from_slice(&value.to_be_bytes());
            });
        }
    };
    // Into the middle of a batch.
    expect_one(set(2, 4, position(2) + 3), Kind::IndexPosition, Damage, &index, Some(16));
    // Another offset than the batch's last.
    let offset = u32::from_be_bytes(entries[16..20].try_into().unwrap());
    expect_one(set(2, 0, offset - 1), Kind::IndexOffset, Damage, &index, Some(16));
    // Past the end of the file, from the last entry.
    let last = entries.len() / 8 - 1;
    let lie =
        expect_one(set(last, 4, 0x7000_0000), Kind::IndexPosition, Damage, &index, Some(last as u64 * 8));
    assert!(lie.repairable);
    // Not rising: the start of an earlier batch.
    expect_one(set(2, 4, position(0)), Kind::IndexOrder, Damage, &index, Some(16));
    expect_one(set(2, 0, 0xffff_ffff), Kind::IndexOrder, Damage, &index, Some(16));
    // Another batch's start, still rising: that entry and nothing else is wrong.
    let dir = copy_of("plain");
    edit(dir.path(), &index, |bytes| {
        bytes.drain(24..32);
        bytes[20..24].copy_from_slice(&position(3).to_be_bytes());
    });
    assert_eq!(gist(&verify_dir(dir.path())), [(Kind::IndexOffset, index, Some(16))]);
}

#[test]
fn a_time_index_that_lies() {
    let index = name(SEALED, "timeindex");
    let entries = fs::read(fixtures().join("plain/plain-0").join(&index)).unwrap();
    assert!(entries.len() >= 36);
    let timestamp = i64::from_be_bytes(entries[12..20].try_into().unwrap());
    let offset = u32::from_be_bytes(entries[20..24].try_into().unwrap());
    for lie in [timestamp - 1, timestamp + 1] {
        expect_one(
            |dir| edit(dir, &index, |bytes| bytes[12..20].copy_from_slice(&lie.to_be_bytes())),
            Kind::TimeIndexTimestamp,
            Damage,
            &index,
            Some(12),
        );
    }
    // Inside the batch: some versions of Kafka wrote that, and searches come out right.
    expect_one(
        |dir| edit(dir, &index, |bytes| bytes[20..24].copy_from_slice(&(offset - 1).to_be_bytes())),
        Kind::TimeIndexOffset,
        Warning,
        &index,
        Some(12),
    );
    let dir = copy_of("plain");
    edit(dir.path(), &index, |bytes| {
        let (first, second): (Vec<u8>, Vec<u8>) = (bytes[..12].to_vec(), bytes[12..24].to_vec());
        bytes[..12].copy_from_slice(&second);
        bytes[12..24].copy_from_slice(&first);
    });
    assert_eq!(gist(&verify_dir(dir.path())), [(Kind::IndexOrder, index, Some(12))]);
}

#[test]
fn a_time_index_entry_must_be_later_than_all_before_it() {
    let dir = copy_of("unordered");
    let base = 69;
    let log = LogFile::open(dir.path().join(name(base, "log"))).unwrap();
    let mut pieces = log.pieces();
    let mut largest = i64::MIN;
    let mut lie = None;
    while let Some(piece) = pieces.next_piece().unwrap() {
        let Piece::Batch(entry) = piece else { continue };
        let max = entry.header.max_timestamp().millis();
        if max < largest && lie.is_none() {
            lie = Some((max, entry.header.last_offset().value()));
        }
        largest = largest.max(max);
    }
    // It names its own batch rightly, but a batch before that one is later: a search would begin behind it.
    let (timestamp, offset) = lie.expect("times go back");
    let relative = u32::try_from(offset).unwrap() - u32::try_from(base).unwrap();
    let bytes = [&timestamp.to_be_bytes()[..], &relative.to_be_bytes()].concat();
    fs::write(dir.path().join(name(base, "timeindex")), bytes).unwrap();
    let index = name(base, "timeindex");
    let report = verify_dir(dir.path());
    let want = [(Kind::TimeIndexTimestamp, index.clone(), Some(0)), (Kind::TimeIndexEnd, index, Some(12))];
    assert_eq!(gist(&report), want, "{:#?}", report.findings);
}

#[test]
fn a_time_index_must_end_with_the_largest_timestamp_once_sealed() {
    let index = name(SEALED, "timeindex");
    let len = fs::metadata(fixtures().join("plain/plain-0").join(&index)).unwrap().len();
    // Drop entries until the last one no longer has it: the last batch's may have been there before the final one.
    expect_one(
        |dir| edit(dir, &index, |bytes| bytes.truncate(at(len) - 24)),
        Kind::TimeIndexEnd,
        Damage,
        &index,
        Some(len - 24),
    );
    expect_one(|dir| edit(dir, &index, Vec::clear), Kind::TimeIndexEnd, Damage, &index, Some(0));
    // The active segment's need not: it gets its final entry when it is sealed.
    let dir = copy_of("plain");
    edit(dir.path(), &name(ACTIVE, "timeindex"), Vec::clear);
    assert_eq!(gist(&verify_dir(dir.path())), []);
}

#[test]
fn index_files_of_odd_shape() {
    for (suffix, entry) in [("index", 8), ("timeindex", 12)] {
        let file = name(SEALED, suffix);
        let len = fs::metadata(fixtures().join("plain/plain-0").join(&file)).unwrap().len();
        for odd in [1, 3, 7] {
            expect_one(
                |dir| edit(dir, &file, |bytes| bytes.resize(bytes.len() + odd, 0xee)),
                Kind::IndexLength,
                Warning,
                &file,
                Some(len),
            );
        }
        expect_one(
            |dir| edit(dir, &file, |bytes| bytes.resize(bytes.len() + 10 * entry, 0)),
            Kind::Untrimmed,
            Warning,
            &file,
            Some(len),
        );
        expect_one(
            |dir| fs::remove_file(dir.join(&file)).unwrap(),
            Kind::MissingIndex,
            Warning,
            &name(SEALED, "log"),
            None,
        );
        let orphan = name(5, suffix);
        expect_one(|dir| fs::write(dir.join(&orphan), b"").unwrap(), Kind::Orphan, Warning, &orphan, None);
    }
}

#[test]
fn noise_for_an_index() {
    let dir = copy_of("plain");
    let noise: Vec<u8> = (0..4096_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    for suffix in ["index", "timeindex"] {
        fs::write(dir.path().join(name(SEALED, suffix)), &noise).unwrap();
    }
    let report = verify_dir(dir.path());
    assert!(report.damage_count > 100);
    assert!(report.findings.iter().all(|finding| finding.repairable), "indexes can be built anew");
    assert_eq!((report.batches, report.records), (129, 900));
}

#[test]
fn small_files_beside() {
    let epochs = "leader-epoch-checkpoint";
    for text in ["", "0\n0\n", "0\n1\n0 900\n"] {
        let dir = copy_of("plain");
        fs::write(dir.path().join(epochs), text).unwrap();
        assert_eq!(gist(&verify_dir(dir.path())), [], "{text:?}");
    }
    for text in ["aa", "0\n5\n0 0\n", "0\n-1\n", "0\n1\n0 901\n", "0\n2\n1 0\n0 5\n", "\0\0\0\0"] {
        expect_one(
            |dir| fs::write(dir.join(epochs), text).unwrap(),
            Kind::EpochCheckpoint,
            Warning,
            epochs,
            None,
        );
    }
    let metadata = "partition.metadata";
    expect_one(
        |dir| fs::write(dir.join(metadata), "x").unwrap(),
        Kind::PartitionMetadata,
        Warning,
        metadata,
        None,
    );
}

#[test]
fn foreign_names_are_only_noted() {
    let dir = copy_of("plain");
    let names = [
        "0.log",
        "+0000000000000000005.log",
        "000000000000000000000.log",
        "00000000000000000007.LOG",
        "00000000000000000000.log.bak",
        "notes.txt",
    ];
    for name in names {
        fs::write(dir.path().join(name), b"whatever").unwrap();
    }
    for name in
        ["00000000000000000000.log.deleted", "00000000000000000000.log.swap", "leader-epoch-checkpoint.tmp"]
    {
        fs::write(dir.path().join(name), b"whatever").unwrap();
    }
    fs::write(dir.path().join(".stratalog-x"), b"ours").unwrap();
    fs::write(dir.path().join(".lock"), b"").unwrap();
    let report = verify_dir(dir.path());
    assert_eq!(gist(&report), []);
    let count = |kind: Kind| report.findings.iter().filter(|finding| finding.kind == kind).count();
    assert_eq!((count(Kind::ForeignName), count(Kind::LeftOver)), (names.len(), 3));
}

#[test]
fn no_byte_of_a_sealed_segment_can_change_unseen() {
    let dir = copy_of("odd");
    let log = dir.path().join(name(0, "log"));
    let good = fs::read(&log).unwrap();
    let starts: Vec<usize> = batches(&log).iter().map(|batch| at(batch.0)).collect();
    for position in 0..good.len() {
        let start = starts.iter().rev().find(|&&start| start <= position).unwrap();
        // The base offset and the leader epoch have no checksum: that is the format's.
        if matches!(position - start, 0..8 | 12..16) {
            continue;
        }
        let mut bytes = good.clone();
        bytes[position] ^= 0x10;
        fs::write(&log, &bytes).unwrap();
        let report = verify_dir(dir.path());
        assert!(!report.is_clean(), "byte {position}");
        assert!(
            report.batches >= 18,
            "byte {position}: at most one batch is lost, {} were read",
            report.batches
        );
    }
}

#[test]
fn records_that_contradict_their_header_are_found_by_a_deep_check() {
    let dir = copy_of("plain");
    let log = name(SEALED, "log");
    let (position, size, base, _) = batch_of(SEALED, 5);
    edit(dir.path(), &log, |bytes| {
        let batch = &mut bytes[at(position)..at(position + size)];
        // One record more than there is, with a checksum that fits.
        batch[26] += 1;
        batch[60] += 1;
        let crc = stratalog::record::crc32c(&batch[21..]);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
    });
    let shallow = verify(dir.path(), &VerifyOptions::default(), &mut |_| {}).unwrap();
    assert!(shallow.findings.iter().all(|finding| finding.kind != Kind::BadRecords));
    let report = verify_dir(dir.path());
    let finding = report.findings.iter().find(|finding| finding.kind == Kind::BadRecords).unwrap();
    assert_eq!((finding.position, finding.offset.unwrap().value()), (Some(position), base));
}

/// The damaged directories of `fixtures/broken`: what their `expected.jsonl` says is what is found.
#[test]
fn every_kind_of_damage_is_found_and_nothing_else() {
    let broken = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/broken");
    let expected = fs::read_to_string(broken.join("expected.jsonl")).unwrap();
    for line in expected.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let case = line["case"].as_str().unwrap();
        let report = verify_dir(&broken.join(case));
        let name = |finding: &Finding| finding.file.file_name().unwrap().to_str().unwrap().to_owned();
        let is_log = |finding: &&Finding| finding.file.extension().is_some_and(|suffix| suffix == "log");
        let damage: Vec<&Finding> = report.findings.iter().filter(|f| f.severity == Damage).collect();

        assert_eq!(report.end.unwrap().value(), line["end"].as_i64().unwrap(), "{case}");
        let in_logs: Vec<(String, i64)> =
            damage.iter().copied().filter(is_log).map(|f| (name(f), f.offset.unwrap().value())).collect();
        let mut want = Vec::new();
        if let Some(range) = line["unreadable"].as_array() {
            want.push((self::name(91, "log"), range[0].as_i64().unwrap()));
        }
        if line["cut"] == true {
            let at = if case == "backward-offset" { 182 } else { 266 };
            want.push((self::name(182, "log"), at));
        }
        assert_eq!(in_logs, want, "{case}");

        let mut indexes: Vec<String> =
            damage.iter().copied().filter(|finding| !is_log(finding)).map(name).collect();
        indexes.dedup();
        let missing = report.findings.iter().filter(|finding| finding.kind == Kind::MissingIndex).count();
        let rebuilt: Vec<&str> =
            line["rebuilt"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
        match case {
            "missing-index" => assert_eq!((missing, indexes.len()), (rebuilt.len(), 0)),
            // Its index entries speak of the batch that is no longer there.
            "backward-offset" => assert_eq!((missing, indexes.len()), (0, 2)),
            _ => {
                assert_eq!(
                    (missing, indexes),
                    (0, rebuilt.iter().map(|&f| f.to_owned()).collect()),
                    "{case}"
                );
            }
        }
        if let Some(range) = line["absent"].as_array() {
            let gap = report.findings.iter().find(|finding| finding.kind == Kind::OffsetGap).unwrap();
            assert_eq!(gap.offset.unwrap().value(), range[0].as_i64().unwrap(), "{case}");
        }
        // A dump goes through all of it too.
        let files = dumpable(&broken.join(case), case);
        let dump =
            logctl(&broken, ["dump".to_owned(), "--deep-iteration".to_owned()].into_iter().chain(files));
        assert!(matches!(dump.status.code(), Some(0 | 1 | 3 | 4)), "{case}: {}", stderr(&dump));
        assert!(!stderr(&dump).contains("panicked"), "{case}: {}", stderr(&dump));
    }
}

/// Numbers that are the same at each run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: usize) -> usize {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

#[test]
fn no_noise_makes_a_check_fail_or_end_early() {
    let dir = copy_of("transactions");
    let names =
        [name(0, "log"), name(0, "index"), name(0, "timeindex"), name(8, "index"), name(8, "timeindex")];
    let whole: Vec<Vec<u8>> = names.iter().map(|name| fs::read(dir.path().join(name)).unwrap()).collect();
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    // The first segment is sealed, so no run waits for a writer.
    let partition = Partition::open(dir.path()).unwrap();
    let mut options = VerifyOptions::default();
    options.deep = true;
    for _ in 0..300 {
        for (name, whole) in names.iter().zip(&whole) {
            let mut bytes = whole.clone();
            for _ in 0..noise.below(4) {
                let value = [0, 1, 0x7f, 0x80, 0xff][noise.below(5)];
                match noise.below(4) {
                    0 => bytes.truncate(noise.below(bytes.len() + 1)),
                    1 => bytes.resize(bytes.len() + noise.below(200), value),
                    _ if bytes.is_empty() => {}
                    2 => {
                        let at = noise.below(bytes.len());
                        bytes[at] ^= 1 << noise.below(8);
                    }
                    _ => {
                        let from = noise.below(bytes.len());
                        let to = (from + noise.below(16)).min(bytes.len());
                        bytes[from..to].fill(value);
                    }
                }
            }
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let report = partition.check_segment(0, &options, &mut |_| {}).unwrap().into_report();
        assert_eq!(report.segments, 1);
        assert!(
            report.findings.iter().all(|finding| finding.kind != Kind::Unreadable),
            "{:?}",
            report.findings
        );
    }
}

#[test]
fn a_dump_of_noise_ends() {
    let dir = TempDir::new().unwrap();
    let mut noise = Noise(42);
    for base in 0..8 {
        for suffix in ["log", "index", "timeindex"] {
            let bytes: Vec<u8> = (0..3000).map(|_| [0, 2, 0xff, 1][noise.below(4)]).collect();
            fs::write(dir.path().join(name(base, suffix)), bytes).unwrap();
        }
    }
    for flags in [
        &["--deep-iteration"][..],
        &["-J", "--deep-iteration"],
        &["--index-sanity-check"],
        &["--verify-index-only"],
    ] {
        let output = logctl(dir.path(), ["dump", "."].into_iter().chain(flags.iter().copied()));
        assert_eq!(output.status.code(), Some(4), "{flags:?}: {}", stderr(&output));
    }
    assert_eq!(logctl(dir.path(), ["verify", "."]).status.code(), Some(4));
}

// ---- beside a writer

#[test]
fn an_end_that_becomes_whole_is_no_finding() {
    let dir = copy_of("plain");
    let log = dir.path().join(name(ACTIVE, "log"));
    let whole = fs::read(&log).unwrap();
    let (position, _, _, _) = last_of(ACTIVE);
    fs::write(&log, &whole[..at(position) + 100]).unwrap();
    let partition = Partition::open(dir.path()).unwrap();
    let last = partition.segment_count() - 1;
    // The writer goes on after the first look.
    let mut go_on = |_: u64| fs::write(&log, &whole).unwrap();
    let report = partition.check_segment(last, &VerifyOptions::default(), &mut go_on).unwrap().into_report();
    assert_eq!(report.findings, []);
    assert_eq!(report.end.unwrap().value(), 900);
}

#[test]
fn a_hole_that_fills_is_no_finding() {
    let dir = copy_of("plain");
    let log = dir.path().join(name(ACTIVE, "log"));
    let whole = fs::read(&log).unwrap();
    let (position, size, _, _) = batch_of(ACTIVE, 4);
    let mut bytes = whole.clone();
    bytes[at(position)..at(position + size)].fill(0);
    fs::write(&log, bytes).unwrap();
    let partition = Partition::open(dir.path()).unwrap();
    // Good batches lie behind it; the writer's bytes for it become visible after the first look.
    let mut go_on = |_: u64| fs::write(&log, &whole).unwrap();
    let last = partition.segment_count() - 1;
    let report = partition.check_segment(last, &VerifyOptions::default(), &mut go_on).unwrap().into_report();
    assert_eq!(report.findings, []);
}

#[test]
fn a_segment_that_is_sealed_meanwhile_is_read_again() {
    let dir = copy_of("plain");
    let log = dir.path().join(name(ACTIVE, "log"));
    let whole = fs::read(&log).unwrap();
    // Much room, so that the search for its end reads on after the first call.
    let open = || fs::OpenOptions::new().write(true).open(&log).unwrap();
    open().set_len(200 << 20).unwrap();
    let partition = Partition::open(dir.path()).unwrap();
    let last = partition.segment_count() - 1;
    let trim = |_: u64| open().set_len(whole.len() as u64).unwrap();
    let report = std::thread::scope(|scope| {
        // Cut while the zeros are being looked at, or before or after: each is right.
        scope.spawn(|| trim(0));
        partition.check_segment(last, &VerifyOptions::default(), &mut |_| {}).unwrap().into_report()
    });
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.end.unwrap().value(), 900);
}

#[test]
fn files_that_are_removed_meanwhile_are_only_noted() {
    let dir = copy_of("plain");
    let partition = Partition::open(dir.path()).unwrap();
    for suffix in ["log", "index", "timeindex"] {
        fs::remove_file(dir.path().join(name(0, suffix))).unwrap();
    }
    let options = VerifyOptions::default();
    let reports: Vec<_> = (0..partition.segment_count())
        .filter_map(|n| partition.check_segment(n, &options, &mut |_| {}))
        .collect();
    let report = partition.conclude(reports, &options);
    assert_eq!(gist(&report), []);
    assert_eq!(report.findings.iter().filter(|finding| finding.kind == Kind::Removed).count(), 3);
}

#[test]
fn an_end_that_moves_and_is_not_whole_is_only_noted() {
    let dir = copy_of("plain");
    let log = dir.path().join(name(ACTIVE, "log"));
    let whole = fs::read(&log).unwrap();
    let (position, _, _, _) = last_of(ACTIVE);
    fs::write(&log, &whole[..at(position) + 100]).unwrap();
    let partition = Partition::open(dir.path()).unwrap();
    let mut go_on = |_: u64| {
        fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"more").unwrap();
    };
    let last = partition.segment_count() - 1;
    let report = partition.check_segment(last, &VerifyOptions::default(), &mut go_on).unwrap().into_report();
    let found: Vec<_> = report.findings.iter().map(|f| (f.kind, f.severity)).collect();
    assert_eq!(found, [(Kind::BeingWritten, Note)]);
}

// ---- the dump of damage

#[test]
fn the_dump_goes_on_behind_damage_and_says_what_it_found() {
    let dir = copy_of("plain");
    let log = name(SEALED, "log");
    let (crc_position, _, _, _) = batch_of(SEALED, 2);
    let (zero_position, zero_size, _, _) = batch_of(SEALED, 5);
    edit(dir.path(), &log, |bytes| {
        bytes[at(crc_position) + 100] ^= 1;
        bytes[at(zero_position)..at(zero_position) + 61].fill(0);
    });
    let output = logctl(dir.path(), ["dump", &log]);
    assert_eq!(output.status.code(), Some(4));
    let text = stdout(&output);
    let count = |what: &str| text.lines().filter(|line| line.ends_with(what)).count();
    assert_eq!((count("isvalid: true"), count("isvalid: false")), (11, 1));
    assert!(
        text.contains(&format!("Found {zero_size} invalid bytes at position {zero_position} of {log}")),
        "{text}"
    );
    let said = stderr(&output);
    assert!(said.contains("the stored CRC is") && said.contains("its bytes give"), "{said}");
    let range = format!("bytes {zero_position}..{} are no batch and were skipped", zero_position + zero_size);
    assert!(said.contains(&range), "{said}");

    let json = logctl(dir.path(), ["dump", "-J", &log]);
    assert_eq!(json.status.code(), Some(4));
    assert_eq!(stderr(&json), "");
    let problems: Vec<(String, u64)> = stdout(&json)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "problem")
        .map(|line| (line["kind"].as_str().unwrap().to_owned(), line["position"].as_u64().unwrap()))
        .collect();
    assert_eq!(problems, [("bad-crc".to_owned(), crc_position), ("zeroed-bytes".to_owned(), zero_position)]);
}

#[test]
fn the_dump_of_a_torn_tail_is_kafkas_and_its_exit_code_is_not() {
    let dir = copy_of("plain");
    let log = name(ACTIVE, "log");
    let (position, _, _, _) = last_of(ACTIVE);
    edit(dir.path(), &log, |bytes| bytes.truncate(at(position) + 100));
    let output = logctl(dir.path(), ["dump", &log]);
    assert!(stdout(&output).ends_with(&format!("Found 100 invalid bytes at the end of {log}\n")));
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn the_dump_of_an_index_says_where_it_does_not_fit() {
    let dir = copy_of("plain");
    let (index, time_index) = (name(SEALED, "index"), name(SEALED, "timeindex"));
    edit(dir.path(), &index, |bytes| bytes[19] -= 1);
    edit(dir.path(), &time_index, |bytes| bytes[19] ^= 1);
    let output = logctl(dir.path(), ["dump", &index, &time_index]);
    assert_eq!(output.status.code(), Some(4));
    let said = stderr(&output);
    assert!(said.contains("Mismatches in :") && said.contains("  Index offset: "), "{said}");
    assert!(said.contains("Found timestamp mismatch in :") && said.contains("  Index timestamp: "), "{said}");
    let json = logctl(dir.path(), ["dump", "-J", &index, &time_index]);
    let text = stdout(&json);
    assert_eq!(json.status.code(), Some(4));
    assert!(
        text.contains("\"kind\":\"index-offset\"") && text.contains("\"kind\":\"time-index-timestamp\""),
        "{text}"
    );
}

#[test]
fn a_segment_that_no_log_is_opened_with_is_damaged() {
    let dir = TempDir::new().unwrap();
    let log = fs::File::create(dir.path().join(name(0, "log"))).unwrap();
    log.set_len(1 << 31).unwrap();
    assert_eq!(logctl(dir.path(), ["cat", "."]).status.code(), Some(4));
    let output = logctl(dir.path(), ["verify", "."]);
    assert_eq!(output.status.code(), Some(4));
    assert!(stdout(&output).contains("too-large"), "{}", stdout(&output));
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_a_full_device_is_one() {
    let log = fixtures().join("plain/plain-0").join(name(0, "log"));
    let bin = env!("CARGO_BIN_EXE_logctl");
    let run = |to: &str| {
        let script = format!("'{bin}' dump --deep-iteration '{}' {to}", log.display());
        Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap()
    };
    let piped = run("| true");
    assert!(matches!(piped.status.code(), Some(0 | 141)), "{piped:?}");
    assert_eq!(stderr(&piped), "");
    let full = run("> /dev/full");
    assert_eq!(full.status.code(), Some(1), "{}", stderr(&full));
}

/// A log of ours with several segments, closed.
fn ours() -> TempDir {
    let to = TempDir::new().unwrap();
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = FsyncPolicy::Never;
    config.segment_bytes = 1024;
    let mut log = LogWriter::open(to.path(), config).unwrap();
    for number in 0..60 {
        let value = format!("record {number}");
        log.append_records(&[Record::value_only(value.as_bytes())], AppendOptions::default()).unwrap();
    }
    log.close().unwrap();
    to
}

#[test]
fn what_our_checkpoint_knew_and_is_gone_is_damage() {
    let dir = ours();
    assert_eq!(gist(&verify_dir(dir.path())), Vec::new());
    let bases: Vec<u64> = dumpable(dir.path(), "")
        .iter()
        .filter_map(|file| file.strip_prefix('/')?.strip_suffix(".log")?.parse().ok())
        .collect();
    assert!(bases.len() > 3, "{bases:?}");
    // A segment in the middle.
    for suffix in ["log", "index", "timeindex"] {
        fs::remove_file(dir.path().join(name(bases[1], suffix))).unwrap();
    }
    let found = verify_dir(dir.path()).findings;
    let damage: Vec<_> = found.iter().filter(|finding| finding.severity == Damage).collect();
    assert_eq!(damage.len(), 1, "{found:?}");
    assert_eq!((damage[0].kind, damage[0].offset.unwrap().to_u64()), (FindingKind::OffsetGap, bases[1]));
    // The oldest ones are retention's to take.
    let dir = ours();
    for suffix in ["log", "index", "timeindex"] {
        fs::remove_file(dir.path().join(name(bases[0], suffix))).unwrap();
    }
    assert_eq!(gist(&verify_dir(dir.path())), Vec::new());
    // The end.
    let dir = ours();
    let last = *bases.last().unwrap();
    for suffix in ["log", "index", "timeindex"] {
        fs::remove_file(dir.path().join(name(last, suffix))).unwrap();
    }
    let found = verify_dir(dir.path()).findings;
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::LostRecords), "{found:?}");
    assert_eq!(found[0].offset.unwrap().to_u64(), last);
}
