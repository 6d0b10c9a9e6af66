//! What goes in comes out, at every offset, in this process and in another's view, before and after a reopen.

use stratalog::{AppendOptions, Durability, Error, FsyncPolicy, LogWriter};

use crate::support::{TempLog, all, at, expected, fill, pairs, put};

#[test]
fn records_come_back_in_order_across_segments_and_reopens() {
    let temp = TempLog::small();
    let mut log = temp.open();
    fill(&mut log, 500);
    assert!(log.reader().segments().len() > 5);
    assert_eq!(pairs(&log.reader()), expected(0..500));
    assert_eq!(pairs(&temp.reader()), expected(0..500));
    log.close().unwrap();
    let mut log = temp.open();
    assert!(log.recovery().clean, "{:?}", log.recovery());
    assert_eq!(log.end(), at(500));
    fill(&mut log, 100);
    assert_eq!(pairs(&log.reader()), expected(0..600));
    drop(log);
    let log = temp.open();
    assert!(!log.recovery().clean);
    assert_eq!(log.recovery().cut, None);
    assert_eq!(pairs(&log.reader()), expected(0..600));
}

#[test]
fn every_offset_can_be_read_alone() {
    let temp = TempLog::small();
    let mut log = temp.open();
    fill(&mut log, 300);
    let readers = [log.reader(), temp.reader()];
    for reader in &readers {
        for offset in 0..300 {
            let record = reader.record(at(offset)).unwrap().unwrap();
            assert_eq!(
                (record.offset, record.value.as_deref()),
                (at(offset), Some(offset.to_string().as_bytes()))
            );
            let mut bytes = Vec::new();
            let outcome = reader.read(at(offset), 1, &mut bytes).unwrap();
            assert_eq!(outcome.next, at(offset + 1));
            let slice = reader.slice(at(offset), 1).unwrap().unwrap();
            let mut sliced = vec![0; slice.len() as usize];
            slice.read_into(&mut sliced).unwrap();
            assert_eq!(sliced, bytes);
        }
        assert!(matches!(reader.record(at(300)), Err(Error::OffsetOutOfRange { .. })));
        assert!(reader.slice(at(300), 1).unwrap().is_none());
        assert!(matches!(reader.slice(at(301), 1), Err(Error::OffsetOutOfRange { .. })));
    }
}

#[test]
fn an_acknowledgement_says_how_safe_the_records_are() {
    let temp = TempLog::with(|config| config.fsync = FsyncPolicy::Commit);
    let mut log = temp.open();
    assert_eq!(put(&mut log, b"a").durability, Durability::Durable);
    assert_eq!(log.durable_end(), at(1));
    let pending =
        log.append_records_deferred(&[stratalog::record::Record::value_only(b"b")], AppendOptions::default());
    let pending = pending.unwrap();
    assert!(!pending.is_durable());
    assert_eq!((log.end(), log.durable_end()), (at(2), at(1)));
    assert_eq!(pending.wait().unwrap().durability, Durability::Durable);
    assert_eq!(log.durable_end(), at(2));
}

#[test]
fn an_expected_offset_guards_an_append() {
    let temp = TempLog::small();
    let mut log = temp.open();
    fill(&mut log, 3);
    let options = AppendOptions { expected: Some(at(2)), ..AppendOptions::default() };
    let refused = log.append_records(&[stratalog::record::Record::value_only(b"x")], options);
    assert!(matches!(refused, Err(Error::UnexpectedOffset { .. })));
    assert_eq!(all(&log.reader()).len(), 3);
}

#[test]
fn a_directory_of_other_files_is_no_log_unless_one_is_asked_for() {
    let temp = TempLog::small();
    std::fs::create_dir(temp.path()).unwrap();
    std::fs::write(temp.path().join("notes.txt"), "not ours").unwrap();
    let mut config = temp.config.clone();
    config.open = stratalog::OpenMode::MustExist;
    let refused = LogWriter::open(temp.path(), config.clone());
    assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1, "nothing was made");
    temp.open().close().unwrap();
    LogWriter::open(temp.path(), config).unwrap();
}

#[test]
fn a_second_writer_is_refused() {
    let temp = TempLog::small();
    let log = temp.open();
    let second = LogWriter::open(temp.path(), temp.config.clone());
    assert!(matches!(second, Err(Error::Locked { .. })), "{second:?}");
    drop(log);
    temp.open();
}
