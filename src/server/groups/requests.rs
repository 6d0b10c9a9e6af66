//! What members ask once they have joined: their assignment, to be held alive, to leave, to commit.

use super::group::{Group, State, Synced, Ticket, Turn};
use crate::server::error_code::ErrorCode;

/// What a member says that asks for its assignment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sync {
    pub(crate) member_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) generation: i32,
    /// `None`: not told.
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol: Option<String>,
    /// Of the leader: what each member is assigned.
    pub(crate) assignments: Vec<(String, Vec<u8>)>,
}

/// Who says that he is a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) member_id: &'a str,
    pub(crate) instance_id: Option<&'a str>,
}

impl Group {
    fn synced(&self, assignment: Vec<u8>) -> Synced {
        Synced {
            code: ErrorCode::NONE,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment,
        }
    }

    /// A member asks for its assignment; the answer is for `ticket`, now or when the leader has assigned.
    pub(crate) fn sync(&mut self, turn: &mut Turn<'_>, ticket: Ticket, sync: Sync) {
        if let Err(code) = self.try_sync(turn, ticket, sync) {
            turn.answer_sync(ticket, Synced::refused(code));
        }
        self.settle(turn);
    }

    fn try_sync(&mut self, turn: &mut Turn<'_>, ticket: Ticket, sync: Sync) -> Result<(), ErrorCode> {
        self.check_generation(&sync.member_id, sync.instance_id.as_deref(), sync.generation)?;
        let is_other = |told: &Option<String>, ours: &Option<String>| told.is_some() && told != ours;
        if is_other(&sync.protocol_type, &self.protocol_type) || is_other(&sync.protocol, &self.protocol) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        match self.state {
            State::Empty | State::Dead => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
            State::PreparingRebalance => return Err(ErrorCode::REBALANCE_IN_PROGRESS),
            State::CompletingRebalance | State::Stable => {}
        }
        let is_stable = self.state == State::Stable;
        let Some(member) = self.members.get_mut(&sync.member_id) else {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        };
        member.must_sync = false;
        if is_stable {
            member.renew(turn.now);
            let assignment = member.assignment.clone();
            let synced = self.synced(assignment);
            turn.answer_sync(ticket, synced);
            return Ok(());
        }
        if let Some(older) = member.syncing.replace(ticket) {
            turn.answer_sync(older, Synced::refused(ErrorCode::REBALANCE_IN_PROGRESS));
        }
        if self.leader.as_deref() == Some(sync.member_id.as_str()) {
            self.assign(turn, sync.assignments);
        }
        Ok(())
    }

    /// The leader has said who gets what.
    fn assign(&mut self, turn: &mut Turn<'_>, assignments: Vec<(String, Vec<u8>)>) {
        for (id, assignment) in assignments {
            if let Some(member) = self.members.get_mut(&id) {
                member.assignment = assignment;
            }
        }
        self.since_ms = turn.wall.millis();
        // A generation that is not kept must not be seen: after a restart its number would be given out again.
        if let Err(code) = self.keep(turn, true) {
            self.refuse_waiting_syncs(turn, code);
            self.prepare(turn);
            return;
        }
        self.state = State::Stable;
        let told = self.synced(Vec::new());
        for member in self.members.values_mut() {
            if let Some(ticket) = member.syncing.take() {
                member.renew(turn.now);
                turn.answer_sync(ticket, Synced { assignment: member.assignment.clone(), ..told.clone() });
            }
        }
    }

    fn check_generation(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        if self.state == State::Dead {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        self.check_member(member_id, instance_id)?;
        if generation == self.generation { Ok(()) } else { Err(ErrorCode::ILLEGAL_GENERATION) }
    }

    fn renew(&mut self, turn: &Turn<'_>, member_id: &str) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.renew(turn.now);
        }
    }

    /// A member is alive.
    pub(crate) fn heartbeat(&mut self, turn: &Turn<'_>, who: Identity<'_>, generation: i32) -> ErrorCode {
        if let Err(code) = self.check_generation(who.member_id, who.instance_id, generation) {
            return code;
        }
        match self.state {
            State::Empty | State::Dead => ErrorCode::UNKNOWN_MEMBER_ID,
            State::PreparingRebalance => {
                self.renew(turn, who.member_id);
                ErrorCode::REBALANCE_IN_PROGRESS
            }
            State::CompletingRebalance | State::Stable => {
                self.renew(turn, who.member_id);
                ErrorCode::NONE
            }
        }
    }

    /// Members leave, or are taken out by an administrator, who names their instances.
    pub(crate) fn leave(&mut self, turn: &mut Turn<'_>, leaving: &[Identity<'_>]) -> Vec<ErrorCode> {
        let mut has_left = false;
        let mut codes = Vec::with_capacity(leaving.len());
        for who in leaving {
            codes.push(match self.leaver(*who) {
                Ok(id) => {
                    has_left |= self.members.contains_key(&id);
                    self.pending.remove(&id);
                    self.remove(turn, &id);
                    ErrorCode::NONE
                }
                Err(code) => code,
            });
        }
        if has_left {
            self.after_removal(turn);
        } else {
            self.settle(turn);
        }
        codes
    }

    /// The id of who is meant.
    fn leaver(&self, who: Identity<'_>) -> Result<String, ErrorCode> {
        match who.instance_id {
            Some(instance_id) if who.member_id.is_empty() => {
                self.instances.get(instance_id).cloned().ok_or(ErrorCode::UNKNOWN_MEMBER_ID)
            }
            None if self.pending.contains_key(who.member_id) => Ok(who.member_id.to_owned()),
            instance_id => self.check_member(who.member_id, instance_id).map(|()| who.member_id.to_owned()),
        }
    }

    /// Whether offsets may be committed by whoever says so; a member is alive that does.
    pub(crate) fn check_commit(
        &mut self,
        turn: &Turn<'_>,
        who: Identity<'_>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        if self.state == State::Dead {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        // Who chooses his partitions himself, or an administrator, while there are no members.
        if generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        if generation < 0 && who.member_id.is_empty() && who.instance_id.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.check_generation(who.member_id, who.instance_id, generation)?;
        if self.state == State::CompletingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.renew(turn, who.member_id);
        Ok(())
    }
}
