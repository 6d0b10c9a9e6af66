//! `verify` over data directories and in parallel, and what `repair` does there.

use std::{fs, num::NonZeroUsize, path::Path, thread};

use serde_json::Value;
use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogWriter, OpenMode,
    inspect::{Partition, SegmentPool, SegmentReport, VerifyOptions, verify},
    record::Record,
};

use crate::run::{Place, fails, numbers, ok, run, snapshot};

fn json(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn of_type<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// Flips a bit in the records of the first batch.
fn damage(dir: &str) {
    let file = Path::new(dir).join("00000000000000000000.log");
    let mut bytes = fs::read(&file).unwrap();
    let length = u32::from_be_bytes(bytes[8..12].try_into().unwrap());
    let last = 12 + usize::try_from(length).unwrap() - 1;
    bytes[last] ^= 1;
    fs::write(file, bytes).unwrap();
}

/// A data directory of three partitions of two topics, each of some segments.
fn data_directory(place: &Place) -> String {
    let data = place.path("data");
    fs::create_dir(&data).unwrap();
    for name in ["orders-0", "orders-1", "users-0"] {
        let small = ["--batch-size", "100", "--segment-bytes", "1k"];
        place.log(&format!("data/{name}"), &numbers(300), &small);
    }
    data
}

#[test]
fn a_data_directory_is_checked_as_a_whole() {
    let place = Place::new();
    let data = data_directory(&place);
    let lines = json(&ok(&["verify", &data, "-J"], b""));
    let paths: Vec<_> = of_type(&lines, "summary").iter().map(|line| line["path"].to_string()).collect();
    assert_eq!(paths.len(), 3);
    assert!(paths[0].ends_with("orders-0\"") && paths[2].ends_with("users-0\""), "{paths:?}");
    let total = lines.last().unwrap();
    assert_eq!(
        (&total["type"], &total["partitions"], &total["records"]),
        (&"total".into(), &3.into(), &900.into())
    );
    let lines = json(&ok(&["verify", &data, "--topic", "orders", "-J"], b""));
    assert_eq!(of_type(&lines, "summary").len(), 2);

    damage(&format!("{data}/orders-1"));
    let ran = fails(&["verify", &data, "-J", "--parallel", "3"], b"", 4, "");
    let lines = json(&ran.out);
    let finding = &of_type(&lines, "finding")[0];
    assert!(finding["file"].as_str().unwrap().contains("orders-1/"), "{finding}");
    assert_eq!(lines.last().unwrap()["damaged"], 1);
    let text = fails(&["verify", &data], b"", 4, "");
    assert!(text.text().contains("1 of 3 partitions damaged"), "{}", text.text());
}

/// The small files of a data directory are looked at too, and made anew.
#[test]
fn checkpoints_of_a_data_directory_are_checked_and_rebuilt() {
    let place = Place::new();
    let data = data_directory(&place);
    let point = Path::new(&data).join("recovery-point-offset-checkpoint");
    fs::write(&point, "0\n7\nno").unwrap();
    let lines = json(&ok(&["verify", &data, "-J"], b""));
    let finding = of_type(&lines, "finding")[0];
    assert_eq!((&finding["kind"], &finding["repairable"]), (&"checkpoint".into(), &true.into()), "{finding}");
    let lines = json(&ok(&["repair", &data, "-J", "--dry-run"], b""));
    assert_eq!(of_type(&lines, "step").len(), 1, "{lines:?}");
    assert_eq!(fs::read(&point).unwrap(), b"0\n7\nno");
    ok(&["repair", &data, "--yes"], b"");
    let lines = json(&ok(&["verify", &data, "-J"], b""));
    assert!(of_type(&lines, "finding").is_empty(), "{lines:?}");
}

#[test]
fn a_data_directory_is_repaired_partition_by_partition() {
    let place = Place::new();
    let data = data_directory(&place);
    damage(&format!("{data}/orders-0"));
    damage(&format!("{data}/users-0"));
    fails(&["repair", &data], b"", 1, "nothing was changed");
    let backup = place.path("backup");
    {
        // Somebody writes to one of them: that one is left, the other is done.
        let _writer = LogWriter::open(format!("{data}/orders-0"), LogConfig::default()).unwrap();
        let ran = fails(&["repair", &data, "--yes", "--backup", &backup], b"", 8, "orders-0");
        assert!(ran.err.contains("locked"), "{}", ran.err);
    }
    fails(&["verify", &format!("{data}/orders-0")], b"", 4, "");
    ok(&["verify", &format!("{data}/users-0")], b"");
    assert_eq!(fs::read_dir(Path::new(&backup).join("users-0")).unwrap().count(), 1);
    ok(&["repair", &data, "--yes", "--backup", &backup], b"");
    ok(&["verify", &data], b"");
    assert_eq!(fs::read_dir(Path::new(&backup).join("orders-0")).unwrap().count(), 1);
    fails(&["repair", &data, "--drop-batch", "1"], b"", 2, "one partition");
}

/// What was made sure of before need not be read again.
#[test]
fn segments_below_the_recovery_point_can_be_left_out() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(300), &["--batch-size", "100", "--segment-bytes", "1k"]);
    damage(&dir);
    fails(&["verify", &dir], b"", 4, "");
    let lines = json(&ok(&["verify", &dir, "--since-checkpoint", "-J"], b""));
    let summary = of_type(&lines, "summary")[0];
    assert_eq!(summary["segments"], 1, "{summary}");
    assert!(summary["segments_left_out"].as_u64().unwrap() > 2, "{summary}");
    fs::remove_file(Path::new(&dir).join(".stratalog-checkpoint")).unwrap();
    let ran = fails(&["verify", &dir, "--since-checkpoint"], b"", 4, "no recovery point is known");
    assert!(ran.text().contains("bad-crc"), "{}", ran.text());
}

/// A check that is ended early says so, and judges nothing that it has not seen.
#[test]
fn a_check_that_ends_early_tells_how_far_it_came() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(300), &["--batch-size", "100", "--segment-bytes", "1k"]);
    let before = snapshot(&dir);
    let ran = fails(&["verify", &dir, "--timeout", "0s", "-J"], b"", 124, "stopped: 0 of 0 MiB were checked");
    assert!(!of_type(&json(&ran.out), "summary").iter().any(|line| line["state"] == "clean"));
    fails(&["repair", &dir, "--yes", "--timeout", "0s"], b"", 124, "nothing was changed");
    assert!(snapshot(&dir) == before);
}

#[test]
fn indexes_are_built_anew_where_that_is_asked_for() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(2000), &["--batch-size", "100", "--segment-bytes", "16k"]);
    let index = Path::new(&dir).join("00000000000000000000.index");
    let right = fs::read(&index).unwrap();
    // Shorter than it could be, and not wrong.
    fs::write(&index, &right[..right.len() - 8]).unwrap();
    let lines = json(&ok(&["repair", &dir, "--yes", "-J"], b""));
    assert!(of_type(&lines, "step").is_empty(), "{lines:?}");
    fails(&["repair", &dir, "--rebuild-index"], b"", 1, "nothing was changed");
    ok(&["repair", &dir, "--rebuild-index", "--yes"], b"");
    assert_eq!(fs::read(&index).unwrap(), right);
    ok(&["verify", &dir], b"");
}

#[test]
fn a_sound_batch_goes_where_that_is_asked_for() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(60), &["--batch-size", "1", "--segment-bytes", "1k"]);
    let file = |dir: &str| fs::read(Path::new(dir).join("00000000000000000000.log")).unwrap();
    let before = file(&dir);
    let backup = place.path("backup");
    fails(&["repair", &dir, "--drop-batch", "99"], b"", 3, "no batch holds offset 99");
    fails(&["repair", &dir, "--drop-batch", "59"], b"", 2, "--to 59");
    fails(&["repair", &dir, "--drop-batch", "x"], b"", 2, "not an offset");
    fails(&["repair", &dir, "--drop-batch", "3"], b"", 1, "nothing was changed");
    let drops =
        ["repair", &dir, "--drop-batch", "3", "--drop-batch", "40", "--yes", "--backup", &backup, "-J"];
    let lines = json(&ok(&drops, b""));
    assert_eq!(of_type(&lines, "step").len(), 2);
    let kept = of_type(&lines, "kept");
    let first = fs::read(kept[0]["file"].as_str().unwrap()).unwrap();
    let position = of_type(&lines, "step")[0]["position"].as_u64().unwrap();
    let position = usize::try_from(position).unwrap();
    // What goes and what stays are together what was.
    let after = file(&dir);
    assert_eq!([&after[..position], &first, &after[position..]].concat(), before);
    let left = String::from_utf8(ok(&["cat", &dir, "-f", "%o\n"], b"")).unwrap();
    let wanted: Vec<String> =
        (0..60).filter(|offset| ![3, 40].contains(offset)).map(|offset| offset.to_string()).collect();
    assert_eq!(left.lines().collect::<Vec<_>>(), wanted);
    ok(&["verify", &dir, "--deep"], b"");
    ok(&["append", &dir], b"next\n");
}

/// A log of 40 MiB in one segment, in batches of some 50 KiB; some of the values hold a whole batch.
fn large(dir: &Path) {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = FsyncPolicy::Never;
    let mut log = LogWriter::open(dir, config).unwrap();
    let value = vec![0x5a; 10_000];
    log.append_records(&[Record::value_only(b"inner")], AppendOptions::default()).unwrap();
    let batch = fs::read(dir.join("00000000000000000000.log")).unwrap();
    let inner = &batch[..12 + usize::try_from(u32::from_be_bytes(batch[8..12].try_into().unwrap())).unwrap()];
    let inner = inner.repeat(10_000 / inner.len());
    for nth in 0..800 {
        let value = if nth % 3 == 0 { &inner } else { &value };
        log.append_records(&vec![Record::value_only(value); 5], AppendOptions::default()).unwrap();
    }
    log.close().unwrap();
}

/// The first segment, checked by so many threads.
fn together(
    partitions: &[Partition],
    options: &VerifyOptions,
    threads: usize,
    goes_on: bool,
) -> Vec<SegmentReport> {
    let tell = |_| goes_on;
    let pool = SegmentPool::new(partitions, &[(0, 0)], options, NonZeroUsize::new(threads).unwrap(), &tell);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| pool.work());
        }
    });
    pool.into_reports().into_iter().map(|(_, report)| report).collect()
}

type Harm = fn(&mut Vec<u8>);

/// However many threads look at a segment, the verdict is that of one walk.
#[test]
fn many_threads_find_what_one_walk_finds() {
    let place = Place::new();
    let dir = place.path("t-0");
    large(Path::new(&dir));
    let file = Path::new(&dir).join("00000000000000000000.log");
    let sound = fs::read(&file).unwrap();
    assert!(sound.len() > 32 << 20);
    let mut options = VerifyOptions::default();
    options.deep = true;
    let harms: [(&str, Harm); 6] = [
        ("none", |_| {}),
        ("a bit in the middle", |bytes| bytes[20 << 20] ^= 1),
        ("zeros over the border of two parts", |bytes| {
            bytes[(16 << 20) - 100_000..(16 << 20) + 100_000].fill(0);
        }),
        ("cut short", |bytes| bytes.truncate(30 << 20)),
        ("noise behind", |bytes| bytes.extend([7; 5000])),
        ("a part missing", |bytes| drop(bytes.drain((8 << 20)..(16 << 20)))),
    ];
    for (harm, change) in harms {
        let mut bytes = sound.clone();
        change(&mut bytes);
        fs::write(&file, &bytes).unwrap();
        let alone = verify(&dir, &options, &mut |_| {}).unwrap();
        assert_eq!(alone.is_clean(), harm == "none", "{harm}");
        for threads in [2, 5] {
            let partitions = [Partition::open(&dir).unwrap()];
            let reports = together(&partitions, &options, threads, true);
            let found = partitions[0].conclude(reports, &options);
            assert!(found == alone, "{harm}: {:?} {:?}", found.findings, alone.findings);
        }
    }
    let partitions = [Partition::open(&dir).unwrap()];
    let stopped = together(&partitions, &options, 3, false);
    assert!(stopped.is_empty());
    assert_eq!(run(&["verify", &dir], b"").code, Some(4));
}
