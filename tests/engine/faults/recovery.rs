//! Crash recovery: F001 to F032.

use std::{fs, os::unix::fs::FileExt};

use stratalog::{Error, LogWriter, RecoveryMode};

use super::{
    append_bytes, bases, batch, batches_in, closed, copy_of, file, flip, forget, holds, killed, len, names,
    set_len, with_field, write_at,
};
use crate::support::{TempLog, all, at, expected, fill, pairs, put};

#[test]
fn f001_a_clean_mark_is_not_believed_for_files_it_does_not_describe() {
    let log = closed(30);
    let last = *bases(&log).last().unwrap();
    append_bytes(&file(&log, last, "log"), &[0xA5; 20]);
    let mut writer = log.open();
    assert!(!writer.recovery().clean);
    assert_eq!(writer.recovery().cut.as_ref().unwrap().bytes, 20);
    // And never twice: what comes after the first change is scanned.
    fill(&mut writer, 1);
    drop(writer);
    let last = *bases(&log).last().unwrap();
    let (position, size, ..) = *batches_in(&file(&log, last, "log")).last().unwrap();
    flip(&file(&log, last, "log"), position + size - 1);
    let writer = log.open();
    assert!(!writer.recovery().clean && writer.recovery().cut.is_some(), "{:?}", writer.recovery());
    drop(writer);
    holds(&log, 30);
}

#[test]
fn f001_the_clean_mark_goes_before_the_first_change_and_stays_without_one() {
    let log = closed(10);
    let checkpoint = log.path().join(".stratalog-checkpoint");
    let clean = fs::read(&checkpoint).unwrap();
    drop(log.open());
    assert_eq!(fs::read(&checkpoint).unwrap(), clean, "an open that changed nothing took the mark away");
    let mut writer = log.open();
    fill(&mut writer, 1);
    let now = fs::read(&checkpoint).unwrap();
    assert_eq!(now[19] & 1, 0, "still marked clean");
    drop(writer);
}

#[test]
fn f002_a_recovery_point_beyond_the_end_is_not_believed() {
    for stored in ["1000000", "-1", "9223372036854775807"] {
        let log = killed(100);
        forget(&log);
        let last = *bases(&log).last().unwrap();
        let path = file(&log, last, "log");
        let (position, size, ..) = *batches_in(&path).last().unwrap();
        set_len(&path, position + size - 5);
        fs::write(log.temp.path().join("meta.properties"), "").unwrap();
        let points = log.temp.path().join("recovery-point-offset-checkpoint");
        fs::write(&points, format!("0\n1\nt 0 {stored}\n")).unwrap();
        let writer = log.open();
        assert_eq!(writer.end(), at(99), "{stored}: {:?}", writer.recovery());
        assert!(writer.recovery().cut.is_some());
        writer.close().unwrap();
        holds(&log, 99);
        let text = fs::read_to_string(&points).unwrap();
        let point: i64 = text.lines().last().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert!((0..=101).contains(&point), "{stored}: {text}");
    }
}

#[test]
fn f003_state_files_are_hints_whatever_is_in_them() {
    let junk: [Vec<u8>; 6] = [
        Vec::new(),
        vec![0; 4096],
        b"aa".to_vec(),
        b"0\n5\n0 0\n1 10\n".to_vec(),
        b"0\n-1\n".to_vec(),
        (0..1_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect(),
    ];
    let beside = [
        ".stratalog-checkpoint",
        ".stratalog-summary",
        ".stratalog-control",
        "leader-epoch-checkpoint",
        ".lock",
    ];
    let above = ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "meta.properties"];
    for bytes in &junk {
        for is_clean in [true, false] {
            for name in beside.iter().chain(&above) {
                let log = if is_clean { closed(80) } else { killed(80) };
                let dir = if above.contains(name) { log.temp.path().to_owned() } else { log.path() };
                fs::write(dir.join(name), bytes).unwrap();
                let writer = log.open();
                assert_eq!(writer.recovery().lost, None, "{name}");
                drop(writer);
                holds(&log, 80);
            }
        }
    }
}

#[test]
fn f003_an_unreadable_state_file_is_named_in_a_warning() {
    for name in [".stratalog-checkpoint", "leader-epoch-checkpoint"] {
        let log = killed(10);
        fs::write(log.path().join(name), b"aa").unwrap();
        let writer = log.open();
        let warnings = &writer.recovery().warnings;
        assert!(warnings.iter().any(|warning| warning.contains(name)), "{name}: {warnings:?}");
    }
}

#[test]
fn f004_a_healthy_index_does_not_hide_a_cut_tail() {
    let log = killed(50);
    forget(&log);
    let last = *bases(&log).last().unwrap();
    let (position, size, ..) = *batches_in(&file(&log, last, "log")).last().unwrap();
    for missing in 1..=size {
        let copy = copy_of(&log);
        set_len(&file(&copy, last, "log"), position + size - missing);
        holds(&copy, 49);
    }
}

#[test]
fn f005_offsets_that_go_back_end_the_log() {
    let log = killed(10);
    forget(&log);
    let path = file(&log, 0, "log");
    let batches = batches_in(&path);
    let (third, last) = (batches[3], *batches.last().unwrap());
    let bytes = fs::read(&path).unwrap();
    let start = usize::try_from(third.0).unwrap();
    let copy = bytes[start..start + usize::try_from(third.1).unwrap()].to_vec();
    set_len(&path, last.0 + last.1);
    append_bytes(&path, &copy);
    let writer = log.open();
    let cut = writer.recovery().cut.as_ref().unwrap();
    assert_eq!(cut.offset, at(10));
    // Kept, but for zeros at its end.
    let kept = fs::read(&cut.kept_in[0]).unwrap();
    assert!(copy.starts_with(&kept) && copy[kept.len()..].iter().all(|byte| *byte == 0), "{kept:?}");
    assert_eq!(cut.bytes, kept.len() as u64);
    drop(writer);
    holds(&log, 10);
}

#[test]
fn f005_an_offset_that_indexes_cannot_name_ends_the_log() {
    let log = killed(10);
    forget(&log);
    let path = file(&log, 0, "log");
    let last = *batches_in(&path).last().unwrap();
    set_len(&path, last.0 + last.1);
    append_bytes(&path, &batch(3_000_000_009, &[b"far"]));
    holds(&log, 10);
}

#[test]
fn f006_a_half_deleted_segment_does_not_stop_the_log() {
    let original = closed(150);
    let second = bases(&original)[1];
    let kinds = ["log", "index", "timeindex"];
    for subset in 1..8_usize {
        for is_renamed in [false, true] {
            let log = copy_of(&original);
            for (bit, kind) in kinds.iter().enumerate().filter(|(bit, _)| subset >> bit & 1 == 1) {
                let path = file(&log, 0, kind);
                if is_renamed && bit % 2 == 0 {
                    fs::rename(&path, path.with_extension(format!("{kind}.deleted"))).unwrap();
                } else {
                    fs::remove_file(&path).unwrap();
                }
            }
            let start = if subset & 1 == 1 { second } else { 0 };
            let mut writer = log.open();
            assert_eq!((writer.start(), writer.end()), (at(start), at(150)), "{subset}");
            assert_eq!(pairs(&writer.reader()), expected(start..150));
            let names = names(&log.path());
            assert!(!names.iter().any(|name| name.ends_with(".deleted")), "{names:?}");
            let has_first = names.iter().any(|name| name.starts_with("00000000000000000000."));
            assert_eq!(has_first, start == 0, "{names:?}");
            fill(&mut writer, 1);
            writer.close().unwrap();
            assert_eq!(pairs(&log.open().reader()), expected(start..151));
        }
    }
}

#[test]
fn f007_one_bad_index_does_not_make_the_whole_log_be_read() {
    let log = closed(400);
    let all = bases(&log);
    flip(&file(&log, all[1], "index"), 4);
    let writer = log.open();
    assert!(writer.recovery().clean);
    assert_eq!(writer.recovery().scanned_bytes, 0);
    assert_eq!(pairs(&writer.reader()), expected(0..400));
    drop(writer);
    // After a crash, the segments below the recovery point stay unread too.
    let mut writer = log.open();
    fill(&mut writer, 1);
    drop(writer);
    flip(&file(&log, all[2], "index"), 4);
    let writer = log.open();
    let scanned = writer.recovery().scanned_bytes;
    assert!(scanned > 0 && scanned <= 4096, "{scanned} bytes of {} segments", all.len());
}

#[test]
fn f010_a_file_shorter_than_a_batch_header_is_used_again() {
    for keep in [30, 1, 60] {
        let log = killed(5);
        forget(&log);
        set_len(&file(&log, 0, "log"), keep);
        drop(log.open());
        assert_eq!(len(&file(&log, 0, "log")), 0);
        holds(&log, 0);
        assert_eq!(bases(&log), [0]);
    }
}

#[test]
fn f011_names_that_only_look_like_segments_are_left_alone() {
    let log = closed(20);
    let segment = fs::read(file(&log, 0, "log")).unwrap();
    let others = [
        "00000000000000000000.log.tmp",
        "00000000000000000000.log.swp",
        "00000000000000000000.log~",
        "00000000000000000000.log.bak",
        "0.log",
        "+0000000000000000005.log",
        "000000000000000000000.log",
        "00000000000000000007.LOG",
        "99999999999999999999.log",
    ];
    for name in others {
        fs::write(log.path().join(name), &segment).unwrap();
    }
    fs::create_dir(log.path().join("00000000000000000009.log")).unwrap();
    holds(&log, 20);
    let now = names(&log.path());
    for name in others.iter().chain(&["00000000000000000009.log"]) {
        assert!(now.iter().any(|found| found == name), "{name} is gone: {now:?}");
    }
}

#[test]
fn f012_a_missing_middle_segment_is_a_gap_and_nothing_else() {
    for is_known in [true, false] {
        let log = closed(200);
        let all = bases(&log);
        for kind in ["log", "index", "timeindex"] {
            fs::remove_file(file(&log, all[1], kind)).unwrap();
        }
        if !is_known {
            forget(&log);
        }
        let writer = log.open();
        assert_eq!((&writer.recovery().cut, writer.recovery().corrupt.len()), (&None, 0));
        let told =
            writer.recovery().warnings.iter().filter(|warning| warning.contains("is not there")).count();
        assert_eq!(told, usize::from(is_known), "{:?}", writer.recovery().warnings);
        let reader = writer.reader();
        let left: Vec<_> = expected(0..all[1]).into_iter().chain(expected(all[2]..200)).collect();
        assert_eq!(pairs(&reader), left);
        assert_eq!(reader.record(at(all[1])).unwrap(), None);
        assert_eq!(reader.owned_records(at(all[1] + 1)).next().unwrap().unwrap().offset, at(all[2]));
        assert_eq!((writer.start(), writer.end()), (at(0), at(200)));
    }
}

#[test]
fn f012_a_segment_that_lost_bytes_is_named() {
    let log = closed(200);
    let all = bases(&log);
    fs::write(file(&log, all[1], "log"), []).unwrap();
    let writer = log.open();
    let told: Vec<_> =
        writer.recovery().warnings.iter().filter(|warning| warning.contains("made durable")).collect();
    assert_eq!(told.len(), 1, "{:?}", writer.recovery());
    assert!(told[0].contains(&format!("{:020}.log", all[1])) && told[0].contains("has 0 bytes"), "{told:?}");
    writer.close().unwrap();
    assert_eq!(log.open().recovery().warnings, Vec::<String>::new(), "once");
}

#[test]
fn f015_a_flipped_bit_costs_one_batch_and_no_byte() {
    let log = closed(250);
    let mut writer = log.open();
    fill(&mut writer, 5);
    drop(writer);
    let second = bases(&log)[1];
    let path = file(&log, second, "log");
    let (position, size, lost, _) = batches_in(&path)[10];
    flip(&path, position + size - 1);
    let sizes = |log: &TempLog| -> Vec<u64> {
        let all = bases(log);
        all[..all.len() - 1].iter().map(|base| len(&file(log, *base, "log"))).collect()
    };
    let before = sizes(&log);
    let writer = log.open();
    assert_eq!(writer.recovery().cut, None);
    let reader = writer.reader();
    let damage = reader.record(at(lost)).unwrap_err();
    let Error::Corrupt(damage) = damage else { panic!("{damage}") };
    assert_eq!((&damage.path, damage.position, damage.offset), (&path, position, Some(at(lost))));
    let (found, failed): (Vec<_>, Vec<_>) = reader.owned_records(at(0)).partition(Result::is_ok);
    assert_eq!((found.len(), failed.len()), (254, 1));
    assert_eq!(writer.end(), at(255));
    drop(writer);
    assert_eq!(sizes(&log), before);
}

#[test]
fn f015_without_a_recovery_point_only_the_last_segment_may_be_cut() {
    let log = killed(250);
    forget(&log);
    let second = bases(&log)[1];
    let path = file(&log, second, "log");
    let (position, size, ..) = batches_in(&path)[10];
    flip(&path, position + size - 1);
    let before = len(&path);
    let writer = log.open();
    assert_eq!((&writer.recovery().cut, writer.recovery().corrupt.len()), (&None, 1));
    assert_eq!(len(&path), before);
    drop(writer);
    let mut strict = log.config.clone();
    strict.recovery = RecoveryMode::RefuseAnyDamage;
    flip(&file(&log, *bases(&log).last().unwrap(), "log"), 40);
    assert!(matches!(LogWriter::open(log.path(), strict), Err(Error::Corrupt(_))));
}

#[test]
fn f017_an_append_lands_behind_the_last_batch_with_or_without_slack() {
    let log = closed(1);
    let size = len(&file(&log, 0, "log"));
    let mut exact = TempLog { temp: log.temp, config: log.config };
    // The file's length is exactly the segment's size.
    exact.config.segment_bytes = 1024;
    let mut writer = exact.open();
    let room = 1024 - usize::try_from(size).unwrap();
    let overhead = batch(0, &[b""]).len();
    let value = vec![b'x'; room - overhead - 2];
    put(&mut writer, &value);
    let end = writer.reader().segments()[0].size_bytes;
    assert!((1022..=1024).contains(&end), "{end}");
    writer.close().unwrap();
    let mut writer = exact.open();
    fill(&mut writer, 1);
    let records = all(&writer.reader());
    assert_eq!(records[0].value.as_deref(), Some(&b"0"[..]));
    assert_eq!(records[1].value.as_deref(), Some(&value[..]));
    assert_eq!(records[2].value.as_deref(), Some(&b"2"[..]));
}

#[test]
fn f018_a_crash_at_any_point_of_a_roll_is_opened() {
    let original = killed(20);
    for step in 0..5 {
        let log = copy_of(&original);
        let sealed = batches_in(&file(&log, 0, "log")).last().map(|last| last.0 + last.1).unwrap();
        set_len(&file(&log, 0, "log"), sealed);
        let next = file(&log, 20, "log");
        if step >= 1 {
            fs::write(&next, b"").unwrap();
        }
        if step >= 2 {
            set_len(&next, 65536);
        }
        if step >= 3 {
            fs::write(file(&log, 20, "index"), b"").unwrap();
        }
        if step >= 4 {
            fs::write(file(&log, 20, "timeindex"), vec![0; 4096]).unwrap();
        }
        let writer = log.open();
        assert_eq!(writer.recovery().cut, None, "reserved blocks are no damage");
        drop(writer);
        holds(&log, 20);
    }
}

#[test]
fn f022_a_missing_or_empty_last_file_does_not_stop_the_log() {
    // Never synced: nothing tells of what was there but the names before it.
    let original = killed(150);
    let last = *bases(&original).last().unwrap();
    for what in ["log", "empty", "all"] {
        let log = copy_of(&original);
        forget(&log);
        match what {
            "log" => fs::remove_file(file(&log, last, "log")).unwrap(),
            "empty" => set_len(&file(&log, last, "log"), 0),
            _ => ["log", "index", "timeindex"]
                .iter()
                .for_each(|kind| fs::remove_file(file(&log, last, kind)).unwrap()),
        }
        let writer = log.open();
        assert_eq!(writer.end(), at(last), "{what}: {:?}", writer.recovery());
        drop(writer);
        holds(&log, last);
    }
}

#[test]
fn f022_offsets_that_were_durable_are_not_given_again() {
    for what in ["removed", "emptied"] {
        let log = closed(150);
        let last = *bases(&log).last().unwrap();
        if what == "removed" {
            fs::remove_file(file(&log, last, "log")).unwrap();
        } else {
            set_len(&file(&log, last, "log"), 0);
        }
        let mut writer = log.open();
        assert_eq!(writer.recovery().lost, Some(at(last)..at(150)), "{:?}", writer.recovery());
        assert_eq!(writer.end(), at(150));
        assert!(writer.leader_epoch() > 0, "what follows is another history");
        fill(&mut writer, 1);
        writer.close().unwrap();
        let writer = log.open();
        assert_eq!((writer.end(), &writer.recovery().lost), (at(151), &None));
        drop(writer);
        let mut strict = log.config.clone();
        strict.recovery = RecoveryMode::RefuseAnyDamage;
        let last = *bases(&log).last().unwrap();
        set_len(&file(&log, last, "log"), 0);
        assert!(LogWriter::open(log.path(), strict).is_err());
    }
}

#[test]
fn f024_a_zeroed_header_in_a_sealed_segment_is_not_an_end() {
    let log = closed(250);
    let second = bases(&log)[1];
    let path = file(&log, second, "log");
    let (position, _, lost, _) = batches_in(&path)[10];
    write_at(&path, position, &[0; 61]);
    for (reader, _writer) in [(log.reader(), None), {
        let writer = log.open();
        (writer.reader(), Some(writer))
    }] {
        let (found, failed): (Vec<_>, Vec<_>) = reader.owned_records(at(0)).partition(Result::is_ok);
        assert_eq!((found.len(), failed.len()), (249, 1));
        let said = failed[0].as_ref().unwrap_err().to_string();
        assert!(said.contains("zeros"), "{said}");
        let first = reader.owned_records(at(lost)).next().unwrap();
        assert!(matches!(first, Err(Error::Corrupt(_))), "{first:?}");
        assert!(reader.record(at(249)).unwrap().is_some());
    }
}

#[test]
fn f024_zeros_up_to_the_end_of_a_sealed_segment_are_not_its_end() {
    let log = closed(250);
    let second = bases(&log)[1];
    let path = file(&log, second, "log");
    let (position, _, lost, _) = batches_in(&path)[10];
    let size = len(&path);
    write_at(&path, position, &vec![0; usize::try_from(size - position).unwrap()]);
    for reader in [log.reader(), log.open().reader()] {
        let results: Vec<_> = reader.owned_records(at(0)).collect();
        let errors = results.iter().filter(|result| result.is_err()).count();
        assert_eq!(errors, 1, "records are missing and nothing is said");
        assert!(matches!(reader.owned_records(at(lost)).next(), Some(Err(Error::Corrupt(_)))));
        assert!(reader.record(at(lost)).is_err());
        assert!(reader.record(at(249)).unwrap().is_some());
    }
}

#[test]
fn f027_padded_files_are_read_right() {
    let original = closed(150);
    let all = bases(&original);
    let padded = |log: &TempLog, kinds: &[&str]| {
        for base in &all {
            for kind in kinds {
                let path = file(log, *base, kind);
                set_len(&path, len(&path).next_multiple_of(4096).max(4096));
            }
        }
    };
    for kinds in [&["log"][..], &["index"], &["timeindex"], &["log", "index", "timeindex"]] {
        for is_known in [true, false] {
            let log = copy_of(&original);
            padded(&log, kinds);
            assert_eq!(pairs(&log.reader()), expected(0..150), "{kinds:?}");
            if !is_known {
                forget(&log);
            }
            holds(&log, 150);
        }
    }
    for (kind, more) in
        [("index", 1), ("index", 3), ("index", 7), ("timeindex", 1), ("timeindex", 7), ("timeindex", 11)]
    {
        let log = copy_of(&original);
        for base in &all {
            append_bytes(&file(&log, *base, kind), &vec![0xEE; more]);
        }
        assert_eq!(pairs(&log.reader()), expected(0..150), "{kind} {more}");
        holds(&log, 150);
    }
}

#[test]
fn f028_a_reader_near_the_end_misses_nothing_over_a_restart() {
    let log = closed(100);
    let mut writer = log.open();
    let reader = writer.reader();
    let outside = log.reader();
    let mut walks = [reader.records(at(90)), outside.records(at(90))];
    let mut seen = [Vec::new(), Vec::new()];
    for _ in 0..100 {
        fill(&mut writer, 1);
        outside.refresh().unwrap();
        for (walk, seen) in walks.iter_mut().zip(&mut seen) {
            while let Some(record) = walk.next_record().unwrap() {
                seen.push(record.offset().value());
            }
        }
    }
    for seen in seen {
        assert_eq!(seen, (90..200).collect::<Vec<_>>());
    }
}

#[test]
fn f030_what_is_appended_after_a_torn_tail_stays() {
    for garbage in [1, 30, 5000] {
        for is_known in [true, false] {
            let log = closed(20);
            append_bytes(&file(&log, 0, "log"), &vec![0xFF; garbage]);
            if !is_known {
                forget(&log);
            }
            let mut writer = log.open();
            let cut_to = writer.reader().segments()[0].size_bytes;
            assert_eq!(len(&file(&log, 0, "log")), cut_to, "the tail is still there");
            fill(&mut writer, 3);
            writer.sync().unwrap();
            writer.close().unwrap();
            holds(&log, 23);
        }
    }
}

#[test]
fn f031_zeros_where_unsynced_blocks_were_end_the_log_and_nothing_is_revived() {
    for zeroed in [vec![0], vec![3], vec![1, 2], vec![0, 3], vec![2]] {
        let log = TempLog::in_memory(|config| config.segment_bytes = 1 << 20);
        let mut writer = log.open();
        fill(&mut writer, 100);
        writer.sync().unwrap();
        writer.maintain().unwrap();
        let synced = len(&file(&log, 0, "log")).min(writer.reader().segments()[0].size_bytes);
        fill(&mut writer, 300);
        drop(writer);
        let path = file(&log, 0, "log");
        // Blocks above the first whole one that no sync covered.
        let first = synced.next_multiple_of(4096);
        for block in &zeroed {
            write_at(&path, first + block * 4096, &[0; 4096]);
        }
        let bad = first + zeroed[0] * 4096;
        let good: i64 = batches_in(&path)
            .iter()
            .take_while(|(position, size, ..)| position + size <= bad)
            .map(|(.., last)| last + 1)
            .last()
            .unwrap();
        assert!(good >= 100);
        let writer = log.open();
        assert_eq!(writer.end(), at(good), "{:?}", writer.recovery());
        drop(writer);
        holds(&log, good);
    }
}

#[test]
fn f032_every_file_but_the_log_may_be_missing() {
    for is_clean in [true, false] {
        let original = if is_clean { closed(150) } else { killed(150) };
        let others: Vec<String> =
            names(&original.path()).into_iter().filter(|name| !name.ends_with(".log")).collect();
        assert!(others.len() > 6, "{others:?}");
        for name in others.iter().map(Some).chain([None]) {
            let log = copy_of(&original);
            match name {
                Some(name) => fs::remove_file(log.path().join(name)).unwrap(),
                None => others.iter().for_each(|name| fs::remove_file(log.path().join(name)).unwrap()),
            }
            assert_eq!(pairs(&log.reader()), expected(0..150), "{name:?}");
            holds(&log, 150);
            let now = names(&log.path());
            for base in bases(&log) {
                for kind in ["index", "timeindex"] {
                    // Those that nobody needed yet are made when they are.
                    let name = format!("{base:020}.{kind}");
                    assert!(now.contains(&name) || is_clean, "{name} is not there again: {now:?}");
                }
            }
        }
    }
}

#[test]
fn recovery_of_a_cut_that_was_begun_is_finished_by_a_second_open_without_finding_anything() {
    let log = killed(20);
    forget(&log);
    flip(&file(&log, 0, "log"), batches_in(&file(&log, 0, "log"))[15].0 + 65);
    let writer = log.open();
    let cut = writer.recovery().cut.clone().unwrap();
    assert_eq!(cut.offset, at(15));
    assert!(cut.bytes > 0);
    drop(writer);
    let before = fs::read(file(&log, 0, "log")).unwrap();
    let writer = log.open();
    assert_eq!(writer.recovery().cut, None);
    assert_eq!(writer.end(), at(15));
    drop(writer);
    assert_eq!(fs::read(file(&log, 0, "log")).unwrap(), before, "a second open changes no byte of the log");
}

#[test]
fn a_read_error_is_never_taken_for_an_end() {
    // A directory stands where bytes are asked for.
    let log = closed(10);
    let path = file(&log, 0, "log");
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let opened = LogWriter::open(log.path(), log.config.clone());
    if let Ok(writer) = &opened {
        assert_eq!(writer.recovery().lost, Some(at(0)..at(10)), "{:?}", writer.recovery());
        assert_eq!(writer.end(), at(10));
    }
    drop(opened);
    assert!(path.is_dir(), "what is not ours is left alone");
    drop(bytes);
}

#[test]
fn f005_a_batch_with_a_right_checksum_and_a_negative_offset_is_cut() {
    let log = killed(10);
    forget(&log);
    let path = file(&log, 0, "log");
    let last = *batches_in(&path).last().unwrap();
    set_len(&path, last.0 + last.1);
    append_bytes(&path, &with_field(batch(10, &[b"x"]), 0, &(-5_i64).to_be_bytes()));
    let _ = fs::File::open(&path).unwrap().read_at(&mut [0; 1], 0);
    holds(&log, 10);
}

#[test]
fn f032_epochs_of_another_time_do_not_contradict_the_batches() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    writer.set_leader_epoch(1).unwrap();
    drop(writer);
    let path = log.path().join("leader-epoch-checkpoint");
    let old = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let mut writer = log.open();
    for _ in 0..3 {
        fill(&mut writer, 2);
        writer.roll().unwrap();
    }
    assert_eq!(writer.leader_epoch(), 0);
    drop(writer);
    fs::write(&path, old).unwrap();
    let mut writer = log.open();
    assert_eq!(
        writer.reader().leader_epochs(),
        [(0, at(0)), (1, at(6))],
        "epochs rise, and begin where they do"
    );
    fill(&mut writer, 2);
    assert_eq!(pairs(&log.reader()), expected(0..8));
}
