//! Groups of consumers that share topics among them, in the classic protocol.
//!
//! Lives here: which groups there are, their members and generations, requests that wait for others, what time does to them.
//! Not here: requests' and answers' bytes (api), committed offsets and records (`committed_offsets`).
//! Holds always: a group changes under its lock, one event after the other; a generation is kept before a member learns of
//! its assignment; every request that waits is answered, or its client has gone.

mod group;
mod join;
mod member;
mod parked;
mod rebalance;
mod requests;
#[cfg(test)]
mod tests;
mod timer;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use parking_lot::{Mutex, RwLock};

pub(crate) use group::{Answer, Group, Joined, State, Synced, Ticket};
pub(crate) use join::Join;
pub(crate) use parked::Waiting;
pub(crate) use requests::{Identity, Sync};

use group::{Keep, Limits, Turn};
use parked::Tray;
use timer::Timer;

use super::{
    committed_offsets::{Aging, Commit, CommittedOffsets, KeptGroup, MIN_RECORDS},
    error_code::{ErrorCode, Refusal},
    settings::Settings,
};
use crate::{Clock, Error, Pending, Result, Timestamp};

/// All groups, and the thread that lets time pass for them.
#[derive(Debug)]
pub(crate) struct Groups {
    coordinator: Arc<Coordinator>,
    thread: Option<JoinHandle<()>>,
}

/// All groups.
#[derive(Debug)]
pub(crate) struct Coordinator {
    offsets: Arc<CommittedOffsets>,
    clock: Clock,
    limits: Limits,
    groups: RwLock<HashMap<String, Arc<Mutex<Group>>>>,
    trays: Mutex<HashMap<Ticket, Arc<Tray>>>,
    next_ticket: AtomicU64,
    timer: Timer,
}

/// A request that was answered at once, or waits.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answer(Answer),
    Waiting(Waiting),
}

/// From when on a group's offset in a topic ages.
fn aging(group: &Group, topic: &str) -> Aging {
    match group.state() {
        _ if group.protocol_type().is_none() => Aging::SinceCommit,
        State::Empty => Aging::Since(group.since_ms()),
        State::Stable if group.protocol_type() == Some("consumer") && !group.is_subscribed(topic) => {
            Aging::SinceCommit
        }
        _ => Aging::Never,
    }
}

/// Keeps a group among the committed offsets.
struct Keeper<'a> {
    offsets: &'a CommittedOffsets,
    group: &'a str,
    now: Timestamp,
}

impl Keep for Keeper<'_> {
    fn keep(&mut self, group: &KeptGroup, is_waited_for: bool) -> Result<(), ErrorCode> {
        let kept = self.offsets.keep_group(self.group, Some(group), self.now);
        let kept = kept.and_then(|pending| {
            if is_waited_for {
                pending.wait()?;
            }
            Ok(())
        });
        kept.map_err(|refusal| {
            tracing::error!(group = self.group, %refusal, "a group cannot be kept");
            // As a broker says it: what a client can do is to ask again, or not.
            match refusal.code {
                ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::INVALID_REQUEST => ErrorCode::UNKNOWN_SERVER_ERROR,
                ErrorCode::KAFKA_STORAGE_ERROR | ErrorCode::NOT_LEADER_OR_FOLLOWER => {
                    ErrorCode::NOT_COORDINATOR
                }
                _ => ErrorCode::COORDINATOR_NOT_AVAILABLE,
            }
        })
    }
}

impl Groups {
    /// Takes over the groups that were read at the start, and starts the thread.
    pub(crate) fn start(settings: &Settings, offsets: Arc<CommittedOffsets>) -> Result<Self> {
        let limits = Limits { max_size: settings.group_max_size, initial_delay: settings.rebalance_delay };
        let clock = settings.log.clock.clone();
        let coordinator = Arc::new(Coordinator {
            offsets,
            clock,
            limits,
            groups: RwLock::default(),
            trays: Mutex::default(),
            next_ticket: AtomicU64::new(1),
            timer: Timer::default(),
        });
        coordinator.take_over();
        let run = Arc::clone(&coordinator);
        let thread = thread::Builder::new().name("groups".to_owned()).spawn(move || run.run());
        let path = settings.data_dir.clone();
        let thread = thread.map_err(|source| Error::Io { op: "start a thread for", path, source })?;
        Ok(Self { coordinator, thread: Some(thread) })
    }

    /// The groups.
    pub(crate) fn coordinator(&self) -> &Arc<Coordinator> {
        &self.coordinator
    }

    /// Ends the thread, after what it is doing.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.coordinator.timer.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the groups had panicked");
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.end();
    }
}

impl Coordinator {
    fn take_over(&self) {
        let now = self.clock.monotonic();
        let mut groups = self.groups.write();
        for (id, kept) in self.offsets.take_groups() {
            let group = Group::of_kept(kept, self.limits, now);
            if let Some(due) = group.next_due() {
                self.timer.set(&id, due);
            }
            groups.insert(id, Arc::new(Mutex::new(group)));
        }
    }

    /// Lets time pass for the groups for which it means something.
    fn run(&self) {
        while let Some(due) = self.timer.next(&self.clock) {
            for id in due {
                self.with(&id, false, |_, _| ());
            }
        }
    }

    /// Does something with a group; then with it what the time asks for. `is_made`: where there is none, one without members
    /// is. `None`: there is none.
    fn with<R>(
        &self,
        id: &str,
        is_made: bool,
        event: impl FnOnce(&mut Group, &mut Turn<'_>) -> R,
    ) -> Option<R> {
        loop {
            let found = self.groups.read().get(id).cloned();
            let found = match found {
                Some(found) => found,
                None if is_made => {
                    let new = || Arc::new(Mutex::new(Group::new(self.limits, self.clock.now())));
                    Arc::clone(self.groups.write().entry(id.to_owned()).or_insert_with(new))
                }
                None => return None,
            };
            let mut group = found.lock();
            if group.state() == State::Dead {
                // Whoever buried it is about to take it out.
                drop(group);
                thread::yield_now();
                continue;
            }
            let wall = self.clock.now();
            let mut keeper = Keeper { offsets: &self.offsets, group: id, now: wall };
            let mut turn = Turn { now: self.clock.monotonic(), wall, keep: &mut keeper, answers: Vec::new() };
            // First the event: who is heard of now is alive, however late we look.
            let result = event(&mut group, &mut turn);
            group.tick(&mut turn);
            let answers = turn.answers;
            let due = group.next_due();
            // One that was made for what was refused then is none.
            if is_made && group.is_empty() && !group.is_kept() && !self.offsets.has_any(id) {
                group.bury();
                self.groups.write().remove(id);
            }
            drop(group);
            self.deliver(answers);
            if let Some(due) = due {
                self.timer.set(id, due);
            }
            return Some(result);
        }
    }

    fn deliver(&self, answers: Vec<(Ticket, Answer)>) {
        for (ticket, answer) in answers {
            let tray = self.trays.lock().remove(&ticket);
            if let Some(tray) = tray {
                tray.put(answer);
            }
        }
    }

    /// Does something that has an answer, now or later. `None`: there is no such group.
    fn ask(
        self: &Arc<Self>,
        id: &str,
        is_made: bool,
        event: impl FnOnce(&mut Group, &mut Turn<'_>, Ticket),
    ) -> Option<Outcome> {
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let tray = Arc::new(Tray::default());
        self.trays.lock().insert(ticket, Arc::clone(&tray));
        if self.with(id, is_made, |group, turn| event(group, turn, ticket)).is_none() {
            self.trays.lock().remove(&ticket);
            return None;
        }
        Some(match tray.take() {
            Some(answer) => Outcome::Answer(answer),
            None => Outcome::Waiting(Waiting {
                coordinator: Arc::clone(self),
                group: id.to_owned(),
                ticket,
                tray,
                is_answered: false,
            }),
        })
    }

    /// `JoinGroup`. A client that is new makes a group that is not there.
    pub(crate) fn join(self: &Arc<Self>, id: &str, join: Join) -> Outcome {
        let member_id = join.member_id.clone();
        let is_made = member_id.is_empty();
        let asked = self.ask(id, is_made, |group, turn, ticket| group.join(turn, ticket, join));
        asked.unwrap_or_else(|| {
            Outcome::Answer(Answer::Join(Joined::refused(ErrorCode::UNKNOWN_MEMBER_ID, &member_id)))
        })
    }

    /// `SyncGroup`.
    pub(crate) fn sync(self: &Arc<Self>, id: &str, sync: Sync) -> Outcome {
        let asked = self.ask(id, false, |group, turn, ticket| group.sync(turn, ticket, sync));
        let unknown = || Outcome::Answer(Answer::Sync(Synced::refused(ErrorCode::UNKNOWN_MEMBER_ID)));
        asked.unwrap_or_else(unknown)
    }

    /// `Heartbeat`.
    pub(crate) fn heartbeat(&self, id: &str, who: Identity<'_>, generation: i32) -> ErrorCode {
        let code = self.with(id, false, |group, turn| group.heartbeat(turn, who, generation));
        code.unwrap_or(ErrorCode::UNKNOWN_MEMBER_ID)
    }

    /// `LeaveGroup`: a code for each.
    pub(crate) fn leave(&self, id: &str, leaving: &[Identity<'_>]) -> Vec<ErrorCode> {
        let codes = self.with(id, false, |group, turn| group.leave(turn, leaving));
        codes.unwrap_or_else(|| vec![ErrorCode::UNKNOWN_MEMBER_ID; leaving.len()])
    }

    /// `OffsetCommit`, where its group lets it; `missing` where a member names a group that is not there. Safe when the returned [`Pending`] is done.
    pub(crate) fn commit(
        &self,
        id: &str,
        who: Identity<'_>,
        generation: i32,
        commits: &[Commit<'_>],
        missing: ErrorCode,
    ) -> Result<Option<Pending>, Refusal> {
        // Under the group's lock: what a member commits is in the log before the next generation begins. Who is no member
        // makes the group.
        let committed = self.with(id, generation < 0, |group, turn| {
            let checked = group.check_commit(turn, who, generation);
            checked.map(|()| self.offsets.commit(id, commits, turn.wall))
        });
        match committed.unwrap_or(Err(missing)) {
            Ok(committed) => committed,
            Err(code) => Err(Refusal::new(code, "the group does not take it")),
        }
    }

    /// The client of a request that waits has gone.
    fn abandon(&self, id: &str, ticket: Ticket) {
        self.trays.lock().remove(&ticket);
        self.with(id, false, |group, turn| group.abandon(turn, ticket));
    }

    /// Looks at a group. `None`: there is none with members, or that had some.
    pub(crate) fn look<R>(&self, id: &str, look: impl FnOnce(&Group) -> R) -> Option<R> {
        self.with(id, false, |group, _| look(group))
    }

    /// All groups, those too that only have committed offsets; sorted.
    pub(crate) fn ids(&self) -> Vec<String> {
        let mut ids = self.offsets.groups();
        ids.extend(self.groups.read().keys().cloned());
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Removes a group and all it has committed.
    pub(crate) fn delete(&self, id: &str) -> Result<Option<Pending>, Refusal> {
        let refused = |code, message: &str| Err(Refusal::new(code, message));
        let deleted = self.with(id, false, |group, turn| {
            if !group.is_empty() {
                return refused(ErrorCode::NON_EMPTY_GROUP, "The group is not empty.");
            }
            let forgotten = self.offsets.forget_group(id, turn.wall)?;
            let kept =
                if group.is_kept() { Some(self.offsets.keep_group(id, None, turn.wall)?) } else { None };
            group.bury();
            self.groups.write().remove(id);
            Ok(kept.or(forgotten))
        });
        match deleted {
            Some(deleted) => deleted,
            None if self.offsets.has_any(id) => self.offsets.forget_group(id, self.clock.now()),
            None => refused(ErrorCode::GROUP_ID_NOT_FOUND, "The group is not here."),
        }
    }

    /// Removes offsets of a group in places that none of its members reads; a code for each. An error where the group is not
    /// one of which that can be said.
    pub(crate) fn forget(
        &self,
        id: &str,
        places: &[(&str, i32)],
    ) -> Result<(Vec<ErrorCode>, Option<Pending>), Refusal> {
        let forget = |is_read: &dyn Fn(&str) -> bool, now| {
            let is_free = |(topic, _): &&(&str, i32)| !is_read(topic);
            let free: Vec<_> = places.iter().filter(is_free).copied().collect();
            let pending = self.offsets.forget(id, &free, now)?;
            let code = |(topic, _): &(&str, i32)| {
                if is_read(topic) { ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC } else { ErrorCode::NONE }
            };
            Ok((places.iter().map(code).collect(), pending))
        };
        let forgotten = self.with(id, false, |group, turn| {
            if group.state() != State::Empty && group.protocol_type() != Some("consumer") {
                return Err(Refusal::new(ErrorCode::NON_EMPTY_GROUP, "The group is not empty."));
            }
            forget(&|topic| group.is_subscribed(topic), turn.wall)
        });
        match forgotten {
            Some(forgotten) => forgotten,
            None if self.offsets.has_any(id) => forget(&|_| false, self.clock.now()),
            None => Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, "The group is not here.")),
        }
    }

    /// Keeps what is on the disk small: see [`CommittedOffsets::compact`].
    pub(crate) fn compact(&self) {
        self.offsets.compact(MIN_RECORDS, self.clock.now());
    }

    /// Forgets offsets that are too old, and groups of which nothing is left.
    pub(crate) fn expire(&self) -> Result<(), Refusal> {
        let oldest_ms = self.offsets.oldest_ms(self.clock.now());
        for id in self.offsets.with_old(oldest_ms) {
            let expired = self.with(&id, true, |group, turn| {
                self.offsets.expire(&id, oldest_ms, turn.wall, |topic| aging(group, topic))
            });
            expired.unwrap_or(Ok(()))?;
        }
        let ids: Vec<_> = self.groups.read().keys().cloned().collect();
        for id in ids {
            let is_over = |group: &Group| group.is_empty() && !self.offsets.has_any(&id);
            let buried = self.with(&id, false, |group, turn| {
                if !is_over(group) {
                    return Ok::<_, Refusal>(());
                }
                if group.is_kept() {
                    drop(self.offsets.keep_group(&id, None, turn.wall)?);
                }
                group.bury();
                self.groups.write().remove(&id);
                Ok(())
            });
            buried.unwrap_or(Ok(()))?;
        }
        Ok(())
    }
}
