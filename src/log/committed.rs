//! What readers are told of transactions.

use std::ops::Range;

use super::{
    reader::{LogReader, RETRIES, is_gone},
    transactions::{OpenTransaction, View},
    txn_index::AbortedTransaction,
};
use crate::{error::Result, offset::Offset, record::BatchHeader};

impl LogReader {
    /// How far everything is decided (Kafka: the last stable offset): the first offset of the oldest transaction that is
    /// open at the end this reader follows, or that end. A reader of the durable end takes a transaction for open until its
    /// marker is durable.
    ///
    /// The same for both kinds of [`Isolation`](crate::Isolation). A transaction that began below the log's start begins
    /// with the first of its records that is left. A damaged batch says nothing: where it was a marker, its transaction
    /// stays open until the producer's next.
    pub fn last_stable_offset(&self) -> Result<Offset> {
        self.check_follow()?;
        self.stable_end()
    }

    /// The transactions that were aborted and that a reader of `range` must leave out, by rising last offset, as a
    /// broker's answer to a fetch lists them: those with a record below the range's end whose marker is at or past its
    /// start and below the end that this reader follows. Those wholly below the log's start are not known any more.
    pub fn aborted_transactions(&self, range: Range<Offset>) -> Result<Vec<AbortedTransaction>> {
        self.check_follow()?;
        self.with_transactions(|view| view.aborted_in(range.start, range.end))
    }

    /// The transactions that are open at the end that this reader follows, oldest first.
    pub fn open_transactions(&self) -> Result<Vec<OpenTransaction>> {
        self.check_follow()?;
        self.with_transactions(View::open)
    }

    pub(super) fn stable_end(&self) -> Result<Offset> {
        self.with_transactions(View::last_stable_offset)
    }

    /// The last stable offset as far as the log was looked at.
    pub(super) fn known_stable_end(&self) -> Offset {
        self.shared().transactions.lock(self.options().follow).last_stable_offset()
    }

    /// The last stable offset, and the era that it and what [`LogReader::is_aborted`] says is of.
    pub(super) fn stable_era(&self) -> Result<(Offset, u64)> {
        self.with_transactions(|view| (view.last_stable_offset(), view.era()))
    }

    /// True where the batch belongs to an aborted transaction; `None` where that cannot be said any more: the log's start
    /// has passed it, or the log is another than it was in `era`.
    pub(super) fn is_aborted(&self, header: &BatchHeader, era: u64) -> Option<bool> {
        let view = self.shared().transactions.lock(self.options().follow);
        (view.era() == era).then(|| view.is_aborted(header)).flatten()
    }

    fn with_transactions<T>(&self, look: impl Fn(&View) -> T) -> Result<T> {
        let mut tries = 1..RETRIES;
        loop {
            let mut view = self.shared().transactions.lock(self.options().follow);
            match view.catch_up(self.shared(), self.options().follow) {
                Ok(()) => return Ok(look(&view)),
                // A segment went under the look; never looked for with the lock held.
                Err(error) if is_gone(&error) && tries.next().is_some() => {
                    drop(view);
                    self.look_again()?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
