//! Which records of transactions a reader of committed ones leaves out, by what a broker says beside them.

use std::collections::{BTreeMap, BTreeSet};

use stratalog::record::{BatchRef, ControlType, Scratch, control_type};

/// The transactions that were aborted, as far as they were told.
#[derive(Debug, Default)]
pub(super) struct Aborted {
    /// First offset and producer of those that have not begun yet.
    ahead: BTreeSet<(i64, i64)>,
    /// Producers whose records are being left out, and where that began.
    open: BTreeMap<i64, i64>,
}

impl Aborted {
    /// What is told with the next records: producer and first offset of each.
    pub(super) fn told(&mut self, transactions: impl IntoIterator<Item = (i64, i64)>) {
        // Each answer tells all that reach into it, the known ones again.
        self.ahead = transactions.into_iter().map(|(producer, first)| (first, producer)).collect();
        self.open.clear();
    }

    /// True where the batch belongs to an aborted transaction.
    pub(super) fn hides(&mut self, batch: &BatchRef<'_>, scratch: &mut Scratch) -> bool {
        let last = batch.last_offset().value();
        while let Some((first, producer)) = self.ahead.first().copied().filter(|(first, _)| *first <= last) {
            self.ahead.pop_first();
            self.open.insert(producer, first);
        }
        if !batch.is_transactional() {
            return false;
        }
        if !batch.is_control() {
            return self.open.contains_key(&batch.producer_id());
        }
        let ends_aborted = batch.records(scratch).is_ok_and(|mut records| {
            records.next().and_then(Result::ok).and_then(|record| control_type(record.key()?).ok())
                == Some(ControlType::Abort)
        });
        if ends_aborted {
            self.open.remove(&batch.producer_id());
        }
        false
    }
}
