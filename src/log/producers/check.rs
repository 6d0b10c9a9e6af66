//! What a log asks of a producer's batches before it takes them (Kafka: `ProducerAppendInfo`, `UnifiedLog`).

use std::collections::HashMap;

use super::state::{Entry, SentBatch, State, next_sequence};
use crate::{
    error::{Error, Result},
    offset::{Offset, Timestamp},
    record::{BatchError, BatchHeader},
};

/// A batch that is to be appended, as far as its producer numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) first_sequence: i32,
    /// The last sequence number less the first.
    pub(crate) delta: i32,
    pub(crate) is_transactional: bool,
}

impl Claim {
    pub(crate) fn of(header: &BatchHeader) -> Self {
        Self {
            producer_id: header.producer_id(),
            epoch: header.producer_epoch(),
            first_sequence: header.base_sequence(),
            delta: header.last_offset_delta(),
            is_transactional: header.is_transactional(),
        }
    }

    fn last_sequence(&self) -> i32 {
        self.first_sequence.wrapping_add(self.delta) & i32::MAX
    }
}

/// What is to be done with a call's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Append,
    /// The log has them all already.
    Duplicate {
        first_offset: Offset,
        last_offset: Offset,
        /// Of the last of them.
        timestamp: Timestamp,
    },
}

/// Where a producer stands, with the batches of the call that come before the one that is looked at.
#[derive(Clone, Copy, Debug)]
struct Standing {
    epoch: i16,
    last_sequence: i32,
    in_transaction: bool,
}

impl Standing {
    /// `None` where any sequence number may be the first: nothing is known of an epoch.
    fn of(entry: &Entry) -> Option<Self> {
        let known = Self {
            epoch: entry.epoch,
            last_sequence: entry.last_sequence(),
            in_transaction: entry.transaction_start.is_some(),
        };
        (entry.epoch >= 0).then_some(known)
    }
}

impl State {
    /// Decides about all batches of a call as one: they are appended, or the log has every one of them, or the first
    /// that does not fit refuses them all. `end` is where the log ends, for the error.
    pub(crate) fn check(&self, claims: &[Claim], end: Offset) -> Result<Admission> {
        if let Some(duplicate) = self.duplicate(claims) {
            return Ok(duplicate);
        }
        if let [claim] = claims {
            // The usual case needs no map.
            let before = self.entry(claim.producer_id).and_then(Standing::of);
            check_one(claim, before, end)?;
            return Ok(Admission::Append);
        }
        let mut standing: HashMap<i64, Standing> = HashMap::new();
        for claim in claims {
            let before = standing.get(&claim.producer_id).copied();
            let before = before.or_else(|| self.entry(claim.producer_id).and_then(Standing::of));
            if let Some(after) = check_one(claim, before, end)? {
                standing.insert(claim.producer_id, after);
            }
        }
        Ok(Admission::Append)
    }

    /// The original of the batches, if each is one of its producer's last and they lie side by side.
    fn duplicate(&self, claims: &[Claim]) -> Option<Admission> {
        let (mut first_offset, mut last): (Option<Offset>, Option<SentBatch>) = (None, None);
        for claim in claims {
            let sent = self.sent(claim)?;
            if last.is_some_and(|last| last.last_offset.next() != Some(sent.first_offset())) {
                return None;
            }
            first_offset = first_offset.or(Some(sent.first_offset()));
            last = Some(*sent);
        }
        let last = last?;
        Some(Admission::Duplicate {
            first_offset: first_offset?,
            last_offset: last.last_offset,
            timestamp: last.timestamp,
        })
    }

    fn sent(&self, claim: &Claim) -> Option<&SentBatch> {
        let entry = self.entry(claim.producer_id).filter(|entry| entry.epoch == claim.epoch)?;
        entry.sent().find(|sent| {
            sent.last_sequence == claim.last_sequence() && sent.first_sequence() == claim.first_sequence
        })
    }
}

/// Where the producer stands after the batch; `None` for a batch that no producer numbers.
fn check_one(claim: &Claim, before: Option<Standing>, end: Offset) -> Result<Option<Standing>> {
    let Claim { producer_id, epoch, first_sequence, .. } = *claim;
    if producer_id < 0 {
        return Ok(None);
    }
    if epoch < 0 || first_sequence < 0 {
        return Err(BatchError::BadProducer { producer_id, epoch, sequence: first_sequence }.into());
    }
    let mut in_transaction = claim.is_transactional;
    if let Some(before) = before {
        if epoch < before.epoch {
            return Err(Error::ProducerFenced { producer_id, epoch, current_epoch: before.epoch, end });
        }
        let expected = if epoch > before.epoch { 0 } else { next_sequence(before.last_sequence) };
        if first_sequence != expected {
            return Err(Error::OutOfOrderSequence {
                producer_id,
                epoch,
                expected,
                found: first_sequence,
                current_epoch: before.epoch,
                end,
            });
        }
        if before.in_transaction && !claim.is_transactional {
            return Err(Error::TransactionOpen { producer_id, epoch, end });
        }
        in_transaction |= before.in_transaction;
    }
    Ok(Some(Standing { epoch, last_sequence: claim.last_sequence(), in_transaction }))
}
