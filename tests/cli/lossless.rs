//! Nothing is lost on any way from one directory to another: every directory that a broker wrote goes each of them, and
//! `diff` proves what arrived.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::run::{Place, fails, ok, run, snapshot};

/// Every partition that a broker, or a broker's own classes, wrote.
fn partitions() -> Vec<String> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0"));
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "log") {
                found.push(dir.to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found.dedup();
    assert!(found.len() >= 35, "{} partitions: the fixtures are not there", found.len());
    found
}

/// Of message formats 0 and 1, which are never written.
fn is_old(dir: &str) -> bool {
    dir.contains("/magic")
}

fn info(dir: &str) -> Value {
    let told = ok(&["info", dir, "-J"], b"");
    serde_json::from_slice(told.split(|byte| *byte == b'\n').next().unwrap()).unwrap()
}

#[track_caller]
fn same(by: &str, dir: &str, copy: &str) {
    let ran = run(&["diff", dir, copy, "--by", by], b"");
    assert_eq!(ran.code, Some(0), "{dir}: {}{}", ran.text(), ran.err);
}

#[track_caller]
fn clean(dir: &str, of: &str) {
    let ran = run(&["verify", dir, "--deep", "-q"], b"");
    assert_eq!(ran.code, Some(0), "{of}: {}{}", ran.text(), ran.err);
}

#[test]
fn json_lines_into_append() {
    for dir in partitions() {
        let (place, lines) = (Place::new(), ok(&["cat", &dir, "-J"], b""));
        let copy = place.path("copy-0");
        let args =
            ["append", &copy, "--create", "--format", "jsonl", "--preserve", "--max-batch-bytes", "8MiB"];
        ok(&args, &lines);
        same("records", &dir, &copy);
        clean(&copy, &dir);
    }
}

#[test]
fn raw_export_and_import_keep_every_batch() {
    for dir in partitions() {
        let (place, before) = (Place::new(), snapshot(&dir));
        let (raw, copy) = (ok(&["export", &dir, "-q"], b""), place.path("copy-0"));
        assert!(snapshot(&dir) == before, "{dir} changed");
        let start = info(&dir)["start"].to_string();
        let create = ["import", &copy, "--create", "--start", &start];
        if is_old(&dir) {
            fails(&create, &raw, 1, "--convert");
            fs::remove_dir_all(&copy).unwrap();
            ok(&[&create[..], &["--convert"]].concat(), &raw);
            same("records", &dir, &copy);
        } else {
            ok(&[&create[..], &["--deep"]].concat(), &raw);
            same("batches", &dir, &copy);
            // And once more: the bytes are those that were exported.
            assert!(ok(&["export", &copy, "-q"], b"") == raw, "{dir}");
        }
        clean(&copy, &dir);
        // The stream is the bytes of the segments, without the room behind them.
        let mut logs: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|suffix| suffix == "log"))
            .collect();
        logs.sort();
        let stored: Vec<u8> = logs.iter().flat_map(|path| fs::read(path).unwrap()).collect();
        let from = stored.len() - stored.iter().rev().take_while(|byte| **byte == 0).count();
        assert!(stored.len() >= raw.len() && from <= stored.len(), "{dir}");
        let at = if dir.ends_with("trimmed-0") { skipped(&stored, &raw) } else { 0 };
        assert!(stored[at..][..raw.len()] == raw, "{dir}");
        assert!(stored[at + raw.len()..].iter().all(|byte| *byte == 0), "{dir}");
    }
}

/// Where the first batch of the stream lies.
fn skipped(stored: &[u8], raw: &[u8]) -> usize {
    stored.windows(61).position(|window| window == &raw[..61]).unwrap()
}

#[test]
fn json_lines_and_csv_keep_every_record_whatever_packs_them() {
    let mut codecs = ["none", "gzip", "snappy", "lz4", "zstd:1"].iter().cycle();
    for dir in partitions() {
        let start = info(&dir)["start"].clone();
        for format in ["jsonl", "csv"] {
            let (place, codec) = (Place::new(), codecs.next().unwrap());
            let (file, copy) = (place.path("stream"), place.path("copy-0"));
            ok(&["export", &dir, "--format", format, "-z", codec, "--to", &file, "-q"], b"");
            let import = ["import", &copy, "--create", "--from", &file, "--batch-size", "2KiB"];
            let start = start.to_string();
            ok(&[&import[..], &["--batch-compression", "lz4", "--start", &start]].concat(), b"");
            same("records", &dir, &copy);
            clean(&copy, &dir);
            // Whose clock, and the epoch, which `diff` does not compare.
            let meta = ["--meta-only", "-J"];
            let told = |dir: &str| {
                let lines = ok(&[&["cat", dir], &meta[..]].concat(), b"");
                let lines = String::from_utf8(lines).unwrap();
                lines
                    .lines()
                    .map(|line| {
                        let line: Value = serde_json::from_str(line).unwrap();
                        (line["offset"].clone(), line["timestamp_type"].clone(), line["leader_epoch"].clone())
                    })
                    .collect::<Vec<_>>()
            };
            if !is_old(&dir) && format == "jsonl" {
                assert_eq!(told(&copy), told(&dir), "{dir} {format}");
            }
        }
    }
}

#[test]
fn copies_and_snapshots_are_the_same_byte_for_byte() {
    for dir in partitions() {
        let place = Place::new();
        for verb in [&["copy", "--check"][..], &["snapshot", "--hardlink"], &["copy", "--no-reflink"]] {
            let copy = place.path(&format!("{}{}-0", verb[0], verb[1]));
            ok(&[&verb[..1], &[&dir, &copy], &verb[1..]].concat(), b"");
            same("batches", &dir, &copy);
            same("records", &dir, &copy);
            // A broker that was killed left room in its last indexes, which is not copied; a start that stands beside the
            // log is written into the copy, as a writer writes it.
            if !dir.contains("killed") && !dir.ends_with("trimmed-0") {
                same("bytes", &dir, &copy);
            }
            let exported = [ok(&["export", &dir, "-q"], b""), ok(&["export", &copy, "-q"], b"")];
            assert!(exported[0] == exported[1], "{dir}");
        }
    }
}

#[test]
fn a_data_directory_is_copied_whole() {
    let place = Place::new();
    for store in ["store-clean", "store-killed"] {
        let data = format!("{}/fixtures/kafka/4.4.0/{store}/data", env!("CARGO_MANIFEST_DIR"));
        let copy = place.path(store);
        ok(&["copy", &data, &copy, "--check"], b"");
        same("batches", &data, &copy);
        same("records", &data, &copy);
        let marker = Path::new(&copy).join(".kafka_cleanshutdown").exists();
        assert_eq!(marker, store == "store-clean");
        if marker {
            same("bytes", &data, &copy);
        }
        assert!(!Path::new(&copy).join(".stratalog-copy-of").exists());
        fails(&["copy", &data, &copy], b"", 1, "is not empty");
        // What the broker knows of a start that is no segment's goes along.
        let ls = |dir: &str| {
            let lines = String::from_utf8(ok(&["ls", dir, "-J"], b"")).unwrap();
            lines
                .lines()
                .map(|line| {
                    let line: Value = serde_json::from_str(line).unwrap();
                    (line["topic"].clone(), line["start"].clone(), line["end"].clone())
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(ls(&data), ls(&copy));
    }
}
