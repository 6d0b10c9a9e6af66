//! A directory that others work in too, one after the other: a broker that appends to a log of ours, or holds the data
//! directory.
#![expect(clippy::unwrap_used, reason = "a test ends where its own calls fail")]

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::FileExt,
    path::Path,
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};
use stratalog::{
    AppendOptions, Error, LogReader, LogWriter, Offset, Preallocate, ReadOptions,
    record::{BatchBuilder, BatchOptions, Record},
};

use crate::support::{TempLog, at, expected, fill, pairs};

/// Appends a batch as somebody does who knows nothing of our files; `base` names the segment.
fn append_as_a_broker(dir: &Path, base: i64, from: i64, to: i64) {
    let options = BatchOptions { base_offset: at(from), leader_epoch: 2, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for offset in from..to {
        builder.push(Record::value_only(offset.to_string().as_bytes())).unwrap();
    }
    let name = dir.join(format!("{base:020}.log"));
    let mut file = File::options().append(true).create(true).open(name).unwrap();
    file.write_all(builder.finish().unwrap()).unwrap();
}

#[test]
fn readers_see_what_a_broker_appended_after_a_writer_that_is_gone() {
    for how in ["closed", "killed", "killed while opening"] {
        let is_closed = how == "closed";
        let log = TempLog::with(|config| {
            config.preallocate = Preallocate::Off;
            config.segment_bytes = 1 << 20;
        });
        let mut writer = log.open();
        fill(&mut writer, 20);
        let dir = if is_closed {
            writer.close().unwrap();
            log.path()
        } else {
            // What SIGKILL leaves: the same files, and nobody who holds the lock.
            let copy = log.temp.path().join("copy-0");
            fs::create_dir(&copy).unwrap();
            for entry in fs::read_dir(log.path()).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
            }
            if how == "killed while opening" {
                // The state's word in the control page.
                let page = File::options().write(true).open(copy.join(".stratalog-control")).unwrap();
                page.write_all_at(&1_u64.to_le_bytes(), 32).unwrap();
            }
            copy
        };
        let early = LogReader::open(&dir, ReadOptions::default()).unwrap();
        assert_eq!(early.end(), at(20));
        append_as_a_broker(&dir, 0, 20, 30);
        let open = || LogReader::open(&dir, ReadOptions::default()).unwrap();
        assert_eq!(pairs(&open()), expected(0..30), "{how}");
        assert_eq!(early.refresh().unwrap(), at(30), "{how}");
        append_as_a_broker(&dir, 30, 30, 40);
        assert_eq!(pairs(&open()), expected(0..40), "{how}");
        assert_eq!(early.refresh().unwrap(), at(40), "{how}");
        assert_eq!(pairs(&early), expected(0..40), "{how}");
        assert!(early.durable_end() <= at(20), "nobody said that the rest is durable");

        let mut writer = LogWriter::open(&dir, log.config.clone()).unwrap();
        assert_eq!(writer.end(), at(40), "{how}");
        fill(&mut writer, 1);
        assert_eq!(pairs(&open()), expected(0..41), "{how}");
    }
}

#[test]
fn a_reader_sees_nothing_that_a_living_writer_did_not_publish() {
    let log = TempLog::with(|config| config.preallocate = Preallocate::Off);
    let mut writer = log.open();
    fill(&mut writer, 20);
    append_as_a_broker(&log.path(), 0, 20, 21);
    assert_eq!(log.reader().end(), at(20));
}

#[test]
fn no_directory_is_made_below_a_broker_that_runs() {
    let log = TempLog::small();
    let above = log.temp.path();
    fs::write(above.join("meta.properties"), "version=1\n").unwrap();
    let lock = File::create(above.join(".lock")).unwrap();
    let whole = libc::flock {
        l_type: i16::try_from(libc::F_WRLCK).unwrap(),
        l_whence: 0,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&lock, FcntlArg::F_OFD_SETLK(&whole)).unwrap();
    match LogWriter::open(log.path(), log.config.clone()) {
        Err(Error::Locked { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(!log.path().exists());
    drop(lock);
    assert_eq!(log.open().end(), Offset::ZERO);
}

#[test]
fn a_view_from_outside_passes_over_no_segment_while_many_begin() {
    // A disk's directory, whose listing has no order: on one in memory it has.
    let log = TempLog::with(|config| {
        config.segment_bytes = 1024;
        config.preallocate = Preallocate::Off;
    });
    let mut writer = log.open();
    fill(&mut writer, 3000);
    let reader = log.reader();
    let mut walk = reader.batches(at(2900));
    let mut expected = at(2900);
    let appending = std::thread::spawn(move || {
        let value = [b'v'; 900];
        for _ in 0..2000 {
            writer.append_records(&[Record::value_only(&value)], AppendOptions::default()).unwrap();
        }
        writer
    });
    while expected < at(5000) {
        reader.refresh().unwrap();
        while let Some(batch) = walk.next_batch().unwrap() {
            assert_eq!(batch.base_offset(), expected, "records were passed over");
            expected = batch.next_offset().unwrap();
        }
    }
    drop(appending.join().unwrap());
}
