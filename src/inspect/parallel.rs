//! Many segments checked by several threads, and one large segment by all of them.
//!
//! Each thread takes a segment and walks it from front to back; a thread that finds none left looks through parts of the
//! segments that others walk, ahead of them. What it found counts once the walk comes to exactly the byte at which that part
//! began, so that the verdict is that of one walk, whoever read the bytes.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    path::Path,
    thread,
};

use parking_lot::{Condvar, Mutex};

use super::{
    look::{Ahead, PART_BYTES, Part, look_through},
    partition::Partition,
    report::{SegmentReport, VerifyOptions},
    segment_check::{SegmentFiles, check_segment},
};

/// Checks segments, named by the number of their partition in `partitions` and by their own number in it, with so many
/// threads; each report comes with its partition's number, in any order.
///
/// `tell` is told, by any of the threads and every few MiB, how many bytes were checked since, and answers whether to go on:
/// where not, what was not finished has no report.
pub fn check_segments(
    partitions: &[Partition],
    work: &[(usize, usize)],
    options: &VerifyOptions,
    threads: NonZeroUsize,
    tell: &(dyn Fn(u64) -> bool + Sync),
) -> Vec<(usize, SegmentReport)> {
    let total = work.len();
    let state = State { next: 0, total, unfinished: total, walked: BTreeMap::new(), is_over: false };
    let (state, changed, reports) = (Mutex::new(state), Condvar::new(), Mutex::new(Vec::new()));
    let pool = Pool { options, threads: threads.get(), tell, state, changed };
    let turn = || {
        while let Some(at) = pool.take() {
            let _turn = Turn { pool: &pool, at };
            let found = work.get(at).and_then(|&(partition, segment)| {
                let files = partitions.get(partition)?.segment(segment)?;
                let report = pool.walk(at, files)?;
                Some((partition, report))
            });
            reports.lock().extend(found);
        }
        pool.help();
    };
    thread::scope(|scope| {
        for _ in 1..threads.get() {
            scope.spawn(turn);
        }
        turn();
    });
    reports.into_inner()
}

struct Pool<'a> {
    options: &'a VerifyOptions,
    threads: usize,
    tell: &'a (dyn Fn(u64) -> bool + Sync),
    state: Mutex<State<'a>>,
    /// A part is ready, or there is one to be taken, or a segment is done.
    changed: Condvar,
}

struct State<'a> {
    /// The first segment that nobody has taken.
    next: usize,
    total: usize,
    unfinished: usize,
    /// The segments being walked.
    walked: BTreeMap<usize, Walk<'a>>,
    /// `tell` said to stop.
    is_over: bool,
}

/// A segment that is being walked, and what was found ahead.
struct Walk<'a> {
    path: &'a Path,
    len_bytes: u64,
    /// The part that the walk is in.
    at: u64,
    /// The first part that nobody has taken.
    next: u64,
    taken: BTreeSet<u64>,
    ready: BTreeMap<u64, Part>,
}

impl Walk<'_> {
    /// A part to be looked through ahead: none too far, since what is found waits in memory.
    fn take(&mut self, threads: usize) -> Option<u64> {
        let number = self.next.max(self.at + 1);
        let is_near = number <= self.at.saturating_add(2 * threads as u64);
        if !is_near || number.saturating_mul(PART_BYTES) >= self.len_bytes {
            return None;
        }
        self.next = number + 1;
        self.taken.insert(number);
        Some(number)
    }
}

impl<'a> Pool<'a> {
    /// The next segment to be walked.
    fn take(&self) -> Option<usize> {
        let mut state = self.state.lock();
        let at = state.next;
        let is_left = !state.is_over && at < state.total;
        state.next += usize::from(is_left);
        is_left.then_some(at)
    }

    fn walk(&self, at: usize, files: &'a SegmentFiles) -> Option<SegmentReport> {
        let ahead = Walker { pool: self, at, path: &files.log };
        let ahead = (self.threads > 1).then_some(&ahead as &dyn Ahead);
        check_segment(files, self.options, ahead, &mut |bytes| self.told(bytes))
    }

    fn told(&self, bytes: u64) -> bool {
        if (self.tell)(bytes) {
            return true;
        }
        self.state.lock().is_over = true;
        self.changed.notify_all();
        false
    }

    /// Looks through parts of what others walk, until there is nothing to walk any more.
    fn help(&self) {
        let mut state = self.state.lock();
        while state.unfinished > 0 && !state.is_over {
            let found = state.walked.iter_mut().find_map(|(at, walk)| {
                walk.take(self.threads).map(|number| (*at, number, walk.path, walk.len_bytes))
            });
            match found {
                Some((at, number, path, len_bytes)) => {
                    drop(state);
                    self.look(at, number, path, len_bytes);
                    state = self.state.lock();
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn look(&self, at: usize, number: u64, path: &Path, len_bytes: u64) {
        // What cannot be read here the walk comes to by itself, and says so.
        let part = look_through(path, number, len_bytes, self.options.deep).ok();
        let bytes = part.as_ref().map_or(0, |part| part.end - part.from);
        if let Some(walk) = self.state.lock().walked.get_mut(&at) {
            walk.taken.remove(&number);
            walk.ready.extend(part.map(|part| (number, part)));
        }
        self.changed.notify_all();
        self.told(bytes);
    }
}

/// A segment in the hands of a thread. However that ends, nobody waits for it any longer.
struct Turn<'p, 'a> {
    pool: &'p Pool<'a>,
    at: usize,
}

impl Drop for Turn<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        state.walked.remove(&self.at);
        state.unfinished -= 1;
        drop(state);
        self.pool.changed.notify_all();
    }
}

/// One walk's view of the pool.
struct Walker<'p, 'a> {
    pool: &'p Pool<'a>,
    at: usize,
    path: &'a Path,
}

impl Ahead for Walker<'_, '_> {
    fn begin(&self, len_bytes: u64) -> bool {
        if len_bytes < 2 * PART_BYTES {
            return false;
        }
        let walk = Walk {
            path: self.path,
            len_bytes,
            at: 0,
            next: 0,
            taken: BTreeSet::new(),
            ready: BTreeMap::new(),
        };
        self.pool.state.lock().walked.insert(self.at, walk);
        self.pool.changed.notify_all();
        true
    }

    fn part(&self, number: u64) -> Option<Part> {
        let pool = self.pool;
        let mut state = pool.state.lock();
        loop {
            let is_over = state.is_over;
            let walk = state.walked.get_mut(&self.at)?;
            walk.at = walk.at.max(number);
            // What lies behind the walk is of no use any more.
            walk.ready = walk.ready.split_off(&number);
            if let Some(part) = walk.ready.remove(&number) {
                drop(state);
                pool.changed.notify_all();
                return Some(part);
            }
            if is_over || !walk.taken.contains(&number) {
                walk.next = walk.next.max(number + 1);
                drop(state);
                pool.changed.notify_all();
                return None;
            }
            // Somebody is at it: meanwhile the one behind it.
            match walk.take(pool.threads) {
                Some(other) => {
                    let len_bytes = walk.len_bytes;
                    drop(state);
                    pool.look(self.at, other, self.path, len_bytes);
                    state = pool.state.lock();
                }
                None => pool.changed.wait(&mut state),
            }
        }
    }
}
