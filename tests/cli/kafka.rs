//! Directories that a real broker wrote, read by the command and compared with what the broker's own classes say is in
//! them.

use std::{fs, path::PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::run::{Place, fails, ok, snapshot};

/// The partition directories that have an `.expected.jsonl` beside them, with it.
fn cases() -> Vec<(String, String)> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0"));
    let mut found = Vec::new();
    for case in fs::read_dir(root).unwrap() {
        for entry in fs::read_dir(case.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_str().unwrap();
            if let Some(dir) = name.strip_suffix(".expected.jsonl") {
                found.push((dir.to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 15, "the fixtures are not there");
    found
}

/// Of message formats 0 and 1: of their batches less is known (`dump_verify` holds their records against the broker's).
fn is_old(dir: &str) -> bool {
    dir.contains("/magic")
}

/// A long value is told by its length and digest.
fn told(bytes: &[u8], as_digest: bool) -> Value {
    if as_digest {
        let digest: String = Sha256::digest(bytes).iter().flat_map(|byte| hex(*byte)).collect();
        return json!({"length": bytes.len(), "sha256": digest});
    }
    json!(BASE64_STANDARD.encode(bytes))
}

fn hex(byte: u8) -> [char; 2] {
    [byte >> 4, byte & 15].map(|digit| char::from_digit(u32::from(digit), 16).unwrap())
}

fn field(record: &Value, name: &str, wanted: &Value) -> Value {
    let Some(text) = record[name].as_str() else { return Value::Null };
    let bytes = match record[format!("{name}_encoding")].as_str() {
        Some(_) => BASE64_STANDARD.decode(text).unwrap(),
        None => text.as_bytes().to_vec(),
    };
    told(&bytes, wanted.is_object())
}

#[test]
fn every_record_is_what_the_broker_says_and_no_file_changes() {
    for (dir, expected) in cases().into_iter().filter(|(dir, _)| !is_old(dir)) {
        let before = snapshot(&dir);
        let printed = String::from_utf8(ok(&["cat", &dir, "-J", "--control", "--batch-meta"], b"")).unwrap();
        let info: Value = serde_json::from_slice(&ok(&["info", &dir, "-J"], b"")).unwrap();
        assert!(snapshot(&dir) == before, "{dir} changed");
        let mut printed = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut batch = Value::Null;
        let mut count = 0;
        for line in expected.lines() {
            let wanted: Value = serde_json::from_str(line).unwrap();
            if wanted.get("batch").is_some() {
                batch = wanted;
                continue;
            }
            if wanted["offset"].as_i64() < info["start"].as_i64() {
                continue;
            }
            let got = printed.next().unwrap_or_else(|| panic!("{dir}: no record {}", wanted["offset"]));
            let at = format!("{dir}: offset {}", wanted["offset"]);
            assert_eq!(got["offset"], wanted["offset"], "{at}");
            assert_eq!(got["timestamp"], wanted["timestamp"], "{at}");
            assert_eq!(got["leader_epoch"], batch["epoch"], "{at}");
            assert_eq!(got["producer_id"], batch["producerId"], "{at}");
            assert_eq!(got["batch"]["base_offset"], batch["batch"], "{at}");
            assert_eq!(got["batch"]["codec"], batch["codec"], "{at}");
            assert_eq!(got.get("control").is_some(), batch["control"] == true, "{at}");
            let clock = if batch["timestampType"] == "CreateTime" { "create" } else { "append" };
            assert_eq!(got["timestamp_type"], clock, "{at}");
            assert_eq!(field(&got, "key", &wanted["key"]), wanted["key"], "{at}");
            assert_eq!(field(&got, "value", &wanted["value"]), wanted["value"], "{at}");
            let headers = wanted["headers"].as_array().unwrap();
            assert_eq!(got["headers"].as_array().unwrap().len(), headers.len(), "{at}");
            for (header, wanted) in got["headers"].as_array().unwrap().iter().zip(headers) {
                assert_eq!(header["key"], wanted["key"], "{at}");
                assert_eq!(field(header, "value", &wanted["value"]), wanted["value"], "{at}");
            }
            count += 1;
        }
        assert_eq!(printed.next(), None, "{dir}");
        assert!(count > 0, "{dir}");
    }
}

#[test]
fn the_last_records_are_those_that_exist() {
    for (dir, _) in cases() {
        let all = ok(&["cat", &dir, "--format", "%o\\n"], b"");
        let all: Vec<&str> = std::str::from_utf8(&all).unwrap().lines().collect();
        for count in [1, 2, 7, 10_000] {
            let last = ok(&["tail", &dir, "-n", &count.to_string(), "--format", "%o\\n"], b"");
            let last: Vec<&str> = std::str::from_utf8(&last).unwrap().lines().collect();
            assert_eq!(last, all[all.len().saturating_sub(count)..], "{dir} -n {count}");
        }
    }
}

#[test]
fn a_copy_with_its_offsets_kept_holds_the_same_records() {
    let template = "%o %d %k{hex} %S %v{base64} %h{%k=%v{hex};}\\n";
    for (dir, _) in cases() {
        let place = Place::new();
        let copy = place.path("copy-0");
        let json = ok(&["cat", &dir, "-J"], b"");
        ok(
            &["append", &copy, "--create", "--format", "jsonl", "--preserve", "--max-batch-bytes", "8MiB"],
            &json,
        );
        let (copied, original) =
            (ok(&["cat", &copy, "--format", template], b""), ok(&["cat", &dir, "--format", template], b""));
        assert!(copied == original, "{dir}");
    }
}

#[test]
fn an_offset_that_was_compacted_away_is_not_found() {
    let (dir, _) = cases().into_iter().find(|(dir, _)| dir.ends_with("compacted-0")).unwrap();
    let offsets = ok(&["cat", &dir, "--format", "%o\\n"], b"");
    let offsets: Vec<u64> =
        std::str::from_utf8(&offsets).unwrap().lines().map(|n| n.parse().unwrap()).collect();
    let gap = offsets.windows(2).find(|pair| pair[1] > pair[0] + 1).unwrap()[0] + 1;
    fails(&["get", &dir, &gap.to_string()], b"", 3, &format!("no record at offset {gap}"));
}
