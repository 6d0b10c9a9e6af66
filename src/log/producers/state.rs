//! What a log knows of its producers, from their batches alone: no files, no clock.

use std::collections::{BTreeSet, HashMap};

use super::{Marker, ProducerInfo};
use crate::{
    log::txn_index::AbortedTransaction,
    offset::{Offset, Timestamp},
    record::BatchHeader,
};

/// How many of a producer's last batches are recognised when they come again (Kafka:
/// `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`; a client has at most as many on their way).
pub(crate) const BATCHES_KEPT: usize = 5;
/// The most producers that are remembered: some 16 MiB. Beyond it those idle longest are forgotten, as if expired.
pub(crate) const MAX_PRODUCERS: usize = 1 << 16;
/// Stands for a producer of which only an id is known.
const NO_EPOCH: i16 = -1;

/// A batch that its producer may send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentBatch {
    pub(crate) last_sequence: i32,
    pub(crate) last_offset: Offset,
    /// The last offset less the first, not negative; and the last sequence number less the first.
    pub(crate) offset_delta: i32,
    pub(crate) timestamp: Timestamp,
}

impl SentBatch {
    pub(crate) fn of(header: &BatchHeader) -> Self {
        Self {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta(),
            timestamp: header.max_timestamp(),
        }
    }

    pub(crate) fn first_sequence(&self) -> i32 {
        self.last_sequence.wrapping_sub(self.offset_delta) & i32::MAX
    }

    pub(crate) fn first_offset(&self) -> Offset {
        self.last_offset.saturating_sub(u64::from(self.offset_delta.unsigned_abs()))
    }
}

/// The sequence number after `last`; 0 after -1, which is none, and after the largest.
pub(crate) fn next_sequence(last: i32) -> i32 {
    last.wrapping_add(1) & i32::MAX
}

/// One producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) epoch: i16,
    /// The last batches of this epoch, oldest first.
    sent: [Option<SentBatch>; BATCHES_KEPT],
    /// -1 where no marker was seen.
    pub(crate) coordinator_epoch: i32,
    /// Of the last batch or marker; by it a producer expires.
    pub(crate) last_timestamp: Timestamp,
    /// Where its open transaction begins.
    pub(crate) transaction_start: Option<Offset>,
    /// It comes from a snapshot, which keeps one batch: the log may hold others of the last five.
    pub(crate) is_partial: bool,
}

impl Entry {
    pub(crate) fn unknown() -> Self {
        Self {
            epoch: NO_EPOCH,
            sent: [None; BATCHES_KEPT],
            coordinator_epoch: -1,
            last_timestamp: Timestamp::NONE,
            transaction_start: None,
            is_partial: false,
        }
    }

    /// The batches that are known, oldest first.
    pub(crate) fn sent(&self) -> impl DoubleEndedIterator<Item = &SentBatch> {
        self.sent.iter().flatten()
    }

    pub(crate) fn last(&self) -> Option<&SentBatch> {
        self.sent().next_back()
    }

    /// The last sequence number of this epoch; -1 where it has none yet.
    pub(crate) fn last_sequence(&self) -> i32 {
        self.last().map_or(-1, |last| last.last_sequence)
    }

    pub(crate) fn push(&mut self, batch: SentBatch) {
        if let Some(free) = self.sent.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(batch);
        } else {
            self.sent.rotate_left(1);
            self.sent[BATCHES_KEPT - 1] = Some(batch);
        }
    }

    /// Puts older batches before those that are known.
    pub(crate) fn remember(&mut self, older: &[SentBatch]) {
        let known: Vec<SentBatch> = self.sent().copied().collect();
        let all: Vec<SentBatch> = older.iter().copied().chain(known).collect();
        self.sent = [None; BATCHES_KEPT];
        for batch in &all[all.len().saturating_sub(BATCHES_KEPT)..] {
            self.push(*batch);
        }
    }

    fn begin_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.sent = [None; BATCHES_KEPT];
            self.is_partial = false;
        }
    }

    /// True where nothing came for so long and no transaction is open (Kafka:
    /// `ProducerStateManager.isProducerExpired`).
    fn is_expired(&self, now: Timestamp, after_ms: i64) -> bool {
        self.transaction_start.is_none()
            && now.millis().saturating_sub(self.last_timestamp.millis()) >= after_ms
    }
}

/// All producers of a log, as of some offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    entries: HashMap<i64, Entry>,
    /// First offsets and producers of the transactions that are open.
    open: BTreeSet<(Offset, i64)>,
}

impl State {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entry(&self, producer_id: i64) -> Option<&Entry> {
        self.entries.get(&producer_id)
    }

    pub(crate) fn entry_mut(&mut self, producer_id: i64) -> Option<&mut Entry> {
        self.entries.get_mut(&producer_id)
    }

    /// All producers by rising id.
    pub(crate) fn sorted(&self) -> Vec<(i64, &Entry)> {
        let mut all: Vec<_> = self.entries.iter().map(|(id, entry)| (*id, entry)).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// Takes over a producer from a snapshot. False where it is there already.
    pub(crate) fn insert(&mut self, producer_id: i64, entry: Entry) -> bool {
        let start = entry.transaction_start;
        if self.entries.contains_key(&producer_id) {
            return false;
        }
        self.entries.insert(producer_id, entry);
        self.open.extend(start.map(|start| (start, producer_id)));
        true
    }

    /// Takes in a batch that the log has, in the order of offsets; nothing is checked (Kafka: `ProducerAppendInfo` for
    /// batches that were replicated). `marker` is what a control batch says; one without a record says nothing any more.
    /// Returns the transaction that was aborted by it.
    pub(crate) fn apply(
        &mut self,
        header: &BatchHeader,
        marker: Option<Marker>,
    ) -> Option<AbortedTransaction> {
        let producer_id = header.producer_id();
        if producer_id < 0 || (header.is_control() && marker.is_none()) {
            return None;
        }
        if self.entries.len() >= MAX_PRODUCERS && !self.entries.contains_key(&producer_id) {
            self.forget_idle();
        }
        let entry = self.entries.entry(producer_id).or_insert_with(Entry::unknown);
        entry.begin_epoch(header.producer_epoch());
        let Some(marker) = marker else {
            let batch = SentBatch::of(header);
            entry.push(batch);
            entry.last_timestamp = batch.timestamp;
            if header.is_transactional() && entry.transaction_start.is_none() {
                entry.transaction_start = Some(header.base_offset());
                self.open.insert((header.base_offset(), producer_id));
            }
            return None;
        };
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.last_timestamp = marker.timestamp;
        let first_offset = entry.transaction_start.take()?;
        self.open.remove(&(first_offset, producer_id));
        let last_offset = header.base_offset();
        let stable = self.first_open().or_else(|| last_offset.next()).unwrap_or(Offset::MAX);
        let aborted =
            AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset: stable };
        marker.is_abort.then_some(aborted)
    }

    /// Where the oldest open transaction begins.
    pub(crate) fn first_open(&self) -> Option<Offset> {
        self.open.first().map(|(start, _)| *start)
    }

    /// Forgets whoever was idle for so long. True where somebody was.
    pub(crate) fn expire(&mut self, now: Timestamp, after_ms: i64) -> bool {
        let before = self.entries.len();
        self.entries.retain(|_, entry| !entry.is_expired(now, after_ms));
        self.entries.len() != before
    }

    /// Makes room: the sixteenth of the producers that was idle longest goes, those with an open transaction last.
    fn forget_idle(&mut self) {
        let mut ages: Vec<_> = self
            .entries
            .iter()
            .map(|(id, entry)| (entry.transaction_start.is_some(), entry.last_timestamp, *id))
            .collect();
        ages.sort_unstable();
        for (_, _, id) in &ages[..(ages.len() / 16).max(1)] {
            if let Some(start) = self.entries.remove(id).and_then(|entry| entry.transaction_start) {
                self.open.remove(&(start, *id));
            }
        }
        tracing::warn!(
            most = MAX_PRODUCERS,
            "too many producers: those idle longest are not recognised any more"
        );
    }

    /// What is known, for those who ask.
    pub(crate) fn describe(&self) -> Vec<ProducerInfo> {
        let info = |(id, entry): (i64, &Entry)| ProducerInfo {
            id,
            epoch: entry.epoch,
            last_sequence: entry.last_sequence(),
            last_offset: entry.last().map(|last| last.last_offset),
            last_timestamp: entry.last_timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            transaction_start: entry.transaction_start,
        };
        self.sorted().into_iter().map(info).collect()
    }
}
