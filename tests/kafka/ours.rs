//! `logctl serve` on loopback, which ends with the value.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::command::logctl;

pub(crate) struct Ours {
    child: Child,
    pub(crate) address: String,
}

impl Ours {
    #[track_caller]
    pub(crate) fn start(data: &Path) -> Self {
        let mut command = logctl(&["serve", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        // What it says goes where the test's own words go.
        command.env("LOGCTL_CONFIG", "").env("LOGCTL_LOG", "warn").env_remove("STRATALOG_KAFKA");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("ready ").unwrap_or_default().to_owned();
        let ours = Self { child, address };
        assert!(!ours.address.is_empty(), "it is not ready: {line:?}");
        ours
    }

    /// Ends it as an operator would.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "after SIGTERM");
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
