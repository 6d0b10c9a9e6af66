//! Opening a directory for writing: what to believe, what to scan, where the log ends.
//!
//! Blocks reach the disk in any order, so after a power cut a hole followed by good batches is normal above the recovery
//! point. The shape of the bytes cannot tell a torn tail from damage; what was synced can. Hence:
//!
//! - a point *counts* if the files below it are the ones it names and the batch it names ends there;
//! - the scan begins at the smallest point that counts (ours, Kafka's; none: the first segment);
//! - only at or above the largest of them may anything be cut, and the first bad byte there ends the log;
//! - below it nothing is cut: the batch is unreadable, everything else is served.

use super::{
    checkpoint::{BatchMark, Checkpoint, Found, Point},
    control::{ControlPage, ControlView},
    cut,
    epochs::Epochs,
    kafka_files::{DataDir, KafkaHints},
    producers::ProducerPoint,
    report::{Readable, RecoveryReport},
    scanned::{ScannedSegment, learn_epochs, scan_segment},
    survey::{LogFile, Survey},
};
use crate::{
    config::{LogConfig, RecoveryMode},
    error::{Corruption, Error, Result},
    offset::Offset,
    record::BatchHeader,
    segment::{FileKind, Scan, Tail, file_name},
    sys::{Dir, Open},
};

/// The log as it stands when recovery is done.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) survey: Survey,
    /// What the scan learnt, for the segments it read.
    pub(crate) scanned: Vec<ScannedSegment>,
    pub(crate) start: Offset,
    /// The end, and the batch that ends there.
    pub(crate) end: Point,
    /// True where the last segment must not be written to again: bytes that are no batch lie at its end.
    pub(crate) needs_new_segment: bool,
    pub(crate) epochs: Epochs,
    pub(crate) epochs_changed: bool,
    pub(crate) known_end: Offset,
    /// What our checkpoint says of the producers, where it speaks of this log.
    pub(crate) producers: Option<Vec<ProducerPoint>>,
    /// The log ends exactly where our recovery point says: all of it was durable before.
    pub(crate) is_at_own_point: bool,
    pub(crate) report: RecoveryReport,
}

/// Everything that recovery decides from.
pub(super) struct Recovery<'a> {
    pub(super) dir: &'a Dir,
    pub(super) config: &'a LogConfig,
    pub(super) data_dir: Option<&'a DataDir>,
    pub(super) previous: Option<ControlView>,
    pub(super) control: &'a ControlPage,
    pub(super) survey: Survey,
    pub(super) checkpoint: Checkpoint,
    pub(super) hints: KafkaHints,
    pub(super) report: RecoveryReport,
    /// A writer of ours was here: there is a checkpoint.
    was_ours: bool,
    /// The file of the leader epochs is absent or damaged.
    pub(super) lacks_epochs: bool,
}

/// What counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Our own recovery point, where it counts.
    pub(super) own: Option<Point>,
    /// Nothing below it may be cut.
    pub(super) floor: Offset,
    /// The first segment to scan.
    pub(super) scan_from: usize,
}

/// Where the log ends and why.
#[derive(Debug)]
struct End {
    /// The segment it ends in.
    segment: usize,
    /// What is to be cut there, and why.
    cut: Option<String>,
}

/// Finds the log's end, having made the files agree with it. `begin_changes` is called before the first change.
pub(crate) fn recover(
    dir: &Dir,
    config: &LogConfig,
    data_dir: Option<&DataDir>,
    (mut previous, control): (Option<ControlView>, &ControlPage),
    begin_changes: &mut dyn FnMut() -> Result<()>,
) -> Result<Recovered> {
    let began = config.clock.monotonic();
    let mut report = RecoveryReport::default();
    let mut checkpoint = match Checkpoint::load(dir)? {
        Found::Valid(checkpoint) => checkpoint,
        Found::Absent => Checkpoint::empty(Offset::ZERO),
        Found::Damaged(warning) => {
            report.warnings.push(warning);
            Checkpoint::empty(Offset::ZERO)
        }
    };
    let was_ours = checkpoint.point.is_some();
    let hints = data_dir.map_or(Ok(KafkaHints::default()), |data| data.hints(&mut report.warnings))?;
    if let Some(record) = checkpoint.cut {
        if config.recovery == RecoveryMode::RefuseAnyDamage {
            let path = dir.path_of(file_name(record.base, FileKind::Log));
            let reason = "a cut was begun here and not finished".to_owned();
            let offset = Some(record.offset);
            return Err(Corruption { path, position: record.position, offset, reason }.into());
        }
        begin_changes()?;
        let reason = "a cut that was begun before";
        report.cut = Some(cut::finish(dir, config, (&mut checkpoint, control), record, reason)?);
        if record.replaces {
            // What it knew as durable was cut on purpose.
            previous = previous.map(|view| view.cut_at(record.offset));
        }
    }
    let mut survey = Survey::take(dir)?;
    report.warnings.append(&mut survey.warnings);
    let mut recovery = Recovery {
        dir,
        config,
        data_dir,
        previous,
        control,
        survey,
        checkpoint,
        hints,
        report,
        was_ours,
        lacks_epochs: false,
    };
    let mut recovered = recovery.run(begin_changes)?;
    recovered.report.elapsed = config.clock.monotonic().saturating_sub(began);
    Ok(recovered)
}

impl Recovery<'_> {
    fn run(&mut self, begin_changes: &mut dyn FnMut() -> Result<()>) -> Result<Recovered> {
        let mut epochs = self.load_epochs();
        if self.survey.logs.is_empty() {
            return self.nothing_there(epochs, begin_changes);
        }
        // Only the batches know the epochs then, and all of them have to be asked.
        self.lacks_epochs = epochs.latest().is_none() && !Epochs::are_stored(self.dir);
        if let Some(end) = self.clean_end()?.filter(|_| !self.lacks_epochs) {
            self.report.clean = true;
            return Ok(self.finish(Vec::new(), end, false, epochs, false));
        }
        self.doubt_page_cache()?;
        let mut known = self.what_counts(self.hints.recovery_point)?;
        let (mut scanned, mut end) = self.scan(&known)?;
        if is_beyond_end(self.hints.recovery_point, &scanned) {
            // A point past the end of the files says nothing true: verify everything, as if it were not there.
            self.report
                .warnings
                .push("Kafka's recovery point lies beyond the end of the log: ignored".to_owned());
            self.report.corrupt.clear();
            known = self.what_counts(None)?;
            (scanned, end) = self.scan(&known)?;
        }
        if known.own.is_none() {
            self.checkpoint.producers = None;
            self.warn_of_changed_segments();
        }
        self.refuse_if_told(&end, &scanned)?;
        let durable = self.known_end(&known);
        self.control.doubt(durable, scanned.last().map_or(durable, |last| last.next));
        if self.lacks_epochs {
            begin_changes()?;
            let next = scanned.last().map_or(durable, |last| last.next);
            learn_epochs(&mut epochs, &scanned, next);
            // Batches without epochs, or none: those to come have the first.
            super::keeper::first_epoch(&mut epochs, next);
            epochs.store(self.dir, self.config.file_mode)?;
        }
        if let Some(reason) = end.cut.clone() {
            begin_changes()?;
            self.cut(&mut scanned, &end, &reason)?;
        }
        self.settle(scanned, &known, epochs, begin_changes)
    }

    /// The directory's own name: whoever made it, before this open or in it, may not have lived to sync it. Where a
    /// recovery point of ours counts that was done before the point was written.
    fn sync_names(&self) -> Result<()> {
        if !self.dir.sync_name()? {
            tracing::warn!(dir = %self.dir.path().display(), "the directory above cannot be opened: a power cut may take the log's name");
        }
        Ok(())
    }

    fn load_epochs(&mut self) -> Epochs {
        Epochs::load(self.dir).unwrap_or_else(|warning| {
            self.report.warnings.push(format!("{warning}; rebuilt from the batches that are read"));
            Epochs::default()
        })
    }

    /// No segment at all: a new log, or one whose files were taken away.
    fn nothing_there(
        &mut self,
        mut epochs: Epochs,
        begin_changes: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Recovered> {
        begin_changes()?;
        self.sync_names()?;
        let stored = self.checkpoint.known_end.max(self.checkpoint.start);
        let end = stored.max(self.previous.map_or(Offset::ZERO, |view| view.durable));
        let had_records = end > self.checkpoint.start;
        if had_records {
            self.report.lost = Some(self.checkpoint.start..end);
            self.refuse_loss(end)?;
        }
        self.report.created = end == Offset::ZERO;
        let epoch =
            epochs.latest().map_or(0, |latest| if had_records { latest.saturating_add(1) } else { latest });
        let changed = epochs.assign(epoch, end);
        self.checkpoint.start = end;
        let point = Point { offset: end, base: end, position: 0, batch: None };
        Ok(self.finish(Vec::new(), point, true, epochs, changed))
    }

    /// Reads every suspect segment once, front to back, and finds where the log ends.
    fn scan(&mut self, known: &Known) -> Result<(Vec<ScannedSegment>, End)> {
        let mut scanned: Vec<ScannedSegment> = Vec::new();
        let count = self.survey.logs.len();
        // Between segments above our own point, the next begins where the last ends; elsewhere gaps may be compaction's.
        let strict_above = known.own.map(|point| point.base);
        for index in known.scan_from..count {
            let log = self.survey.logs[index];
            let next_base = self.survey.logs.get(index + 1).map(|log| log.base);
            if let Some(before) = scanned.last() {
                let is_strict = strict_above.is_some_and(|base| log.base > base);
                let problem = if log.base < before.next {
                    Some(format!(
                        "segment {} begins below the end {} of the one before",
                        log.base, before.next
                    ))
                } else if is_strict && log.base > before.next {
                    Some(format!("a hole: offsets {} up to {} are missing", before.next, log.base))
                } else {
                    None
                };
                if let Some(reason) = problem {
                    if before.next >= known.floor {
                        let segment = index - 1;
                        return Ok((scanned, End { segment, cut: Some(reason) }));
                    }
                    self.note_damage(log, 0, before.next, reason);
                }
            }
            let segment = self.scan_one(log, known, next_base)?;
            let cut = segment.cut.clone();
            scanned.push(segment);
            if cut.is_some() {
                return Ok((scanned, End { segment: index, cut }));
            }
        }
        Ok((scanned, End { segment: count - 1, cut: None }))
    }

    fn scan_one(&mut self, log: LogFile, known: &Known, next_base: Option<Offset>) -> Result<ScannedSegment> {
        let mut segment = scan_segment(self.dir, log, self.config, known.floor)?;
        self.report.scanned_bytes += segment.end;
        self.report.corrupt.append(&mut segment.damage);
        match &segment.tail {
            Tail::Clean => {}
            Tail::Zeros => {
                let is_untrimmed = next_base.is_none_or(|base| base == segment.next);
                if !is_untrimmed && segment.next >= known.floor {
                    segment.cut = Some(format!("zeros where offset {} belongs", segment.next));
                } else if !is_untrimmed {
                    let (at, next) = (segment.end, segment.next);
                    segment.keeps_tail = true;
                    self.note_damage(log, at, next, format!("zeros where offset {next} belongs"));
                }
            }
            Tail::Bad(reason) if segment.next >= known.floor => segment.cut = Some(reason.clone()),
            // Reported by the scan already: it lies below what was once durable.
            Tail::Bad(_) => segment.keeps_tail = true,
        }
        Ok(segment)
    }

    fn note_damage(&mut self, log: LogFile, position: u64, offset: Offset, reason: String) {
        let path = self.dir.path_of(file_name(log.base, FileKind::Log));
        self.report.corrupt.push(Corruption { path, position, offset: Some(offset), reason });
    }

    fn refuse_if_told(&self, end: &End, scanned: &[ScannedSegment]) -> Result<()> {
        if self.config.recovery != RecoveryMode::RefuseAnyDamage {
            return Ok(());
        }
        if let Some(damage) = self.report.corrupt.first() {
            return Err(damage.clone().into());
        }
        let Some(reason) = &end.cut else { return Ok(()) };
        let log = self.survey.logs[end.segment];
        let path = self.dir.path_of(file_name(log.base, FileKind::Log));
        let last = scanned.last().map(|last| (last.end, last.next));
        let position = last.map_or(log.len, |(end, _)| end);
        let offset = last.map(|(_, next)| next);
        Err(Corruption { path, position, offset, reason: reason.clone() }.into())
    }

    /// What can be read of what is about to be cut.
    fn readable_behind(&self, last: &ScannedSegment, segment: usize) -> Result<Option<Readable>> {
        let mut found: Option<Readable> = None;
        for (nth, log) in self.survey.logs.iter().enumerate().skip(segment) {
            let file = self.dir.open_file(file_name(log.base, FileKind::Log), Open::Read)?;
            let (from, next) = if nth == segment { (last.end, last.next) } else { (0, log.base) };
            let mut scan = Scan::new(&file, log.base, from, next)?;
            loop {
                match scan.next_batch()? {
                    Ok(batch) => {
                        let header = &batch.header;
                        let records = u64::from(header.record_count().max(0).unsigned_abs());
                        let first = header.base_offset();
                        let end = header.last_offset().next().unwrap_or(first);
                        let sum =
                            found.get_or_insert(Readable { batches: 0, records: 0, offsets: first..end });
                        sum.batches += 1;
                        sum.records = sum.records.saturating_add(records);
                        sum.offsets = sum.offsets.start.min(first)..sum.offsets.end.max(end);
                    }
                    Err(Tail::Bad(_)) if scan.resync()? => {}
                    Err(_) => break,
                }
            }
        }
        Ok(found)
    }

    fn refuse_loss(&self, known_end: Offset) -> Result<()> {
        if self.config.recovery != RecoveryMode::RefuseAnyDamage {
            return Ok(());
        }
        let reason = format!("the files end before offset {known_end}, which was durable");
        Err(Corruption { path: self.dir.path().to_owned(), position: 0, offset: None, reason }.into())
    }

    fn cut(&mut self, scanned: &mut [ScannedSegment], end: &End, reason: &str) -> Result<()> {
        let epoch = self.next_epoch(scanned);
        let Some(last) = scanned.last_mut() else { return Ok(()) };
        // Before anything changes: a file that cannot be read leaves all as it is.
        let readable = self.readable_behind(last, end.segment)?;
        if let Some(data) = self.data_dir {
            data.lower_recovery_point(last.next)?;
        }
        let record = super::checkpoint::CutRecord {
            offset: last.next,
            epoch,
            base: last.base,
            position: last.end,
            replaces: false,
        };
        let state = (&mut self.checkpoint, self.control);
        let mut cut = cut::begin(self.dir, self.config, state, record, reason)?;
        cut.readable = readable;
        tracing::warn!(dir = %self.dir.path().display(), offset = %cut.offset, bytes = cut.bytes, reason, "log cut");
        self.report.cut = Some(cut);
        last.tail = Tail::Clean;
        last.file_len = last.end;
        self.survey.logs.truncate(end.segment + 1);
        self.survey.logs[end.segment].len = last.end;
        let bases: Vec<Offset> = self.survey.logs.iter().map(|log| log.base).collect();
        self.survey.sidecars.retain(|(base, kind)| match kind {
            FileKind::Snapshot => *base <= record.offset,
            _ => bases.binary_search(base).is_ok(),
        });
        Ok(())
    }

    /// The epoch after all that were ever seen.
    fn next_epoch(&self, scanned: &[ScannedSegment]) -> i32 {
        let stored = Epochs::load(self.dir).ok().and_then(|epochs| epochs.latest());
        let seen = scanned.iter().flat_map(|segment| &segment.epochs).map(|(epoch, _)| *epoch).max();
        stored.max(seen).map_or(0, |latest| latest.saturating_add(1))
    }

    /// Trims, makes suspect files durable, and says what the log is now.
    fn settle(
        &mut self,
        mut scanned: Vec<ScannedSegment>,
        known: &Known,
        mut epochs: Epochs,
        begin_changes: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Recovered> {
        if self.report.cut.is_some() {
            // The cut rewrote the file.
            epochs = self.load_epochs();
        }
        let Some(last) = scanned.last() else { return Err(Error::Closed) };
        let mut end = Point { offset: last.next, base: last.base, position: last.end, batch: last.mark };
        let mut needs_new_segment = last.keeps_tail;
        for segment in
            scanned.iter_mut().filter(|segment| segment.file_len > segment.end && !segment.keeps_tail)
        {
            begin_changes()?;
            segment.trim(self.dir)?;
        }
        for log in &mut self.survey.logs {
            if let Some(segment) = scanned.iter().find(|segment| segment.base == log.base) {
                log.len = segment.file_len;
            }
        }
        let is_at_own_point = known.own == Some(end)
            && self.report.cut.is_none()
            && !self.checkpoint.is_after_cut
            && !needs_new_segment;
        if !self.hints.clean && !is_at_own_point {
            for segment in &scanned {
                segment.file.sync_data()?;
            }
            self.dir.sync()?;
            if known.own.is_none() {
                self.sync_names()?;
            }
        }
        let known_end = self.known_end(known);
        let mut changed = self.report.cut.is_none() && learn_epochs(&mut epochs, &scanned, end.offset);
        if end.offset < known_end {
            self.report.lost = Some(end.offset..known_end);
            self.refuse_loss(known_end)?;
            tracing::warn!(dir = %self.dir.path().display(), from = %end.offset, to = %known_end, "durable records are gone");
            end = Point { offset: known_end, base: known_end, position: 0, batch: None };
            needs_new_segment = true;
            let epoch = self.next_epoch(&scanned);
            changed |= epochs.assign(epoch, known_end);
        } else {
            if self.report.cut.is_none() && self.may_have_lost_written(end.offset) {
                changed |= epochs.assign(self.next_epoch(&scanned), end.offset);
            }
            if needs_new_segment {
                end = Point { offset: end.offset, base: end.offset, position: 0, batch: None };
            }
        }
        if changed {
            begin_changes()?;
        }
        let mut recovered = self.finish(scanned, end, needs_new_segment, epochs, changed);
        recovered.is_at_own_point = is_at_own_point && known.own == Some(end);
        Ok(recovered)
    }

    /// True where readers may have seen records past `end` that are gone without a trace: a power cut can leave a file
    /// that ends, or goes on with zeros, just where a batch does. What takes their offsets is of another epoch then.
    fn may_have_lost_written(&self, end: Offset) -> bool {
        match self.previous {
            // The page says how far this boot's writer came.
            Some(view) => view.written > end,
            None => self.was_ours && !self.hints.clean,
        }
    }

    /// The largest offset that anything readable knows as durable.
    fn known_end(&self, known: &Known) -> Offset {
        let own = known.own.map_or(Offset::ZERO, |point| point.offset);
        own.max(self.checkpoint.known_end).max(self.previous.map_or(Offset::ZERO, |view| view.durable))
    }

    fn finish(
        &mut self,
        scanned: Vec<ScannedSegment>,
        end: Point,
        needs_new_segment: bool,
        epochs: Epochs,
        epochs_changed: bool,
    ) -> Recovered {
        let first = self.survey.logs.first().map_or(end.base, |log| log.base);
        let stored = self.checkpoint.start.max(self.hints.log_start.unwrap_or(Offset::ZERO));
        let start = if stored > end.offset {
            self.report
                .warnings
                .push(format!("a start offset of {stored} lies beyond the end {}: ignored", end.offset));
            first
        } else {
            stored.max(first)
        };
        Recovered {
            survey: std::mem::take(&mut self.survey),
            scanned,
            start,
            end,
            needs_new_segment,
            epochs,
            epochs_changed,
            known_end: self.checkpoint.known_end.max(end.offset),
            producers: self.checkpoint.producers.take(),
            is_at_own_point: false,
            report: std::mem::take(&mut self.report),
        }
    }
}

/// True where Kafka's recovery point lies past the end of the files.
fn is_beyond_end(kafka: Option<Offset>, scanned: &[ScannedSegment]) -> bool {
    kafka.is_some_and(|point| scanned.last().is_some_and(|last| point > last.next))
}

/// What a checkpoint keeps of a batch.
pub(crate) fn mark_of(header: &BatchHeader) -> BatchMark {
    BatchMark {
        base_offset: header.base_offset(),
        epoch: header.leader_epoch(),
        crc: header.crc(),
        size: header.size_bytes(),
    }
}
