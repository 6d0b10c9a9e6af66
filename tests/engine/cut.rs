//! Readers that a cut happened under: never other records at an offset they had passed without being told.

use std::{fs, os::unix::fs::FileExt, time::Instant};

use stratalog::{AppendOptions, Error, FsyncPolicy, LogReader, LogWriter, Position, Wait, record::Record};

use crate::support::{TempLog, at, expected, fill, pairs};

/// A log of 20 records whose last five are torn away behind a killed writer, and what followed.
fn torn(log: &TempLog) -> impl FnOnce() -> LogWriter + '_ {
    || {
        let path = log.path().join("00000000000000000000.log");
        let reader = LogReader::open(log.path(), stratalog::ReadOptions::default()).unwrap();
        let mut batches = reader.batches(at(15));
        batches.next_batch().unwrap().unwrap();
        let (_, position) = batches.position_of_last().unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0xAA; 4], position + 62).unwrap();
        let writer = log.open();
        assert_eq!(writer.recovery().cut.as_ref().unwrap().offset, at(15));
        writer
    }
}

fn others(writer: &mut LogWriter, count: u64) {
    for _ in 0..count {
        let value = format!("other {}", writer.end());
        writer.append_records(&[Record::value_only(value.as_bytes())], AppendOptions::default()).unwrap();
    }
}

#[test]
fn a_walk_that_had_passed_the_cut_is_told_and_goes_on_there() {
    // Fewer records than were cut, as many, and more.
    for count in [0, 2, 5, 50] {
        let log = TempLog::in_memory(|_| {});
        let mut writer = log.open();
        fill(&mut writer, 20);
        let outside = log.reader();
        let mut walk = outside.records(at(0));
        while walk.next_record().unwrap().is_some() {}
        let position = walk.position();
        assert_eq!((position.offset, position.leader_epoch), (at(20), Some(0)));
        drop(writer);
        let mut writer = torn(&log)();
        others(&mut writer, count);
        outside.refresh().unwrap();
        let error = walk.next_record().unwrap_err();
        assert!(matches!(error, Error::Truncated { end } if end == at(15)), "{count}: {error}");
        let waited = outside.wait_past(position, Instant::now());
        assert_eq!(waited, Wait::Truncated { end: at(15) }, "{count}");
        // A position that was kept says the same to a reader that begins now.
        let fresh = log.reader();
        let error = fresh.records(position).next_record().unwrap_err();
        assert!(matches!(error, Error::Truncated { end } if end == at(15)), "{count}: {error}");
        let end = 15 + i64::try_from(count).unwrap();
        for reader in [&outside, &fresh] {
            let mut wanted = expected(0..15);
            wanted.extend((15..end).map(|offset| (offset, format!("other {offset}"))));
            assert_eq!(pairs(reader), wanted);
        }
    }
}

/// A power cut can leave a file that ends, or goes on with zeros, just where a batch does: nothing is there to be cut, and
/// readers had seen more all the same.
#[test]
fn records_that_are_gone_without_a_trace_were_cut_too() {
    // What the page says of this boot's writer, or none of this boot; a shorter file, or zeros.
    for (has_page, ends_in_zeros) in [(true, true), (true, false), (false, true), (false, false)] {
        let log = TempLog::in_memory(|config| config.fsync = FsyncPolicy::Never);
        let mut writer = log.open();
        fill(&mut writer, 10);
        writer.sync().unwrap();
        fill(&mut writer, 10);
        let outside = log.reader();
        let mut walk = outside.records(at(0));
        while walk.next_record().unwrap().is_some() {}
        let mut batches = outside.batches(at(15));
        batches.next_batch().unwrap().unwrap();
        let (_, position) = batches.position_of_last().unwrap();
        drop((writer, batches));
        let file =
            fs::OpenOptions::new().write(true).open(log.path().join("00000000000000000000.log")).unwrap();
        let len = file.metadata().unwrap().len();
        file.set_len(position).unwrap();
        if ends_in_zeros {
            file.set_len(len).unwrap();
        }
        if !has_page {
            fs::remove_file(log.path().join(".stratalog-control")).unwrap();
        }
        let mut writer = log.open();
        let recovery = writer.recovery();
        assert!(recovery.cut.is_none() && recovery.lost.is_none(), "{recovery:?}");
        assert_eq!(writer.end(), at(15));
        others(&mut writer, 30);
        outside.refresh().unwrap();
        let error = walk.next_record().unwrap_err();
        assert!(
            matches!(error, Error::Truncated { end } if end == at(15)),
            "{has_page} {ends_in_zeros}: {error}"
        );
        assert_eq!(outside.leader_epochs(), [(0, at(0)), (1, at(15))]);
        // A restart that lost nothing begins none.
        drop(writer);
        assert_eq!(log.open().reader().leader_epochs(), [(0, at(0)), (1, at(15))]);
    }
}

#[test]
fn a_walk_that_had_not_passed_the_cut_shows_no_old_record_without_a_word() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 20);
    let outside = log.reader();
    let mut walk = outside.records(at(0));
    for offset in 0..10 {
        assert_eq!(walk.next_record().unwrap().unwrap().offset(), at(offset));
    }
    drop(writer);
    let mut writer = torn(&log)();
    others(&mut writer, 30);
    outside.refresh().unwrap();
    let mut seen = Vec::new();
    let mut told = 0;
    loop {
        match walk.next_record() {
            Ok(Some(record)) => seen.push((
                record.offset().value(),
                String::from_utf8_lossy(record.value().unwrap()).into_owned(),
            )),
            Ok(None) => break,
            Err(Error::Truncated { end }) => {
                told += 1;
                walk = outside.records(Position::from(end));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(told < 3);
    }
    // What it had in memory it may still show, but then it is told, and shows the log as it is from the cut on.
    let old: Vec<_> = expected(10..20);
    let is_old = seen.len() > 30 + 5;
    let before = if is_old { &old[..] } else { &old[..5] };
    assert!(seen.starts_with(before), "{seen:?}");
    assert_eq!(told > 0, is_old);
    let after: Vec<_> = (15..45).map(|offset| (offset, format!("other {offset}"))).collect();
    assert_eq!(seen[before.len()..], after);
}

#[test]
fn a_walk_that_waits_at_an_end_that_is_cut_is_told_though_it_had_read_nothing() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 20);
    let outside = log.reader();
    let mut walk = outside.records(at(20));
    assert!(walk.next_record().unwrap().is_none());
    drop(writer);
    let writer = torn(&log)();
    outside.refresh().unwrap();
    let error = walk.next_record().unwrap_err();
    assert!(matches!(error, Error::Truncated { end } if end == at(15)), "{error}");
    drop(writer);
}
