//! Cutting published records on purpose: what goes, what stays, who is told.

use std::{fs, os::unix::fs::MetadataExt, time::Instant};

use stratalog::{
    AppendOptions, Error, LogReader, LogWriter, Offset, ReadOptions, Wait,
    inspect::{VerifyOptions, verify},
    record::{BatchOptions, Record, encode_batch},
};

use crate::support::{TempLog, at, expected, fill, pairs};

fn cut(log: &TempLog, end: i64) -> Result<LogWriter, Error> {
    LogWriter::open_cut(log.path(), log.config.clone(), at(end))
}

fn names(log: &TempLog, what: &str) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(log.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(what))
        .collect();
    names.sort();
    names
}

/// Every offset of a log with several segments, closed and killed.
#[test]
fn every_border_between_batches_can_be_cut_at() {
    for is_closed in [true, false] {
        for end in 0..=40 {
            let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
            let mut writer = log.open();
            fill(&mut writer, 40);
            let epoch = writer.leader_epoch();
            if is_closed {
                writer.close().unwrap();
            } else {
                writer.sync().unwrap();
                drop(writer);
            }
            let mut writer = cut(&log, end).unwrap();
            assert_eq!((writer.end(), writer.durable_end()), (at(end), at(end)));
            assert_eq!(pairs(&writer.reader()), expected(0..end), "{end}");
            assert_eq!(writer.leader_epoch(), epoch + i32::from(end < 40), "{end}");
            let report = writer.recovery().clone();
            assert_eq!(report.cut.is_some(), end < 40);
            assert!(report.lost.is_none() && report.warnings.is_empty(), "{report:?}");
            if let Some(cut) = report.cut {
                assert_eq!(cut.offset, at(end));
                assert!(cut.bytes > 0 && cut.kept_in.iter().all(|kept| kept.is_file()), "{cut:?}");
                assert_eq!(writer.reader().leader_epochs().last(), Some(&(epoch + 1, at(end))));
            }
            fill(&mut writer, 3);
            writer.close().unwrap();
            let writer = log.open();
            assert!(writer.recovery().clean, "{end}: {:?}", writer.recovery());
            assert_eq!(pairs(&writer.reader()), expected(0..end + 3), "{end}");
            let report = verify(log.path(), &VerifyOptions::default(), &mut |_| {}).unwrap();
            assert!(report.is_clean() && report.warning_count == 0, "{end}: {:?}", report.findings);
        }
    }
}

/// The bytes that were cut are all there, under their names.
#[test]
fn what_is_cut_is_kept_byte_for_byte() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    fill(&mut writer, 40);
    let segments = writer.reader().segments();
    writer.close().unwrap();
    let before: Vec<_> = segments.iter().map(|segment| fs::read(&segment.path).unwrap()).collect();
    assert!(before.len() >= 3);
    let end = segments[1].base_offset.value() + 2;
    let writer = cut(&log, end).unwrap();
    let kept = &writer.recovery().cut.as_ref().unwrap().kept_in;
    let mut bytes = fs::read(&segments[1].path).unwrap();
    let tail = kept.iter().find(|path| path.to_str().unwrap().contains("-from-")).unwrap();
    bytes.extend(fs::read(tail).unwrap());
    assert_eq!(bytes, before[1]);
    for (segment, before) in segments.iter().zip(&before).skip(2) {
        let base = format!("{:020}-log", segment.base_offset.value());
        let whole = kept.iter().find(|path| path.to_str().unwrap().ends_with(&base)).unwrap();
        assert_eq!(&fs::read(whole).unwrap(), before);
    }
    assert!(names(&log, ".new").is_empty());
}

/// A file that somebody has open is never changed: another one takes its place.
#[test]
fn slices_of_records_that_were_cut_stay_true() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 30);
    writer.close().unwrap();
    let reader = log.reader();
    let slice = reader.slice(at(0), 1 << 20).unwrap().unwrap();
    let read = || {
        let mut bytes = vec![0; slice.len() as usize];
        slice.read_into(&mut bytes).unwrap();
        bytes
    };
    let before = read();
    let path = log.path().join("00000000000000000000.log");
    let inode = fs::metadata(&path).unwrap().ino();
    let mut writer = cut(&log, 10).unwrap();
    fill(&mut writer, 30);
    assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
    assert_eq!(read(), before);
}

#[test]
fn readers_of_other_processes_are_told() {
    // Fewer records than were cut, as many, and more; in the same segment and in others.
    for (segment_bytes, count) in [(4096, 0), (4096, 5), (4096, 90), (1024, 0), (1024, 5), (1024, 90)] {
        let log = TempLog::in_memory(|config| config.segment_bytes = segment_bytes);
        let mut writer = log.open();
        fill(&mut writer, 40);
        let outside = log.reader();
        let mut walk = outside.records(at(0));
        while walk.next_record().unwrap().is_some() {}
        let position = walk.position();
        assert_eq!(position.offset, at(40));
        // One that has not got as far as the cut.
        let early = log.reader();
        drop(writer);
        let mut writer = cut(&log, 12).unwrap();
        for _ in 0..count {
            let value = format!("other {}", writer.end());
            writer.append_records(&[Record::value_only(value.as_bytes())], AppendOptions::default()).unwrap();
        }
        let error = loop {
            outside.refresh().unwrap();
            match walk.next_record() {
                Ok(None) => {}
                Ok(Some(record)) => panic!("{segment_bytes} {count}: got {}", record.offset()),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Truncated { end } if end == at(12)), "{count}: {error}");
        assert_eq!(outside.wait_past(position, Instant::now()), Wait::Truncated { end: at(12) });
        let end = 12 + i64::from(count);
        let mut wanted = expected(0..12);
        wanted.extend((12..end).map(|offset| (offset, format!("other {offset}"))));
        early.refresh().unwrap();
        for reader in [&outside, &early, &log.reader(), &writer.reader()] {
            assert_eq!(pairs(reader), wanted, "{segment_bytes} {count}");
        }
    }
}

#[test]
fn a_batch_is_not_cut_in_two() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 3);
    let three = [b"a", b"b", b"c"].map(|value| Record::value_only(value));
    writer.append_records(&three, AppendOptions::default()).unwrap();
    writer.close().unwrap();
    let before = fs::read(log.path().join("00000000000000000000.log")).unwrap();
    match cut(&log, 4) {
        Err(error @ Error::InsideBatch { .. }) => {
            assert!(error.to_string().contains("cut at 3 or at 6"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(log.path().join("00000000000000000000.log")).unwrap(), before);
    assert!(names(&log, "-cut").is_empty());
    assert_eq!(cut(&log, 3).unwrap().end(), at(3));
}

#[test]
fn only_what_is_there_can_be_cut() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    fill(&mut writer, 20);
    writer.advance_start(at(5)).unwrap();
    match cut(&log, 9) {
        Err(Error::Locked { .. }) => {}
        other => panic!("{other:?}"),
    }
    writer.close().unwrap();
    for end in [4, 21, i64::MAX] {
        match cut(&log, end) {
            Err(Error::OffsetOutOfRange { requested, start, end: old }) => {
                assert_eq!((requested, start, old), (Offset::new(end).unwrap(), at(5), at(20)));
            }
            other => panic!("{other:?}"),
        }
    }
    let writer = cut(&log, 5).unwrap();
    assert_eq!((writer.start(), writer.end()), (at(5), at(5)));
    drop(writer);
    assert_eq!(pairs(&log.open().reader()), []);
    let absent = TempLog::with(|config| config.open = stratalog::OpenMode::MustExist);
    assert!(matches!(cut(&absent, 0), Err(Error::NotFound { .. })));
}

/// Compaction leaves gaps; the log then ends with the last record before one.
#[test]
fn an_offset_in_a_gap_cuts_what_lies_behind_it() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 5);
    let mut batch = vec![0; 1024];
    let options = BatchOptions { base_offset: at(20), ..BatchOptions::default() };
    let header = encode_batch(&[Record::value_only(b"20")], &options, &mut batch).unwrap();
    batch.truncate(header.size_bytes() as usize);
    let preserve = AppendOptions { offsets: stratalog::Offsets::Preserve, ..AppendOptions::default() };
    writer.append(&batch, preserve).unwrap();
    writer.close().unwrap();
    let writer = cut(&log, 12).unwrap();
    assert_eq!(writer.end(), at(5));
    assert_eq!(pairs(&writer.reader()), expected(0..5));
}

/// Below damage in the same segment nothing says where a batch begins, so a cut behind it is refused; one at it is not.
#[test]
fn a_damaged_end_can_be_cut_off() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    fill(&mut writer, 40);
    let second = writer.reader().segments()[1].clone();
    writer.close().unwrap();
    let mut bytes = fs::read(&second.path).unwrap();
    bytes[70] ^= 1;
    fs::write(&second.path, bytes).unwrap();
    let base = second.base_offset.value();
    assert!(matches!(cut(&log, base + 3), Err(Error::Corrupt(_))));
    let writer = cut(&log, base).unwrap();
    assert_eq!(pairs(&writer.reader()), expected(0..base));
    let reader = LogReader::open(log.path(), ReadOptions::default()).unwrap();
    assert_eq!(pairs(&reader), expected(0..base));
}
