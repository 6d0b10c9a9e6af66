//! `diff`: by bytes, by batches, by records; where the first difference is; exit codes.

use std::{fs, path::Path};

use serde_json::Value;

use crate::run::{Place, copy_dir, fails, numbers, ok, run, snapshot};

fn json(out: &[u8]) -> Vec<Value> {
    out.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn first_log(dir: &str) -> std::path::PathBuf {
    Path::new(dir).join("00000000000000000000.log")
}

const SMALL: [&str; 4] = ["--batch-size", "200", "--segment-bytes", "2k"];

#[test]
fn a_copy_is_the_same_in_every_way_and_nothing_is_changed() {
    let place = Place::new();
    let (a, b) = (place.log("t-0", &numbers(500), &SMALL), place.path("u-0"));
    copy_dir(&a, &b);
    let before = (snapshot(&a), snapshot(&b));
    for by in ["bytes", "batches", "records"] {
        let said = String::from_utf8(ok(&["diff", &a, &b, "--by", by], b"")).unwrap();
        assert!(said.contains(&format!("the same by {by}")), "{said}");
        let lines = json(&ok(&["diff", &a, &b, "--by", by, "-J"], b""));
        assert_eq!((lines.len(), &lines[0]["equal"]), (1, &Value::Bool(true)), "{by}");
    }
    assert_eq!(ok(&["diff", &a, &b, "-q"], b""), b"");
    let files = [first_log(&a), first_log(&b)];
    ok(&["diff", files[0].to_str().unwrap(), files[1].to_str().unwrap()], b"");
    assert!(before == (snapshot(&a), snapshot(&b)), "a file changed");
}

/// Batched, rolled and compressed in other ways, the same to a consumer.
#[test]
fn records_may_be_batched_and_compressed_otherwise() {
    let place = Place::new();
    let lines: Vec<u8> = (0..100)
        .flat_map(|n| format!("{{\"key\":\"k{n}\",\"value\":\"{n}\",\"timestamp\":{n}}}\n").into_bytes())
        .collect();
    let a = place.log("t-0", &lines, &["--format", "jsonl", "--batch-size", "200"]);
    let b = place.log("u-0", &lines, &["--format", "jsonl", "-z", "zstd", "--segment-bytes", "2k"]);
    ok(&["diff", &a, &b, "--by", "records"], b"");
    ok(&["diff", &a, &b, "--records"], b"");
    let ran = run(&["diff", &a, &b, "-J"], b"");
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    let found = json(&ran.out);
    assert_eq!(found[0]["kind"], "batch");
    assert_eq!((&found[0]["a_position"], &found[0]["a_offset"]), (&Value::from(0), &Value::from(0)));
    assert!(found[0]["a_file"].as_str().unwrap().ends_with("t-0/00000000000000000000.log"));
    assert_eq!(found[1]["equal"], false);
}

#[test]
fn the_first_difference_is_named_on_both_sides() {
    let place = Place::new();
    let line = |n: u32, value: &str| format!("{{\"value\":\"{value}\",\"timestamp\":{n}}}\n").into_bytes();
    let mut lines: Vec<Vec<u8>> = (0..60).map(|n| line(n, &format!("value {n}"))).collect();
    let options = ["--format", "jsonl", "--batch-size", "200", "--segment-bytes", "2k"];
    let a = place.log("t-0", &lines.concat(), &options);
    lines[41] = line(41, "other 41");
    let b = place.log("u-0", &lines.concat(), &options);
    let ran = run(&["diff", &a, &b, "--by", "records", "-J"], b"");
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    let found = json(&ran.out);
    assert_eq!((&found[0]["a_offset"], &found[0]["b_offset"]), (&Value::from(41), &Value::from(41)));
    assert_eq!(
        found[0]["detail"],
        r#"the values differ from byte 0 on: "value 41" (8 bytes) in A, "other 41" (8 bytes) in B"#
    );
    assert_eq!(found[1]["records"], 41);
    let by_bytes = json(&run(&["diff", &a, &b, "--bytes", "-J"], b"").out);
    let position = by_bytes[0]["a_position"].as_u64().unwrap();
    let file = Path::new(by_bytes[0]["a_file"].as_str().unwrap()).to_owned();
    let other = Path::new(by_bytes[0]["b_file"].as_str().unwrap()).to_owned();
    let (one, other) = (fs::read(file).unwrap(), fs::read(other).unwrap());
    let at = usize::try_from(position).unwrap();
    assert!(one[..at] == other[..at] && one[at] != other[at]);
    let offset = by_bytes[0]["a_offset"].as_i64().unwrap();
    assert!((30..=41).contains(&offset), "the batch that holds record 41 begins at {offset}");
    let said = run(&["diff", &a, &b], b"");
    assert!(said.text().contains("CRC") && said.text().contains("different by batches"), "{}", said.text());
}

#[test]
fn a_log_that_goes_on_differs_at_its_end() {
    let place = Place::new();
    let (a, b) = (place.log("t-0", &numbers(20), &SMALL), place.path("u-0"));
    copy_dir(&a, &b);
    ok(&["append", &b], b"more\n");
    for by in ["batches", "records"] {
        let found = json(&run(&["diff", &a, &b, "--by", by, "-J"], b"").out);
        assert_eq!((&found[0]["kind"], &found[0]["b_offset"]), (&"end".into(), &20.into()), "{by}");
        let found = json(&run(&["diff", &b, &a, "--by", by, "-J"], b"").out);
        assert_eq!((&found[0]["kind"], &found[0]["a_offset"]), (&"end".into(), &20.into()), "{by}");
    }
    fails(&["diff", &a, &b], b"", 4, "");
    fs::remove_file(first_log(&b).with_extension("timeindex")).unwrap();
    let found = json(&run(&["diff", &a, &b, "--bytes", "-J"], b"").out);
    assert!(found[0]["detail"].is_string());
    ok(&["diff", &a, &a, "--bytes"], b"");
}

/// Epochs are a broker's: a copy through one gets its own.
#[test]
fn leader_epochs_differ_unless_they_may() {
    let place = Place::new();
    let (a, b) = (place.log("t-0", b"one\n", &[]), place.path("u-0"));
    copy_dir(&a, &b);
    let mut bytes = fs::read(first_log(&b)).unwrap();
    bytes[15] ^= 5;
    fs::write(first_log(&b), bytes).unwrap();
    let ran = fails(&["diff", &a, &b], b"", 4, "");
    assert!(ran.text().contains("leader epoch 0 in A, 5 in B"), "{}", ran.text());
    ok(&["diff", &a, &b, "--ignore-epoch"], b"");
    ok(&["diff", &a, &b, "--by", "records"], b"");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let place = Place::new();
    let (a, b) = (place.log("t-0", &numbers(500), &SMALL), place.path("u-0"));
    copy_dir(&a, &b);
    let file = first_log(&a);
    fails(&["diff", &a, file.to_str().unwrap()], b"", 2, "is a file and");
    fails(&["diff", &a, &place.path("absent")], b"", 3, "no such file");
    fails(&["diff", &a, &b, "--bytes", "--ignore-epoch"], b"", 2, "");
    fails(&["diff", &a], b"", 2, "required");
    let damaged = first_log(&b);
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[100] ^= 1;
    fs::write(&damaged, &bytes).unwrap();
    fails(&["diff", &a, &b], b"", 4, "CRC");
    let (file, damaged) = (file.to_str().unwrap(), damaged.to_str().unwrap());
    fails(&["diff", file, damaged], b"", 4, "CRC does not fit");
    let found = json(&run(&["diff", file, damaged, "--bytes", "-J"], b"").out);
    assert_eq!((&found[0]["a_position"], &found[0]["kind"]), (&100.into(), &"bytes".into()));
    bytes[100] ^= 1;
    bytes.extend([1, 2, 3]);
    fs::write(damaged, bytes).unwrap();
    fails(&["diff", file, damaged], b"", 4, "no whole batch");
}

#[test]
fn data_directories_are_compared_partition_by_partition() {
    let place = Place::new();
    for topic in ["a-0", "a-1", "b-0"] {
        place.log(&format!("x/{topic}"), &numbers(300), &SMALL);
    }
    let (x, y) = (place.path("x"), place.path("y"));
    copy_dir(&x, &y);
    for by in ["bytes", "batches", "records"] {
        let lines = json(&ok(&["diff", &x, &y, "--by", by, "-J"], b""));
        assert_eq!((&lines[0]["equal"], &lines[0]["partitions"]), (&Value::Bool(true), &3.into()), "{by}");
    }
    ok(&["append", &format!("{y}/a-1")], b"more\n");
    fs::remove_dir_all(Path::new(&x).join("b-0")).unwrap();
    let ran = fails(&["diff", &x, &y], b"", 4, "");
    assert!(
        ran.text().contains("b-0 is only in B") && ran.text().contains("2 differences"),
        "{}",
        ran.text()
    );
    let found = json(&run(&["diff", &x, &y, "--records", "-J"], b"").out);
    assert_eq!((&found[0]["kind"], &found[0]["b_offset"]), (&"end".into(), &300.into()));
    assert_eq!(found[1]["kind"], "missing-partition");
    assert_eq!((&found[2]["equal"], &found[2]["partitions"]), (&Value::Bool(false), &2.into()));
    // What stands beside the partitions counts by bytes.
    copy_dir(&x, place.path("z"));
    fs::write(Path::new(&x).join("meta.properties"), "version=1\n").unwrap();
    ok(&["diff", &x, &place.path("z")], b"");
    let ran = fails(&["diff", &x, &place.path("z"), "--bytes"], b"", 4, "");
    assert!(ran.text().contains("meta.properties is only in A"), "{}", ran.text());
}
