//! The lock of a directory and the lock that a JVM takes exclude each other.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use stratalog::{Error, LogConfig, LogWriter, OpenMode};
use tempfile::TempDir;

use crate::command::{here, kafka_is_here, logctl, ok, run};

/// A JVM that holds a lock, or was refused one; it ends with the value.
struct Jvm {
    child: Child,
    said: String,
}

impl Jvm {
    /// Tries the whole file, exclusively, as a broker does.
    #[track_caller]
    fn lock(path: &Path) -> Self {
        let mut child = Command::new("java")
            .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg(here().join("HoldLock.java"))
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = out.read_line(&mut line);
            // The test may be over.
            let _ = tell.send(read.map(|_| line));
        });
        let line = told.recv_timeout(Duration::from_secs(60));
        let mut jvm = Self { child, said: String::new() };
        line.expect("HoldLock.java says something within a minute").unwrap().trim().clone_into(&mut jvm.said);
        jvm
    }

    fn is_holding(&self) -> bool {
        match self.said.as_str() {
            "locked" => true,
            "refused" => false,
            other => panic!("HoldLock.java says {other:?}"),
        }
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a log's lock lies: in the partition, and above it where that is a data directory.
#[test]
fn a_lock_held_by_a_jvm_keeps_writers_out() {
    if !kafka_is_here() {
        return;
    }
    let place = TempDir::new().unwrap();
    let data = place.path();
    let dir = data.join("t-0");
    ok(&["append", dir.to_str().unwrap(), "--create", "-q"], b"one\ntwo\n");
    fs::write(data.join("meta.properties"), "version=1\n").unwrap();
    for lock in [dir.join(".lock"), data.join(".lock")] {
        let jvm = Jvm::lock(&lock);
        assert!(jvm.is_holding());
        let pid = jvm.child.id().to_string();
        let before = contents(&dir);

        let ran = run(&mut logctl(&["append", dir.to_str().unwrap()]), b"three\n");
        assert_eq!(ran.code, Some(5), "{}", ran.err);
        let names_it = |text: &str| text.split(|c: char| !c.is_ascii_digit()).any(|word| word == pid);
        assert!(names_it(&ran.err), "{pid} is not named: {}", ran.err);
        match LogWriter::open(&dir, LogConfig::default()) {
            Err(Error::Locked { path, holder }) => {
                assert_eq!(path.canonicalize().unwrap(), lock.canonicalize().unwrap());
                assert!(holder.as_deref().is_some_and(names_it), "{pid} is not named: {holder:?}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(contents(&dir), before);
        assert_eq!(ok(&["cat", dir.to_str().unwrap()], b""), "one\ntwo\n", "reading needs no lock");

        drop(jvm);
        ok(&["append", dir.to_str().unwrap(), "-q"], b"");
    }
    ok(&["append", dir.to_str().unwrap(), "-q"], b"three\n");
    assert_eq!(ok(&["cat", dir.to_str().unwrap()], b""), "one\ntwo\nthree\n");
}

#[test]
fn a_writers_lock_keeps_a_jvm_out() {
    if !kafka_is_here() {
        return;
    }
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("meta.properties"), "version=1\n").unwrap();
    let dir = place.path().join("t-0");
    let locks = [dir.join(".lock"), place.path().join(".lock")];
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    let writer = LogWriter::open(&dir, config.clone()).unwrap();
    for lock in &locks {
        assert!(!Jvm::lock(lock).is_holding(), "{}", lock.display());
        // A record lock of the plain kind would be gone after this.
        drop(File::open(lock).unwrap());
        drop(File::options().write(true).open(lock).unwrap());
        assert!(LogWriter::open(&dir, config.clone()).is_err());
        assert!(!Jvm::lock(lock).is_holding(), "after it was opened and closed: {}", lock.display());
    }
    writer.close().unwrap();
    for lock in &locks {
        assert!(Jvm::lock(lock).is_holding(), "{}", lock.display());
    }
}

fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    all.sort();
    all
}
