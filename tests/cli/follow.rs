use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::run::{Place, logctl, ok, run, signal};

struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(args: &[&str]) -> Self {
        let mut child = logctl(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// Ends it; what it said on standard error.
    fn end(self) -> String {
        signal(&self.child, "TERM");
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(143));
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn nothing_is_missed_or_twice_over_rolls_kills_and_restarts() {
    let place = Place::new();
    let dir = place.log("t-0", b"", &[]);
    let mut follower = Follower::start(&["tail", &dir, "-n", "all", "-f", "--format", "%o %v\\n"]);
    let mut next = 0_u64;
    for round in 0..4 {
        let mut writer = logctl(&["append", &dir, "--segment-bytes", "32k", "--batch-size", "2k", "-q"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = writer.stdin.take().unwrap();
        // The writer takes its numbers from where the log ends: what a kill loses is written again.
        let end: u64 = String::from_utf8(ok(&["cat", &dir], b"")).unwrap().lines().count() as u64;
        let feeder = std::thread::spawn(move || {
            for n in end..end + 20_000 {
                if stdin.write_all(format!("{n}\n").as_bytes()).is_err() {
                    return;
                }
            }
        });
        let until = next + 5000;
        while next < until {
            assert_eq!(follower.next(), format!("{next} {next}"), "round {round}");
            next += 1;
        }
        if round < 3 {
            writer.kill().unwrap();
            writer.wait().unwrap();
            feeder.join().unwrap();
            // Opening and closing settles where the log ends.
            let ran = run(&["append", &dir, "-q"], b"");
            assert_eq!(ran.code, Some(0), "{}", ran.err);
        } else {
            feeder.join().unwrap();
            assert!(writer.wait().unwrap().success());
        }
    }
    let total = String::from_utf8(ok(&["cat", &dir], b"")).unwrap().lines().count() as u64;
    while next < total {
        assert_eq!(follower.next(), format!("{next} {next}"));
        next += 1;
    }
    assert_eq!(follower.end(), "");
}

#[test]
fn it_begins_with_the_last_records_and_waits_for_a_log_that_is_missing() {
    let place = Place::new();
    let dir = place.path("t-0");
    let mut follower = Follower::start(&["tail", &dir, "-F", "-n", "2"]);
    // It may see the log as soon as it has its first record, so it is told to start at the front by that alone.
    ok(&["append", &dir, "--create"], b"a\n");
    assert_eq!(follower.next(), "a");
    ok(&["append", &dir], b"b\nc\nd\n");
    assert_eq!([follower.next(), follower.next(), follower.next()], ["b", "c", "d"]);
    follower.end();
    let mut follower = Follower::start(&["tail", &dir, "-f", "-n", "2"]);
    assert_eq!([follower.next(), follower.next()], ["c", "d"]);
    ok(&["append", &dir], b"e\n");
    assert_eq!(follower.next(), "e");
    assert_eq!(follower.end(), "");
}

#[test]
fn a_directory_that_is_removed_ends_it_or_is_waited_for() {
    let place = Place::new();
    let dir = place.log("t-0", b"a\n", &[]);
    let mut by_name = Follower::start(&["tail", &dir, "-F"]);
    let mut plain = Follower::start(&["tail", &dir, "-f"]);
    assert_eq!([by_name.next(), plain.next()], ["a", "a"]);
    std::fs::remove_dir_all(&dir).unwrap();
    let output = plain.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    ok(&["append", &dir, "--create"], b"b\n");
    assert_eq!(by_name.next(), "b");
    assert!(by_name.end().contains("was removed while it was followed"));
}

#[test]
fn deleted_records_are_counted_on_standard_error() {
    let place = Place::new();
    let input: Vec<u8> = (0..2000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    let dir = place.log("t-0", &input, &["--segment-bytes", "4k", "--batch-size", "1k"]);
    // A follower that is stopped while its records are deleted.
    let mut follower = Follower::start(&["tail", &dir, "-f", "-n", "2000", "--format", "%o\\n"]);
    for n in 0..2000 {
        assert_eq!(follower.next(), n.to_string());
    }
    signal(&follower.child, "STOP");
    let more: Vec<u8> = (2000..6000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    ok(&["append", &dir, "--segment-bytes", "4k", "--batch-size", "1k", "--retention-bytes", "4k"], &more);
    ok(&["append", &dir, "--segment-bytes", "4k", "--retention-bytes", "4k", "--rate", "2"], b"x\ny\nz\n");
    let start: u64 = {
        let first = ok(&["cat", &dir, "-c", "1", "--format", "%o"], b"");
        String::from_utf8(first).unwrap().parse().unwrap()
    };
    signal(&follower.child, "CONT");
    let resumed: u64 = follower.next().parse().unwrap();
    let err = follower.end();
    assert!(start > 2000, "nothing was deleted");
    assert_eq!(resumed, start);
    assert!(err.contains(&format!("offsets 2000 to {} were deleted", start - 1)), "{err}");
}

#[test]
fn a_shell_pipeline_ends_when_its_reader_does() {
    let place = Place::new();
    let dir = place.log("t-0", b"1\n2\n3\n", &[]);
    let script = format!("{} tail {dir} -f | head -n 2", env!("CARGO_BIN_EXE_logctl"));
    let mut shell = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    // The follower learns that its reader is gone by the next record.
    let mut reader = BufReader::new(shell.stdout.take().unwrap());
    let mut lines = String::new();
    for _ in 0..2 {
        reader.read_line(&mut lines).unwrap();
    }
    assert_eq!(lines, "1\n2\n");
    ok(&["append", &dir], b"4\n");
    ok(&["append", &dir], b"5\n");
    assert!(shell.wait().unwrap().success());
}
