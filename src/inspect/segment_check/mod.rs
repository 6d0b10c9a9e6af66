//! One segment, checked: its batches, its indexes, its end.
//!
//! Lives here: the walk from front to back and what it makes of each batch; what lies behind the last one (`tail.rs`); whether
//! offsets and epochs follow one another (`order.rs`).
//! Not here: what a batch's records say (`look.rs`), index entries (`index_check.rs`), what shows only between segments
//! (`partition.rs`).
//! Holds always: what a writer at work would explain is looked at again before it counts as damage.

mod order;
mod tail;

use std::{io, path::PathBuf, thread, time::Duration};

use order::Leap;

use super::{
    epoch_check::EpochRuns,
    finding::{Finding, FindingKind, Severity},
    index_check::{OffsetIndexCheck, TimeIndexCheck},
    index_file::IndexFile,
    log_file::LogFile,
    look::{Ahead, Looked, PART_BYTES, is_limit, look},
    pieces::{Entry, OldEntry, Piece, Reason, Tail},
    report::{Findings, SegmentReport, VerifyOptions, unreadable},
    txn_check::Seen,
};
use crate::{
    error::{Error, Result},
    offset::Offset,
    record::{BatchError, BatchRef, Scratch, message_format},
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

/// How a walk ended.
enum Walked {
    Wholly,
    Stopped,
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
    /// That batch, where it leaves out offsets.
    leap: Option<Leap>,
    /// Where the last sound batch ends.
    sound_end: u64,
    /// Damage seen since, which a writer at work would explain if nothing sound follows it.
    suspects: Vec<Finding>,
    scratch: Scratch,
    /// The batch made of the last message of format 0 or 1.
    made: Vec<u8>,
    /// Such messages were told of.
    noted_old: bool,
    /// The last sound batch was one.
    is_old: bool,
}

/// Checks one segment. What cannot be read becomes a finding, so that the other segments are checked all the same.
///
/// The last segment may be written to, and its bytes become visible in any order: a hole with good batches behind it can be
/// one moment's view. So what is damaged there must look the same twice.
///
/// `progress` is told how many bytes were read, and answers whether to go on; where not, there is no report. `ahead` may have
/// looked through parts of the segment already.
pub(super) fn check_segment(
    files: &SegmentFiles,
    options: &VerifyOptions,
    ahead: Option<&dyn Ahead>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Option<SegmentReport> {
    let mut report = check_once(files, options, ahead, progress)?;
    for _ in 0..MAX_LOOKS {
        if files.next_base.is_some() || !report.is_doubtful {
            break;
        }
        thread::sleep(PATIENCE);
        // The bytes have been counted.
        let again = check_once(files, options, None, &mut |_| progress(0))?;
        let is_settled = again.findings == report.findings;
        report = again;
        if is_settled {
            break;
        }
    }
    Some(report)
}

fn check_once(
    files: &SegmentFiles,
    options: &VerifyOptions,
    ahead: Option<&dyn Ahead>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Option<SegmentReport> {
    let (mut report, ended) = try_check(files, options, ahead, progress);
    let error = match ended {
        Ok(Walked::Wholly) => None,
        Ok(Walked::Stopped) => return None,
        Err(error) => Some(error),
    };
    if let Some(error) = error {
        // The writer has sealed the segment meanwhile and cut off its room: what is left is whole.
        report.is_doubtful |= is_shrunk(&error);
        report.findings.push(unreadable(&error));
    }
    Some(report)
}

fn is_shrunk(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof)
}

fn try_check(
    files: &SegmentFiles,
    options: &VerifyOptions,
    ahead: Option<&dyn Ahead>,
    progress: &mut dyn FnMut(u64) -> bool,
) -> (SegmentReport, Result<Walked>) {
    let report = SegmentReport {
        base: files.base,
        start: None,
        end: None,
        last_epoch: None,
        epochs: EpochRuns::default(),
        batches: 0,
        records: 0,
        bytes: 0,
        unchecked_bytes: 0,
        is_doubtful: false,
        gaps: None,
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
        leap: None,
        sound_end: 0,
        suspects: Vec::new(),
        scratch: Scratch::default(),
        made: Vec::new(),
        noted_old: false,
        is_old: false,
    };
    // Indexes first: what a writer adds to them later speaks of batches that are in the longer .log.
    let index = options.indexes.then(|| check.open_index(files.index.as_ref(), ".index")).flatten();
    let time_index =
        options.indexes.then(|| check.open_index(files.time_index.as_ref(), ".timeindex")).flatten();
    let ended = check.run(index.as_ref(), time_index.as_ref(), ahead, progress);
    (check.report, ended)
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
        ahead: Option<&dyn Ahead>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Walked> {
        let log = LogFile::open(&self.files.log)?;
        self.report.bytes = log.len_bytes();
        if log.len_bytes() > u64::from(i32::MAX.unsigned_abs()) {
            let detail =
                format!("a segment holds at most {} bytes (positions have 31 bits): not read", i32::MAX);
            let large = Finding::new(&self.files.log, FindingKind::TooLarge, Severity::Damage, detail);
            self.report.findings.push(large);
            self.report.unchecked_bytes = log.len_bytes();
            return Ok(Walked::Wholly);
        }
        let first = log.header_at(0)?.ok();
        let base = self.files.base;
        let findings = &mut self.report.findings;
        self.index =
            index.map(|file| OffsetIndexCheck::new(file, base, first.as_ref(), findings)).transpose()?;
        self.time_index =
            time_index.map(|file| TimeIndexCheck::new(file, base, first.as_ref(), findings)).transpose()?;
        let Some(mut tail) = self.walk(&log, 0, ahead, progress)? else { return Ok(Walked::Stopped) };
        if self.files.next_base.is_none() && self.is_unsettled(&tail) {
            // Either damage, or a writer in the middle of its work: look again in a moment.
            thread::sleep(PATIENCE);
            let log = LogFile::open(&self.files.log)?;
            let (was, old_len) = (self.sound_end, self.report.bytes);
            self.suspects.clear();
            self.report.bytes = log.len_bytes();
            let Some(second) = self.walk(&log, was, None, progress)? else { return Ok(Walked::Stopped) };
            tail = second;
            if self.is_unsettled(&tail) && (self.sound_end != was || self.report.bytes != old_len) {
                self.suspects.clear();
                let detail =
                    "the end is not whole while the file is being written; check again later".to_owned();
                let note = Finding::new(&self.files.log, FindingKind::BeingWritten, Severity::Note, detail);
                self.report.findings.push(note.at(self.sound_end));
                return Ok(Walked::Wholly);
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
        self.note_gaps();
        let findings = &mut self.report.findings;
        if let Some(index) = self.index.take() {
            index.finish(self.sound_end, findings)?;
        }
        if let Some(time_index) = self.time_index.take() {
            time_index.finish(self.files.next_base.is_some(), findings)?;
        }
        Ok(Walked::Wholly)
    }

    fn is_unsettled(&self, tail: &Tail) -> bool {
        !self.suspects.is_empty()
            || matches!(tail, Tail::Partial { .. } | Tail::Bad { .. })
            || self.index.as_ref().is_some_and(OffsetIndexCheck::has_more)
            || self.time_index.as_ref().is_some_and(TimeIndexCheck::has_more)
    }

    /// `None` where `progress` said to stop.
    fn walk(
        &mut self,
        log: &LogFile,
        from: u64,
        ahead: Option<&dyn Ahead>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<Tail>> {
        let mut pieces = log.pieces_from(from, log.len_bytes()).by_headers(!self.deep);
        if from > 0 {
            pieces = pieces.behind_old(self.is_old);
        }
        let ahead = ahead.filter(|ahead| ahead.begin(log.len_bytes()));
        let mut reported = from;
        let mut turn = from;
        loop {
            let position = pieces.position();
            if position >= turn {
                if !progress(position.saturating_sub(reported)) {
                    return Ok(None);
                }
                reported = position;
                turn = (position / PART_BYTES + 1) * PART_BYTES;
                if let Some(part) = ahead.and_then(|ahead| ahead.part(position / PART_BYTES))
                    && part.from == position
                    && part.end > position
                {
                    for looked in part.batches {
                        self.settle_suspects();
                        self.sound(looked)?;
                    }
                    pieces.skip_to(part.end, self.last);
                    // Its bytes were told by whoever read them.
                    reported = part.end;
                    continue;
                }
            }
            match pieces.next_piece()? {
                Some(Piece::Batch(entry)) => self.batch(&entry)?,
                Some(Piece::Old(entry)) => self.old(&entry)?,
                Some(Piece::Bad { position, size_bytes, reason }) => {
                    self.bad(position, size_bytes, &reason)?;
                }
                None => break,
            }
        }
        let goes_on = progress(pieces.position().saturating_sub(reported));
        Ok(goes_on.then(|| pieces.tail().cloned().unwrap_or(Tail::Clean)))
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
        let looked = look(entry, &self.files.log, self.deep, &mut self.scratch);
        self.sound(looked)
    }

    /// A batch whose checksum is right.
    fn sound(&mut self, looked: Looked) -> Result<()> {
        let (position, header) = (looked.position, &looked.header);
        self.gap(position, header);
        self.order(position, header);
        self.report.transactions.batch(header, looked.marker);
        if let Some(finding) = looked.flaw {
            self.found(*finding);
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
        self.is_old = false;
        self.sound_end = position + u64::from(header.size_bytes());
        Ok(())
    }

    /// A message of format 0 or 1: what it wraps is always unpacked, since only so its first offset and its count are known.
    fn old(&mut self, entry: &OldEntry<'_>) -> Result<()> {
        let (position, header, message) = (entry.position, &entry.header, &entry.message);
        let offset = Some(message.offset());
        let end = position + u64::from(entry.size_bytes());
        if !entry.crc_ok() {
            let error = BatchError::CrcMismatch { stored: message.crc(), computed: entry.computed_crc };
            let detail = format!("{error}; {} bytes, its length is right", entry.size_bytes());
            self.suspect(self.damage(FindingKind::BadCrc, position, offset, detail));
            return self.pass(end);
        }
        self.settle_suspects();
        if !self.noted_old {
            self.noted_old = true;
            let magic = message.magic();
            let detail = format!(
                "message format {magic} ({}): read and checked, but no log with it is opened for writing",
                message_format(magic)
            );
            let mut finding = self.damage(FindingKind::OldFormat, position, offset, detail);
            finding.severity = Severity::Note;
            self.found(finding);
        }
        // Kafka's own rules for the indexes changed along with the formats: their entries are only held against the
        // batches of format 2, for which readers believe them.
        self.pass(end)?;
        let made = message.to_batch(&mut self.scratch, &mut self.made);
        let made = made.and_then(|()| Ok(*BatchRef::parse(&self.made)?.header()));
        match made {
            Ok(made) => {
                self.order(position, &made);
                self.report.records += u64::from(made.record_count().unsigned_abs());
            }
            Err(error) => {
                self.order(position, header);
                let (kind, severity) = if is_limit(&error) {
                    (FindingKind::Unread, Severity::Warning)
                } else {
                    (FindingKind::BadRecords, Severity::Damage)
                };
                let finding = self.damage(kind, position, offset, error.to_string());
                self.found(Finding { severity, ..finding });
            }
        }
        self.report.batches += 1;
        self.is_old = true;
        self.sound_end = end;
        Ok(())
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

fn shown(offset: Option<Offset>) -> String {
    offset.map_or_else(|| "unknown".to_owned(), |offset| offset.to_string())
}
