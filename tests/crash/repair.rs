//! Crashes of a repair: at any moment it can be begun anew, and no record that could be read is lost.

use std::fs;

use stratalog::{FsyncPolicy, LogWriter, RepairOptions, repair_plan};

use super::{
    model::{offsets, read_all},
    run::{Run, config, copy_dir, log_dir, scratch},
    states::{CutState, materialize, survivals},
};

const STRAY: &str = "09223372036854775807.log";

/// A log of 17 records with damage in its first and second segment; which offsets are lost.
fn damaged() -> (Run, Vec<i64>) {
    let mut run = Run::new("to-repair", config(FsyncPolicy::Commit));
    run.open();
    run.fill(17);
    let mut lost = Vec::new();
    let segments = run.log().reader().segments();
    for (segment, skipped) in segments.iter().zip([1, 0]) {
        let base = segment.base_offset.value();
        let mut batches = run.log().reader().batches(super::run::at(base + skipped));
        batches.next_batch().unwrap().unwrap();
        let (_, position) = batches.position_of_last().unwrap();
        let mut bytes = fs::read(&segment.path).unwrap();
        bytes[usize::try_from(position).unwrap() + 62] ^= 1;
        fs::write(&segment.path, bytes).unwrap();
        lost.push(base + skipped);
    }
    run.kill();
    // And a segment that is none, whose name leaves no offset to be given.
    fs::write(run.dir().join(STRAY), b"no batch").unwrap();
    (run, lost)
}

#[test]
fn a_repair_can_be_begun_anew_at_any_moment() {
    let (damaged, lost) = damaged();
    let root = scratch();
    copy_dir(damaged.root.path(), root.path());
    let run = Run::over("repair", root, damaged.model.at(damaged.now(), true), damaged.config.clone());
    let wanted: Vec<i64> = (0..17).filter(|offset| !lost.contains(offset)).collect();
    let writer = LogWriter::open_repaired(run.dir(), run.config.clone()).unwrap();
    assert_eq!(offsets(&read_all(&writer.reader()).unwrap()), wanted);
    let mut dropped = writer.recovery().dropped.clone();
    assert!(dropped.remove(0).path.ends_with(STRAY));
    assert_eq!(dropped.iter().map(|dropped| dropped.offset.value()).collect::<Vec<_>>(), lost);
    drop(writer);
    let (mut states, mut begun_anew) = (0, 0);
    for prefix in 0..=run.now() {
        for how in survivals(prefix, 2) {
            let root = scratch();
            materialize(&run, CutState { prefix, how }, root.path());
            let dir = log_dir(root.path());
            let label = format!("after {prefix} calls, {how}");
            let plan = repair_plan(&dir, &RepairOptions::default()).unwrap();
            begun_anew += usize::from(!plan.dropped.is_empty());
            let again = LogWriter::open_repaired(&dir, run.config.clone());
            let writer = again.unwrap_or_else(|error| panic!("{label}: {error}"));
            assert_eq!(offsets(&read_all(&writer.reader()).unwrap()), wanted, "{label}");
            assert_eq!((writer.end().value(), writer.recovery().lost.clone()), (17, None), "{label}");
            writer.close().unwrap();
            let plan = repair_plan(&dir, &RepairOptions::default()).unwrap();
            assert_eq!((plan.dropped, plan.removed), (vec![], vec![]), "{label}");
            assert!(!dir.join(STRAY).exists(), "{label}");
            let kept =
                fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let kept = kept.filter(|name| name.starts_with(".stratalog-dropped-")).count();
            assert!(kept >= 2, "{label}: {kept} files keep what was dropped");
            states += 1;
        }
    }
    assert!(begun_anew > 20 && states > begun_anew, "{begun_anew} of {states} states were half repaired");
}
