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
//! Why nobody is forgotten: whoever lets go of a lead decides under the same lock who leads next ([`State::hand_on`]), and
//! whoever queues looks under it whether somebody leads.

use crate::sys::sync::{Arc, Condvar, Mutex};

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
    Lead(Lead),
    Answer(A),
}

impl<A> Slot<A> {
    fn new() -> Self {
        Self { call: Mutex::new(None), called: Condvar::new() }
    }

    fn call(&self, call: Call<A>) {
        *self.call.lock() = Some(call);
        self.called.notify_one();
    }

    fn wait(&self) -> Call<A> {
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
    /// Whose turn it is, after a lead was let go of: what was written is synced first, so that the queue grows meanwhile;
    /// after a sync the queue is written first, so that the next one covers it. `own` is the caller that decides: it
    /// goes on with its own sync itself.
    fn hand_on(&mut self, own: &Arc<Slot<A>>, after: Lead) -> Calls<A> {
        let mut calls = Calls { sync: None, write: None };
        if after == Lead::Write {
            calls.sync = self.next_to_sync(own);
        }
        if !self.is_writing && !self.queue.is_empty() {
            let eager = self.queue.iter().find(|queued| queued.is_eager);
            let next = if self.is_syncing { eager } else { eager.or(self.queue.first()) };
            calls.write = next.map(|queued| Arc::clone(&queued.slot));
            self.is_writing = calls.write.is_some();
        }
        if after == Lead::Sync && !self.is_writing {
            calls.sync = self.next_to_sync(own);
        }
        calls
    }

    fn next_to_sync(&mut self, own: &Arc<Slot<A>>) -> Option<Arc<Slot<A>>> {
        if self.is_syncing {
            return None;
        }
        let own = self.unsynced.iter().find(|waiting| Arc::ptr_eq(&waiting.slot, own));
        let next = own.or(self.unsynced.first()).map(|waiting| Arc::clone(&waiting.slot));
        self.is_syncing = next.is_some();
        next
    }
}

/// Who leads next.
struct Calls<A> {
    sync: Option<Arc<Slot<A>>>,
    write: Option<Arc<Slot<A>>>,
}

impl<A> Calls<A> {
    fn make(self) {
        if let Some(slot) = self.sync {
            slot.call(Call::Lead(Lead::Sync));
        }
        if let Some(slot) = self.write {
            slot.call(Call::Lead(Lead::Write));
        }
    }
}

/// Answers on their way: given out when this goes, whatever ends it.
struct Answers<A>(Vec<(Arc<Slot<A>>, A)>);

impl<A> Drop for Answers<A> {
    fn drop(&mut self) {
        for (slot, answer) in self.0.drain(..) {
            slot.call(Call::Answer(answer));
        }
    }
}

/// A lead that is held. If its holder dies, the log is latched, whoever depended on it is told, and the lead goes on.
struct Held<'a, W: Work> {
    group: &'a Group<W>,
    lead: Lead,
    own: &'a Arc<Slot<W::Answer>>,
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
        let calls = {
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
            state.hand_on(self.own, self.lead)
        };
        calls.make();
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
        let leads = {
            let mut state = self.state.lock();
            state.queue.push(Queued { request, slot: Arc::clone(&slot), is_eager });
            let leads = !state.is_writing && (is_eager || !state.is_syncing);
            state.is_writing |= leads;
            leads
        };
        if leads {
            self.lead_write(&slot);
        }
        loop {
            match slot.wait() {
                Call::Answer(answer) => return answer,
                Call::Lead(Lead::Write) => self.lead_write(&slot),
                Call::Lead(Lead::Sync) => self.lead_sync(&slot),
            }
        }
    }

    fn lead_write(&self, own: &Arc<Slot<W::Answer>>) {
        let queue = std::mem::take(&mut self.state.lock().queue);
        let (requests, slots): (Vec<_>, Vec<_>) =
            queue.into_iter().map(|queued| (queued.request, queued.slot)).unzip();
        let held = Held { group: self, lead: Lead::Write, own, slots, is_over: false };
        let steps = self.work.write(requests);
        let slots = held.end();
        debug_assert_eq!(slots.len(), steps.len());
        let mut answers = Answers(Vec::with_capacity(slots.len()));
        let calls = {
            let mut state = self.state.lock();
            for (slot, step) in slots.into_iter().zip(steps) {
                match step {
                    Step::Done(answer) => answers.0.push((slot, answer)),
                    Step::Wait(answer) => state.unsynced.push(Waiting { slot, answer }),
                }
            }
            state.is_writing = false;
            state.hand_on(own, Lead::Write)
        };
        calls.make();
        self.work.announce();
    }

    fn lead_sync(&self, own: &Arc<Slot<W::Answer>>) {
        let held = Held { group: self, lead: Lead::Sync, own, slots: Vec::new(), is_over: false };
        let mut failed = self.work.sync();
        held.end();
        let mut answers = Answers(Vec::new());
        let calls = {
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
            state.hand_on(own, Lead::Sync)
        };
        calls.make();
    }
}
