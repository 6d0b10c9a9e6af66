//! `copy` and `snapshot`: proved by `diff`, beside a writer, interrupted, over every directory that a broker wrote.

use std::{
    fs,
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::run::{Place, copy_dir, fails, logctl, numbers, ok, run, signal, snapshot};

const SMALL: [&str; 4] = ["--batch-size", "100", "--segment-bytes", "2k"];

fn names(dir: &str) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn is_log(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|suffix| suffix == "log")
}

fn summary(out: &[u8]) -> Value {
    let last = out.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap();
    serde_json::from_slice(last).unwrap()
}

#[test]
fn a_closed_log_is_copied_byte_for_byte() {
    let place = Place::new();
    let (dir, copy) = (place.log("t-0", &numbers(2000), &SMALL), place.path("deep/er/u-0"));
    let before = snapshot(&dir);
    let planned = summary(&ok(&["copy", &dir, &copy, "--dry-run", "-J"], b""));
    assert!(!Path::new(&copy).exists());
    let done = summary(&ok(&["copy", &dir, &copy, "--parents", "-J"], b""));
    assert!(snapshot(&dir) == before, "the source changed");
    assert_eq!((&done["files"], &done["bytes"]), (&planned["files"], &planned["bytes"]));
    assert_eq!((&done["start"], &done["end"], &done["linked"]), (&0.into(), &2000.into(), &0.into()));
    for by in ["bytes", "batches", "records"] {
        ok(&["diff", &dir, &copy, "--by", by], b"");
    }
    ok(&["verify", &copy, "--deep"], b"");
    // Nothing tells it from a log that was closed: opening it scans nothing and leaves nothing behind.
    let info: Value = serde_json::from_slice(&ok(&["info", &copy, "-J"], b"")).unwrap();
    assert_eq!(info["end"], 2000);
    assert!(!names(&copy).iter().any(|name| name.contains("copy")), "{:?}", names(&copy));
    ok(&["append", &copy], b"more\n");
    assert_eq!(ok(&["cat", &copy, "-o", "2000"], b""), b"more\n");
}

#[test]
fn every_directory_that_a_broker_wrote_is_copied() {
    let place = Place::new();
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0"));
    let mut count = 0;
    for case in fs::read_dir(root).unwrap() {
        for entry in fs::read_dir(case.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            let dir = path.to_str().unwrap().to_owned();
            if !path.join("leader-epoch-checkpoint").exists() {
                continue;
            }
            let copy = place.path(&format!("{count}/{}", path.file_name().unwrap().to_str().unwrap()));
            let ran = run(&["copy", &dir, &copy, "--parents"], b"");
            if ran.code != Some(0) {
                assert!(ran.err.contains("is not supported"), "{dir}: {}", ran.err);
                continue;
            }
            ok(&["diff", &dir, &copy], b"");
            ok(&["diff", &dir, &copy, "--by", "records"], b"");
            count += 1;
        }
    }
    assert!(count >= 10, "only {count} were copied");
}

/// The start that `trim` set inside a segment is the copy's too.
#[test]
fn the_start_goes_with_the_copy() {
    let place = Place::new();
    let lines: Vec<u8> = numbers(40);
    let dir = place.log("t-0", &lines, &["--batch-size", "1"]);
    ok(&["trim", &dir, "--before", "17", "--yes"], b"");
    let copy = place.path("u-0");
    let done = summary(&ok(&["copy", &dir, &copy, "-J"], b""));
    assert_eq!(done["start"], 17);
    ok(&["diff", &dir, &copy], b"");
    assert_eq!(ok(&["cat", &copy, "-c", "1"], b""), b"18\n");
}

#[test]
fn a_log_that_is_being_written_is_copied_up_to_a_moment() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(100), &SMALL);
    let mut writer =
        logctl(&["append", &dir, "--batch-size", "100", "--segment-bytes", "2k", "--sync", "never"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    let mut input = writer.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || {
        for n in 101..20_000_u32 {
            if writeln!(input, "{n}").is_err() {
                break;
            }
        }
    });
    let mut ends = Vec::new();
    for nth in 0..5 {
        let copy = place.path(&format!("copy-{nth}"));
        let verb = if nth % 2 == 0 { "copy" } else { "snapshot" };
        let link: &[&str] = if verb == "snapshot" { &["--hardlink"] } else { &[] };
        let done = summary(&ok(&[&[verb, &dir, &copy, "-J"], link].concat(), b""));
        ok(&["verify", &copy], b"");
        let end = done["end"].as_u64().unwrap();
        assert_eq!(ok(&["cat", &copy], b""), numbers(u32::try_from(end).unwrap()), "copy {nth}");
        let info: Value = serde_json::from_slice(&ok(&["info", &copy, "-J"], b"")).unwrap();
        assert_eq!(info["end"].as_u64(), Some(end));
        ends.push(end);
    }
    assert!(ends.is_sorted() && ends[0] >= 100, "{ends:?}");
    feeding.join().unwrap();
    writer.wait().unwrap();
}

#[test]
fn an_interrupted_copy_is_gone_on_with() {
    let place = Place::new();
    let (dir, copy) = (place.log("t-0", &numbers(4000), &SMALL), place.path("u-0"));
    // What a copy that was killed leaves: the mark, some files, one that is not whole.
    ok(&["copy", &dir, &copy], b"");
    let whole = names(&copy);
    let source = fs::canonicalize(&dir).unwrap();
    fs::write(Path::new(&copy).join(".stratalog-copy-of"), source.to_str().unwrap()).unwrap();
    fs::write(Path::new(&copy).join(".stratalog-copy.new"), b"half").unwrap();
    for gone in whole.iter().filter(|name| is_log(name)).skip(2) {
        fs::remove_file(Path::new(&copy).join(gone)).unwrap();
    }
    fails(&["copy", &dir, &copy], b"", 1, "unfinished copy of this log");
    let other = place.log("other-0", b"x\n", &[]);
    fails(&["copy", &other, &copy, "--resume"], b"", 1, "unfinished copy of");
    // The log goes on meanwhile.
    ok(&[&["append", &dir], &SMALL[..]].concat(), &numbers(100));
    let done = summary(&ok(&["copy", &dir, &copy, "--resume", "-J"], b""));
    assert!(done["kept"].as_u64().unwrap() > 2, "{done:?}");
    ok(&["diff", &dir, &copy, "--by", "bytes"], b"");
    assert!(!names(&copy).iter().any(|name| name.contains("copy")), "{:?}", names(&copy));
    fails(&["copy", &dir, &copy], b"", 1, "is not empty");
}

/// Files that were copied before the log was cut are not believed.
#[test]
fn a_copy_that_was_interrupted_by_a_cut_begins_anew() {
    let place = Place::new();
    let line = |n| format!("{{\"value\":\"{n:05}\",\"timestamp\":0}}\n").into_bytes();
    let lines = |from: u32, to| (from..to).flat_map(line).collect::<Vec<u8>>();
    let options = ["--format", "jsonl", "--batch-size", "1", "--segment-bytes", "2k"];
    let (dir, copy) = (place.log("t-0", &lines(0, 100), &options), place.path("u-0"));
    ok(&["copy", &dir, &copy], b"");
    let source = fs::canonicalize(&dir).unwrap();
    fs::write(Path::new(&copy).join(".stratalog-copy-of"), source.to_str().unwrap()).unwrap();
    ok(&["truncate", &dir, "--to", "10", "--yes"], b"");
    // Others of the same lengths in their places.
    ok(&[&["append", &dir], &options[..]].concat(), &lines(1000, 1090));
    let done = summary(&ok(&["copy", &dir, &copy, "--resume", "-J"], b""));
    assert_eq!(done["kept"], 0, "{done:?}");
    ok(&["diff", &dir, &copy, "--by", "bytes"], b"");
}

#[test]
fn a_snapshot_links_what_cannot_change() {
    let place = Place::new();
    let (dir, copy) = (place.log("t-0", &numbers(2000), &SMALL), place.path("u-0"));
    let done = summary(&ok(&["snapshot", &dir, &copy, "--hardlink", "-J"], b""));
    assert!(done["linked"].as_u64().unwrap() > 2 && done["copied"].as_u64().unwrap() > 0, "{done:?}");
    let inode = |dir: &str, name: &str| fs::metadata(Path::new(dir).join(name)).unwrap().ino();
    let logs: Vec<_> = names(&dir).into_iter().filter(|name| is_log(name)).collect();
    assert_eq!(inode(&dir, &logs[0]), inode(&copy, &logs[0]));
    let last = logs.last().unwrap();
    assert_ne!(inode(&dir, last), inode(&copy, last), "the last segment goes on being written");
    ok(&["diff", &dir, &copy, "--by", "bytes"], b"");
    // Whatever the log does, the snapshot stays.
    ok(&["truncate", &dir, "--to", "start", "--yes", "--discard"], b"").len();
    ok(&["append", &dir], b"another\n");
    assert_eq!(ok(&["cat", &copy], b""), numbers(2000));
    ok(&["verify", &copy], b"");
}

#[test]
fn a_copy_says_what_cannot_be() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(10), &[]);
    fails(&["copy", &dir, &dir], b"", 2, "the source itself");
    fails(&["copy", &place.path("absent"), &place.path("u-0")], b"", 3, "no such file");
    let full = place.log("full-0", b"x\n", &[]);
    let before = snapshot(&full);
    fails(&["copy", &dir, &full], b"", 1, "is not empty");
    assert!(snapshot(&full) == before, "a log that was there was changed");
    fails(&["copy", &dir], b"", 2, "required");
    // A copy at work keeps others out.
    let busy = place.path("busy-0");
    copy_dir(&dir, &busy);
    let lock = fs::File::options().write(true).open(Path::new(&busy).join(".lock")).unwrap();
    lock.lock().unwrap();
    fails(&["copy", &dir, &busy], b"", 5, "is locked");
}

/// A full disk, or Ctrl-C: the exit code, and the word on how to go on.
#[test]
fn an_interrupt_leaves_an_unfinished_copy() {
    let place = Place::new();
    let (dir, copy) = (place.log("t-0", &numbers(200), &SMALL), place.path("u-0"));
    let ran = run(&["copy", &dir, &copy, "--timeout", "0s"], b"");
    if ran.code == Some(2) {
        // No such limit; a signal in its place is tested with the others.
        return;
    }
    assert_eq!(ran.code, Some(124), "{}", ran.err);
    assert!(ran.err.contains("--resume"), "{}", ran.err);
    let began = Instant::now();
    ok(&["copy", &dir, &copy, "--resume"], b"");
    assert!(began.elapsed() < Duration::from_secs(600));
    ok(&["diff", &dir, &copy], b"");
}

/// Rolling, and retention deleting what was listed: each copy is a log by itself, and has everything up to its moment.
#[test]
fn a_log_that_rolls_and_loses_its_oldest_segments_is_copied() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(3000), &SMALL);
    let keep = ["--retention-bytes", "20k", "--sync", "never"];
    let mut writer = logctl(&[&["append", &dir], &SMALL[..], &keep].concat())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || {
        for n in 3001..120_000_u32 {
            if writeln!(input, "{n}").is_err() {
                break;
            }
        }
    });
    for nth in 0..6 {
        let copy = place.path(&format!("copy-{nth}"));
        let verb = if nth % 2 == 0 { ["copy", "--check"] } else { ["snapshot", "--hardlink"] };
        let done = summary(&ok(&[verb[0], &dir, &copy, "-J", verb[1]], b""));
        ok(&["verify", &copy], b"");
        let end = u32::try_from(done["end"].as_u64().unwrap()).unwrap();
        let found = String::from_utf8(ok(&["cat", &copy], b"")).unwrap();
        let found: Vec<u32> = found.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(found.last(), Some(&end), "copy {nth}");
        assert!(found.windows(2).all(|pair| pair[1] == pair[0] + 1), "copy {nth} has a hole");
    }
    feeding.join().unwrap();
    writer.wait().unwrap();
}

#[test]
fn ctrl_c_leaves_a_copy_to_go_on_with() {
    let place = Place::new();
    let value = vec![b'x'; 512 << 10];
    let lines: Vec<u8> = (0..8).flat_map(|_| [&value[..], b"\n"].concat()).collect();
    let dir = place.log("t-0", &lines, &["--segment-bytes", "1MiB", "--batch-size", "600KiB"]);
    let copy = place.path("u-0");
    // Half a minute of copying.
    let mut child = logctl(&["copy", &dir, &copy, "--rate", "128KiB"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !Path::new(&copy).join(".stratalog-copy-of").exists() {
        assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("--resume goes on"), "{said}");
    fails(&["copy", &dir, &copy], b"", 1, "unfinished copy of this log");
    ok(&["copy", &dir, &copy, "--resume", "--check"], b"");
    ok(&["diff", &dir, &copy, "--bytes"], b"");
}

#[test]
fn what_is_read_back_is_compared() {
    let place = Place::new();
    let (dir, copy) = (place.log("t-0", &numbers(500), &SMALL), place.path("u-0"));
    let done = summary(&ok(&["copy", &dir, &copy, "--check", "-J"], b""));
    // leader-epoch-checkpoint is written from memory, not copied.
    assert_eq!(done["checked"].as_u64().unwrap() + 1, done["files"].as_u64().unwrap());
    // A file of an unfinished copy that is not what it was copied from.
    let source = fs::canonicalize(&dir).unwrap();
    fs::write(Path::new(&copy).join(".stratalog-copy-of"), source.to_str().unwrap()).unwrap();
    let log = Path::new(&copy).join("00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[777] ^= 4;
    fs::write(&log, bytes).unwrap();
    let ran = fails(&["copy", &dir, &copy, "--resume", "--check"], b"", 4, "differ from byte 777 on");
    assert!(ran.err.contains("00000000000000000000.log"), "{}", ran.err);
    assert!(Path::new(&copy).join(".stratalog-copy-of").exists(), "it must not pass for whole");
    fs::remove_file(&log).unwrap();
    ok(&["copy", &dir, &copy, "--resume", "--check"], b"");
    ok(&["diff", &dir, &copy, "--bytes"], b"");
}

/// Who moves a log moves its consumers' places.
#[test]
fn cursors_come_along() {
    let place = Place::new();
    let (dir, copy) = (place.log("t-0", &numbers(10), &[]), place.path("u-0"));
    assert_eq!(ok(&["tail", &dir, "--cursor", "mine", "-n", "3"], b"").len(), numbers(3).len() + 1);
    ok(&["copy", &dir, &copy], b"");
    ok(&["append", &copy], b"new\n");
    assert_eq!(ok(&["tail", &copy, "--cursor", "mine"], b""), b"new\n");
}

#[test]
fn a_topic_names_the_source_and_no_hardlink_wins() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(2000), &SMALL);
    let (data, copy) = (place.path(""), place.path("other/u-0"));
    ok(&["copy", "-d", &data, "-t", "t", &copy, "--parents"], b"");
    ok(&["diff", &dir, &copy, "--bytes"], b"");
    fails(&["copy", "-d", &data, "-t", "t", "-p", "7", &place.path("other/v-0")], b"", 3, "no partition 7");
    let linked = |more: &[&str]| {
        let to = place.path(&format!("other/{}-0", more.len()));
        summary(&ok(&[&["snapshot", &dir, &to, "-J"], more].concat(), b""))["linked"].clone()
    };
    assert_eq!(linked(&[]), 0);
    assert_ne!(linked(&["--hardlink"]), 0);
    assert_eq!(linked(&["--hardlink", "--no-hardlink"]), 0);
}

#[test]
fn an_interrupted_copy_of_a_data_directory_is_gone_on_with() {
    let place = Place::new();
    let data = place.path("data");
    for topic in ["a-0", "a-1", "b-0"] {
        place.log(&format!("data/{topic}"), &numbers(1000), &SMALL);
    }
    fs::write(Path::new(&data).join("meta.properties"), "version=1\n").unwrap();
    fs::create_dir(Path::new(&data).join("notes")).unwrap();
    fails(&["copy", &data, &place.path("data/b-1")], b"", 2, "lies in the source");
    let copy = place.path("moved");
    let ran = run(&["copy", &data, &copy], b"");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("not copied, for it is no partition: notes"), "{}", ran.err);
    ok(&["diff", &data, &copy, "--bytes"], b"");
    // What a kill leaves: the mark, a partition that is whole, one that is not, one not begun. One is deleted since, and
    // one has grown.
    let source = fs::canonicalize(&data).unwrap();
    fs::write(Path::new(&copy).join(".stratalog-copy-of"), source.to_str().unwrap()).unwrap();
    fs::write(Path::new(&copy).join("a-1/.stratalog-copy-of"), source.join("a-1").to_str().unwrap()).unwrap();
    for gone in names(&format!("{copy}/a-1")).iter().filter(|name| is_log(name)).skip(3) {
        fs::remove_file(Path::new(&copy).join("a-1").join(gone)).unwrap();
    }
    fs::remove_dir_all(Path::new(&data).join("b-0")).unwrap();
    place.log("data/c-0", &numbers(10), &[]);
    ok(&[&["append", &format!("{data}/a-0")], &SMALL[..]].concat(), &numbers(200));
    fails(&["copy", &data, &copy], b"", 1, "unfinished copy");
    let done = summary(&ok(&["copy", &data, &copy, "--resume", "-J"], b""));
    assert!(done["kept"].as_u64().unwrap() > 10, "{done:?}");
    ok(&["diff", &data, &copy, "--bytes"], b"");
    assert!(!Path::new(&copy).join("b-0").exists());
}
