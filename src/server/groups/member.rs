//! A member of a group of the classic protocol.

use std::time::Duration;

use super::{Ticket, group::whole_ms};
use crate::server::committed_offsets::KeptMember;

/// A member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Who has joined earlier has a lower one: the leader is looked for in this order.
    pub(super) place: u64,
    pub(super) instance_id: Option<String>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) session_timeout: Duration,
    pub(super) rebalance_timeout: Duration,
    /// Names of assignors, the preferred one first, with what each is to be told.
    pub(super) protocols: Vec<(String, Vec<u8>)>,
    pub(super) assignment: Vec<u8>,
    /// Its `JoinGroup` that waits.
    pub(super) joining: Option<Ticket>,
    /// Its `SyncGroup` that waits.
    pub(super) syncing: Option<Ticket>,
    /// It has joined and does not know its generation yet.
    pub(super) is_new: bool,
    /// It was told its generation and has not asked for its assignment.
    pub(super) must_sync: bool,
    /// When it is taken for dead, unless it is waited for an answer of ours.
    pub(super) session_due: Duration,
}

impl Member {
    /// When it is taken for dead; `None` while one of its requests waits here.
    pub(super) fn due(&self) -> Option<Duration> {
        let is_waiting = self.joining.is_some() && !self.is_new || self.syncing.is_some();
        (!is_waiting).then_some(self.session_due)
    }

    /// It was heard of.
    pub(super) fn renew(&mut self, now: Duration) {
        self.session_due = now.saturating_add(self.session_timeout);
    }

    /// What it told for a protocol.
    pub(super) fn subscription(&self, protocol: &str) -> &[u8] {
        let mut told = self.protocols.iter().filter(|(name, _)| name == protocol);
        told.next().map_or(&[], |(_, metadata)| metadata)
    }

    pub(super) fn supports(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|(name, _)| name == protocol)
    }

    pub(super) fn kept(&self, id: &str, protocol: Option<&str>) -> KeptMember {
        KeptMember {
            id: id.to_owned(),
            instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout_ms: whole_ms(self.rebalance_timeout),
            session_timeout_ms: whole_ms(self.session_timeout),
            subscription: protocol.map_or_else(Vec::new, |protocol| self.subscription(protocol).to_vec()),
            assignment: self.assignment.clone(),
        }
    }
}
