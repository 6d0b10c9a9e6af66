//! `repair` over every damaged directory there is: the check, the plan, the work, the proof.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::run::{Place, copy_dir, fails, numbers, ok, run, snapshot};

fn json(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn broken() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/broken"))
}

/// Each case: its directory copied, and what is expected of it.
fn cases() -> Vec<Value> {
    let text = fs::read(broken().join("expected.jsonl")).unwrap();
    let cases = json(&text);
    assert!(cases.len() >= 20, "the fixtures are not there");
    cases
}

/// The partition directory of a case.
fn copy_of(place: &Place, case: &str) -> String {
    let from = fs::read_dir(broken().join(case)).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.is_dir().then_some(path)
    });
    let to = place.path(&format!("{case}-0"));
    let plain = broken().join(case);
    let is_partition = plain.join("00000000000000000000.log").exists();
    copy_dir(if is_partition { plain } else { from.unwrap() }, &to);
    to
}

fn offsets(dir: &str) -> Vec<i64> {
    let printed = String::from_utf8(ok(&["cat", dir, "-f", "%o\n"], b"")).unwrap();
    printed.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn every_damaged_directory_is_put_right() {
    let place = Place::new();
    for case in cases() {
        let name = case["case"].as_str().unwrap();
        let dir = copy_of(&place, name);
        let before = files(&dir);
        let checked = run(&["verify", &dir, "-J"], b"");
        let is_damaged = checked.code == Some(4);
        assert!(is_damaged || checked.code == Some(0), "{name}: {}", checked.err);
        let plan = run(&["repair", &dir, "--dry-run", "-J"], b"");
        assert!(files(&dir) == before, "{name}: a dry run changed a file");
        assert_eq!(plan.code, Some(0), "{name}: {}", plan.err);
        let steps = json(&plan.out);
        let has_step = |action: &str| steps.iter().any(|step| step["action"] == action);
        assert!(!is_damaged || steps.iter().any(|step| step["type"] == "step"), "{name}: {steps:?}");
        assert_eq!(has_step("cut"), case["cut"].as_bool().unwrap(), "{name}: {steps:?}");
        assert_eq!(has_step("drop"), !case["unreadable"].is_null(), "{name}: {steps:?}");
        let done = run(&["repair", &dir, "--yes", "-J"], b"");
        assert_eq!(done.code, Some(0), "{name}: {}", done.err);
        let lines = json(&done.out);
        let summary = lines.last().unwrap();
        assert_eq!((&summary["state"], &summary["damage"]), (&"clean".into(), &0.into()), "{name}");
        let after = json(&ok(&["verify", &dir, "--deep", "-J"], b""));
        let warnings = after.last().unwrap()["warnings"].as_u64().unwrap();
        assert_eq!(warnings, u64::from(name == "foreign-files"), "{name}: {after:?}");
        // Every record that can be had is there, at its offset.
        let pair = |field: &str| -> Option<std::ops::Range<i64>> {
            let pair = case[field].as_array()?;
            Some(pair[0].as_i64().unwrap()..pair[1].as_i64().unwrap())
        };
        let gone = [pair("unreadable"), pair("absent")];
        let wanted: Vec<i64> = (0..case["end"].as_i64().unwrap())
            .filter(|offset| !gone.iter().flatten().any(|gone| gone.contains(offset)))
            .collect();
        assert_eq!(offsets(&dir), wanted, "{name}");
        // What was dropped or cut is kept.
        let kept: Vec<_> = lines.iter().filter(|line| line["type"] == "kept").collect();
        assert_eq!(kept.is_empty(), !has_step("cut") && !has_step("drop"), "{name}: {kept:?}");
        for file in kept {
            assert!(fs::metadata(file["file"].as_str().unwrap()).unwrap().len() > 0, "{name}: {file:?}");
        }
        // Bytes before the first bad one are those of before.
        for step in steps.iter().filter(|step| matches!(step["action"].as_str(), Some("cut" | "drop"))) {
            let file = PathBuf::from(step["file"].as_str().unwrap());
            let at = usize::try_from(step["position"].as_u64().unwrap()).unwrap();
            let old = &before.iter().find(|(path, _)| *path == file).unwrap().1;
            assert_eq!(fs::read(&file).unwrap()[..at], old[..at], "{name}");
        }
        // It is a log again: it takes records, and a second repair has nothing to do.
        ok(&["append", &dir], b"next\n");
        let again = json(&ok(&["repair", &dir, "--yes", "-J"], b""));
        assert_eq!(again.len(), 1, "{name}: {again:?}");
    }
}

/// Files of a directory and their bytes, by path; a fixture may hold directories too.
fn files(dir: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// All that lies behind the first bad batch can be cut instead.
#[test]
fn the_log_can_end_at_the_first_bad_batch() {
    let place = Place::new();
    for (case, end) in [
        ("flipped-bit-sealed", 133),
        ("zeroed-header-sealed", 133),
        ("torn-tail", 266),
        ("backward-offset", 266),
    ] {
        let dir = copy_of(&place, case);
        ok(&["repair", &dir, "--truncate-tail", "--yes"], b"");
        assert_eq!(offsets(&dir), (0..end).collect::<Vec<_>>(), "{case}");
        ok(&["verify", &dir], b"");
    }
}

#[test]
fn a_sound_log_is_left_alone() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(300), &["--batch-size", "100", "--segment-bytes", "1k"]);
    let before = snapshot(&dir);
    for args in [&["repair", &dir][..], &["repair", &dir, "--yes"], &["repair", &dir, "--dry-run"]] {
        let said = String::from_utf8(ok(args, b"")).unwrap();
        assert!(said.contains("no damage"), "{said}");
    }
    assert!(snapshot(&dir) == before, "a file changed");
}

/// Damage in a log of ours, whose recovery point lies behind it: dropped, and what is behind it stays.
#[test]
fn damage_below_the_recovery_point_is_dropped() {
    let place = Place::new();
    for (nth, closes) in [true, false].into_iter().enumerate() {
        let dir =
            place.log(&format!("t-{nth}"), &numbers(300), &["--batch-size", "1", "--segment-bytes", "1k"]);
        let file = PathBuf::from(&dir).join("00000000000000000000.log");
        let mut bytes = fs::read(&file).unwrap();
        // The second and the last batch of the segment.
        let second = 12 + usize::try_from(u32::from_be_bytes(bytes[8..12].try_into().unwrap())).unwrap();
        bytes[second + 61] ^= 1;
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&file, bytes).unwrap();
        if !closes {
            fs::remove_file(PathBuf::from(&dir).join(".stratalog-checkpoint")).unwrap();
        }
        fails(&["verify", &dir], b"", 4, "");
        fails(&["repair", &dir], b"", 1, "nothing was changed");
        let backup = place.path(&format!("backup-{nth}"));
        ok(&["repair", &dir, "--yes", "--backup", &backup], b"");
        assert_eq!(fs::read_dir(&backup).unwrap().count(), 2);
        ok(&["verify", &dir], b"");
        let left = offsets(&dir);
        assert_eq!((left.len(), left[0], left[1]), (298, 0, 2), "{left:?}");
        assert_eq!(left.last(), Some(&299));
    }
}

#[test]
fn what_is_no_log_is_not_repaired() {
    let place = Place::new();
    fails(&["repair", &place.path("absent"), "--yes"], b"", 3, "no such file");
    fs::create_dir(place.path("empty-0")).unwrap();
    fails(&["repair", &place.path("empty-0"), "--yes"], b"", 3, "no log at");
    fails(&["repair", "--wrong"], b"", 2, "");
}

/// Indexes below the recovery point are believed by an open; by a repair they are not. In a broker's data directory too.
#[test]
fn indexes_that_nobody_would_scan_are_built_anew() {
    let place = Place::new();
    for in_data_directory in [false, true] {
        let name = if in_data_directory { "data/t-0" } else { "t-0" };
        fs::create_dir_all(place.path("data")).unwrap();
        if in_data_directory {
            fs::write(place.path("data/recovery-point-offset-checkpoint"), "0\n1\nt 0 0\n").unwrap();
        }
        let dir = place.log(name, &numbers(2000), &["--batch-size", "100", "--segment-bytes", "16k"]);
        let index = PathBuf::from(&dir).join("00000000000000000000.index");
        let right = fs::read(&index).unwrap();
        assert!(right.len() >= 16, "{} bytes of index", right.len());
        let mut wrong = right.clone();
        wrong[7] ^= 1;
        fs::write(&index, &wrong).unwrap();
        if in_data_directory {
            fs::remove_file(PathBuf::from(&dir).join(".stratalog-checkpoint")).unwrap();
        }
        fails(&["verify", &dir], b"", 4, "");
        let steps = json(&ok(&["repair", &dir, "--dry-run", "-J"], b""));
        assert_eq!(steps[0]["action"], "rebuild");
        ok(&["repair", &dir, "--yes"], b"");
        assert_eq!(fs::read(&index).unwrap(), right);
        ok(&["verify", &dir], b"");
        assert_eq!(ok(&["cat", &dir], b""), numbers(2000));
    }
}

#[test]
fn a_wrong_transaction_index_is_built_anew() {
    let place = Place::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0/transactions/transactions-0");
    let dir = place.path("transactions-0");
    copy_dir(root, &dir);
    let index = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.extension().is_some_and(|suffix| suffix == "txnindex")
                && fs::metadata(path).unwrap().len() > 0
        })
        .unwrap();
    let right = fs::read(&index).unwrap();
    let mut wrong = right.clone();
    wrong[20] ^= 1;
    fs::write(&index, wrong).unwrap();
    let finds = || String::from_utf8(ok(&["verify", &dir], b"")).unwrap().contains("txn-index");
    assert!(finds());
    ok(&["repair", &dir, "--yes"], b"");
    assert_eq!(fs::read(&index).unwrap(), right);
    assert!(!finds());
}
