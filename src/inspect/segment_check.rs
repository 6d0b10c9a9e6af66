//! One segment, checked: its batches, its indexes, its end.

use std::{io, path::PathBuf, thread, time::Duration};

use super::{
    finding::{Finding, FindingKind, Severity},
    index_check::{OffsetIndexCheck, TimeIndexCheck},
    index_file::IndexFile,
    log_file::LogFile,
    pieces::{Entry, Piece, Reason, Tail},
    report::{Findings, SegmentReport, VerifyOptions, unreadable},
    txn_check::Seen,
};
use crate::{
    error::{Error, Result},
    offset::Offset,
    record::{BatchError, BatchHeader, BatchRef, Scratch, TimestampType, message_format},
};

/// How long the end of a log that is not whole is given to become so: a writer may be in the middle of it.
const PATIENCE: Duration = Duration::from_millis(50);

/// How often damage in the last segment is looked at until it stays the same.
const MAX_LOOKS: usize = 4;

/// The files of one segment. A companion that is not there is `None`.
#[derive(Debug, Clone)]
pub(super) struct SegmentFiles {
    pub(super) base: Offset,
    pub(super) log: PathBuf,
    pub(super) index: Option<PathBuf>,
    pub(super) time_index: Option<PathBuf>,
    /// The base offset of the next segment; `None` for the last one, which may be written to.
    pub(super) next_base: Option<Offset>,
}

/// The state of the walk through one segment.
struct Check<'a> {
    files: &'a SegmentFiles,
    deep: bool,
    report: SegmentReport,
    index: Option<OffsetIndexCheck<'a>>,
    time_index: Option<TimeIndexCheck<'a>>,
    /// The last sound batch's last offset.
    last: Option<Offset>,
    /// Where the last sound batch ends.
    sound_end: u64,
    /// Damage seen since, which a writer at work would explain if nothing sound follows it.
    suspects: Vec<Finding>,
    scratch: Scratch,
}

/// Checks one segment. What cannot be read becomes a finding, so that the other segments are checked all the same.
///
/// The last segment may be written to, and its bytes become visible in any order: a hole with good batches behind it can be
/// one moment's view. So what is damaged there must look the same twice.
pub(super) fn check_segment(
    files: &SegmentFiles,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(u64),
) -> SegmentReport {
    let mut report = check_once(files, options, progress);
    for _ in 0..MAX_LOOKS {
        if files.next_base.is_some() || !report.is_doubtful {
            break;
        }
        thread::sleep(PATIENCE);
        // The bytes have been counted.
        let again = check_once(files, options, &mut |_| progress(0));
        let is_settled = again.findings == report.findings;
        report = again;
        if is_settled {
            break;
        }
    }
    report
}

fn check_once(files: &SegmentFiles, options: &VerifyOptions, progress: &mut dyn FnMut(u64)) -> SegmentReport {
    let (mut report, error) = try_check(files, options, progress);
    if let Some(error) = error {
        // The writer has sealed the segment meanwhile and cut off its room: what is left is whole.
        report.is_doubtful |= is_shrunk(&error);
        report.findings.push(unreadable(&error));
    }
    report
}

fn is_shrunk(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof)
}

fn try_check(
    files: &SegmentFiles,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(u64),
) -> (SegmentReport, Option<Error>) {
    let report = SegmentReport {
        base: files.base,
        start: None,
        end: None,
        last_epoch: None,
        batches: 0,
        records: 0,
        bytes: 0,
        unchecked_bytes: 0,
        is_doubtful: false,
        has_gaps: false,
        transactions: Seen::default(),
        findings: Findings::default(),
    };
    let mut check = Check {
        files,
        deep: options.deep,
        report,
        index: None,
        time_index: None,
        last: None,
        sound_end: 0,
        suspects: Vec::new(),
        scratch: Scratch::default(),
    };
    // Indexes first: what a writer adds to them later speaks of batches that are in the longer .log.
    let index = options.indexes.then(|| check.open_index(files.index.as_ref(), ".index")).flatten();
    let time_index =
        options.indexes.then(|| check.open_index(files.time_index.as_ref(), ".timeindex")).flatten();
    let error = check.run(index.as_ref(), time_index.as_ref(), progress).err();
    (check.report, error)
}

impl<'a> Check<'a> {
    fn open_index(&mut self, path: Option<&PathBuf>, suffix: &str) -> Option<IndexFile> {
        let Some(path) = path else {
            let detail = format!("no {suffix} beside it");
            let missing = Finding::new(&self.files.log, FindingKind::MissingIndex, Severity::Warning, detail);
            self.report.findings.push(missing);
            return None;
        };
        match IndexFile::open(path) {
            Ok(file) => Some(file),
            Err(error) => {
                self.report.findings.push(unreadable(&error));
                None
            }
        }
    }

    fn run(
        &mut self,
        index: Option<&'a IndexFile>,
        time_index: Option<&'a IndexFile>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let log = LogFile::open(&self.files.log)?;
        self.report.bytes = log.len_bytes();
        if log.len_bytes() > u64::from(i32::MAX.unsigned_abs()) {
            let detail =
                format!("a segment holds at most {} bytes (positions have 31 bits): not read", i32::MAX);
            let large = Finding::new(&self.files.log, FindingKind::TooLarge, Severity::Damage, detail);
            self.report.findings.push(large);
            self.report.unchecked_bytes = log.len_bytes();
            return Ok(());
        }
        let first = log.header_at(0)?.ok();
        let base = self.files.base;
        let findings = &mut self.report.findings;
        self.index =
            index.map(|file| OffsetIndexCheck::new(file, base, first.as_ref(), findings)).transpose()?;
        self.time_index =
            time_index.map(|file| TimeIndexCheck::new(file, base, first.as_ref(), findings)).transpose()?;
        let mut tail = self.walk(&log, 0, progress)?;
        if self.files.next_base.is_none() && self.is_unsettled(&tail) {
            // Either damage, or a writer in the middle of its work: look again in a moment.
            thread::sleep(PATIENCE);
            let log = LogFile::open(&self.files.log)?;
            let (was, old_len) = (self.sound_end, self.report.bytes);
            self.suspects.clear();
            self.report.bytes = log.len_bytes();
            tail = self.walk(&log, was, progress)?;
            if self.is_unsettled(&tail) && (self.sound_end != was || self.report.bytes != old_len) {
                self.suspects.clear();
                let detail =
                    "the end is not whole while the file is being written; check again later".to_owned();
                let note = Finding::new(&self.files.log, FindingKind::BeingWritten, Severity::Note, detail);
                self.report.findings.push(note.at(self.sound_end));
                return Ok(());
            }
        }
        // Nothing sound follows these: to drop them with the tail loses no other record.
        for suspect in &mut self.suspects {
            suspect.repairable = true;
        }
        self.settle_suspects();
        self.judge_tail(&tail);
        if let Tail::Partial { position, size_bytes } | Tail::Bad { position, size_bytes, .. } = &tail {
            self.pass(position + size_bytes)?;
        }
        let findings = &mut self.report.findings;
        if let Some(index) = self.index.take() {
            index.finish(self.sound_end, findings)?;
        }
        if let Some(time_index) = self.time_index.take() {
            time_index.finish(self.files.next_base.is_some(), findings)?;
        }
        Ok(())
    }

    fn is_unsettled(&self, tail: &Tail) -> bool {
        !self.suspects.is_empty()
            || matches!(tail, Tail::Partial { .. } | Tail::Bad { .. })
            || self.index.as_ref().is_some_and(OffsetIndexCheck::has_more)
            || self.time_index.as_ref().is_some_and(TimeIndexCheck::has_more)
    }

    fn walk(&mut self, log: &LogFile, from: u64, progress: &mut dyn FnMut(u64)) -> Result<Tail> {
        const REPORT_EVERY_BYTES: u64 = 8 << 20;
        let mut pieces = log.pieces_from(from, log.len_bytes());
        let mut reported = from;
        while let Some(piece) = pieces.next_piece()? {
            match piece {
                Piece::Batch(entry) => self.batch(&entry)?,
                Piece::Old { position, size_bytes, magic, offset } => {
                    self.old(position, size_bytes, magic, offset)?;
                }
                Piece::Bad { position, size_bytes, reason } => self.bad(position, size_bytes, &reason)?,
            }
            if pieces.position() - reported >= REPORT_EVERY_BYTES {
                progress(pieces.position() - reported);
                reported = pieces.position();
            }
        }
        progress(pieces.position() - reported);
        Ok(pieces.tail().cloned().unwrap_or(Tail::Clean))
    }

    fn batch(&mut self, entry: &Entry<'_>) -> Result<()> {
        let (position, header) = (entry.position, &entry.header);
        let sound = entry.crc_ok();
        if !sound {
            let error = BatchError::CrcMismatch { stored: header.crc(), computed: entry.computed_crc };
            let detail = format!("{error}; {} bytes, its length is right", header.size_bytes());
            self.suspect(self.damage(FindingKind::BadCrc, position, Some(header.base_offset()), detail));
            // Its place is known all the same, so what points at it is not wrong.
            let findings = &mut self.report.findings;
            if let Some(index) = &mut self.index {
                index.batch(position, header, false, findings)?;
            }
            if let Some(time_index) = &mut self.time_index {
                time_index.skip();
            }
            return Ok(());
        }
        self.settle_suspects();
        self.report.has_gaps |= self.expected().is_some_and(|expected| header.base_offset() > expected);
        self.order(position, header);
        self.report.transactions.batch(header, entry.batch.as_ref());
        if self.deep
            && let Some(batch) = &entry.batch
        {
            self.records(position, batch);
        }
        let findings = &mut self.report.findings;
        if let Some(index) = &mut self.index {
            index.batch(position, header, true, findings)?;
        }
        if let Some(time_index) = &mut self.time_index {
            time_index.batch(header, true, findings)?;
        }
        self.report.batches += 1;
        self.report.records += u64::from(header.record_count().unsigned_abs());
        self.sound_end = position + u64::from(header.size_bytes());
        Ok(())
    }

    /// Offsets, epochs and what the header says of itself.
    fn order(&mut self, position: u64, header: &BatchHeader) {
        let (base, first, last) = (self.files.base, header.base_offset(), header.last_offset());
        let offset = Some(first);
        if first < base {
            let detail =
                format!("the batch begins at offset {first}, below the segment's base offset {base}");
            self.found(self.damage(FindingKind::BelowBase, position, offset, detail));
        }
        if let Some(before) = self.last.filter(|&before| first <= before) {
            let detail = format!("the batch begins at offset {first}, the one before it ends at {before}");
            self.found(self.damage(FindingKind::OffsetOrder, position, offset, detail));
        }
        if last.since(base) > u64::from(i32::MAX.unsigned_abs()) || last.next().is_none() {
            let detail =
                format!("the batch ends at offset {last}, too far above the segment's base offset {base}");
            self.found(self.damage(FindingKind::OffsetRange, position, offset, detail));
        }
        if let Err(error) = header.codec() {
            self.found(self.damage(FindingKind::BadHeader, position, offset, error.to_string()));
        }
        let (count, last_offset_delta) = (header.record_count(), header.last_offset_delta());
        if i64::from(count) > i64::from(last_offset_delta) + 1 {
            let detail = BatchError::BadCount { count, last_offset_delta }.to_string();
            self.found(self.damage(FindingKind::BadHeader, position, offset, detail));
        }
        let epoch = header.leader_epoch();
        if epoch >= 0 {
            if let Some(before) = self.report.last_epoch.filter(|&before| epoch < before) {
                let detail = format!("leader epoch {epoch} follows {before}");
                let mut finding = self.damage(FindingKind::EpochOrder, position, offset, detail);
                finding.severity = Severity::Warning;
                self.found(finding);
            }
            self.report.last_epoch = Some(epoch);
        }
        self.report.start = self.report.start.or(offset);
        self.report.end = self.report.end.max(last.next());
        self.last = Some(last);
    }

    /// Every record of a batch whose CRC fits.
    fn records(&mut self, position: u64, batch: &BatchRef<'_>) {
        let mut largest = None;
        let read = batch.records(&mut self.scratch).and_then(|mut records| {
            records.try_for_each(|record| {
                largest = largest.max(Some(record?.timestamp()));
                Ok(())
            })
        });
        let offset = Some(batch.base_offset());
        match (read, largest) {
            (Err(error), _) => {
                let (kind, severity) = if is_limit(&error) {
                    (FindingKind::Unread, Severity::Warning)
                } else {
                    (FindingKind::BadRecords, Severity::Damage)
                };
                let finding = self.damage(kind, position, offset, error.to_string());
                self.found(Finding { severity, ..finding });
            }
            (Ok(()), Some(largest))
                if batch.timestamp_type() == TimestampType::CreateTime
                    && largest != batch.max_timestamp() =>
            {
                // Searches by time go by the header; what a producer stored unchecked can be like this.
                let detail = format!(
                    "the header's largest timestamp is {}, that of its records {largest}",
                    batch.max_timestamp()
                );
                let mut finding = self.damage(FindingKind::BadRecords, position, offset, detail);
                finding.severity = Severity::Warning;
                self.found(finding);
            }
            (Ok(()), _) => {}
        }
    }

    fn old(&mut self, position: u64, size_bytes: u64, magic: i8, offset: Option<Offset>) -> Result<()> {
        self.settle_suspects();
        if self.report.unchecked_bytes == 0 {
            let detail = format!(
                "message format {magic} ({}) is not read here: left unchecked",
                message_format(magic)
            );
            let mut finding = self.damage(FindingKind::OldFormat, position, offset, detail);
            finding.severity = Severity::Warning;
            self.found(finding);
        }
        self.report.unchecked_bytes += size_bytes;
        self.report.start = self.report.start.or(offset);
        self.report.end = self.report.end.max(offset.and_then(Offset::next));
        self.last = offset.or(self.last);
        self.sound_end = position + size_bytes;
        self.pass(self.sound_end)
    }

    fn bad(&mut self, position: u64, size_bytes: u64, reason: &Reason) -> Result<()> {
        let detail = format!(
            "{reason}; {size_bytes} bytes are no batch, the next begins at byte {}",
            position + size_bytes
        );
        self.suspect(self.damage(reason.kind(), position, self.expected(), detail));
        self.pass(position + size_bytes)
    }

    /// Tells the index checks that the bytes up to `end` are not to be judged by.
    fn pass(&mut self, end: u64) -> Result<()> {
        if let Some(index) = &mut self.index {
            index.skip_to(end, &mut self.report.findings)?;
        }
        if let Some(time_index) = &mut self.time_index {
            time_index.skip();
        }
        Ok(())
    }

    fn judge_tail(&mut self, tail: &Tail) {
        let sealed = self.files.next_base.is_some();
        let offset = self.expected();
        let finding = match tail {
            Tail::Clean => return,
            Tail::Zeros { position, size_bytes } => {
                // Room that a crash left: the batches must reach the next segment for nothing to be missing.
                if sealed && offset != self.files.next_base {
                    let detail = format!(
                        "{size_bytes} bytes of zeros to the end of a sealed segment, and the next begins at offset {}",
                        shown(self.files.next_base)
                    );
                    self.damage(FindingKind::ZeroedBytes, *position, offset, detail)
                } else {
                    let detail = format!("{size_bytes} bytes of zeros behind the last batch");
                    Finding::new(&self.files.log, FindingKind::Untrimmed, Severity::Warning, detail)
                        .at(*position)
                }
            }
            Tail::Partial { position, size_bytes } => {
                let kind = if sealed { FindingKind::BadTail } else { FindingKind::TornTail };
                let detail =
                    format!("the last {size_bytes} bytes begin a batch that the file does not complete");
                self.damage(kind, *position, offset, detail)
            }
            Tail::Bad { position, size_bytes, reason } => {
                let detail = format!("{reason}; no batch begins in the last {size_bytes} bytes");
                self.damage(reason.kind(), *position, offset, detail)
            }
        };
        self.found(Finding { repairable: finding.repairable || !sealed, ..finding });
    }

    /// The offset that should come next.
    fn expected(&self) -> Option<Offset> {
        self.last.map_or(Some(self.files.base), Offset::next)
    }

    fn damage(&self, kind: FindingKind, position: u64, offset: Option<Offset>, detail: String) -> Finding {
        Finding::new(&self.files.log, kind, Severity::Damage, detail).at(position).with_offset(offset)
    }

    fn found(&mut self, finding: Finding) {
        self.report.findings.push(finding);
    }

    /// Damage that counts once something sound follows it, or the end is settled.
    fn suspect(&mut self, finding: Finding) {
        if self.files.next_base.is_some() || self.suspects.len() >= 1000 {
            self.found(finding);
        } else {
            self.suspects.push(finding);
        }
    }

    fn settle_suspects(&mut self) {
        self.report.is_doubtful |= !self.suspects.is_empty();
        for finding in self.suspects.drain(..) {
            self.report.findings.push(finding);
        }
    }
}

/// True where the records were not read for our own reasons: nothing is known against them.
fn is_limit(error: &BatchError) -> bool {
    matches!(error, BatchError::TooLargeDecompressed { .. } | BatchError::CodecMissing { .. })
}

fn shown(offset: Option<Offset>) -> String {
    offset.map_or_else(|| "unknown".to_owned(), |offset| offset.to_string())
}
