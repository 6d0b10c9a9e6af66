//! Adding to the active segment, and sealing it.
//!
//! A write happens in three steps, so that a failure at any of them leaves nothing behind that anybody can see: room is
//! reserved (the only step that needs new blocks), bytes are written past the published end, and only then index entries
//! are stored and the end is moved. What a failed write left is cut off at once: the next append might cover only a part of
//! it, and a crash then make batches of the rest that nobody was told of.

use std::sync::Arc;

use super::{
    Opened, Segment, SegmentEnd, SegmentSettings, batch_at, file_name, fits_segment, name::FileKind,
};
use crate::{
    config::{LogConfig, Preallocate},
    error::{Error, Result},
    index::{Append, IndexPacer, OffsetIndex, TimeIndex},
    offset::{Offset, Timestamp},
    record::BatchHeader,
    sys::{Dir, File, Open, Preallocated},
};

/// The first and the largest step of a stepped reservation, and the largest that a new segment begins with: a log that
/// rolls is busy, and one that falls idle afterwards still takes less than 1 MiB.
const FIRST_STEP_BYTES: u64 = 64 << 10;
const LARGEST_FIRST_STEP_BYTES: u64 = 512 << 10;
const LARGEST_STEP_BYTES: u64 = 64 << 20;
/// How often free space is looked at where nothing is reserved ahead.
const FREE_SPACE_STEP_BYTES: u64 = 1 << 20;

/// The one who adds to a segment.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    segment: Arc<Segment>,
    opened: Arc<Opened>,
    position: u64,
    next: Offset,
    /// Blocks are there, or free space was looked at, up to here.
    reserved: u64,
    step: u64,
    /// Reserving does not work here; files grow as they are written.
    cannot_reserve: bool,
    /// A write failed: bytes past the end may be whole batches that nobody was told of.
    is_torn: bool,
    pacer: IndexPacer,
    pace: Pace,
}

/// By what a segment's age is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The largest timestamp of the first batch.
    pub(crate) first_timestamp: Option<Timestamp>,
    /// When the segment was begun, for records without timestamps.
    pub(crate) begun: Timestamp,
}

/// What an append is about to add.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) bytes: u64,
    pub(crate) batches: u32,
    pub(crate) last_offset: Offset,
    pub(crate) max_timestamp: Timestamp,
}

impl SegmentWriter {
    /// Begins an empty segment. Names that were made are taken away again where not all could be.
    pub(crate) fn create(dir: &Arc<Dir>, base: Offset, config: &LogConfig) -> Result<Self> {
        Self::try_create(dir, base, config).inspect_err(|_| {
            for kind in [FileKind::TimeIndex, FileKind::Index, FileKind::Log] {
                let name = file_name(base, kind);
                // Only what this call can have made: an empty file.
                if dir.stat(&name).is_ok_and(|stat| stat.is_some_and(|stat| stat.len == 0)) {
                    let _ = dir.remove(&name);
                }
            }
        })
    }

    fn try_create(dir: &Arc<Dir>, base: Offset, config: &LogConfig) -> Result<Self> {
        let mode = config.file_mode;
        let log = Arc::new(dir.open_file(file_name(base, FileKind::Log), Open::CreateNew { mode })?);
        // Indexes of that name without a log are leftovers of a crash.
        let (index, times) = (file_name(base, FileKind::Index), file_name(base, FileKind::TimeIndex));
        for leftover in [&index, &times, &file_name(base, FileKind::TxnIndex)] {
            dir.remove(leftover)?;
        }
        let bytes = config.segment_index_bytes;
        let opened = Arc::new(Opened {
            log,
            offsets: Arc::new(OffsetIndex::create(dir, index, base, bytes, mode)?),
            times: Arc::new(TimeIndex::create(dir, times, base, bytes, mode)?),
        });
        let end = SegmentEnd { position: 0, next: base };
        let segment = Arc::new(Segment::new(Arc::clone(dir), base, end, settings(config)));
        segment.set_largest(None, 0);
        let pace = Pace { first_timestamp: None, begun: config.clock.now() };
        Ok(Self::over(segment, opened, IndexPacer::new(config.index_interval_bytes), pace))
    }

    /// Goes on with a segment whose files end where it does.
    pub(crate) fn resume(
        dir: &Arc<Dir>,
        segment: Arc<Segment>,
        pace: Pace,
        config: &LogConfig,
    ) -> Result<Self> {
        let base = segment.base();
        let log = Arc::new(dir.open_file(segment.log_name(), Open::ReadWrite)?);
        // Before the time index is gone on with: it must end with the largest timestamp there is.
        segment.largest()?;
        let (index, times) = (file_name(base, FileKind::Index), file_name(base, FileKind::TimeIndex));
        let (bytes, mode) = (config.segment_index_bytes, config.file_mode);
        let open = || -> crate::sys::Result<(OffsetIndex, TimeIndex)> {
            Ok((
                OffsetIndex::open_active(dir, &index, base, bytes, mode)?,
                TimeIndex::open_active(dir, &times, base, bytes, mode)?,
            ))
        };
        let opened = match open() {
            Ok((offsets, times)) if segment.may_be_right(&offsets, &times) => {
                Arc::new(Opened { log, offsets: Arc::new(offsets), times: Arc::new(times) })
            }
            // Rebuilt from the batches; where the disk is full, in memory.
            _ => {
                let rebuilt = segment.rebuild("not usable for appending")?;
                match open() {
                    Ok((offsets, times)) if segment.may_be_right(&offsets, &times) => {
                        Arc::new(Opened { log, offsets: Arc::new(offsets), times: Arc::new(times) })
                    }
                    _ => Arc::new(Opened {
                        log,
                        offsets: Arc::clone(&rebuilt.offsets),
                        times: Arc::clone(&rebuilt.times),
                    }),
                }
            }
        };
        let pacer = IndexPacer::resume(config.index_interval_bytes, opened.times.last());
        Ok(Self::over(segment, opened, pacer, pace))
    }

    fn over(segment: Arc<Segment>, opened: Arc<Opened>, pacer: IndexPacer, pace: Pace) -> Self {
        segment.set_sealed(false);
        segment.trust_times();
        segment.set_opened(Arc::clone(&opened));
        let end = segment.end();
        let position = u64::from(end.position);
        Self {
            segment,
            opened,
            position,
            next: end.next,
            reserved: position,
            step: FIRST_STEP_BYTES,
            cannot_reserve: false,
            is_torn: false,
            pacer,
            pace,
        }
    }

    /// Reserves as fast as the segment before did.
    pub(crate) fn keep_pace_of(&mut self, before: &Self) {
        self.step = before.step.min(LARGEST_FIRST_STEP_BYTES);
    }

    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.opened.log
    }

    pub(crate) fn base(&self) -> Offset {
        self.segment.base()
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.position == 0
    }

    /// True where `incoming` belongs in another segment, by Kafka's rules: size, age by record timestamps (by the clock
    /// where there are none), a full index, an offset that the indexes cannot name.
    pub(crate) fn must_roll(&self, incoming: &Incoming, config: &LogConfig) -> bool {
        if !fits_segment(self.base(), incoming.last_offset) {
            return true;
        }
        if self.is_empty() {
            return false;
        }
        let is_over_size = self.position + incoming.bytes > u64::from(config.segment_bytes);
        is_over_size
            || self.opened.offsets.is_full()
            || self.opened.times.is_full()
            || self.is_old(incoming, config)
    }

    fn is_old(&self, incoming: &Incoming, config: &LogConfig) -> bool {
        let Some(most) = config.roll_after else { return false };
        let waited_ms = match self.pace.first_timestamp.filter(|first| first.millis() >= 0) {
            Some(first) => incoming.max_timestamp.millis().saturating_sub(first.millis()),
            None => config.clock.now().millis().saturating_sub(self.pace.begun.millis()),
        };
        u128::try_from(waited_ms).is_ok_and(|waited| waited > most.as_millis())
    }

    /// Makes room for what is about to be written, so that nothing after the write can fail.
    pub(crate) fn reserve(&mut self, incoming: &Incoming, dir: &Dir, config: &LogConfig) -> Result<()> {
        if self.is_torn {
            self.cut_back()?;
        }
        self.opened.offsets.reserve(incoming.batches)?;
        self.opened.times.reserve(incoming.batches)?;
        let needed = self.position + incoming.bytes;
        if needed <= self.reserved {
            return Ok(());
        }
        let whole = u64::from(config.segment_bytes).max(needed);
        let wanted = match config.preallocate {
            Preallocate::Stepped => (self.position + self.step).min(whole).max(needed),
            Preallocate::Whole => whole,
            Preallocate::Off => needed + FREE_SPACE_STEP_BYTES,
        };
        self.keep_free(wanted - self.reserved.min(wanted), needed - self.position, dir, config)?;
        if config.preallocate != Preallocate::Off && !self.cannot_reserve {
            self.reserve_blocks(wanted, needed)?;
            self.step = (self.step * 2).min(LARGEST_STEP_BYTES);
        } else {
            self.reserved = needed.max(wanted);
        }
        Ok(())
    }

    /// Takes back what a failed write left, so that a crash cannot make it part of the log. Where that fails too, it is
    /// done before the next append.
    pub(crate) fn abandon_write(&mut self) {
        self.is_torn = true;
        if let Err(error) = self.cut_back() {
            tracing::warn!(%error, "what a failed write left stays until the next append");
        }
    }

    fn cut_back(&mut self) -> Result<()> {
        self.opened.log.set_len(self.position)?;
        self.reserved = self.position;
        self.is_torn = false;
        Ok(())
    }

    /// Refuses what would eat into the reserve of free space.
    fn keep_free(&self, ahead: u64, needed: u64, dir: &Dir, config: &LogConfig) -> Result<()> {
        if config.min_free_bytes == 0 {
            return Ok(());
        }
        let free = dir.free_bytes()?;
        if free.saturating_sub(ahead) >= config.min_free_bytes
            || free.saturating_sub(needed) >= config.min_free_bytes
        {
            return Ok(());
        }
        let reason =
            format!("{free} bytes are free, {} are kept in reserve (min_free_bytes)", config.min_free_bytes);
        Err(Error::StorageFull { path: self.file().path().to_owned(), reason })
    }

    /// Reserves up to `wanted`; where there is no room for that, up to what is `needed` now.
    fn reserve_blocks(&mut self, wanted: u64, needed: u64) -> Result<()> {
        let from = self.reserved;
        let file = &self.opened.log;
        let done = match file.preallocate(from, wanted - from, false) {
            Err(error) if error.is_storage_full() && needed < wanted => {
                file.preallocate(from, needed - from, false).map(|done| (done, needed))
            }
            other => other.map(|done| (done, wanted)),
        };
        match done {
            Ok((Preallocated::Done, up_to)) => self.reserved = up_to,
            Ok((Preallocated::Unsupported, _)) => {
                tracing::info!(file = %file.path().display(), "blocks cannot be reserved here; files grow as they are written");
                self.cannot_reserve = true;
                self.reserved = needed;
            }
            Err(error) => {
                // A reservation that failed half way may have moved the end of the file.
                let _ = file.set_len(self.reserved.max(self.position));
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Stores the index entries of batches that were written at the end, and moves the end past them.
    pub(crate) fn commit(&mut self, batches: &[BatchHeader]) {
        for header in batches {
            let batch = batch_at(self.position, header);
            if let Some(due) = self.pacer.observe(&batch) {
                let stored = self.opened.offsets.append(due.last_offset, due.position);
                debug_assert!(matches!(stored, Append::Stored | Append::Full), "{stored:?}");
                if let Some(time) = due.time {
                    let stored = self.opened.times.append(time.timestamp, time.offset);
                    debug_assert!(!matches!(stored, Append::Unreserved | Append::OutOfOrder), "{stored:?}");
                }
            }
            self.pace.first_timestamp = self.pace.first_timestamp.or(Some(header.max_timestamp()));
            self.position += u64::from(header.size_bytes());
            self.next = header.next_offset().unwrap_or(Offset::MAX);
        }
        let end = self.end();
        let largest = self.pacer.largest().map(|largest| (largest.timestamp, largest.offset));
        self.segment.set_largest(largest, end.position);
        self.segment.publish(end);
    }

    pub(crate) fn end(&self) -> SegmentEnd {
        SegmentEnd { position: u32::try_from(self.position).unwrap_or(u32::MAX), next: self.next }
    }

    /// Gives the files their final contents and sizes: the entry that ends the time index, then the log's trim, then the
    /// indexes'. Nothing is synced. It can be done again, and more can be appended afterwards: a roll may fail behind it.
    pub(crate) fn seal(&mut self) -> Result<()> {
        if let Some(largest) = self.pacer.largest() {
            self.opened.times.reserve(0)?;
            let stored = self.opened.times.append_final(largest.timestamp, largest.offset);
            debug_assert!(!matches!(stored, Append::Unreserved | Append::OutOfOrder), "{stored:?}");
        }
        let file = &self.opened.log;
        if file.len()? > self.position {
            file.set_len(self.position)?;
        }
        self.reserved = self.position;
        self.opened.offsets.seal()?;
        self.opened.times.seal()?;
        Ok(())
    }

    /// The segment is sealed and has a successor.
    pub(crate) fn retire(self) -> Arc<Segment> {
        self.segment.set_sealed(true);
        self.segment
    }

    /// Makes this segment's sidecars durable, and goes on with them.
    pub(crate) fn sync_own_sidecars(&self) -> Result<()> {
        self.opened.offsets.sync()?;
        Ok(self.opened.times.sync()?)
    }

    /// Makes the sidecars durable.
    pub(crate) fn sync_sidecars(segment: &Segment) -> Result<()> {
        let opened = segment.open()?;
        opened.offsets.sync()?;
        opened.times.sync()?;
        opened.offsets.release_file();
        opened.times.release_file();
        Ok(())
    }
}

/// How the lock holder makes sidecars.
pub(crate) fn settings(config: &LogConfig) -> SegmentSettings {
    SegmentSettings {
        index_interval_bytes: config.index_interval_bytes,
        index_bytes: config.segment_index_bytes,
        file_mode: config.file_mode,
        may_write: true,
    }
}
