//! Walks over a log: batches lent from one reused buffer, and their records, lent or owned.
//!
//! Lives here: the walk from batch to batch; records (`records.rs`).
//! Not here: where a walk begins (`reader.rs`, `view.rs`), what a batch says (`record`).
//! Holds always: a walk ends silently only at the end of the log; whatever else stops it is an error.
//!
//! Messages of formats 0 and 1, which brokers before 0.11 left at a log's front, are lent as the batches of format 2 that
//! have the same records.

mod records;

use std::sync::Arc;

use super::{reader::LogReader, view::Position};
use crate::{
    error::{Error, Result},
    offset::Offset,
    record::{BatchHeader, BatchRef, HEADER_BYTES, OldMessage, Scratch, check_stored},
    segment::{Opened, Scan, Segment, Window, corruption, is_zero, may_follow, may_stand},
};

pub use records::{OwnedRecords, Records};

/// How much a walk reads at a time.
const BLOCK_BYTES: usize = 256 << 10;

/// The batches of a log from a position on.
///
/// Not an `Iterator`: each batch is lent from the walk's buffer until the next call.
#[derive(Debug)]
pub struct Batches {
    reader: LogReader,
    /// The next offset wanted, and the epoch of the last batch returned.
    next: Position,
    window: Window,
    at: Option<At>,
    last: Option<Last>,
    /// The next offset was within the log once: if it is past the end now, the log was cut.
    was_in_range: bool,
    /// Transaction markers are returned too.
    with_control: bool,
    /// The batch made of the last message of format 0 or 1.
    made: Vec<u8>,
}

/// Where a walk stands in a segment.
#[derive(Debug)]
struct At {
    segment: Arc<Segment>,
    opened: Arc<Opened>,
    position: u32,
    /// The least offset that the batch there may begin with.
    expected: Offset,
    /// How far the segment may be read now.
    bound: u32,
    /// The set of segments that it was found in.
    set: u64,
    /// For committed reads: what is known of transactions up to there is of this era.
    era: u64,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    base: Offset,
    position: u32,
    header: BatchHeader,
}

impl Batches {
    pub(super) fn new(reader: LogReader, from: Position) -> Self {
        Self {
            with_control: !reader.is_committed(),
            reader,
            next: from,
            window: Window::new(BLOCK_BYTES),
            at: None,
            last: None,
            was_in_range: false,
            made: Vec::new(),
        }
    }

    /// Whether batches of control records (transaction markers) are returned. By default they are, but for committed
    /// reads.
    #[must_use]
    pub fn include_control(mut self, include: bool) -> Self {
        self.with_control = include;
        self
    }

    /// The next batch; `None` at the end, and more once there is more.
    ///
    /// The first may begin before the offset asked for. [`Error::Corrupt`] names a batch that cannot be read; the call
    /// after it goes on behind the damage. Committed reads are given no batch of an aborted transaction.
    /// [`Error::OffsetOutOfRange`] says that retention overtook the walk, and
    /// [`Error::Truncated`] that records it had passed were cut.
    ///
    /// A message of format 0 or 1 is lent as a batch of format 2, not compressed, with the records that it is or wraps;
    /// [`Batches::message_format`] tells. Its bytes as they are stored are to be had from [`LogReader::read`].
    pub fn next_batch(&mut self) -> Result<Option<BatchRef<'_>>> {
        match self.advance()? {
            Some(last) if last.header.is_legacy() => self.lend_made(last).map(Some),
            Some(last) => Ok(Some(self.lend(last)?)),
            None => Ok(None),
        }
    }

    /// The message format in which the last batch returned is stored: 2, or 0 or 1 where it was made of a message of
    /// these. 2 before the first.
    pub fn message_format(&self) -> i8 {
        self.last.map_or(2, |last| last.header.magic())
    }

    /// Where to go on: after the last batch returned.
    pub fn position(&self) -> Position {
        self.next
    }

    /// The base offset of the segment that the last batch lies in, and its byte position there.
    pub fn position_of_last(&self) -> Option<(Offset, u64)> {
        self.last.map(|last| (last.base, u64::from(last.position)))
    }

    #[cold]
    fn lend_made(&mut self, last: Last) -> Result<BatchRef<'_>> {
        let message = OldMessage::parse(self.window.held(u64::from(last.position)));
        let made = message.and_then(|message| message.to_batch(&mut Scratch::new(), &mut self.made));
        made.map_err(|error| damaged(self, last, error.to_string()))?;
        Ok(BatchRef::parse(&self.made)?)
    }

    fn lend(&self, last: Last) -> Result<BatchRef<'_>> {
        let size = usize::try_from(last.header.size_bytes()).unwrap_or(usize::MAX);
        let held = self.window.held(u64::from(last.position));
        Ok(BatchRef::parse(held.get(..size).unwrap_or(held))?)
    }

    /// Moves to the next batch, whose bytes the window then holds.
    fn advance(&mut self) -> Result<Option<Last>> {
        loop {
            if self.at.is_none() && !self.seek()? {
                return Ok(None);
            }
            let Some(at) = &mut self.at else { return Ok(None) };
            if at.position >= at.bound && self.reader.is_following() && Self::is_replaced(&self.reader, at) {
                self.at = None;
                continue;
            }
            let Some(at) = &mut self.at else { return Ok(None) };
            if at.position >= at.bound && !Self::extend(&self.reader, at, &mut self.next)? {
                if !self.next_segment()? {
                    return Ok(None);
                }
                continue;
            }
            let (position, end) = (u64::from(at.position), u64::from(at.bound));
            let head = self.window.bytes(&at.opened.log, position, HEADER_BYTES, end)?;
            let header = match BatchHeader::parse_stored(head) {
                Ok(header) if header.size_bytes() <= at.bound - at.position => header,
                Ok(header) => {
                    return self.damage(format!("the batch declares {} bytes", header.size_bytes()));
                }
                // Zeros would be a header of message format 0.
                Err(_) if head.iter().take(HEADER_BYTES).all(|byte| *byte == 0) => {
                    return self.damage("zeros where a batch should begin".to_owned());
                }
                Err(error) => return self.damage(error.to_string()),
            };
            let stands = may_stand(&header, at.segment.base(), at.expected)
                .and_then(|()| may_follow(&header, at.expected, at.segment.end().next));
            if let Err(error) = stands {
                return self.damage(error.to_string());
            }
            if self.reader.is_following()
                && self.next.leader_epoch.is_some_and(|epoch| epoch != header.leader_epoch())
            {
                // Perhaps only another epoch; perhaps other records in the place of those that the walk had read, or more
                // than is published of them.
                let set = at.set;
                self.reader.refresh()?;
                self.check_cut()?;
                if self.reader.set_number() != set {
                    self.at = None;
                    continue;
                }
            }
            let Some(at) = &mut self.at else { return Ok(None) };
            let size = usize::try_from(header.size_bytes()).unwrap_or(usize::MAX);
            let bytes = self.window.bytes(&at.opened.log, position, size, end)?;
            // What an old header looks like has little in it to be wrong, so its checksum is always looked at.
            if (self.reader.options().verify_crc || header.is_legacy())
                && let Err(error) = check_stored(&header, bytes)
            {
                return self.damage(error.to_string());
            }
            let last = Last { base: at.segment.base(), position: at.position, header };
            at.position += header.size_bytes();
            at.expected = header.next_offset().unwrap_or(Offset::MAX);
            if header.last_offset() < self.next.offset {
                continue;
            }
            let position = Position { offset: at.expected, leader_epoch: Some(header.leader_epoch()) };
            let Some(is_wanted) = self.is_wanted(&header) else {
                // Retention or a cut came between: looking for the place anew tells which.
                self.at = None;
                continue;
            };
            self.next = position;
            if is_wanted {
                self.last = Some(last);
                return Ok(Some(last));
            }
        }
    }

    /// False for what committed reads leave out; `None` where that is not known any more.
    fn is_wanted(&self, header: &BatchHeader) -> Option<bool> {
        if header.is_control() {
            return Some(self.with_control);
        }
        if !header.is_transactional() || !self.reader.is_committed() {
            return Some(true);
        }
        let era = self.at.as_ref().map_or(0, |at| at.era);
        self.reader.is_aborted(header, era).map(|is_aborted| !is_aborted)
    }

    /// Finds the batch that holds the next offset. False where it is not there yet.
    fn seek(&mut self) -> Result<bool> {
        self.reader.check_follow()?;
        self.check_cut()?;
        let (start, (end, era)) = (self.reader.start(), self.reader.visible()?);
        if self.next.offset < start || self.next.offset > self.reader.written_end() {
            return Err(Error::OffsetOutOfRange { requested: self.next.offset, start, end });
        }
        self.was_in_range = true;
        if self.next.offset >= end {
            return Ok(false);
        }
        self.window.clear();
        let set = self.reader.set_number();
        let found = self.reader.locate(self.next.offset, &mut self.window);
        self.window.clear();
        self.window.set_block(BLOCK_BYTES);
        if let Err(Error::Corrupt(damage)) = &found {
            // Said once: the next call goes on behind it.
            self.pass(damage.position)?;
        }
        let Some((segment, located)) = found? else { return Ok(false) };
        let opened = self.reader.with_segment(&segment, Segment::open)?;
        self.reader.advise(&opened.log);
        let expected = located.header.base_offset();
        let position = located.position;
        self.at = Some(At { segment, opened, position, expected, bound: position, set, era });
        Ok(true)
    }

    /// Moves on to the first batch behind damage in the segment that the next offset belongs to.
    fn pass(&mut self, position: u64) -> Result<()> {
        let segments = self.reader.shared().segments();
        let place = LogReader::floor(&segments, self.next.offset);
        let Some(segment) = segments.get(place) else { return Ok(()) };
        let good = self.reader.with_segment(segment, |segment| segment.behind_damage(position))?;
        let following = segments.get(place + 1).map(|next| next.base());
        let next = good.or(following).unwrap_or_else(|| segment.end().next);
        if next > self.next.offset {
            // Of the batches passed over nobody knows the epochs.
            self.next = next.into();
        }
        Ok(())
    }

    fn check_cut(&self) -> Result<()> {
        let written = self.reader.written_end();
        let is_past_end = self.was_in_range && self.next.offset > written;
        match self.reader.cut_below(self.next).or(is_past_end.then_some(written)) {
            Some(end) => Err(Error::Truncated { end }),
            None => Ok(()),
        }
    }

    /// True where the segment has another object by now: it was sealed, or another writer goes on with it.
    fn is_replaced(reader: &LogReader, at: &At) -> bool {
        let segments = reader.shared().segments();
        let now = segments.iter().rev().find(|segment| segment.base() == at.segment.base());
        now.is_some_and(|now| !Arc::ptr_eq(now, &at.segment))
    }

    /// Looks how far the segment may be read now. False where there is no more of it.
    fn extend(reader: &LogReader, at: &mut At, next: &mut Position) -> Result<bool> {
        let (end, era) = reader.visible()?;
        if reader.is_following()
            && let Some(end) = reader.cut_below(*next)
        {
            return Err(Error::Truncated { end });
        }
        if at.expected >= end && at.segment.end().next > end {
            return Ok(false);
        }
        let bound = reader.borrow_memory(|window, _| reader.bound(&at.segment, end, window))?;
        let grown = bound > at.bound.max(at.position);
        at.bound = at.bound.max(bound);
        at.era = era;
        Ok(grown)
    }

    /// Goes on with the segment after this one. False where there is none yet, or nothing in it.
    fn next_segment(&mut self) -> Result<bool> {
        let Some(at) = &self.at else { return Ok(false) };
        let segments = self.reader.shared().segments();
        let Some(next) = segments.iter().find(|segment| segment.base() > at.segment.base()) else {
            return Ok(false);
        };
        // A successor is only begun once its predecessor is complete, so look at that once more first.
        if at.segment.end().position > at.bound && at.segment.end().next <= self.reader.visible_end()? {
            return Ok(true);
        }
        if self.next.offset < self.reader.start() || next.base() < self.next.offset {
            // Retention overtook the walk, which `seek` says, or offsets were left out: find the place anew.
            self.at = None;
            return self.seek();
        }
        let (end, era) = self.reader.visible()?;
        if next.base() >= end {
            return Ok(false);
        }
        let opened = match self.reader.with_segment(next, Segment::open) {
            Ok(opened) => opened,
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                self.reader.look_again()?;
                self.at = None;
                return self.seek();
            }
            Err(error) => return Err(error),
        };
        self.reader.advise(&opened.log);
        self.window.clear();
        let (segment, expected, set) = (Arc::clone(next), next.base(), self.reader.set_number());
        self.at = Some(At { segment, opened, position: 0, expected, bound: 0, set, era });
        Ok(true)
    }

    /// Reports bytes that are no batch, and gets ready to go on behind them.
    fn damage(&mut self, reason: String) -> Result<Option<Last>> {
        if let Some(at) = &self.at
            && self.reader.has_other_set(at.set)
        {
            // It may have been cut under the walk: then that is said, or the place is found anew. Where that fails as well it
            // is damage after all.
            let kept = self.at.take();
            match self.seek() {
                Err(error) if error.is_corruption() => self.at = kept,
                found => return if found? { self.advance() } else { Ok(None) },
            }
        }
        let Some(at) = &mut self.at else { return Ok(None) };
        let (position, bound) = (u64::from(at.position), u64::from(at.bound));
        let log = &at.opened.log;
        let found = corruption(log, position, Some(at.expected), reason);
        let is_untrimmed = at.segment.is_sealed()
            && at.segment.end().next == at.expected
            && is_zero(log, &mut Window::new(BLOCK_BYTES), position, bound)?;
        let here = self.last.filter(|last| last.base == at.segment.base());
        let is_old = here.map_or(position == 0, |last| last.header.is_legacy());
        let mut scan = Scan::new(log, at.segment.base(), position, at.expected)?
            .until(bound)
            .of_offsets_below(at.segment.end().next)
            .behind_old(is_old);
        let after = if !is_untrimmed && scan.resync()? { scan.position() } else { bound };
        at.position = u32::try_from(after).unwrap_or(at.bound);
        if is_untrimmed {
            return self.advance();
        }
        Err(found.into())
    }
}

fn damaged(batches: &Batches, last: Last, reason: String) -> Error {
    let name = crate::segment::file_name(last.base, crate::segment::FileKind::Log);
    let path = batches.reader.path().join(name);
    let (position, offset) = (u64::from(last.position), Some(last.header.base_offset()));
    crate::error::Corruption { path, position, offset, reason }.into()
}
