//! Leader epochs in the file beside the batches that the batches do not carry: read, told, mended.

use std::{fs, path::Path};

use stratalog::{LogReader, Offset, ReadOptions};

use crate::run::{Place, fails, numbers, ok, run};

/// Several segments of many batches, and all of it as `export` has it.
fn several(place: &Place) -> (String, Vec<u8>) {
    let dir = place.log("t-0", &numbers(4000), &["--batch-size", "1KiB", "--segment-bytes", "16KiB"]);
    let segments = fs::read_dir(&dir).unwrap().flatten();
    assert!(segments.filter(|entry| entry.path().extension().is_some_and(|e| e == "log")).count() > 2);
    let raw = ok(&["export", &dir], b"");
    (dir, raw)
}

fn reads_whole(dir: &str, case: &str) {
    for verb in [&["cat", dir][..], &["cat", dir, "--skip-damaged"], &["tail", dir, "-n", "all"]] {
        let ran = run(&[verb, &["--timeout", "60s"]].concat(), b"");
        assert!(ran.out == numbers(4000) && ran.code == Some(0), "{case}: {verb:?}: {}", ran.err);
    }
}

#[test]
fn a_log_that_was_truncated_and_filled_again_reads_to_its_end() {
    let place = Place::new();
    let (dir, raw) = several(&place);
    ok(&["tail", &dir, "-n", "1", "--cursor", "c"], b"");
    let reader = LogReader::open(&dir, ReadOptions::default()).unwrap();
    let mut batches = reader.batches(Offset::new(1500).unwrap());
    let cut_at = batches.next_batch().unwrap().unwrap().base_offset().to_string();
    ok(&["truncate", &dir, "--to", &cut_at, "--yes"], b"");
    ok(&["import", &dir, "--resume", "--segment-bytes", "64KiB"], &raw);
    let text = fs::read_to_string(Path::new(&dir).join("leader-epoch-checkpoint")).unwrap();
    assert_eq!(text, "0\n2\n0 0\n1 4000\n");
    reads_whole(&dir, "filled again");
    let checked = ok(&["verify", &dir, "--deep", "-J"], b"");
    assert!(!String::from_utf8(checked).unwrap().contains("epoch-checkpoint"));
    // The cursor's records are there again, and were not printed twice.
    assert_eq!(ok(&["tail", &dir, "--cursor", "c"], b""), b"");
    ok(&["roll", &dir], b"");
    ok(&["append", &dir], b"next\n");
    assert_eq!(ok(&["tail", &dir, "--cursor", "c"], b""), b"next\n");
    assert_eq!(ok(&["cat", &dir], b""), [numbers(4000), b"next\n".to_vec()].concat());
}

#[test]
fn a_file_of_epochs_that_lies_is_told_and_mended() {
    let place = Place::new();
    let (dir, _) = several(&place);
    let path = Path::new(&dir).join("leader-epoch-checkpoint");
    for text in ["0\n1\n2 0\n", "0\n2\n0 0\n1 100\n"] {
        fs::write(&path, text).unwrap();
        reads_whole(&dir, text);
        let told = String::from_utf8(ok(&["verify", &dir, "-J"], b"")).unwrap();
        assert!(told.contains("epoch-checkpoint"), "{text:?}: {told}");
        let plan = String::from_utf8(run(&["repair", &dir, "--dry-run", "-J"], b"").out).unwrap();
        assert!(plan.contains("leader-epoch-checkpoint"), "{text:?}: {plan}");
        ok(&["repair", &dir, "--yes"], b"");
        let told = String::from_utf8(ok(&["verify", &dir, "-J"], b"")).unwrap();
        assert!(!told.contains("epoch-checkpoint"), "{text:?}: {told}");
        reads_whole(&dir, text);
    }
    // What was really cut is told still.
    ok(&["tail", &dir, "-n", "1", "--cursor", "c"], b"");
    ok(&["truncate", &dir, "--to", "0", "--yes"], b"");
    ok(&["append", &dir], &numbers(5000));
    fails(&["tail", &dir, "--cursor", "c", "--strict"], b"", 3, "the log was cut");
}
