//! Where the writer asks and tells its producers: before an append, after it, at a roll, at close, from time to time.

use std::collections::HashMap;

use super::{
    ProducerInfo,
    check::{Admission, Claim},
    snapshot,
    state::{BATCHES_KEPT, SentBatch},
};
use crate::{
    error::{Error, Result},
    log::{
        pending::{Appended, Durability},
        txn_index,
        writer::{LogWriter, millis},
    },
    offset::Offset,
    record::TimestampType,
    segment::{FileKind, file_name},
    sys::Open,
};

/// How often it is looked who expired (Kafka: `producer.id.expiration.check.interval.ms`).
const SWEEP_AFTER: std::time::Duration = std::time::Duration::from_secs(600);
/// How much of the log is read for batches that a snapshot left out: whole segments until this is exceeded.
const RECALL_BYTES: u64 = 64 << 20;

impl LogWriter {
    /// Decides about the batches of a call that producers numbered. `Some` answers it: the log has them already.
    pub(in crate::log) fn admit(&mut self, claims: &[Claim]) -> Result<Option<Appended>> {
        let end = self.end();
        let mut admission = self.producers.state.check(claims, end);
        if matches!(admission, Err(Error::OutOfOrderSequence { .. })) && self.recall()? {
            admission = self.producers.state.check(claims, end);
        }
        let Admission::Duplicate { first_offset, last_offset, timestamp } = admission? else {
            return Ok(None);
        };
        let is_stamped = self.config.timestamp_type == TimestampType::LogAppendTime;
        Ok(Some(Appended {
            base_offset: first_offset,
            last_offset,
            append_time: is_stamped.then_some(timestamp),
            durability: Durability::Written,
            duplicate: true,
        }))
    }

    /// The same for the batches of the call that is at hand.
    pub(in crate::log) fn admit_stage(&mut self) -> Result<Option<Appended>> {
        let claims = std::mem::take(&mut self.stage.claims);
        let admission = self.admit(&claims);
        self.stage.claims = claims;
        admission
    }

    /// True where batches are neither refused nor known already, as far as that can be told without asking the log.
    pub(in crate::log) fn would_append(&self, claims: &[Claim]) -> bool {
        matches!(self.producers.state.check(claims, self.end()), Ok(Admission::Append))
    }

    /// Asks the log for batches that a snapshot left out: it keeps one of each producer, and five are to be recognised.
    /// Once after each open, and only for a batch that would be refused. True where there may be more now.
    fn recall(&mut self) -> Result<bool> {
        let Some(below) = self.producers.recall_below.take() else { return Ok(false) };
        let mut older: HashMap<i64, Vec<SentBatch>> = HashMap::new();
        let mut bytes = 0;
        let segments = self.shared.segments();
        for segment in segments.iter().rev().filter(|segment| segment.base() < below) {
            let mut found: HashMap<i64, Vec<SentBatch>> = HashMap::new();
            let state = &self.producers.state;
            self.shared.with_segment(segment, |segment| {
                found.clear();
                segment
                    .visit_headers(0, |header| {
                        let entry = state.entry(header.producer_id());
                        let is_wanted = entry.is_some_and(|entry| {
                            entry.is_partial
                                && entry.epoch == header.producer_epoch()
                                && !header.is_control()
                                && entry
                                    .sent()
                                    .next()
                                    .is_none_or(|oldest| header.last_offset() < oldest.first_offset())
                        });
                        if is_wanted && header.last_offset() < below {
                            let batches = found.entry(header.producer_id()).or_default();
                            if batches.len() == BATCHES_KEPT {
                                batches.remove(0);
                            }
                            batches.push(SentBatch::of(header));
                        }
                    })
                    .map(drop)
            })?;
            for (id, mut batches) in found {
                let known = older.entry(id).or_default();
                batches.append(known);
                *known = batches;
            }
            bytes += u64::from(segment.end().position);
            if bytes > RECALL_BYTES {
                break;
            }
        }
        for (id, batches) in &older {
            if let Some(entry) = self.producers.state.entry_mut(*id) {
                entry.remember(batches);
            }
        }
        Ok(!older.is_empty())
    }

    /// Takes in the batches that were just written.
    pub(in crate::log) fn take_in_producers(&mut self) {
        let mut markers = self.stage.markers.iter().peekable();
        let base = self.active.base();
        for (index, header) in self.stage.headers.iter().enumerate() {
            let marker = markers.next_if(|(at, _)| *at == index).map(|(_, marker)| *marker);
            let aborted = self.producers.state.apply(header, marker);
            self.producers.aborted.extend(aborted.map(|aborted| (base, aborted)));
        }
        self.keeper.producer_points().note_nobody(self.producers.state.is_empty());
        if let Err(error) = self.write_txn_index() {
            tracing::warn!(%error, "an aborted transaction is not in the transaction index yet");
        }
    }

    /// Adds what was aborted to the transaction indexes. They are hints for readers here and the truth for a broker that
    /// finds its clean marker, so what cannot be written is tried again, and keeps the log from being closed cleanly.
    pub(in crate::log) fn write_txn_index(&mut self) -> Result<()> {
        while let Some((base, aborted)) = self.producers.aborted.first().copied() {
            let name = file_name(base, FileKind::TxnIndex);
            let mode = self.config.file_mode;
            let file = self.shared.dir.open_file(&name, Open::CreateOrOpen { mode })?;
            let len = file.len()?;
            // A part of an entry is what a failed write left.
            let whole = len - len % txn_index::ENTRY_BYTES as u64;
            file.write_all_at(&aborted.to_bytes(), whole)?;
            self.keeper.note_txn_index(base);
            self.producers.aborted.remove(0);
        }
        Ok(())
    }

    /// Writes the state as of `offset`, the log's end. A log that never had a producer has no snapshots. Failing costs the next
    /// open a longer look at the log.
    pub(in crate::log) fn snapshot_producers(&mut self, offset: Offset) {
        let producers = &mut self.producers;
        if producers.state.is_empty() && producers.files.is_empty() {
            return;
        }
        match snapshot::store(&self.shared.dir, offset, &producers.state, self.config.file_mode) {
            Ok(crc) => {
                producers.files.insert(offset);
                self.keeper.producer_points().note_snapshot(offset, crc);
            }
            Err(error) => tracing::warn!(%error, "producers not written down"),
        }
    }

    /// Takes away snapshots below `from` once there is one from there on, and those that no segment begins with but the
    /// newest: what Kafka does with its own. One that the checkpoint names stays until the next.
    pub(in crate::log) fn drop_snapshots(&mut self, from: Offset) {
        let files = &mut self.producers.files;
        let Some(newest) = files.last().copied() else { return };
        let segments = self.shared.segments();
        let is_base = |at: Offset| segments.binary_search_by_key(&at, |segment| segment.base()).is_ok();
        if newest < from {
            return;
        }
        let points = self.keeper.producer_points();
        let is_old = |at: &Offset| *at < newest && (*at < from || !is_base(*at)) && !points.names(*at);
        let going: Vec<Offset> = files.iter().copied().filter(is_old).collect();
        for at in going {
            match self.shared.dir.remove(file_name(at, FileKind::Snapshot)) {
                Ok(_) => {
                    files.remove(&at);
                }
                Err(error) => tracing::warn!(%error, "an old snapshot stays"),
            }
        }
    }

    /// Forgets producers that expired, now and then.
    pub(in crate::log) fn sweep_producers(&mut self) {
        let now = self.now();
        if self.producers.state.is_empty() || now.saturating_sub(self.producers.swept) < SWEEP_AFTER {
            return;
        }
        self.producers.swept = now;
        let after_ms = millis(self.config.producer_expiration);
        if self.producers.state.expire(self.config.clock.now(), after_ms) {
            self.keeper.producer_points().note_nobody(self.producers.state.is_empty());
        }
    }

    /// What the log knows of its producers, by rising id: those that numbered records here and have not expired
    /// ([`LogConfig::producer_expiration`](crate::LogConfig::producer_expiration)).
    pub fn producers(&self) -> Vec<ProducerInfo> {
        self.producers.state.describe()
    }
}
