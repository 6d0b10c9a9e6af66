//! Big, small and odd input: F135 to F150, what concerns the engine. Parsing alone, codecs and the checksum (F136, F143,
//! F146, F150) are tested in the room of records too.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::FileExt, net::UnixListener},
};

use stratalog::{
    AppendOptions, Error, LogWriter, Offsets, OpenMode, Preallocate, Timestamp,
    record::{BatchBuilder, BatchOptions, Codec, Compression, Record, Scratch, crc32c},
};

use super::{
    append_bytes, bases, batch, batches_in, closed, copy_of, file, flip, forget, holds, killed, names,
    set_len, with_field, write_at,
};
use crate::support::{TempLog, all, at, expected, fill, pairs};

const ASSIGN: AppendOptions = AppendOptions { expected: None, offsets: Offsets::Assign, producer: None };
const PRESERVE: AppendOptions = AppendOptions { expected: None, offsets: Offsets::Preserve, producer: None };
const LAST_OFFSET_DELTA_AT: usize = 23;
const RECORD_COUNT_AT: usize = 57;

/// Nothing was written: the same end, the same bytes.
fn refused(writer: &mut LogWriter, batch: &[u8], options: AppendOptions) -> Error {
    let (end, size) = (writer.end(), writer.reader().stats().bytes);
    let error = writer.append(batch, options).unwrap_err();
    assert_eq!((writer.end(), writer.reader().stats().bytes), (end, size));
    error
}

#[test]
fn f135_a_record_count_is_never_believed() {
    for count in [-1, 0, 2, i32::MAX, i32::MIN] {
        let odd = with_field(batch(10, &[b"x"]), RECORD_COUNT_AT, &count.to_be_bytes());
        let log = killed(10);
        let mut writer = log.open();
        let error = refused(&mut writer, &odd, ASSIGN);
        assert!(matches!(error, Error::InvalidBatch(_)), "{count}: {error}");
        drop(writer);
        // In a file: whatever it counts as, nothing is allocated from it and nothing panics.
        let path = file(&log, 0, "log");
        let last = *batches_in(&path).last().unwrap();
        set_len(&path, last.0 + last.1);
        append_bytes(&path, &odd);
        forget(&log);
        let reader = log.reader();
        let records: Vec<_> = reader.owned_records(at(0)).take(12).collect();
        assert_eq!(records.iter().filter(|record| record.is_ok()).count().min(10), 10);
        let _ = reader.record(at(10));
        let _ = reader.offset_for_timestamp(Timestamp::from_millis(1));
        let writer = log.open();
        assert!(writer.end() <= at(11), "{count}");
        let _ = writer.reader().owned_records(at(0)).take(12).count();
    }
}

#[test]
fn f136_a_batch_that_unpacks_to_too_much_is_an_error_of_its_own() {
    for codec in Codec::ALL.into_iter().filter(|codec| *codec != Codec::None && codec.is_available()) {
        let log = TempLog::in_memory(|config| {
            config.segment_bytes = 1 << 20;
            config.max_batch_bytes = 1 << 20;
        });
        let mut writer = log.open();
        let zeros = vec![0; 4 << 20];
        let mut builder = BatchBuilder::new(BatchOptions {
            compression: Compression::new(codec),
            ..BatchOptions::default()
        });
        builder.push(Record::value_only(&zeros)).unwrap();
        writer.append(builder.finish().unwrap(), ASSIGN).unwrap();
        fill(&mut writer, 1);
        let reader = writer.reader();
        let mut records = reader.records(at(0)).unpack_limit(1 << 20);
        let error = records.next_record().unwrap_err();
        assert!(error.is_corruption(), "{codec}: {error}");
        assert_eq!(records.next_record().unwrap().unwrap().offset(), at(1));
        let mut scratch = Scratch::with_limit(1 << 20);
        let mut batches = reader.batches(at(0));
        assert!(batches.next_batch().unwrap().unwrap().records(&mut scratch).is_err());
        assert_eq!(all(&reader)[0].value.as_deref().map(<[u8]>::len), Some(4 << 20));
    }
}

#[test]
fn f137_a_damaged_summary_is_a_hint_that_is_not_taken() {
    let original = closed(200);
    let good = fs::read(original.path().join(".stratalog-summary")).unwrap();
    for place in (0..good.len()).step_by(8) {
        let log = copy_of(&original);
        let mut bytes = good.clone();
        let end = (place + 8).min(bytes.len());
        bytes[place..end].fill(0xFF);
        // A right checksum over a wrong body too.
        if place >= 16 {
            let crc = stratalog::record::crc32(&bytes[16..]).to_le_bytes();
            bytes[12..16].copy_from_slice(&crc);
        }
        fs::write(log.path().join(".stratalog-summary"), bytes).unwrap();
        let writer = log.open();
        assert_eq!((writer.end(), &writer.recovery().cut), (at(200), &None));
    }
}

#[test]
fn f138_a_batch_length_is_never_believed() {
    for length in [0_i32, 1, 48, 49, -1, i32::MIN, i32::MAX, 100_000] {
        // In the last batch of the active segment: cut.
        let log = killed(10);
        forget(&log);
        let path = file(&log, 0, "log");
        let last = *batches_in(&path).last().unwrap();
        write_at(&path, last.0 + 8, &length.to_be_bytes());
        assert_eq!(pairs(&log.reader()), expected(0..9), "{length}");
        holds(&log, 9);
        // In the middle of a sealed one: reported, and read past.
        let log = closed(150);
        let path = file(&log, bases(&log)[1], "log");
        let (position, _, lost, _) = batches_in(&path)[5];
        write_at(&path, position + 8, &length.to_be_bytes());
        for reader in [log.reader(), log.open().reader()] {
            let (found, failed): (Vec<_>, Vec<_>) = reader.owned_records(at(0)).partition(Result::is_ok);
            assert_eq!((found.len(), failed.len()), (149, 1), "{length}");
            assert!(reader.record(at(lost)).is_err());
            assert!(reader.record(at(149)).unwrap().is_some());
            let _ = reader.offset_for_timestamp(Timestamp::from_millis(1));
            let mut bytes = Vec::new();
            let _ = reader.read(at(lost), 1 << 20, &mut bytes);
            assert!(bytes.len() <= 1 << 20);
        }
    }
}

#[test]
fn f139_a_segment_near_two_gibibytes_rolls_before_positions_overflow() {
    let log = TempLog::in_memory(|config| {
        config.segment_bytes = i32::MAX.unsigned_abs();
        config.preallocate = Preallocate::Off;
        config.max_batch_bytes = 1 << 20;
    });
    fs::create_dir(log.path()).unwrap();
    // A sparse file: batches at its beginning, and one right at the end of what positions can name.
    let path = file(&log, 0, "log");
    fs::write(&path, batch(0, &[b"first"])).unwrap();
    let far = 2_147_483_000_u64;
    set_len(&path, far);
    append_bytes(&path, &batch(1, &[b"far"]));
    let reader = log.reader();
    assert_eq!(reader.record(at(0)).unwrap().unwrap().value.as_deref(), Some(&b"first"[..]));
    drop(reader);
    // Without a recovery point the zeros end the log; what is behind them is kept aside.
    let mut writer = log.open();
    assert_eq!(writer.end(), at(1));
    fill(&mut writer, 1);
    writer.close().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 4096);
    let writer = log.open();
    assert_eq!(all(&writer.reader()).len(), 2);
    drop(writer);
    // Longer than any segment may be: a clear error and no change.
    set_len(&path, 1 << 31);
    for error in [
        LogWriter::open(log.path(), log.config.clone()).unwrap_err(),
        stratalog::LogReader::open(log.path(), stratalog::ReadOptions::default()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("2147483648"), "{error}");
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 31);
}

#[test]
fn f139_settings_outside_their_ranges_are_refused() {
    for bytes in [0, 1, 1023, 1 << 31, u32::MAX] {
        let log = TempLog::in_memory(|config| config.segment_bytes = bytes);
        let opened = LogWriter::open(log.path(), log.config.clone());
        assert!(matches!(opened, Err(Error::InvalidConfig { name: "segment_bytes", .. })), "{bytes}");
        assert!(!log.path().exists(), "nothing is created with senseless settings");
    }
}

#[test]
fn f140_a_batch_as_large_as_a_segment_has_one_and_a_larger_one_is_refused() {
    let overhead = batch(0, &[&[0; 3000]]).len() - 3000;
    for preallocate in [Preallocate::Off, Preallocate::Stepped, Preallocate::Whole] {
        for size in [4095, 4096, 4097, 8192, 2 << 20] {
            for is_first in [true, false] {
                let log = TempLog::in_memory(|config| config.preallocate = preallocate);
                let mut writer = log.open();
                if !is_first {
                    fill(&mut writer, 1);
                }
                let before = (writer.end(), writer.reader().segments().len());
                let value = vec![1; size - overhead];
                let result = writer.append_records(&[Record::value_only(&value)], ASSIGN);
                if size <= 4096 {
                    result.unwrap();
                    let rolls = writer.reader().segments().len() - before.1;
                    assert_eq!(rolls, usize::from(!is_first), "{size}");
                } else {
                    assert!(matches!(result, Err(Error::TooLarge { .. })), "{size}: {result:?}");
                    assert_eq!((writer.end(), writer.reader().segments().len()), before);
                }
                let end = writer.end();
                drop(writer);
                assert_eq!(log.open().end(), end);
            }
        }
    }
}

#[test]
fn f142_header_offsets_that_do_not_fit_the_records_are_refused() {
    let three = || batch(0, &[b"a", b"b", b"c"]);
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    for delta in [10_i32, 1, -1, i32::MAX, i32::MIN] {
        let odd = with_field(three(), LAST_OFFSET_DELTA_AT, &delta.to_be_bytes());
        let error = refused(&mut writer, &odd, ASSIGN);
        assert!(matches!(error, Error::InvalidBatch(_)), "{delta}: {error}");
        let preserved = writer.append(&odd, PRESERVE);
        match delta {
            // Fewer records than offsets is what compaction leaves.
            10 => assert_eq!(preserved.unwrap().last_offset, at(10)),
            _ => assert!(matches!(preserved, Err(Error::InvalidBatch(_))), "{delta}: {preserved:?}"),
        }
    }
    assert_eq!(writer.end(), at(11));
    fill(&mut writer, 1);
    assert_eq!(all(&writer.reader()).len(), 4);
    assert_eq!(writer.reader().record(at(7)).unwrap(), None);
}

#[test]
fn f143_empty_input_and_batches_cut_at_any_byte_are_refused() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    assert!(matches!(refused(&mut writer, &[], ASSIGN), Error::InvalidBatch(_)));
    assert!(writer.append_records(&[], ASSIGN).is_err());
    let good = batch(0, &[b"some value", b""]);
    for keep in 1..good.len() {
        refused(&mut writer, &good[..keep], ASSIGN);
        // With a length and a checksum that fit what is left, the records may still be too few.
        if keep > 61 {
            let mut cut = good[..keep].to_vec();
            let length = i32::try_from(keep - 12).unwrap();
            cut[8..12].copy_from_slice(&length.to_be_bytes());
            let cut = with_field(cut, 8, &length.to_be_bytes());
            if writer.append(&cut, ASSIGN).is_ok() {
                // Accepted unread, as a broker does not; then each reader must survive it.
                let reader = writer.reader();
                let outcomes: Vec<_> = reader.owned_records(reader.start()).take(500).collect();
                assert!(outcomes.len() < 500);
            }
        }
    }
    for records in
        [vec![Record::new()], vec![Record::new().key(b"").value(b"")], vec![Record::tombstone(b"k")]]
    {
        let end = writer.end();
        writer.append_records(&records, ASSIGN).unwrap();
        let found = writer.reader().record(end).unwrap().unwrap();
        assert_eq!((found.key.as_deref(), found.value.as_deref()), (records[0].key, records[0].value));
    }
}

#[test]
fn f148_odd_names_and_things_in_the_directory_do_not_stop_it() {
    let log = closed(20);
    let dir = log.path();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.join("00000000000000000030.log"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let _socket = UnixListener::bind(dir.join("00000000000000000040.index")).unwrap();
    fs::create_dir(dir.join("lost+found")).unwrap();
    fs::write(dir.join(std::ffi::OsStr::from_bytes(b"\xFF\xFE.log")), b"x").unwrap();
    std::os::unix::fs::symlink("/nowhere", dir.join("00000000000000000050.timeindex")).unwrap();
    assert_eq!(pairs(&log.reader()), expected(0..20));
    holds(&log, 20);
    assert!(names_lossy(&dir).iter().any(|name| name.ends_with("30.log")));
    // A link where a segment belongs is named, and not followed.
    let log = closed(20);
    std::os::unix::fs::symlink("/nowhere", log.path().join("00000000000000000050.log")).unwrap();
    let error = LogWriter::open(log.path(), log.config.clone()).unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    // Directory names need not be a topic's.
    for name in ["a", ".", "x.deleted", "a-0-b", "-1", &"n".repeat(255)] {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join(name);
        let mut writer = LogWriter::open(&path, log.config.clone()).unwrap();
        fill(&mut writer, 2);
        writer.close().unwrap();
        assert_eq!(LogWriter::open(&path, log.config.clone()).unwrap().end(), at(2), "{name}");
    }
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join(std::ffi::OsStr::from_bytes(b"\xFFodd-0"));
    let mut writer = LogWriter::open(&path, log.config.clone()).unwrap();
    fill(&mut writer, 1);
    let too_long = LogWriter::open(temp.path().join("n".repeat(256)), log.config.clone());
    assert!(matches!(too_long, Err(Error::Io { .. })), "{too_long:?}");
}

fn names_lossy(dir: &std::path::Path) -> Vec<String> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn f149_offsets_below_the_end_are_refused_and_gaps_are_kept() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 10);
    for base in [0, 9] {
        let error = refused(&mut writer, &batch(base, &[b"x"]), PRESERVE);
        assert!(matches!(error, Error::InvalidBatch(_)), "{base}: {error}");
    }
    let negative = with_field(batch(10, &[b"x"]), 0, &(-1_i64).to_be_bytes());
    refused(&mut writer, &negative, PRESERVE);
    let last = with_field(batch(10, &[b"x"]), 0, &i64::MAX.to_be_bytes());
    refused(&mut writer, &last, PRESERVE);
    writer.append(&batch(10, &[b"10"]), PRESERVE).unwrap();
    writer.append(&batch(16, &[b"16"]), PRESERVE).unwrap();
    assert_eq!(writer.end(), at(17));
    let mut wanted = expected(0..11);
    wanted.extend(expected(16..17));
    assert_eq!(pairs(&writer.reader()), wanted);
    assert_eq!(writer.reader().record(at(12)).unwrap(), None);
    drop(writer);
    assert_eq!(pairs(&log.open().reader()), wanted);
}

#[test]
fn f150_the_checksum_is_castagnoli_over_the_right_bytes() {
    assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    let log = killed(1);
    let bytes = fs::read(file(&log, 0, "log")).unwrap();
    let (_, size, ..) = batches_in(&file(&log, 0, "log"))[0];
    let stored = u32::from_be_bytes(bytes[17..21].try_into().unwrap());
    assert_eq!(stored, crc32c(&bytes[21..usize::try_from(size).unwrap()]));
}

#[test]
fn offsets_and_timestamps_at_the_ends_of_their_ranges() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    let last = i64::MAX - 2;
    writer.append(&batch(last, &[b"last"]), PRESERVE).unwrap();
    assert_eq!(writer.end(), at(i64::MAX - 1));
    for timestamp in [i64::MAX, i64::MIN, 0] {
        let records = [Record::value_only(b"a").timestamp(Timestamp::from_millis(timestamp)); 3];
        let refused = writer.append_records(&records, ASSIGN);
        assert!(refused.is_err(), "past the last offset there is: {refused:?}");
    }
    assert_eq!(writer.reader().record(at(last)).unwrap().unwrap().value.as_deref(), Some(&b"last"[..]));
    drop(writer);
    let mut writer = log.open();
    assert_eq!(writer.end(), at(i64::MAX - 1));
    writer.append_records(&[Record::value_only(b"x")], ASSIGN).unwrap();
    assert_eq!(writer.end(), at(i64::MAX));
    assert!(writer.append_records(&[Record::value_only(b"y")], ASSIGN).is_err());
    writer.close().unwrap();
    assert_eq!(log.open().end(), at(i64::MAX));
}

#[test]
fn a_read_only_file_system_is_read_and_refuses_writing() {
    let Some(disk) = crate::support::SmallDisk::new(1 << 20) else { return };
    let mut log = closed(20);
    let inside = disk.path().join("t-0");
    crate::support::copy_dir(&log.path(), &inside);
    let status =
        std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(disk.path()).status().unwrap();
    assert!(status.success());
    log.config.open = OpenMode::MustExist;
    assert_eq!(pairs(&super::reader_of(&inside)), expected(0..20));
    let opened = LogWriter::open(&inside, log.config.clone());
    assert!(matches!(opened, Err(Error::CannotLock { .. } | Error::Io { .. })), "{opened:?}");
}

#[test]
fn a_directory_that_is_not_there_is_not_found_and_not_made() {
    let mut log = TempLog::in_memory(|_| {});
    log.config.open = OpenMode::MustExist;
    assert!(matches!(LogWriter::open(log.path(), log.config.clone()), Err(Error::NotFound { .. })));
    let reader = stratalog::LogReader::open(log.path(), stratalog::ReadOptions::default());
    assert!(matches!(reader, Err(Error::NotFound { .. })));
    fs::create_dir(log.path()).unwrap();
    let reader = stratalog::LogReader::open(log.path(), stratalog::ReadOptions::default());
    assert!(matches!(reader, Err(Error::NotFound { .. })), "an empty directory holds no log");
    let file = log.temp.path().join("file");
    fs::write(&file, b"x").unwrap();
    assert!(LogWriter::open(&file, log.config.clone()).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"x");
    assert!(names(&log.path()).is_empty());
}

#[test]
fn a_file_that_cannot_be_read_at_a_place_is_an_error_and_not_an_end() {
    let log = closed(150);
    let path = file(&log, bases(&log)[1], "log");
    let mut byte = [0];
    fs::File::open(&path).unwrap().read_exact_at(&mut byte, 0).unwrap();
    // Shorter than it was when it was sealed.
    set_len(&path, 100);
    let reader = log.reader();
    let results: Vec<_> = reader.owned_records(at(0)).collect();
    assert!(results.iter().any(Result::is_err), "records are missing and nothing is said");
    flip(&path, 70);
}
