use std::{
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
    thread,
};

use crate::run::{Place, logctl, numbers, ok, run, signal};

/// Appends without end, with a report line for each record, and ends it by a signal after `after` of them.
fn interrupted(
    place: &Place,
    name: &str,
    signal_name: &str,
    after: usize,
) -> (Option<i32>, Vec<String>, String, String) {
    let dir = place.path(name);
    let mut child = logctl(&[
        "append",
        &dir,
        "--create",
        "--report",
        "%o\\n",
        "--batch-size",
        "4k",
        "--segment-bytes",
        "64k",
    ])
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = thread::spawn(move || {
        for n in 0_u64.. {
            if stdin.write_all(format!("{n}\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut reports = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen: Vec<String> = reports.by_ref().take(after).map(Result::unwrap).collect();
    signal(&child, signal_name);
    seen.extend(reports.map(Result::unwrap));
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    let code = child.wait().unwrap().code();
    feeder.join().unwrap();
    (code, seen, err, dir)
}

#[test]
fn every_offset_that_was_printed_is_in_the_log() {
    let place = Place::new();
    for (index, (name, code, after)) in
        [("INT", 130, 1), ("TERM", 143, 1000), ("INT", 130, 20_000)].into_iter().enumerate()
    {
        let (got, seen, err, dir) = interrupted(&place, &format!("t-{index}"), name, after);
        assert_eq!(got, Some(code), "{err}");
        assert!(err.starts_with("appended ") && err.ends_with("durable\n"), "{err}");
        let values = String::from_utf8(ok(&["cat", &dir], b"")).unwrap();
        let values: Vec<&str> = values.lines().collect();
        // Everything that is in the log was reported too, since it ended in order; values and offsets run together.
        assert_eq!(values.len(), seen.len(), "{err}");
        assert!(values.iter().zip(&seen).all(|(value, offset)| value == offset));
        assert!(err.contains(&format!("appended {} records", seen.len())), "{err}");
    }
}

#[test]
fn a_killed_writer_keeps_what_it_promised() {
    let place = Place::new();
    let (code, seen, _, dir) = interrupted(&place, "t-0", "KILL", 5000);
    assert_eq!(code, None);
    let check = || {
        let values = String::from_utf8(ok(&["cat", &dir], b"")).unwrap();
        assert!(values.lines().count() >= seen.len());
        assert!(values.lines().enumerate().all(|(n, value)| value == n.to_string()));
        values.lines().count()
    };
    let before = check();
    let ran = run(&["append", &dir], b"");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(check(), before);
}

#[test]
fn reading_ends_at_a_signal_or_a_time_limit() {
    let place = Place::new();
    let dir = place.log("t-0", b"x\n", &[]);
    let ran = run(&["tail", &dir, "-f", "--timeout", "200ms"], b"");
    assert_eq!((ran.code, ran.text()), (Some(124), "x\n"));
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut child =
            logctl(&["tail", &dir, "-f"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "x\n");
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(output.stderr.is_empty());
    }
    // An append whose input never comes.
    let mut child = logctl(&["append", &dir, "--timeout", "200ms"]).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(124));
    drop(stdin);
}

/// True once it watches for signals; they would end it at once before.
fn watches(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // SIGTERM, the later of the two.
    caught & 1 << 14 != 0
}

/// Sends a signal as soon as it watches for one. `None` where it came to its end before: that is nobody's fault.
fn stopped_at_work(args: &[&str], name: &str) -> Option<(Option<i32>, String, String)> {
    let mut child = logctl(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !watches(child.id()) {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        thread::yield_now();
    }
    signal(&child, name);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code() != Some(0))
        .then(|| (output.status.code(), text(output.stdout), text(output.stderr)))
}

#[test]
fn a_check_ends_at_a_signal() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(150_000), &["--batch-size", "200", "--segment-bytes", "64k"]);
    let all = String::from_utf8(ok(&["verify", &dir, "--deep", "--parallel", "1"], b"")).unwrap();
    for (args, name, code, says) in [
        (&["verify", &dir, "--deep", "--parallel", "1"][..], "INT", 130, "stopped"),
        (&["verify", &dir, "--deep"], "TERM", 143, "stopped"),
        (&["repair", &dir, "--deep", "--yes"], "INT", 130, "stopped: nothing was changed"),
    ] {
        let (got, out, err) =
            (0..50).find_map(|_| stopped_at_work(args, name)).expect("it never was at work still");
        assert_eq!(got, Some(code), "{args:?}: {err}");
        assert!(err.contains(says), "{args:?}: {err}");
        assert!(!out.contains("no damage") && out != all, "{args:?}: {out}");
    }
    assert_eq!(String::from_utf8(ok(&["verify", &dir, "--deep"], b"")).unwrap(), all);
}

/// What it says of its work fills the pipe, so that it cannot go on before this is read: there it is told to end.
#[test]
fn a_repair_that_is_told_to_end_says_what_was_done() {
    let place = Place::new();
    let long = "a".repeat(200);
    let data = place.path(&format!("{long}/{long}/{long}"));
    std::fs::create_dir_all(&data).unwrap();
    for partition in 0..2 {
        let name = format!("{long}/{long}/{long}/t-{partition}");
        let dir = place.log(&name, &numbers(300), &["--batch-size", "1"]);
        let log = format!("{dir}/00000000000000000000.log");
        let mut bytes = std::fs::read(&log).unwrap();
        // Every other batch.
        let (mut at, mut nth) = (0, 0);
        while at < bytes.len() {
            let next = at + 12 + u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
            bytes[next - 1] ^= nth;
            (at, nth) = (next, nth ^ 1);
        }
        std::fs::write(log, bytes).unwrap();
    }
    for (until, says, left) in [
        ("drop ", "stopped: 0 of 2 partitions were done", 2),
        ("kept: ", "stopped: 1 of 2 partitions were done, and these wholly", 1),
    ] {
        let mut child = logctl(&["repair", &data, "--yes"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines =
            BufReader::with_capacity(512, child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.by_ref().any(|line| line.starts_with(until)), "{until}");
        signal(&child, "INT");
        assert!(lines.count() > 100);
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{err}");
        assert!(err.contains(says), "{err}");
        let damaged = run(&["verify", &data, "-J"], b"");
        let damaged = damaged.text().lines().filter(|line| line.contains(r#""state":"damaged""#)).count();
        assert_eq!(damaged, left, "{until}");
    }
    ok(&["repair", &data, "--yes"], b"");
    ok(&["verify", &data], b"");
}
