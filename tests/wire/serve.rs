//! `logctl serve`, as a process.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Client, Wanted, batch};

pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
}

pub(crate) fn serve(wrapper: &[&str], dir: &Path, arguments: &[&str]) -> Served {
    let logctl = env!("CARGO_BIN_EXE_logctl");
    let mut words = wrapper.to_vec();
    words.extend([logctl, "serve", dir.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    words.extend(arguments);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("LOGCTL_CONFIG", "").env_remove("LOGCTL_LOG");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("ready ").unwrap_or_else(|| {
        let mut said = String::new();
        child.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
        panic!("{line:?} {said}")
    });
    let address = address.parse().unwrap();
    Served { child, address }
}

impl Served {
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// By SIGKILL; it is gone when this returns.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Exit code and standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn sigterm_leaves_a_clean_directory_and_sigkill_nothing_lost() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let ports = temp.path().join("ports");
    let served = serve(&[], &dir, &["--ports-file", ports.to_str().unwrap(), "--log-format", "json"]);
    assert_eq!(fs::read_to_string(&ports).unwrap(), format!("{}\n", served.address));
    let mut client = Client::new(served.address);
    client.topic("t");
    assert_eq!(client.produce("t", &batch(&[b"a"])).base_offset, 0);
    served.signal(Signal::TERM);
    assert!(client.is_closed());
    let (code, said) = served.end();
    assert_eq!(code, Some(0), "{said}");
    for line in said.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert!(said.contains("\"msg\":\"stopped\""), "{said}");
    assert!(dir.join(".kafka_cleanshutdown").exists());

    let mut served = serve(&[], &dir, &[]);
    let mut client = Client::new(served.address);
    assert_eq!(client.produce("t", &batch(&[b"b"])).base_offset, 1);
    served.kill();
    let served = serve(&[], &dir, &[]);
    let mut client = Client::new(served.address);
    let read = client.fetch(&Wanted::new("t", 0));
    assert_eq!(read.records(), [(0, b"a".to_vec()), (1, b"b".to_vec())]);
}

#[test]
fn sendfile_carries_the_bytes_of_large_fetches() {
    let temp = tempfile::tempdir().unwrap();
    let trace = temp.path().join("trace");
    let strace =
        ["strace", "-D", "-f", "-e", "trace=sendfile,sendto,write,pread64", "-o", trace.to_str().unwrap()];
    let can_trace = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    if !can_trace.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "strace is needed");
        return;
    }
    let served = serve(&strace, &temp.path().join("data"), &[]);
    let mut client = Client::new(served.address);
    client.topic("t");
    for _ in 0..4 {
        assert_eq!(client.produce("t", &batch(&[&vec![7; 250_000]])).code, 0);
    }
    let read = client.fetch(&Wanted { max_bytes: 4 << 20, ..Wanted::new("t", 0) });
    assert_eq!(read.records().len(), 4);
    drop(client);
    served.signal(Signal::TERM);
    let (_, said) = served.end();
    // The tracer is on its own (`-D`), so that the signal reaches the server.
    let trace = loop {
        let trace = fs::read_to_string(&trace).unwrap();
        if trace.lines().next_back().is_some_and(|line| line.contains("+++ exited with")) {
            break trace;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let result =
        |line: &str| line.rsplit("= ").next().and_then(|end| end.trim().parse::<usize>().ok()).unwrap_or(0);
    let sent: usize = trace
        .lines()
        .filter(|line| line.contains("sendfile(") || line.contains("sendfile resumed"))
        .map(result)
        .sum();
    assert_eq!(sent, read.bytes.len(), "{said}");
    let copied: usize = trace.lines().filter(|line| line.contains("sendto")).map(result).sum();
    assert!(copied < 4096, "{copied}");
}
