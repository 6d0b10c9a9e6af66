//! Time: F045 to F061.

use std::{fs, time::Duration};

use stratalog::{
    AppendOptions, Clock, Offset, Retention, Timestamp,
    record::{BatchBuilder, BatchOptions, Codec, Compression, Record},
};

use super::{bases, batches_in, copy_of, file, flip, forget, len, names, set_len};
use crate::support::{TempLog, at};

const NOW: i64 = 1_700_000_000_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

fn ms(value: i64) -> Timestamp {
    Timestamp::from_millis(value)
}

fn with_clock(change: impl FnOnce(&mut stratalog::LogConfig)) -> (TempLog, Clock) {
    let clock = Clock::manual(ms(NOW));
    let log = TempLog::in_memory(|config| {
        config.clock = clock.clone();
        change(config);
    });
    (log, clock)
}

/// One batch for each list of timestamps.
fn put(writer: &mut stratalog::LogWriter, batches: &[&[i64]], codec: Codec) {
    for timestamps in batches {
        let options = BatchOptions { compression: Compression::new(codec), ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        for timestamp in *timestamps {
            builder.push(Record::value_only(b"v").timestamp(ms(*timestamp))).unwrap();
        }
        writer.append(builder.finish().unwrap(), AppendOptions::default()).unwrap();
    }
}

fn find(log: &TempLog, writer: &stratalog::LogWriter, time: i64) -> Option<(i64, i64)> {
    let plain = |found: Option<(Offset, Timestamp)>| found.map(|(offset, at)| (offset.value(), at.millis()));
    let inside = plain(writer.reader().offset_for_timestamp(ms(time)).unwrap());
    let outside = plain(log.reader().offset_for_timestamp(ms(time)).unwrap());
    assert_eq!(inside, outside, "time {time}");
    inside
}

#[test]
fn f045_a_zero_padded_time_index_does_not_make_records_old() {
    for more in [12, 120, 12000] {
        for is_known in [true, false] {
            let (log, _) = with_clock(|config| config.retention = Retention { age: Some(DAY), bytes: None });
            let mut writer = log.open();
            for _ in 0..3 {
                put(&mut writer, &[&[NOW], &[NOW + 1]], Codec::None);
                writer.roll().unwrap();
            }
            drop(writer);
            for base in bases(&log) {
                let path = file(&log, base, "timeindex");
                set_len(&path, len(&path) + more);
            }
            if !is_known {
                forget(&log);
            }
            let mut writer = log.open();
            assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
            assert_eq!(writer.start(), at(0));
            assert_eq!(find(&log, &writer, NOW + 1), Some((1, NOW + 1)));
        }
    }
}

#[test]
fn f046_a_time_index_of_reserved_zeros_is_not_full() {
    let (log, _) = with_clock(|config| config.segment_index_bytes = 800);
    let mut writer = log.open();
    put(&mut writer, &[&[5]], Codec::None);
    writer.roll().unwrap();
    drop(writer);
    set_len(&file(&log, 1, "timeindex"), 792);
    set_len(&file(&log, 1, "index"), 800);
    let mut writer = log.open();
    put(&mut writer, &[&[7], &[9], &[11]], Codec::None);
    assert_eq!(writer.reader().segments().len(), 2, "the index was taken for full");
    writer.roll().unwrap();
    assert_eq!(find(&log, &writer, 8), Some((2, 9)));
    writer.close().unwrap();
    assert!(len(&file(&log, 1, "timeindex")) <= 36);
}

#[test]
fn f047_a_timestamp_far_ahead_keeps_its_segment_and_all_after_it_by_age_only() {
    for far in [NOW * 1000, i64::MAX, NOW + 10 * 365 * 86_400_000] {
        let (log, clock) = with_clock(|config| {
            config.retention = Retention { age: Some(Duration::from_secs(3600)), bytes: None };
            config.roll_after = None;
        });
        let mut writer = log.open();
        for segment in 0..4 {
            put(&mut writer, &[&[NOW], &[if segment == 1 { far } else { NOW }]], Codec::None);
            writer.roll().unwrap();
        }
        clock.advance(Duration::from_secs(7200));
        assert_eq!(writer.maintain().unwrap().dropped_segments, 1);
        assert_eq!(writer.start(), at(2), "documented: one segment that is not old keeps all after it");
        let mut config = writer.config().clone();
        config.retention.bytes = Some(0);
        writer.set_config(config).unwrap();
        assert_eq!(writer.maintain().unwrap().dropped_segments, 3, "size retention works all the same");
        assert_eq!((writer.start(), writer.end()), (at(8), at(8)));
    }
}

#[test]
fn f048_timestamps_in_seconds_make_records_old_and_the_end_stays() {
    let (log, clock) = with_clock(|config| config.retention = Retention { age: Some(7 * DAY), bytes: None });
    let mut writer = log.open();
    put(&mut writer, &[&[NOW / 1000], &[NOW / 1000 + 1]], Codec::None);
    clock.advance(Duration::from_secs(1));
    let done = writer.maintain().unwrap();
    assert_eq!((done.dropped_segments, done.clock_jumped), (1, false));
    assert_eq!((writer.start(), writer.end()), (at(2), at(2)));
    put(&mut writer, &[&[NOW]], Codec::None);
    assert_eq!(find(&log, &writer, 0), Some((2, NOW)));
    writer.close().unwrap();
    let writer = log.open();
    assert_eq!((writer.start(), writer.end()), (at(2), at(3)));
}

#[test]
fn f050_the_answer_is_a_record_and_not_a_batch() {
    for codec in Codec::ALL.into_iter().filter(|codec| codec.is_available()) {
        let (log, _) = with_clock(|_| {});
        let mut writer = log.open();
        put(&mut writer, &[&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]], codec);
        assert_eq!(find(&log, &writer, 1), Some((0, 1)));
        assert_eq!(find(&log, &writer, 5), Some((4, 5)));
        assert_eq!(find(&log, &writer, 10), Some((9, 10)));
        assert_eq!(find(&log, &writer, 11), None);
    }
}

#[test]
fn f051_the_answer_is_the_first_at_or_after() {
    let (log, _) = with_clock(|_| {});
    let mut writer = log.open();
    put(&mut writer, &[&[2], &[4], &[6], &[8]], Codec::None);
    let answers = [(1, Some(0)), (2, Some(0)), (3, Some(1)), (8, Some(3)), (9, None)];
    for (time, wanted) in answers {
        assert_eq!(find(&log, &writer, time).map(|found| found.0), wanted, "time {time}");
    }
}

#[test]
fn f052_nothing_found_is_an_answer() {
    let (log, _) = with_clock(|_| {});
    let mut writer = log.open();
    for time in [i64::MIN, -2, -1, 0, NOW, i64::MAX] {
        assert_eq!(find(&log, &writer, time), None);
    }
    assert_eq!(writer.reader().max_timestamp().unwrap(), None);
    assert_eq!((writer.start(), writer.end()), (at(0), at(0)));
    put(&mut writer, &[&[NOW]], Codec::None);
    assert_eq!(find(&log, &writer, NOW + 1), None);
    assert_eq!(find(&log, &writer, i64::MIN), Some((0, NOW)));
}

#[test]
fn f056_the_time_of_a_file_is_not_the_time_of_its_records() {
    let (original, _) = with_clock(|config| {
        config.retention = Retention { age: Some(DAY), bytes: None };
        config.segment_bytes = 1024;
    });
    let mut writer = original.open();
    let old = NOW - 2 * 86_400_000;
    put(&mut writer, &[&[old], &[old]], Codec::None);
    writer.roll().unwrap();
    put(&mut writer, &[&[NOW]], Codec::None);
    writer.close().unwrap();
    let year = Duration::from_secs(365 * 24 * 3600);
    for stamp in
        [std::time::SystemTime::now(), std::time::UNIX_EPOCH + 20 * year, std::time::UNIX_EPOCH + 100 * year]
    {
        for is_known in [true, false] {
            let log = copy_of(&original);
            if !is_known {
                forget(&log);
            }
            for name in names(&log.path()) {
                let file = fs::OpenOptions::new().append(true).open(log.path().join(name)).unwrap();
                file.set_modified(stamp).unwrap();
            }
            let mut writer = log.open();
            assert_eq!(writer.maintain().unwrap().dropped_segments, 1);
            assert_eq!(writer.start(), at(2));
        }
    }
}

#[test]
fn f056_without_any_timestamp_the_time_of_the_file_counts() {
    let (log, clock) = with_clock(|config| config.retention = Retention { age: Some(DAY), bytes: None });
    let mut writer = log.open();
    put(&mut writer, &[&[-1]], Codec::None);
    writer.roll().unwrap();
    put(&mut writer, &[&[NOW]], Codec::None);
    let sealed = fs::OpenOptions::new().append(true).open(file(&log, 0, "log")).unwrap();
    sealed.set_modified(std::time::UNIX_EPOCH + Duration::from_millis(NOW as u64)).unwrap();
    clock.advance(DAY.checked_sub(Duration::from_secs(1)).unwrap());
    assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
    clock.advance(Duration::from_secs(2));
    let done = writer.maintain().unwrap();
    assert_eq!(done.dropped_segments, 2, "the file of the first and the record of the second are old");
    assert_eq!(writer.end(), at(2));
}

#[test]
fn f059_timestamps_in_any_order_are_found() {
    for codec in [Codec::None, Codec::Zstd].into_iter().filter(|codec| codec.is_available()) {
        let (log, _) = with_clock(|_| {});
        let mut writer = log.open();
        put(&mut writer, &[&[100], &[50], &[200], &[10], &[300]], codec);
        for (time, offset) in [(60, 0), (150, 2), (250, 4), (5, 0)] {
            assert_eq!(find(&log, &writer, time).map(|found| found.0), Some(offset), "time {time}");
        }
        drop(writer);
        let writer = log.open();
        assert_eq!(find(&log, &writer, 150).map(|found| found.0), Some(2));
    }
}

#[test]
fn f060_exactly_as_old_as_the_limit_is_kept() {
    let (log, clock) = with_clock(|config| config.retention = Retention { age: Some(DAY), bytes: None });
    let mut writer = log.open();
    put(&mut writer, &[&[NOW]], Codec::None);
    writer.roll().unwrap();
    put(&mut writer, &[&[NOW + 5000]], Codec::None);
    clock.advance(DAY);
    assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
    clock.advance(Duration::from_millis(1));
    assert_eq!(writer.maintain().unwrap().dropped_segments, 1);
    assert_eq!(writer.start(), at(1));
}

#[test]
fn f061_after_a_cut_the_largest_timestamp_is_that_of_the_last_record_kept() {
    let (log, _) = with_clock(|config| {
        config.segment_bytes = 1 << 20;
        config.index_interval_bytes = 64 << 10;
    });
    let mut writer = log.open();
    for offset in 0..1000 {
        put(&mut writer, &[&[offset * 3]], Codec::None);
    }
    drop(writer);
    forget(&log);
    let batch = batches_in(&file(&log, 0, "log"))[500];
    flip(&file(&log, 0, "log"), batch.0 + batch.1 - 1);
    for _ in 0..2 {
        let writer = log.open();
        assert_eq!(writer.end(), at(500));
        assert_eq!(writer.reader().max_timestamp().unwrap(), Some((ms(499 * 3), at(499))));
        assert_eq!(find(&log, &writer, 499 * 3 + 1), None);
    }
}

#[test]
fn a_wall_clock_that_jumps_ahead_does_not_empty_the_log() {
    let (log, clock) = with_clock(|config| config.retention = Retention { age: Some(DAY), bytes: None });
    let mut writer = log.open();
    put(&mut writer, &[&[NOW]], Codec::None);
    writer.roll().unwrap();
    put(&mut writer, &[&[NOW]], Codec::None);
    writer.maintain().unwrap();
    clock.set_wall(ms(NOW + 365 * 86_400_000));
    let done = writer.maintain().unwrap();
    assert_eq!((done.dropped_segments, done.clock_jumped), (0, true));
    assert_eq!(writer.start(), at(0));
    // Backwards, nothing is old and nothing breaks.
    clock.set_wall(ms(i64::MIN));
    assert_eq!(writer.maintain().unwrap().dropped_segments, 0);
    put(&mut writer, &[&[NOW]], Codec::None);
    writer.close().unwrap();
}
