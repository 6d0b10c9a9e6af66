//! `JoinGroup` to a group of the classic protocol.

use std::time::Duration;

use super::{
    group::{Group, State, Synced, Ticket, Turn},
    member::Member,
};
use crate::server::error_code::ErrorCode;

/// How long a new member, which cannot say that it is alive, is waited with.
const NEW_MEMBER_WAIT: Duration = Duration::from_secs(300);

/// What a client that joins says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Join {
    /// Empty: it is new.
    pub(crate) member_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) session_timeout: Duration,
    pub(crate) rebalance_timeout: Duration,
    pub(crate) protocol_type: String,
    pub(crate) protocols: Vec<(String, Vec<u8>)>,
    /// What a new member is called from now on; nobody was called so before.
    pub(crate) new_id: String,
    /// The client joins in two steps: it is given its id first. Since version 4.
    pub(crate) takes_id_first: bool,
    /// The client can be told that its assignment stands. Since version 9.
    pub(crate) may_skip: bool,
}

impl Group {
    /// A client wants to join; the answer is for `ticket`, now or later.
    pub(crate) fn join(&mut self, turn: &mut Turn<'_>, ticket: Ticket, join: Join) {
        let id = join.member_id.clone();
        if let Err(code) = self.try_join(turn, ticket, join) {
            turn.refuse_join(ticket, code, &id);
        }
        self.settle(turn);
    }

    /// What is refused here changes nothing.
    fn try_join(&mut self, turn: &mut Turn<'_>, ticket: Ticket, join: Join) -> Result<(), ErrorCode> {
        if self.state == State::Dead {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        if !self.has_room(&join.member_id) {
            self.pending.remove(&join.member_id);
            return Err(ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        if !self.takes(&join) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        if join.member_id.is_empty() {
            return self.join_new(turn, ticket, join);
        }
        if self.pending.contains_key(&join.member_id) {
            // Ids are given out first to members without an instance only.
            if join.instance_id.is_some() {
                return Err(ErrorCode::UNKNOWN_MEMBER_ID);
            }
            self.pending.remove(&join.member_id);
            let id = join.member_id.clone();
            self.add(turn, ticket, id, join);
            return Ok(());
        }
        self.check_member(&join.member_id, join.instance_id.as_deref())?;
        self.join_again(turn, ticket, join)
    }

    fn join_new(&mut self, turn: &mut Turn<'_>, ticket: Ticket, join: Join) -> Result<(), ErrorCode> {
        let id = join.new_id.clone();
        match join.instance_id.as_ref().map(|instance_id| self.instances.get(instance_id).cloned()) {
            Some(Some(old_id)) => return self.replace(turn, ticket, &old_id, join),
            None if join.takes_id_first => {
                self.pending.insert(id.clone(), turn.now.saturating_add(join.session_timeout));
                turn.refuse_join(ticket, ErrorCode::MEMBER_ID_REQUIRED, &id);
            }
            Some(None) | None => self.add(turn, ticket, id, join),
        }
        Ok(())
    }

    fn has_room(&self, member_id: &str) -> bool {
        let known = self.members.get(member_id);
        match self.state {
            State::Empty | State::Dead => true,
            State::PreparingRebalance => {
                let waiting = || self.members.values().filter(|member| member.joining.is_some()).count();
                known.is_some_and(|member| member.joining.is_some()) || waiting() < self.limits.max_size
            }
            State::CompletingRebalance | State::Stable => {
                known.is_some() || self.members.len() < self.limits.max_size
            }
        }
    }

    /// Whether the group and the client have something to go by in common.
    fn takes(&self, join: &Join) -> bool {
        if self.state == State::Empty {
            return !join.protocol_type.is_empty() && !join.protocols.is_empty();
        }
        let is_common = |name: &str| self.members.values().all(|member| member.supports(name));
        self.protocol_type.as_deref() == Some(join.protocol_type.as_str())
            && join.protocols.iter().any(|(name, _)| is_common(name))
    }

    fn add(&mut self, turn: &mut Turn<'_>, ticket: Ticket, id: String, join: Join) {
        if self.members.is_empty() {
            self.protocol_type = Some(join.protocol_type.clone());
            self.leader = Some(id.clone());
        }
        if let Some(instance_id) = &join.instance_id {
            self.instances.insert(instance_id.clone(), id.clone());
        }
        if let Some(initial) = &mut self.initial {
            initial.has_new = true;
        }
        let place = self.next_place;
        self.next_place = place.wrapping_add(1);
        let member = Member {
            place,
            instance_id: join.instance_id,
            client_id: join.client_id,
            client_host: join.client_host,
            session_timeout: join.session_timeout,
            rebalance_timeout: join.rebalance_timeout,
            protocols: join.protocols,
            assignment: Vec::new(),
            joining: Some(ticket),
            syncing: None,
            is_new: true,
            must_sync: false,
            session_due: turn.now.saturating_add(NEW_MEMBER_WAIT),
        };
        self.members.insert(id, member);
        self.prepare(turn);
    }

    /// A member that is known joins again.
    fn join_again(&mut self, turn: &mut Turn<'_>, ticket: Ticket, join: Join) -> Result<(), ErrorCode> {
        let id = join.member_id.clone();
        let is_leader = self.leader.as_deref() == Some(id.as_str());
        let is_same = self.members.get(&id).is_some_and(|member| member.protocols == join.protocols);
        let is_told = match self.state {
            State::Empty | State::Dead => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
            State::PreparingRebalance => false,
            // Its answer may have been lost.
            State::CompletingRebalance => is_same,
            // A leader that joins again wants to assign anew.
            State::Stable => is_same && !is_leader,
        };
        if is_told {
            let is_to_assign = is_leader && self.state == State::CompletingRebalance;
            let members = if is_to_assign { self.for_leader() } else { Vec::new() };
            let joined = self.joined(&id, members);
            if let Some(member) = self.members.get_mut(&id) {
                member.renew(turn.now);
            }
            turn.answer_join(ticket, joined);
            return Ok(());
        }
        if let Some(member) = self.members.get_mut(&id) {
            member.update(turn, ticket, &id, join);
        }
        self.prepare(turn);
        Ok(())
    }

    /// A member with an instance id has started anew: it is who it was, under another id.
    fn replace(
        &mut self,
        turn: &mut Turn<'_>,
        ticket: Ticket,
        old_id: &str,
        join: Join,
    ) -> Result<(), ErrorCode> {
        let may_skip = join.may_skip;
        let id = join.new_id.clone();
        // Nobody waits in a stable group, so that it can be as if nothing was said.
        let before = (self.state == State::Stable).then(|| self.clone());
        let Some(mut member) = self.members.remove(old_id) else { return Err(ErrorCode::UNKNOWN_MEMBER_ID) };
        if let Some(ticket) = member.joining.take() {
            turn.refuse_join(ticket, ErrorCode::FENCED_INSTANCE_ID, old_id);
        }
        if let Some(ticket) = member.syncing.take() {
            turn.answer_sync(ticket, Synced::refused(ErrorCode::FENCED_INSTANCE_ID));
        }
        if let Some(instance_id) = &join.instance_id {
            self.instances.insert(instance_id.clone(), id.clone());
        }
        let old_leader = self.leader.clone();
        if old_leader.as_deref() == Some(old_id) {
            self.leader = Some(id.clone());
        }
        let is_leader = self.leader.as_deref() == Some(id.as_str());
        member.update(turn, ticket, &id, join);
        self.members.insert(id.clone(), member);
        let Some(before) = before.filter(|_| self.protocol == self.elected_protocol()) else {
            self.prepare(turn);
            return Ok(());
        };
        if let Some(member) = self.members.get_mut(&id) {
            member.joining = None;
            member.renew(turn.now);
        }
        if let Err(code) = self.keep(turn, true) {
            *self = before;
            return Err(code);
        }
        let members = if may_skip && is_leader { self.for_leader() } else { Vec::new() };
        let mut joined = self.joined(&id, members);
        if may_skip {
            joined.skip_assignment = is_leader;
        } else {
            // An older client that is told that it leads would assign anew, and the others would not know.
            joined.leader = old_leader.unwrap_or_default();
        }
        turn.answer_join(ticket, joined);
        Ok(())
    }
}

impl Member {
    /// Takes over what the client says now, and its request that waits. One that still waited was given up by its client.
    fn update(&mut self, turn: &mut Turn<'_>, ticket: Ticket, id: &str, join: Join) {
        self.client_id = join.client_id;
        self.client_host = join.client_host;
        self.session_timeout = join.session_timeout;
        self.rebalance_timeout = join.rebalance_timeout;
        self.protocols = join.protocols;
        if let Some(older) = self.joining.replace(ticket) {
            turn.refuse_join(older, ErrorCode::REBALANCE_IN_PROGRESS, id);
        }
    }
}
