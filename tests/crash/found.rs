//! Cases that once failed, kept by name.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use stratalog::{
    Error, FsyncPolicy,
    sim::{Call, Fault, Nothing},
};

use super::{
    faults::EIO,
    model::Model,
    run::{Run, config, log_dir, scratch},
    states::check_last,
};

fn fail(run: &Run, call: Call, after: usize) {
    run.recording.fail(Fault { call: Some(call), after, times: 1, errno: EIO, short_bytes: None });
}

fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// F117: the directory was made by an open that did not live to sync its name; the next one found it there.
#[test]
fn the_name_of_a_directory_made_by_a_failed_open_is_synced() {
    let mut run = Run::new("directory", config(FsyncPolicy::Commit));
    fail(&run, Call::SyncDir, 0);
    assert!(run.try_open().is_err());
    assert!(run.dir().is_dir());
    run.open();
    run.fill(2);
    run.kill();
    check_last(&run);
}

/// And the same where it had been killed later, with files in it.
#[test]
fn the_name_of_a_directory_with_unproved_files_is_synced() {
    let mut run = Run::new("directory-files", config(FsyncPolicy::Commit));
    fail(&run, Call::SyncDir, 0);
    assert!(run.try_open().is_err());
    fs::write(run.dir().join("00000000000000000000.log"), b"").unwrap();
    run.open();
    run.fill(2);
    run.kill();
    check_last(&run);
}

/// With no recovery point only the last segment may be cut, so holes in the first ones were served as damage.
#[test]
fn holes_in_the_first_segments_end_the_log() {
    let mut run = Run::new("first-holes", config(FsyncPolicy::Never));
    run.open();
    run.fill(17);
    run.kill();
    check_last(&run);
}

/// The same where the point of a new log could not be written: its first roll writes one.
#[test]
fn a_roll_makes_good_for_a_point_that_could_not_be_written() {
    let mut run = Run::new("no-point", config(FsyncPolicy::Never));
    // First the leader epochs get their name, then the checkpoint.
    fail(&run, Call::Rename, 1);
    run.open();
    assert!(run.log().recovery().warnings.iter().any(|warning| warning.contains("no recovery point")));
    run.fill(17);
    run.kill();
    check_last(&run);
}

/// The point lay in the segment that retention dropped, so after it there was none.
#[test]
fn a_start_at_the_end_moves_the_recovery_point_before_its_segment_goes() {
    let mut run = Run::new("dropped-point", config(FsyncPolicy::Never));
    run.open();
    run.fill(4);
    let end = run.log().end().value();
    run.advance_start(end);
    run.log().roll().unwrap();
    run.log().maintain().unwrap();
    run.fill(12);
    run.kill();
    check_last(&run);
}

#[test]
fn a_killed_rewrite_of_the_leader_epochs_is_taken_away() {
    let mut run = Run::new("epochs-tmp", config(FsyncPolicy::Commit));
    run.open();
    run.append(1);
    run.close();
    fs::write(run.dir().join("leader-epoch-checkpoint.tmp"), b"0\n").unwrap();
    run.open();
    assert!(!names(&run.dir()).iter().any(|name| name.contains(".tmp")));
}

/// The clean mark went with the leftover, and the open after that had indexes to write.
#[test]
fn a_leftover_of_a_killed_rewrite_leaves_a_closed_log_closed() {
    let mut run = Run::new("leftover", config(FsyncPolicy::Commit));
    run.open();
    run.fill(3);
    run.close();
    fs::write(run.dir().join(".stratalog-checkpoint.tmp"), b"half").unwrap();
    for _ in 0..2 {
        run.open();
        let report = run.log().recovery().clone();
        assert!(report.clean && report.scanned_bytes == 0 && report.rebuilt.is_empty(), "{report:?}");
        run.kill();
    }
}

/// A jump in offsets whose recovery point could not be written took records all the same; the next open cut them.
#[test]
fn a_gap_whose_point_cannot_be_written_takes_no_records() {
    let mut run = Run::new("unproved-gap", config(FsyncPolicy::Commit));
    run.open();
    run.fill(3);
    let end = run.log().end();
    // The summaries first, which may fail.
    fail(&run, Call::Rename, 1);
    assert!(matches!(run.try_append_at(7_000_000_000), Err(Error::Io { .. })));
    assert_eq!(run.log().end(), end);
    assert!(!names(&run.dir()).iter().any(|name| name.starts_with("00000000007")));
    run.append(1);
    run.try_append_at(7_000_000_000).unwrap();
    run.append(1);
    run.kill();
    check_last(&run);
}

/// Memory knew the epoch, so the second try did not write it.
#[test]
fn an_epoch_that_could_not_be_stored_is_stored_by_the_next_try() {
    let mut run = Run::new("epoch", config(FsyncPolicy::Commit));
    run.open();
    run.append(1);
    fail(&run, Call::Rename, 0);
    assert!(run.log().set_leader_epoch(7).is_err());
    run.log().set_leader_epoch(7).unwrap();
    let stored = fs::read_to_string(run.dir().join("leader-epoch-checkpoint")).unwrap();
    assert!(stored.lines().any(|line| line == "7 1"), "{stored:?}");
}

/// The start had moved, durably and for all readers, and the call said that it had not.
#[test]
fn a_start_that_moved_is_no_failure() {
    let mut run = Run::new("moved", config(FsyncPolicy::Commit));
    run.open();
    run.fill(4);
    // The checkpoint's name first, then that of the leader epochs.
    fail(&run, Call::Rename, 1);
    run.advance_start(2);
    assert_eq!(run.log().start().value(), 2);
    run.kill();
    check_last(&run);
}

/// The page cache counts as clean after a failed sync, so the open after one whose sync failed took it for durable.
#[test]
fn an_open_after_one_whose_sync_failed_reads_the_disk() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    if device(root.path()) == device(Path::new("/dev/shm")) {
        println!("passed over: there is no disk under the target directory");
        return;
    }
    let mut run = Run::over("open-sync", root, Model::default(), config(FsyncPolicy::Never));
    run.open();
    run.fill(4);
    run.kill();
    fail(&run, Call::Sync, 0);
    assert!(run.try_open().is_err());
    run.open();
    let report = run.log().recovery().clone();
    assert!(report.warnings.iter().any(|warning| warning.contains("from the disk itself")), "{report:?}");
    assert_eq!(run.log().end().value(), 4);
    run.kill();
    run.open();
    assert!(run.log().recovery().warnings.is_empty(), "{:?}", run.log().recovery());
}

/// After a failed sync of one sidecar the next recovery point passed over all of them.
#[test]
fn a_sidecar_that_could_not_be_synced_holds_the_next_point_up() {
    let mut run = Run::new("sidecars", config(FsyncPolicy::Commit));
    run.open();
    run.fill(12);
    fail(&run, Call::Sync, 0);
    assert!(run.try_maintain().is_err());
    run.maintain();
    let root = scratch();
    run.recording.image(run.now()).materialize(&mut Nothing, root.path()).unwrap();
    let index = "00000000000000000000.index";
    let (disk, live) = (fs::read(log_dir(root.path()).join(index)), fs::read(run.dir().join(index)));
    let live = live.unwrap();
    assert!(!live.is_empty() && disk.unwrap() == live);
}

/// Epochs are rebuilt from batches, all of them, whatever else is known to be durable.
#[test]
fn leader_epochs_that_are_lost_are_found_in_the_batches() {
    for (is_closed, is_removed) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut run = Run::new("lost-epochs", config(FsyncPolicy::Commit));
        run.open();
        run.fill(2);
        run.log().set_leader_epoch(3).unwrap();
        run.fill(9);
        run.maintain();
        run.log().set_leader_epoch(5).unwrap();
        run.append(1);
        let epochs = run.log().reader().leader_epochs();
        if is_closed {
            run.close();
        } else {
            run.kill();
        }
        let file = run.dir().join("leader-epoch-checkpoint");
        if is_removed {
            fs::remove_file(&file).unwrap();
        } else {
            fs::write(&file, "0\n9\n").unwrap();
        }
        run.open();
        assert_eq!(run.log().reader().leader_epochs(), epochs, "closed {is_closed}, removed {is_removed}");
        assert_eq!(run.log().leader_epoch(), 5);
    }
}
