//! The file of leader epochs and the epochs that batches carry: where they contradict each other, nobody is told of a cut
//! that was none, nor kept from one that was; what a writer leaves never does.

use std::{fs, os::unix::fs::FileExt, time::Instant};

use stratalog::{
    AppendOptions, Error, LogWriter, Offsets, Position, SharedWriter, Wait,
    inspect::{FindingKind, VerifyOptions, VerifyReport, verify},
    record::{BatchOptions, Record, encode_batch},
};

use crate::support::{TempLog, at, expected, fill, pairs};

const NAME: &str = "leader-epoch-checkpoint";

fn checked(log: &TempLog) -> VerifyReport {
    verify(log.path(), &VerifyOptions::default(), &mut |_| {}).unwrap()
}

fn fits(log: &TempLog, case: &str) {
    let report = checked(log);
    assert!(report.is_clean() && report.warning_count == 0, "{case}: {:?}", report.findings);
}

/// The batch of one record as another log has it, of this epoch.
fn foreign(epoch: i32, offset: i64) -> Vec<u8> {
    let mut options = BatchOptions::default();
    (options.base_offset, options.leader_epoch) = (at(offset), epoch);
    let value = expected(offset..offset + 1).remove(0).1;
    let mut batch = vec![0; 4096];
    let header = encode_batch(&[Record::value_only(value.as_bytes())], &options, &mut batch).unwrap();
    batch.truncate(header.size_bytes() as usize);
    batch
}

fn preserving() -> AppendOptions {
    AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() }
}

fn import(writer: &mut LogWriter, epoch: i32, offsets: std::ops::Range<i64>) {
    for offset in offsets {
        writer.append(&foreign(epoch, offset), preserving()).unwrap();
    }
}

fn place(offset: i64, epoch: i32) -> Position {
    Position { offset: at(offset), leader_epoch: Some(epoch) }
}

#[test]
fn a_file_that_names_other_epochs_than_the_batches_is_no_cut() {
    for text in ["0\n1\n2 0\n", "0\n2\n0 0\n1 7\n", "0\n3\n0 0\n1 7\n2 33\n", "0\n2\n0 0\n9 39\n"] {
        let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
        let mut writer = log.open();
        let follower = log.reader();
        fill(&mut writer, 40);
        writer.close().unwrap();
        fs::write(log.path().join(NAME), text).unwrap();
        follower.refresh().unwrap();
        for reader in [&follower, &log.reader()] {
            assert_eq!(pairs(reader), expected(0..40), "{text:?}");
            for offset in [1, 8, 20, 34, 39] {
                let mut walk = reader.records(place(offset, 0));
                assert_eq!(walk.next_record().unwrap().unwrap().offset(), at(offset), "{text:?}");
            }
            assert_eq!(reader.wait_past(place(20, 0), Instant::now()), Wait::Advanced, "{text:?}");
            assert_eq!(reader.wait_past(place(40, 0), Instant::now()), Wait::TimedOut, "{text:?}");
        }
        let report = checked(&log);
        let kinds: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::EpochCheckpoint], "{text:?}: {:?}", report.findings);
        assert!(report.findings[0].repairable);
        LogWriter::open_repaired(log.path(), log.config.clone()).unwrap().close().unwrap();
        fits(&log, text);
        assert_eq!(log.reader().leader_epochs()[0], (0, at(0)), "{text:?}");
    }
}

/// Opening holds the file against the last batch only; a repair against all.
#[test]
fn a_repair_takes_all_epochs_from_the_batches() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    fill(&mut writer, 20);
    writer.set_leader_epoch(3).unwrap();
    fill(&mut writer, 20);
    writer.close().unwrap();
    fs::write(log.path().join(NAME), "0\n2\n0 0\n3 4\n").unwrap();
    assert_eq!(pairs(&log.reader()), expected(0..40));
    assert_eq!(checked(&log).findings.len(), 1);
    let writer = LogWriter::open_repaired(log.path(), log.config.clone()).unwrap();
    assert_eq!(writer.reader().leader_epochs(), [(0, at(0)), (3, at(20))]);
    assert_eq!(writer.leader_epoch(), 3);
    writer.close().unwrap();
    fits(&log, "repaired");
}

#[test]
fn a_real_cut_is_told_whatever_the_file_says_beside_it() {
    for text in [None, Some("0\n2\n0 0\n1 5\n"), Some("0\n3\n0 0\n1 5\n2 15\n")] {
        let log = TempLog::in_memory(|_| {});
        let mut writer = log.open();
        fill(&mut writer, 20);
        writer.close().unwrap();
        let mut writer = LogWriter::open_cut(log.path(), log.config.clone(), at(15)).unwrap();
        writer.append_records(&vec![Record::value_only(b"other"); 30], AppendOptions::default()).unwrap();
        writer.close().unwrap();
        if let Some(text) = text {
            fs::write(log.path().join(NAME), text).unwrap();
        }
        let reader = log.reader();
        let error = reader.records(place(20, 0)).next_record().unwrap_err();
        assert!(
            matches!(error, Error::Truncated { end } if end <= at(15) && end > at(0)),
            "{text:?}: {error}"
        );
        assert!(matches!(reader.wait_past(place(20, 0), Instant::now()), Wait::Truncated { .. }), "{text:?}");
        assert_eq!(pairs(&reader).len(), 45, "{text:?}");
    }
}

#[test]
fn batches_of_lower_epochs_than_the_logs_own_leave_a_file_that_fits() {
    for end in ["closed", "killed", "appended to"] {
        let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
        let mut writer = log.open();
        fill(&mut writer, 40);
        let mut follower = log.reader().records(at(0));
        while follower.next_record().unwrap().is_some() {}
        writer.close().unwrap();
        let mut writer = LogWriter::open_cut(log.path(), log.config.clone(), at(15)).unwrap();
        assert_eq!(writer.reader().leader_epochs(), [(0, at(0)), (1, at(15))]);
        for offset in 15..40 {
            import(&mut writer, 0, offset..offset + 1);
            assert_eq!(writer.reader().leader_epochs(), [(0, at(0))]);
            assert_eq!(pairs(&log.reader()).len() as i64, offset + 1);
        }
        assert_eq!(writer.leader_epoch(), 1, "epochs only rise");
        assert_eq!(log.reader().wait_past(place(39, 0), Instant::now()), Wait::Advanced);
        let next = match end {
            "closed" => {
                writer.close().unwrap();
                40
            }
            "killed" => {
                writer.sync().unwrap();
                drop(writer);
                40
            }
            _ => {
                fill(&mut writer, 2);
                assert_eq!(writer.reader().leader_epochs(), [(0, at(0)), (1, at(40))]);
                writer.close().unwrap();
                42
            }
        };
        if end != "killed" {
            fits(&log, end);
        }
        assert_eq!(pairs(&log.reader()), expected(0..next), "{end}");
        let mut writer = log.open();
        fill(&mut writer, 1);
        assert_eq!(pairs(&log.reader()), expected(0..next + 1), "{end}");
        writer.close().unwrap();
        fits(&log, end);
        let epochs = log.reader().leader_epochs();
        assert_eq!(epochs.first(), Some(&(0, at(0))), "{end}: {epochs:?}");
        assert!(epochs.iter().all(|(epoch, start)| *epoch == 0 || *start >= at(40)), "{end}: {epochs:?}");
    }
}

#[test]
fn a_group_of_appends_begins_the_logs_epoch_behind_such_batches() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 3);
    writer.set_leader_epoch(1).unwrap();
    writer.close().unwrap();
    let shared = SharedWriter::open(log.path(), log.config.clone()).unwrap();
    shared.append(&foreign(0, 3), preserving()).unwrap();
    assert_eq!(log.reader().leader_epochs(), [(0, at(0))]);
    shared.append_records(&[Record::value_only(b"own")], AppendOptions::default()).unwrap();
    assert_eq!(log.reader().leader_epochs(), [(0, at(0)), (1, at(4))]);
    shared.close().unwrap();
    fits(&log, "in a group");
    assert_eq!(pairs(&log.reader()).len(), 5);
}

/// As a copy of two logs put together has them: no reader may take that for a cut.
#[test]
fn epochs_that_go_back_are_read_to_the_end() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1024);
    let mut writer = log.open();
    for (epoch, offsets) in [(0, 0..10), (5, 10..20), (2, 20..30), (3, 30..40)] {
        import(&mut writer, epoch, offsets);
        assert_eq!(pairs(&log.reader()), pairs(&writer.reader()), "{epoch}");
    }
    fill(&mut writer, 5);
    let epochs = writer.reader().leader_epochs();
    assert_eq!(epochs, [(0, at(0)), (2, at(20)), (3, at(30)), (5, at(40))]);
    writer.close().unwrap();
    assert_eq!(pairs(&log.reader()), expected(0..45));
    for (offset, epoch) in [(10, 0), (20, 5), (30, 2), (40, 3), (45, 5)] {
        let mut walk = log.reader().records(place(offset, epoch));
        assert_eq!(
            walk.next_record().unwrap().map(|record| record.offset().value()),
            (offset < 45).then_some(offset)
        );
    }
    let mut writer = log.open();
    assert_eq!(writer.reader().leader_epochs(), epochs);
    fill(&mut writer, 1);
    assert_eq!(pairs(&log.reader()), expected(0..46));
}

/// What is passed over may have begun an epoch.
#[test]
fn damage_where_an_epoch_begins_is_passed_over_without_a_cut() {
    for range in [8..10, 8..12, 10..12, 10..20, 9..11] {
        let log = TempLog::in_memory(|_| {});
        let mut writer = log.open();
        fill(&mut writer, 10);
        writer.set_leader_epoch(1).unwrap();
        fill(&mut writer, 10);
        writer.roll().unwrap();
        fill(&mut writer, 5);
        writer.close().unwrap();
        let reader = log.reader();
        let mut positions = Vec::new();
        let mut batches = reader.batches(at(0));
        while batches.next_batch().unwrap().is_some() {
            positions.push(batches.position_of_last().unwrap().1);
        }
        let path = log.path().join("00000000000000000000.log");
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        for offset in range.clone() {
            file.write_all_at(&[0xAA; 4], positions[offset] + 62).unwrap();
        }
        // From the front, and from a position whose first look meets the damage.
        for from in [place(0, 0), place(range.start as i64, 0)] {
            let mut walk = log.reader().batches(from);
            let mut seen = Vec::new();
            for _ in 0..100 {
                match walk.next_batch() {
                    Ok(Some(batch)) => seen.push(batch.base_offset().value()),
                    Ok(None) => break,
                    Err(error) => assert!(error.is_corruption(), "{range:?}: {error}"),
                }
            }
            let lost = range.start as i64..range.end as i64;
            let wanted: Vec<i64> =
                (from.offset.value()..25).filter(|offset| !lost.contains(offset)).collect();
            assert_eq!(seen, wanted, "{range:?} from {from:?}");
        }
    }
}
