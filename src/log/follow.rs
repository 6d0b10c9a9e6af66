//! A log that another process writes, seen from outside: no lock, nothing changed, looked at again on demand.
//!
//! While a writer holds the directory its control page says how far the log is written, and in which segment at which
//! byte: a look that finds only the ends moved makes no system call. Elsewhere the batches say so: one at the end that does
//! not check is one that is not there yet. The page of a writer that is gone still tells what it had published and what is
//! durable, but not what a broker appended since, so the files are looked at too.
//!
//! Whether the writer lives is asked of its lock, and only where the page has not moved for a while: a page that moves has
//! somebody who moves it. A look at the files counts only if no writer began while it was taken: what a writer has not
//! published it may take back.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::{
    checkpoint::{Checkpoint, Found},
    control::{AttachedPage, ControlPage, ControlState, ControlView, NoView},
    epochs::Epochs,
    kafka_files::{self, KafkaHints},
    open::epochs_of,
    reader::{RETRIES, is_gone},
    shared::Shared,
    summary::{self, SegmentSummary},
    survey::{LogFile, Survey},
    tail::{SETTINGS, Tail, TailEnd},
    trust,
    waiters_page::WaitersPage,
    watch::Watch,
};
use crate::{
    config::{deadline_in, is_past, time_left},
    error::{Error, Result},
    offset::Offset,
    segment::{Segment, SegmentEnd},
    sys::{Dir, DirLock, Woken, futex_wait},
};

/// The longest sleep: after it the lock is asked and the names of the pages are compared with what is mapped.
pub(super) const CEILING: Duration = Duration::from_millis(250);
/// The longest sleep of a reader that nobody wakes.
const LONGEST_NAP: Duration = Duration::from_millis(10);
const SHORTEST_NAP: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Follower {
    state: Mutex<State>,
    pub(super) watch: Watch,
}

#[derive(Debug)]
struct State {
    page: Option<AttachedPage>,
    waiters: Option<Arc<WaitersPage>>,
    tail: Tail,
    /// The base of the first segment.
    first: Offset,
    /// How many sets of segments were published: who fails at something looks whether this moved.
    sets: u64,
    /// What the page said at the last look, whatever came of it.
    noted: Option<ControlView>,
    /// The page that the present ends and segments agree with.
    taken: Option<ControlView>,
    /// A writer lives and its page is believed. Else every look is a whole one.
    is_by_page: bool,
    /// When the next look must be a whole one in any case.
    whole_due: Instant,
    nap: Duration,
}

/// How much a look looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Only the page.
    Page,
    /// The names of the pages, the lock, and where there is no writer, the files.
    Whole,
}

/// The page kept changing while it was read.
struct Changing;

impl Follower {
    pub(super) fn open(path: &Path) -> Result<(Shared, Self)> {
        again_if_gone(|| Self::attach(path))
    }

    fn attach(path: &Path) -> Result<(Shared, Self)> {
        let not_found = || Error::NotFound { path: path.to_owned() };
        let dir =
            Dir::open(path).map_err(|error| if error.is_not_found() { not_found() } else { error.into() })?;
        let dir = Arc::new(dir);
        let newest = Survey::take_while_written(&dir)?.logs.last().map(|log| log.base);
        let tail = Tail::open(&dir, newest.ok_or_else(not_found)?)?;
        let (first, segments) = (tail.base(), vec![Arc::clone(&tail.segment)]);
        let ends = (first, first, first);
        let shared = Shared::new(dir, segments, ends, Epochs::default(), ControlPage::none());
        let mut state = State {
            page: None,
            waiters: None,
            tail,
            first,
            sets: 0,
            noted: None,
            taken: None,
            is_by_page: false,
            whole_due: deadline_in(CEILING),
            nap: SHORTEST_NAP,
        };
        state.look_whole(&shared)?;
        if state.sets == 0 {
            // Somebody is opening it, and there is no view to be kept: what the files say. It may be cut, which readers are
            // told of.
            state.look_at_files(&shared, state.noted, None, false)?;
        }
        state.tail.trust_if_closed(&shared.dir);
        // Whatever happens to the names from now on, what was there can be read. Where it fails, that is told at the use.
        let _ = shared.with_segment(&state.tail.segment, |segment| segment.open().map(drop));
        Ok((shared, Self { state: Mutex::new(state), watch: Watch::default() }))
    }

    /// Looks at everything that may have changed.
    pub(super) fn refresh(&self, shared: &Shared) -> Result<()> {
        let mut state = self.state.lock();
        again_if_gone(|| state.look_whole(shared))
    }

    /// Looks at the page, and at more where that is due.
    pub(super) fn look(&self, shared: &Shared) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_by_page && !is_past(state.whole_due) && matches!(state.look(shared, Look::Page), Ok(true))
        {
            return Ok(());
        }
        again_if_gone(|| state.look_whole(shared))
    }

    /// True where the page says something else than at the last look. Costs no system call.
    pub(super) fn has_moved(&self) -> bool {
        let state = self.state.lock();
        state.view().map_or(true, |view| view != state.noted)
    }

    /// How many sets of segments there were: what failed under another set is worth another try.
    pub(super) fn sets(&self) -> u64 {
        self.state.lock().sets
    }

    /// The next sleep of somebody who waits for the page to change.
    pub(super) fn sleeper(&self) -> Sleeper {
        self.state.lock().sleeper()
    }
}

/// One sleep, which keeps nothing of the reader but a map.
#[derive(Debug)]
pub(super) struct Sleeper {
    waiters: Option<Arc<WaitersPage>>,
    /// When the next look is due.
    until: Instant,
}

impl Sleeper {
    /// Sleeps until a writer publishes something, the next look is due, or the deadline. `look` is asked once more before.
    pub(super) fn sleep(self, shared: &Shared, deadline: Instant, look: impl FnOnce() -> bool) {
        let mut until = self.until.min(deadline);
        if let Some(words) = self.waiters.as_ref().and_then(|page| page.wake_words()) {
            let slept = words.wait(look, |word, before| futex_wait(word, before, time_left(until)));
            if slept != Some(Woken::Cannot) {
                return;
            }
            until = until.min(deadline_in(LONGEST_NAP));
        }
        shared.waiters().wait_until(until, || false);
    }
}

impl State {
    fn view(&self) -> Result<Option<ControlView>, Changing> {
        match self.page.as_ref().map(AttachedPage::view) {
            // Of a sync that is under way nobody here makes anything.
            Some(Ok(view)) => Ok(Some(ControlView { syncing: false, ..view })),
            Some(Err(NoView::Changing)) => Err(Changing),
            Some(Err(NoView::NotOurs)) | None => Ok(None),
        }
    }

    fn sleeper(&mut self) -> Sleeper {
        let waiters = self.waiters.clone();
        if self.is_by_page && waiters.is_some() {
            return Sleeper { waiters, until: self.whole_due };
        }
        let until = deadline_in(self.nap);
        self.nap = (self.nap * 2).min(LONGEST_NAP);
        Sleeper { waiters, until }
    }

    /// Maps the pages, and maps them again where others have their names.
    fn attach_pages(&mut self, dir: &Dir) {
        if !self.page.as_ref().is_some_and(|page| page.is_current(dir)) {
            let opened = AttachedPage::open(dir);
            if self.page.is_some() && opened.is_some() {
                // Another page counts its writers anew: what was taken from the one before is of none of them.
                self.taken = None;
            }
            self.page = opened;
        }
        if !self.waiters.as_ref().is_some_and(|page| page.is_current(dir)) {
            self.waiters = WaitersPage::attach(dir).map(Arc::new);
        }
    }

    fn look_whole(&mut self, shared: &Shared) -> Result<()> {
        for _ in 0..RETRIES {
            match self.look(shared, Look::Whole) {
                Ok(false) => {}
                done => {
                    // What failed is tried again soon.
                    self.is_by_page &= done.is_ok();
                    return done.map(drop);
                }
            }
        }
        self.is_by_page = false;
        Ok(())
    }

    /// False where something changed under the look, or where it takes a whole one.
    fn look(&mut self, shared: &Shared, how: Look) -> Result<bool> {
        if how == Look::Whole {
            self.whole_due = deadline_in(CEILING);
            self.attach_pages(&shared.dir);
        }
        let Ok(view) = self.view() else { return Ok(true) };
        self.noted = view;
        let is_writing = view.is_some_and(|view| view.is_writing());
        match view {
            // A writer is recovering: the last view stands until it says where the log ends. One that died of it never
            // will.
            Some(view) if view.state == ControlState::Opening => {
                let stands = how == Look::Page || DirLock::is_held(&shared.dir);
                if stands {
                    return Ok(true);
                }
            }
            Some(page) if view != self.taken => {
                let is_taken = self.take_page(shared, page)?;
                if how == Look::Page {
                    return Ok(is_taken && is_writing);
                }
                if !is_taken && is_writing && DirLock::is_held(&shared.dir) {
                    return Ok(false);
                }
            }
            _ => {}
        }
        if how == Look::Page {
            return Ok(is_writing && view == self.taken);
        }
        if is_writing && DirLock::is_held(&shared.dir) {
            self.is_by_page = true;
            return Ok(true);
        }
        self.is_by_page = false;
        self.look_at_files(shared, view, None, true)
    }

    /// Takes over what the page says. False where the files do not bear it out: segments come and go just now, or did since
    /// the writer went.
    fn take_page(&mut self, shared: &Shared, view: ControlView) -> Result<bool> {
        let Some((base, end)) = view.active else {
            return self.look_at_files(shared, Some(view), Some(view.written), true);
        };
        if self.is_same_set(&view) && self.tail.base() == base {
            self.take_ends(shared, &view, end);
            return Ok(true);
        }
        self.take_set(shared, &view, (base, end))
    }

    fn is_same_set(&self, view: &ControlView) -> bool {
        self.sets > 0
            && self.taken.is_some_and(|taken| {
                (taken.generation, taken.set_generation) == (view.generation, view.set_generation)
            })
    }

    /// True where the present segments are not of the writer that the page speaks of: any of them may have been cut.
    fn is_of_another(&self, view: Option<&ControlView>) -> bool {
        self.sets == 0 || self.taken.map(|view| view.generation) != view.map(|view| view.generation)
    }

    /// The segments up to the one that the page names.
    fn take_set(
        &mut self,
        shared: &Shared,
        view: &ControlView,
        (base, end): (Offset, SegmentEnd),
    ) -> Result<bool> {
        let dir = &shared.dir;
        let epochs = epochs_of(dir);
        let mut survey = Survey::take_while_written(dir)?;
        // The page was read before: what it names has been there since, and everything below is sealed.
        survey.logs.retain(|log| log.base <= base);
        let is_there = |last: &LogFile| last.base == base && last.len >= u64::from(end.position);
        let (Some(first), true) = (survey.logs.first(), survey.logs.last().is_some_and(is_there)) else {
            return Ok(false);
        };
        let is_other = self.is_of_another(Some(view));
        // Nobody is told of transactions of the log that was, once it is another.
        let _forgotten = is_other.then(|| shared.transactions.forget());
        let known = if is_other { Vec::new() } else { shared.segments().to_vec() };
        if is_other || self.tail.base() != base {
            self.tail = Tail::open(dir, base)?;
        }
        self.first = first.base;
        self.tail.set_end(TailEnd::published(end));
        // Epochs before the ends: whoever had read what was cut is told. The start before the segments: who finds one gone
        // looks at the start again.
        *shared.epochs.write() = epochs;
        shared.raise_start(view.start.max(first.base));
        self.publish(shared, &survey, &known);
        self.take_ends(shared, view, end);
        Ok(true)
    }

    fn take_ends(&mut self, shared: &Shared, view: &ControlView, end: SegmentEnd) {
        self.tail.set_end(TailEnd::published(end));
        shared.follow(view.start.max(self.first), view.durable, end.next);
        self.taken = Some(*view);
        self.nap = SHORTEST_NAP;
    }

    fn publish(&mut self, shared: &Shared, survey: &Survey, known: &[Arc<Segment>]) {
        shared.publish_segments(segments_of(&shared.dir, survey, known, &self.tail));
        self.sets += 1;
    }

    /// What the files say, up to `limit`. False where a writer began meanwhile (if that `matters`): nothing is changed then.
    fn look_at_files(
        &mut self,
        shared: &Shared,
        view: Option<ControlView>,
        limit: Option<Offset>,
        matters: bool,
    ) -> Result<bool> {
        let dir = &shared.dir;
        let epochs = epochs_of(dir);
        let survey = Survey::take_while_written(dir)?;
        let (Some(first), Some(last)) = (survey.logs.first(), survey.logs.last()) else { return Ok(true) };
        let is_there = survey.logs.iter().any(|log| log.base == self.tail.base());
        let is_intact = !self.is_of_another(view.as_ref()) && is_there && self.tail.is_intact(dir)?;
        let is_last = self.tail.base() == last.base;
        let checkpoint = match Checkpoint::load(dir) {
            Ok(Found::Valid(checkpoint)) => Some(checkpoint),
            _ => None,
        };
        let hints = kafka_files::hints_for(dir);
        let following = if is_intact && is_last { None } else { Some(Tail::open(dir, last.base)?) };
        let own = match &checkpoint {
            Some(checkpoint) => trust::least_end(dir, checkpoint, &survey)?,
            None => None,
        };
        let tail = following.as_ref().unwrap_or(&self.tail);
        let tail_end = tail.scan_past_damage(limit, own.as_ref(), hints.recovery_point)?;
        let end = tail_end.next;
        // What was the last segment, before what follows it.
        let next_base = survey.logs.iter().map(|log| log.base).find(|base| *base > self.tail.base());
        let sealed = match next_base {
            Some(next_base) if is_intact => Some(self.tail.sealed(dir, next_base)?),
            _ => None,
        };
        let known = if is_intact { Some(shared.durable()) } else { None };
        let (start, durable) = bounds(view, checkpoint.as_ref(), hints, (first.base, end), known);
        if matters && !self.is_still(dir, view) {
            return Ok(false);
        }
        // Nobody is told of transactions of the log that was, once it is another.
        let _forgotten = (!is_intact).then(|| shared.transactions.forget());
        *shared.epochs.write() = epochs;
        shared.raise_start(start);
        let segments = shared.segments();
        let is_same_set = segments.len() == survey.logs.len() && segments[0].base() == first.base;
        self.first = first.base;
        self.taken = view;
        if let Some(mut following) = following {
            following.set_end(tail_end);
            let known = segments.iter().filter(|_| is_intact).cloned().chain(sealed).collect::<Vec<_>>();
            self.tail = following;
            self.publish(shared, &survey, &known);
        } else {
            self.tail.set_end(tail_end);
            if !is_same_set {
                self.publish(shared, &survey, &segments);
            }
        }
        shared.follow(start, durable, end);
        Ok(true)
    }

    /// True where no writer has begun, or gone on, since `view` was taken.
    fn is_still(&mut self, dir: &Dir, view: Option<ControlView>) -> bool {
        self.attach_pages(dir);
        let of = |view: ControlView| (view.generation, view.state);
        self.view().is_ok_and(|now| now.map(of) == view.map(of))
    }
}

/// Retention may take a file between its listing and its opening: then the directory is listed again.
fn again_if_gone<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 0..RETRIES {
        match look() {
            Err(error) if is_gone(&error) => {}
            done => return done,
        }
    }
    look()
}

/// One segment for each file, those already known kept.
fn segments_of(dir: &Arc<Dir>, survey: &Survey, known: &[Arc<Segment>], tail: &Tail) -> Vec<Arc<Segment>> {
    let point = match Checkpoint::load(dir) {
        Ok(Found::Valid(checkpoint)) => checkpoint.point,
        _ => None,
    };
    let trusted_below = point.map_or(Offset::ZERO, |point| point.base);
    let summaries = summary::load(dir);
    let mut segments = Vec::with_capacity(survey.logs.len());
    for (index, log) in survey.logs.iter().enumerate() {
        let Some(following) = survey.logs.get(index + 1) else {
            segments.push(Arc::clone(&tail.segment));
            continue;
        };
        // The latest first: a segment that was the last may be known twice.
        let same = known.iter().rev().find(|segment| segment.base() == log.base && segment.is_sealed());
        if let Some(segment) = same {
            segments.push(Arc::clone(segment));
            continue;
        }
        let summary =
            summaries.iter().find(|summary| summary.base() == log.base && summary.length == log.len);
        let next = summary.and_then(SegmentSummary::next).unwrap_or(following.base);
        let end = SegmentEnd { position: u32::try_from(log.len).unwrap_or(u32::MAX), next };
        let segment = Segment::new(Arc::clone(dir), log.base, end, SETTINGS);
        if let Some(largest) = summary.and_then(SegmentSummary::largest) {
            segment.set_largest(largest, end.position);
        }
        if log.base < trusted_below {
            segment.trust_times();
        }
        segments.push(Arc::new(segment));
    }
    segments
}

/// The first readable offset and the end of what is durable, as far as anything says so. `known` was said before, of the
/// same bytes.
fn bounds(
    view: Option<ControlView>,
    checkpoint: Option<&Checkpoint>,
    hints: KafkaHints,
    (first, end): (Offset, Offset),
    known: Option<Offset>,
) -> (Offset, Offset) {
    // While a log is being opened the values are not to be believed.
    let view = view.filter(|view| view.state != ControlState::Opening);
    let starts = [view.map(|view| view.start), checkpoint.map(|stored| stored.start), hints.log_start];
    let start = starts.into_iter().flatten().filter(|start| *start <= end).fold(first, Offset::max);
    let durable = match (view, checkpoint.and_then(|stored| stored.point)) {
        (Some(view), _) => view.durable,
        (None, Some(point)) => point.offset,
        (None, None) if hints.clean => end,
        (None, None) => hints.recovery_point.unwrap_or(start),
    };
    (start, durable.max(known.unwrap_or(durable)).clamp(start, end.max(start)))
}
