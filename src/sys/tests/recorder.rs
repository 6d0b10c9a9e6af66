use std::{ffi::OsStr, fs, path::Path, sync::atomic::Ordering};

use rustix::io::Errno;
use tempfile::TempDir;

use crate::sys::{
    Dir, FileSystem, MappedWords, Open,
    recorder::{Call, Chance, Effect, Event, Everything, Fate, Fault, FileId, Nothing, Recording, Survival},
};

const NEW: Open = Open::CreateNew { mode: 0o644 };

/// The files of a directory and what they hold, in the order of their names.
fn contents(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    found.sort();
    found
}

fn crash(recording: &Recording, at: usize, survival: &mut dyn Survival) -> Vec<(String, Vec<u8>)> {
    let into = TempDir::new().unwrap();
    recording.image(at).materialize(survival, into.path()).unwrap();
    contents(into.path())
}

fn file(name: &str, bytes: &[u8]) -> (String, Vec<u8>) {
    (name.to_string(), bytes.to_vec())
}

/// One fate for every effect, and the first `names` name changes.
struct All(Fate, usize);

impl Survival for All {
    fn effect(&mut self, _: FileId, _: &Effect) -> Fate {
        self.0
    }
    fn names(&mut self, _: &Path, pending: usize) -> Vec<bool> {
        (0..pending).map(|at| at < self.1).collect()
    }
}

#[test]
fn only_what_was_synced_is_sure() {
    let temp = TempDir::new().unwrap();
    fs::write(temp.path().join("old"), b"before").unwrap();
    let recording = Recording::install(temp.path()).unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    let log = dir.open_file("log", NEW).unwrap();
    log.write_all_at(b"one", 0).unwrap();
    log.sync_data().unwrap();
    log.write_all_vectored_at(&[b"t", b"wo"], 3).unwrap();
    let old = file("old", b"before");
    let at = recording.event_count();
    assert_eq!(crash(&recording, at, &mut Nothing), [file("old", b"before")], "the name was not synced");
    assert_eq!(crash(&recording, at, &mut Everything), [file("log", b"onetwo"), old.clone()]);
    assert_eq!(crash(&recording, at, &mut All(Fate::Lost, 1)), [file("log", b"one"), old.clone()]);
    assert_eq!(
        crash(&recording, at, &mut All(Fate::LengthOnly, 1)),
        [file("log", b"one\0\0\0"), old.clone()]
    );
    assert_eq!(crash(&recording, at, &mut All(Fate::Front(1), 1)), [file("log", b"onet"), old.clone()]);
    dir.sync().unwrap();
    assert_eq!(crash(&recording, recording.event_count(), &mut Nothing), [file("log", b"one"), old.clone()]);
    // Each prefix: the first event is the creation, the second the write, the third its sync.
    assert_eq!(crash(&recording, 0, &mut Everything), [file("old", b"before")]);
    assert_eq!(crash(&recording, 1, &mut Everything), [file("log", b""), old.clone()]);
    assert_eq!(crash(&recording, 3, &mut Nothing), [old]);
}

#[test]
fn a_write_is_torn_by_sectors() {
    let temp = TempDir::new().unwrap();
    let recording = Recording::install(temp.path()).unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    let log = dir.open_file("log", NEW).unwrap();
    log.write_all_at(&[9; 1536], 256).unwrap();
    dir.sync().unwrap();
    let found = crash(&recording, recording.event_count(), &mut All(Fate::Sectors(0b1010), 0));
    let bytes = &found[0].1;
    assert_eq!(bytes.len(), 1792);
    assert!(bytes[..512].iter().all(|byte| *byte == 0));
    assert!(bytes[512..1024].iter().all(|byte| *byte == 9));
    assert!(bytes[1024..1536].iter().all(|byte| *byte == 0));
    assert!(bytes[1536..].iter().all(|byte| *byte == 9));
}

#[test]
fn renames_carry_their_file_and_survive_in_order() {
    let temp = TempDir::new().unwrap();
    let recording = Recording::install(temp.path()).unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    dir.write_replace("state", b"old", 0o644).unwrap();
    let before = recording.event_count();
    dir.write_replace("state", b"new", 0o644).unwrap();
    let events = recording.events();
    let renamed = events.iter().rposition(|event| matches!(event, Event::Rename { .. })).unwrap() + 1;
    assert_eq!(crash(&recording, before, &mut Nothing), [file("state", b"old")]);
    assert_eq!(crash(&recording, renamed, &mut Nothing), [file("state", b"old")]);
    assert_eq!(
        crash(&recording, renamed, &mut All(Fate::Lost, 1)),
        [file("state", b"old"), file("state.tmp", b"new")],
        "the bytes were synced before the rename"
    );
    assert_eq!(crash(&recording, renamed, &mut All(Fate::Lost, 2)), [file("state", b"new")]);
    assert_eq!(crash(&recording, events.len(), &mut Nothing), [file("state", b"new")]);
    // At each moment it is the one or the other.
    let mut image = recording.image(before);
    for at in before..=events.len() {
        for seed in 0..50 {
            let found = crash(&recording, at, &mut Chance::new(seed, 50, seed % 2 == 0));
            let state = found.iter().find(|(name, _)| name == "state").unwrap();
            assert!([&b"old"[..], b"new"].contains(&&state.1[..]), "event {at}, seed {seed}: {state:?}");
            let into = TempDir::new().unwrap();
            image.materialize(&mut Chance::new(seed, 50, seed % 2 == 0), into.path()).unwrap();
            assert_eq!(contents(into.path()), found, "made step by step it is the same");
        }
        if let Some(event) = events.get(at) {
            image.advance(event);
        }
    }
}

/// Without the sync before the rename the same check finds the empty file: the model can tell the difference.
#[test]
fn a_rename_without_a_sync_is_found_out() {
    let temp = TempDir::new().unwrap();
    fs::write(temp.path().join("state"), b"old").unwrap();
    let recording = Recording::install(temp.path()).unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    dir.replace(OsStr::new("state"), OsStr::new("state.tmp"), b"new", 0o644, false).unwrap();
    dir.sync().unwrap();
    assert_eq!(crash(&recording, recording.event_count(), &mut Nothing), [file("state", b"")]);
}

#[test]
fn removed_names_and_lengths_and_new_directories_are_followed() {
    let temp = TempDir::new().unwrap();
    fs::create_dir(temp.path().join("sub")).unwrap();
    fs::write(temp.path().join("sub/log"), b"0123456789").unwrap();
    let recording = Recording::install(temp.path()).unwrap();
    let dir = Dir::open(temp.path().join("sub")).unwrap();
    let log = dir.open_file("log", Open::ReadWrite).unwrap();
    log.set_len(4).unwrap();
    let cut = recording.event_count();
    log.sync_data().unwrap();
    let synced = recording.event_count();
    dir.remove("log").unwrap();
    assert!(!dir.remove("log").unwrap());
    let removed = recording.event_count();
    drop(Dir::create_all(temp.path().join("sub/a/b"), 0o755).unwrap());
    let under = |at: usize, survival: &mut dyn Survival| {
        let into = TempDir::new().unwrap();
        recording.image(at).materialize(survival, into.path()).unwrap();
        (contents(&into.path().join("sub")), into.path().join("sub/a/b").is_dir())
    };
    assert_eq!(under(cut, &mut Nothing).0, [file("log", b"0123456789")]);
    assert_eq!(under(cut, &mut Everything).0, [file("log", b"0123")]);
    assert_eq!(under(synced, &mut Nothing).0, [file("log", b"0123")]);
    assert_eq!(under(removed, &mut Nothing).0, [file("log", b"0123")]);
    assert_eq!(under(removed, &mut Everything).0, []);
    assert!(!under(removed, &mut Everything).1);
    assert!(under(recording.event_count(), &mut Nothing).1, "each parent was synced");
}

#[test]
fn stores_into_a_map_are_noted_and_lost_alone() {
    let temp = TempDir::new().unwrap();
    let recording = Recording::install(temp.path()).unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    if matches!(dir.file_system().unwrap(), FileSystem::Other(_)) {
        return;
    }
    let index = dir.open_file("index", NEW).unwrap();
    index.zero_fill(0, 16).unwrap();
    index.sync_all().unwrap();
    dir.sync().unwrap();
    let words = MappedWords::map(&index, 16, 16, true).unwrap();
    assert!(words.store32(1, 5_u32.to_be()));
    assert!(words.store64(1, 6_u64.to_be(), Ordering::Release));
    let at = recording.event_count();
    assert_eq!(crash(&recording, at, &mut Nothing), [file("index", &[0; 16])]);
    let mut expected = [0; 16];
    expected[7] = 5;
    assert_eq!(crash(&recording, at - 1, &mut Everything), [file("index", &expected)]);
    expected[15] = 6;
    assert_eq!(crash(&recording, at, &mut Everything), [file("index", &expected)]);
    assert_eq!(fs::read(temp.path().join("index")).unwrap(), expected);
}

/// A sync covers what came before it began, and no more: here a write falls into the middle of it.
#[test]
fn a_sync_does_not_cover_what_came_while_it_ran() {
    let temp = TempDir::new().unwrap();
    let recording = Recording::install(temp.path()).unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    let log = dir.open_file("log", NEW).unwrap();
    dir.sync().unwrap();
    log.write_all_at(b"a", 0).unwrap();
    let began = log.tap().begin_sync().unwrap();
    log.write_all_at(b"b", 1).unwrap();
    log.tap().note_sync(began);
    assert_eq!(crash(&recording, recording.event_count(), &mut Nothing), [file("log", b"a")]);
}

#[test]
fn ordered_calls_fail_and_the_others_do_not() {
    let temp = TempDir::new().unwrap();
    let recording = Recording::install(temp.path()).unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    let log = dir.open_file("log", NEW).unwrap();
    let enospc = Errno::NOSPC.raw_os_error();
    recording.fail(Fault {
        call: Some(Call::Write),
        after: 1,
        times: 1,
        errno: enospc,
        short_bytes: Some(2),
    });
    log.write_all_at(b"aaa", 0).unwrap();
    let calls = recording.calls();
    let error = log.write_all_at(b"bbb", 3).unwrap_err();
    assert!(error.is_storage_full());
    assert_eq!(recording.calls(), calls + 1);
    assert_eq!(fs::read(temp.path().join("log")).unwrap(), b"aaabb", "a part of it");
    log.write_all_vectored_at(&[b"bb", b"b"], 3).unwrap();
    recording.fail(Fault::nth(0, Errno::IO.raw_os_error()));
    assert!(log.sync_data().is_err());
    log.sync_data().unwrap();
    recording.fail(Fault {
        call: Some(Call::Preallocate),
        after: 0,
        times: 9,
        errno: Errno::OPNOTSUPP.raw_os_error(),
        short_bytes: None,
    });
    assert_eq!(log.preallocate(0, 4096, false).unwrap(), crate::sys::Preallocated::Unsupported);
    recording.heal();
    recording.fail(Fault {
        call: Some(Call::Read),
        after: 0,
        times: 1,
        errno: Errno::IO.raw_os_error(),
        short_bytes: None,
    });
    assert!(log.read_at(&mut [0; 4], 0).is_err());
    assert_eq!(log.read_at(&mut [0; 4], 0).unwrap(), 4);
    for (call, tried) in [
        (Call::Rename, dir.rename("log", "log").is_ok()),
        (Call::Remove, dir.remove("none").is_ok()),
        (Call::SyncDir, dir.sync().is_ok()),
        (Call::SetLen, log.set_len(6).is_ok()),
    ] {
        assert!(tried, "{call:?}");
    }
    for call in [Call::Rename, Call::Remove, Call::SyncDir, Call::SetLen, Call::Create, Call::CreateDir] {
        recording.fail(Fault { call: Some(call), after: 0, times: 1, errno: enospc, short_bytes: None });
    }
    assert!(dir.rename("log", "log2").is_err());
    assert!(dir.remove("log").is_err());
    assert!(dir.sync().is_err());
    assert!(log.set_len(0).is_err());
    assert!(dir.open_file("new", NEW).is_err());
    assert!(Dir::create_all(temp.path().join("x"), 0o755).is_err());
    assert_eq!(contents(temp.path()), [file("log", b"aaabbb")]);
}

/// F100: each way of saying "not here" is an answer; F101: a full disk is not.
#[test]
fn every_errno_of_reserving_is_told_apart() {
    let temp = TempDir::new().unwrap();
    let recording = Recording::install(temp.path()).unwrap();
    let log = Dir::open(temp.path()).unwrap().open_file("log", NEW).unwrap();
    let fail = |errno: Errno| {
        recording.fail(Fault::nth(0, errno.raw_os_error()));
        log.preallocate(0, 4096, true)
    };
    for errno in [Errno::OPNOTSUPP, Errno::INVAL, Errno::NOSYS, Errno::PERM, Errno::BADF] {
        assert_eq!(fail(errno).unwrap(), crate::sys::Preallocated::Unsupported, "{errno}");
    }
    for errno in [Errno::NOSPC, Errno::DQUOT] {
        assert!(fail(errno).unwrap_err().is_storage_full(), "{errno}");
    }
    assert!(!fail(Errno::IO).unwrap_err().is_storage_full());
}

#[test]
fn what_lies_elsewhere_is_not_recorded() {
    let (temp, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let recording = Recording::install(temp.path()).unwrap();
    Dir::open(other.path()).unwrap().write_replace("a", b"x", 0o644).unwrap();
    assert_eq!(recording.event_count(), 0);
    drop(recording);
    Dir::open(temp.path()).unwrap().write_replace("a", b"x", 0o644).unwrap();
}
