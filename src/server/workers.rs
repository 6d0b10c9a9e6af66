//! Threads that help a connection with several things at a time: the syncs of one request's logs.
//!
//! Each log has a file of its own to sync. One after another they take as long as all of them; side by side the device
//! merges their flushes. Whoever has only one thing to do does it himself.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

/// Threads at most. With 16 files, seven and the caller take half as long as the caller alone and fifteen no less.
const MOST_THREADS: usize = 7;
/// A thread that had nothing to do for so long ends.
const IDLE_AFTER: Duration = Duration::from_secs(10);
const STACK_BYTES: usize = 256 << 10;

/// One of several things to be done.
pub(crate) type Errand = Box<dyn FnOnce() + Send>;

/// The threads. None is there before it is needed.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// A job is here once for each thread that may help with it, and not any more once it is done.
    jobs: VecDeque<Arc<Job>>,
    thread_count: usize,
    idle_count: usize,
    is_stopping: bool,
}

/// What one caller waits for.
struct Job {
    errands: Mutex<Errands>,
    done: Condvar,
}

struct Errands {
    waiting: Vec<Errand>,
    under_way: usize,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}

impl Workers {
    /// Does all of it, some by other threads, and returns when the last is done.
    pub(crate) fn run_all(&self, errands: Vec<Errand>) {
        let help = errands.len().saturating_sub(1).min(MOST_THREADS);
        let job =
            Job { errands: Mutex::new(Errands { waiting: errands, under_way: 0 }), done: Condvar::new() };
        let job = Arc::new(job);
        if help > 0 {
            self.call(&job, help);
        }
        job.work();
        if help > 0 {
            self.shared.state.lock().jobs.retain(|other| !Arc::ptr_eq(other, &job));
        }
        let mut errands = job.errands.lock();
        job.done.wait_while(&mut errands, |errands| errands.under_way > 0);
    }

    fn call(&self, job: &Arc<Job>, help: usize) {
        let mut state = self.shared.state.lock();
        state.jobs.extend(std::iter::repeat_n(Arc::clone(job), help));
        let wanted = state.jobs.len().saturating_sub(state.idle_count);
        let new = wanted.min(MOST_THREADS.saturating_sub(state.thread_count));
        let woken = help.min(state.idle_count);
        for _ in 0..new {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("worker".to_owned()).stack_size(STACK_BYTES);
            if let Err(error) = thread.spawn(move || shared.run()) {
                // The caller does what nobody helps with.
                tracing::warn!(%error, "no thread to sync logs side by side");
                break;
            }
            state.thread_count += 1;
        }
        drop(state);
        for _ in 0..woken {
            self.shared.wake.notify_one();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.state.lock().is_stopping = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job.work();
                drop(job);
                state = self.state.lock();
                continue;
            }
            if state.is_stopping {
                break;
            }
            state.idle_count += 1;
            let is_over = self.wake.wait_for(&mut state, IDLE_AFTER).timed_out();
            state.idle_count -= 1;
            if is_over && state.jobs.is_empty() {
                break;
            }
        }
        state.thread_count -= 1;
    }
}

impl Job {
    /// Does what nobody has begun, until nothing is left.
    fn work(&self) {
        loop {
            let mut errands = self.errands.lock();
            let Some(errand) = errands.waiting.pop() else { return };
            errands.under_way += 1;
            drop(errands);
            // Whoever waits for all of them must not wait for ever for one.
            if catch_unwind(AssertUnwindSafe(errand)).is_err() {
                tracing::error!("syncing a log panicked");
            }
            let mut errands = self.errands.lock();
            errands.under_way -= 1;
            if errands.under_way == 0 && errands.waiting.is_empty() {
                self.done.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    #[test]
    fn all_is_done_when_it_returns_whoever_calls() {
        let workers = Workers::default();
        let done = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for caller in 0..4 {
                let (workers, done) = (&workers, &done);
                scope.spawn(move || {
                    for round in 0..50_usize {
                        let own = Arc::new(AtomicUsize::new(0));
                        let count = (round + caller) % 20;
                        let errand = |_| -> Errand {
                            let (own, done) = (Arc::clone(&own), Arc::clone(done));
                            Box::new(move || {
                                own.fetch_add(1, Ordering::SeqCst);
                                done.fetch_add(1, Ordering::SeqCst);
                            })
                        };
                        workers.run_all((0..count).map(errand).collect());
                        assert_eq!(own.load(Ordering::SeqCst), count);
                    }
                });
            }
        });
        assert!(done.load(Ordering::SeqCst) > 0);
        let state = workers.shared.state.lock();
        assert!(state.jobs.is_empty() && state.thread_count <= MOST_THREADS, "{state:?}");
    }

    #[test]
    fn one_that_panics_keeps_nobody_waiting() {
        let workers = Workers::default();
        for _ in 0..20 {
            let errand = |number| -> Errand { Box::new(move || assert!(number % 3 > 0, "on purpose")) };
            workers.run_all((0..9).map(errand).collect());
        }
        assert!(workers.shared.state.lock().thread_count <= MOST_THREADS);
    }

    /// Each waits for all others: one thread alone would never end.
    #[test]
    fn errands_run_side_by_side() {
        let workers = Workers::default();
        for _ in 0..3 {
            let barrier = Arc::new(Barrier::new(MOST_THREADS + 1));
            let errand = |_| -> Errand {
                let barrier = Arc::clone(&barrier);
                Box::new(move || {
                    barrier.wait();
                })
            };
            workers.run_all((0..=MOST_THREADS).map(errand).collect());
        }
    }
}
