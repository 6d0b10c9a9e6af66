use std::{
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
    thread,
};

use crate::run::{Place, logctl, ok, run, signal};

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
