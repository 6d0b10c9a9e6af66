//! Indexes: F033 to F044. Binary search alone (F038) is tested where it lives.

use std::fs;

use stratalog::{AppendOptions, Error, LogReader, Offsets, Timestamp, record::Record};

use super::{
    append_bytes, bases, batch, batches_in, closed, copy_of, file, flip, forget, holds, killed, len, set_len,
    write_at,
};
use crate::support::{TempLog, all, at, expected, fill, pairs};

/// A log whose records' timestamps are their offsets times ten, closed.
fn timed(count: i64) -> TempLog {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    for offset in 0..count {
        let value = offset.to_string();
        let record = Record::value_only(value.as_bytes()).timestamp(Timestamp::from_millis(offset * 10));
        writer.append_records(&[record], AppendOptions::default()).unwrap();
    }
    writer.close().unwrap();
    log
}

/// Every offset and every time of a log that [`timed`] wrote.
fn answers_right(reader: &LogReader, count: i64) {
    for offset in 0..count {
        let record = reader.record(at(offset)).unwrap().unwrap();
        assert_eq!(record.value.as_deref(), Some(offset.to_string().as_bytes()));
        for time in [offset * 10 - 9, offset * 10] {
            let found = reader.offset_for_timestamp(Timestamp::from_millis(time)).unwrap();
            assert_eq!(found.map(|(offset, _)| offset), Some(at(offset)), "time {time}");
        }
    }
    assert_eq!(reader.offset_for_timestamp(Timestamp::from_millis(count * 10)).unwrap(), None);
    assert_eq!(reader.max_timestamp().unwrap().unwrap().1, at(count - 1));
}

/// The same through a reader of its own, through a writer, and after the writer's next open.
fn stays_right(log: &TempLog, count: i64) {
    answers_right(&log.reader(), count);
    let writer = log.open();
    answers_right(&writer.reader(), count);
    assert_eq!(writer.recovery().cut, None);
    drop(writer);
    let writer = log.open();
    answers_right(&writer.reader(), count);
}

#[test]
fn f033_a_corrupt_index_is_rebuilt_whatever_is_wrong_with_it() {
    let original = timed(120);
    let random = |len: u64| -> Vec<u8> {
        (0..len).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
    };
    for base in bases(&original) {
        for kind in ["index", "timeindex"] {
            for harm in 0..5 {
                for is_clean in [true, false] {
                    let log = copy_of(&original);
                    if !is_clean {
                        forget(&log);
                    }
                    let path = file(&log, base, kind);
                    let size = len(&path);
                    match harm {
                        0 => fs::write(&path, random(size)).unwrap(),
                        1 => write_at(&path, size - 8, &[0xFF, 0xFF, 0xFF, 0xF0]),
                        2 => set_len(&path, 13),
                        3 => write_at(&path, 4, &[0xFF; 4]),
                        _ => fs::write(&path, b"").unwrap(),
                    }
                    stays_right(&log, 120);
                }
            }
        }
    }
}

#[test]
fn f035_an_empty_segment_that_was_cut_is_appended_to() {
    let log = killed(10);
    forget(&log);
    // The first batch is bad: the log is cut to nothing.
    flip(&file(&log, 0, "log"), 65);
    let mut writer = log.open();
    assert_eq!(writer.end(), at(0));
    writer.roll().unwrap();
    fill(&mut writer, 3);
    writer.close().unwrap();
    assert_eq!(bases(&log), [0]);
    holds(&log, 3);
}

#[test]
fn f036_a_segment_ends_before_an_offset_that_its_index_cannot_name() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    let preserve = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
    fill(&mut writer, 1);
    let values: Vec<Vec<u8>> = (0..21).map(|at| vec![b'a' + at]).collect();
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    writer.append(&batch(2_147_483_640, &values), preserve).unwrap();
    writer.append(&batch((1 << 31) + 50, &[b"z"]), preserve).unwrap();
    let check = |reader: &LogReader| {
        assert_eq!(all(reader).len(), 23);
        for (offset, value) in
            [(0, b'0'), (2_147_483_640, b'a'), (2_147_483_660, b'a' + 20), ((1 << 31) + 50, b'z')]
        {
            assert_eq!(reader.record(at(offset)).unwrap().unwrap().value.as_deref(), Some(&[value][..]));
        }
        assert_eq!(reader.record(at(77)).unwrap(), None);
        assert_eq!(reader.owned_records(at(77)).next().unwrap().unwrap().offset, at(2_147_483_640));
    };
    check(&writer.reader());
    check(&log.reader());
    for info in writer.reader().segments() {
        assert!(info.next_offset.since(info.base_offset) <= 1 << 31, "{info:?}");
    }
    drop(writer);
    check(&log.open().reader());
    forget(&log);
    check(&log.open().reader());
}

#[test]
fn f039_entries_that_rise_and_lie_are_not_believed() {
    let original = timed(120);
    let second = bases(&original)[1];
    let path = |log: &TempLog, kind: &str| file(log, second, kind);
    let batches = batches_in(&path(&original, "log"));
    let index = fs::read(path(&original, "index")).unwrap();
    let entries = index.len() / 8;
    for at in 1..entries - 1 {
        let position = |entry: usize| index[entry * 8 + 4..entry * 8 + 8].to_vec();
        let middle = u32::from_be_bytes(position(at).try_into().unwrap()) + 5;
        let lies: [(usize, Vec<u8>); 4] = [
            // The batch that the next entry names; the middle of one; past the end; another offset.
            (at * 8 + 4, position(at + 1)),
            (at * 8 + 4, middle.to_be_bytes().to_vec()),
            (at * 8 + 4, 1_000_000_u32.to_be_bytes().to_vec()),
            (at * 8, index[(at - 1) * 8..(at - 1) * 8 + 4].to_vec()),
        ];
        for (place, bytes) in lies {
            let log = copy_of(&original);
            write_at(&path(&log, "index"), place as u64, &bytes);
            stays_right(&log, 120);
        }
    }
    let times = fs::read(path(&original, "timeindex")).unwrap();
    for at in 0..times.len() / 12 - 1 {
        for other in [at.saturating_sub(1), at + 1] {
            // Another entry's offset; another entry's time.
            for range in [8..12, 0..8] {
                let log = copy_of(&original);
                let bytes = &times[other * 12 + range.start..other * 12 + range.end];
                write_at(&path(&log, "timeindex"), (at * 12 + range.start) as u64, bytes);
                stays_right(&log, 120);
            }
        }
    }
    assert!(batches.len() > 5);
}

#[test]
fn f039_a_time_index_cut_between_two_entries_is_noticed() {
    let original = timed(120);
    for base in bases(&original) {
        let entries = len(&file(&original, base, "timeindex")) / 12;
        for keep in 0..entries {
            for has_summary in [true, false] {
                let log = copy_of(&original);
                set_len(&file(&log, base, "timeindex"), keep * 12);
                if !has_summary {
                    fs::remove_file(log.path().join(".stratalog-summary")).unwrap();
                }
                stays_right(&log, 120);
            }
        }
    }
}

#[test]
fn f040_reserved_zeros_behind_an_index_are_no_entries() {
    for is_clean in [true, false] {
        let log = timed(120);
        for base in bases(&log) {
            set_len(&file(&log, base, "index"), 10 << 20);
            set_len(&file(&log, base, "timeindex"), (10 << 20) / 12 * 12);
        }
        if !is_clean {
            forget(&log);
        }
        stays_right(&log, 120);
        let mut writer = log.open();
        let before = writer.reader().segments().len();
        fill(&mut writer, 1);
        assert!(writer.reader().segments().len() <= before + 1);
        writer.roll().unwrap();
        writer.close().unwrap();
        let last = *bases(&log).iter().rev().nth(1).unwrap();
        assert!(len(&file(&log, last, "index")) < 4096, "a sealed index has its real size");
    }
}

#[test]
fn f041_an_empty_log_is_quiet_however_often_it_is_opened() {
    let log = TempLog::in_memory(|_| {});
    for round in 0..4 {
        if round == 2 {
            fs::remove_file(file(&log, 0, "index")).unwrap();
            fs::remove_file(file(&log, 0, "timeindex")).unwrap();
        }
        let writer = log.open();
        let report = writer.recovery();
        assert!(
            report.warnings.is_empty() && report.corrupt.is_empty() && report.cut.is_none(),
            "{report:?}"
        );
        assert_eq!(writer.end(), at(0));
        writer.close().unwrap();
        assert_eq!(len(&file(&log, 0, "log")), 0);
        assert_eq!(len(&file(&log, 0, "index")), 0);
    }
    holds(&log, 0);
}

#[test]
fn f044_the_end_does_not_come_from_an_index() {
    let original = closed(120);
    let last = *bases(&original).last().unwrap();
    for kinds in [&["index"][..], &["timeindex"], &["index", "timeindex"]] {
        let log = copy_of(&original);
        for kind in kinds {
            fs::remove_file(file(&log, last, kind)).unwrap();
        }
        assert_eq!(log.reader().end(), at(120));
        holds(&log, 120);
    }
}

#[test]
fn a_full_index_begins_another_segment() {
    let log = TempLog::in_memory(|config| {
        config.segment_bytes = 1 << 20;
        config.segment_index_bytes = 24;
    });
    let mut writer = log.open();
    fill(&mut writer, 40);
    assert!(writer.reader().segments().len() > 4);
    assert_eq!(pairs(&writer.reader()), expected(0..40));
    writer.close().unwrap();
    holds(&log, 40);
}

#[test]
fn a_read_far_outside_is_out_of_range_and_not_a_scan() {
    let log = closed(10);
    let reader = log.reader();
    for offset in [at(11), at(i64::MAX)] {
        assert!(matches!(reader.slice(offset, 1), Err(Error::OffsetOutOfRange { .. })));
    }
    append_bytes(&log.path().join(".lock"), b"");
}
