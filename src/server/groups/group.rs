//! A group of the classic protocol: what it is, who is in it, and what it looks like from outside.
//!
//! It is a machine: each event (a request, a client that has gone, time that has passed) is a call with the time as it is, and
//! what follows is in the [`Turn`]: answers for requests that wait, and the group as it is to be kept. No sockets, no clock
//! and no files, so it can be driven by a test through anything.

use std::{collections::BTreeMap, time::Duration};

use super::member::Member;
use crate::{
    Timestamp,
    server::{
        committed_offsets::{KeptGroup, KeptMember},
        error_code::ErrorCode,
    },
};

/// The number of a request that may have to wait.
pub(crate) type Ticket = u64;

/// Where a group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No members.
    Empty,
    /// Members are to join the next generation.
    PreparingRebalance,
    /// They have joined; their leader has not assigned yet.
    CompletingRebalance,
    /// Each has its assignment.
    Stable,
    /// Removed: whoever holds it looks for the group anew.
    Dead,
}

impl State {
    /// As clients are told.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

/// The answer to a request that had a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Join(Joined),
    Sync(Synced),
}

/// The answer to `JoinGroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) code: ErrorCode,
    /// -1 after an error.
    pub(crate) generation: i32,
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) leader: String,
    /// The leader need not assign: what was assigned stands.
    pub(crate) skip_assignment: bool,
    pub(crate) member_id: String,
    /// All members, for the leader only: id, instance, what they told.
    pub(crate) members: Vec<(String, Option<String>, Vec<u8>)>,
}

impl Joined {
    pub(crate) fn refused(code: ErrorCode, member_id: &str) -> Self {
        Self {
            code,
            generation: -1,
            protocol_type: None,
            protocol: None,
            leader: String::new(),
            skip_assignment: false,
            member_id: member_id.to_owned(),
            members: Vec::new(),
        }
    }
}

/// The answer to `SyncGroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synced {
    pub(crate) code: ErrorCode,
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) assignment: Vec<u8>,
}

impl Synced {
    pub(crate) fn refused(code: ErrorCode) -> Self {
        Self { code, protocol_type: None, protocol: None, assignment: Vec::new() }
    }
}

/// Keeps a group where it is found again after a restart. `is_waited_for`: it is safe when this returns.
pub(crate) trait Keep {
    fn keep(&mut self, group: &KeptGroup, is_waited_for: bool) -> Result<(), ErrorCode>;
}

/// One event: the time, and what follows from it.
pub(crate) struct Turn<'a> {
    /// By the monotonic clock.
    pub(crate) now: Duration,
    pub(crate) wall: Timestamp,
    pub(crate) keep: &'a mut dyn Keep,
    pub(crate) answers: Vec<(Ticket, Answer)>,
}

impl Turn<'_> {
    pub(super) fn answer_join(&mut self, ticket: Ticket, joined: Joined) {
        self.answers.push((ticket, Answer::Join(joined)));
    }

    pub(super) fn refuse_join(&mut self, ticket: Ticket, code: ErrorCode, member_id: &str) {
        self.answer_join(ticket, Joined::refused(code, member_id));
    }

    pub(super) fn answer_sync(&mut self, ticket: Ticket, synced: Synced) {
        self.answers.push((ticket, Answer::Sync(synced)));
    }
}

/// What the server's settings say of groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_size: usize,
    /// How long a new group waits for more members.
    pub(crate) initial_delay: Duration,
}

/// The first rebalance of a group without members: put off while new ones come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Initial {
    /// How much longer it may be put off.
    pub(super) left: Duration,
    pub(super) has_new: bool,
}

/// A group of the classic protocol.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(super) limits: Limits,
    pub(super) state: State,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) members: BTreeMap<String, Member>,
    /// Ids that were given out to be joined with, and until when they can be.
    pub(super) pending: BTreeMap<String, Duration>,
    /// Members by their instance ids.
    pub(super) instances: BTreeMap<String, String>,
    /// When the next generation begins with those who are there.
    pub(super) rebalance_due: Duration,
    pub(super) initial: Option<Initial>,
    /// When those who have not asked for their assignment are taken out.
    pub(super) sync_due: Duration,
    /// When it came to be as it is, in milliseconds.
    pub(super) since_ms: i64,
    pub(super) next_place: u64,
    /// It has a record.
    pub(super) is_kept: bool,
}

/// In whole milliseconds, as they are told.
pub(super) fn whole_ms(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

/// Negative ones are none at all.
pub(super) fn from_ms(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

impl Group {
    /// A group without members.
    pub(crate) fn new(limits: Limits, wall: Timestamp) -> Self {
        Self {
            limits,
            state: State::Empty,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            pending: BTreeMap::new(),
            instances: BTreeMap::new(),
            rebalance_due: Duration::ZERO,
            initial: None,
            sync_due: Duration::ZERO,
            since_ms: wall.millis(),
            next_place: 0,
            is_kept: false,
        }
    }

    /// A group as it was kept. Its members go on in their generation; their sessions begin now.
    pub(crate) fn of_kept(kept: KeptGroup, limits: Limits, now: Duration) -> Self {
        let mut group = Self::new(limits, Timestamp::from_millis(kept.since_ms));
        group.is_kept = true;
        group.generation = kept.generation.max(0);
        group.protocol_type = Some(kept.protocol_type).filter(|told| !told.is_empty());
        let Some(protocol) = kept.protocol.filter(|_| !kept.members.is_empty()) else { return group };
        for member in kept.members {
            let KeptMember { id, instance_id, subscription, .. } = member;
            if let Some(instance_id) = &instance_id {
                group.instances.insert(instance_id.clone(), id.clone());
            }
            let session_timeout = from_ms(member.session_timeout_ms);
            let place = group.next_place;
            group.next_place = place.wrapping_add(1);
            let member = Member {
                place,
                instance_id,
                client_id: member.client_id,
                client_host: member.client_host,
                session_timeout,
                rebalance_timeout: from_ms(member.rebalance_timeout_ms),
                protocols: vec![(protocol.clone(), subscription)],
                assignment: member.assignment,
                joining: None,
                syncing: None,
                is_new: false,
                must_sync: false,
                session_due: now.saturating_add(session_timeout),
            };
            group.members.insert(id, member);
        }
        group.protocol = Some(protocol);
        group.leader = kept.leader.filter(|leader| group.members.contains_key(leader));
        if group.leader.is_none() {
            group.leader = group.eldest(|_| true);
        }
        group.state = State::Stable;
        group
    }

    /// As it is to be kept.
    pub(super) fn kept(&self) -> KeptGroup {
        let protocol = self.protocol.as_deref();
        KeptGroup {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            since_ms: self.since_ms,
            members: self.members.iter().map(|(id, member)| member.kept(id, protocol)).collect(),
        }
    }

    pub(super) fn keep(&mut self, turn: &mut Turn<'_>, is_waited_for: bool) -> Result<(), ErrorCode> {
        turn.keep.keep(&self.kept(), is_waited_for)?;
        self.is_kept = true;
        Ok(())
    }

    /// Whether it has a record that has to go with it.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn generation(&self) -> i32 {
        self.generation
    }

    /// `None` where it never had members.
    pub(crate) fn protocol_type(&self) -> Option<&str> {
        self.protocol_type.as_deref()
    }

    /// The assignor that was chosen.
    pub(crate) fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// When it came to be as it is, in milliseconds.
    pub(crate) fn since_ms(&self) -> i64 {
        self.since_ms
    }

    /// Its members, by id. What they told and were assigned is of use while the group is stable.
    pub(crate) fn described(&self) -> Vec<KeptMember> {
        let protocol = self.protocol.as_deref().filter(|_| self.state == State::Stable);
        let mut members: Vec<_> = self.members.iter().map(|(id, member)| member.kept(id, protocol)).collect();
        if self.state != State::Stable {
            for member in &mut members {
                member.assignment.clear();
            }
        }
        members
    }

    /// True where nothing is here that is not elsewhere too: no members, none about to join.
    pub(crate) fn is_empty(&self) -> bool {
        self.state == State::Empty && self.pending.is_empty()
    }

    /// It is no more.
    pub(crate) fn bury(&mut self) {
        self.state = State::Dead;
    }

    /// The member that has been here for longest, of those.
    pub(super) fn eldest(&self, is_one: impl Fn(&Member) -> bool) -> Option<String> {
        let of_those = self.members.iter().filter(|(_, member)| is_one(member));
        of_those.min_by_key(|(_, member)| member.place).map(|(id, _)| id.clone())
    }

    /// The longest time that a member wants to have for a rebalance.
    pub(super) fn longest_rebalance(&self) -> Duration {
        self.members.values().map(|member| member.rebalance_timeout).max().unwrap_or(Duration::ZERO)
    }

    /// Whether a member is who it says.
    pub(super) fn check_member(&self, id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.instances.get(instance_id) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(known) if known != id => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        if self.members.contains_key(id) { Ok(()) } else { Err(ErrorCode::UNKNOWN_MEMBER_ID) }
    }

    /// Whether a topic is one that members read. Groups that are not consumers' read none that we know of; of what cannot be
    /// read all may be meant.
    pub(crate) fn is_subscribed(&self, topic: &str) -> bool {
        if self.protocol_type.as_deref() != Some("consumer") {
            return false;
        }
        self.members.values().any(|member| {
            let told = match &self.protocol {
                Some(protocol) => Some(member.subscription(protocol)),
                None => member.protocols.first().map(|(_, told)| told.as_slice()),
            };
            told.is_some_and(|told| subscribes(told, topic).unwrap_or(true))
        })
    }
}

/// Whether a consumer's subscription names a topic: a version, then topics. `None` where it cannot be read.
fn subscribes(subscription: &[u8], topic: &str) -> Option<bool> {
    let (_version, rest) = subscription.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    for _ in 0..i32::from_be_bytes(*count) {
        let (len, after) = rest.split_first_chunk::<2>()?;
        let len = usize::try_from(i16::from_be_bytes(*len)).ok()?;
        let (name, after) = after.split_at_checked(len)?;
        if name == topic.as_bytes() {
            return Some(true);
        }
        rest = after;
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_are_read() {
        let told = b"\0\x01\0\0\0\x02\0\x01a\0\x02bc\xff\xff\xff\xff";
        assert_eq!(subscribes(told, "a"), Some(true));
        assert_eq!(subscribes(told, "bc"), Some(true));
        assert_eq!(subscribes(told, "b"), Some(false));
        assert_eq!(subscribes(&told[..9], "b"), None);
        assert_eq!(subscribes(b"", "b"), None);
    }
}
