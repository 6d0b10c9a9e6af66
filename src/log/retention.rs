//! Which whole segments may go, and letting them go.
//!
//! The decision is a pure function of sizes, times and settings. Dropping is: checkpoint with the new start, publish,
//! unlink oldest first. Open files keep their inodes, so readers and slices go on; nothing is renamed and nothing waits.
//! On a disk without room for a new checkpoint the old one is changed in its place, and where that cannot be done either the
//! indexes of what is to go make room for it.

use std::{sync::Arc, time::Duration};

use super::writer::{LogWriter, earlier};
use crate::{
    config::{FsyncPolicy, Retention},
    error::{Error, Result},
    offset::{Offset, Timestamp},
    segment::{FileKind, Segment, file_name},
};

/// What a pass of [`LogWriter::maintain`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Maintenance {
    /// A sync was due and made everything durable.
    pub synced: bool,
    /// A recovery point was due and written.
    pub checkpointed: bool,
    /// Segments dropped.
    pub dropped_segments: usize,
    /// Bytes of `.log` files dropped.
    pub dropped_bytes: u64,
    /// The first readable offset now.
    pub start: Offset,
    /// Retention by age was put off: the clock says that everything is too old at once, and more wall time has passed
    /// since the last pass than real time.
    pub clock_jumped: bool,
}

/// What the decision needs to know of a segment.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    bytes: u64,
    /// The newest record's time; the file's where no record has one.
    newest: Timestamp,
}

/// When the last pass was, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastPass {
    pub(super) wall: Timestamp,
    pub(super) monotonic: Duration,
}

/// How far the wall clock may run ahead of real time between two passes before it is doubted.
const CLOCK_SLACK_MS: i64 = 60_000;

/// How many of the oldest segments go by size: while what remains is at least the limit. `sealed` are all but the last.
fn by_size(sealed: &[Candidate], total_bytes: u64, limit: Option<u64>) -> usize {
    let Some(limit) = limit else { return 0 };
    let mut left = total_bytes;
    sealed
        .iter()
        .take_while(|candidate| {
            let fits = left - candidate.bytes >= limit;
            if fits {
                left -= candidate.bytes;
            }
            fits
        })
        .count()
}

/// How many of the oldest segments go by age: those whose newest record is older than the limit. One that is not keeps
/// all after it.
fn by_age(all: &[Candidate], oldest_kept: Option<Timestamp>) -> usize {
    let Some(oldest_kept) = oldest_kept else { return 0 };
    all.iter().take_while(|candidate| candidate.newest < oldest_kept).count()
}

impl LogWriter {
    /// What an idle log needs from time to time (each second, say): due syncs, the recovery point, retention, memory
    /// given back. Nothing here happens by itself.
    pub fn maintain(&mut self) -> Result<Maintenance> {
        self.maintain_with(true)
    }

    /// The same without retention, for who looks at that less often.
    pub fn tend(&mut self) -> Result<Maintenance> {
        self.maintain_with(false)
    }

    fn maintain_with(&mut self, retains: bool) -> Result<Maintenance> {
        self.shared.check_writable()?;
        let mut done = Maintenance::default();
        let now = self.now();
        let policy = self.config.fsync;
        if policy != FsyncPolicy::Never && self.syncer.is_due(policy, &self.shared, || now) {
            self.sync()?;
            done.synced = true;
        }
        self.sweep_producers();
        if retains {
            self.retain(&mut done)?;
        }
        if self.keeper.is_due(&self.syncer, now) && !self.is_untouched {
            self.keeper.checkpoint(&self.shared, &self.syncer, &self.config)?;
            done.checkpointed = true;
        }
        if !std::mem::take(&mut self.is_busy) {
            self.rest();
        }
        self.note_progress();
        done.start = self.start();
        Ok(done)
    }

    fn retain(&mut self, done: &mut Maintenance) -> Result<()> {
        let Retention { bytes, age } = self.config.retention;
        let (wall, monotonic) = (self.config.clock.now(), self.now());
        let last = self.last_pass.replace(LastPass { wall, monotonic });
        let segments = self.shared.segments();
        let start = self.start();
        // What lies wholly below the start goes first and counts for nothing else.
        let below = segments.iter().skip(1).take_while(|next| next.base() <= start).count();
        let rest = &segments[below..];
        let mut candidates = Vec::with_capacity(rest.len());
        if bytes.is_some() || age.is_some() {
            for segment in rest {
                candidates.push(self.candidate(segment, age.is_some())?);
            }
        }
        let sealed = candidates.len().saturating_sub(1);
        let total = candidates.iter().map(|candidate| candidate.bytes).sum();
        let by_size = by_size(&candidates[..sealed], total, bytes);
        let mut by_age = by_age(&candidates, age.map(|age| earlier(wall, age)));
        let empties = by_age > 0 && by_age == candidates.len() && !self.active.is_empty();
        if empties && last.is_some_and(|last| has_jumped(last, wall, monotonic)) {
            tracing::warn!(dir = %self.path().display(), "the clock jumped: retention by age would drop everything, and is put off");
            done.clock_jumped = true;
            by_age = 0;
        } else if empties {
            // The records of the active segment are too old as well. Its offsets live on in the next one's name.
            self.sync()?;
            self.roll()?;
        } else {
            by_age = by_age.min(sealed);
        }
        self.drop_oldest(below + by_size.max(by_age), done)
    }

    fn candidate(&self, segment: &Arc<Segment>, needs_time: bool) -> Result<Candidate> {
        let bytes = u64::from(segment.end().position);
        let newest = match self.shared.with_segment(segment, Segment::largest) {
            _ if !needs_time => Timestamp::NONE,
            Ok(Some((newest, _))) => newest,
            Ok(None) => self.file_time(segment)?,
            Err(error) => {
                tracing::warn!(%error, "retention: a segment's times cannot be read; kept");
                Timestamp::from_millis(i64::MAX)
            }
        };
        Ok(Candidate { bytes, newest })
    }

    fn file_time(&self, segment: &Segment) -> Result<Timestamp> {
        let stat = self.shared.dir.stat(segment.log_name())?;
        Ok(Timestamp::from_millis(stat.map_or(i64::MAX, |stat| stat.mtime_ms)))
    }

    /// Makes `start` the first readable offset. Records below it are gone for readers when this returns; files that hold
    /// nothing else go with the next [`LogWriter::maintain`]. A start at or below the present one changes nothing; one
    /// past the end is [`Error::OffsetOutOfRange`].
    pub fn advance_start(&mut self, start: Offset) -> Result<()> {
        self.shared.check_writable()?;
        if start > self.end() {
            return Err(Error::OffsetOutOfRange { requested: start, start: self.start(), end: self.end() });
        }
        if start <= self.start() {
            return Ok(());
        }
        if start > self.durable_end() {
            self.sync()?;
        }
        self.begin_changes()?;
        let segments = self.shared.segments();
        let below = segments.iter().skip(1).take_while(|next| next.base() <= start).count();
        self.move_start_over(start, &segments[..below])
    }

    /// The checkpoint first: a start that readers saw must not go back.
    pub(super) fn move_start(&mut self, start: Offset) -> Result<()> {
        self.keeper.checkpoint_with_start(start, &self.shared, &self.syncer, &self.config)?;
        self.shared.publish_start(start);
        // The start has moved, durably: epochs of records that are gone are no reason to say it had not.
        let changed =
            self.shared.change_epochs(self.config.file_mode, |epochs| epochs.truncate_from_start(start));
        if let Err(error) = changed {
            tracing::warn!(%error, "leader epochs below the start stay for now");
        }
        Ok(())
    }

    /// The same on a disk that may be so full that the checkpoint finds no block: the indexes of the segments that lie
    /// wholly below the start make room for it.
    fn move_start_over(&mut self, start: Offset, going: &[Arc<Segment>]) -> Result<()> {
        match self.move_start(start) {
            Err(Error::StorageFull { .. }) if !going.is_empty() => {
                self.give_up_indexes(going);
                self.move_start(start)
            }
            moved => moved,
        }
    }

    /// Should the checkpoint not be written after all, these are built anew from their segments.
    fn give_up_indexes(&self, going: &[Arc<Segment>]) {
        for segment in going {
            // An open file keeps its blocks.
            segment.close_files();
            for kind in [FileKind::Index, FileKind::TimeIndex] {
                if let Err(error) = self.shared.dir.remove(file_name(segment.base(), kind)) {
                    tracing::warn!(%error, "a dropped segment's index stays");
                }
            }
        }
    }

    fn drop_oldest(&mut self, count: usize, done: &mut Maintenance) -> Result<()> {
        let segments = self.shared.segments();
        let count = count.min(segments.len().saturating_sub(1));
        if count == 0 {
            return Ok(());
        }
        self.begin_changes()?;
        let kept_from = segments[count].base();
        let start = self.start().max(kept_from);
        if start > self.durable_end() || self.syncer.synced().base < kept_from {
            self.sync()?;
        }
        // A recovery point inside a segment that goes would count no more, and with none a power cut's holes would stay.
        if start > self.start() || self.keeper.point_base() < Some(kept_from) {
            self.move_start_over(start, &segments[..count])?;
        }
        self.shared.publish_segments(segments[count..].to_vec());
        for segment in &segments[..count] {
            for name in segment.file_names() {
                // A file that cannot be removed stays for the next open; it holds nothing that can be read.
                if let Err(error) = self.shared.dir.remove(&name) {
                    tracing::warn!(%error, "a dropped segment's file stays");
                }
            }
            done.dropped_segments += 1;
            done.dropped_bytes += u64::from(segment.end().position);
        }
        self.drop_snapshots(kept_from);
        tracing::info!(dir = %self.path().display(), segments = count, start = %start, "segments dropped");
        self.syncer.note_names();
        Ok(self.shared.dir.sync()?)
    }
}

fn has_jumped(last: LastPass, wall: Timestamp, monotonic: Duration) -> bool {
    let real_ms = super::writer::millis(monotonic.saturating_sub(last.monotonic));
    wall.millis().saturating_sub(last.wall.millis()) > real_ms.saturating_add(CLOCK_SLACK_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(sizes: &[u64]) -> Vec<Candidate> {
        sizes.iter().map(|bytes| Candidate { bytes: *bytes, newest: Timestamp::NONE }).collect()
    }

    #[test]
    fn size_never_goes_below_the_limit() {
        // 1, 2 and (active) 1 MiB.
        let sealed = sized(&[1 << 20, 2 << 20]);
        assert_eq!(by_size(&sealed, 4 << 20, Some(2 << 20)), 1);
        assert_eq!(by_size(&sealed, 4 << 20, Some(3 << 20)), 1);
        assert_eq!(by_size(&sealed, 4 << 20, Some((3 << 20) + 1)), 0);
        assert_eq!(by_size(&sealed, 4 << 20, Some(0)), 2);
        assert_eq!(by_size(&sealed, 4 << 20, None), 0);
        assert_eq!(by_size(&sized(&[1 << 40, 1 << 40]), 3 << 40, Some(1 << 40)), 2, "64-bit totals");
    }

    #[test]
    fn age_keeps_what_is_exactly_as_old_and_all_after_it() {
        let all: Vec<_> =
            [10, 20, 15].map(|at| Candidate { bytes: 1, newest: Timestamp::from_millis(at) }).to_vec();
        let kept_from = |at| Some(Timestamp::from_millis(at));
        assert_eq!(by_age(&all, kept_from(10)), 0);
        assert_eq!(by_age(&all, kept_from(11)), 1);
        assert_eq!(by_age(&all, kept_from(20)), 1);
        assert_eq!(by_age(&all, kept_from(21)), 3);
        assert_eq!(by_age(&all, None), 0);
    }

    #[test]
    fn a_wall_clock_that_outruns_real_time_has_jumped() {
        let last = LastPass { wall: Timestamp::from_millis(1000), monotonic: Duration::ZERO };
        let hour = Timestamp::from_millis(1000 + 3_600_000);
        assert!(has_jumped(last, hour, Duration::from_secs(10)));
        assert!(!has_jumped(last, hour, Duration::from_secs(3_600)));
        assert!(!has_jumped(last, Timestamp::from_millis(i64::MIN), Duration::from_secs(1)), "backwards");
    }
}
