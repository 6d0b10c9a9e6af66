//! What is known outlives the writer, whatever became of the files that help to know it.

use std::{collections::BTreeMap, fs, path::Path};

use stratalog::{AppendOptions, LogWriter};

use super::{expected_sequence, fenced_by, known, nobody, place, producers_log, raw, send, snapshots};
use crate::support::{TempLog, at, copy_dir, fast_dir, fill};

/// What is done to the files while nobody has the log.
#[derive(Clone, Copy, Debug)]
enum Harm {
    None,
    SnapshotsGone,
    SnapshotsGarbled,
    SnapshotsEmpty,
    /// Well-formed ones without anybody in them.
    NobodyKnown,
    /// From an earlier time of the log, under the names of now.
    Older,
    /// Another log's, under the same names.
    Foreign,
}

const HARMS: [Harm; 7] = [
    Harm::None,
    Harm::SnapshotsGone,
    Harm::SnapshotsGarbled,
    Harm::SnapshotsEmpty,
    Harm::NobodyKnown,
    Harm::Older,
    Harm::Foreign,
];

fn files_of(log: &TempLog) -> BTreeMap<i64, Vec<u8>> {
    let read = |at: i64| (at, fs::read(log.path().join(format!("{at:020}.snapshot"))).unwrap());
    snapshots(log).into_iter().map(read).collect()
}

fn harm(dir: &Path, names: &[i64], harm: Harm, older: &[u8], foreign: &[u8]) {
    for at in names {
        let path = dir.join(format!("{at:020}.snapshot"));
        match harm {
            Harm::None => {}
            Harm::SnapshotsGone => fs::remove_file(path).unwrap(),
            Harm::SnapshotsGarbled => {
                let mut bytes = fs::read(&path).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x55;
                fs::write(path, bytes).unwrap();
            }
            Harm::SnapshotsEmpty => fs::write(path, b"").unwrap(),
            Harm::NobodyKnown => fs::write(path, nobody()).unwrap(),
            Harm::Older => fs::write(path, older).unwrap(),
            Harm::Foreign => fs::write(path, foreign).unwrap(),
        }
    }
}

/// Two producers among plain records, over several segments; six batches of the first.
fn write(log: &mut LogWriter) {
    place(send(log, (1, 4, 0), 3));
    fill(log, 30);
    for sequence in 3..8 {
        place(send(log, (1, 4, sequence), 1));
        fill(log, 20);
        place(send(log, (2, 0, (sequence - 3) * 2), 2));
    }
    place(log.append(&raw(3, 0, 0, 1, true), AppendOptions::default()));
    fill(log, 40);
}

/// What must be true of that log, however it was opened.
fn check(log: &mut LogWriter, what: &str) {
    let places = [(1, 4, 7, 139), (2, 0, 9, 163), (3, 0, 0, 164)];
    let places = places.map(|(id, epoch, sequence, _)| (id, epoch, sequence));
    let found: Vec<_> =
        known(log).into_iter().map(|(id, epoch, sequence, _)| (id, epoch, sequence)).collect();
    assert_eq!(found, places, "{what}");
    let end = log.end();
    let infos = log.producers();
    let last = infos[0].last_offset.unwrap().value();
    assert_eq!(place(send(log, (1, 4, 7), 1)), (last, last, true), "{what}");
    // Each of the last five, the sixth not.
    for sequence in 3..8 {
        assert!(place(send(log, (1, 4, sequence), 1)).2, "{what}: {sequence}");
        assert!(place(send(log, (2, 0, (sequence - 3) * 2), 2)).2, "{what}: {sequence}");
    }
    assert_eq!(expected_sequence(send(log, (1, 4, 0), 3)), 8, "{what}");
    assert_eq!(expected_sequence(send(log, (2, 0, 11), 1)), 10, "{what}");
    assert_eq!(fenced_by(send(log, (1, 3, 8), 1)), 4, "{what}");
    assert!(infos[2].transaction_start.is_some(), "{what}");
    assert_eq!(log.end(), end, "{what}: nothing was appended");
    assert_eq!(log.producers(), infos, "{what}");
}

fn copy(log: &TempLog) -> TempLog {
    let copy = TempLog { temp: fast_dir(), config: log.config.clone() };
    copy_dir(&log.path(), &copy.path());
    copy
}

#[test]
fn no_snapshot_decides_what_is_known() {
    let foreign = producers_log();
    let mut writer = foreign.open();
    for id in 0..9 {
        place(send(&mut writer, (id, 9, 0), 2));
    }
    writer.close().unwrap();
    let foreign = files_of(&foreign).pop_last().unwrap().1;

    let log = producers_log();
    let mut writer = log.open();
    place(send(&mut writer, (1, 4, 0), 3));
    writer.close().unwrap();
    let older = files_of(&log).pop_last().unwrap().1;
    fs::remove_dir_all(log.path()).unwrap();

    for is_clean in [true, false] {
        let log = producers_log();
        let mut writer = log.open();
        write(&mut writer);
        check(&mut writer, "at once");
        writer.sync().unwrap();
        writer.maintain().unwrap();
        fill(&mut writer, 1);
        let infos = writer.producers();
        if is_clean {
            writer.close().unwrap();
        } else {
            drop(writer);
        }
        let names = snapshots(&log);
        assert!(names.len() > 2, "{names:?}");
        // All of them, and the newest alone.
        for harmed in [&names[..], &names[names.len() - 1..]] {
            for kind in HARMS {
                for forgets in [false, true] {
                    let what = format!("clean {is_clean}, {kind:?} of {harmed:?}, forgets {forgets}");
                    let log = copy(&log);
                    harm(&log.path(), harmed, kind, &older, &foreign);
                    if forgets {
                        fs::remove_file(log.path().join(".stratalog-checkpoint")).unwrap();
                    }
                    let mut writer = log.open();
                    assert_eq!(writer.producers(), infos, "{what}");
                    check(&mut writer, &what);
                    // And on with it, twice.
                    let end = writer.end();
                    assert_eq!(place(send(&mut writer, (1, 4, 8), 2)).0, end.value(), "{what}");
                    drop(writer);
                    let mut writer = log.open();
                    assert_eq!(place(send(&mut writer, (1, 4, 8), 2)).0, end.value(), "{what}");
                    writer.close().unwrap();
                    let mut writer = log.open();
                    assert!(writer.recovery().clean, "{what}");
                    assert!(place(send(&mut writer, (1, 4, 8), 2)).2, "{what}");
                    assert!(place(send(&mut writer, (2, 0, 8), 2)).2, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_checkpoint_of_the_first_version_is_read() {
    let log = producers_log();
    let mut writer = log.open();
    write(&mut writer);
    writer.close().unwrap();
    // The same without what it says of producers.
    let path = log.path().join(".stratalog-checkpoint");
    let mut bytes = fs::read(&path).unwrap();
    let points = 4 + 16 * usize::from(bytes[bytes.len() - 33] == 2) + 16;
    let sealed = usize::try_from(u32::from_be_bytes(bytes[108..112].try_into().unwrap())).unwrap();
    assert_eq!(bytes.len(), 112 + sealed * 16 + points);
    bytes.truncate(112 + sealed * 16);
    bytes[11] = 1;
    let crc = crc32(&bytes[16..]);
    bytes[12..16].copy_from_slice(&crc.to_be_bytes());
    fs::write(&path, bytes).unwrap();
    for at in snapshots(&log) {
        fs::remove_file(log.path().join(format!("{at:020}.snapshot"))).unwrap();
    }
    let mut writer = log.open();
    assert!(writer.recovery().clean);
    check(&mut writer, "an older checkpoint");
}

/// CRC-32 (IEEE), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 0 { crc >> 1 } else { (crc >> 1) ^ 0xEDB8_8320 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[test]
fn what_is_cut_off_was_never_sent() {
    let log = producers_log();
    let mut writer = log.open();
    place(send(&mut writer, (1, 0, 0), 2));
    writer.sync().unwrap();
    writer.maintain().unwrap();
    place(send(&mut writer, (1, 0, 2), 2));
    place(send(&mut writer, (2, 0, 0), 1));
    drop(writer);
    // A torn tail: the last two batches are not whole.
    let path = log.path().join(format!("{:020}.log", 0));
    let first = {
        let bytes = fs::read(&path).unwrap();
        12 + u64::from(u32::from_be_bytes(bytes[8..12].try_into().unwrap()))
    };
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(first + 30).unwrap();
    let mut writer = log.open();
    assert!(writer.recovery().cut.is_some());
    assert_eq!(known(&writer), [(1, 0, 1, Some(1))]);
    assert_eq!(place(send(&mut writer, (1, 0, 2), 2)), (2, 3, false));
    assert_eq!(place(send(&mut writer, (2, 0, 0), 1)), (4, 4, false));
    assert_eq!(writer.end(), at(5));
}

#[test]
fn a_stale_directory_around_newer_segments_tells_nothing_wrong() {
    // Snapshots and checkpoint of an earlier time beside the segments of now, as after a restore of parts.
    let log = producers_log();
    let mut writer = log.open();
    write(&mut writer);
    writer.close().unwrap();
    let early = copy(&log);
    let mut writer = log.open();
    for sequence in 8..20 {
        place(send(&mut writer, (1, 4, sequence), 1));
        fill(&mut writer, 30);
    }
    writer.close().unwrap();
    let infos = known(&log.open());
    for entry in fs::read_dir(early.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".snapshot") || name == ".stratalog-checkpoint" {
            fs::copy(early.path().join(&name), log.path().join(&name)).unwrap();
        }
    }
    let mut writer = log.open();
    assert_eq!(known(&writer), infos);
    assert!(place(send(&mut writer, (1, 4, 15), 1)).2);
    assert_eq!(expected_sequence(send(&mut writer, (1, 4, 14), 1)), 20);
}
