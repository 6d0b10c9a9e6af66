use std::{path::Path, sync::Arc};

use super::*;
use crate::{
    config::{Clock, FsyncPolicy, LogConfig, OpenMode},
    log::{
        append::{AppendOptions, Offsets},
        quota::Quota,
        request::{Input, Workshop},
    },
    offset::{Offset, Timestamp},
    record::{Codec, Compression, Record, TimestampType},
};

fn config() -> LogConfig {
    LogConfig {
        open: OpenMode::CreateIfMissing,
        fsync: FsyncPolicy::Never,
        clock: Clock::manual(Timestamp::from_millis(1_700_000_000_000)),
        ..LogConfig::default()
    }
}

fn open(dir: &Path, config: &LogConfig) -> LogWriter {
    LogWriter::open(dir.join("t-0"), config.clone()).unwrap()
}

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

fn ready(config: &LogConfig, input: Input<'_>, options: AppendOptions) -> Request {
    let share = Quota::take(&Arc::new(Quota::new(u64::MAX)), input.bytes());
    let workbench = Workshop::new(config).make_ready(input, options, config).unwrap();
    Request { options, is_deferred: false, share, workbench }
}

/// A request of so many records of so many bytes.
fn records(config: &LogConfig, count: usize, bytes: usize) -> Request {
    let value = vec![b'v'; bytes];
    ready(config, Input::Records(&vec![Record::value_only(&value); count]), AppendOptions::default())
}

fn expecting(config: &LogConfig, expected: i64) -> Request {
    let options = AppendOptions { expected: Some(at(expected)), ..AppendOptions::default() };
    ready(config, Input::Records(&[Record::value_only(b"v")]), options)
}

/// The first and last offsets that each was given; the errors of the others.
fn given(outcomes: Vec<Result<Appended>>) -> Vec<Result<(i64, i64)>> {
    let offsets = |appended: Appended| (appended.base_offset.value(), appended.last_offset.value());
    outcomes.into_iter().map(|outcome| outcome.map(offsets)).collect()
}

fn values(log: &LogWriter) -> usize {
    let records: Result<Vec<_>> = log.reader().owned_records(log.start()).collect();
    let records = records.unwrap();
    assert!((log.start().value()..).zip(&records).all(|(offset, record)| record.offset.value() == offset));
    records.len()
}

#[test]
fn a_group_is_placed_in_order_and_published_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let config = config();
    let mut log = open(temp.path(), &config);
    let mut requests = [records(&config, 1, 10), records(&config, 3, 10), records(&config, 2, 10)];
    let outcomes = given(log.write_group(&mut requests));
    assert!(matches!(outcomes[..], [Ok((0, 0)), Ok((1, 3)), Ok((4, 5))]), "{outcomes:?}");
    assert_eq!((log.end(), values(&log)), (at(6), 6));
    log.close().unwrap();
    let log = open(temp.path(), &config);
    assert_eq!((log.recovery().clean, values(&log)), (true, 6));
}

#[test]
fn one_that_is_refused_leaves_no_gap() {
    let temp = tempfile::tempdir().unwrap();
    let config = config();
    let mut log = open(temp.path(), &config);
    log.write_group(&mut [records(&config, 1, 1)]);
    let mut requests = [
        expecting(&config, 7),
        expecting(&config, 1),
        // Comes to see the end that the one before made, and only it.
        expecting(&config, 1),
        expecting(&config, 2),
        records(&config, 1, 1),
        expecting(&config, 4),
    ];
    let outcomes = given(log.write_group(&mut requests));
    assert!(matches!(&outcomes[0], Err(Error::UnexpectedOffset { end, .. }) if *end == at(1)));
    assert!(matches!(&outcomes[1], Ok((1, 1))));
    assert!(matches!(&outcomes[2], Err(Error::UnexpectedOffset { end, .. }) if *end == at(2)));
    assert!(matches!(&outcomes[3..], [Ok((2, 2)), Ok((3, 3)), Ok((4, 4))]));
    assert_eq!(values(&log), 5);
}

/// Wherever a segment ends, each request lies whole on one side of it, and segments are as full as one writer makes them.
#[test]
fn segments_end_where_they_would_for_one_request_after_the_other() {
    let sizes = [700, 20, 900, 300, 300, 300, 1000, 1, 1, 1, 1, 800, 800, 40];
    let config = LogConfig { segment_bytes: 2048, index_interval_bytes: 0, ..config() };
    let segments = |group: usize| {
        let temp = tempfile::tempdir().unwrap();
        let mut log = open(temp.path(), &config);
        let mut requests: Vec<_> = sizes.map(|bytes| records(&config, 1, bytes)).into();
        for requests in requests.chunks_mut(group) {
            for outcome in log.write_group(requests) {
                outcome.unwrap();
            }
        }
        assert_eq!(values(&log), sizes.len());
        let segments = log.reader().segments();
        segments.iter().map(|segment| (segment.base_offset, segment.size_bytes)).collect::<Vec<_>>()
    };
    let one_by_one = segments(1);
    assert!(one_by_one.len() >= 3);
    assert_eq!(segments(3), one_by_one);
    assert_eq!(segments(sizes.len()), one_by_one);
}

#[test]
fn batches_of_any_kind_go_in_one_group() {
    for (compression, timestamp_type) in [
        (Compression::NONE, TimestampType::CreateTime),
        (Compression::NONE, TimestampType::LogAppendTime),
        #[cfg(feature = "lz4")]
        (Compression::new(Codec::Lz4), TimestampType::LogAppendTime),
        #[cfg(feature = "zstd")]
        (Compression::new(Codec::Zstd), TimestampType::CreateTime),
    ] {
        let temp = tempfile::tempdir().unwrap();
        let config = LogConfig { compression, timestamp_type, ..config() };
        let mut log = open(temp.path(), &config);
        log.set_leader_epoch(3).unwrap();
        let raw = records(&LogConfig { timestamp_type: TimestampType::CreateTime, ..config.clone() }, 2, 5);
        let raw = raw.workbench.bytes().to_vec();
        let mut kept = raw.clone();
        kept[..8].copy_from_slice(&7_i64.to_be_bytes());
        let keeps = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
        let mut requests = [
            records(&config, 4, 100),
            ready(&config, Input::Batches(&raw), AppendOptions::default()),
            ready(&config, Input::Batches(&kept), keeps),
            records(&config, 1, 100),
        ];
        // The clock has gone on since they were made ready: what the log stamps is the time of the write.
        config.clock.advance(std::time::Duration::from_secs(5));
        let now = config.clock.now();
        let outcomes = log.write_group(&mut requests);
        let stamped = (timestamp_type == TimestampType::LogAppendTime).then_some(now);
        for (at, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.as_ref().unwrap().append_time, stamped.filter(|_| at != 2));
        }
        let outcomes = given(outcomes);
        assert!(matches!(outcomes[..], [Ok((0, 3)), Ok((4, 5)), Ok((7, 8)), Ok((9, 9))]), "{outcomes:?}");
        let mut batches = log.reader().batches(log.start());
        let mut epochs = Vec::new();
        while let Some(batch) = batches.next_batch().unwrap() {
            batch.check_crc().unwrap();
            epochs.push(batch.leader_epoch());
            if stamped.is_some() && batch.base_offset() != at(7) {
                assert_eq!(batch.max_timestamp(), now);
            }
        }
        assert_eq!(epochs, [3, 3, -1, 3]);
        log.close().unwrap();
        assert!(open(temp.path(), &config).recovery().clean);
    }
}

#[cfg(feature = "sim")]
mod failures {
    use super::*;
    use crate::sys::recorder::{Call, Fault, Recording};

    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;

    fn recorded(config: &LogConfig) -> (tempfile::TempDir, Recording, LogWriter) {
        let temp = tempfile::tempdir().unwrap();
        let recording = Recording::install(temp.path()).unwrap();
        let mut log = open(temp.path(), config);
        log.write_group(&mut [records(config, 1, 1)]);
        (temp, recording, log)
    }

    #[test]
    fn a_failed_write_is_told_to_those_it_carried() {
        let config = config();
        let (temp, recording, mut log) = recorded(&config);
        // What is refused in the middle makes two writes of them. The second fails half way.
        let sized = |bytes| records(&config, 1, bytes);
        let mut requests = [sized(1), sized(2), expecting(&config, 9), sized(3), sized(4)];
        recording.fail(Fault { call: Some(Call::Write), short_bytes: Some(80), ..Fault::nth(1, EIO) });
        let outcomes = given(log.write_group(&mut requests));
        assert!(matches!(outcomes[..3], [Ok((1, 1)), Ok((2, 2)), Err(Error::UnexpectedOffset { .. })]));
        for outcome in &outcomes[3..] {
            let Err(Error::Io { op: "write", path, source }) = outcome else { panic!("{outcome:?}") };
            assert!(path.ends_with("00000000000000000000.log"));
            assert_eq!(source.raw_os_error(), Some(EIO));
        }
        assert_eq!((log.end(), values(&log)), (at(3), 3));
        // At the same place, by the same requests.
        let outcomes = given(log.write_group(&mut requests[3..]));
        assert!(matches!(outcomes[..], [Ok((3, 3)), Ok((4, 4))]), "{outcomes:?}");
        drop(log);
        assert_eq!(values(&open(temp.path(), &config)), 5);
    }

    #[test]
    fn where_only_room_is_missing_each_is_tried_alone() {
        for call in [Call::Write, Call::Preallocate] {
            let config = config();
            let (_temp, recording, mut log) = recorded(&config);
            let mut requests = [1, 200_000, 1].map(|bytes| records(&config, 1, bytes));
            // The group fails, the first has room, the second has none alone either, the third has again.
            let fault = Fault { call: Some(call), ..Fault::nth(0, ENOSPC) };
            if call == Call::Write {
                recording.fail(fault);
                recording.fail(Fault { after: 1, ..fault });
            } else {
                recording.fail(Fault { times: 2, ..fault });
            }
            let outcomes = given(log.write_group(&mut requests));
            let is_right = matches!(&outcomes[..], [Ok((1, 1)), Err(Error::StorageFull { .. }), Ok((2, 2))]);
            assert!(is_right, "{call:?}: {outcomes:?}");
            assert_eq!(log.end().value(), i64::try_from(values(&log)).unwrap());
        }
    }
}
