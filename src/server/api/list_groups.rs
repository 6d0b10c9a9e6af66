//! `ListGroups`: those with members, and those that only have committed offsets.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup},
        wire::Reader,
    },
    server::groups::State,
};

/// The one type of groups that there is.
const TYPE: &str = "classic";

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: ListGroupsRequest<'_> = read(call, body)?;
    let is_among = |filter: &[&str], name: &str| {
        filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
    };
    let coordinator = call.broker.groups.coordinator();
    let ids = if is_among(&request.types_filter, TYPE) { coordinator.ids() } else { Vec::new() };
    let mut groups = Vec::new();
    for id in ids {
        let told = coordinator
            .look(&id, |group| (group.state(), group.protocol_type().unwrap_or_default().to_owned()));
        let (state, protocol_type) = told.unwrap_or((State::Empty, String::new()));
        if is_among(&request.states_filter, state.name()) {
            groups.push(ListedGroup {
                group_id: id.into(),
                protocol_type: protocol_type.into(),
                group_state: state.name().into(),
                group_type: TYPE.into(),
            });
        }
    }
    call.reply(&ListGroupsResponse { groups, ..Default::default() })
}
