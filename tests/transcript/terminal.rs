//! A pseudo-terminal with a program in it.

use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    num::NonZero,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process, kill_process_group},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// Rows that are kept of what was printed; the window that the program is told of is smaller.
const KEPT_ROWS: u16 = 2000;
/// What a program is told of its window's height.
const WINDOW_ROWS: u16 = 40;
/// When a test gives up: far beyond what the slowest machine needs.
const LIMIT: Duration = Duration::from_secs(180);

/// What a program in a terminal has printed so far, and a way to type.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    screen: vt100::Parser,
}

impl Terminal {
    /// Starts a command of the shell as the leader of a session of its own, whose terminal this is.
    pub(crate) fn start(script: &str, dir: &Path, env: &[(String, String)], columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave =
            rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        tcsetwinsize(&slave, window(columns)).unwrap();
        let stdio = |slave: &OwnedFd| Stdio::from(slave.try_clone().unwrap());
        let child = Command::new("setsid")
            .args(["--ctty", "sh", "-c", script])
            .current_dir(dir)
            .env_clear()
            .envs(env.iter().cloned())
            .stdin(stdio(&slave))
            .stdout(stdio(&slave))
            .stderr(stdio(&slave))
            .spawn()
            .expect("setsid of util-linux");
        let screen = vt100::Parser::new(size(KEPT_ROWS), size(columns), 0);
        Self { child, master: File::from(master), screen }
    }

    /// Reads what there is, waiting for it; false once the program and all that it started have let go of the terminal.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        match self.master.read(&mut bytes) {
            Ok(0) => false,
            // What Linux says once nobody holds the other side.
            Err(error) if error.raw_os_error() == Some(5) => false,
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(error) => panic!("the terminal cannot be read: {error}"),
            Ok(length) => {
                let came = bytes.get(..length).unwrap();
                self.screen.process(came);
                true
            }
        }
    }

    /// Waits until there is something to read.
    fn wait_for_bytes(&self, until: Instant, what: &str) {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap();
        let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
        let ready = poll(&mut fds, Some(&timeout)).unwrap_or(1);
        assert!(ready > 0, "waited in vain for {what}; the screen:\n{}", self.text());
    }

    /// Waits until the screen shows a text. False where the program ended before.
    pub(crate) fn sees(&mut self, text: &str) -> bool {
        let until = Instant::now() + LIMIT;
        while !self.text().contains(text) {
            self.wait_for_bytes(until, text);
            if !self.read() {
                return self.text().contains(text);
            }
        }
        true
    }

    /// The same, of a program that is known to show it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        assert!(self.sees(text), "{text:?} was never shown; the screen:\n{}", self.text());
    }

    /// Reads to the end; the exit code as a shell gives it.
    pub(crate) fn finish(&mut self) -> i32 {
        let until = Instant::now() + LIMIT;
        loop {
            self.wait_for_bytes(until, "the end");
            if !self.read() {
                break;
            }
        }
        let status = self.child.wait().unwrap();
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
    }

    /// What a person has on the screen, without colours.
    pub(crate) fn text(&self) -> String {
        format!("{}\n", self.screen.screen().contents())
    }

    /// The screen itself.
    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.screen.screen()
    }

    /// Types: `\x03` is Ctrl-C, `\x04` the end of the input.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Changes the width of the window; the kernel tells the program.
    pub(crate) fn resize(&mut self, columns: u16) {
        tcsetwinsize(&self.master, window(columns)).unwrap();
        self.screen.screen_mut().set_size(size(KEPT_ROWS), size(columns));
    }

    /// The process: its files are in `/proc`.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the program alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Terminal {
    /// A failed test leaves no program behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn size(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

fn window(columns: u16) -> Winsize {
    Winsize { ws_row: WINDOW_ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
