//! A session: commands one after another in one directory, and the transcript of what they showed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::{golden, normal, screen, terminal::Terminal};

/// Commands are run in its directory; their transcript grows with each.
pub(crate) struct Session {
    name: &'static str,
    dir: TempDir,
    env: Vec<(String, String)>,
    columns: u16,
    transcript: String,
}

impl Session {
    /// A session in an empty directory, in a window of 100 columns. `name`: of its file in `golden/`.
    pub(crate) fn new(name: &'static str) -> Self {
        let dir = TempDir::new().unwrap();
        let bin = Path::new(env!("CARGO_BIN_EXE_logctl")).parent().unwrap().to_str().unwrap();
        let path = env::var("PATH").unwrap_or_default();
        let home = dir.path().join(".home");
        fs::create_dir(&home).unwrap();
        let env = [
            ("PATH", format!("{bin}:{path}")),
            ("HOME", home.to_str().unwrap().to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("LC_ALL", "C.UTF-8".to_owned()),
            ("TMPDIR", env::temp_dir().to_str().unwrap().to_owned()),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value)).into();
        Self { name, dir, env, columns: 100, transcript: String::new() }
    }

    /// Where the session's commands run.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Copies a directory of `fixtures/`.
    pub(crate) fn fixture(&self, from: &str, to: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(from);
        copy(&from, &self.path(to));
    }

    /// A headline of the transcript.
    pub(crate) fn chapter(&mut self, text: &str) {
        if !self.transcript.is_empty() {
            self.transcript.push('\n');
        }
        self.note(&format!("==== {text}"));
    }

    /// Sets a variable for the commands that follow.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.env.push((name.to_owned(), value.to_owned()));
        self.note(&format!("export {name}={value}"));
    }

    /// Takes a variable away again.
    pub(crate) fn unset(&mut self, name: &str) {
        self.env.retain(|(known, _)| known != name);
    }

    /// The width of the windows that follow.
    pub(crate) fn columns(&mut self, columns: u16) {
        self.columns = columns;
        self.note(&format!("[a window of {columns} columns]"));
    }

    /// A line of the transcript that no command printed.
    pub(crate) fn note(&mut self, text: &str) {
        self.transcript.push_str(text);
        self.transcript.push('\n');
    }

    /// Runs a command in a terminal to its end; the transcript shows the screen.
    #[track_caller]
    pub(crate) fn run(&mut self, script: &str) {
        let mut terminal = self.start(script);
        self.end(&mut terminal);
    }

    /// The same, without the lines from one that holds `from` to the next that begins at the edge.
    #[track_caller]
    pub(crate) fn run_without(&mut self, script: &str, from: &str) {
        let mut terminal = self.start(script);
        let code = terminal.finish();
        let mut is_left_out = false;
        for line in screen::lines(terminal.screen()) {
            let begins = line.contains(from);
            is_left_out = begins || is_left_out && (line.is_empty() || line.starts_with([' ', '\\']));
            if begins {
                self.transcript.push_str("[...]\n\n");
            } else if !is_left_out {
                self.transcript.push_str(&line);
                self.transcript.push('\n');
            }
        }
        self.code(code);
    }

    /// Starts a command in a terminal.
    pub(crate) fn start(&mut self, script: &str) -> Terminal {
        self.note(&format!("$ {script}"));
        self.start_quietly(script)
    }

    /// The same outside of the transcript.
    pub(crate) fn start_quietly(&self, script: &str) -> Terminal {
        Terminal::start(script, self.dir.path(), &self.env, self.columns)
    }

    /// Shows the screen as it is at this moment, with numbers left out.
    pub(crate) fn moment(&mut self, terminal: &Terminal) {
        let lines = screen::lines(terminal.screen()).join("\n");
        self.note("[at this moment]");
        self.note(&normal::moment(&lines));
    }

    /// Waits for the end of a command; the transcript shows the screen and the exit code.
    #[track_caller]
    pub(crate) fn end(&mut self, terminal: &mut Terminal) {
        let code = terminal.finish();
        for line in screen::lines(terminal.screen()) {
            self.transcript.push_str(&line);
            self.transcript.push('\n');
        }
        self.code(code);
    }

    /// Runs a command in pipes; what came from standard error stands behind `2> `.
    #[track_caller]
    pub(crate) fn pipe(&mut self, script: &str) {
        let output = self.quietly(script);
        self.note(&format!("| {script}"));
        for (bytes, prefix) in [(&output.stdout, ""), (&output.stderr, "2> ")] {
            let text = String::from_utf8_lossy(bytes);
            for line in text.lines() {
                // A terminal's commands would be invisible here.
                self.note(&format!("{prefix}{}", line.replace('\x1b', "<ESC>")));
            }
            if !text.is_empty() && !text.ends_with('\n') {
                self.transcript.push_str("[no newline]\n");
            }
        }
        self.code(output.status.code().unwrap_or(-1));
    }

    /// Runs a command in pipes outside of the transcript.
    pub(crate) fn quietly(&self, script: &str) -> std::process::Output {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(self.dir.path()).env_clear().envs(self.env.iter().cloned());
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// The same of a command that must succeed.
    #[track_caller]
    pub(crate) fn prepare(&self, script: &str) {
        let output = self.quietly(script);
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn code(&mut self, code: i32) {
        if code != 0 {
            self.note(&format!("[exit code {code}]"));
        }
    }

    /// Compares the transcript with its file.
    #[track_caller]
    pub(crate) fn finish(self) {
        golden::compare(self.name, &normal::text(&self.transcript, self.dir.path()));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::write(&target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}
