//! Many segments checked by several threads, and one large segment by all of them.
//!
//! Each thread takes a segment and walks it from front to back; a thread that finds none left looks through parts of the
//! segments that others walk, ahead of them. What it found counts once the walk comes to exactly the byte at which that part
//! began, so that the verdict is that of one walk, whoever read the bytes.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    path::Path,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use super::{
    look::{Ahead, PART_BYTES, Part, Room, look_through},
    partition::Partition,
    report::{SegmentReport, VerifyOptions},
    segment_check::{SegmentFiles, check_segment},
};

/// Segments to be checked by some threads together. No thread is started here: each of the caller's calls
/// [`SegmentPool::work`], and [`SegmentPool::into_reports`] has what they found.
pub struct SegmentPool<'a> {
    partitions: &'a [Partition],
    work: &'a [(usize, usize)],
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
    reports: Vec<(usize, SegmentReport)>,
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

impl<'a> SegmentPool<'a> {
    /// Segments, named by the number of their partition in `partitions` and by their own number in it, to be checked by so
    /// many threads.
    ///
    /// `tell` is told, by any of the threads and every few MiB, how many bytes were checked since, and answers whether to go
    /// on: where not, what was not finished has no report.
    pub fn new(
        partitions: &'a [Partition],
        work: &'a [(usize, usize)],
        options: &'a VerifyOptions,
        threads: NonZeroUsize,
        tell: &'a (dyn Fn(u64) -> bool + Sync),
    ) -> Self {
        let state = State {
            next: 0,
            total: work.len(),
            unfinished: work.len(),
            walked: BTreeMap::new(),
            is_over: false,
            reports: Vec::new(),
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self { partitions, work, options, threads: threads.get(), tell, state, changed }
    }

    /// One thread's share: returns when nothing is left to do, or `tell` said to stop.
    pub fn work(&self) {
        let room = RefCell::new(Room::default());
        while let Some(at) = self.take() {
            let _turn = Turn { pool: self, at };
            let Some(&(partition, segment)) = self.work.get(at) else { continue };
            let files = self.partitions.get(partition).and_then(|partition| partition.segment(segment));
            if let Some(report) = files.and_then(|files| self.walk(at, files, &room)) {
                self.locked().reports.push((partition, report));
            }
        }
        self.help(&room);
    }

    /// The reports of the segments that were checked to their end, each with its partition's number, in any order.
    pub fn into_reports(self) -> Vec<(usize, SegmentReport)> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).reports
    }

    fn locked(&self) -> MutexGuard<'_, State<'a>> {
        // Nothing is left half done under it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State<'a>>) -> MutexGuard<'s, State<'a>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The next segment to be walked.
    fn take(&self) -> Option<usize> {
        let mut state = self.locked();
        let at = state.next;
        let is_left = !state.is_over && at < state.total;
        state.next += usize::from(is_left);
        is_left.then_some(at)
    }

    fn walk(&self, at: usize, files: &'a SegmentFiles, room: &RefCell<Room>) -> Option<SegmentReport> {
        let ahead = Walker { pool: self, at, path: &files.log, room };
        let ahead = (self.threads > 1).then_some(&ahead as &dyn Ahead);
        check_segment(files, self.options, ahead, &mut |bytes| self.told(bytes))
    }

    fn told(&self, bytes: u64) -> bool {
        if (self.tell)(bytes) {
            return true;
        }
        self.locked().is_over = true;
        self.changed.notify_all();
        false
    }

    /// Looks through parts of what others walk, until there is nothing to walk any more.
    fn help(&self, room: &RefCell<Room>) {
        let mut state = self.locked();
        while state.unfinished > 0 && !state.is_over {
            let found = state.walked.iter_mut().find_map(|(at, walk)| {
                walk.take(self.threads).map(|number| (*at, number, walk.path, walk.len_bytes))
            });
            match found {
                Some((at, number, path, len_bytes)) => {
                    drop(state);
                    self.look(at, number, path, len_bytes, &mut room.borrow_mut());
                    state = self.locked();
                }
                None => state = self.wait(state),
            }
        }
    }

    fn look(&self, at: usize, number: u64, path: &Path, len_bytes: u64, room: &mut Room) {
        // What cannot be read here the walk comes to by itself, and says so.
        let part = look_through(path, number, len_bytes, self.options.deep, room).ok();
        let bytes = part.as_ref().map_or(0, |part| part.end - part.from);
        if let Some(walk) = self.locked().walked.get_mut(&at) {
            walk.taken.remove(&number);
            walk.ready.extend(part.map(|part| (number, part)));
        }
        self.changed.notify_all();
        self.told(bytes);
    }
}

/// A segment in the hands of a thread. However that ends, nobody waits for it any longer.
struct Turn<'p, 'a> {
    pool: &'p SegmentPool<'a>,
    at: usize,
}

impl Drop for Turn<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.pool.locked();
        state.walked.remove(&self.at);
        state.unfinished -= 1;
        drop(state);
        self.pool.changed.notify_all();
    }
}

/// One walk's view of the pool.
struct Walker<'p, 'a> {
    pool: &'p SegmentPool<'a>,
    at: usize,
    path: &'a Path,
    room: &'p RefCell<Room>,
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
        self.pool.locked().walked.insert(self.at, walk);
        self.pool.changed.notify_all();
        true
    }

    fn part(&self, number: u64) -> Option<Part> {
        let pool = self.pool;
        let mut state = pool.locked();
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
                    pool.look(self.at, other, self.path, len_bytes, &mut self.room.borrow_mut());
                    state = pool.locked();
                }
                None => state = pool.wait(state),
            }
        }
    }
}
