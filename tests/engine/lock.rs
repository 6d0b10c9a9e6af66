//! A partition inside a data directory: with a broker over it, nobody writes and nothing changes.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use stratalog::{Error, LogReader, LogWriter, ReadOptions};

use crate::support::{TempLog, expected, fill, pairs};

/// Holds a lock as a broker does: the whole file, exclusively, by `fcntl`, in another process.
pub struct Broker(Child);

impl Broker {
    pub fn over(data_dir: &Path) -> Self {
        let script = "import fcntl, sys\nf = open(sys.argv[1], 'a+')\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .arg(data_dir.join(".lock"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "held");
        Self(child)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn contents(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
            continue;
        }
        found.insert(
            path.clone(),
            (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap()),
        );
    }
    found
}

#[test]
fn with_a_broker_over_it_every_open_for_writing_is_refused_and_no_file_changes() {
    for is_clean in [true, false] {
        for mark in
            ["meta.properties", ".lock", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]
        {
            let log = TempLog::small();
            let mut writer = log.open();
            fill(&mut writer, 50);
            if is_clean {
                writer.close().unwrap();
            } else {
                drop(writer);
            }
            fs::write(log.temp.path().join(mark), "").unwrap();
            fs::write(log.temp.path().join(".kafka_cleanshutdown"), "{}").unwrap();
            let broker = Broker::over(log.temp.path());
            let before = contents(log.temp.path());
            for path in [log.path(), log.path().join("../t-0")] {
                let opened = LogWriter::open(&path, log.config.clone());
                assert!(matches!(opened, Err(Error::Locked { .. })), "{mark}: {opened:?}");
            }
            let reader = LogReader::open(log.path(), ReadOptions::default()).unwrap();
            assert_eq!(pairs(&reader), expected(0..50));
            assert_eq!(contents(log.temp.path()), before, "{mark}");
            drop(broker);
            let mut writer = log.open();
            fill(&mut writer, 1);
            assert!(
                !log.temp.path().join(".kafka_cleanshutdown").exists(),
                "a broker must look at what we wrote"
            );
            writer.close().unwrap();
        }
    }
}

#[test]
fn while_we_write_no_broker_can_take_the_data_directory() {
    let log = TempLog::small();
    fs::create_dir_all(log.path()).unwrap();
    fs::write(log.temp.path().join("meta.properties"), "").unwrap();
    let writer = log.open();
    let script = "import fcntl, sys\nf = open(sys.argv[1], 'a+')\ntry:\n    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    print('free')\nexcept OSError:\n    print('held')";
    let tried = || {
        let out =
            Command::new("python3").args(["-c", script]).arg(log.temp.path().join(".lock")).output().unwrap();
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(tried(), "held");
    // Another partition of the same directory is no obstacle.
    let mut other = log.config.clone();
    other.segment_bytes = 8192;
    let second = LogWriter::open(log.temp.path().join("t-1"), other).unwrap();
    drop(writer);
    assert_eq!(tried(), "held");
    drop(second);
    assert_eq!(tried(), "free");
}

#[test]
fn a_data_directory_itself_is_not_a_log() {
    let log = TempLog::small();
    fs::write(log.temp.path().join("meta.properties"), "").unwrap();
    let opened = LogWriter::open(log.temp.path(), log.config.clone());
    assert!(matches!(opened, Err(Error::UnsupportedVersion { .. })), "{opened:?}");
    assert!(!log.temp.path().join("00000000000000000000.log").exists());
}

#[test]
fn a_close_tells_a_broker_where_to_look() {
    let log = TempLog::small();
    fs::create_dir_all(log.path()).unwrap();
    fs::write(log.temp.path().join("meta.properties"), "").unwrap();
    fs::write(log.temp.path().join("recovery-point-offset-checkpoint"), "0\n2\nother 3 77\nt 0 5\n").unwrap();
    let mut writer = log.open();
    fill(&mut writer, 150);
    writer.advance_start(crate::support::at(7)).unwrap();
    let active = writer.reader().segments().last().unwrap().base_offset;
    writer.close().unwrap();
    let text = |name: &str| fs::read_to_string(log.temp.path().join(name)).unwrap();
    let points = text("recovery-point-offset-checkpoint");
    assert!(points.contains(&format!("t 0 {active}")) && points.contains("other 3 77"), "{points}");
    assert!(text("log-start-offset-checkpoint").contains("t 0 7"));
}
