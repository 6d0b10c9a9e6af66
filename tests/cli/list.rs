//! `ls` and `offsets`: partitions, segments, offsets by time.

use std::{fs, path::Path};

use serde_json::Value;

use crate::run::{Place, fails, numbers, ok, run};

fn json(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn text(out: Vec<u8>) -> String {
    String::from_utf8(out).unwrap()
}

/// Two topics, three partitions.
fn data(place: &Place) -> String {
    let small = ["--batch-size", "100", "--segment-bytes", "1k"];
    place.log("data/orders-0", &numbers(10), &small);
    place.log("data/orders-10", &numbers(500), &small);
    place.log("data/audit-2", &numbers(3), &small);
    fs::create_dir(place.path("data/not a partition")).unwrap();
    fs::write(place.path("data/notes.txt"), "x").unwrap();
    place.path("data")
}

#[test]
fn partitions_of_a_data_directory() {
    let place = Place::new();
    let data = data(&place);
    let shown = text(ok(&["ls", &data], b""));
    let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["PARTITION", "START", "END", "SEGMENTS", "BYTES"]);
    let names: Vec<_> = rows.iter().skip(1).map(|row| (row[0], row[1], row[2])).collect();
    assert_eq!(names, [("audit-2", "0", "3"), ("orders-0", "0", "10"), ("orders-10", "0", "500")]);
    let width = shown.lines().next().unwrap().len();
    assert!(shown.lines().all(|line| line.len() == width), "{shown}");
    let lines = json(&ok(&["ls", &data, "-J", "--sort", "bytes"], b""));
    assert_eq!((&lines[0]["topic"], &lines[0]["partition"]), (&"orders".into(), &10.into()));
    let bytes: u64 = fs::read_dir(Path::new(&data).join("orders-10"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|suffix| suffix == "log"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert_eq!(lines[0]["bytes"], bytes);
    assert_eq!(ok(&["ls", "--dir", &data], b""), shown.as_bytes());
    let quiet = text(ok(&["ls", &data, "-q"], b""));
    assert_eq!(shown.split_once('\n').unwrap().1, quiet);
}

#[test]
fn segments_of_a_partition() {
    let place = Place::new();
    let data = data(&place);
    let dir = place.path("data/orders-10");
    let lines = json(&ok(&["ls", &dir, "-J"], b""));
    assert!(lines.len() > 3);
    for pair in lines.windows(2) {
        assert_eq!(pair[0]["next_offset"], pair[1]["base_offset"]);
    }
    assert_eq!(lines.last().unwrap()["next_offset"], 500);
    assert_eq!(lines.last().unwrap()["sealed"], false);
    let shown = text(ok(&["ls", "--dir", &data, "-t", "orders", "-p", "10"], b""));
    assert_eq!(shown.lines().count(), lines.len() + 1, "{shown}");
    assert!(shown.contains("00000000000000000000.log"), "{shown}");
}

/// One that cannot be read hides none of the others, and the exit code tells.
#[test]
fn a_partition_that_cannot_be_read_is_told() {
    let place = Place::new();
    let data = data(&place);
    fs::create_dir(place.path("data/empty-0")).unwrap();
    let ran = run(&["ls", &data], b"");
    assert_eq!((ran.code, ran.text().lines().count()), (Some(8), 4), "{}", ran.err);
    assert!(ran.err.contains("empty-0"), "{}", ran.err);
    let ran = run(&["offsets", &data], b"");
    assert_eq!((ran.code, ran.text()), (Some(8), "audit:2:3\norders:0:10\norders:10:500\n"), "{}", ran.err);
    fails(&["ls", &place.path("absent")], b"", 3, "no such file");
    fails(&["ls", &place.path("data/empty-0")], b"", 3, "no log at");
    fails(&["ls"], b"", 2, "no target given");
    fails(&["ls", &place.path("data/notes.txt")], b"", 2, "a file");
}

#[test]
fn offsets_by_time() {
    let place = Place::new();
    // The largest timestamp is not the last record's.
    let line = |n: i64, at: i64| format!("{{\"value\":\"{n}\",\"timestamp\":{at}}}\n").into_bytes();
    let mut lines: Vec<u8> = (0..100).flat_map(|n| line(n, n * 1000)).collect();
    lines.extend(line(100, 500_000));
    lines.extend(line(101, 400_000));
    let dir = place.log("orders-3", &lines, &["--format", "jsonl", "--batch-size", "100"]);
    let file = Path::new(&dir).join("00000000000000000000.log").to_str().unwrap().to_owned();
    let cases = [
        ("earliest", "0"),
        ("latest", "102"),
        ("max-timestamp", "100"),
        ("-2", "0"),
        ("-1", "102"),
        ("-3", "100"),
        ("@1970-01-01T00:00:10Z", "10"),
        ("1970-01-01T00:00:10.001Z", "11"),
        ("now", ""),
    ];
    for (time, offset) in cases {
        let wanted = format!("orders:3:{offset}\n");
        assert_eq!(text(ok(&["offsets", &dir, "--time", time], b"")), wanted, "{time}");
        assert_eq!(text(ok(&["offsets", &file, "--time", time], b"")), wanted, "{time} of the file");
    }
    assert_eq!(text(ok(&["offsets", &dir], b"")), "orders:3:102\n");
    let lines = json(&ok(&["query", &dir, "--time", "now", "-J"], b""));
    assert_eq!((&lines[0]["topic"], &lines[0]["offset"]), (&"orders".into(), &Value::Null));
    fails(&["offsets", &dir, "--time", "soon"], b"", 2, "");
    fails(&["offsets", &place.path("absent")], b"", 3, "no such file");
}
