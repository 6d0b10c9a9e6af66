//! `JoinGroup`, `SyncGroup`, `Heartbeat`, `LeaveGroup`: what members of groups ask.

use std::{borrow::Cow, task::Context, time::Duration};

use super::{Call, Fault, Outcome, read};
use crate::{
    Uuid,
    protocol::{
        EncodeError,
        messages::{
            heartbeat::{HeartbeatRequest, HeartbeatResponse},
            join_group::{JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember},
            leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberResponse},
            sync_group::{SyncGroupRequest, SyncGroupResponse},
        },
        wire::Reader,
    },
    server::{
        error_code::ErrorCode,
        groups::{self, Answer, Identity, Join, Joined, Sync, Synced, Waiting},
        reply::Reply,
    },
};

/// Instance ids are texts of records, and so are member ids made of them.
const MAX_ID_BYTES: usize = 1000;
/// Of a client's name, in its member id.
const MAX_PREFIX_CHARS: usize = 200;

/// A request that waits for the other members of its group.
#[derive(Debug)]
pub(in crate::server) struct Parked {
    correlation_id: i32,
    version: i16,
    is_join: bool,
    waiting: Waiting,
}

impl Parked {
    /// Has the task woken when the answer is there.
    pub(in crate::server) fn register(&self, context: &Context<'_>) {
        self.waiting.register(context);
    }

    /// The reply, if it is there. `is_last`: whatever there is.
    pub(in crate::server) fn answer(&mut self, is_last: bool) -> Result<Option<Reply>, EncodeError> {
        // Who is told so looks for the coordinator anew.
        let code = ErrorCode::NOT_COORDINATOR;
        let refused = || {
            if self.is_join {
                Answer::Join(Joined::refused(code, ""))
            } else {
                Answer::Sync(Synced::refused(code))
            }
        };
        let answer = self.waiting.answer().or_else(|| is_last.then(refused));
        answer.map(|answer| reply(self.correlation_id, self.version, answer)).transpose()
    }
}

fn reply(correlation_id: i32, version: i16, answer: Answer) -> Result<Reply, EncodeError> {
    match answer {
        Answer::Join(joined) => {
            Reply::new(correlation_id, version, &join_response(joined, version), Vec::new())
        }
        Answer::Sync(synced) => Reply::new(correlation_id, version, &sync_response(synced), Vec::new()),
    }
}

fn outcome(call: &Call<'_>, is_join: bool, came: groups::Outcome) -> Result<Outcome, Fault> {
    let (correlation_id, version) = (call.header.correlation_id, call.version());
    Ok(match came {
        groups::Outcome::Answer(answer) => Outcome::Reply(reply(correlation_id, version, answer)?),
        groups::Outcome::Waiting(waiting) => {
            Outcome::Group(Parked { correlation_id, version, is_join, waiting })
        }
    })
}

/// Whether a group can have this name.
fn check_group(group: &str) -> Result<(), ErrorCode> {
    if group.is_empty() { Err(ErrorCode::INVALID_GROUP_ID) } else { Ok(()) }
}

fn ms(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

pub(super) fn join(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: JoinGroupRequest<'_> = read(call, body)?;
    let settings = call.broker.settings();
    let session = ms(request.session_timeout_ms);
    let is_session = (settings.session_timeout_min..=settings.session_timeout_max).contains(&session);
    let is_long = request.group_instance_id.is_some_and(|id| id.len() > MAX_ID_BYTES);
    let checked = match check_group(request.group_id) {
        Ok(()) if is_long => Err(ErrorCode::INVALID_REQUEST),
        Ok(()) if !is_session => Err(ErrorCode::INVALID_SESSION_TIMEOUT),
        checked => checked,
    };
    let refused = |code| {
        let joined = Joined::refused(code, request.member_id);
        outcome(call, true, groups::Outcome::Answer(Answer::Join(joined)))
    };
    if let Err(code) = checked {
        return refused(code);
    }
    let client_id = call.header.client_id.unwrap_or_default();
    let Ok(unique) = Uuid::random() else { return refused(ErrorCode::COORDINATOR_NOT_AVAILABLE) };
    let rebalance = Some(ms(request.rebalance_timeout_ms)).filter(|timeout| !timeout.is_zero());
    let protocols = request.protocols.iter();
    let join = Join {
        member_id: request.member_id.to_owned(),
        instance_id: request.group_instance_id.map(str::to_owned),
        client_id: client_id.to_owned(),
        client_host: format!("/{}", call.peer.to_canonical()),
        session_timeout: session,
        // Version 0 has one time for both.
        rebalance_timeout: rebalance.unwrap_or(session),
        protocol_type: request.protocol_type.to_owned(),
        protocols: protocols.map(|told| (told.name.to_owned(), told.metadata.to_vec())).collect(),
        new_id: new_id(request.group_instance_id.unwrap_or(client_id), u128::from_be_bytes(unique.bytes())),
        takes_id_first: call.version() >= 4,
        may_skip: call.version() >= 9,
    };
    outcome(call, true, call.broker.groups.coordinator().join(request.group_id, join))
}

/// What a new member is called: whom it belongs to, and 128 random bits.
fn new_id(of: &str, random: u128) -> String {
    let prefix: String = of.chars().take(MAX_PREFIX_CHARS).collect();
    let hex = format!("{random:032x}");
    let mut id = format!("{prefix}-");
    for (at, digit) in hex.chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            id.push('-');
        }
        id.push(digit);
    }
    id
}

fn join_response<'a>(joined: Joined, version: i16) -> JoinGroupResponse<'a> {
    let member =
        |(member_id, instance_id, metadata): (String, Option<String>, Vec<u8>)| JoinGroupResponseMember {
            member_id: member_id.into(),
            group_instance_id: instance_id.map(Cow::Owned),
            metadata: metadata.into(),
        };
    // Older versions cannot say that there is none.
    let none = (version < 7).then_some(Cow::Borrowed(""));
    JoinGroupResponse {
        error_code: joined.code.value(),
        generation_id: joined.generation,
        protocol_type: joined.protocol_type.map(Cow::Owned),
        protocol_name: joined.protocol.map(Cow::Owned).or(none),
        leader: joined.leader.into(),
        skip_assignment: joined.skip_assignment,
        member_id: joined.member_id.into(),
        members: joined.members.into_iter().map(member).collect(),
        ..Default::default()
    }
}

pub(super) fn sync(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: SyncGroupRequest<'_> = read(call, body)?;
    // From this version on both are to be told.
    let is_told = call.version() < 5 || request.protocol_type.is_some() && request.protocol_name.is_some();
    let checked = match check_group(request.group_id) {
        Ok(()) if !is_told => Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL),
        checked => checked,
    };
    if let Err(code) = checked {
        let answer = Answer::Sync(Synced::refused(code));
        return outcome(call, false, groups::Outcome::Answer(answer));
    }
    let assigned = request.assignments.iter();
    let sync = Sync {
        member_id: request.member_id.to_owned(),
        instance_id: request.group_instance_id.map(str::to_owned),
        generation: request.generation_id,
        protocol_type: request.protocol_type.map(str::to_owned),
        protocol: request.protocol_name.map(str::to_owned),
        assignments: assigned.map(|told| (told.member_id.to_owned(), told.assignment.to_vec())).collect(),
    };
    outcome(call, false, call.broker.groups.coordinator().sync(request.group_id, sync))
}

fn sync_response<'a>(synced: Synced) -> SyncGroupResponse<'a> {
    SyncGroupResponse {
        error_code: synced.code.value(),
        protocol_type: synced.protocol_type.map(Cow::Owned),
        protocol_name: synced.protocol.map(Cow::Owned),
        assignment: synced.assignment.into(),
        ..Default::default()
    }
}

pub(super) fn heartbeat(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: HeartbeatRequest<'_> = read(call, body)?;
    let who = Identity { member_id: request.member_id, instance_id: request.group_instance_id };
    let code = match check_group(request.group_id) {
        Ok(()) => call.broker.groups.coordinator().heartbeat(request.group_id, who, request.generation_id),
        Err(code) => code,
    };
    call.reply(&HeartbeatResponse { error_code: code.value(), ..Default::default() })
}

pub(super) fn leave(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: LeaveGroupRequest<'_> = read(call, body)?;
    if let Err(code) = check_group(request.group_id) {
        return call.reply(&LeaveGroupResponse { error_code: code.value(), ..Default::default() });
    }
    let is_single = call.version() < 3;
    let leaving: Vec<_> = if is_single {
        vec![Identity { member_id: request.member_id, instance_id: None }]
    } else {
        let members = request.members.iter();
        members
            .map(|member| Identity { member_id: member.member_id, instance_id: member.group_instance_id })
            .collect()
    };
    let codes = call.broker.groups.coordinator().leave(request.group_id, &leaving);
    let own = codes.first().copied().filter(|_| is_single).unwrap_or(ErrorCode::NONE);
    let member = |(who, code): (&Identity<'_>, &ErrorCode)| MemberResponse {
        member_id: who.member_id.to_owned().into(),
        group_instance_id: who.instance_id.map(|id| Cow::Owned(id.to_owned())),
        error_code: code.value(),
    };
    let members = leaving.iter().zip(&codes).map(member).collect();
    call.reply(&LeaveGroupResponse { error_code: own.value(), members, ..Default::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_say_whom_they_belong_to() {
        assert_eq!(
            new_id("c", 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
            "c-01234567-89ab-cdef-0123-456789abcdef"
        );
        assert_eq!(new_id(&"\u{e4}".repeat(300), 1).chars().count(), 237);
    }
}
