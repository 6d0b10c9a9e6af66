use std::{ffi::OsString, fs, io::ErrorKind, os::unix::fs::symlink};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::open;
use crate::sys::{Dir, EntryKind, Open};

#[test]
fn names_are_listed_with_their_kind_and_none_is_opened() {
    let temp = TempDir::new().unwrap();
    fs::write(temp.path().join("file"), b"x").unwrap();
    fs::create_dir(temp.path().join("dir")).unwrap();
    symlink("file", temp.path().join("link")).unwrap();
    mknodat(CWD, temp.path().join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let dir = open(temp.path());
    let mut entries: Vec<_> = dir.list().unwrap().into_iter().map(|entry| (entry.name, entry.kind)).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("dir", EntryKind::Dir),
        ("fifo", EntryKind::Other),
        ("file", EntryKind::File),
        ("link", EntryKind::Symlink),
    ];
    assert_eq!(entries, expected.map(|(name, kind)| (OsString::from(name), kind)));
    assert_eq!(dir.list().unwrap().len(), 4, "a second listing begins anew");
    assert_eq!(dir.stat("link").unwrap().unwrap().kind, EntryKind::Symlink);
    assert_eq!(dir.stat("none").unwrap(), None);
    assert!(dir.exists("fifo").unwrap());
}

#[test]
fn what_is_no_regular_file_is_refused_by_name() {
    let temp = TempDir::new().unwrap();
    fs::write(temp.path().join("file"), b"x").unwrap();
    fs::create_dir(temp.path().join("dir")).unwrap();
    symlink("file", temp.path().join("link")).unwrap();
    mknodat(CWD, temp.path().join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let dir = open(temp.path());
    for (name, reason) in [("dir", "a directory"), ("link", "a symbolic link"), ("fifo", "a FIFO")] {
        for how in [Open::Read, Open::ReadWrite, Open::CreateOrOpen { mode: 0o644 }] {
            let error = dir.open_file(name, how).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(reason) && text.contains(name), "{how:?}: {text}");
        }
    }
    assert!(dir.open_file("file", Open::Read).is_ok());
}

#[test]
fn a_name_leads_nowhere_else() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    for name in ["", ".", "..", "a/b", "../x", "nul\0nul"] {
        assert_eq!(
            dir.open_file(name, Open::CreateNew { mode: 0o644 }).unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        assert_eq!(dir.remove(name).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(dir.stat(name).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(dir.rename("x", name).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn creating_says_whether_the_name_is_new() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let how = Open::CreateOrOpen { mode: 0o600 };
    assert!(dir.open_file("a", how).unwrap().is_new());
    assert!(!dir.open_file("a", how).unwrap().is_new());
    assert_eq!(dir.stat("a").unwrap().unwrap().mode, 0o600);
    let again = dir.open_file("a", Open::CreateNew { mode: 0o600 }).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    assert!(dir.open_file("b", Open::ReadWrite).unwrap_err().is_not_found());
    assert!(dir.remove("a").unwrap());
    assert!(!dir.remove("a").unwrap());
}

#[test]
fn parents_are_made_and_found() {
    let temp = TempDir::new().unwrap();
    let deep = temp.path().join("a/b/c");
    let dir = Dir::create_all(&deep, 0o755).unwrap();
    assert!(dir.is_same(&deep).unwrap());
    assert!(!dir.is_same(temp.path()).unwrap());
    assert!(!dir.is_same(temp.path().join("none/none")).unwrap());
    let parent = dir.parent().unwrap().unwrap();
    assert!(parent.is_same(temp.path().join("a/b")).unwrap());
    assert!(parent.path().ends_with("a/b"));
    // Through a link, the parent is the one on disk.
    symlink(&deep, temp.path().join("short")).unwrap();
    let linked = open(&temp.path().join("short"));
    assert_eq!(linked.identity().unwrap(), dir.identity().unwrap());
    assert!(linked.parent().unwrap().unwrap().is_same(temp.path().join("a/b")).unwrap());
    assert!(open(std::path::Path::new("/")).parent().unwrap().is_none());
    assert!(Dir::create_all(&deep, 0o755).is_ok(), "once more changes nothing");
    fs::write(temp.path().join("file"), b"").unwrap();
    assert!(Dir::create_all(temp.path().join("file/x"), 0o755).is_err());
    assert!(Dir::create_all(temp.path().join("none/.."), 0o755).is_err());
}

#[test]
fn a_replaced_file_is_the_new_one_and_leaves_nothing_behind() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    fs::write(temp.path().join("state.tmp"), b"left by a kill").unwrap();
    dir.write_replace("state", b"one", 0o644).unwrap();
    let old = dir.open_file("state", Open::Read).unwrap();
    dir.write_replace("state", b"second", 0o644).unwrap();
    assert_eq!(dir.read_small("state", 6).unwrap().unwrap(), b"second");
    assert_eq!(dir.read_small("state", 5).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(dir.read_small("none", 5).unwrap(), None);
    let mut bytes = [0; 3];
    old.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"one", "who has the old file open keeps it");
    assert_eq!(dir.list().unwrap().len(), 1);
}

#[test]
fn a_rename_to_a_new_name_overwrites_nothing() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    fs::write(temp.path().join("a"), b"a").unwrap();
    fs::write(temp.path().join("b"), b"b").unwrap();
    assert_eq!(dir.rename_new("a", "b").unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(temp.path().join("b")).unwrap(), b"b");
    dir.rename_new("a", "c").unwrap();
    dir.rename("c", "b").unwrap();
    assert_eq!(fs::read(temp.path().join("b")).unwrap(), b"a");
    assert!(dir.rename("none", "x").unwrap_err().is_not_found());
}

#[test]
fn a_replacement_that_fails_leaves_the_old_file() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    fs::create_dir(temp.path().join("state")).unwrap();
    assert!(dir.write_replace("state", b"one", 0o644).is_err());
    assert_eq!(dir.list().unwrap().len(), 1, "no temporary file is left");
}

#[test]
fn free_bytes_and_file_system_are_known() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    assert!(dir.free_bytes().unwrap() > 0);
    dir.file_system().unwrap();
    dir.sync().unwrap();
}
