//! Group commit: who leads when, and that nobody is forgotten.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use loom::{model::Builder, sync::Arc, thread};

use crate::{
    group::{Group, Step, Work},
    quota::Quota,
};

/// What a caller was told: the place of its record, and how safe it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Written(usize),
    Durable(usize),
    Poisoned,
    Closed,
}

/// A log that counts. Its words are not the checker's: the group alone is tried, and must keep each of them to one thread
/// at a time.
struct Log {
    /// Callers whose records are written, in order.
    records: Mutex<Vec<usize>>,
    durable: AtomicUsize,
    is_writing: AtomicBool,
    is_syncing: AtomicBool,
    syncs: AtomicUsize,
    is_poisoned: AtomicBool,
    is_closed: AtomicBool,
    /// The sync that fails, and the record over whose write its leader dies.
    fails_at: Option<usize>,
    dies_at: Option<usize>,
}

impl Log {
    fn new() -> Self {
        Self {
            records: Mutex::new(Vec::new()),
            durable: AtomicUsize::new(0),
            is_writing: AtomicBool::new(false),
            is_syncing: AtomicBool::new(false),
            syncs: AtomicUsize::new(0),
            is_poisoned: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            fails_at: None,
            dies_at: None,
        }
    }

    fn refusal(&self) -> Option<Told> {
        if self.is_poisoned.load(SeqCst) {
            return Some(Told::Poisoned);
        }
        self.is_closed.load(SeqCst).then_some(Told::Closed)
    }
}

struct Request {
    caller: usize,
    is_durable: bool,
}

impl Work for Log {
    type Request = Request;
    type Answer = Told;

    fn write(&self, requests: Vec<Request>) -> Vec<Step<Told>> {
        assert!(!requests.is_empty(), "a lead with nothing to do");
        assert!(!self.is_writing.swap(true, SeqCst), "two write at a time");
        thread::yield_now();
        let steps = requests.iter().map(|request| {
            if let Some(refusal) = self.refusal() {
                return Step::Done(refusal);
            }
            let mut records = self.records.lock().unwrap();
            if self.dies_at == Some(request.caller) {
                drop(records);
                self.is_writing.store(false, SeqCst);
                std::panic::resume_unwind(Box::new("the leader dies"));
            }
            records.push(request.caller);
            let at = records.len() - 1;
            if request.is_durable { Step::Wait(Told::Written(at)) } else { Step::Done(Told::Written(at)) }
        });
        let steps = steps.collect();
        self.is_writing.store(false, SeqCst);
        steps
    }

    fn announce(&self) {}

    fn sync(&self) -> Option<Told> {
        assert!(!self.is_syncing.swap(true, SeqCst), "two sync at a time");
        let covered = self.records.lock().unwrap().len();
        let number = self.syncs.fetch_add(1, SeqCst);
        thread::yield_now();
        self.is_syncing.store(false, SeqCst);
        if self.fails_at == Some(number) {
            self.is_poisoned.store(true, SeqCst);
            return Some(Told::Poisoned);
        }
        self.durable.fetch_max(covered, SeqCst);
        None
    }

    fn settle(&self, waiting: &Told) -> Option<Told> {
        match *waiting {
            Told::Written(at) if at < self.durable.load(SeqCst) => Some(Told::Durable(at)),
            _ => self.refusal(),
        }
    }

    fn latch(&self) {
        self.is_closed.store(true, SeqCst);
    }

    fn lost(&self) -> Told {
        self.refusal().unwrap_or(Told::Closed)
    }
}

/// Tries all interleavings of so many switches.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Callers on threads of their own, each with what it asks for; the last is the model's own thread. What each was told.
fn run(log: Log, callers: &[bool]) -> (Arc<Group<Log>>, Vec<Told>) {
    let group = Arc::new(Group::new(log));
    let submit = |group: &Group<Log>, caller: usize, is_durable: bool| {
        let request = Request { caller, is_durable };
        // A leader that dies takes its own answer along.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| group.submit(request, !is_durable)))
            .unwrap_or(Told::Closed)
    };
    let (last, others) = callers.split_last().expect("a caller");
    let threads: Vec<_> = others
        .iter()
        .enumerate()
        .map(|(caller, is_durable)| {
            let (group, is_durable) = (Arc::clone(&group), *is_durable);
            thread::spawn(move || submit(&group, caller, is_durable))
        })
        .collect();
    let own = submit(&group, others.len(), *last);
    let mut told: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    told.push(own);
    (group, told)
}

/// Each was answered once (or `run` would not have returned), with a place of its own, and as safe as it asked for.
fn all_well(group: &Group<Log>, callers: &[bool], told: &[Told]) {
    let records = group.work().records.lock().unwrap().clone();
    assert_eq!(records.len(), callers.len());
    for (caller, (is_durable, told)) in callers.iter().zip(told).enumerate() {
        let at = match (is_durable, told) {
            (true, Told::Durable(at)) | (false, Told::Written(at)) => *at,
            other => panic!("{other:?}"),
        };
        assert_eq!(records[at], caller);
    }
    let durable = group.work().durable.load(SeqCst);
    for told in told {
        assert!(!matches!(told, Told::Durable(at) if *at >= durable), "acknowledged before its sync");
    }
    assert!(group.work().syncs.load(SeqCst) <= callers.iter().filter(|is_durable| **is_durable).count());
}

#[test]
fn two_commit() {
    check(4, || {
        let callers = [true, true];
        let (group, told) = run(Log::new(), &callers);
        all_well(&group, &callers, &told);
    });
}

#[test]
fn three_commit() {
    check(3, || {
        let callers = [true, true, true];
        let (group, told) = run(Log::new(), &callers);
        all_well(&group, &callers, &told);
    });
}

#[test]
fn two_commit_and_one_does_not_wait() {
    check(3, || {
        let callers = [true, false, true];
        let (group, told) = run(Log::new(), &callers);
        all_well(&group, &callers, &told);
    });
}

#[test]
fn one_commits_and_two_do_not_wait() {
    check(3, || {
        let callers = [false, true, false];
        let (group, told) = run(Log::new(), &callers);
        all_well(&group, &callers, &told);
    });
}

#[test]
fn a_failed_sync_reaches_all() {
    check(3, || {
        let log = Log { fails_at: Some(0), ..Log::new() };
        let (_, told) = run(log, &[true, true, true]);
        assert_eq!(told, [Told::Poisoned; 3]);
    });
    check(3, || {
        let log = Log { fails_at: Some(1), ..Log::new() };
        let (group, told) = run(log, &[true, true, true]);
        let durable = group.work().durable.load(SeqCst);
        for told in told {
            assert!(matches!(told, Told::Poisoned) || matches!(told, Told::Durable(at) if at < durable));
        }
    });
}

#[test]
fn nobody_hangs_on_a_leader_that_died() {
    for callers in [[true, true, true], [true, false, true], [false, false, true]] {
        check(3, move || {
            let log = Log { dies_at: Some(1), ..Log::new() };
            let (group, told) = run(log, &callers);
            assert_eq!(told[1], Told::Closed);
            let durable = group.work().durable.load(SeqCst);
            for (is_durable, told) in callers.iter().zip(told) {
                match told {
                    Told::Closed => {}
                    Told::Durable(at) => assert!(*is_durable && at < durable),
                    Told::Written(_) => assert!(!is_durable),
                    Told::Poisoned => panic!("no sync failed"),
                }
            }
        });
    }
}

#[test]
fn the_bound_on_memory_holds_and_everybody_is_served() {
    check(3, || {
        let quota = Arc::new(Quota::new(10));
        let threads: Vec<_> = [6, 20]
            .into_iter()
            .map(|bytes| {
                let quota = Arc::clone(&quota);
                thread::spawn(move || {
                    let share = Quota::take(&quota, bytes);
                    let taken = quota.taken();
                    assert!(taken <= 10 || taken == bytes, "{taken}");
                    drop(share);
                })
            })
            .collect();
        let share = Quota::take(&quota, 5);
        assert!(quota.taken() <= 10);
        drop(share);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(quota.taken(), 0);
    });
}
