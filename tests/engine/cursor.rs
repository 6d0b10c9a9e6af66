//! A consumer's place: kept over restarts, never made up, told what became of the log under it.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::fs::FileExt,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use stratalog::{
    Cursor, Error, LogReader, LogWriter, Offset, OpenMode, Position, ReadOptions,
    inspect::{VerifyOptions, verify},
};

use crate::support::{TempLog, all, at, copy_dir, expected, fast_dir, fill, pairs};

fn place(offset: i64, leader_epoch: i32) -> Position {
    Position { offset: at(offset), leader_epoch: Some(leader_epoch) }
}

fn file_of(log: &TempLog, name: &str) -> std::path::PathBuf {
    log.path().join(format!(".stratalog-cursor-{name}"))
}

#[test]
fn what_is_committed_is_there_again_and_nothing_is_made_up() {
    let log = TempLog::in_memory(|_| {});
    fill(&mut log.open(), 10);
    let mut cursor = Cursor::open(log.path(), "a").unwrap();
    assert_eq!(cursor.position(), None);
    let mut positions = vec![place(3, 0), at(7).into(), place(7, 0), place(2, 5), place(i64::MAX, i32::MAX)];
    positions.push(Position { offset: Offset::ZERO, leader_epoch: Some(-1) });
    for position in positions {
        cursor.commit(position).unwrap();
        cursor.commit(position).unwrap();
        assert_eq!(cursor.position(), Some(position));
        drop(cursor);
        cursor = Cursor::open(log.path(), "a").unwrap();
        assert_eq!(cursor.position(), Some(position));
    }
    cursor.reset().unwrap();
    drop(cursor);
    let cursor = Cursor::open(log.path(), "a").unwrap();
    assert_eq!(cursor.position(), None);
    assert_eq!(cursor.path(), file_of(&log, "a"));
    cursor.remove().unwrap();
    assert!(!file_of(&log, "a").exists());
    assert!(Cursor::list(log.path()).unwrap().is_empty());
}

#[test]
fn the_file_has_the_documented_bytes() {
    let log = TempLog::in_memory(|_| {});
    fill(&mut log.open(), 1);
    let mut cursor = Cursor::open(log.path(), "x").unwrap();
    cursor.commit(place(0x0102_0304_0506, 9)).unwrap();
    let bytes = fs::read(file_of(&log, "x")).unwrap();
    assert_eq!(bytes.len(), 8192);
    assert_eq!(&bytes[..12], b"STRTLGCU\0\0\0\x01");
    let second = &bytes[4096..4136];
    assert_eq!(&second[..12], b"STRTLGCU\0\0\0\x01");
    assert_eq!(&second[16..], [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn one_holder_at_a_time_in_this_process_and_another() {
    let log = TempLog::in_memory(|_| {});
    fill(&mut log.open(), 1);
    let held = Cursor::open(log.path(), "a").unwrap();
    let refused = Cursor::open(log.path(), "a").unwrap_err();
    assert!(matches!(&refused, Error::CursorInUse { path, .. } if *path == file_of(&log, "a")), "{refused}");
    assert!(refused.to_string().contains("in use by another consumer (process "), "{refused}");
    let _other_name = Cursor::open(log.path(), "b").unwrap();
    let list = Cursor::list(log.path()).unwrap();
    assert!(list.iter().all(|info| info.in_use) && list.len() == 2);
    drop(held);
    assert!(!Cursor::list(log.path()).unwrap()[0].in_use);

    // Another process, by the kind of lock that a program in another language would take.
    let script = "import fcntl, sys\nf = open(sys.argv[1], 'r+b')\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .arg(file_of(&log, "a"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(matches!(Cursor::open(log.path(), "a"), Err(Error::CursorInUse { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    Cursor::open(log.path(), "a").unwrap();
}

#[test]
fn many_that_come_at_once_make_one_file_and_one_has_it() {
    for _ in 0..20 {
        let dir = fast_dir();
        let held: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Cursor::open(dir.path(), "a"))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let winners = held.iter().filter(|held| held.is_ok()).count();
        let others = held.iter().filter_map(|held| held.as_ref().err());
        assert!(others.into_iter().all(|error| matches!(error, Error::CursorInUse { .. })));
        assert_eq!(winners, 1);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }
}

#[test]
fn a_torn_write_leaves_the_place_before_it() {
    let log = TempLog::in_memory(|_| {});
    fill(&mut log.open(), 1);
    let mut cursor = Cursor::open(log.path(), "a").unwrap();
    let path = file_of(&log, "a");
    let mut before = Vec::new();
    for offset in 1..=5 {
        before = fs::read(&path).unwrap();
        cursor.commit(at(offset)).unwrap();
    }
    drop(cursor);
    let good = fs::read(&path).unwrap();
    assert_eq!(before[..4096], good[..4096], "the fifth lies in the second block");
    // Of the write so many bytes reached the disk, which has what was there before or anything.
    for length in 0..68 {
        let mut bytes = good.clone();
        if length < 40 {
            bytes[4096 + length..4136].copy_from_slice(&before[4096 + length..4136]);
        } else {
            bytes[4096 + length - 28..4136].fill(0xEE);
        }
        if bytes == good {
            continue;
        }
        fs::write(&path, &bytes).unwrap();
        let mut cursor = Cursor::open(log.path(), "a").unwrap();
        assert_eq!(cursor.position(), Some(at(4).into()), "{length}");
        // The next commit must not put the good one at risk: it goes where the torn one is.
        cursor.commit(at(6)).unwrap();
        drop(cursor);
        assert_eq!(&fs::read(&path).unwrap()[..4096], &good[..4096], "{length}");
        assert_eq!(Cursor::open(log.path(), "a").unwrap().position(), Some(at(6).into()));
    }
}

#[test]
fn a_garbled_file_is_an_error_that_names_it_and_no_position() {
    let log = TempLog::in_memory(|_| {});
    fill(&mut log.open(), 3);
    Cursor::open(log.path(), "a").unwrap().commit(at(2)).unwrap();
    let path = file_of(&log, "a");
    let good = fs::read(&path).unwrap();
    let mut flipped = good.clone();
    (flipped[20], flipped[4096 + 39]) = (1, 0xFF);
    for bytes in [Vec::new(), vec![0; 8192], b"17\n".to_vec(), good[..20].to_vec(), flipped] {
        fs::write(&path, &bytes).unwrap();
        let error = Cursor::open(log.path(), "a").unwrap_err();
        assert!(error.is_corruption(), "{error}");
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()) && text.contains("remove it to begin anew"), "{text}");
        let list = Cursor::list(log.path()).unwrap();
        assert!(list[0].position.is_err() && list[0].to_string().contains("remove it"), "{}", list[0]);
        assert_eq!(fs::read(&path).unwrap(), bytes, "it was changed");
    }
    let mut newer = good;
    newer[11] = 2;
    fs::write(&path, newer).unwrap();
    assert!(matches!(Cursor::open(log.path(), "a"), Err(Error::UnsupportedVersion { .. })));
}

#[test]
fn a_file_that_is_taken_away_is_not_committed_to() {
    let log = TempLog::in_memory(|_| {});
    fill(&mut log.open(), 1);
    let mut cursor = Cursor::open(log.path(), "a").unwrap();
    cursor.commit(at(1)).unwrap();
    fs::remove_file(file_of(&log, "a")).unwrap();
    let error = cursor.commit(at(2)).unwrap_err();
    assert!(error.to_string().contains("removed or replaced"), "{error}");
    assert_eq!(cursor.position(), Some(at(1).into()));
    // Another takes the name; the first one's end must not take it away.
    let other = Cursor::open(log.path(), "a").unwrap();
    cursor.remove().unwrap();
    assert!(other.path().exists());
}

#[test]
fn a_cursor_elsewhere_and_what_names_none() {
    let temp = fast_dir();
    let path = temp.path().join("mine.pos");
    let mut cursor = Cursor::at_file(&path).unwrap();
    cursor.commit(at(4)).unwrap();
    assert!(matches!(Cursor::at_file(&path), Err(Error::CursorInUse { .. })));
    drop(cursor);
    assert_eq!(Cursor::at_file(&path).unwrap().position(), Some(at(4).into()));
    assert!(matches!(Cursor::at_file(temp.path().join("none/x")), Err(Error::NotFound { .. })));
    assert!(matches!(Cursor::open(temp.path().join("none"), "x"), Err(Error::NotFound { .. })));
    for path in ["", "/", ".."] {
        assert!(matches!(Cursor::at_file(path), Err(Error::InvalidConfig { .. })), "{path}");
    }
    assert!(Cursor::at_file(temp.path()).is_err(), "a directory");
    assert!(matches!(Cursor::open(temp.path(), "a.log"), Err(Error::InvalidConfig { .. })));
    std::os::unix::fs::symlink(&path, temp.path().join("link")).unwrap();
    assert!(Cursor::at_file(temp.path().join("link")).unwrap_err().to_string().contains("symbolic link"));
}

#[test]
fn retention_waits_for_no_cursor_and_the_range_is_told() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    fill(&mut writer, 50);
    let mut cursor = Cursor::open(log.path(), "slow").unwrap();
    cursor.commit(place(10, 0)).unwrap();
    writer.advance_start(at(30)).unwrap();
    let reader = log.reader();
    for reader in [&reader, &writer.reader()] {
        let error = reader.records(cursor.position().unwrap()).next_record().unwrap_err();
        let Error::OffsetOutOfRange { requested, start, .. } = error else { panic!("{error}") };
        assert_eq!((requested, start), (at(10), at(30)));
    }
    assert_eq!(cursor.position(), Some(place(10, 0)), "reading does not move it");
}

#[test]
fn a_position_behind_a_cut_is_truncated_also_after_new_records_took_its_offsets() {
    for count in [0, 5, 40] {
        let log = TempLog::in_memory(|_| {});
        fill(&mut log.open(), 20);
        let mut cursor = Cursor::open(log.path(), "a").unwrap();
        let last = all(&log.reader()).pop().unwrap();
        cursor.commit(Position::after(&last)).unwrap();
        assert_eq!(cursor.position(), Some(place(20, 0)));
        drop(cursor);
        let mut batches = log.reader().batches(at(15));
        batches.next_batch().unwrap().unwrap();
        let (_, position) = batches.position_of_last().unwrap();
        // Never durable, and torn: the next open cuts there.
        fs::remove_file(log.path().join(".stratalog-checkpoint")).unwrap();
        let file =
            fs::OpenOptions::new().write(true).open(log.path().join("00000000000000000000.log")).unwrap();
        file.write_all_at(&[0xAA; 4], position + 62).unwrap();
        let mut writer = log.open();
        fill(&mut writer, count);
        let cursor = Cursor::open(log.path(), "a").unwrap();
        for reader in [log.reader(), writer.reader()] {
            let error = reader.records(cursor.position().unwrap()).next_record().unwrap_err();
            assert!(matches!(error, Error::Truncated { end } if end == at(15)), "{count}: {error}");
        }
    }
}

#[test]
fn writers_verify_and_copies_leave_cursors_alone() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    fill(&mut writer, 30);
    let mut cursor = Cursor::open(log.path(), "billing.eu").unwrap();
    cursor.commit(place(12, 0)).unwrap();
    fill(&mut writer, 30);
    writer.close().unwrap();
    let kept = fs::read(cursor.path()).unwrap();
    // What a killed creation leaves is cleared away; the cursor is not.
    let left = log.path().join(".stratalog-cursor-x.1-1.new");
    fs::write(&left, b"").unwrap();
    drop(log.open());
    assert!(!left.exists());
    assert_eq!(fs::read(cursor.path()).unwrap(), kept);
    let report = verify(log.path(), &VerifyOptions::default(), &mut |_| ()).unwrap();
    assert_eq!(report.findings.len(), 0, "{report:?}");
    let copy = log.temp.path().join("copy-0");
    copy_dir(&log.path(), &copy);
    let copied = Cursor::open(&copy, "billing.eu").unwrap();
    assert_eq!(copied.position(), cursor.position());
    LogWriter::open(&copy, log.config.clone()).unwrap().close().unwrap();
    assert_eq!(pairs(&LogReader::open(&copy, ReadOptions::default()).unwrap()), expected(0..60));
}

#[test]
fn a_cursor_alone_does_not_make_a_log() {
    let temp = fast_dir();
    let dir = temp.path().join("t-0");
    fs::create_dir(&dir).unwrap();
    Cursor::open(&dir, "a").unwrap().commit(at(3)).unwrap();
    assert!(matches!(LogReader::open(&dir, ReadOptions::default()), Err(Error::NotFound { .. })));
    // But one may be made around it: the directory is a log's, whose records are gone.
    let mut config = TempLog::small().config;
    config.open = OpenMode::CreateIfMissing;
    LogWriter::open(&dir, config).unwrap().close().unwrap();
    assert_eq!(Cursor::open(&dir, "a").unwrap().position(), Some(at(3).into()));
}

#[test]
fn a_list_while_a_holder_commits_has_whole_positions() {
    let dir = fast_dir();
    let mut cursor = Cursor::open(dir.path(), "a").unwrap();
    let path: &Path = dir.path();
    thread::scope(|scope| {
        let lister = scope.spawn(move || {
            let mut last = -1;
            while last < 3000 {
                let list = Cursor::list(path).unwrap();
                let position = list[0].position.as_ref().unwrap();
                if let Some(position) = position {
                    assert_eq!(Some(position.offset.value()), position.leader_epoch.map(i64::from));
                    assert!(position.offset.value() >= last, "it went back");
                    last = position.offset.value();
                }
            }
        });
        for offset in 0..=3000 {
            cursor.commit(place(offset, i32::try_from(offset).unwrap())).unwrap();
        }
        lister.join().unwrap();
    });
    let mut bytes = Vec::new();
    fs::File::open(cursor.path()).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 8192);
}
