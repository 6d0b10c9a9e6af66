//! Keeping `__consumer_offsets` small: what still counts is written once more at the end of a partition's log, and then all
//! before it goes.
//!
//! A log is never rewritten in place. After a crash between the two steps it holds some records twice, which changes
//! nothing: of two the later one counts.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;

use super::{CONSUMER_OFFSETS, CommittedOffsets, partition_of};
use crate::{
    Follow, Isolation, Offset, Timestamp,
    server::{error_code::Refusal, topics::Partition},
};

/// Fewer records than this are not worth it.
pub(crate) const MIN_RECORDS: u64 = 50_000;
/// A partition is compacted when it has so many records for each that counts.
const RECORDS_PER_LIVE: u64 = 4;

/// A partition's records, by key.
type Live = BTreeMap<Vec<u8>, Vec<u8>>;

/// What is known of a partition's records, and who may write to it.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Held for reading by who appends; for writing while what counts is written once more, so that nothing is missed.
    pub(super) lock: RwLock<()>,
    /// Records in the log, about.
    written: AtomicU64,
    /// Those of them that count, when that was last found out.
    live: AtomicU64,
}

impl Gate {
    pub(super) fn note(&self, records: usize) {
        self.written.fetch_add(u64::try_from(records).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn is_due(&self, min_records: u64) -> bool {
        let live = self.live.load(Ordering::Relaxed);
        self.written.load(Ordering::Relaxed) > live.saturating_mul(RECORDS_PER_LIVE).max(min_records)
    }
}

impl CommittedOffsets {
    pub(super) fn gate(&self, partition: i32) -> Arc<Gate> {
        let known = self.gates.read().get(&partition).cloned();
        known.unwrap_or_else(|| Arc::clone(self.gates.write().entry(partition).or_default()))
    }

    /// After all was read: how much of each partition counts.
    pub(super) fn count_live(&self, partition_count: i32) {
        let mut counts: HashMap<i32, usize> = HashMap::new();
        for (group, offsets) in &*self.groups.read() {
            *counts.entry(partition_of(group, partition_count)).or_default() += offsets.len();
        }
        for (number, count) in counts {
            self.gate(number).live.store(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Compacts the partitions that have many more records than count, and at least so many.
    pub(crate) fn compact(&self, min_records: u64, now: Timestamp) {
        let due: Vec<_> = self
            .gates
            .read()
            .iter()
            .filter(|(_, gate)| gate.is_due(min_records))
            .map(|(number, gate)| (*number, Arc::clone(gate)))
            .collect();
        for (number, gate) in due {
            let Some(partition) = self.topics.partition(CONSUMER_OFFSETS, number) else { continue };
            let before = gate.written.load(Ordering::Relaxed);
            match compact_partition(&partition, &gate, now) {
                Ok(Some(live)) => {
                    tracing::info!(partition = number, before, after = live, "committed offsets compacted");
                }
                Ok(None) => {
                    tracing::debug!(partition = number, "a transaction is open: not compacted");
                    // Looked at again when as much has come once more.
                    gate.live.store(before, Ordering::Relaxed);
                }
                Err(refusal) => {
                    tracing::warn!(partition = number, %refusal, "committed offsets cannot be compacted");
                    gate.live.store(before, Ordering::Relaxed);
                }
            }
        }
    }
}

/// How many records count. `None`: some of them cannot be told yet.
fn compact_partition(partition: &Partition, gate: &Gate, now: Timestamp) -> Result<Option<u64>, Refusal> {
    let mut live = Live::new();
    // Most of it while others write, the rest while nobody does.
    let start = partition.log().start()?;
    let (next, _) = read(partition, start, &mut live)?;
    let alone = gate.lock.write();
    let (_, is_whole) = read(partition, next, &mut live)?;
    if !is_whole {
        return Ok(None);
    }
    partition.log().roll()?;
    let base = partition.log().end()?;
    let records: Vec<_> = live.into_iter().map(|(key, value)| (key, Some(value))).collect();
    let (pending, appended) = super::append(partition, &records, now, |_, _, _| ());
    appended?;
    let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
    gate.written.store(count, Ordering::Relaxed);
    gate.live.store(count, Ordering::Relaxed);
    drop(alone);
    // Nothing goes before what stands for it is safe.
    match pending {
        Some(pending) => drop(pending.wait()?),
        None => drop(partition.log().sync()?),
    }
    partition.log().advance_start(base)?;
    partition.log().maintain()?;
    Ok(Some(count))
}

/// Takes over what counts from an offset on. Returns where it ended, and whether that is the log's end.
fn read(partition: &Partition, from: Offset, live: &mut Live) -> Result<(Offset, bool), Refusal> {
    let reader = partition.reader()?;
    let mut options = reader.options();
    options.follow = Follow::Written;
    options.isolation = Isolation::Committed;
    let reader = reader.with_options(options);
    let end = reader.end();
    let mut records = reader.records(from);
    let mut next = from;
    while next < end
        && let Some(found) = records.next_record()?
    {
        next = Offset::new(found.offset().value().saturating_add(1)).unwrap_or(found.offset());
        match (found.key(), found.value()) {
            (Some(key), Some(value)) => {
                live.insert(key.to_vec(), value.to_vec());
            }
            (Some(key), None) => {
                live.remove(key);
            }
            // No broker reads it either.
            (None, _) => {}
        }
    }
    Ok((next, end == partition.log().end()?))
}
