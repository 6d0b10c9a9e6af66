//! From one generation to the next, and what time does to a group.

use std::{collections::BTreeMap, time::Duration};

use super::group::{Group, Initial, Joined, State, Synced, Ticket, Turn};
use crate::server::error_code::ErrorCode;

impl Group {
    /// Members are to join anew. Does nothing while they already are.
    pub(super) fn prepare(&mut self, turn: &mut Turn<'_>) {
        let longest = self.longest_rebalance();
        match self.state {
            State::PreparingRebalance | State::Dead => return,
            State::CompletingRebalance => {
                self.refuse_waiting_syncs(turn, ErrorCode::REBALANCE_IN_PROGRESS);
            }
            State::Empty | State::Stable => {}
        }
        for member in self.members.values_mut() {
            member.must_sync = false;
        }
        if self.state == State::Empty {
            let delay = self.limits.initial_delay.min(longest);
            self.initial = Some(Initial { left: longest.saturating_sub(delay), has_new: false });
            self.rebalance_due = turn.now.saturating_add(delay);
        } else {
            self.initial = None;
            self.rebalance_due = turn.now.saturating_add(longest);
        }
        self.state = State::PreparingRebalance;
    }

    /// What was assigned is void; who waits for it is told so.
    pub(super) fn refuse_waiting_syncs(&mut self, turn: &mut Turn<'_>, code: ErrorCode) {
        for member in self.members.values_mut() {
            member.assignment.clear();
            if let Some(ticket) = member.syncing.take() {
                turn.answer_sync(ticket, Synced::refused(code));
                member.renew(turn.now);
            }
        }
    }

    /// After every event: the next generation begins as soon as nobody is missing.
    pub(super) fn settle(&mut self, turn: &mut Turn<'_>) {
        let is_whole =
            || self.pending.is_empty() && self.members.values().all(|member| member.joining.is_some());
        if self.state == State::PreparingRebalance && self.initial.is_none() && is_whole() {
            self.complete(turn);
        }
    }

    /// The next generation begins, with those who have joined.
    fn complete(&mut self, turn: &mut Turn<'_>) {
        self.initial = None;
        let missing = self.members.iter().filter(|(_, member)| member.joining.is_none());
        // Others may be on their way back; their sessions tell.
        let missing = missing.filter(|(_, member)| member.instance_id.is_none());
        for id in missing.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.remove(turn, &id);
        }
        if !self.members.is_empty() && !self.elect() {
            self.rebalance_due =
                turn.now.saturating_add(self.longest_rebalance().max(Duration::from_millis(1)));
            return;
        }
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.since_ms = turn.wall.millis();
        if self.members.is_empty() {
            self.state = State::Empty;
            self.protocol = None;
            self.leader = None;
            // What it says that was not kept: members that no longer are, until their sessions end.
            if let Err(code) = self.keep(turn, false) {
                tracing::warn!(?code, "that a group has no members is not kept");
            }
            return;
        }
        self.protocol = self.elected_protocol();
        self.state = State::CompletingRebalance;
        self.sync_due = turn.now.saturating_add(self.longest_rebalance());
        let mut all = Some(self.for_leader());
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            let is_leader = self.leader.as_deref() == Some(id.as_str());
            let members = if is_leader { all.take().unwrap_or_default() } else { Vec::new() };
            let joined = self.joined(&id, members);
            let Some(member) = self.members.get_mut(&id) else { continue };
            member.assignment.clear();
            let Some(ticket) = member.joining.take() else { continue };
            member.is_new = false;
            member.must_sync = true;
            member.renew(turn.now);
            turn.answer_join(ticket, joined);
        }
    }

    /// The leader stays where it has joined again; else it is who has been here for longest. False where nobody has joined.
    fn elect(&mut self) -> bool {
        let has_joined = |id: &String| self.members.get(id).is_some_and(|member| member.joining.is_some());
        if self.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        match self.eldest(|member| member.joining.is_some()) {
            Some(id) => {
                self.leader = Some(id);
                true
            }
            None => false,
        }
    }

    /// Of the protocols that all members know, the one that most of them prefer.
    pub(super) fn elected_protocol(&self) -> Option<String> {
        let is_common = |name: &str| self.members.values().all(|member| member.supports(name));
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let mut known = member.protocols.iter().map(|(name, _)| name.as_str());
            if let Some(preferred) = known.find(|name| votes.contains_key(name) || is_common(name)) {
                *votes.entry(preferred).or_default() += 1;
            }
        }
        // Of those with as many votes, the one that the leader would rather have.
        let leader = self.leader.as_ref().and_then(|leader| self.members.get(leader));
        let rank = |name: &str| {
            let mut names = leader.into_iter().flat_map(|leader| &leader.protocols);
            names.position(|(known, _)| known == name).unwrap_or(usize::MAX)
        };
        let best = votes.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(rank(name))));
        best.map(|(name, _)| name.to_owned())
    }

    /// What the leader is told of all members.
    pub(super) fn for_leader(&self) -> Vec<(String, Option<String>, Vec<u8>)> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let told = |(id, member): (&String, &super::member::Member)| {
            (id.clone(), member.instance_id.clone(), member.subscription(protocol).to_vec())
        };
        self.members.iter().map(told).collect()
    }

    /// That a member is in the generation as it is.
    pub(super) fn joined(&self, id: &str, members: Vec<(String, Option<String>, Vec<u8>)>) -> Joined {
        Joined {
            code: ErrorCode::NONE,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: id.to_owned(),
            members,
        }
    }

    /// Takes a member out; its requests that wait are answered.
    pub(super) fn remove(&mut self, turn: &mut Turn<'_>, id: &str) {
        let Some(member) = self.members.remove(id) else { return };
        if let Some(ticket) = member.joining {
            turn.refuse_join(ticket, ErrorCode::UNKNOWN_MEMBER_ID, id);
        }
        if let Some(ticket) = member.syncing {
            turn.answer_sync(ticket, Synced::refused(ErrorCode::UNKNOWN_MEMBER_ID));
        }
        if let Some(instance_id) = &member.instance_id
            && self.instances.get(instance_id).is_some_and(|known| known == id)
        {
            self.instances.remove(instance_id);
        }
        if self.leader.as_deref() == Some(id) {
            self.leader = self.eldest(|_| true);
        }
    }

    /// After members were taken out: the others share anew.
    pub(super) fn after_removal(&mut self, turn: &mut Turn<'_>) {
        if matches!(self.state, State::Stable | State::CompletingRebalance) {
            self.prepare(turn);
        }
        self.settle(turn);
    }

    /// The client of a request that waits has gone.
    pub(crate) fn abandon(&mut self, turn: &mut Turn<'_>, ticket: Ticket) {
        let is_of =
            |member: &super::member::Member| member.joining == Some(ticket) || member.syncing == Some(ticket);
        let Some((id, member)) = self.members.iter_mut().find(|(_, member)| is_of(member)) else { return };
        if member.joining == Some(ticket) {
            member.joining = None;
            // Nobody else knows of it: it would be waited for in vain.
            if member.is_new && member.instance_id.is_none() {
                let id = id.clone();
                self.remove(turn, &id);
                self.after_removal(turn);
                return;
            }
        } else {
            member.syncing = None;
            member.must_sync = true;
        }
        member.renew(turn.now);
    }

    /// When [`Group::tick`] has something to do next.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let sessions = self.members.values().filter_map(super::member::Member::due);
        let is_preparing = self.state == State::PreparingRebalance;
        let rebalance = is_preparing.then_some(self.rebalance_due);
        let sync = self.awaits_syncs().then_some(self.sync_due);
        sessions.chain(self.pending.values().copied()).chain(rebalance).chain(sync).min()
    }

    fn awaits_syncs(&self) -> bool {
        matches!(self.state, State::CompletingRebalance | State::Stable)
            && self.members.values().any(|member| member.must_sync)
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, turn: &mut Turn<'_>) {
        if self.state == State::Dead {
            return;
        }
        let now = turn.now;
        self.pending.retain(|_, due| *due > now);
        let over = |member: &super::member::Member| member.due().is_some_and(|due| due <= now);
        let is_sync_over = self.awaits_syncs() && self.sync_due <= now;
        let gone = self.members.iter().filter(|(_, member)| over(member) || is_sync_over && member.must_sync);
        let gone: Vec<_> = gone.map(|(id, _)| id.clone()).collect();
        for id in &gone {
            self.remove(turn, id);
        }
        if gone.is_empty() {
            self.settle(turn);
        } else {
            self.after_removal(turn);
        }
        if self.state == State::PreparingRebalance && self.rebalance_due <= now {
            match &mut self.initial {
                Some(initial) if initial.has_new && !initial.left.is_zero() => {
                    let delay = self.limits.initial_delay.min(initial.left);
                    *initial = Initial { left: initial.left.saturating_sub(delay), has_new: false };
                    self.rebalance_due = now.saturating_add(delay);
                }
                _ => self.complete(turn),
            }
        }
    }
}
