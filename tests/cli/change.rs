//! `truncate`, `trim`, `roll`, `retain`: the plan first, `--yes`, what is kept, exit codes.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};

use serde_json::Value;

use crate::run::{Place, copy_dir, fails, logctl, numbers, ok, run, snapshot};

const SMALL: [&str; 4] = ["--batch-size", "100", "--segment-bytes", "1k"];

fn json(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// A record each second from 1970 on, each its own batch, in several segments.
fn seconds(place: &Place, name: &str, count: u32) -> String {
    let line = |n| format!("{{\"value\":\"{n}\",\"timestamp\":{}}}\n", n * 1000).into_bytes();
    let lines: Vec<u8> = (0..count).flat_map(line).collect();
    place.log(name, &lines, &["--format", "jsonl", "--batch-size", "1", "--segment-bytes", "1k"])
}

fn range(dir: &str) -> (i64, i64) {
    let info: Value = serde_json::from_slice(&ok(&["info", dir, "-J"], b"")).unwrap();
    (info["start"].as_i64().unwrap(), info["end"].as_i64().unwrap())
}

/// Without `--yes` nothing happens, and the exit code says so; with `--dry-run` it is 0.
#[test]
fn nothing_is_destroyed_without_a_yes() {
    let place = Place::new();
    let dir = seconds(&place, "t-0", 60);
    let before = snapshot(&dir);
    for verb in [
        &["truncate", "--to", "20"][..],
        &["trim", "--before", "20"],
        &["retain", "--bytes", "1k"],
        &["retain", "--age", "1h"],
    ] {
        let args = [verb, &[&dir]].concat();
        let ran = fails(&args, b"", 1, "nothing was changed");
        assert!(!ran.out.is_empty(), "{verb:?} prints no plan");
        let dry = ok(&[&args[..], &["--dry-run"]].concat(), b"");
        // An age is counted from now, which goes on.
        let timeless =
            |plan: &[u8]| String::from_utf8_lossy(plan).split("; the time is").next().unwrap().to_owned();
        assert_eq!(timeless(&dry), timeless(&ran.out), "{verb:?}");
        fails(&[&args[..], &["--dry-run", "--yes"]].concat(), b"", 2, "cannot be used with");
        assert!(snapshot(&dir) == before, "{verb:?} changed a file");
    }
    ok(&["roll", &dir, "--dry-run"], b"");
    assert!(snapshot(&dir) == before, "roll changed a file");
}

#[test]
fn what_is_truncated_is_kept() {
    let place = Place::new();
    let dir = seconds(&place, "t-0", 60);
    let lines = json(&ok(&["truncate", &dir, "--to", "25", "--yes", "-J"], b""));
    assert_eq!((&lines[0]["type"], &lines[0]["end"]), (&"plan".into(), &60.into()));
    let done = &lines[1];
    assert_eq!((&done["end"], &done["leader_epoch"]), (&25.into(), &1.into()));
    assert_eq!(lines[0]["bytes"], done["bytes"]);
    assert_eq!(range(&dir), (0, 25));
    ok(&["verify", &dir], b"");
    assert_eq!(
        ok(&["cat", &dir], b""),
        (0..25).flat_map(|n| format!("{n}\n").into_bytes()).collect::<Vec<_>>()
    );
    // The whole segments among what is kept can be read as they are.
    let kept = done["kept_in"].as_array().unwrap();
    let whole = kept.iter().map(|file| file.as_str().unwrap()).find(|file| file.ends_with("-log")).unwrap();
    let copy = place.path("kept.log");
    fs::copy(whole, &copy).unwrap();
    let read = String::from_utf8(ok(&["cat", &copy], b"")).unwrap();
    assert!(read.lines().all(|line| line.parse::<i64>().unwrap() > 25), "{read}");
    // The next record is another one, in the new epoch.
    ok(&["append", &dir], b"next\n");
    let last: Value = serde_json::from_slice(&ok(&["tail", &dir, "-n", "1", "-J"], b"")).unwrap();
    assert_eq!((&last["offset"], &last["leader_epoch"]), (&25.into(), &1.into()));
}

#[test]
fn truncate_moves_or_discards_what_it_cuts() {
    let place = Place::new();
    let (dir, backup) = (seconds(&place, "t-0", 60), place.path("backup/of/t"));
    ok(&["truncate", &dir, "--to", "40", "--yes", "--backup", &backup], b"");
    let is_kept = |dir: &str| {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("stratalog-cut")).count()
    };
    assert!(is_kept(&backup) > 0 && is_kept(&dir) == 0);
    ok(&["truncate", &dir, "--to", "30", "--yes", "--discard"], b"");
    assert_eq!(is_kept(&dir), 0);
    assert_eq!(range(&dir), (0, 30));
    // By time: the first record of that time or later goes.
    ok(&["truncate", &dir, "--to", "@1970-01-01T00:00:12Z", "--yes"], b"");
    assert_eq!(range(&dir), (0, 12));
    ok(&["truncate", &dir, "--to", "end", "--yes"], b"");
    ok(&["truncate", &dir, "--to", "start", "--yes"], b"");
    assert_eq!(range(&dir), (0, 0));
}

#[test]
fn truncate_says_what_cannot_be() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(500), &SMALL);
    let before = snapshot(&dir);
    fails(&["truncate", &dir, "--to", "1", "--yes"], b"", 1, "lies inside the batch of offsets 0 to");
    fails(&["truncate", &dir, "--to", "501", "--yes"], b"", 3, "out of range");
    fails(&["truncate", &dir, "--to", "soon"], b"", 2, "no place in a log");
    fails(&["truncate", &dir], b"", 2, "--to");
    fails(&["truncate", &place.path("absent"), "--to", "0"], b"", 3, "no such file");
    let file = Path::new(&dir).join("00000000000000000000.log");
    fails(&["truncate", file.to_str().unwrap(), "--to", "0"], b"", 2, "a file");
    assert!(snapshot(&dir) == before, "a file changed");
}

#[test]
fn trim_drops_the_oldest() {
    let place = Place::new();
    let dir = seconds(&place, "t-0", 60);
    let lines = json(&ok(&["trim", &dir, "--before", "25", "--yes", "-J"], b""));
    assert_eq!((&lines[0]["verb"], &lines[1]["start"]), (&"trim".into(), &25.into()));
    assert_eq!(lines[0]["segments"], lines[1]["segments"]);
    assert_eq!(lines[0]["bytes"], lines[1]["bytes"]);
    assert!(lines[1]["segments"].as_u64().unwrap() > 0);
    assert_eq!(range(&dir), (25, 60));
    assert!(!Path::new(&dir).join("00000000000000000000.log").exists());
    let said = String::from_utf8(ok(&["trim", &dir, "--before", "3", "--yes"], b"")).unwrap();
    assert!(said.contains("nothing to drop"), "{said}");
    ok(&["trim", &dir, "--before", "1970-01-01T00:00:40Z", "--yes"], b"");
    assert_eq!(range(&dir), (40, 60));
    ok(&["delete-records", &dir, "--before", "end", "--yes"], b"");
    assert_eq!(range(&dir), (60, 60));
    ok(&["append", &dir], b"next\n");
    assert_eq!(ok(&["cat", &dir], b""), b"next\n");
    fails(&["trim", &dir, "--before", "62"], b"", 3, "out of range");
    fails(&["trim", &dir], b"", 2, "--before");
    ok(&["verify", &dir], b"");
}

#[test]
fn roll_begins_a_segment_once() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(5), &[]);
    let said = String::from_utf8(ok(&["roll", &dir], b"")).unwrap();
    assert!(said.contains("begins at offset 5"), "{said}");
    assert!(Path::new(&dir).join("00000000000000000005.log").exists());
    let said = json(&ok(&["roll", &dir, "-J"], b""));
    assert_eq!(said[0]["rolled"], false);
    ok(&["append", &dir], b"6\n");
    assert_eq!(ok(&["cat", &dir], b""), numbers(6));
    ok(&["verify", &dir], b"");
    fails(&["roll", &place.path("absent")], b"", 3, "no such file");
}

#[test]
fn retain_drops_what_its_plan_says() {
    let place = Place::new();
    let whole = seconds(&place, "t-0", 60);
    for (nth, limits) in
        [&["--bytes", "2k"][..], &["--age", "1h"], &["--bytes", "1g"], &["--bytes", "3k", "--age", "100000d"]]
            .iter()
            .enumerate()
    {
        let dir = place.path(&format!("u-{nth}"));
        copy_dir(&whole, &dir);
        let lines = json(&ok(&[&["retain", &dir, "--yes", "-J"][..], limits].concat(), b""));
        let going = lines[0]["segments"].as_u64().unwrap();
        assert_eq!(going == 0, *limits == ["--bytes", "1g"], "{lines:?}");
        if going > 0 {
            assert_eq!(
                (&lines[1]["segments"], &lines[1]["bytes"]),
                (&lines[0]["segments"], &lines[0]["bytes"])
            );
            assert_eq!(range(&dir).0, lines[1]["start"].as_i64().unwrap());
        }
        assert_eq!(range(&dir).1, 60);
        ok(&["verify", &dir], b"");
    }
    fails(&["retain", &whole], b"", 2, "required");
}

/// While a writer holds the log: exit code 5, and nothing is changed.
#[test]
fn a_log_in_use_is_refused() {
    let place = Place::new();
    let dir = seconds(&place, "t-0", 60);
    let mut writer = logctl(&["append", &dir, "--report", "%o\n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"held\n").unwrap();
    let mut told = String::new();
    BufReader::new(writer.stdout.take().unwrap()).read_line(&mut told).unwrap();
    for verb in [
        &["truncate", "--to", "20", "--yes"][..],
        &["trim", "--before", "20", "--yes"],
        &["retain", "--bytes", "1k", "--yes"],
        &["roll"],
        &["repair", "--yes"],
    ] {
        let args = [verb, &[&dir]].concat();
        let ran = run(&args, b"");
        if verb[0] == "repair" && ran.code == Some(0) {
            // Nothing is wrong with it, so nothing is done.
            continue;
        }
        assert_eq!(ran.code, Some(5), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("locked by another writer"), "{}", ran.err);
    }
    drop(input);
    writer.wait().unwrap();
    assert_eq!(range(&dir), (0, 61));
}

/// What `kafka-delete-records` is given, over a data directory: what is wrong with one partition hides none of the others.
#[test]
fn trim_takes_the_file_of_kafkas_tool() {
    let place = Place::new();
    fs::create_dir(place.path("data")).unwrap();
    for name in ["a-0", "a-1", "b-0"] {
        seconds(&place, &format!("data/{name}"), 60);
    }
    let (data, file) = (place.path("data"), place.path("offsets.json"));
    let write = |entries: &[(&str, i64)]| {
        let entries: Vec<Value> = entries
            .iter()
            .map(|(topic, offset)| serde_json::json!({"topic": topic, "partition": 0, "offset": offset}))
            .collect();
        fs::write(&file, serde_json::json!({"partitions": entries, "version": 1}).to_string()).unwrap();
    };
    write(&[("a", 20), ("b", -1)]);
    let run_it = |more: &[&str]| run(&[&["trim", &data, "--offset-json-file", &file], more].concat(), b"");
    let plan = run_it(&["-J", "--dry-run"]);
    assert_eq!((plan.code, json(&plan.out).len()), (Some(0), 2), "{}", plan.err);
    assert_eq!(run_it(&[]).code, Some(1));
    assert_eq!(range(&place.path("data/a-0")), (0, 60));
    assert_eq!(run_it(&["--yes"]).code, Some(0));
    assert_eq!(range(&place.path("data/a-0")), (20, 60));
    assert_eq!(range(&place.path("data/a-1")), (0, 60));
    assert_eq!(range(&place.path("data/b-0")), (60, 60));
    // One that is not there, one that has no such offset, and one that can be done.
    write(&[("none", 1), ("b", 99), ("a", 30)]);
    let ran = run_it(&["--yes"]);
    assert_eq!(ran.code, Some(8), "{}", ran.err);
    assert!(ran.err.contains("none-0") && ran.err.contains("out of range"), "{}", ran.err);
    assert_eq!(range(&place.path("data/a-0")), (30, 60));
    fs::write(&file, "{}").unwrap();
    assert_eq!(run_it(&["--yes"]).code, Some(2));
    fails(&["trim", &data, "--offset-json-file", &file, "--before", "1"], b"", 2, "cannot be used");
}

#[test]
fn trim_keeps_what_goes_in_a_backup() {
    let place = Place::new();
    let dir = seconds(&place, "t-0", 60);
    let backup = place.path("backup");
    let first = fs::read(Path::new(&dir).join("00000000000000000000.log")).unwrap();
    ok(&["trim", &dir, "--before", "40", "--yes", "--backup", &backup], b"");
    assert_eq!(range(&dir), (40, 60));
    assert_eq!(fs::read(Path::new(&backup).join("00000000000000000000.log")).unwrap(), first);
    assert!(Path::new(&backup).join("00000000000000000000.index").exists());
    // The same place again is refused, before anything goes.
    copy_dir(&backup, &dir);
    let other = seconds(&place, "u-0", 60);
    fails(&["trim", &other, "--before", "40", "--yes", "--backup", &backup], b"", 1, "nothing was changed");
    assert_eq!(range(&other), (0, 60));
}

/// The minus of `-7d` forgotten: everything is older than a time to come, and nothing may be destroyed by that.
#[test]
fn a_time_to_come_destroys_nothing() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(200), &SMALL);
    let before = snapshot(&dir);
    for verb in [["trim", "--before"], ["truncate", "--to"]] {
        for (time, tip) in [
            ("7d", "did you mean -7d?"),
            ("@7d", "did you mean -7d?"),
            ("@+1h", "did you mean -1h?"),
            ("2999-01-01", "`end` stands for the end"),
        ] {
            fails(&[verb[0], &dir, verb[1], time, "--yes"], b"", 2, tip);
        }
        // Not to come, and yet newer than every record.
        fails(&[verb[0], &dir, verb[1], "now", "--yes"], b"", 2, "every record is older");
    }
    assert!(snapshot(&dir) == before);
    let plan = String::from_utf8(ok(&["trim", &dir, "--before", "end", "--dry-run"], b"")).unwrap();
    assert!(plan.contains("newest that goes: 20"), "{plan}");

    let old = seconds(&place, "s-0", 60);
    let plan = String::from_utf8(ok(&["trim", &old, "--before", "@1970-01-01T00:00:20Z", "--dry-run"], b""))
        .unwrap();
    assert!(
        plan.contains("the time is 1970-01-01T00:00:20.000Z; newest that goes: 1970-01-01T00:00:19.000Z"),
        "{plan}"
    );
    let plan = &json(&ok(&["truncate", &old, "--to", "@000000020000", "--dry-run", "-J"], b""))[0];
    assert_eq!((&plan["time"], &plan["newest_timestamp"]), (&20_000.into(), &59_000.into()));
    // Reading, a span without a sign lies back.
    assert_eq!(ok(&["tail", &dir, "--since", "1h"], b""), ok(&["tail", &dir, "--since", "-1h"], b""));
    assert!(!ok(&["tail", &dir, "--since", "@7d"], b"").is_empty());
    assert!(ok(&["tail", &dir, "--until", "1h"], b"").is_empty());
}

/// Verbs that only look tell who holds the lock, believe no note without a lock, and stand in nobody's way.
#[test]
fn a_lock_is_shown() {
    let place = Place::new();
    let dir = place.log("data/t-0", &numbers(200), &SMALL);
    let info = |(): ()| -> Value { serde_json::from_slice(&ok(&["info", &dir, "-J"], b"")).unwrap() };
    let text = |args: &[&str]| String::from_utf8(ok(args, b"")).unwrap();
    // The note of the writer that has ended is there.
    assert_eq!((&info(())["locked"], &info(())["lock"]), (&false.into(), &"free".into()));
    assert!(!text(&["trim", &dir, "--before", "50", "--dry-run"]).contains("locked"));
    let lock = Path::new(&dir).join(".lock");
    let lock = lock.to_str().unwrap();
    let note = &json(&ok(&["dump", lock, "-J"], b""))[1];
    assert_eq!((&note["type"], &note["held"]), (&"lock".into(), &false.into()));
    assert!(note["pid"].as_u64().unwrap() > 0 && note["since"].as_str().unwrap().ends_with('Z'));

    let mut child = logctl(&["append", &dir, "--report", "%o\n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"one\n").unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let held = format!("held by pid {} since 20", child.id());
    assert_eq!(info(())["locked"], true);
    assert!(info(())["lock"].as_str().unwrap().starts_with(&held), "{}", info(()));
    let shown = text(&["info", &dir]);
    assert!(shown.contains(&held) && shown.contains("in use"), "{shown}");
    assert!(text(&["ls", &place.path("data"), "-l"]).contains(&held));
    assert!(json(&ok(&["ls", &place.path("data"), "-J"], b""))[0]["locked"] == true);
    assert_eq!(json(&ok(&["dump", lock, "-J"], b""))[1]["held"], true);
    // Something to do, and nothing: exit code 0 both, and the lock is told.
    for args in [
        &["trim", &dir, "--before", "50", "--dry-run"][..],
        &["trim", &dir, "--before", "start", "--yes"],
        &["truncate", &dir, "--to", "end", "--yes"],
        &["truncate", &dir, "--to", "start", "--dry-run"],
        &["retain", &dir, "--bytes", "1", "--dry-run"],
        &["retain", &dir, "--bytes", "1GiB", "--yes"],
        &["roll", &dir, "--dry-run"],
        &["repair", &dir, "--rebuild-index", "--dry-run"],
    ] {
        let plan = text(args);
        assert!(plan.contains("locked now, held by pid"), "{args:?}: {plan}");
    }
    fails(&["trim", &dir, "--before", "50", "--yes"], b"", 5, "pid");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success(), "asking harmed the writer");
    assert_eq!(info(())["lock"], "free");
    assert!(text(&["info", &dir]).contains("closed cleanly"));
}
