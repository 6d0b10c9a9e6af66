//! What is recorded: appending under each policy, rolls, seals, checkpoints, retention, moving the start, closing.

use std::{fs, time::Duration};

use stratalog::{AppendOptions, FsyncPolicy, record::Record};

use super::{
    run::{Run, config, value},
    states::{sweep, sweep_recoveries},
};

fn check(run: &Run, chances: u64, recoveries: usize) {
    let swept = sweep(run, chances);
    let deeper = sweep_recoveries(run, &swept.cuts, recoveries, 2, 2);
    println!("{}: {} events, {} states, {} of recoveries", run.name, run.now(), swept.states, deeper);
    if std::env::var_os("STRATALOG_CRASH_STATE").is_none() {
        assert!(!swept.cuts.is_empty(), "no state of {} needed a cut: the replay proves nothing", run.name);
    }
}

/// Appends with rolls, a checkpoint, a close and an open in between, and no close at the end.
fn appends(name: &str, fsync: FsyncPolicy) {
    let mut run = Run::new(name, config(fsync));
    run.open();
    run.fill(7);
    run.append(3);
    run.config.clock.advance(Duration::from_millis(30));
    run.fill(5);
    run.maintain();
    run.fill(6);
    run.sync();
    run.append(2);
    run.close();
    run.open();
    run.fill(9);
    run.kill();
    check(&run, 4, 3);
}

#[test]
fn appends_commit() {
    appends("appends-commit", FsyncPolicy::Commit);
}

#[test]
fn appends_every_bytes() {
    appends("appends-bytes", FsyncPolicy::EveryBytes(900));
}

#[test]
fn appends_every_records() {
    appends("appends-records", FsyncPolicy::EveryRecords(4));
}

#[test]
fn appends_interval() {
    appends("appends-interval", FsyncPolicy::Interval(Duration::from_millis(20)));
}

#[test]
fn appends_never() {
    appends("appends-never", FsyncPolicy::Never);
}

#[test]
fn the_first_segments_without_any_sync() {
    let mut run = Run::new("never-first", config(FsyncPolicy::Never));
    run.open();
    run.fill(22);
    run.kill();
    check(&run, 8, 3);
}

#[test]
fn retention_by_size_and_start() {
    let mut config = config(FsyncPolicy::EveryRecords(3));
    config.retention.bytes = Some(2200);
    let mut run = Run::new("retention", config);
    run.open();
    for _ in 0..3 {
        run.fill(9);
        run.maintain();
    }
    let middle = run.log().start().value() + 4;
    run.advance_start(middle);
    run.fill(2);
    run.maintain();
    let end = run.log().end().value();
    run.advance_start(end);
    run.maintain();
    run.fill(3);
    run.close();
    run.open();
    run.fill(4);
    run.maintain();
    run.kill();
    check(&run, 4, 2);
}

#[test]
fn producers_through_rolls_closes_and_kills() {
    let mut run = Run::new("producers", config(FsyncPolicy::EveryRecords(4)));
    run.model.is_numbered = true;
    run.open();
    run.fill(13);
    run.maintain();
    run.fill(4);
    run.close();
    run.open();
    run.fill(9);
    run.kill();
    run.open();
    run.fill(3);
    run.kill();
    check(&run, 4, 2);
}

#[test]
fn producers_whose_records_retention_drops() {
    let mut config = config(FsyncPolicy::EveryRecords(3));
    config.retention.bytes = Some(1100);
    let mut run = Run::new("producers-retention", config);
    run.model.is_numbered = true;
    run.open();
    for _ in 0..3 {
        run.fill(8);
        run.maintain();
    }
    let end = run.log().end().value();
    run.advance_start(end);
    run.maintain();
    run.fill(2);
    run.close();
    run.open();
    run.fill(5);
    run.maintain();
    run.kill();
    check(&run, 4, 2);
}

#[test]
fn retention_by_age_of_everything() {
    let mut config = config(FsyncPolicy::Never);
    config.retention.age = Some(Duration::from_secs(60));
    let mut run = Run::new("retention-age", config);
    run.open();
    run.fill(12);
    run.config.clock.advance(Duration::from_secs(600));
    run.maintain();
    run.fill(7);
    run.sync();
    run.fill(3);
    run.kill();
    check(&run, 4, 2);
}

#[test]
fn gaps_that_no_segment_can_span() {
    let mut run = Run::new("gaps", config(FsyncPolicy::Commit));
    run.open();
    run.fill(7);
    run.try_append_at(3_000_000_000).unwrap();
    run.fill(8);
    run.try_append_at(9_000_000_000).unwrap();
    run.maintain();
    run.try_append_at(9_000_000_007).unwrap();
    run.fill(2);
    run.kill();
    check(&run, 4, 2);
}

#[test]
fn gaps_without_syncs() {
    let mut run = Run::new("gaps-never", config(FsyncPolicy::Never));
    run.open();
    run.try_append_at(5_000_000_000).unwrap();
    run.fill(7);
    run.try_append_at(9_000_000_000).unwrap();
    run.fill(8);
    run.kill();
    check(&run, 4, 2);
}

#[test]
fn reopened_after_kills() {
    let mut run = Run::new("kills", config(FsyncPolicy::EveryRecords(5)));
    for count in [3, 6, 2, 7] {
        run.open();
        run.fill(count);
        run.kill();
    }
    run.open();
    run.close();
    run.open();
    run.append(1);
    run.close();
    check(&run, 3, 2);
}

#[test]
fn inside_a_data_directory() {
    let mut run = Run::new("data-directory", config(FsyncPolicy::EveryRecords(4)));
    fs::write(run.root.path().join("recovery-point-offset-checkpoint"), "0\n1\nother 0 7\n").unwrap();
    fs::write(run.root.path().join(".kafka_cleanshutdown"), "{}").unwrap();
    // What is there before the recording begins is durable.
    let root = super::run::scratch();
    super::run::copy_dir(run.root.path(), root.path());
    run = Run::over("data-directory", root, run.model, run.config);
    run.open();
    run.fill(8);
    run.close();
    run.open();
    run.fill(9);
    run.maintain();
    run.fill(4);
    run.kill();
    check(&run, 3, 2);
}

#[test]
fn deferred_appends_and_epochs() {
    let mut run = Run::new("deferred", config(FsyncPolicy::Commit));
    run.open();
    for round in 0..4 {
        let mut pending = Vec::new();
        for _ in 0..3 {
            let (offset, now) = (run.log().end().value(), run.now());
            let value = value(&run.tag, offset);
            run.model.begin(offset, value.clone(), now);
            let records = [Record::value_only(&value)];
            pending.push(run.log().append_records_deferred(&records, AppendOptions::default()).unwrap());
            let now = run.now();
            run.model.written(offset, now);
        }
        let last = pending.pop().unwrap();
        let end = last.wait().unwrap().last_offset.value() + 1;
        let now = run.now();
        run.model.durable_up_to(end, now);
        assert!(pending.iter().all(stratalog::Pending::is_durable));
        run.log().set_leader_epoch(round * 2 + 1).unwrap();
    }
    run.kill();
    check(&run, 4, 2);
}

/// Published and durable records are cut: inside a segment, at its border, from a log that was closed, to nothing.
#[test]
fn cuts_that_were_asked_for() {
    let mut run = Run::new("cuts", config(FsyncPolicy::EveryRecords(2)));
    run.open();
    run.fill(17);
    run.maintain();
    run.fill(3);
    run.kill();
    run.cut(8);
    run.fill(9);
    let border = run.log().reader().segments().last().unwrap().base_offset.value();
    run.close();
    run.cut(border);
    run.fill(2);
    run.close();
    run.cut(border + 2);
    run.fill(1);
    run.kill();
    run.cut(0);
    run.fill(3);
    run.kill();
    check(&run, 4, 3);
}

#[test]
fn cuts_inside_a_data_directory() {
    let root = super::run::scratch();
    fs::write(root.path().join("recovery-point-offset-checkpoint"), "0\n1\nother 0 7\n").unwrap();
    let mut run =
        Run::over("cuts-data-directory", root, super::model::Model::default(), config(FsyncPolicy::Commit));
    run.open();
    run.fill(14);
    run.close();
    fs::write(run.root.path().join(".kafka_cleanshutdown"), "{}").unwrap();
    run.cut(3);
    assert!(!run.root.path().join(".kafka_cleanshutdown").exists());
    let points = fs::read_to_string(run.root.path().join("recovery-point-offset-checkpoint")).unwrap();
    assert!(points.contains("t 0 3\n"), "{points}");
    run.fill(2);
    run.kill();
    check(&run, 3, 2);
}
