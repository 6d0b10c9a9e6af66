//! Every call is made to fail once, or from some moment on, and the log must be as it was before, or say that it is not.

use std::{fs, path::Path};

use stratalog::{
    AppendOptions, Error, FsyncPolicy, LogWriter, Pending,
    record::Record,
    sim::{Call, Fault},
};

use super::{
    model::{offsets, read_all},
    run::{Run, config, copy_dir, log_dir, put, scratch, value},
    states::check_last,
};

/// Error numbers, the same on every Linux.
pub(crate) const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Descriptors of this process that lead below `root`: other tests have theirs.
fn descriptors(root: &Path) -> usize {
    let root = fs::canonicalize(root).unwrap();
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|path| path.starts_with(&root))
        .count()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn nth(call: Option<Call>, after: usize, errno: i32, short_bytes: Option<usize>) -> Fault {
    Fault { call, after, times: 1, errno, short_bytes }
}

/// Farther from any other offset here than the indexes of one segment can name.
const FAR: i64 = 4_000_000_000;

/// What failing one call came to.
#[derive(Default)]
struct Outcome {
    failed: usize,
    poisoned: usize,
}

/// Opens until it works; an open that fails keeps neither descriptors nor the lock.
fn open(run: &mut Run, outcome: &mut Outcome) {
    for _ in 0..2 {
        match run.try_open() {
            Ok(()) => return,
            Err(error) => {
                outcome.failed += 1;
                assert!(!matches!(error, Error::Corrupt(_) | Error::Locked { .. }), "{error}");
                assert_eq!(descriptors(run.root.path()), 0, "a failed open keeps descriptors: {error}");
            }
        }
    }
    panic!("the open fails twice, and only one call was to fail");
}

/// Does one thing, which may fail once. Poisoned: the log is opened again and the thing is done there.
fn step(run: &mut Run, outcome: &mut Outcome, what: &str, act: &dyn Fn(&mut Run) -> Result<(), Error>) {
    let (end, before) = (run.log().end(), read_all(&run.log().reader()).unwrap());
    let Err(error) = act(run) else { return };
    outcome.failed += 1;
    let is_sync = error.to_string().contains("cannot sync");
    let is_poisoned = matches!(run.log().sync(), Err(Error::Poisoned { .. }));
    if is_poisoned {
        assert!(is_sync, "{what}: {error} poisons");
        outcome.poisoned += 1;
        let durable = run.log().durable_end();
        for _ in 0..2 {
            let refused = put(run.log(), "refused");
            assert!(matches!(refused, Err(Error::Poisoned { .. })), "{what}: {refused:?} after {error}");
            assert!(matches!(run.log().maintain(), Err(Error::Poisoned { .. })));
        }
        assert_eq!(run.log().durable_end(), durable);
        read_all(&run.log().reader()).unwrap();
        let closed = run.writer.take().unwrap().close();
        assert!(matches!(closed, Err(Error::Poisoned { .. })), "{closed:?}");
        open(run, outcome);
    } else {
        // A new segment beyond a gap stays when the batch for it cannot be written.
        let is_gap = what == "gap" && run.log().end().value() == FAR;
        assert!(run.log().end() == end || is_gap, "{what}: {error} moved the end to {}", run.log().end());
        let after = read_all(&run.log().reader()).unwrap();
        assert!(after == before, "{what}: {error} changed the log: {:?}", offsets(&after));
    }
    act(run).unwrap_or_else(|again| panic!("{what}: failed with {error}, and again with {again}"));
}

fn append(run: &mut Run) -> Result<(), Error> {
    let durability = run.try_append(1)?;
    assert_eq!(durability, stratalog::Durability::Durable);
    Ok(())
}

/// Appends over rolls, a checkpoint, retention, a new start, a gap, a close and an open, with one call failing.
fn live(fault: Option<Fault>) -> (usize, Outcome, Run) {
    let mut settings = config(FsyncPolicy::Commit);
    settings.retention.bytes = Some(3500);
    let mut run = Run::new(&format!("{fault:?}"), settings);
    if let Some(fault) = fault {
        run.recording.fail(fault);
    }
    let mut outcome = Outcome::default();
    open(&mut run, &mut outcome);
    for _ in 0..8 {
        step(&mut run, &mut outcome, "append", &append);
    }
    step(&mut run, &mut outcome, "maintain", &|run| run.try_maintain());
    for _ in 0..9 {
        step(&mut run, &mut outcome, "append", &append);
    }
    step(&mut run, &mut outcome, "retention", &|run| run.try_maintain());
    let middle = run.log().start().value() + 2;
    step(&mut run, &mut outcome, "advance_start", &|run| run.try_advance_start(middle));
    step(&mut run, &mut outcome, "roll", &|run| run.log().roll());
    step(&mut run, &mut outcome, "append", &append);
    step(&mut run, &mut outcome, "gap", &|run| {
        // It may have outlived the sync that failed behind it.
        if run.log().end().value() > FAR { Ok(()) } else { run.try_append_at(FAR).map(drop) }
    });
    step(&mut run, &mut outcome, "append", &append);
    step(&mut run, &mut outcome, "epoch", &|run| {
        let epoch = run.log().leader_epoch() + 1;
        run.log().set_leader_epoch(epoch)
    });
    let end = run.log().end().value();
    match run.writer.take().unwrap().close() {
        Ok(()) => {}
        Err(error) => {
            outcome.failed += 1;
            assert!(!error.is_corruption(), "{error}");
        }
    }
    let now = run.now();
    run.model.durable_up_to(end, now);
    assert_eq!(descriptors(run.root.path()), 0, "after the close");
    open(&mut run, &mut outcome);
    step(&mut run, &mut outcome, "append", &append);
    run.kill();
    assert_eq!(descriptors(run.root.path()), 0, "after the drop");
    (run.recording.calls(), outcome, run)
}

fn sweep(calls: &[Call], errno: i32, short_bytes: Option<usize>) -> Outcome {
    let (count, _, clean) = live(None);
    check_last(&clean);
    let mut all = Outcome::default();
    for call in calls {
        for after in 0..count {
            let fault = nth(Some(*call), after, errno, short_bytes);
            let (_, outcome, run) = live(Some(fault));
            check_last(&run);
            all.poisoned += outcome.poisoned;
            all.failed += outcome.failed;
            if run.recording.is_failing() {
                // There was no such call any more.
                break;
            }
        }
    }
    println!("{calls:?} {errno}: {} failures, {} poisoned", all.failed, all.poisoned);
    all
}

#[test]
fn a_write_that_fails_is_tried_again_and_not_sticky() {
    for short in [None, Some(1), Some(40)] {
        let outcome = sweep(&[Call::Write], ENOSPC, short);
        assert!(outcome.failed > 0 && outcome.poisoned == 0);
    }
}

#[test]
fn a_write_that_meets_a_bad_block_is_not_sticky() {
    let outcome = sweep(&[Call::Write], EIO, Some(17));
    assert!(outcome.failed > 0 && outcome.poisoned == 0);
}

#[test]
fn names_lengths_and_blocks_that_fail_are_not_sticky() {
    let calls = [Call::Create, Call::CreateDir, Call::Rename, Call::Remove, Call::SetLen, Call::Preallocate];
    let outcome = sweep(&calls, ENOSPC, None);
    assert!(outcome.failed > 0 && outcome.poisoned == 0);
    let outcome = sweep(&calls, EIO, None);
    assert!(outcome.failed > 0 && outcome.poisoned == 0);
}

#[test]
fn a_sync_that_fails_is_sticky() {
    let outcome = sweep(&[Call::Sync, Call::SyncDir], EIO, None);
    assert!(outcome.poisoned > 10, "{} poisoned", outcome.poisoned);
}

/// F116: every waiter is told, and everything after is refused.
#[test]
fn a_failed_sync_is_told_to_all_who_wait() {
    let mut run = Run::new("waiters", config(FsyncPolicy::Commit));
    run.open();
    run.fill(3);
    let defer = |run: &mut Run| -> Pending {
        let value = value("waiting", run.log().end().value());
        run.log().append_records_deferred(&[Record::value_only(&value)], AppendOptions::default()).unwrap()
    };
    let pending: Vec<_> = (0..8).map(|_| defer(&mut run)).collect();
    run.recording.fail(nth(Some(Call::Sync), 0, EIO, None));
    for (nth, pending) in pending.into_iter().enumerate() {
        let told = pending.wait();
        assert!(told.is_err(), "waiter {nth}: {told:?}");
    }
    assert_eq!(run.log().durable_end().value(), 3);
    assert!(matches!(run.log().sync(), Err(Error::Poisoned { durable_end, .. }) if durable_end.value() == 3));
    assert!(matches!(run.log().advance_start(super::run::at(1)), Err(Error::Poisoned { .. })));
    assert!(matches!(run.writer.take().unwrap().close(), Err(Error::Poisoned { .. })));
}

/// F111: ten refusals, then room, then it goes on.
#[test]
fn a_full_disk_is_left_without_help() {
    for call in [Call::Write, Call::Preallocate, Call::Create] {
        let mut run = Run::new("full", config(FsyncPolicy::Commit));
        run.open();
        run.fill(6);
        let fault = Fault { times: usize::MAX, ..nth(Some(call), 0, ENOSPC, None) };
        run.recording.fail(fault);
        let mut refused = 0;
        let mut state = None;
        for _ in 0..40 {
            let before = (run.log().end(), read_all(&run.log().reader()).unwrap());
            let value = value("full", before.0.value());
            let appended = run.log().append_records(&[Record::value_only(&value)], AppendOptions::default());
            match appended {
                Ok(_) => {
                    let (now, offset) = (run.now(), before.0.value());
                    run.model.begin(offset, value, now);
                    run.model.durable_up_to(offset + 1, now);
                }
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error, Error::StorageFull { .. }), "{call:?}: {error}");
                    let after = (run.log().end(), read_all(&run.log().reader()).unwrap());
                    assert_eq!(before, after, "{call:?}");
                    // F110: neither names nor descriptors pile up.
                    let now = (names(&run.dir()), descriptors(run.root.path()));
                    assert_eq!(*state.get_or_insert_with(|| now.clone()), now, "{call:?}");
                }
            }
        }
        assert!(refused >= 10, "{call:?}: {refused} refused");
        run.recording.heal();
        run.fill(12);
        run.kill();
        check_last(&run);
    }
}

#[test]
fn a_failed_roll_leaves_nothing() {
    let mut after = 0;
    loop {
        let mut run = Run::new("roll", config(FsyncPolicy::Never));
        run.open();
        run.fill(3);
        run.sync();
        let before = (names(&run.dir()), descriptors(run.root.path()));
        run.recording.fail(nth(None, after, ENOSPC, None));
        let rolled = run.log().roll();
        run.recording.heal();
        let Err(error) = rolled else { break };
        assert!(matches!(error, Error::StorageFull { .. }), "call {after}: {error}");
        assert_eq!((names(&run.dir()), descriptors(run.root.path())), before, "call {after}: {error}");
        run.fill(9);
        run.sync();
        run.kill();
        check_last(&run);
        after += 1;
    }
    assert!(after > 4, "only {after} calls in a roll");
}

/// A log whose first segment is damaged near its end, behind what is durable, with a second one after it.
fn torn() -> Run {
    let mut torn = Run::new("torn", config(FsyncPolicy::Never));
    torn.open();
    torn.fill(4);
    torn.sync();
    torn.fill(9);
    torn.kill();
    let first = log_dir(torn.root.path()).join("00000000000000000000.log");
    let mut bytes = fs::read(&first).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 0xff;
    fs::write(&first, bytes).unwrap();
    fs::remove_file(log_dir(torn.root.path()).join(".stratalog-control")).unwrap();
    torn
}

/// The same log over again, under a recorder of its own.
fn copy_of(torn: &Run, name: &str) -> Run {
    let root = scratch();
    copy_dir(torn.root.path(), root.path());
    Run::over(name, root, torn.model.at(torn.now(), true), torn.config.clone())
}

/// An open that fails (or dies) at one call, another that finishes its work, and a power cut at any moment of that.
#[test]
fn a_power_cut_after_an_open_that_failed() {
    let torn = torn();
    for after in (0..).step_by(3) {
        let mut run = copy_of(&torn, &format!("after-failed-{after}"));
        run.recording.fail(nth(None, after, EIO, None));
        drop(LogWriter::open(run.dir(), run.config.clone()));
        if run.recording.is_failing() {
            assert!(after > 15, "{after} calls in an open that cuts");
            break;
        }
        run.open();
        run.append(1);
        run.kill();
        super::states::sweep(&run, 1);
    }
}

/// Opens of a log with a torn tail over two segments, each call failing once.
#[test]
fn a_failed_open_leaves_the_lock_free() {
    let torn = torn();
    for errno in [ENOSPC, EIO] {
        let mut after = 0;
        let cut = loop {
            let mut run = copy_of(&torn, "torn-open");
            run.recording.fail(nth(None, after, errno, None));
            let opened = LogWriter::open(run.dir(), run.config.clone());
            let is_over = run.recording.is_failing();
            run.recording.heal();
            let failed = opened.is_err();
            drop(opened);
            assert_eq!(descriptors(run.root.path()), 0, "call {after}");
            run.open();
            assert_eq!(run.log().end().value(), 4, "call {after}");
            let cut = run.log().recovery().cut.clone();
            assert!(!is_over || !failed);
            run.append(1);
            run.kill();
            check_last(&run);
            if is_over {
                break cut;
            }
            after += 1;
        };
        assert!(cut.is_none() && after > 15, "{after} calls in an open that cuts");
    }
}

/// A cut that fails at any of its calls leaves the log as it was, or the next open finishes it.
#[test]
fn a_failed_cut_is_not_done_by_half() {
    let mut whole = Run::new("to-cut", config(FsyncPolicy::Commit));
    whole.open();
    whole.fill(14);
    whole.close();
    for errno in [ENOSPC, EIO] {
        let (mut after, mut was_undone, mut was_finished) = (0, 0, 0);
        loop {
            let mut run = copy_of(&whole, &format!("cut-{errno}-{after}"));
            run.recording.fail(nth(None, after, errno, None));
            let cut = run.try_cut(6);
            let is_over = run.recording.is_failing();
            run.recording.heal();
            if cut.is_err() {
                assert_eq!(descriptors(run.root.path()), 0, "call {after}");
                run.open();
                match run.log().end().value() {
                    14 => was_undone += 1,
                    6 => was_finished += 1,
                    end => panic!("call {after}: ends at {end} after {cut:?}"),
                }
                assert_eq!(run.log().recovery().lost, None);
            }
            run.append(1);
            run.kill();
            check_last(&run);
            if is_over {
                break;
            }
            after += 1;
        }
        assert!(was_undone > 5 && was_finished > 5, "{was_undone} undone, {was_finished} finished");
    }
}
