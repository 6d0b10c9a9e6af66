//! Running the command.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use tempfile::TempDir;

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

/// The command, without what the caller's environment would change.
pub(crate) fn logctl<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_logctl"));
    for name in ["LOGCTL_DIR", "LOGCTL_LOG", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    // No file of whoever runs the tests.
    command.env("LOGCTL_CONFIG", "");
    for name in ["LOGCTL_PROFILE", "LOGCTL_BROKERS", "PAGER"] {
        command.env_remove(name);
    }
    command.args(args);
    command
}

/// Runs it with this input to its end.
pub(crate) fn run(args: &[&str], input: &[u8]) -> Ran {
    let mut command = logctl(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that does not read its input closes it: that is no fault of the test.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Ran {
        code: output.status.code(),
        out: output.stdout,
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs it and wants success; gives what it printed.
#[track_caller]
pub(crate) fn ok(args: &[&str], input: &[u8]) -> Vec<u8> {
    let ran = run(args, input);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
    ran.out
}

/// Runs it and wants this exit code and this on standard error.
#[track_caller]
pub(crate) fn fails(args: &[&str], input: &[u8], code: i32, says: &str) -> Ran {
    let ran = run(args, input);
    assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.err);
    assert!(ran.err.contains(says), "{args:?} says: {}", ran.err);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran
}

/// A place for logs.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// The path of a name in it, as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// A log of these lines; its path.
    #[track_caller]
    pub(crate) fn log(&self, name: &str, lines: &[u8], options: &[&str]) -> String {
        let dir = self.path(name);
        ok(&[&["append", &dir, "--create"], options].concat(), lines);
        dir
    }
}

/// `1` to `count`, a line each.
pub(crate) fn numbers(count: u32) -> Vec<u8> {
    (1..=count).flat_map(|n| format!("{n}\n").into_bytes()).collect()
}

/// Everything that a look at a directory could change: names, bytes, times.
pub(crate) fn snapshot(dir: impl AsRef<Path>) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().to_str().unwrap().to_owned();
            (name, fs::read(entry.path()).unwrap(), entry.metadata().unwrap().modified().unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Sends a signal by its name.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().unwrap();
    assert!(status.success());
}

/// Copies a directory of files.
pub(crate) fn copy_dir(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    fs::create_dir_all(&to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.as_ref().join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(entry.path(), target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
