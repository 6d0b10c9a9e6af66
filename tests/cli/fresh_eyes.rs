//! What somebody met who had only the help: each thing that was said wrongly, or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{BufRead, BufReader},
    os::unix::fs::{FileExt, symlink},
    process::Stdio,
};

use crate::run::{Place, fails, logctl, numbers, ok, run};

#[test]
fn a_partition_whose_disk_is_missing_is_not_left_out() {
    let place = Place::new();
    place.log("data/t-0", &numbers(10), &[]);
    let data = place.path("data");
    symlink(place.path("nodisk/t-1"), place.path("data/t-1")).unwrap();
    let copy = place.path("copy");
    for args in [
        &["verify", &data][..],
        &["ls", &data],
        &["offsets", &data],
        &["trim", &data, "--before", "2", "--dry-run"],
        &["retain", &data, "--bytes", "1GiB", "--dry-run"],
        &["copy", &data, &copy, "--dry-run"],
        &["copy", &data, &copy],
    ] {
        let ran = fails(args, b"", 8, "leads nowhere");
        assert!(ran.text().contains("t-0") || args[0] != "ls", "{ran:?}");
    }
    fails(&["cat", "-d", &data, "-t", "t", "-p", "1"], b"", 3, "leads nowhere");
    // The copy says that it is not whole, and goes on once the disk is there.
    fails(&["copy", &data, &copy], b"", 1, "unfinished");
    place.log("nodisk/t-1", b"x\n", &[]);
    ok(&["copy", &data, &copy, "--resume"], b"");
    ok(&["diff", &data, &copy], b"");
}

#[test]
fn a_time_without_its_sign_is_recognised() {
    let place = Place::new();
    let dir = place.log("t-0", b"x\n", &[]);
    fails(&["get", &dir, "-3d"], b"", 2, "did you mean @-3d?");
    fails(&["cat", &dir, "-3d"], b"", 2, "did you mean @-3d?");
    fails(&["cat", &dir, "-5"], b"", 2, "did you mean -o -5?");
    for range in ["-3d:", "2026-11-29:", "2026-11-29T08:00:00Z", "-3d:-1h"] {
        fails(&["cat", &dir, "-o", range], b"", 2, &format!("did you mean @{range}?"));
    }
    assert!(!run(&["cat", &dir, "-o", "x"], b"").err.contains("did you mean"));
}

#[test]
fn a_follower_ends_when_nobody_reads_any_more() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(3), &[]);
    let mut child = logctl(&["tail", &dir, "-n", "2", "-f", "--timeout", "60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "2");
    assert_eq!(lines.next().unwrap().unwrap(), "3");
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Three batches of a log that begins at offset 10, the first of them damaged.
fn cut_bytes(place: &Place) -> Vec<u8> {
    let dir = place.log("whole-0", &numbers(10), &[]);
    for line in ["a\n", "b\n", "c\n"] {
        ok(&["append", &dir], line.as_bytes());
    }
    let mut bytes = ok(&["export", &dir, "-o", "10:"], b"");
    bytes[65] ^= 1;
    bytes
}

#[test]
fn what_was_cut_is_read_whatever_its_name() {
    let place = Place::new();
    let bytes = cut_bytes(&place);
    for name in ["x.log", ".stratalog-cut-3-00000000000000000000-from-70", "exported.raw"] {
        let file = place.path(name);
        fs::write(&file, &bytes).unwrap();
        let ran = fails(&["cat", &file, "--skip-damaged"], b"", 4, "damage before offset 11");
        assert_eq!(ran.text(), "b\nc\n", "{name}");
        assert!(fails(&["verify", &file], b"", 4, "").text().contains("bad-crc"), "{name}");
        assert!(fails(&["dump", &file], b"", 4, "CRC").text().contains("baseOffset: 11"), "{name}");
    }
    fs::write(place.path("text"), "no batch").unwrap();
    fails(&["cat", &place.path("text")], b"", 2, "no whole batch");
    fails(&["verify", &place.path("text")], b"", 2, "no whole batch");
    fails(&["dump", &place.path("missing")], b"", 3, "no file");
}

#[test]
fn a_trimmed_log_keeps_its_start() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(10), &[]);
    ok(&["trim", &dir, "--before", "5", "--yes"], b"");
    let (file, back) = (place.path("t.raw"), place.path("back-0"));
    let ran = run(&["export", &dir, "--to", &file], b"");
    assert!(ran.err.contains("--start 5"), "{}", ran.err);
    ok(&["import", &back, "--create", "--from", &file], b"");
    ok(&["diff", &dir, &back], b"");
    assert_eq!(ok(&["cat", &back], b""), ok(&["cat", &dir], b""));
    // One that begins with a batch leaves no note of another behind.
    let whole = place.log("w-0", &numbers(10), &[]);
    ok(&["export", &whole, "--to", &file, "--force"], b"");
    assert!(!fs::exists(place.path("t.raw.start")).unwrap());
    let piped = run(&["export", &dir], b"");
    assert!(piped.err.contains("import DIR --create --start 5"), "{}", piped.err);
}

#[test]
fn a_difference_is_shown_and_damage_named() {
    let place = Place::new();
    let (a, b) = (place.path("a-0"), place.path("b-0"));
    let same = |value: &str| format!("{{\"value\":\"{value}\",\"timestamp\":1000}}\n").into_bytes();
    for (name, value) in [("a-0", "one \\u001b two"), ("b-0", "one \\u001b too")] {
        place.log(name, &same(value), &["--format", "jsonl"]);
    }
    let by_batches = fails(&["diff", &a, &b], b"", 4, "");
    assert!(by_batches.text().contains("CRC 0x") && by_batches.text().contains("--by records finds"));
    let by_records = fails(&["diff", &a, &b, "--by", "records"], b"", 4, "");
    let want = r#"from byte 7 on: "one \x1b two" in A"#;
    let shown = by_records.text().replace(" (9 bytes)", "");
    assert!(shown.contains(want), "{shown}");
    let log = OpenOptions::new().write(true).open(place.path("b-0/00000000000000000000.log")).unwrap();
    log.write_at(b"!", 70).unwrap();
    fails(&["diff", &a, &b], b"", 4, "B is damaged");
    fails(&["diff", &b, &a, "--by", "records"], b"", 4, "A is damaged");
    let verified = fails(&["verify", &b], b"", 4, "");
    assert!(verified.text().contains("logctl repair"), "{}", verified.text());
    assert!(!run(&["cat", &b], b"").err.contains("nothing was changed"));
}

#[test]
fn small_things() {
    let place = Place::new();
    let dir = place.log("data/t-0", &numbers(10), &[]);
    fails(&["copy", &dir, &place.path("mnt/x/t-0")], b"", 3, "--parents");
    assert!(!fs::exists(place.path("mnt")).unwrap());
    ok(&["copy", &dir, &place.path("mnt/x/t-0"), "--parents"], b"");
    let listed = String::from_utf8(ok(&["ls", &dir], b"")).unwrap();
    assert!(!listed.lines().nth(1).unwrap().contains(" - "), "{listed}");
    let err = fails(&["verfy", &dir], b"", 2, "verify").err;
    assert!(err.find("'verify'") < err.find("'repair'").or(Some(usize::MAX)), "{err}");
    fs::write(place.path("c.toml"), "dir = 5\n").unwrap();
    let config = logctl(&["config", "show"]).env("LOGCTL_CONFIG", place.path("c.toml")).output().unwrap();
    assert_eq!(config.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&config.stderr).contains("`dir` is a string"));
    // Both count the files that others know.
    let count = |text: &str| {
        text.split(", ")
            .find_map(|part| part.split_once(" file").map(|(n, _)| n.rsplit(' ').next().unwrap().to_owned()))
    };
    let copied = String::from_utf8(ok(&["copy", &dir, &place.path("c-0")], b"")).unwrap();
    let same = String::from_utf8(ok(&["diff", &dir, &place.path("c-0"), "--by", "bytes"], b"")).unwrap();
    assert_eq!(
        count(copied.rsplit(": ").next().unwrap()),
        count(same.rsplit(": ").next().unwrap()),
        "{copied}{same}"
    );
}
