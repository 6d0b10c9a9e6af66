//! The exit codes, one test each: which verbs end with it, and when.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, Stdio},
};

use crate::{
    manual::verbs,
    run::{Place, Ran, copy_dir, fails, logctl, numbers, ok, run, signal},
};

/// A command line of each verb that succeeds on `DIR`, which holds a log; `NEW` does not exist yet, `FILE` is a file.
const PLAIN: &[(&str, &[&str])] = &[
    ("append", &["DIR"]),
    ("cat", &["DIR"]),
    ("tail", &["DIR"]),
    ("get", &["DIR", "3"]),
    ("info", &["DIR"]),
    ("dump", &["DIR"]),
    ("verify", &["DIR"]),
    ("diff", &["DIR", "DIR"]),
    ("truncate", &["DIR", "--to", "0", "--yes"]),
    ("trim", &["DIR", "--before", "end", "--yes"]),
    ("roll", &["DIR"]),
    ("retain", &["DIR", "--bytes", "0", "--yes"]),
    ("repair", &["DIR", "--yes"]),
    ("export", &["DIR"]),
    ("import", &["DIR", "--format", "jsonl"]),
    ("copy", &["DIR", "NEW"]),
    ("snapshot", &["DIR", "NEW"]),
    ("ls", &["DIR"]),
    ("offsets", &["DIR"]),
    ("cursor", &["ls", "DIR"]),
    ("topic", &["ls", "--dir", "DIR"]),
    // It would go on until a signal; its own tests start it: tests/wire.
    ("serve", &["DIR", "--check-config"]),
    ("config", &["show"]),
    ("completions", &["bash"]),
    ("man", &["cat"]),
    ("help", &["cat"]),
];

/// Those that change a log, and so take its lock.
const WRITERS: &[&str] = &["append", "truncate", "trim", "roll", "retain", "repair", "import"];

/// Those that work on no log that is there.
const ABOUT: &[&str] = &["topic", "serve", "config", "completions", "man", "help"];

fn arguments(verb: &str, dir: &str, new: &str) -> Vec<String> {
    let (_, rest) = PLAIN.iter().find(|(name, _)| *name == verb).unwrap();
    let place = |word: &&str| match *word {
        "DIR" => dir.to_owned(),
        "NEW" => new.to_owned(),
        word => word.to_owned(),
    };
    std::iter::once(verb.to_owned()).chain(rest.iter().map(place)).collect()
}

fn plain(verb: &str, dir: &str, new: &str) -> Ran {
    let arguments = arguments(verb, dir, new);
    run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), b"")
}

/// The verbs that there are.
fn all() -> impl Iterator<Item = &'static str> {
    let there = verbs();
    PLAIN.iter().map(|(verb, _)| *verb).filter(move |verb| there.iter().any(|name| name == verb))
}

/// The verbs that work on a log.
fn on_logs() -> impl Iterator<Item = &'static str> {
    all().filter(|verb| !ABOUT.contains(verb))
}

/// Several batches and segments.
const SMALL: &[&str] = &["--batch-size", "100", "--segment-bytes", "1k"];

fn log(place: &Place) -> String {
    place.log("t-0", &numbers(100), SMALL)
}

/// A bit of the last record flipped.
fn damaged(place: &Place) -> String {
    let dir = place.log("damaged-0", &numbers(100), &[]);
    let segment = Path::new(&dir).join("00000000000000000000.log");
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.len() - 2;
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    dir
}

/// An append that holds the lock until its input ends.
fn writer(dir: &str) -> (Child, ChildStdin) {
    let mut child = logctl(&["append", dir, "--report", "%o\\n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"x\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, stdin)
}

#[test]
fn the_table_is_complete_and_no_verb_is_missing_here() {
    let help = String::from_utf8(ok(&["help", "exit-codes"], b"")).unwrap();
    let table = help.lines().skip_while(|line| *line != "Exit codes:").skip(1);
    let codes =
        table.take_while(|line| line.starts_with("  ")).filter_map(|line| line.split_whitespace().next());
    assert_eq!(
        codes.collect::<Vec<_>>(),
        ["0", "1", "2", "3", "4", "5", "6", "7", "8", "124", "130", "141", "143"]
    );
    let long = String::from_utf8(ok(&["--help"], b"")).unwrap();
    assert!(long.contains(help.split("\n\n").find(|part| part.starts_with("Exit codes:")).unwrap()));
    let here: Vec<_> = PLAIN.iter().map(|(verb, _)| (*verb).to_owned()).collect();
    let missing: Vec<_> = verbs().into_iter().filter(|verb| !here.contains(verb)).collect();
    assert!(missing.is_empty(), "give these a line in PLAIN: {missing:?}");
}

#[test]
fn code_0_done() {
    let place = Place::new();
    for verb in all() {
        let dir = place.log(&format!("{verb}-0"), &numbers(100), SMALL);
        let ran = plain(verb, &dir, &place.path(&format!("new-{verb}-0")));
        assert_eq!(ran.code, Some(0), "{verb}: {}", ran.err);
    }
    let dir = log(&place);
    let same = place.path("copy-0");
    copy_dir(&dir, &same);
    ok(&["diff", &dir, &same], b"");
}

#[test]
fn code_1_a_plan_without_consent_and_other_failures() {
    let place = Place::new();
    let dir = log(&place);
    for args in [
        &["truncate", &dir, "--to", "0"][..],
        &["trim", &dir, "--before", "50"],
        &["retain", &dir, "--bytes", "0"],
        &["repair", &damaged(&place)],
    ] {
        let ran = run(args, b"");
        assert_eq!(ran.code, Some(1), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("nothing was changed"), "{args:?}: {}", ran.err);
        // The same plan, asked for alone.
        assert_eq!(run(&[args, &["--dry-run"]].concat(), b"").code, Some(0), "{args:?}");
    }
    // Whatever prints has failed where it cannot.
    for verb in all().filter(|verb| !WRITERS.contains(verb)) {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = logctl(&arguments(verb, &dir, &place.path(&format!("full-{verb}-0"))));
        let output = command.stdin(Stdio::null()).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // Some say all they have to say on standard error.
        let is_silent = plain(verb, &dir, &place.path(&format!("again-{verb}-0"))).out.is_empty();
        assert_eq!(output.status.code(), Some(i32::from(!is_silent)), "{verb}: {said}");
    }
    fails(&["append", &dir, "--expect", "7"], b"x\n", 1, "expected");
}

#[test]
fn code_2_the_command_line_makes_no_sense() {
    let place = Place::new();
    let dir = log(&place);
    for verb in all() {
        let mut args = arguments(verb, &dir, &place.path("new-0"));
        args.push("--no-such-flag".to_owned());
        let ran = run(&args.iter().map(String::as_str).collect::<Vec<_>>(), b"");
        assert_eq!(ran.code, Some(2), "{verb}: {}", ran.err);
        assert!(ran.err.contains("--no-such-flag") && ran.out.is_empty(), "{verb}: {}", ran.err);
    }
    // No target, neither by name nor by --dir.
    for args in
        [&["cat"][..], &["tail"], &["info"], &["verify"], &["roll"], &["offsets"], &["ls"], &["append"]]
    {
        assert_eq!(run(args, b"").code, Some(2), "{args:?}");
    }
    for args in [
        &["cat", &dir, "-o", "nonsense"][..],
        &["get", &dir, "x"],
        &["append", &dir, "-z", "rar"],
        &["trim", &dir, "--before", "1.5"],
        &["help", "nonsense"],
        &["completions", "tcsh"],
        &["nonsense"],
        &[],
    ] {
        assert_eq!(run(args, b"").code, Some(2), "{args:?}");
    }
}

#[test]
fn code_3_target_or_offset_not_found() {
    let place = Place::new();
    let missing = place.path("missing-0");
    // `dump` takes any file, and tells from its name what it is.
    let file = place.path("missing-0/00000000000000000000.log");
    fails(&["dump", &file], b"", 3, "missing-0");
    for verb in on_logs().filter(|verb| *verb != "dump") {
        let ran = plain(verb, &missing, &place.path(&format!("new-{verb}-0")));
        assert_eq!(ran.code, Some(3), "{verb}: {}", ran.err);
        assert!(ran.err.contains("missing-0"), "{verb}: {}", ran.err);
        assert!(!Path::new(&missing).exists(), "{verb} made it");
    }
    let dir = log(&place);
    for args in
        [&["cat", &dir, "-o", "101"][..], &["get", &dir, "100"], &["get", &dir, "9223372036854775807"]]
    {
        fails(args, b"", 3, "out");
    }
    // A data directory is no log, and a topic that is not there none either.
    fails(&["cat", &place.path(""), "-t", "nonsense"], b"", 3, "no topic");
    fails(&["cat", &place.path("")], b"", 3, "holds partitions");
}

#[test]
fn code_4_corruption_or_a_difference() {
    let place = Place::new();
    let (dir, bad) = (log(&place), damaged(&place));
    let segment = format!("{bad}/00000000000000000000.log");
    for args in [
        &["verify", &bad][..],
        &["verify", &segment],
        &["cat", &bad],
        &["cat", &segment],
        &["cat", &bad, "--skip-damaged"],
        &["tail", &bad],
        &["get", &bad, "99"],
        &["dump", &bad],
        &["diff", &bad, &dir],
    ] {
        assert_eq!(run(args, b"").code, Some(4), "{args:?}: {}", run(args, b"").err);
    }
    let other = place.log("other-0", &numbers(101), &[]);
    fails(&["diff", &dir, &other], b"", 4, "");
    fails(&["diff", &dir, &other, "--by", "records"], b"", 4, "");
    ok(&["repair", &bad, "--yes"], b"");
    ok(&["verify", &bad], b"");
}

#[test]
fn code_5_locked_by_another_process() {
    let place = Place::new();
    let dir = log(&place);
    let (mut child, stdin) = writer(&dir);
    for verb in all().filter(|verb| WRITERS.contains(verb)) {
        let ran = plain(verb, &dir, "");
        assert_eq!(ran.code, Some(5), "{verb}: {}", ran.err);
        assert!(ran.err.contains(&child.id().to_string()), "{verb} does not say by whom: {}", ran.err);
    }
    // What only reads is not in the way.
    for verb in on_logs().filter(|verb| !WRITERS.contains(verb)) {
        let ran = plain(verb, &dir, &place.path(&format!("new-{verb}-0")));
        assert_eq!(ran.code, Some(0), "{verb}: {}", ran.err);
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));

    // A cursor is held as well.
    let held = ["tail", &dir, "-f", "--cursor", "mine"];
    let mut child = logctl(&held).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    fails(&["tail", &dir, "--cursor", "mine"], b"", 5, "mine");
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn code_8_some_of_several_partitions() {
    let place = Place::new();
    place.log("data/good-0", &numbers(3), &[]);
    fs::create_dir(place.path("data/bad-0")).unwrap();
    // A directory in the place of a file is nothing that can be read, not even by root.
    std::os::unix::fs::symlink("nowhere", place.path("data/bad-0/00000000000000000000.log")).unwrap();
    for verb in ["ls", "offsets"] {
        let ran = run(&[verb, &place.path("data")], b"");
        assert_eq!(ran.code, Some(8), "{verb}: {}", ran.err);
        assert!(
            ran.text().contains("good") && ran.err.contains("bad-0"),
            "{verb}: {}{}",
            ran.text(),
            ran.err
        );
    }
}

#[test]
fn code_124_the_time_is_over() {
    let place = Place::new();
    let dir = log(&place);
    for args in [
        &["tail", &dir, "-f", "--timeout", "50ms"][..],
        &["tail", &place.path("missing-0"), "-F", "--timeout", "50ms"],
    ] {
        let ran = run(args, b"");
        assert_eq!(ran.code, Some(124), "{args:?}: {}", ran.err);
    }
    // An input that never comes.
    let mut child = logctl(&["append", &dir, "--timeout", "50ms"]).stdin(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(124));
    drop(stdin);
    // What was done in time is done: the limit is none where it is not reached.
    ok(&["cat", &dir, "--timeout", "1h"], b"");
}

#[test]
fn codes_130_and_143_a_signal() {
    let place = Place::new();
    let dir = log(&place);
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let (child, stdin) = writer(&dir);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "append");
        drop(stdin);
        let mut child =
            logctl(&["tail", &dir, "-f"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        signal(&child, name);
        let mut rest = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "tail");
    }
    ok(&["verify", &dir], b"");
}

#[test]
fn code_141_the_reader_went_away() {
    let place = Place::new();
    for verb in all() {
        let dir = place.log(&format!("{verb}-0"), &numbers(100), SMALL);
        let other = place.log(&format!("other-{verb}-0"), &numbers(100), SMALL);
        let args = arguments(verb, &dir, &place.path(&format!("new-{verb}-0")));
        if plain(verb, &other, &place.path(&format!("told-{verb}-0"))).out.is_empty() {
            continue;
        }
        let (reader, pipe) = std::io::pipe().unwrap();
        drop(reader);
        let output = logctl(&args).stdin(Stdio::null()).stdout(pipe).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(141), "{verb}: {said}");
        assert!(!said.contains("error"), "{verb}: {said}");
    }
}
