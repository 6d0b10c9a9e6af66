//! Many callers, of whom one at a time does the work of all: group commit, apart from what is committed.
//!
//! A caller puts its request into the queue. If nobody leads it leads: it takes the whole queue, writes it as one, hands
//! on what is to be led next and gives the answers out. No thread but the callers', no timer, nobody leads twice in a
//! row for others.
//!
//! ```text
//!             write leader              sync leader
//! queue  ----- takes all ---> unsynced ----- syncs ---> answered, durable
//!                     \-----------------------------> answered, written or failed
//! ```
//!
//! At most one writes and at most one syncs. Requests that want to be durable stay in the queue while a sync is under
//! way, which could not cover them: they become one write and one sync after it. Eager ones, which are answered when
//! they are written, do not wait for it, and take along whatever is in the queue.
//!
//! A lead that is let go of is free: one of those it concerns is woken to take it, and whoever comes first has it. Mostly
//! that is a caller that is running anyway, so that no work waits for a thread to wake up.
//!
//! Why nobody is forgotten: whoever lets go of a lead wakes somebody for what there is to do, decided under the same lock;
//! whoever is woken, or queues, looks under it what is free; and whoever finds a lead taken has its holder, who
//! looks once more when he lets go.

use crate::sys::sync::{Arc, Condvar, Mutex, linger};

/// What is done for the requests. Must not call back into the group.
pub(crate) trait Work {
    /// What a caller asks for.
    type Request;
    /// What it is told.
    type Answer;

    /// Writes the requests, in order, and makes them visible; one step for each, in the same order. One call at a time.
    fn write(&self, requests: Vec<Self::Request>) -> Vec<Step<Self::Answer>>;

    /// Tells others what was written. Nobody waits for this, and it may be slow or die.
    fn announce(&self);

    /// Makes durable whatever was written before the call. One call at a time; others may write meanwhile. Where it fails,
    /// what its leader is told.
    fn sync(&self) -> Option<Self::Answer>;

    /// What one that waits for a sync is told now, if anything.
    fn settle(&self, waiting: &Self::Answer) -> Option<Self::Answer>;

    /// A leader died: refuse everything from now on.
    fn latch(&self);

    /// What those are told whose leader died.
    fn lost(&self) -> Self::Answer;
}

/// What became of a written request.
#[derive(Debug)]
pub(crate) enum Step<A> {
    /// It can be answered.
    Done(A),
    /// It waits until [`Work::settle`] has an answer.
    Wait(A),
}

/// The callers of one log.
#[derive(Debug)]
pub(crate) struct Group<W: Work> {
    work: W,
    state: Mutex<State<W::Request, W::Answer>>,
}

#[derive(Debug)]
struct State<R, A> {
    queue: Vec<Queued<R, A>>,
    /// Written, and waiting for a sync.
    unsynced: Vec<Waiting<A>>,
    is_writing: bool,
    is_syncing: bool,
}

#[derive(Debug)]
struct Queued<R, A> {
    request: R,
    slot: Arc<Slot<A>>,
    is_eager: bool,
}

#[derive(Debug)]
struct Waiting<A> {
    slot: Arc<Slot<A>>,
    answer: A,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lead {
    Write,
    Sync,
}

/// Where a caller waits to be called.
#[derive(Debug)]
struct Slot<A> {
    call: Mutex<Option<Call<A>>>,
    called: Condvar,
}

#[derive(Debug)]
enum Call<A> {
    /// There may be something to lead.
    Look,
    Answer(A),
}

impl<A> Slot<A> {
    fn new() -> Self {
        Self { call: Mutex::new(None), called: Condvar::new() }
    }

    fn answer(&self, answer: A) {
        *self.call.lock() = Some(Call::Answer(answer));
        self.called.notify_one();
    }

    /// Unless it was answered meanwhile: then somebody else leads, or has led, and looks when he lets go.
    fn look(&self) {
        let mut call = self.call.lock();
        if call.is_none() {
            *call = Some(Call::Look);
            drop(call);
            self.called.notify_one();
        }
    }

    fn wait(&self, is_eager: bool) -> Call<A> {
        // A write takes less time than falling asleep and being woken; a sync takes more.
        if is_eager && let Some(call) = linger(|| self.call.lock().take()) {
            return call;
        }
        let mut call = self.call.lock();
        loop {
            if let Some(call) = call.take() {
                return call;
            }
            self.called.wait(&mut call);
        }
    }
}

impl<R, A> State<R, A> {
    /// Takes what there is to lead and nobody leads. What is written is not synced while more is being written: that
    /// belongs into the same sync.
    fn take_lead(&mut self) -> Option<Lead> {
        if self.is_writing {
            return None;
        }
        if self.next_to_write().is_some() {
            self.is_writing = true;
            return Some(Lead::Write);
        }
        if self.is_syncing || self.unsynced.is_empty() {
            return None;
        }
        self.is_syncing = true;
        Some(Lead::Sync)
    }

    /// Whoever may write next: one that is eager, or any where no sync is under way.
    fn next_to_write(&self) -> Option<&Arc<Slot<A>>> {
        let eager = self.queue.iter().find(|queued| queued.is_eager);
        let next = if self.is_syncing { eager } else { eager.or(self.queue.first()) };
        next.map(|queued| &queued.slot)
    }

    /// After a write: the writer goes on to sync what it wrote, if it waits for that itself, and the queue grows meanwhile.
    /// True where it does.
    fn go_on_to_sync(&mut self, own: &Arc<Slot<A>>) -> bool {
        let goes_on = !self.is_syncing && self.unsynced.iter().any(|waiting| Arc::ptr_eq(&waiting.slot, own));
        self.is_syncing |= goes_on;
        goes_on
    }

    /// Whom to wake for what nobody leads.
    fn next_to_look(&self) -> Option<Arc<Slot<A>>> {
        if self.is_writing {
            return None;
        }
        let unsynced = self.unsynced.first().filter(|_| !self.is_syncing).map(|waiting| &waiting.slot);
        self.next_to_write().or(unsynced).cloned()
    }
}

/// Answers on their way: given out when this goes, whatever ends it.
struct Answers<A>(Vec<(Arc<Slot<A>>, A)>);

impl<A> Drop for Answers<A> {
    fn drop(&mut self) {
        for (slot, answer) in self.0.drain(..) {
            slot.answer(answer);
        }
    }
}

/// A lead that is held. If its holder dies, the log is latched, whoever depended on it is told, and the lead goes on.
struct Held<'a, W: Work> {
    group: &'a Group<W>,
    lead: Lead,
    /// Those whose requests are being written.
    slots: Vec<Arc<Slot<W::Answer>>>,
    is_over: bool,
}

impl<W: Work> Held<'_, W> {
    /// Lets go in good order.
    fn end(mut self) -> Vec<Arc<Slot<W::Answer>>> {
        self.is_over = true;
        std::mem::take(&mut self.slots)
    }
}

impl<W: Work> Drop for Held<'_, W> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.group.work.latch();
        let mut answers = Answers(Vec::new());
        for slot in self.slots.drain(..) {
            answers.0.push((slot, self.group.work.lost()));
        }
        let next = {
            let mut state = self.group.state.lock();
            match self.lead {
                Lead::Write => state.is_writing = false,
                Lead::Sync => {
                    state.is_syncing = false;
                    for waiting in state.unsynced.drain(..) {
                        let settled = self.group.work.settle(&waiting.answer);
                        answers.0.push((waiting.slot, settled.unwrap_or_else(|| self.group.work.lost())));
                    }
                }
            }
            state.next_to_look()
        };
        wake(next);
    }
}

fn wake<A>(slot: Option<Arc<Slot<A>>>) {
    if let Some(slot) = slot {
        slot.look();
    }
}

impl<W: Work> Group<W> {
    pub(crate) fn new(work: W) -> Self {
        let state = State { queue: Vec::new(), unsynced: Vec::new(), is_writing: false, is_syncing: false };
        Self { work, state: Mutex::new(state) }
    }

    pub(crate) fn work(&self) -> &W {
        &self.work
    }

    /// Has the request done and returns what came of it. `is_eager`: it does not wait for a sync by itself.
    pub(crate) fn submit(&self, request: W::Request, is_eager: bool) -> W::Answer {
        let slot = Arc::new(Slot::new());
        let mut lead = {
            let mut state = self.state.lock();
            state.queue.push(Queued { request, slot: Arc::clone(&slot), is_eager });
            state.take_lead()
        };
        loop {
            match lead {
                Some(Lead::Write) => self.lead_write(&slot),
                Some(Lead::Sync) => self.lead_sync(&slot),
                None => {}
            }
            lead = match slot.wait(is_eager) {
                Call::Answer(answer) => return answer,
                Call::Look => self.state.lock().take_lead(),
            };
        }
    }

    fn lead_write(&self, own: &Arc<Slot<W::Answer>>) {
        let queue = std::mem::take(&mut self.state.lock().queue);
        let (requests, slots): (Vec<_>, Vec<_>) =
            queue.into_iter().map(|queued| (queued.request, queued.slot)).unzip();
        let held = Held { group: self, lead: Lead::Write, slots, is_over: false };
        let steps = self.work.write(requests);
        let slots = held.end();
        debug_assert_eq!(slots.len(), steps.len());
        let mut answers = Answers(Vec::with_capacity(slots.len()));
        let (goes_on, next) = {
            let mut state = self.state.lock();
            for (slot, step) in slots.into_iter().zip(steps) {
                match step {
                    Step::Done(answer) => answers.0.push((slot, answer)),
                    Step::Wait(answer) => state.unsynced.push(Waiting { slot, answer }),
                }
            }
            state.is_writing = false;
            (state.go_on_to_sync(own), state.next_to_look())
        };
        let held = goes_on.then(|| Held { group: self, lead: Lead::Sync, slots: Vec::new(), is_over: false });
        wake(next);
        self.work.announce();
        drop(answers);
        if let Some(held) = held {
            self.sync_held(held, own);
        }
    }

    fn lead_sync(&self, own: &Arc<Slot<W::Answer>>) {
        self.sync_held(Held { group: self, lead: Lead::Sync, slots: Vec::new(), is_over: false }, own);
    }

    fn sync_held(&self, held: Held<'_, W>, own: &Arc<Slot<W::Answer>>) {
        let mut failed = self.work.sync();
        held.end();
        let mut answers = Answers(Vec::new());
        let next = {
            let mut state = self.state.lock();
            let has_failed = failed.is_some();
            for waiting in std::mem::take(&mut state.unsynced) {
                let is_own = Arc::ptr_eq(&waiting.slot, own);
                let answer = match failed.take_if(|_| is_own) {
                    Some(failed) => Some(failed),
                    None => self.work.settle(&waiting.answer),
                };
                match answer {
                    Some(answer) => answers.0.push((waiting.slot, answer)),
                    None if has_failed => answers.0.push((waiting.slot, self.work.lost())),
                    None => state.unsynced.push(waiting),
                }
            }
            state.is_syncing = false;
            state.next_to_look()
        };
        wake(next);
    }
}
