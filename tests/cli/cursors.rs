//! `tail` with a cursor: nothing is lost, and printed twice is at most what came since the last commit.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::FileExt,
    process::Stdio,
    thread,
    time::Duration,
};

use serde_json::Value;
use stratalog::{Cursor, LogReader, Offset, ReadOptions};

use crate::run::{Place, fails, logctl, numbers, ok, run, signal};

fn offset_of(dir: &str, name: &str) -> Option<i64> {
    let info: Value = serde_json::from_slice(&ok(&["info", dir, "-J"], b"")).unwrap();
    let cursors = info["cursors"].as_array().unwrap();
    cursors.iter().find(|cursor| cursor["name"] == name).and_then(|cursor| cursor["offset"].as_i64())
}

/// Where in the first segment the batch of this offset begins.
fn byte_of(dir: &str, offset: i64) -> u64 {
    let reader = LogReader::open(dir, ReadOptions::default()).unwrap();
    let mut batches = reader.batches(Offset::new(offset).unwrap());
    batches.next_batch().unwrap().unwrap();
    batches.position_of_last().unwrap().1
}

fn lines(args: &[&str]) -> Vec<String> {
    String::from_utf8(ok(args, b"")).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn killed_again_and_again_it_loses_nothing_and_repeats_only_what_was_not_committed() {
    let place = Place::new();
    let dir = place.log("t-0", b"", &[]);
    let mut writer =
        logctl(&["append", &dir, "--segment-bytes", "64k", "--batch-size", "1k", "--sync", "never", "-q"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    let total = 60_000_u64;
    let feeder = thread::spawn(move || {
        for n in 0..total {
            stdin.write_all(format!("{n}\n").as_bytes()).unwrap();
            if n % 500 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let mut next = 0_u64;
    let mut repeated = 0;
    for round in 0.. {
        // To a file, so that all that it wrote can be seen after it was killed.
        let path = place.path("out");
        let out = File::create(&path).unwrap();
        let mut tail =
            logctl(&["tail", &dir, "-f", "-n", "all", "--cursor", "c"]).stdout(out).spawn().unwrap();
        let wanted = if round < 12 { 40 << (round % 5) } else { total - next };
        let written = || {
            let text = fs::read_to_string(&path).unwrap();
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            text[..whole].lines().map(|line| line.parse().unwrap()).collect::<Vec<u64>>()
        };
        while written().last().is_none_or(|last| *last + 1 < (next + wanted).min(total)) {
            assert!(tail.try_wait().unwrap().is_none(), "it ended");
            thread::sleep(Duration::from_millis(1));
        }
        tail.kill().unwrap();
        tail.wait().unwrap();
        let seen = written();
        assert!(seen.windows(2).all(|pair| pair[0] + 1 == pair[1]), "round {round}: a gap or a repetition");
        assert!(seen[0] <= next, "round {round}: {next} to {} are lost", seen[0]);
        repeated += next - seen[0];
        next = seen.last().unwrap() + 1;
        let committed = u64::try_from(offset_of(&dir, "c").unwrap()).unwrap();
        assert!(committed <= next, "round {round}: {committed} is committed, {next} is written");
        if next == total {
            break;
        }
    }
    println!("{repeated} repeated");
    feeder.join().unwrap();
    assert!(writer.wait().unwrap().success());
}

#[test]
fn where_it_resumes_is_exactly_what_was_committed() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(100), &[]);
    assert_eq!(lines(&["tail", &dir, "-n", "3", "--cursor", "c"]), ["98", "99", "100"]);
    assert_eq!(offset_of(&dir, "c"), Some(100));
    // -n and --since count the first time only.
    assert!(lines(&["tail", &dir, "-n", "5", "--since", "2000-01-01", "--cursor", "c"]).is_empty());
    ok(&["append", &dir], b"a\nb\n");
    assert_eq!(lines(&["tail", &dir, "--cursor", "c"]), ["a", "b"]);
    // As a program sees it, which may also set it back.
    let mut cursor = Cursor::open(&dir, "c").unwrap();
    assert_eq!(cursor.position().unwrap().leader_epoch, Some(0));
    let position = Offset::new(99).unwrap();
    cursor.commit(position).unwrap();
    drop(cursor);
    assert_eq!(lines(&["tail", &dir, "-n", "0", "--cursor", "c"]), ["100", "a", "b"]);
    // Up to a time, in the middle of a batch.
    let dir = place.path("u-0");
    let records: Vec<u8> = (0..10)
        .flat_map(|n| format!("{{\"value\":\"{n}\",\"timestamp\":{}}}\n", n * 1000).into_bytes())
        .collect();
    ok(&["append", &dir, "--create", "--format", "jsonl"], &records);
    assert_eq!(
        lines(&["tail", &dir, "-n", "all", "--until", "1970-01-01T00:00:04Z", "--cursor", "c"]).len(),
        4
    );
    assert_eq!(offset_of(&dir, "c"), Some(4));
    assert_eq!(
        lines(&["tail", &dir, "-f", "--until", "1970-01-01T00:00:07Z", "--cursor", "c"]),
        ["4", "5", "6"]
    );
    assert_eq!(lines(&["tail", &dir, "--cursor", "c"]), ["7", "8", "9"]);
}

#[test]
fn the_first_place_is_kept_before_the_first_record() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(10), &[]);
    let mut child =
        logctl(&["tail", &dir, "-f", "-n", "0", "--cursor", "c"]).stdout(Stdio::null()).spawn().unwrap();
    while offset_of(&dir, "c").is_none() {
        thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    ok(&["append", &dir], b"x\n");
    assert_eq!(lines(&["tail", &dir, "-n", "0", "--cursor", "c"]), ["x"]);
}

#[test]
fn a_signal_and_a_time_limit_keep_the_place() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(10), &[]);
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut child = logctl(&["tail", &dir, "-f", "-n", "all", "--cursor", name])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap()).lines();
        for n in 1..=10 {
            assert_eq!(reader.next().unwrap().unwrap(), n.to_string());
        }
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(offset_of(&dir, name), Some(10));
    }
    let ran = run(&["tail", &dir, "-f", "-n", "4", "--cursor", "t", "--timeout", "100ms"], b"");
    assert_eq!(ran.code, Some(124));
    assert_eq!(offset_of(&dir, "t"), Some(10));
}

#[test]
fn never_past_what_was_written_when_the_reader_goes_away_or_the_device_is_full() {
    let place = Place::new();
    let count = 200_000_u32;
    let dir = place.log("t-0", &numbers(count), &[]);
    for follow in ["-f", "--no-progress"] {
        let name = format!("c{}", follow.len());
        let mut child = logctl(&["tail", &dir, follow, "-n", "all", "--cursor", &name])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut read = vec![0; 300_000];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut read).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(141));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let committed = offset_of(&dir, &name).unwrap();
        let bytes = numbers(u32::try_from(committed).unwrap()).len();
        // What the pipe can hold was written, though nobody read it.
        assert!(bytes <= read.len() + (64 << 10), "{bytes} bytes are committed");
        // The rest comes with the next run.
        let rest = ok(&["tail", &dir, "--cursor", &name], b"");
        assert_eq!([&numbers(u32::try_from(committed).unwrap()), &rest[..]].concat(), numbers(count));
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = logctl(&["tail", &dir, "-n", "all", "--cursor", "full"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(offset_of(&dir, "full"), Some(0));
}

#[test]
fn one_consumer_for_each_name() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(3), &[]);
    let mut child = logctl(&["tail", &dir, "-f", "--cursor", "c"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let ran = fails(&["tail", &dir, "--cursor", "c"], b"", 5, "is in use by another consumer");
    assert!(ran.err.contains(&format!("process {}", child.id())) && ran.out.is_empty(), "{}", ran.err);
    let text = String::from_utf8(ok(&["info", &dir], b"")).unwrap();
    assert!(text.lines().any(|line| line.starts_with("c ") && line.ends_with("in use")), "{text}");
    assert_eq!(lines(&["tail", &dir, "-n", "1", "--cursor", "d"]), ["3"]);
    child.kill().unwrap();
    child.wait().unwrap();
    ok(&["tail", &dir, "--cursor", "c"], b"");
}

#[test]
fn a_cursor_in_a_file_elsewhere_and_what_makes_no_sense() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(3), &[]);
    let file = place.path("mine.pos");
    let before = fs::read_dir(&dir).unwrap().count();
    assert_eq!(lines(&["tail", &dir, "-n", "2", "--cursor-file", &file]), ["2", "3"]);
    ok(&["append", &dir], b"x\n");
    assert_eq!(lines(&["tail", &dir, "--cursor-file", &file]), ["x"]);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), before, "it left something in the log's directory");
    fails(&["tail", &dir, "--cursor", "c", "--cursor-file", &file], b"", 2, "cannot be used with");
    fails(&["tail", &dir, "--cursor", "next.log"], b"", 2, "must not end in `.log`");
    fails(&["tail", &dir, "--cursor", "a/b"], b"", 2, "only letters, digits");
    fails(&["tail", &dir, "--cursor-file", &place.path("none/x")], b"", 3, "no such directory");
    let segment = format!("{dir}/00000000000000000000.log");
    fails(&["tail", &segment, "--cursor", "c"], b"", 2, "has no cursors");
    for garbage in [&b""[..], b"4\n", &[0; 8192]] {
        fs::write(&file, garbage).unwrap();
        let ran = fails(&["tail", &dir, "--cursor-file", &file], b"", 4, "remove it to begin anew");
        assert!(ran.err.contains(&file) && ran.out.is_empty(), "{}", ran.err);
        assert_eq!(fs::read(&file).unwrap(), garbage);
    }
}

#[test]
fn what_retention_took_is_told_with_its_range_or_is_a_failure() {
    let place = Place::new();
    let small = ["--segment-bytes", "4k", "--batch-size", "1k"];
    let dir = place.log("t-0", &numbers(500), &small);
    assert_eq!(lines(&["tail", &dir, "-n", "1", "--cursor", "c"]), ["500"]);
    let append = [&["append", &dir, "--retention-bytes", "4k"], &small[..]].concat();
    ok(&append, &numbers(3000));
    ok(&append, &numbers(3000));
    let start: i64 =
        String::from_utf8(ok(&["cat", &dir, "-c", "1", "--format", "%o"], b"")).unwrap().parse().unwrap();
    assert!(start > 500, "nothing was deleted");
    let info: Value = serde_json::from_slice(&ok(&["info", &dir, "-J"], b"")).unwrap();
    assert_eq!(info["cursors"][0]["lag"], 6000);
    let told =
        format!("offsets 500 to {} were deleted before they were read: {} skipped", start - 1, start - 500);
    let ran = fails(&["tail", &dir, "--cursor", "c", "--strict"], b"", 3, &told);
    assert!(ran.out.is_empty());
    assert_eq!(offset_of(&dir, "c"), Some(500), "a refused run does not move it");
    let ran = run(&["tail", &dir, "--cursor", "c", "-q"], b"");
    assert_eq!(ran.code, Some(0));
    assert!(ran.err.contains(&told), "{}", ran.err);
    assert_eq!(i64::try_from(ran.text().lines().count()).unwrap(), 6500 - start);
    assert_eq!(offset_of(&dir, "c"), Some(6500));
}

#[test]
fn a_cut_is_told_also_after_new_records_took_the_old_offsets() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(10), &["--batch-size", "1"]);
    for name in ["a", "b"] {
        ok(&["tail", &dir, "--cursor", name], b"");
    }
    // Records that were never durable, torn by a power cut.
    fs::remove_file(format!("{dir}/.stratalog-checkpoint")).unwrap();
    let log = File::options().write(true).open(format!("{dir}/00000000000000000000.log")).unwrap();
    log.write_all_at(&[0xAA; 4], byte_of(&dir, 7) + 62).unwrap();
    ok(&["append", &dir], b"new 1\nnew 2\nnew 3\nnew 4\n");
    let ran = fails(&["tail", &dir, "--cursor", "a", "--strict"], b"", 3, "the log was cut");
    assert!(ran.out.is_empty());
    let ran = run(&["tail", &dir, "--cursor", "b"], b"");
    assert_eq!((ran.code, ran.text()), (Some(0), "new 1\nnew 2\nnew 3\nnew 4\n"));
    assert!(ran.err.contains("records from offset 7 on are new ones"), "{}", ran.err);
}

#[test]
fn by_name_it_waits_for_the_log_and_begins_again_with_the_next() {
    let place = Place::new();
    let dir = place.path("t-0");
    let mut child = logctl(&["tail", &dir, "-F", "-n", "all", "--cursor", "c"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || reader.next().unwrap().unwrap();
    ok(&["append", &dir, "--create"], b"a\nb\n");
    assert_eq!([next(), next()], ["a", "b"]);
    // Renamed away with records that were not seen yet: those come first.
    signal(&child, "STOP");
    ok(&["append", &dir], b"c\n");
    let old = place.path("old-0");
    fs::rename(&dir, &old).unwrap();
    ok(&["append", &dir, "--create"], b"d\n");
    signal(&child, "CONT");
    assert_eq!([next(), next()], ["c", "d"]);
    fs::remove_dir_all(&dir).unwrap();
    ok(&["append", &dir, "--create"], b"e\nf\n");
    assert_eq!([next(), next()], ["e", "f"]);
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(err.matches("was removed while it was followed").count(), 2, "{err}");
    assert_eq!([offset_of(&old, "c"), offset_of(&dir, "c")], [Some(3), Some(2)]);
}

#[test]
fn damage_is_passed_over_when_that_is_asked_for() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(40), &["--batch-size", "1", "--segment-bytes", "1k"]);
    let segment = format!("{dir}/00000000000000000000.log");
    let info: Value = serde_json::from_slice(&ok(&["info", &dir, "-J", "--segments"], b"")).unwrap();
    let in_first = info["segment_list"][0]["next_offset"].as_u64().unwrap();
    let damaged = [5, 12].map(|offset| byte_of(&dir, offset) + 40);
    let log = File::options().write(true).open(&segment).unwrap();
    log.write_all_at(&[0xAA; 4], damaged[0]).unwrap();
    log.write_all_at(&[0xFF; 25], damaged[1]).unwrap();
    for args in [
        &["cat", &dir, "--skip-damaged"][..],
        &["cat", &segment, "--skip-damaged"],
        &["tail", &dir, "-n", "all", "--skip-damaged"],
        &["tail", &dir, "-n", "38", "--skip-damaged"],
        &["tail", &segment, "-n", "all", "--skip-damaged"],
        &["tail", &dir, "-n", "all", "--skip-damaged", "--cursor", "c"],
    ] {
        let count = if args[1] == segment { in_first } else { 40 };
        let wanted: Vec<String> =
            (1..=count).filter(|n| ![6, 13].contains(n)).map(|n| n.to_string()).collect();
        let ran = run(args, b"");
        assert_eq!(ran.text().lines().collect::<Vec<_>>(), wanted, "{args:?}");
        assert_eq!(ran.code, Some(4), "{args:?}");
        assert_eq!(ran.err.lines().count(), 2, "{args:?}: {}", ran.err);
        for offset in [5, 12] {
            let told = format!("offsets {offset} to {offset} cannot be read: 1 skipped: {segment}");
            assert!(ran.err.contains(&told), "{args:?}: {}", ran.err);
        }
    }
    assert_eq!(offset_of(&dir, "c"), Some(40));
    // Without it the place stays before the damage.
    let ran =
        fails(&["tail", &dir, "-n", "all", "--cursor", "d"], b"", 4, "--skip-damaged goes on behind it");
    assert_eq!(ran.text(), "1\n2\n3\n4\n5\n");
    assert_eq!(offset_of(&dir, "d"), Some(5));
    fails(&["cat", &dir], b"", 4, "--skip-damaged");
    // A part without damage is clean.
    let ran = run(&["cat", &dir, "-o", "6:12", "--skip-damaged"], b"");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn places_are_listed_moved_and_removed() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(100), &["--timestamp", "1700000000000"]);
    let other = place.log("t-1", &numbers(10), &[]);
    assert_eq!(lines(&["tail", &dir, "-n", "3", "--cursor", "bills"]), ["98", "99", "100"]);
    let listed = |of: &str| -> Vec<Value> {
        let out = String::from_utf8(ok(&["cursor", "ls", of, "-J"], b"")).unwrap();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let found = listed(&dir);
    assert_eq!((found.len(), &found[0]["cursor"], &found[0]["offset"]), (1, &"bills".into(), &100.into()));
    assert_eq!((&found[0]["lag"], &found[0]["in_use"]), (&0.into(), &false.into()));

    // A plan changes nothing; what was agreed to holds for the consumer.
    fails(&["cursor", "set", &dir, "bills", "--to", "40"], b"", 1, "nothing was changed");
    let plan =
        String::from_utf8(ok(&["cursor", "set", &dir, "bills", "--to", "40", "--dry-run"], b"")).unwrap();
    assert_eq!(plan, format!("{dir}: cursor bills: stands at 100, goes on at 40\n"));
    assert_eq!(listed(&dir)[0]["offset"], 100);
    ok(&["cursor", "set", &dir, "bills", "--to", "97", "--yes"], b"");
    assert_eq!((&listed(&dir)[0]["offset"], &listed(&dir)[0]["lag"]), (&97.into(), &3.into()));
    assert_eq!(lines(&["tail", &dir, "--cursor", "bills"]), ["98", "99", "100"]);
    ok(&["cursor", "set", &dir, "bills", "--to", "@1700000000000", "--yes"], b"");
    assert_eq!(listed(&dir)[0]["offset"], 0);
    ok(&["cursor", "set", &other, "new", "--to", "end", "--yes", "-q"], b"");
    assert_eq!(listed(&place.path("")).len(), 2);

    // What makes no sense, is not there, or is held.
    fails(&["cursor", "set", &dir, "bills", "--to", "101", "--yes"], b"", 3, "out of range");
    fails(&["cursor", "set", &dir, "a/b", "--to", "start", "--yes"], b"", 2, "cursor");
    fails(&["cursor", "rm", &dir, "nobody", "--yes"], b"", 3, "no cursor");
    fails(&["cursor", "rm", &format!("{dir}/00000000000000000000.log"), "bills", "--yes"], b"", 2, "");
    let mut held = logctl(&["tail", &dir, "-f", "--cursor", "bills"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(held.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(listed(&dir)[0]["in_use"], true);
    fails(&["cursor", "rm", &dir, "bills", "--yes"], b"", 5, "bills");
    fails(&["cursor", "set", &dir, "bills", "--to", "end", "--yes"], b"", 5, "bills");
    held.kill().unwrap();
    held.wait().unwrap();
    ok(&["cursor", "rm", &dir, "bills", "--yes"], b"");
    assert_eq!(listed(&dir), [] as [Value; 0]);
}
