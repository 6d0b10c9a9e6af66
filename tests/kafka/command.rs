//! Running programs with an end to every wait.

use std::{
    env, fs,
    io::{Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// Enough for any of Kafka's tools on a slow and busy machine.
const LONGEST_RUN: Duration = Duration::from_secs(150);
/// Enough to bring Kafka over a slow line.
const LONGEST_FETCH: Duration = Duration::from_secs(900);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }
}

/// Runs a program with this input to its end; what is not over in time is killed with all its children, and fails.
#[track_caller]
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Ran {
    run_within(LONGEST_RUN, command, input)
}

#[track_caller]
fn run_within(longest: Duration, command: &mut Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (mut stdin, mut stdout, mut stderr) =
        (child.stdin.take().unwrap(), child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let input = input.to_vec();
    // A program that does not read its input closes it: that is no fault of the test.
    let writing = thread::spawn(move || drop(stdin.write_all(&input)));
    let out = thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).map(|_| bytes)
    });
    let err = thread::spawn(move || {
        let mut bytes = Vec::new();
        stderr.read_to_end(&mut bytes).map(|_| bytes)
    });
    let code = wait(longest, &mut child, command);
    writing.join().unwrap();
    let err = err.join().unwrap().unwrap();
    Ran { code, out: out.join().unwrap().unwrap(), err: String::from_utf8_lossy(&err).into_owned() }
}

#[track_caller]
fn wait(longest: Duration, child: &mut Child, command: &Command) -> Option<i32> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if started.elapsed() > longest {
            // The whole group: the script's JVM is a child of its shell.
            let _ = Command::new("kill").arg("-KILL").arg("--").arg(format!("-{}", child.id())).status();
            panic!("{command:?} still ran after {longest:?}");
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The command under test, without what the caller's environment would change.
pub(crate) fn logctl<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Command {
    let program = env::var_os("STRATALOG_LOGCTL").unwrap_or_else(|| env!("CARGO_BIN_EXE_logctl").into());
    let mut command = Command::new(program);
    for name in ["LOGCTL_DIR", "LOGCTL_LOG", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.args(args);
    command
}

/// Runs `logctl`, wants success, and gives what it printed.
#[track_caller]
pub(crate) fn ok(args: &[&str], input: &[u8]) -> String {
    let ran = run(&mut logctl(args), input);
    assert_eq!(ran.code, Some(0), "logctl {args:?}: {}", ran.err);
    ran.text().to_owned()
}

/// The script beside this file.
pub(crate) fn kafka(args: &[&str]) -> Command {
    let mut command = Command::new(here().join("kafka"));
    // A broker that a killed test leaves behind does not outlive it by long.
    command.args(args).env("KAFKA_LIFETIME", "600").env("LC_ALL", "C.UTF-8");
    command
}

/// This directory.
pub(crate) fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka")
}

/// True where Kafka can be had; otherwise says why not, and fails where it must be had.
#[track_caller]
pub(crate) fn kafka_is_here() -> bool {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let required = env::var_os("STRATALOG_KAFKA").is_some_and(|value| value == "require");
    let missing = MISSING.get_or_init(|| missing(required));
    if let Some(reason) = missing {
        assert!(!required, "STRATALOG_KAFKA=require, but {reason}");
        // Past the capture of a test's output: who runs the tests should see what was not tested.
        let line = format!("test passed over: {reason}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    missing.is_none()
}

fn missing(required: bool) -> Option<String> {
    if cfg!(debug_assertions) && env::var_os("STRATALOG_LOGCTL").is_none() && !required {
        return Some("this is a debug build: cargo test --release --test kafka".to_owned());
    }
    for (program, package) in [("javac", "a JDK, 17 or later"), ("mvn", "Maven")] {
        let path = env::var_os("PATH").unwrap_or_default();
        if !env::split_paths(&path)
            .any(|dir| fs::metadata(dir.join(program)).is_ok_and(|file| file.is_file()))
        {
            return Some(format!("there is no {program}: install {package}"));
        }
    }
    let fetched = run_within(LONGEST_FETCH, &mut kafka(&["fetch"]), b"");
    (fetched.code != Some(0)).then(|| format!("Kafka could not be fetched: {}", fetched.err))
}
