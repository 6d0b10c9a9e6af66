//! Producers that number their records: who they are, what they sent last, whether the log has it already.
//!
//! Lives here: the state of all producers of a log, the checks before an append, Kafka's `.snapshot` files, the entries of
//! `.txnindex` for the segment being written, and building all of it anew from the batches.
//! Not here: handing out producer ids, transaction coordinators (a server), what readers of committed records are told.
//! Holds always: the state follows from the batches of the log, in their order; a snapshot saves reading them and
//! decides nothing. A batch changes the state only once it is in the log.

mod admit;
mod check;
mod points;
mod rebuild;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, time::Duration};

pub(crate) use check::Claim;
pub(crate) use points::{ProducerPoint, ProducerPoints};
pub(crate) use rebuild::{Opening, rebuild};
pub(crate) use snapshot::describe as describe_snapshot;
use state::State;

use super::txn_index::AbortedTransaction;
use crate::{
    offset::{Offset, Timestamp},
    record::{BatchRef, ControlType, EndTxnMarker, Scratch, control_type},
    sys::Dir,
};

/// A control record is a few bytes; what unpacks to more is none.
const MARKER_BYTES: u64 = 64 << 10;

/// Who appends records, and the number of the first of them (Kafka: an idempotent producer).
///
/// A producer numbers its records from 0 on, in each log by itself; after `i32::MAX` comes 0 again. A call that is made
/// again with the same numbers, since its answer was lost, is recognised over the producer's last five batches, also after
/// a restart, and appends nothing: [`Appended::duplicate`](crate::Appended::duplicate). Of batches that retention has
/// deleted only the producer's last is known after a restart; the others are refused then
/// ([`Error::OutOfOrderSequence`](crate::Error::OutOfOrderSequence)), never appended twice. Ids are the caller's to hand
/// out; two producers must not have the same.
///
/// ```
/// use stratalog::{AppendOptions, LogConfig, LogWriter, OpenMode, Producer, record::Record};
///
/// # let temp = tempfile::tempdir().unwrap();
/// # let dir = temp.path().join("orders-0");
/// # let mut config = LogConfig::default();
/// # config.open = OpenMode::CreateIfMissing;
/// # let mut log = LogWriter::open(&dir, config)?;
/// let mut options = AppendOptions::default();
/// options.producer = Some(Producer { id: 7, epoch: 0, sequence: 0 });
/// let records = [Record::value_only(b"a"), Record::value_only(b"b")];
/// let first = log.append_records(&records, options)?;
///
/// // The answer was lost: the same call again finds what it did.
/// let again = log.append_records(&records, options)?;
/// assert!(again.duplicate && !first.duplicate);
/// assert_eq!((again.base_offset, log.end().value()), (first.base_offset, 2));
///
/// // The next call goes on with the next number.
/// options.producer = Some(Producer { id: 7, epoch: 0, sequence: 2 });
/// log.append_records(&[Record::value_only(b"c")], options)?;
/// # Ok::<(), stratalog::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Producer {
    /// Its id, not negative.
    pub id: i64,
    /// Its epoch, not negative. A larger one fences off whoever goes on with a smaller, and begins at sequence 0.
    pub epoch: i16,
    /// The sequence number of the call's first record, not negative.
    pub sequence: i32,
}

/// What a log knows of one of its producers (Kafka: `DescribeProducers`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducerInfo {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// The sequence number of its last record in this epoch; -1 where it has none.
    pub last_sequence: i32,
    /// The offset of that record. It may have been deleted since.
    pub last_offset: Option<Offset>,
    /// The largest timestamp of its last batch, or of the marker that ended its last transaction.
    pub last_timestamp: Timestamp,
    /// The epoch of the coordinator that wrote that marker; -1 where there was none.
    pub coordinator_epoch: i32,
    /// The first offset of its open transaction.
    pub transaction_start: Option<Offset>,
}

/// What the marker at the end of a transaction says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) is_abort: bool,
    pub(crate) coordinator_epoch: i32,
    pub(crate) timestamp: Timestamp,
}

/// A writer's producers.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    state: State,
    /// The snapshots that the directory has.
    files: BTreeSet<Offset>,
    /// The state came from a snapshot, which keeps one batch of each producer. The log below it may hold more, and was
    /// not asked yet.
    recall_below: Option<Offset>,
    /// Aborted transactions that are not in the transaction index of their segment yet.
    aborted: Vec<(Offset, AbortedTransaction)>,
    /// When it was last looked who expired, by the monotonic clock.
    swept: Duration,
}

/// What is wrong with the snapshot of `offset`; `None` where it is right, or gone.
pub(crate) fn snapshot_flaw(dir: &Dir, offset: Offset) -> Option<String> {
    snapshot::load(dir, offset)?.err()
}

/// What a control batch says, if it ends a transaction. One whose record cannot be read, or is gone, says nothing.
pub(crate) fn marker_of(batch: &BatchRef<'_>) -> Option<Marker> {
    let mut scratch = Scratch::with_limit(MARKER_BYTES);
    let record = batch.records(&mut scratch).ok()?.next()?.ok()?;
    let is_abort = match control_type(record.key()?).ok()? {
        ControlType::Abort => true,
        ControlType::Commit => false,
        _ => return None,
    };
    let coordinator_epoch = EndTxnMarker::parse(record.value()?).ok()?.coordinator_epoch;
    Some(Marker { is_abort, coordinator_epoch, timestamp: record.timestamp() })
}
