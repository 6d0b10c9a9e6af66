//! Locking: F087 to F095, the library's part.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    process::{Command, Stdio},
};

use stratalog::{Error, LogWriter};

use super::{closed, copy_of, fds_in, file, names};
use crate::support::{TempLog, at, expected, fill, pairs};

fn refused(log: &TempLog, path: &std::path::Path) {
    let second = LogWriter::open(path, log.config.clone());
    assert!(matches!(second, Err(Error::Locked { .. })), "{}: {second:?}", path.display());
}

/// What another process says of the lock: `free` or `held`, tried as a JVM does, by `fcntl`, or by `flock`.
fn tried_elsewhere(lock: &std::path::Path, call: &str) -> String {
    let script = "import fcntl, sys\nf = open(sys.argv[1], 'r+')\ntry:\n    getattr(fcntl, sys.argv[2])(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    print('free')\nexcept OSError:\n    print('held')";
    let out = Command::new("python3").args(["-c", script]).arg(lock).arg(call).output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

#[test]
fn f087_the_lock_is_free_when_the_writer_is_gone_whoever_else_lives_on() {
    let log = TempLog::in_memory(|_| {});
    for round in 0..200 {
        let mut writer = log.open();
        fill(&mut writer, 1);
        let reader = writer.reader();
        let mut records = reader.records(at(0));
        let pending = writer
            .append_records_deferred(
                &[stratalog::record::Record::value_only(b"x")],
                stratalog::AppendOptions::default(),
            )
            .unwrap();
        let waiter = {
            let reader = reader.clone();
            std::thread::spawn(move || {
                reader.wait_past(
                    at(i64::MAX - 1),
                    std::time::Instant::now() + std::time::Duration::from_secs(60),
                )
            })
        };
        drop(writer);
        let again = LogWriter::open(log.path(), log.config.clone());
        assert!(again.is_ok(), "round {round}: {again:?}");
        assert_eq!(waiter.join().unwrap(), stratalog::Wait::Closed);
        assert!(records.next_record().unwrap().is_some());
        drop(pending);
    }
}

#[test]
fn f088_what_a_lock_file_says_means_nothing() {
    let own = std::process::id().to_string();
    let parent = "1".to_owned();
    for note in [parent.as_str(), own.as_str(), "0", "garbage \u{1}\u{2}", "", "pid 1 since 0\n"] {
        let log = closed(3);
        fs::write(log.path().join(".lock"), note).unwrap();
        let writer = log.open();
        assert_eq!(pairs(&writer.reader()), expected(0..3));
        refused(&log, &log.path());
    }
}

#[test]
fn f088_a_lock_file_that_cannot_be_opened_is_not_a_lock_that_is_held() {
    // Root opens anything: a directory in its place is what root cannot lock either.
    let log = closed(3);
    let lock = log.path().join(".lock");
    let _ = fs::remove_file(&lock);
    fs::create_dir(&lock).unwrap();
    let opened = LogWriter::open(log.path(), log.config.clone());
    assert!(matches!(opened, Err(Error::CannotLock { .. })), "{opened:?}");
    fs::remove_dir(&lock).unwrap();
    fs::write(&lock, "").unwrap();
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o000)).unwrap();
    match LogWriter::open(log.path(), log.config.clone()) {
        Ok(_) | Err(Error::CannotLock { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn f090_a_second_open_is_refused_by_any_path_and_the_first_keeps_its_lock() {
    let log = closed(3);
    let writer = log.open();
    let lock = log.path().join(".lock");
    refused(&log, &log.path());
    // Any close of the file would free a plain POSIX lock.
    drop(fs::File::open(&lock).unwrap());
    drop(fs::OpenOptions::new().write(true).open(&lock).unwrap());
    refused(&log, &log.path());
    let link = log.temp.path().join("link");
    symlink(log.path(), &link).unwrap();
    refused(&log, &link);
    refused(&log, &log.path().join("../t-0/."));
    for call in ["lockf", "flock"] {
        assert_eq!(tried_elsewhere(&lock, call), "held", "{call}");
        drop(fs::File::open(&lock).unwrap());
        assert_eq!(tried_elsewhere(&lock, call), "held", "{call}");
    }
    drop(writer);
    for call in ["lockf", "flock"] {
        assert_eq!(tried_elsewhere(&lock, call), "free", "{call}");
    }
    log.open();
}

#[test]
fn f090_a_lock_taken_by_another_process_excludes() {
    let log = closed(3);
    let lock = log.path().join(".lock");
    let before = names(&log.path());
    let script = "import fcntl, sys\nf = open(sys.argv[1], 'a+')\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .arg(&lock)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    let second = LogWriter::open(log.path(), log.config.clone());
    let Err(Error::Locked { holder, .. }) = second else { panic!("{second:?}") };
    assert!(
        holder.is_some_and(|holder| holder.contains(&child.id().to_string())),
        "the kernel names the holder"
    );
    assert_eq!(names(&log.path()), before);
    drop(child.stdin.take());
    child.wait().unwrap();
    log.open();
}

#[test]
fn f090_writers_that_race_for_a_lock_file_that_is_replaced_never_hold_it_together() {
    let log = closed(3);
    let held = std::sync::atomic::AtomicUsize::new(0);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let Ok(writer) = LogWriter::open(log.path(), log.config.clone()) else { continue };
                    let before = held.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    assert_eq!(before, 0, "two writers at once");
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    held.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    // As a broker does on a clean stop, while it still has the lock: who opened the file before
                    // must not take a lock on it for one on the directory.
                    let _ = fs::remove_file(log.path().join(".lock"));
                    drop(writer);
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(pairs(&log.open().reader()), expected(0..3));
}

#[test]
fn f092_the_lock_is_held_on_a_descriptor_that_can_write_and_is_closed_on_exec() {
    let log = closed(1);
    let _writer = log.open();
    let lock = fs::canonicalize(log.path().join(".lock")).unwrap();
    let mut seen = 0;
    for fd in fs::read_dir("/proc/self/fd").unwrap() {
        let fd = fd.unwrap();
        if fs::read_link(fd.path()).is_ok_and(|to| to == lock) {
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.file_name().to_str().unwrap()))
                .unwrap();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            let flags = u32::from_str_radix(flags.trim(), 8).unwrap();
            assert_eq!((flags & 0o3, flags & 0o2_000_000), (0o2, 0o2_000_000), "O_RDWR and O_CLOEXEC");
            seen += 1;
        }
    }
    assert_eq!(seen, 1);
}

#[test]
fn f094_opens_that_fail_leak_nothing_and_the_next_one_works() {
    let log = closed(30);
    let holder = log.open();
    let before = fds_in(&fs::canonicalize(log.path()).unwrap());
    for _ in 0..1000 {
        refused(&log, &log.path());
    }
    assert_eq!(fds_in(&fs::canonicalize(log.path()).unwrap()), before);
    drop(holder);
    log.open();
    // The lock is taken, and then recovery fails.
    let checkpoint = log.path().join(".stratalog-checkpoint");
    let good = fs::read(&checkpoint).unwrap();
    let mut newer = good.clone();
    newer[11] = 99;
    fs::write(&checkpoint, &newer).unwrap();
    for _ in 0..100 {
        let opened = LogWriter::open(log.path(), log.config.clone());
        assert!(matches!(opened, Err(Error::UnsupportedVersion { .. })), "{opened:?}");
    }
    assert_eq!(fds_in(&fs::canonicalize(log.path()).unwrap()), 0);
    fs::write(&checkpoint, &good).unwrap();
    assert_eq!(pairs(&log.open().reader()), expected(0..30));
}

#[test]
fn f095_a_refused_open_changes_no_file() {
    let log = closed(100);
    let mut holder = log.open();
    fill(&mut holder, 1);
    let torn = file(&log, 0, "index");
    let read = || {
        names(&log.path())
            .into_iter()
            .map(|name| (fs::read(log.path().join(&name)).unwrap(), name))
            .collect::<Vec<_>>()
    };
    let before = read();
    for _ in 0..3 {
        refused(&log, &log.path());
    }
    assert_eq!(read(), before);
    assert_eq!(pairs(&log.reader()), expected(0..101), "readers need no lock");
    assert_eq!(read(), before);
    assert!(torn.exists());
}

#[test]
fn f095_reading_changes_nothing_even_where_there_is_much_to_repair() {
    let original = closed(150);
    let log = copy_of(&original);
    for name in names(&log.path()).iter().filter(|name| !name.ends_with(".log")) {
        fs::write(log.path().join(name), [0xEE; 13]).unwrap();
    }
    let last = super::bases(&log).last().copied().unwrap();
    super::append_bytes(&file(&log, last, "log"), b"torn");
    let read = || {
        names(&log.path())
            .into_iter()
            .map(|name| (fs::read(log.path().join(&name)).unwrap(), name))
            .collect::<Vec<_>>()
    };
    let before = read();
    let reader = log.reader();
    assert_eq!(pairs(&reader), expected(0..150));
    reader.offset_for_timestamp(stratalog::Timestamp::from_millis(5)).unwrap();
    assert_eq!(read(), before);
}
