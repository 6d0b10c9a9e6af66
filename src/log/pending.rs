//! What an append came to, now or later.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use super::{shared::Shared, sync::Syncer};
use crate::{
    config::SyncMethod,
    error::Result,
    offset::{Offset, Timestamp},
};

/// How safe an acknowledged record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The kernel has it: it survives the death of the process, not a power cut.
    Written,
    /// A sync that covers it succeeded: it survives a power cut.
    Durable,
}

/// What an append came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The first record's offset.
    pub base_offset: Offset,
    /// The last record's offset.
    pub last_offset: Offset,
    /// The time stamped on the records, where the log stamps its own.
    pub append_time: Option<Timestamp>,
    /// How safe they are.
    pub durability: Durability,
    /// True where a producer sent again what the log already had, and nothing was appended.
    pub duplicate: bool,
}

/// Records that are visible and not yet known durable.
///
/// Whoever waits first syncs for all: one sync covers everything appended before it. A pending append that nobody waits
/// for becomes durable with the next sync of any kind.
#[must_use = "the records are durable only once this was waited for"]
#[derive(Clone, Debug)]
pub struct Pending {
    shared: Arc<Shared>,
    syncer: Arc<Syncer>,
    method: SyncMethod,
    appended: Appended,
}

impl Pending {
    pub(super) fn new(
        shared: Arc<Shared>,
        syncer: Arc<Syncer>,
        method: SyncMethod,
        appended: Appended,
    ) -> Self {
        Self { shared, syncer, method, appended }
    }

    /// The first record's offset.
    pub fn base_offset(&self) -> Offset {
        self.appended.base_offset
    }

    /// The offset after the last record.
    pub fn end(&self) -> Offset {
        self.appended.last_offset.next().unwrap_or(Offset::MAX)
    }

    /// What the append came to, as far as it is known to be safe now.
    pub fn appended(&self) -> Appended {
        if self.is_durable() { self.durable() } else { self.appended }
    }

    /// True once a sync that covers the records has succeeded.
    pub fn is_durable(&self) -> bool {
        self.shared.durable() >= self.end()
    }

    /// Waits until the records are durable, leading the sync if nobody else does.
    pub fn wait(self) -> Result<Appended> {
        if !self.is_durable() {
            self.syncer.cover(&self.shared, self.end(), self.method)?;
        }
        Ok(self.durable())
    }

    /// Ready once the records are durable, by a sync that somebody else leads: a task that must not block itself.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Appended>> {
        if !self.is_durable() && !self.shared.is_over() {
            self.shared.waiters().register(context.waker());
        }
        if self.is_durable() {
            return Poll::Ready(Ok(self.durable()));
        }
        match self.shared.check_writable() {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn durable(&self) -> Appended {
        Appended { durability: Durability::Durable, ..self.appended }
    }
}
