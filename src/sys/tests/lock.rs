use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Write},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::{descriptors_under, open};
use crate::sys::{DirLock, LOCK_NAME, LockError, ParentLock};

fn is_held<T>(taken: &Result<T, LockError>) -> bool {
    matches!(taken, Err(LockError::Held { .. }))
}

/// What Kafka's JVM does with `.lock`, in this process: a record lock that belongs to the process, against which a lock of
/// an open file stands as against any other holder.
fn as_a_jvm(file: &fs::File) -> bool {
    let lock = libc::flock {
        l_type: i16::try_from(libc::F_WRLCK).unwrap(),
        l_whence: 0,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_SETLK(&lock)).is_ok()
}

fn lock_file(temp: &TempDir) -> fs::File {
    fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(temp.path().join(LOCK_NAME))
        .unwrap()
}

/// F090: refused in the same process, by whatever path, also after the file was opened and closed again.
#[test]
fn one_exclusive_holder_in_one_process() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    assert!(!DirLock::is_held(&dir));
    assert!(!temp.path().join(LOCK_NAME).exists(), "asking makes no file");
    let lock = DirLock::try_exclusive(&dir).unwrap();
    assert!(DirLock::is_held(&dir));
    assert!(is_held(&DirLock::try_exclusive(&dir)));
    assert!(is_held(&DirLock::try_shared(&dir)));
    drop(lock_file(&temp));
    drop(fs::read(temp.path().join(LOCK_NAME)).unwrap());
    assert!(is_held(&DirLock::try_exclusive(&dir)));
    let links = TempDir::new().unwrap();
    symlink(temp.path(), links.path().join("link")).unwrap();
    fs::create_dir(temp.path().join("sub")).unwrap();
    for path in [links.path().join("link"), temp.path().join("sub/../.")] {
        assert!(is_held(&DirLock::try_exclusive(&open(&path))), "{}", path.display());
    }
    drop(lock);
    for _ in 0..200 {
        drop(DirLock::try_exclusive(&dir).unwrap());
    }
}

#[test]
fn shared_holders_share_and_keep_exclusive_ones_out() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let (one, two) = (DirLock::try_shared(&dir).unwrap(), DirLock::shared(&dir).unwrap());
    assert!(is_held(&DirLock::try_exclusive(&dir)));
    drop(one);
    assert!(is_held(&DirLock::try_exclusive(&dir)));
    drop(two);
    DirLock::try_exclusive(&dir).unwrap();
}

#[test]
fn a_blocking_lock_waits_for_the_holder() {
    let temp = TempDir::new().unwrap();
    let lock = DirLock::exclusive(&open(temp.path())).unwrap();
    let (sender, receiver) = mpsc::channel();
    let path = temp.path().to_path_buf();
    let waiter = thread::spawn(move || {
        let lock = DirLock::exclusive(&open(&path)).unwrap();
        sender.send(()).unwrap();
        drop(lock);
    });
    assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err());
    drop(lock);
    receiver.recv().unwrap();
    waiter.join().unwrap();
}

/// F088: what the file contains means nothing, and its holder's note is shown only while it is held.
#[test]
fn contents_of_the_lock_file_decide_nothing() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let own = std::process::id().to_string();
    let long = vec![b'x'; 100_000];
    for contents in [&b"1"[..], own.as_bytes(), b"", b"\xff\x00garbage\n", &long] {
        fs::write(temp.path().join(LOCK_NAME), contents).unwrap();
        let lock = DirLock::try_exclusive(&dir).unwrap();
        lock.leave_note("pid 7 on host a, since noon\n");
        match DirLock::try_exclusive(&dir) {
            Err(LockError::Held { holder }) => {
                assert_eq!(holder.as_deref(), Some("pid 7 on host a, since noon"));
            }
            other => panic!("{other:?}"),
        }
    }
    fs::write(temp.path().join(LOCK_NAME), "\x1b[31mred").unwrap();
    let _lock = DirLock::try_exclusive(&dir).unwrap();
    match DirLock::try_exclusive(&dir) {
        Err(LockError::Held { holder }) => {
            assert_eq!(holder.as_deref(), Some("[31mred"), "nothing for a terminal");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_locked_is_not_held() {
    let cannot = |temp: &TempDir, reason: &str| match DirLock::try_exclusive(&open(temp.path())) {
        Err(LockError::Cannot(error)) => assert!(error.to_string().contains(reason), "{error}"),
        other => panic!("{reason}: {other:?}"),
    };
    let temp = TempDir::new().unwrap();
    fs::create_dir(temp.path().join(LOCK_NAME)).unwrap();
    cannot(&temp, "is a directory");
    let temp = TempDir::new().unwrap();
    symlink("elsewhere", temp.path().join(LOCK_NAME)).unwrap();
    cannot(&temp, "is a symbolic link");
    assert!(!temp.path().join("elsewhere").exists());
    let temp = TempDir::new().unwrap();
    mknodat(CWD, temp.path().join(LOCK_NAME), FileType::Fifo, Mode::RWXU, 0).unwrap();
    cannot(&temp, "is a FIFO");
    let temp = TempDir::new().unwrap();
    fs::write(temp.path().join(LOCK_NAME), "").unwrap();
    fs::set_permissions(temp.path().join(LOCK_NAME), fs::Permissions::from_mode(0o444)).unwrap();
    // Root may open it all the same, others are told by the kernel.
    match DirLock::try_exclusive(&open(temp.path())) {
        Err(LockError::Cannot(error)) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
        other => panic!("{other:?}"),
    }
}

/// F094: a thousand refused tries leave no descriptor, and the last one gets the lock.
#[test]
fn refused_tries_leave_nothing_behind() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let lock = DirLock::try_exclusive(&dir).unwrap();
    let before = descriptors_under(temp.path());
    for _ in 0..1000 {
        assert!(is_held(&DirLock::try_exclusive(&dir)));
    }
    assert_eq!(descriptors_under(temp.path()), before);
    drop(lock);
    drop(DirLock::try_exclusive(&dir).unwrap());
    assert_eq!(descriptors_under(temp.path()), before - 1);
}

/// A child between `fork` and `exec` has a copy of the descriptor; dropping frees the lock all the same (F087).
#[test]
fn a_dropped_lock_is_free_though_a_copy_of_its_descriptor_lives() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let lock = DirLock::try_exclusive(&dir).unwrap();
    let copy = lock.descriptor().try_clone_to_owned().unwrap();
    assert!(is_held(&DirLock::try_exclusive(&dir)));
    drop(lock);
    DirLock::try_exclusive(&dir).unwrap();
    drop(copy);
}

/// A broker removes `.lock` on a clean stop: a lock on the removed file excludes nobody, so a new one is taken.
#[test]
fn a_lock_is_on_the_file_that_has_the_name() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let old = DirLock::try_exclusive(&dir).unwrap();
    let path = temp.path().to_path_buf();
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let dir = open(&path);
        sender.send(()).unwrap();
        let lock = DirLock::exclusive(&dir).unwrap();
        // The one it got is the one that others meet.
        assert!(is_held(&DirLock::try_exclusive(&dir)));
        drop(lock);
    });
    receiver.recv().unwrap();
    thread::sleep(Duration::from_millis(20));
    fs::remove_file(temp.path().join(LOCK_NAME)).unwrap();
    drop(old);
    waiter.join().unwrap();
    assert!(temp.path().join(LOCK_NAME).exists());
}

#[test]
fn a_record_lock_of_a_process_keeps_out_and_is_kept_out() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let jvm = lock_file(&temp);
    let lock = DirLock::try_exclusive(&dir).unwrap();
    assert!(!as_a_jvm(&jvm));
    drop(lock);
    assert!(as_a_jvm(&jvm));
    fs::write(temp.path().join("note"), "").unwrap();
    match DirLock::try_exclusive(&dir) {
        Err(LockError::Held { holder }) => {
            assert_eq!(holder, Some(format!("process {}", std::process::id())), "the kernel names it");
        }
        other => panic!("{other:?}"),
    }
    // The refused try closed the file, and any close frees what this process (not this descriptor) held: a danger of plain
    // record locks, and why ours are none. Between processes there is no such thing.
    assert!(as_a_jvm(&jvm));
    assert!(is_held(&ParentLock::try_shared(&dir)));
}

#[test]
fn a_holder_of_flock_alone_keeps_out_and_is_kept_out() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let other = lock_file(&temp);
    let lock = DirLock::try_exclusive(&dir).unwrap();
    assert!(fs4::FileExt::try_lock(&other).is_err());
    drop(lock);
    fs4::FileExt::try_lock(&other).unwrap();
    match DirLock::try_exclusive(&dir) {
        Err(LockError::Held { holder }) => assert!(holder.unwrap().contains(&std::process::id().to_string())),
        // Where the kernel's table does not name the holder.
        Err(LockError::Cannot(error)) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        Ok(_) => panic!("two holders"),
    }
    fs4::FileExt::unlock(&other).unwrap();
    DirLock::try_exclusive(&dir).unwrap();
}

#[test]
fn partition_writers_share_the_parent_and_take_turns_rewriting() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let (one, two) = (ParentLock::try_shared(&dir).unwrap(), ParentLock::try_shared(&dir).unwrap());
    assert!(is_held(&DirLock::try_exclusive(&dir)), "no broker and no store beside them");
    assert!(!as_a_jvm(&lock_file(&temp)));
    let guard = one.rewrite().unwrap();
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        scope.spawn(move || {
            let guard = two.rewrite().unwrap();
            sender.send(()).unwrap();
            drop(guard);
        });
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "one at a time");
        let third = ParentLock::try_shared(&dir).unwrap();
        drop(guard);
        receiver.recv().unwrap();
        drop(third);
    });
    drop(one);
    let store = DirLock::try_exclusive(&dir).unwrap();
    assert!(is_held(&ParentLock::try_shared(&dir)));
    drop(store);
}

struct Python(Child);

impl Python {
    /// A child that tries to lock, says how it went, and holds on until its input closes. `None` without Python.
    fn locking(path: &Path, call: &str) -> Option<(Self, bool)> {
        let script = format!(
            "import fcntl, sys\nf = open(sys.argv[1], 'r+')\ntry:\n    {call}\n    print('locked', flush=True)\n\
             except OSError:\n    print('refused', flush=True)\nsys.stdin.read()\n"
        );
        let mut child = Command::new("python3")
            .args(["-c", &script])
            .arg(path.join(LOCK_NAME))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
        let locked = match line.trim() {
            "locked" => true,
            "refused" => false,
            other => panic!("{other}"),
        };
        Some((Self(child), locked))
    }

    fn end(mut self) {
        if let Some(mut stdin) = self.0.stdin.take() {
            let _ = stdin.flush();
        }
        self.0.wait().unwrap();
    }
}

/// The same between processes, with the calls that a JVM and a shell's `flock` make.
#[test]
fn another_process_keeps_out_and_is_kept_out() {
    let calls = [
        ("fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)", true),
        ("fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)", false),
    ];
    for (call, is_record_lock) in calls {
        let temp = TempDir::new().unwrap();
        let dir = open(temp.path());
        let lock = DirLock::try_exclusive(&dir).unwrap();
        drop(lock_file(&temp));
        let Some((child, locked)) = Python::locking(temp.path(), call) else { return };
        assert!(!locked, "{call} beside our lock");
        child.end();
        drop(lock);
        let (child, locked) = Python::locking(temp.path(), call).unwrap();
        assert!(locked, "{call}");
        let pid = child.0.id().to_string();
        match DirLock::try_exclusive(&dir) {
            Err(LockError::Held { holder }) => assert!(holder.unwrap().contains(&pid)),
            Err(LockError::Cannot(error)) => {
                assert!(!is_record_lock && error.kind() == ErrorKind::WouldBlock);
            }
            Ok(_) => panic!("two holders: {call}"),
        }
        child.end();
        DirLock::try_exclusive(&dir).unwrap();
    }
}
