//! Transactions as readers see them: which are open, which were aborted, and how far everything is decided.
//!
//! Everything follows from the batches: the first one of a producer that is transactional begins its transaction, the
//! next marker of the same producer ends it (Kafka: `ProducerAppendInfo`, `ProducerStateManager`). `.txnindex` and
//! `.snapshot` say the same and are not asked: that one of them lacks an entry cannot be seen by looking at it. The first
//! look walks the headers of the whole log (but for segments that are known to hold no transaction), each later one
//! those of what was appended since; all readers of a log share what was learnt.
//!
//! Memory: about 100 bytes for each transaction that is open and each aborted one whose marker the log still holds,
//! nothing for those that were committed.

use std::collections::{BTreeMap, HashMap, VecDeque};

use parking_lot::{Mutex, MutexGuard};

use super::{
    producers::{Marker, marker_of},
    shared::Shared,
    txn_index::AbortedTransaction,
    view::Follow,
};
use crate::{
    error::Result,
    offset::Offset,
    record::BatchHeader,
    segment::{Place, Segment, Step, Visited},
};

/// A transaction that was begun and not ended yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OpenTransaction {
    /// The producer's id.
    pub producer_id: i64,
    /// The offset of its first record that the log still holds.
    pub first_offset: Offset,
}

/// What batches say of transactions, fed one by one in the order of the log.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// The first offset of each producer's open transaction, both ways.
    open: HashMap<i64, Offset>,
    by_first: BTreeMap<Offset, i64>,
    /// By rising last offset.
    aborted: VecDeque<AbortedTransaction>,
    /// Producer and last offset of each aborted transaction, to its first.
    spans: BTreeMap<(i64, Offset), Offset>,
}

impl Transactions {
    /// True where this batch begins a transaction: the producer has none open.
    fn begins(&self, header: &BatchHeader) -> bool {
        is_of_transaction(header) && !header.is_control() && !self.open.contains_key(&header.producer_id())
    }

    /// True where this batch may end one.
    fn may_end(&self, header: &BatchHeader) -> bool {
        header.is_control() && self.open.contains_key(&header.producer_id())
    }

    /// Takes in a batch; `marker` is what its record says if it is a control batch. Returns the transaction that it
    /// aborted, if it did: a marker with nothing before it ends nothing.
    pub(crate) fn observe(
        &mut self,
        header: &BatchHeader,
        marker: Option<Marker>,
    ) -> Option<AbortedTransaction> {
        if self.begins(header) {
            self.set_first(header.producer_id(), Some(header.base_offset()));
        }
        if !self.may_end(header) {
            return None;
        }
        let is_abort = marker?.is_abort;
        let producer_id = header.producer_id();
        let first_offset = self.set_first(producer_id, None)?;
        let last_offset = header.base_offset();
        if !is_abort {
            return None;
        }
        let after = last_offset.next().unwrap_or(Offset::MAX);
        let last_stable_offset = self.first_open().unwrap_or(after);
        let aborted = AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset };
        self.aborted.push_back(aborted);
        self.spans.insert((producer_id, last_offset), first_offset);
        Some(aborted)
    }

    /// Changes where a producer's open transaction begins, or that it has one. Returns what was so before.
    fn set_first(&mut self, producer_id: i64, first: Option<Offset>) -> Option<Offset> {
        let before = match first {
            Some(first) => self.open.insert(producer_id, first),
            None => self.open.remove(&producer_id),
        };
        if let Some(before) = before {
            self.by_first.remove(&before);
        }
        if let Some(first) = first {
            self.by_first.insert(first, producer_id);
        }
        before
    }

    /// Where the oldest open transaction begins.
    pub(crate) fn first_open(&self) -> Option<Offset> {
        self.by_first.first_key_value().map(|(first, _)| *first)
    }

    /// The open transactions, oldest first.
    fn open(&self) -> impl Iterator<Item = OpenTransaction> {
        self.by_first
            .iter()
            .map(|(first, producer_id)| OpenTransaction { producer_id: *producer_id, first_offset: *first })
    }

    /// True where the batch belongs to a transaction that was aborted.
    fn is_aborted(&self, header: &BatchHeader) -> bool {
        let (producer_id, offset) = (header.producer_id(), header.base_offset());
        // Transactions of one producer follow one another: the first that ends at `offset` or later is the one.
        let ended = self.spans.range((producer_id, offset)..).next();
        let begins = ended.filter(|((of, _), _)| *of == producer_id).map(|(_, first)| *first);
        is_of_transaction(header) && !header.is_control() && begins.is_some_and(|first| first <= offset)
    }

    /// The aborted transactions that a reader of `from..to` needs, by rising last offset (Kafka:
    /// `LogSegment.collectAbortedTxns`).
    fn aborted_in(&self, from: Offset, to: Offset) -> Vec<AbortedTransaction> {
        let at = self.aborted.partition_point(|aborted| aborted.last_offset < from);
        let mut found = Vec::new();
        for aborted in self.aborted.range(at..) {
            if aborted.first_offset < to {
                found.push(*aborted);
            }
            // Everything before that offset was decided then, so what ends later begins later.
            if aborted.last_stable_offset >= to {
                break;
            }
        }
        found
    }

    /// Forgets aborted transactions that lie wholly below the log's start.
    fn forget_below(&mut self, start: Offset) {
        while let Some(aborted) = self.aborted.front().filter(|aborted| aborted.last_offset < start) {
            self.spans.remove(&(aborted.producer_id, aborted.last_offset));
            self.aborted.pop_front();
        }
    }
}

fn is_of_transaction(header: &BatchHeader) -> bool {
    header.is_transactional() && header.producer_id() >= 0
}

/// The transactions of a log up to one of its two ends, as far as they were looked at.
#[derive(Debug, Default)]
pub(crate) struct View {
    transactions: Transactions,
    /// The segment and the place in it that the walk has come to.
    at: Option<(Offset, Place)>,
    /// The end that was looked up to, and the batch that reaches over it, if one does.
    end: Offset,
    astride: Option<Offset>,
    /// The log's start at the last look.
    start: Offset,
    /// Counts how often all of it was forgotten.
    era: u64,
}

impl View {
    /// How far everything is decided: no transaction below it is open.
    pub(super) fn last_stable_offset(&self) -> Offset {
        let end = self.astride.map_or(self.end, |astride| astride.min(self.end));
        self.transactions.first_open().map_or(end, |first| first.min(end)).max(self.start)
    }

    /// A number that changes when what was said before may not be true any more.
    pub(super) fn era(&self) -> u64 {
        self.era
    }

    /// True where the batch belongs to an aborted transaction; `None` where that was forgotten, since the batch lies below
    /// the log's start.
    pub(super) fn is_aborted(&self, header: &BatchHeader) -> Option<bool> {
        (header.last_offset() >= self.start).then(|| self.transactions.is_aborted(header))
    }

    pub(super) fn aborted_in(&self, from: Offset, to: Offset) -> Vec<AbortedTransaction> {
        self.transactions.aborted_in(from, to)
    }

    pub(super) fn open(&self) -> Vec<OpenTransaction> {
        self.transactions.open().collect()
    }

    /// The log is another from some place on.
    fn forget(&mut self) {
        *self = Self { era: self.era + 1, ..Self::default() };
    }

    /// Looks at what came and went since the last look. After an error it goes on from where it was.
    pub(super) fn catch_up(&mut self, shared: &Shared, follow: Follow) -> Result<()> {
        let start = shared.start();
        let end = match follow {
            Follow::Written => shared.written(),
            Follow::Durable => shared.durable(),
        };
        if self.end == end && self.start == start {
            return Ok(());
        }
        if end < self.end || self.at.is_some_and(|(_, place)| start > place.next) {
            self.forget();
        }
        if self.at.is_none() {
            self.start = start;
        } else if start > self.start {
            self.move_start(shared, start)?;
        }
        self.walk(shared, (start, end))
    }

    fn walk(&mut self, shared: &Shared, (start, end): (Offset, Offset)) -> Result<()> {
        let segments = shared.segments();
        let from =
            |at: Option<(Offset, Place)>| floor(&segments, at.map_or(start, |(base, _)| base.max(start)));
        if let Some((base, _)) = self.at
            && segments.get(from(self.at)).is_none_or(|segment| segment.base() < base)
        {
            // The segment it stands in was joined with others: compaction works so.
            self.forget();
            self.start = start;
        }
        self.astride = None;
        for segment in segments.iter().skip(from(self.at)) {
            if segment.base() >= end {
                break;
            }
            let (base, begin) = (segment.base(), Place { position: 0, next: segment.base() });
            let mut place = self.at.filter(|at| at.0 == base).map_or(begin, |at| at.1);
            shared.with_segment(segment, Segment::open)?;
            let walked = segment.visit_batches(&mut place, |batch| self.take(batch, end));
            self.at = Some((base, place));
            if !walked? {
                break;
            }
        }
        self.end = end;
        Ok(())
    }

    fn take(&mut self, batch: &mut Visited<'_>, end: Offset) -> Result<Step> {
        let header = batch.header;
        if header.last_offset() >= end {
            // Far ahead is also where damage in a header points.
            if batch.checked()?.is_none() {
                return Ok(Step::Damaged);
            }
            self.astride = Some(header.base_offset());
            return Ok(Step::Stop);
        }
        if header.last_offset() < self.start {
            return Ok(Step::Next);
        }
        let mut marker = None;
        // Those by which an answer changes are looked at whole.
        if self.transactions.begins(header) || self.transactions.may_end(header) {
            let Some(batch) = batch.checked()? else { return Ok(Step::Damaged) };
            marker = header.is_control().then(|| marker_of(&batch)).flatten();
        }
        self.transactions.observe(header, marker);
        Ok(Step::Next)
    }

    /// Retention moved the log's start. A transaction that began before it begins now with what is left of it, or is none
    /// any more: its records cannot be read, so they hold nobody up.
    fn move_start(&mut self, shared: &Shared, start: Offset) -> Result<()> {
        let mut cut: HashMap<i64, Option<Offset>> =
            self.transactions.by_first.range(..start).map(|(_, producer_id)| (*producer_id, None)).collect();
        let mut missing = cut.len();
        let walked = self.at.map_or(start, |(_, place)| place.next);
        let segments = shared.segments();
        for segment in segments.iter().skip(floor(&segments, start)) {
            if missing == 0 || segment.base() >= walked {
                break;
            }
            shared.with_segment(segment, Segment::open)?;
            let mut place = Place { position: 0, next: segment.base() };
            segment.visit_batches(&mut place, |batch| {
                let header = batch.header;
                if missing == 0 || header.base_offset() >= walked {
                    return Ok(Step::Stop);
                }
                let is_left = header.last_offset() >= start && is_of_transaction(header);
                if let Some(first) = cut.get_mut(&header.producer_id()).filter(|_| is_left)
                    && first.is_none()
                {
                    *first = Some(header.base_offset());
                    missing -= 1;
                }
                Ok(Step::Next)
            })?;
        }
        for (producer_id, first) in cut {
            self.transactions.set_first(producer_id, first);
        }
        self.transactions.forget_below(start);
        self.start = start;
        Ok(())
    }
}

/// The place in the set of the segment that would hold `offset`.
fn floor(segments: &[std::sync::Arc<Segment>], offset: Offset) -> usize {
    segments.partition_point(|segment| segment.base() <= offset).saturating_sub(1)
}

/// What readers of either end share.
#[derive(Debug, Default)]
pub(crate) struct Views {
    written: Mutex<View>,
    durable: Mutex<View>,
}

impl Views {
    pub(super) fn lock(&self, follow: Follow) -> MutexGuard<'_, View> {
        match follow {
            Follow::Written => self.written.lock(),
            Follow::Durable => self.durable.lock(),
        }
    }

    /// Forgets everything, and lets nobody look until the guards are dropped: for a follower that found the log to be
    /// another, while it publishes what it is now.
    pub(super) fn forget(&self) -> [MutexGuard<'_, View>; 2] {
        let mut views = [self.written.lock(), self.durable.lock()];
        for view in &mut views {
            view.forget();
        }
        views
    }
}
