//! `DescribeGroups`: what groups are and who is in them.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::describe_groups::{
            DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
        },
        wire::Reader,
    },
    server::{
        committed_offsets::KeptMember,
        error_code::ErrorCode,
        groups::{Group, State},
    },
};

/// Reading, deleting and describing, as bits: nobody is refused anything.
const ALL_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8;

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DescribeGroupsRequest<'_> = read(call, body)?;
    let mut groups = Vec::with_capacity(request.groups.len());
    for id in &request.groups {
        let mut told = describe(call, id);
        if request.include_authorized_operations {
            told.authorized_operations = ALL_OPERATIONS;
        }
        groups.push(told);
    }
    call.reply(&DescribeGroupsResponse { groups, ..Default::default() })
}

fn describe<'a>(call: &Call<'_>, id: &'a str) -> DescribedGroup<'a> {
    let none = DescribedGroup { group_id: id.into(), ..Default::default() };
    if id.is_empty() {
        return DescribedGroup { error_code: ErrorCode::INVALID_GROUP_ID.value(), ..none };
    }
    let told = call.broker.groups.coordinator().look(id, |group| told(group, none.clone()));
    if let Some(told) = told {
        return told;
    }
    if call.broker.offsets.has_any(id) {
        return DescribedGroup { group_state: State::Empty.name().into(), ..none };
    }
    let group_state = State::Dead.name().into();
    // Older versions have no word for it but this state.
    if call.version() < 6 {
        return DescribedGroup { group_state, ..none };
    }
    DescribedGroup {
        error_code: ErrorCode::GROUP_ID_NOT_FOUND.value(),
        error_message: Some(format!("Group {id} not found.").into()),
        group_state,
        ..none
    }
}

fn told<'a>(group: &Group, none: DescribedGroup<'a>) -> DescribedGroup<'a> {
    let protocol = group.protocol().filter(|_| group.state() == State::Stable);
    DescribedGroup {
        group_state: group.state().name().into(),
        protocol_type: group.protocol_type().unwrap_or_default().to_owned().into(),
        protocol_data: protocol.unwrap_or_default().to_owned().into(),
        members: group.described().into_iter().map(member).collect(),
        ..none
    }
}

fn member<'a>(member: KeptMember) -> DescribedGroupMember<'a> {
    DescribedGroupMember {
        member_id: member.id.into(),
        group_instance_id: member.instance_id.map(Into::into),
        client_id: member.client_id.into(),
        client_host: member.client_host.into(),
        member_metadata: member.subscription.into(),
        member_assignment: member.assignment.into(),
    }
}
