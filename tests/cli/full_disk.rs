//! A disk without one free page: what is there to make room makes it, and says nothing before it is done.

use std::{fs, io::Write};

use serde_json::Value;

use crate::{
    run::{Ran, fails, numbers, ok, run},
    small_disk::SmallDisk,
};

/// A closed log of many segments on a disk that is full to the last byte. Nothing where that cannot be had.
fn full(records: u32, options: &[&str]) -> Option<(SmallDisk, String)> {
    let disk = SmallDisk::new(16 << 20)?;
    let dir = disk.path().join("t-0").to_str().unwrap().to_owned();
    ok(&[&["append", &dir, "--create"], options].concat(), &numbers(records));
    let ballast = disk.fill_but(0);
    let mut rest = fs::File::options().append(true).open(ballast).unwrap();
    while rest.write(&[1; 512]).is_ok_and(|written| written > 0) {}
    Some((disk, dir))
}

fn segments(dir: &str) -> u64 {
    let info: Value = serde_json::from_slice(&ok(&["info", dir, "-J"], b"")).unwrap();
    info["segments"].as_u64().unwrap()
}

/// It is whole, begins there, and can be written to.
fn goes_on(dir: &str, start: u32, end: u32) {
    let all = String::from_utf8(numbers(end)).unwrap();
    let wanted: Vec<&str> = all.lines().skip(start as usize).collect();
    assert_eq!(String::from_utf8(ok(&["cat", dir], b"")).unwrap().lines().collect::<Vec<_>>(), wanted);
    let checked = run(&["verify", dir, "--deep"], b"");
    assert_eq!(checked.code, Some(0), "{} {}", checked.text(), checked.err);
    ok(&["append", dir], b"next\n");
}

fn says(ran: &Ran, what: &str) {
    assert_eq!(ran.code, Some(0), "{} {}", ran.text(), ran.err);
    assert!(ran.text().contains(what), "{}", ran.text());
}

#[test]
fn retention_and_trim_make_room() {
    let options = ["--batch-size", "200", "--segment-bytes", "16k"];
    let Some((_disk, dir)) = full(20_000, &options) else { return };
    fails(&["append", &dir], &numbers(20_000), 1, "no space left");
    let before = segments(&dir);
    let plan = run(&["trim", &dir, "--before", "10000", "--dry-run"], b"");
    says(&plan, "drop offsets 0 up to 10000");
    assert!(!plan.text().contains("removed"), "{}", plan.text());
    says(&run(&["trim", &dir, "--before", "10000", "--yes"], b""), "the log begins at offset 10000");
    assert!(segments(&dir) < before);
    goes_on(&dir, 10_000, 20_000);

    let Some((_disk, dir)) = full(20_000, &options) else { return };
    says(&run(&["retain", &dir, "--bytes", "40k", "--yes"], b""), "dropped ");
    let info: Value = serde_json::from_slice(&ok(&["info", &dir, "-J"], b"")).unwrap();
    let start = u32::try_from(info["start"].as_i64().unwrap()).unwrap();
    assert!(start > 10_000, "{start}");
    goes_on(&dir, start, 20_000);
}

/// The checkpoint of many segments needs more room than the one that goes gives back.
#[test]
fn a_small_segment_of_many_goes() {
    let options = ["--batch-size", "1", "--segment-bytes", "1k"];
    let Some((_disk, dir)) = full(12_000, &options) else { return };
    let before = segments(&dir);
    let checkpoint = fs::metadata(format!("{dir}/.stratalog-checkpoint")).unwrap().len();
    assert!(checkpoint > 2 * 4096, "{before} segments and a checkpoint of {checkpoint} bytes");
    let listed = String::from_utf8(ok(&["ls", &dir, "-J"], b"")).unwrap();
    let listed = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let second = listed.filter_map(|line| line["base_offset"].as_u64()).nth(1).unwrap();
    says(&run(&["trim", &dir, "--before", &second.to_string(), "--yes"], b""), "; 1 segment of");
    assert_eq!(segments(&dir), before - 1);
    let (_, checked) = (ok(&["cat", &dir], b""), ok(&["verify", &dir, "--deep"], b""));
    assert!(String::from_utf8(checked).unwrap().contains(&format!("offsets {second} up to 12000")));
    fs::remove_file(format!("{dir}/../ballast")).unwrap();
    goes_on(&dir, u32::try_from(second).unwrap(), 12_000);
}

/// No file goes, and yet the start moves.
#[test]
fn a_trim_within_a_segment_needs_no_room() {
    let Some((disk, dir)) = full(2_000, &["--batch-size", "200"]) else { return };
    let ran = run(&["trim", &dir, "--before", "100", "--yes"], b"");
    says(&ran, "the log begins at offset 100; 0 segments");
    assert!(ran.err.starts_with("warning: ") && ran.err.contains("the disk is full"), "{}", ran.err);
    fs::remove_file(disk.path().join("ballast")).unwrap();
    goes_on(&dir, 100, 2_000);
}
