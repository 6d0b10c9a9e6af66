use std::{
    fs::File,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use crate::run::{Place, logctl, numbers};

fn big(place: &Place) -> String {
    place.log("t-0", &numbers(200_000), &[])
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let place = Place::new();
    let dir = big(&place);
    for args in [
        &["cat", &dir][..],
        &["cat", &dir, "-J"],
        &["tail", &dir, "-n", "200000", "-f"],
        &["tail", &dir, "-n", "200000"],
    ] {
        let mut child = logctl(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut first).unwrap();
        drop(reader);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert!(!first.is_empty());
    }
}

#[test]
fn a_full_device_is_an_error() {
    let place = Place::new();
    let dir = big(&place);
    for args in
        [&["cat", &dir][..], &["get", &dir, "0"], &["tail", &dir], &["info", &dir], &["info", &dir, "-J"]]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = logctl(args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(err.contains("cannot write standard output"), "{args:?}: {err}");
    }
}

/// Help is output like any other.
#[test]
fn help_that_cannot_be_written_is_an_error() {
    let asked: [&[&str]; 8] = [
        &["--help"],
        &["-h"],
        &["cat", "--help"],
        &["help"],
        &["help", "recipes"],
        &["--version"],
        &["--version", "--verbose"],
        &["completions", "bash"],
    ];
    for args in asked {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = logctl(args).stdout(full).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {err}");
        assert!(err.contains("cannot write standard output"), "{args:?}: {err}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = logctl(args).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{args:?}");
        assert!(output.stderr.is_empty(), "{args:?}: {output:?}");
    }
}

#[test]
fn closed_streams_are_no_reason_to_panic() {
    let place = Place::new();
    let dir = place.log("t-0", b"x\n", &[]);
    for redirection in [">&-", "2>&-", "<&-", ">&- 2>&- <&-"] {
        for verb in ["cat", "append", "tail", "info"] {
            let script = format!("{} {verb} {dir} {redirection}", env!("CARGO_BIN_EXE_logctl"));
            let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
            assert!(matches!(output.status.code(), Some(0 | 1)), "{script}: {output:?}");
            assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{script}");
        }
    }
}

#[test]
fn colour_only_where_it_is_wanted() {
    let place = Place::new();
    let dir = place.path("missing");
    let has_colour = |args: &[&str], vars: &[(&str, &str)]| {
        let output = logctl(&[&["cat", &dir], args].concat()).envs(vars.iter().copied()).output().unwrap();
        String::from_utf8_lossy(&output.stderr).contains('\x1b')
    };
    assert!(!has_colour(&[], &[]));
    assert!(has_colour(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(has_colour(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!has_colour(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!has_colour(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
}
