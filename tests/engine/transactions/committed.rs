//! What becomes of transactions: interleaved, open, across rolls, below the start, cut, and followed from outside.

use std::{
    fs,
    time::{Duration, Instant},
};

use stratalog::{
    Error, FsyncPolicy, Isolation, LogConfig, LogReader, LogWriter, ReadOptions, RecoveryMode, Wait,
    record::{CRC_AT, HEADER_BYTES},
};

use super::{Written, committed, committed_durable, offsets};
use crate::support::{TempLog, at, copy_dir, fast_dir};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// Durable only when told.
fn rarely_durable(config: &mut LogConfig) {
    config.fsync = FsyncPolicy::EveryBytes(1 << 40);
}

/// Both kinds of readers, of both ends, in the writer's process and from outside.
fn check_all(written: &Written, log: &TempLog) {
    let outside = || LogReader::open(log.path(), ReadOptions::default()).unwrap();
    for reader in [written.log.reader(), outside()] {
        for options in [ReadOptions::default(), committed(), committed_durable()] {
            written.check(&reader.clone().with_options(options));
        }
    }
}

#[test]
fn transactions_interleave_and_the_oldest_open_one_holds_the_end() {
    let log = TempLog::in_memory(rarely_durable);
    let mut written = Written::new(log.open());
    let reader = written.log.reader().with_options(committed());
    check_all(&written, &log);
    written.data(Some(1), 2);
    written.data(None, 1);
    written.data(Some(2), 3);
    assert_eq!(reader.end(), at(0));
    written.end(2, false);
    assert_eq!((reader.end(), offsets(&reader)), (at(0), vec![]));
    check_all(&written, &log);
    written.data(Some(1), 1);
    written.end(1, true);
    assert_eq!(offsets(&reader), [0, 1, 2, 7]);
    written.log.sync().unwrap();
    // One that is open at the end, and one that is begun again behind its abort.
    written.data(Some(2), 1);
    written.data(Some(3), 1);
    written.end(2, false);
    written.data(Some(2), 1);
    check_all(&written, &log);
    assert_eq!(reader.end(), at(10));
    written.end(3, false);
    assert_eq!(reader.end(), at(12), "the second of producer 2");
    written.end(2, true);
    check_all(&written, &log);
    assert_eq!(offsets(&reader), [0, 1, 2, 7, 12]);
}

#[test]
fn a_marker_without_a_transaction_ends_nothing() {
    let log = TempLog::in_memory(rarely_durable);
    let mut written = Written::new(log.open());
    written.end(1, false);
    written.data(Some(2), 1);
    written.end(1, true);
    check_all(&written, &log);
    written.end(2, true);
    written.end(2, false);
    written.data(Some(2), 1);
    written.end(2, false);
    written.end(2, false);
    check_all(&written, &log);
    let reader = written.log.reader().with_options(committed());
    assert_eq!(offsets(&reader), [1]);
    assert_eq!(reader.aborted_transactions(at(0)..reader.end()).unwrap().len(), 1);
}

#[test]
fn transactions_span_rolls_and_their_marker_may_be_alone_in_a_segment() {
    let log = TempLog::in_memory(rarely_durable);
    let mut written = Written::new(log.open());
    for (producer, commit) in [(1, false), (2, true), (3, false)] {
        written.data(Some(producer), 2);
        written.log.roll().unwrap();
        written.data(None, 1);
        written.data(Some(producer), 2);
        written.log.roll().unwrap();
        check_all(&written, &log);
        written.end(producer, commit);
        written.log.roll().unwrap();
    }
    written.log.sync().unwrap();
    check_all(&written, &log);
}

/// What begins below the start begins with what is left of it, for a reader that saw it begin and for one that did not.
#[test]
fn transactions_that_began_below_the_start() {
    let log = TempLog::in_memory(rarely_durable);
    let mut written = Written::new(log.open());
    let (long, options) = (written.log.reader(), [ReadOptions::default(), committed(), committed_durable()]);
    let long = options.map(|options| long.clone().with_options(options));
    let outside = options.map(|options| LogReader::open(log.path(), options).unwrap());
    let check = |written: &Written| {
        check_all(written, &log);
        for reader in long.iter().chain(&outside) {
            reader.refresh().unwrap();
            written.check(reader);
        }
    };
    written.data(Some(1), 3); // 0..3
    written.data(Some(2), 3); // 3..6
    written.data(Some(3), 2); // 6..8
    written.end(3, false); // 8
    written.log.roll().unwrap();
    written.data(None, 2); // 9..11
    written.data(Some(2), 3); // 11..14
    written.data(None, 1); // 14
    written.log.sync().unwrap();
    check(&written);
    assert_eq!(long[1].end(), at(0));
    for start in [1, 4, 7, 8, 9, 10] {
        written.log.advance_start(at(start)).unwrap();
        check(&written);
    }
    // Nothing is left of producer 1's, and so nothing to wait for.
    assert_eq!(long[1].end(), at(11));
    assert_eq!(offsets(&long[1]), [10]);
    written.log.advance_start(at(12)).unwrap();
    check(&written);
    assert_eq!(long[1].end(), at(12), "within the batch that it begins with now");
    written.end(1, false);
    written.end(2, true);
    check(&written);
    assert_eq!(offsets(&long[1]), [12, 13, 14]);
    written.log.advance_start(written.log.end()).unwrap();
    check(&written);
}

/// A walk that retention overtakes is told so: whether what it holds was aborted is not known any more.
#[test]
fn a_committed_walk_below_the_start_is_out_of_range() {
    let log = TempLog::in_memory(rarely_durable);
    let mut written = Written::new(log.open());
    written.data(None, 1);
    written.data(Some(1), 1);
    written.data(Some(2), 1);
    written.end(1, false);
    written.end(2, true);
    written.log.roll().unwrap();
    written.data(None, 1);
    let reader = written.log.reader().with_options(committed());
    let mut walk = reader.records(at(0));
    assert_eq!(walk.next_record().unwrap().unwrap().offset(), at(0));
    written.log.sync().unwrap();
    written.log.advance_start(at(5)).unwrap();
    assert_eq!(reader.end(), at(6));
    let error = walk.next_record().unwrap_err();
    assert!(matches!(error, Error::OffsetOutOfRange { .. }), "{error}");
    assert_eq!(offsets(&reader), [5]);
}

/// The marker has to be durable for those who follow the durable end, or a power cut could undo the decision.
#[test]
fn what_is_decided_is_decided_at_the_end_that_is_followed() {
    let log = TempLog::in_memory(rarely_durable);
    let mut written = Written::new(log.open());
    written.data(Some(1), 2);
    written.data(None, 1);
    written.log.sync().unwrap();
    written.end(1, true);
    let [newest, durable] =
        [committed(), committed_durable()].map(|options| written.log.reader().with_options(options));
    assert_eq!((newest.end(), durable.end()), (at(4), at(0)));
    assert!(offsets(&durable).is_empty());
    assert_eq!(durable.aborted_transactions(at(0)..at(4)).unwrap(), []);
    assert_eq!(durable.wait_past(at(0), Instant::now()), Wait::TimedOut);
    written.log.sync().unwrap();
    assert_eq!(durable.wait_past(at(0), soon()), Wait::Advanced);
    assert_eq!((durable.end(), offsets(&durable)), (at(4), vec![0, 1, 2]));
    check_all(&written, &log);
}

#[test]
fn control_records_are_left_out_and_can_be_had() {
    let log = TempLog::in_memory(rarely_durable);
    let mut written = Written::new(log.open());
    written.data(Some(1), 1);
    written.end(1, true);
    written.data(Some(1), 1);
    written.end(1, false);
    let reader = written.log.reader().with_options(committed());
    let mut with_markers = reader.records(at(0)).include_control(true);
    let mut seen = Vec::new();
    while let Some(record) = with_markers.next_record().unwrap() {
        seen.push(record.offset().value());
    }
    assert_eq!(seen, [0, 1, 3]);
    let mut batches = reader.batches(at(0));
    assert_eq!(batches.next_batch().unwrap().unwrap().base_offset(), at(0));
    assert!(batches.next_batch().unwrap().is_none());
    // Where a wait goes on is behind what was left out.
    assert_eq!(batches.position().offset, at(4));
    assert_eq!(reader.wait_past(batches.position(), Instant::now()), Wait::TimedOut);
    let mut raw = Vec::new();
    let read = reader.read(at(0), 1 << 20, &mut raw).unwrap();
    assert_eq!(read.next, at(4), "raw bytes hold all that is decided");
    assert_eq!(reader.last_records_from(1).unwrap(), at(0));
}

#[test]
fn waits_end_with_the_marker() {
    let log = TempLog::in_memory(rarely_durable);
    let mut written = Written::new(log.open());
    let inside = written.log.reader().with_options(committed());
    let outside = LogReader::open(log.path(), committed()).unwrap();
    std::thread::scope(|scope| {
        let waits = [inside, outside].map(|reader| {
            scope.spawn(move || {
                let woken = reader.wait_past(at(2), soon());
                (woken, reader.end(), offsets(&reader))
            })
        });
        written.data(Some(1), 2);
        written.data(None, 2);
        std::thread::sleep(Duration::from_millis(30));
        written.end(1, false);
        for wait in waits {
            assert_eq!(wait.join().unwrap(), (Wait::Advanced, at(5), vec![2, 3]));
        }
    });
}

/// A follower that saw more than a crash left sees what is there instead, and what is decided of that.
#[test]
fn a_cut_and_what_is_written_in_its_place() {
    let log = TempLog::in_memory(|config| {
        rarely_durable(config);
        config.preallocate = stratalog::Preallocate::Off;
    });
    let dir = log.path();
    let mut written = Written::new(log.open());
    written.data(Some(1), 2);
    written.data(Some(2), 1);
    written.log.sync().unwrap();
    written.end(1, false);
    written.end(2, true);
    // The directory as it is, under the follower's eyes: another place is killed and recovers with less.
    let place = fast_dir();
    let copy = place.path().join("t-0");
    copy_dir(&dir, &copy);
    let follower = LogReader::open(&copy, committed()).unwrap();
    assert_eq!((follower.end(), offsets(&follower)), (at(5), vec![2]));
    let mut walk = follower.batches(at(0));
    assert_eq!(walk.next_batch().unwrap().unwrap().base_offset(), at(2));
    let segment = copy.join("00000000000000000000.log");
    let full = fs::read(&segment).unwrap();
    let mut batches = stratalog::record::Batches::new(&full);
    let kept: usize = (0..2).map(|_| batches.next().unwrap().unwrap().as_bytes().len()).sum();
    // Torn inside the first marker.
    fs::write(&segment, &full[..kept + 20]).unwrap();
    let mut again = Written::new(LogWriter::open(&copy, log.config.clone()).unwrap());
    assert_eq!(again.log.end(), at(3));
    again.model = written.model.clone();
    again.model.cut(at(3));
    follower.refresh().unwrap();
    assert_eq!((follower.end(), offsets(&follower)), (at(0), vec![]));
    again.check(&follower);
    again.end(1, true);
    again.end(2, false);
    follower.refresh().unwrap();
    again.check(&follower);
    assert_eq!((follower.end(), offsets(&follower)), (at(5), vec![0, 1]));
    again.data(None, 1);
    follower.refresh().unwrap();
    again.check(&follower);
}

/// Damage hides what it hit: everything else is decided as ever, and whoever reads is told.
#[test]
fn damage_does_not_end_the_look() {
    let log = TempLog::in_memory(|config| config.recovery = RecoveryMode::TruncateTornTail);
    let mut written = Written::new(log.open());
    written.data(Some(1), 2); // 0..2
    written.end(1, false); // 2
    written.data(Some(2), 2); // 3..5
    written.data(None, 1); // 5
    written.end(2, false); // 6
    written.log.roll().unwrap();
    written.data(None, 1); // 7
    written.log.close().unwrap();
    let segment = log.path().join("00000000000000000000.log");
    let whole = fs::read(&segment).unwrap();
    let mut positions = vec![0];
    for batch in stratalog::record::Batches::new(&whole) {
        positions.push(positions.last().unwrap() + batch.unwrap().as_bytes().len());
    }
    let walk = |reader: &LogReader| {
        let (mut seen, mut errors) = (Vec::new(), 0);
        for record in reader.owned_records(at(0)) {
            match record {
                Ok(record) => seen.push(record.offset.value()),
                Err(error) if error.is_corruption() => errors += 1,
                Err(error) => panic!("{error}"),
            }
        }
        (seen, errors)
    };
    let outcome = |harm: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        harm(&mut bytes);
        fs::write(&segment, bytes).unwrap();
        let reader = LogReader::open(log.path(), committed()).unwrap();
        (reader.last_stable_offset().unwrap().value(), walk(&reader))
    };
    assert_eq!(outcome(&|_| {}), (8, (vec![5, 7], 0)));
    // A plain batch's records; then its length, so that it leads into the middle of the marker.
    let last = positions[4] - 1;
    assert_eq!(outcome(&|bytes| bytes[last] ^= 1), (8, (vec![7], 1)));
    let length = positions[3] + 11;
    assert_eq!(outcome(&|bytes| bytes[length] += 7), (8, (vec![7], 1)));
    // A header that says that the plain batch is of a transaction that nobody ends: its checksum says that it is not.
    let attributes = positions[3] + CRC_AT + 5;
    let producer = positions[3] + HEADER_BYTES - 18;
    let harm = |bytes: &mut Vec<u8>| {
        bytes[attributes] |= 1 << 4;
        bytes[producer..producer + 8].copy_from_slice(&77_i64.to_be_bytes());
    };
    assert_eq!(outcome(&harm), (8, (vec![7], 1)));
    // The last marker: its transaction stays open.
    let marker = positions[5] - 1;
    let (stable, (seen, _)) = outcome(&|bytes| bytes[marker] ^= 1);
    assert_eq!((stable, seen), (3, vec![]));
}

#[test]
fn options_are_kept_and_uncommitted_is_what_is_read_without() {
    assert_eq!(ReadOptions::default().isolation, Isolation::Uncommitted);
    let log = TempLog::small();
    let mut written = Written::new(log.open());
    written.data(Some(1), 2);
    written.end(1, false);
    let reader = log.reader();
    assert_eq!((offsets(&reader), reader.end()), (vec![0, 1], at(3)));
    let durable = written.log.reader().with_options(committed_durable());
    assert!(matches!(durable.last_stable_offset(), Err(Error::NeverDurable)));
    assert!(matches!(durable.open_transactions(), Err(Error::NeverDurable)));
}
