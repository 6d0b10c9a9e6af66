//! `logctl serve` as a process: started, looked at, killed.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// What the kernel says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) resident_kib: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
}

/// The command that is tried: the one that `LOGCTL` names, or the one that was built with this test.
pub(crate) fn logctl() -> Command {
    Command::new(std::env::var_os("LOGCTL").unwrap_or_else(|| env!("CARGO_BIN_EXE_logctl").into()))
}

impl Served {
    /// Starts it on any free port of this machine alone and waits until it serves. What it says goes to a file beside the
    /// directory.
    pub(crate) fn start(dir: &Path, settings: &[&str]) -> Self {
        Self::start_with(dir, None, settings)
    }

    /// The same, with so many descriptors at most.
    pub(crate) fn start_with(dir: &Path, descriptors: Option<u32>, settings: &[&str]) -> Self {
        let said_path = dir.with_extension("said");
        let said = fs::OpenOptions::new().create(true).append(true).open(&said_path).unwrap();
        let mut command = match descriptors {
            None => logctl(),
            Some(count) => {
                let mut command = Command::new("prlimit");
                command.arg(format!("--nofile={count}")).arg(logctl().get_program());
                command
            }
        };
        command.arg("serve").arg(dir).args(["--listen", "127.0.0.1:0"]);
        for setting in settings {
            command.args(["--override", setting]);
        }
        command.env("LOGCTL_CONFIG", "").env_remove("LOGCTL_LOG");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("ready ")
            .unwrap_or_else(|| panic!("{line:?}: {}", fs::read_to_string(&said_path).unwrap_or_default()));
        Self { address: address.parse().unwrap(), child }
    }

    /// By SIGKILL; it is gone when this returns.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// By SIGTERM; its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let mut rest = String::new();
        self.child.stdout.as_mut().unwrap().read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap().code()
    }

    pub(crate) fn held(&self) -> Held {
        let proc = format!("/proc/{}", self.child.id());
        let status = fs::read_to_string(format!("{proc}/status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        Held {
            resident_kib: field("VmRSS:"),
            threads: field("Threads:"),
            descriptors: u64::try_from(fs::read_dir(format!("{proc}/fd")).unwrap().count()).unwrap(),
        }
    }
}

impl Served {
    /// Processor time that it used so far, in hundredths of a second.
    pub(crate) fn processor_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Behind the name, which may hold anything: the 12th and 13th.
        let fields: Vec<_> = stat[stat.rfind(')').unwrap()..].split_whitespace().collect();
        fields[12..14].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets this process, and those that it starts from now on, open as many files as it may. How many that is.
pub(crate) fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    limit.maximum.unwrap_or(u64::MAX)
}
