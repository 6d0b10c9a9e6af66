use std::{fs, path::Path, process::Command, sync::Arc, thread};

use proptest::prelude::*;
use tempfile::TempDir;

use super::pacer::Due;
use super::{Append, BatchAt, IndexBuilder, IndexPacer, OffsetEntry, OffsetIndex, TimeEntry, TimeIndex};
use crate::{
    offset::{Offset, Timestamp},
    sys::{Dir, FileSystem, Open},
};

const MODE: u32 = 0o644;
const MAX: u32 = 10 * 1024 * 1024;

fn o(value: i64) -> Offset {
    Offset::new(value).unwrap()
}

fn t(value: i64) -> Timestamp {
    Timestamp::from_millis(value)
}

fn dir(temp: &TempDir) -> Arc<Dir> {
    Arc::new(Dir::open(temp.path()).unwrap())
}

fn entry(offset: i64, position: u32) -> OffsetEntry {
    OffsetEntry { offset: o(offset), position }
}

fn offset_bytes(entries: &[(i32, i32)]) -> Vec<u8> {
    entries.iter().flat_map(|(a, b)| [a.to_be_bytes(), b.to_be_bytes()].concat()).collect()
}

fn time_bytes(entries: &[(i64, i32)]) -> Vec<u8> {
    entries.iter().flat_map(|(a, b)| [&a.to_be_bytes()[..], &b.to_be_bytes()].concat()).collect()
}

fn sealed(temp: &TempDir, bytes: &[u8]) -> OffsetIndex {
    fs::write(temp.path().join("i"), bytes).unwrap();
    OffsetIndex::open_sealed(&dir(temp), "i", o(100))
}

fn sealed_time(temp: &TempDir, bytes: &[u8]) -> TimeIndex {
    fs::write(temp.path().join("t"), bytes).unwrap();
    TimeIndex::open_sealed(&dir(temp), "t", o(100))
}

#[test]
fn an_index_grows_and_seals_to_what_is_in_it() {
    let temp = TempDir::new().unwrap();
    let dir = dir(&temp);
    let path = temp.path().join("i");
    let index = OffsetIndex::create(&dir, "i", o(100), MAX, MODE).unwrap();
    assert_eq!(index.lookup(o(500)), entry(100, 0));
    assert_eq!(index.append(o(101), 50), Append::Unreserved);
    assert_eq!(fs::metadata(&path).unwrap().len(), 0, "creating reserves nothing");
    index.reserve(1).unwrap();
    assert!(fs::metadata(&path).unwrap().len() <= 4096);
    for i in 0..2000_u32 {
        index.reserve(1).unwrap();
        assert_eq!(index.append(o(110 + i64::from(i) * 10), 50 + i * 100), Append::Stored);
    }
    assert_eq!(index.append(o(110), 999_999), Append::OutOfOrder);
    assert_eq!(index.append(o(99), 999_999), Append::OutOfOrder);
    assert_eq!(index.append(o(100 + (1 << 31)), 999_999), Append::OutOfOrder, "too far for 32 bits");
    assert_eq!(index.append(o(30_000), 1 << 31), Append::OutOfOrder, "no position of a segment");
    assert_eq!((index.entries(), index.last()), (2000, Some(entry(20_100, 199_950))));
    assert_eq!(index.lookup(o(114)), entry(110, 50));
    assert_eq!(index.lookup(o(120)), entry(120, 150));
    assert_eq!(index.lookup(o(99)), entry(100, 0));
    assert_eq!(index.next_position_after(index.floor(o(114))), Some(150));
    assert_eq!(index.next_position_after(index.floor(o(105))), Some(50));
    assert_eq!(index.next_position_after(Some(1999)), None);
    assert_eq!((index.position_from(51), index.position_from(199_951)), (Some(150), None));
    assert_eq!(index.entry(2000), None);
    let stat = dir.stat("i").unwrap().unwrap();
    assert!(stat.len < 64 * 1024, "reserved in steps: {stat:?}");
    assert!(index.check(200_000, o(20_101)).is_ok());
    index.seal().unwrap();
    index.sync().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 16_000);
    // A roll may fail after its seal; then the index goes on.
    if !matches!(dir.file_system().unwrap(), FileSystem::Other(_)) {
        assert_eq!(index.append(o(30_000), 200_050), Append::Unreserved, "the blocks were given back");
    }
    index.reserve(1).unwrap();
    assert_eq!(index.append(o(30_000), 200_050), Append::Stored);
    index.seal().unwrap();
    index.release_file();
    assert_eq!(index.lookup(o(30_000)), entry(30_000, 200_050));
    let again = OffsetIndex::open_sealed(&dir, "i", o(100));
    assert_eq!(again.entries(), 2001);
    assert_eq!(again.lookup(o(25_000)), entry(20_100, 199_950));
    again.reserve(5).unwrap();
    assert_eq!(again.append(o(40_000), 300_000), Append::Full, "sealed");
    assert_eq!(fs::metadata(&path).unwrap().len(), 16_008);
}

#[test]
fn an_index_is_gone_on_with_where_it_ended() {
    let temp = TempDir::new().unwrap();
    let dir = dir(&temp);
    // As left by a kill: its zeros were reserved, sparse, and more than half of them.
    let mut bytes = offset_bytes(&[(4, 50), (9, 120), (10, 200)]);
    bytes.resize(65_536, 0);
    fs::write(temp.path().join("i"), &bytes).unwrap();
    let index = OffsetIndex::open_active(&dir, "i", o(100), 65_536, MODE).unwrap();
    assert_eq!((index.entries(), index.last(), index.is_full()), (3, Some(entry(110, 200)), false));
    assert_eq!(fs::read(temp.path().join("i")).unwrap(), bytes, "opening changes nothing");
    index.reserve(1).unwrap();
    assert_eq!(index.append(o(111), 300), Append::Stored);
    assert_eq!(index.lookup(o(1000)), entry(111, 300));
    assert_eq!(index.lookup(o(109)), entry(109, 120));
    index.seal().unwrap();
    let expected = offset_bytes(&[(4, 50), (9, 120), (10, 200), (11, 300)]);
    assert_eq!(fs::read(temp.path().join("i")).unwrap(), expected);
    let missing = OffsetIndex::open_active(&dir, "none", o(0), 4096, MODE).unwrap_err();
    assert!(missing.is_not_found());
}

/// OIX-04, TIX-04: full by Kafka's count, the last slot of a time index kept for its end.
#[test]
fn an_index_is_full_when_kafka_says_so() {
    let temp = TempDir::new().unwrap();
    let dir = dir(&temp);
    let index = OffsetIndex::create(&dir, "i", o(0), 31, MODE).unwrap();
    let times = TimeIndex::create(&dir, "t", o(0), 40, MODE).unwrap();
    index.reserve(100).unwrap();
    times.reserve(100).unwrap();
    for i in 1..=3_u32 {
        assert!(!index.is_full());
        assert_eq!(index.append(o(i64::from(i)), i), Append::Stored);
    }
    assert!(index.is_full());
    assert_eq!(index.append(o(9), 9), Append::Full);
    assert_eq!(times.append(t(10), o(0)), Append::Stored);
    assert!(!times.is_full());
    assert_eq!(times.append(t(20), o(1)), Append::Stored);
    assert!(times.is_full());
    assert_eq!(times.append(t(30), o(2)), Append::Full);
    assert_eq!(times.append_final(t(40), o(0)), Append::OutOfOrder);
    assert_eq!(times.append_final(t(20), o(5)), Append::Unchanged);
    assert_eq!(times.append_final(t(30), o(2)), Append::Stored);
    assert_eq!(times.append_final(t(40), o(3)), Append::Full);
    assert!(fs::metadata(temp.path().join("i")).unwrap().len() <= 24);
    index.seal().unwrap();
    times.seal().unwrap();
    assert_eq!(fs::metadata(temp.path().join("t")).unwrap().len(), 36);
}

#[test]
fn a_time_index_answers_with_the_entry_before() {
    let temp = TempDir::new().unwrap();
    let index = TimeIndex::create(&dir(&temp), "t", o(100), MAX, MODE).unwrap();
    let none = TimeEntry { timestamp: Timestamp::NONE, offset: o(100) };
    assert_eq!((index.lookup(t(5)), index.last()), (none, None));
    index.reserve(3).unwrap();
    assert_eq!(index.append(t(-1), o(100)), Append::Unchanged, "no timestamp");
    assert_eq!(index.append(t(i64::MIN), o(100)), Append::Unchanged);
    assert_eq!(index.append(t(5), o(103)), Append::Stored);
    assert_eq!(index.append(t(5), o(109)), Append::Unchanged);
    assert_eq!(index.append(t(i64::MAX), o(110)), Append::Stored);
    assert_eq!(index.lookup(t(4)), none);
    assert_eq!(index.lookup(t(i64::MIN)), none);
    assert_eq!(index.lookup(t(5)), TimeEntry { timestamp: t(5), offset: o(103) });
    assert_eq!(index.lookup(t(i64::MAX - 1)).offset, o(103));
    assert_eq!(index.last(), Some(TimeEntry { timestamp: t(i64::MAX), offset: o(110) }));
    assert!(index.check(o(111)).is_ok());
    assert!(index.check(o(110)).is_err());
    index.seal().unwrap();
    let bytes = fs::read(temp.path().join("t")).unwrap();
    assert_eq!(bytes, time_bytes(&[(5, 3), (i64::MAX, 10)]));
}

/// F040, F045, F046: zeros are no entries. F027: a part of an entry is none.
#[test]
fn padding_is_not_read_as_entries() {
    let temp = TempDir::new().unwrap();
    let entries = offset_bytes(&[(4, 50), (9, 120)]);
    let times = time_bytes(&[(7, 4), (8, 9)]);
    for zeros in [0, 1, 3, 7, 8, 11, 12, 16, 120, 4096, 12_000, 65_536] {
        let padded = [&entries[..], &vec![0; zeros]].concat();
        let index = sealed(&temp, &padded);
        assert_eq!((index.entries(), index.lookup(o(500))), (2, entry(109, 120)), "{zeros}");
        let padded = [&times[..], &vec![0; zeros]].concat();
        let index = sealed_time(&temp, &padded);
        assert_eq!((index.entries(), index.last().unwrap().timestamp), (2, t(8)), "{zeros}");
        // Nothing was ever written to it.
        let index = sealed(&temp, &vec![0; zeros + 16]);
        assert_eq!((index.entries(), index.lookup(o(500))), (0, entry(100, 0)), "{zeros}");
        let index = sealed_time(&temp, &vec![0; zeros + 24]);
        assert_eq!((index.entries(), index.last()), (0, None), "{zeros}");
    }
    // A single entry of zeros says "the batch at the base, with timestamp 0" and can be true.
    assert_eq!(sealed_time(&temp, &[0; 12]).last(), Some(TimeEntry { timestamp: t(0), offset: o(100) }));
    assert_eq!(sealed(&temp, &[0; 8]).entries(), 0);
    let mut with_first = offset_bytes(&[(0, 0), (5, 70)]);
    with_first.resize(800, 0);
    assert_eq!(sealed(&temp, &with_first).entries(), 2);
}

/// F132 and worse: what cannot be an index answers as an empty one.
#[test]
fn no_file_no_bytes_or_no_file_at_all_is_an_empty_index() {
    let temp = TempDir::new().unwrap();
    let dir = dir(&temp);
    fs::create_dir(temp.path().join("d")).unwrap();
    fs::write(temp.path().join("empty"), b"").unwrap();
    for name in ["none", "d", "empty"] {
        let index = OffsetIndex::open_sealed(&dir, name, o(100));
        assert_eq!((index.entries(), index.lookup(o(500))), (0, entry(100, 0)), "{name}");
        assert_eq!(index.check(100, o(200)).is_err(), name != "empty", "{name}");
        let index = TimeIndex::open_sealed(&dir, name, o(100));
        assert_eq!((index.entries(), index.lookup(t(5)).offset), (0, o(100)), "{name}");
        assert_eq!(index.check(o(200)).is_err(), name != "empty", "{name}");
    }
    // It is looked for again: the file may come back with a rebuild.
    let index = OffsetIndex::open_sealed(&dir, "late", o(100));
    assert_eq!(index.entries(), 0);
    fs::write(temp.path().join("late"), offset_bytes(&[(4, 50)])).unwrap();
    assert_eq!(index.entries(), 1);
    let active = OffsetIndex::open_active(&dir, "empty", o(100), 4096, MODE).unwrap();
    active.seal().unwrap();
    active.sync().unwrap();
}

#[test]
fn what_cannot_be_true_is_found() {
    let temp = TempDir::new().unwrap();
    let problem = |entries: &[(i32, i32)]| {
        sealed(&temp, &offset_bytes(entries)).check(1000, o(200)).map_err(|p| p.entry)
    };
    assert_eq!(problem(&[(4, 50), (9, 120)]), Ok(()));
    assert_eq!(problem(&[(4, 50), (4, 120)]), Err(Some(1)));
    assert_eq!(problem(&[(4, 50), (3, 120)]), Err(Some(1)));
    assert_eq!(problem(&[(4, 50), (9, 50)]), Err(Some(1)));
    assert_eq!(problem(&[(4, 1000)]), Err(Some(0)));
    assert_eq!(problem(&[(100, 50)]), Err(Some(0)));
    assert_eq!(problem(&[(-4, 50)]), Err(Some(0)));
    assert_eq!(problem(&[(4, -50)]), Err(Some(0)));
    let problem =
        |entries: &[(i64, i32)]| sealed_time(&temp, &time_bytes(entries)).check(o(200)).map_err(|p| p.entry);
    assert_eq!(problem(&[(7, 4), (8, 4)]), Ok(()));
    assert_eq!(problem(&[(7, 4), (7, 5)]), Err(Some(1)));
    assert_eq!(problem(&[(7, 4), (8, 3)]), Err(Some(1)));
    assert_eq!(problem(&[(-7, 4)]), Err(Some(0)));
    assert_eq!(problem(&[(7, 100)]), Err(Some(0)));
    fs::write(temp.path().join("i"), offset_bytes(&[(4, 50)])).unwrap();
    let far = OffsetIndex::open_sealed(&dir(&temp), "i", Offset::MAX);
    assert_eq!(
        (far.entry(0), far.lookup(Offset::MAX)),
        (None, OffsetEntry { offset: Offset::MAX, position: 0 })
    );
    assert!(far.check(1000, Offset::MAX).is_err());
}

#[test]
fn a_copy_of_an_active_file_ends_where_it_stops_increasing() {
    let temp = TempDir::new().unwrap();
    let dir = dir(&temp);
    let mut bytes = offset_bytes(&[(4, 50), (9, 120), (9, 130), (10, 200)]);
    bytes.resize(4096, 0);
    fs::write(temp.path().join("i"), bytes).unwrap();
    let copy = OffsetIndex::read_copy(&dir, "i", o(100)).unwrap();
    assert_eq!((copy.entries(), copy.lookup(o(500))), (2, entry(109, 120)));
    let mut bytes = time_bytes(&[(7, 4), (8, 9)]);
    bytes.resize(4096, 0);
    fs::write(temp.path().join("t"), bytes).unwrap();
    let copy = TimeIndex::read_copy(&dir, "t", o(100)).unwrap();
    assert_eq!((copy.entries(), copy.last().unwrap().offset), (2, o(109)));
    fs::write(temp.path().join("i"), b"").unwrap();
    assert_eq!(OffsetIndex::read_copy(&dir, "i", o(100)).unwrap().entries(), 0);
    assert!(OffsetIndex::read_copy(&dir, "none", o(100)).unwrap_err().is_not_found());
}

/// The example of the specification: batches of 3000, 2000, 2000, 2000 and 1000 bytes under an interval of 4096.
#[test]
fn an_entry_is_due_after_more_than_the_interval() {
    let batch = |last: i64, position, size_bytes, at| BatchAt {
        last_offset: o(last),
        max_timestamp: t(at),
        position,
        size_bytes,
    };
    let mut pacer = IndexPacer::new(4096);
    assert_eq!(pacer.observe(&batch(0, 0, 3000, 50)), None);
    assert_eq!(pacer.observe(&batch(1, 3000, 2000, 90)), None);
    let time = Some(TimeEntry { timestamp: t(90), offset: o(1) });
    assert_eq!(
        pacer.observe(&batch(2, 5000, 2000, 90)),
        Some(Due { last_offset: o(2), position: 5000, time })
    );
    assert_eq!(pacer.observe(&batch(3, 7000, 2000, 10)), None);
    assert_eq!(pacer.largest(), time, "the earliest of those with the maximum");
    // Restarted after the first batch, as the broker was: the count begins at 0 again.
    let mut pacer = IndexPacer::resume(4096, Some(TimeEntry { timestamp: t(50), offset: o(0) }));
    let due: Vec<_> = [
        batch(1, 3000, 2000, 60),
        batch(2, 5000, 2000, 70),
        batch(3, 7000, 2000, 80),
        batch(4, 9000, 1000, 90),
    ]
    .iter()
    .filter_map(|batch| pacer.observe(batch))
    .collect();
    let time = Some(TimeEntry { timestamp: t(90), offset: o(4) });
    assert_eq!(due, [Due { last_offset: o(4), position: 9000, time }]);
    // With interval 0 every batch but the first; exactly the interval is not more than it.
    let mut pacer = IndexPacer::new(0);
    assert!(pacer.observe(&batch(0, 0, 61, -1)).is_none());
    assert_eq!(pacer.observe(&batch(1, 61, 61, -1)).unwrap().time, None, "no record had a timestamp");
    let mut pacer = IndexPacer::new(61);
    assert!(pacer.observe(&batch(0, 0, 61, 1)).is_none());
    assert!(pacer.observe(&batch(1, 61, 61, 1)).is_none());
    assert!(pacer.observe(&batch(2, 122, 61, 1)).is_some());
}

#[test]
fn a_rebuilt_index_replaces_the_old_file_and_its_reader_keeps_it() {
    let temp = TempDir::new().unwrap();
    let dir = dir(&temp);
    let old = sealed(&temp, &offset_bytes(&[(1, 1); 600]));
    assert_eq!(old.entries(), 600);
    let mut builder = IndexBuilder::new(o(100), 0, MAX);
    for i in 0..10_u32 {
        builder.observe(&BatchAt {
            last_offset: o(100 + i64::from(i)),
            max_timestamp: t(1000 - i64::from(i)),
            position: i * 70,
            size_bytes: 70,
        });
    }
    let mut cut = builder.clone();
    assert_eq!(builder.last_offset_entry(), Some(entry(109, 630)));
    builder.finish();
    builder.write(&dir, "i", "t", MODE, true).unwrap();
    assert_eq!(old.entry(599), Some(entry(101, 1)), "mapped, not cut under it");
    let index = OffsetIndex::open_sealed(&dir, "i", o(100));
    assert_eq!(
        (index.entries(), index.entry(0), index.last()),
        (9, Some(entry(101, 70)), Some(entry(109, 630)))
    );
    let times = TimeIndex::open_sealed(&dir, "t", o(100));
    assert_eq!((times.entries(), times.last()), (1, Some(TimeEntry { timestamp: t(1000), offset: o(100) })));
    assert_eq!(dir.list().unwrap().len(), 2, "no temporary file is left");
    cut.truncate_to(o(104));
    assert_eq!(cut.last_offset_entry(), Some(entry(103, 210)));
    cut.truncate_to(o(0));
    assert_eq!((cut.last_offset_entry(), cut.largest()), (None, None));
}

/// F108: where the disk has no room for a rebuilt index, it is used from memory and written when sealed.
#[test]
fn an_index_in_memory_is_written_at_the_seal() {
    let temp = TempDir::new().unwrap();
    let dir = dir(&temp);
    fs::write(temp.path().join("i"), b"garbage that nobody can use").unwrap();
    let mut builder = IndexBuilder::new(o(100), 0, MAX);
    for i in 0..3_u32 {
        builder.observe(&BatchAt {
            last_offset: o(100 + i64::from(i)),
            max_timestamp: t(i64::from(i)),
            position: i * 70,
            size_bytes: 70,
        });
    }
    let (index, times) = builder.into_memory(&dir, "i", "t", MODE).unwrap();
    index.reserve(1).unwrap();
    times.reserve(1).unwrap();
    assert_eq!(index.append(o(103), 210), Append::Stored);
    assert_eq!(times.append_final(t(9), o(103)), Append::Stored);
    assert_eq!(index.lookup(o(102)), entry(102, 140));
    index.seal().unwrap();
    times.seal().unwrap();
    index.sync().unwrap();
    times.sync().unwrap();
    assert_eq!(fs::read(temp.path().join("i")).unwrap(), offset_bytes(&[(1, 70), (2, 140), (3, 210)]));
    assert_eq!(fs::read(temp.path().join("t")).unwrap(), time_bytes(&[(1, 1), (2, 2), (9, 3)]));
    assert_eq!(dir.list().unwrap().len(), 2);
}

/// F130 in small: readers look up while the writer appends, and never see a half of an entry.
#[test]
fn readers_see_whole_entries_while_the_writer_appends() {
    let temp = TempDir::new().unwrap();
    let index = OffsetIndex::create(&dir(&temp), "i", o(0), MAX, MODE).unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = 0;
                while seen < 20_000 {
                    let count = index.entries();
                    assert!(count >= seen);
                    seen = count;
                    let found = index.lookup(Offset::MAX);
                    assert_eq!(found.offset.value(), i64::from(found.position) * 3);
                    assert!(found.position >= count);
                }
            });
        }
        for i in 1..=20_000_u32 {
            index.reserve(1).unwrap();
            assert_eq!(index.append(o(i64::from(i) * 3), i), Append::Stored);
        }
    });
}

/// F128: a full disk is an error of `reserve`, at no moment a signal. Wants a file system of its own, so root.
#[test]
fn a_full_disk_is_an_error_and_the_process_lives() {
    struct Mounted<'a>(&'a Path);
    impl Drop for Mounted<'_> {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(self.0).status();
        }
    }
    let temp = TempDir::new().unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(temp.path()).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a small tmpfs cannot be mounted here");
        return;
    }
    let _mounted = Mounted(temp.path());
    let dir = dir(&temp);
    let index = OffsetIndex::create(&dir, "i", o(0), 64 * 1024, MODE).unwrap();
    let ballast = dir.open_file("ballast", Open::CreateNew { mode: MODE }).unwrap();
    let room = dir.free_bytes().unwrap();
    // Three pages: one, then one more, then doubling asks for two where one is left.
    ballast.zero_fill(0, room - 3 * 4096).unwrap();
    let mut stored = 0_u32;
    let error = loop {
        if let Err(error) = index.reserve(1) {
            break error;
        }
        assert_eq!(index.append(o(i64::from(stored) + 1), stored + 1), Append::Stored);
        stored += 1;
    };
    assert!(error.is_storage_full(), "{error}");
    assert_eq!((index.entries(), index.append(o(1 << 20), 1 << 20)), (stored, Append::Unreserved));
    assert_eq!(stored, 3 * 512, "each page that there was is used");
    assert!(index.reserve(1).unwrap_err().is_storage_full(), "again, and nothing is broken by it");
    assert_eq!(index.lookup(o(300)), entry(300, 300));
    // Not sticky: it goes on once there is room.
    ballast.set_len(0).unwrap();
    index.reserve(1).unwrap();
    assert_eq!(index.append(o(1 << 20), 1 << 20), Append::Stored);
    index.seal().unwrap();
    assert_eq!(dir.stat("i").unwrap().unwrap().len, 1537 * 8);
    drop((index, ballast));
}

#[cfg(feature = "sim")]
mod injected {
    use rustix::io::Errno;

    use super::*;
    use crate::sys::recorder::{Call, Fault, Recording};

    /// F100: without reservation an index works all the same, and its file is right once sealed.
    #[test]
    fn an_index_works_where_nothing_can_be_reserved() {
        for errno in [Errno::OPNOTSUPP, Errno::INVAL, Errno::NOSYS, Errno::PERM, Errno::BADF] {
            // From the beginning, and from the second step on.
            for after in [0, 1] {
                let temp = TempDir::new().unwrap();
                let recording = Recording::install(temp.path()).unwrap();
                recording.fail(Fault {
                    call: Some(Call::Preallocate),
                    after,
                    times: usize::MAX,
                    errno: errno.raw_os_error(),
                    short_bytes: None,
                });
                let dir = dir(&temp);
                let index = OffsetIndex::create(&dir, "i", o(0), MAX, MODE).unwrap();
                for i in 1..=2000_u32 {
                    index.reserve(1).unwrap();
                    assert_eq!(index.append(o(i64::from(i)), i), Append::Stored);
                }
                assert_eq!(index.lookup(o(1234)), entry(1234, 1234));
                index.seal().unwrap();
                let expected: Vec<(i32, i32)> = (1..=2000).map(|i| (i, i)).collect();
                assert_eq!(
                    fs::read(temp.path().join("i")).unwrap(),
                    offset_bytes(&expected),
                    "{errno} {after}"
                );
            }
        }
    }

    /// Each call fails once: the index answers right, and goes on.
    #[test]
    fn a_failed_call_loses_no_entry() {
        let run = |fault: Option<Fault>| {
            let temp = TempDir::new().unwrap();
            let recording = Recording::install(temp.path()).unwrap();
            if let Some(fault) = fault {
                recording.fail(fault);
            }
            let dir = dir(&temp);
            let index = OffsetIndex::create(&dir, "i", o(0), MAX, MODE)
                .or_else(|_| OffsetIndex::create(&dir, "i", o(0), MAX, MODE))
                .unwrap();
            for i in 1..=1200_u32 {
                index.reserve(1).or_else(|_| index.reserve(1)).unwrap();
                assert_eq!(index.append(o(i64::from(i)), i), Append::Stored);
            }
            index.seal().or_else(|_| index.seal()).unwrap();
            index.sync().or_else(|_| index.sync()).unwrap();
            let expected: Vec<(i32, i32)> = (1..=1200).map(|i| (i, i)).collect();
            assert_eq!(fs::read(temp.path().join("i")).unwrap(), offset_bytes(&expected), "{fault:?}");
            recording.calls()
        };
        let calls = run(None);
        assert!(calls > 3);
        for n in 0..calls {
            run(Some(Fault::nth(n, Errno::NOSPC.raw_os_error())));
            run(Some(Fault::nth(n, Errno::IO.raw_os_error())));
        }
    }
}

/// Entries that increase, by steps.
fn increasing() -> impl Strategy<Value = Vec<(i32, i32)>> {
    let steps = prop_oneof![
        prop::collection::vec((1..5_i32, 1..1000_i32), 0..10),
        prop::collection::vec((1..50_000_i32, 1..100_000_i32), 1000),
    ];
    steps.prop_map(|steps| {
        let (mut relative, mut position) = (0, 0);
        steps
            .into_iter()
            .map(|(by, on)| {
                relative += by;
                position += on;
                (relative, position)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// F038: every target gives the last entry at or below it.
    #[test]
    fn look_up_finds_the_floor(entries in increasing(), padding in 0_usize..40) {
        let temp = TempDir::new().unwrap();
        let mut bytes = offset_bytes(&entries);
        bytes.resize(bytes.len() + padding, 0);
        let index = sealed(&temp, &bytes);
        let times: Vec<(i64, i32)> = entries.iter().map(|(a, b)| (i64::from(*b), *a)).collect();
        let time_index = sealed_time(&temp, &time_bytes(&times));
        prop_assert_eq!(index.entries() as usize, entries.len());
        let mut targets: Vec<i64> = entries.iter().flat_map(|(a, _)| [-1, 0, 1].map(|by| i64::from(a + by))).collect();
        targets.extend([-100, -1, 0, i64::from(i32::MAX), i64::MAX - 100]);
        for target in targets {
            let floor = entries.iter().rev().find(|(a, _)| i64::from(*a) <= target);
            let expected = floor.map_or(entry(100, 0), |(a, p)| entry(100 + i64::from(*a), u32::try_from(*p).unwrap()));
            prop_assert_eq!(index.lookup(o(100 + target)), expected);
        }
        for (at, _) in &times {
            for target in [at - 1, *at, at + 1] {
                let floor = times.iter().rev().find(|(at, _)| *at <= target);
                let expected = floor.map_or((-1, 100), |(at, a)| (*at, 100 + i64::from(*a)));
                let found = time_index.lookup(t(target));
                prop_assert_eq!((found.timestamp.millis(), found.offset.value()), expected);
            }
        }
    }

    /// Any bytes are an index: every question has an answer, and an answer is an entry or the beginning.
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..400), target: i64) {
        let temp = TempDir::new().unwrap();
        let target = o(target & i64::MAX);
        let index = sealed(&temp, &bytes);
        let found = index.lookup(target);
        let known = (0..index.entries()).filter_map(|at| index.entry(at)).any(|entry| entry == found);
        prop_assert!(known || found == entry(100, 0));
        let _ = (index.last(), index.check(1000, target), index.position_from(5), index.next_position_after(index.floor(target)));
        let index = sealed_time(&temp, &bytes);
        let _ = (index.lookup(t(target.value())), index.last(), index.check(target));
        let copy = OffsetIndex::read_copy(&dir(&temp), "i", o(100)).unwrap();
        prop_assert!(copy.entries() as usize <= bytes.len() / 8);
        let active = OffsetIndex::open_active(&dir(&temp), "i", o(100), 800, MODE).unwrap();
        active.reserve(2).unwrap();
        let _ = active.append(target, 5);
        active.seal().unwrap();
    }

    /// Appending and rebuilding give the same bytes, whatever the batches.
    #[test]
    fn a_rebuilt_index_is_the_appended_one(
        batches in prop::collection::vec((1..20_i64, 61..3000_u32, -2..50_i64), 0..200),
        interval in 0..5000_u32,
        max_bytes in 24..400_u32,
    ) {
        let temp = TempDir::new().unwrap();
        let dir = dir(&temp);
        let index = OffsetIndex::create(&dir, "i", o(100), max_bytes, MODE).unwrap();
        let times = TimeIndex::create(&dir, "t", o(100), max_bytes, MODE).unwrap();
        let mut pacer = IndexPacer::new(interval);
        let mut builder = IndexBuilder::new(o(100), interval, max_bytes);
        let (mut end, mut position) = (100, 0);
        for (count, size_bytes, at) in batches {
            if index.is_full() || times.is_full() {
                break;
            }
            end += count;
            let batch = BatchAt { last_offset: o(end - 1), max_timestamp: t(at), position, size_bytes };
            position += size_bytes;
            index.reserve(1).unwrap();
            times.reserve(1).unwrap();
            if let Some(due) = pacer.observe(&batch) {
                prop_assert_eq!(index.append(due.last_offset, due.position), Append::Stored);
                if let Some(time) = due.time {
                    let added = times.append(time.timestamp, time.offset);
                    prop_assert!(matches!(added, Append::Stored | Append::Unchanged));
                }
            }
            builder.observe(&batch);
        }
        prop_assert_eq!(pacer, builder.pacer());
        if let Some(largest) = pacer.largest() {
            let added = times.append_final(largest.timestamp, largest.offset);
            prop_assert!(matches!(added, Append::Stored | Append::Unchanged));
        }
        index.check(u64::from(position), o(end)).unwrap();
        times.check(o(end)).unwrap();
        index.seal().unwrap();
        times.seal().unwrap();
        builder.finish();
        let (offset_bytes, time_bytes) = builder.to_bytes();
        prop_assert_eq!(fs::read(temp.path().join("i")).unwrap(), offset_bytes);
        prop_assert_eq!(fs::read(temp.path().join("t")).unwrap(), time_bytes);
    }
}
