//! `logctl serve`, started again on the same port.

use std::{
    env,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

pub(crate) struct Served {
    data: PathBuf,
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Served {
    #[track_caller]
    pub(crate) fn start(data: &Path, partitions: usize) -> Self {
        let (child, address) = start(data, "127.0.0.1:0", partitions);
        Self { data: data.to_owned(), child, address }
    }

    /// Ends it and starts it where clients look for it: after SIGTERM, which it has to take well, or after SIGKILL.
    #[track_caller]
    pub(crate) fn restart(&mut self, is_killed: bool, partitions: usize) {
        let marker = self.data.join(".kafka_cleanshutdown");
        if is_killed {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
            assert!(!marker.exists(), "killed, and it left the marker of a clean stop");
        } else {
            let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
            kill_process(pid, Signal::TERM).unwrap();
            assert_eq!(self.child.wait().unwrap().code(), Some(0), "after SIGTERM");
            assert!(marker.exists(), "stopped, and no marker");
        }
        (self.child, _) = start(&self.data, &self.address.to_string(), partitions);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn start(data: &Path, listen: &str, partitions: usize) -> (Child, SocketAddr) {
    let program = env::var_os("STRATALOG_LOGCTL").unwrap_or_else(|| env!("CARGO_BIN_EXE_logctl").into());
    let mut command = Command::new(program);
    command.arg("serve").arg(data).args(["--listen", listen]);
    command.args(["--override", &format!("num.partitions={partitions}")]);
    // What it says goes where the test's own words go.
    // Names of its settings begin so too.
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("STRATALOG_")) {
        command.env_remove(name);
    }
    command.env("LOGCTL_CONFIG", "").env("LOGCTL_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let Some(address) = line.trim().strip_prefix("ready ") else {
        let _ = child.kill();
        panic!("on {listen}: {line:?}, {:?}", child.wait());
    };
    (child, address.parse().unwrap())
}
