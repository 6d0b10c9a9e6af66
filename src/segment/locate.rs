//! Finding the batch that holds an offset, or the first record of a time.

use super::{Opened, Scan, Segment, Tail, Window, corruption, is_zero, may_follow, may_stand};
use crate::{
    error::Result,
    index::OffsetEntry,
    offset::{Offset, Timestamp},
    record::{BatchHeader, BatchRef, HEADER_BYTES, Scratch, check_stored, stored_records},
    sys::File,
};

/// A gap between two index entries up to which one read covers all batches between them.
const NEAR_BYTES: u32 = 16 << 10;
/// Read with the batch that is looked for, so that a small one is there whole.
const AHEAD_BYTES: usize = 512;
/// The most that is read at once because an entry says that a batch reaches so far.
const LARGE_BYTES: usize = 256 << 10;
/// Read at a time where the index says nothing.
const WALK_BYTES: usize = 8 << 10;

/// A batch in a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    pub(crate) position: u32,
    pub(crate) header: BatchHeader,
}

/// Where a walk over a segment stands, and the offset that the batch there must not go below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) position: u32,
    pub(crate) next: Offset,
}

/// What a walk over batches is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Go on with the next batch.
    Next,
    /// This one is damaged: go on behind it.
    Damaged,
    /// Stand still in front of it.
    Stop,
}

/// A batch that a walk has come to. Its header has been read, its checksum not looked at.
pub(crate) struct Visited<'a> {
    pub(crate) header: &'a BatchHeader,
    log: &'a File,
    position: u32,
    window: &'a mut Window,
}

impl Visited<'_> {
    /// True where its checksum is right, whichever its format.
    pub(crate) fn is_sound(&mut self) -> Result<bool> {
        let header = self.header;
        Ok(check_stored(header, self.bytes()?).is_ok())
    }

    /// The whole batch; `None` where its checksum is not right, or it is of a format before 2, which says nothing
    /// that is asked for.
    pub(crate) fn checked(&mut self) -> Result<Option<BatchRef<'_>>> {
        Ok(BatchRef::parse(self.bytes()?).ok().filter(|batch| batch.check_crc().is_ok()))
    }

    fn bytes(&mut self) -> Result<&[u8]> {
        let (position, size) = (u64::from(self.position), u64::from(self.header.size_bytes()));
        let want = usize::try_from(size).unwrap_or(usize::MAX);
        Ok(self.window.bytes(self.log, position, want, position + size)?)
    }
}

impl Segment {
    /// The first batch whose last offset is `target` or later; `None` where the segment ends before.
    pub(crate) fn locate(&self, target: Offset, window: &mut Window) -> Result<Option<Located>> {
        let opened = self.open()?;
        match self.begin(&opened, target, window)? {
            Some(Begin::Found(located)) => Ok(Some(located)),
            Some(Begin::Walk(from)) => self.walk(&opened, from, target, window),
            None => {
                // The index named a place where no such batch is. Whatever else it says is not to be believed.
                let opened = self.rebuild("an entry does not match the batch it names")?;
                match self.begin(&opened, target, window)? {
                    Some(Begin::Found(located)) => Ok(Some(located)),
                    Some(Begin::Walk(from)) => self.walk(&opened, from, target, window),
                    None => self.walk(&opened, Place { position: 0, next: self.base() }, target, window),
                }
            }
        }
    }

    /// What the index says, checked against the batches; `None` where it lies.
    fn begin(&self, opened: &Opened, target: Offset, window: &mut Window) -> Result<Option<Begin>> {
        let whole = Place { position: 0, next: self.base() };
        let end = self.end().position;
        let floor = opened.offsets.floor(target);
        let after = opened.offsets.entry(floor.map_or(0, |at| at.saturating_add(1)));
        let Some(entry) = floor.and_then(|at| opened.offsets.entry(at)) else {
            let first = OffsetEntry { offset: self.base(), position: 0 };
            window.set_block(after.map_or(WALK_BYTES, |after| block_to(first, after, target)));
            return Ok(Some(Begin::Walk(whole)));
        };
        let after = after.filter(|after| after.position > entry.position && after.position < end);
        if let Some(after) = after
            && entry.offset < target
            && after.position - entry.position > NEAR_BYTES
        {
            // Large batches: the one that the next entry names is more often the one than not, and the entry after it
            // says how far it reaches.
            let beyond = opened.offsets.entry(floor.map_or(0, |at| at.saturating_add(2)));
            let size = beyond.map_or(end, |beyond| beyond.position.min(end)).saturating_sub(after.position);
            window.set_block(usize::try_from(size).unwrap_or(0).clamp(HEADER_BYTES, LARGE_BYTES));
            let Some(header) = self.header_at(opened, after.position, window)? else { return Ok(None) };
            if header.last_offset() != after.offset {
                return Ok(None);
            }
            if header.base_offset() <= target {
                return Ok(Some(Begin::Found(Located { position: after.position, header })));
            }
        } else {
            window.set_block(after.map_or(WALK_BYTES, |after| block_to(entry, after, target)));
        }
        let Some(header) = self.header_at(opened, entry.position, window)? else { return Ok(None) };
        if header.last_offset() != entry.offset {
            return Ok(None);
        }
        if entry.offset >= target {
            return Ok(Some(Begin::Found(Located { position: entry.position, header })));
        }
        let next = header.next_offset().unwrap_or(Offset::MAX);
        let position = entry.position.saturating_add(header.size_bytes());
        Ok(Some(Begin::Walk(Place { position, next })))
    }

    /// The header of the batch at a position, if a batch that may stand there begins there.
    fn header_at(&self, opened: &Opened, position: u32, window: &mut Window) -> Result<Option<BatchHeader>> {
        let end = self.end().position;
        if position >= end {
            return Ok(None);
        }
        let head = window.bytes(&opened.log, u64::from(position), HEADER_BYTES, u64::from(end))?;
        let header =
            BatchHeader::parse_stored(head).ok().filter(|header| header.size_bytes() <= end - position);
        Ok(header.filter(|header| may_stand(header, self.base(), self.base()).is_ok()))
    }

    /// Whether a batch may stand behind offsets that end at `next`.
    fn may_come_next(&self, header: &BatchHeader, next: Offset) -> bool {
        header.base_offset() >= next && may_follow(header, next, self.end().next).is_ok()
    }

    fn walk(
        &self,
        opened: &Opened,
        from: Place,
        target: Offset,
        window: &mut Window,
    ) -> Result<Option<Located>> {
        let Place { mut position, mut next } = from;
        let mut is_old = position == 0;
        loop {
            let end = self.end().position;
            if position >= end {
                return Ok(None);
            }
            let header = self.header_at(opened, position, window)?;
            match header.filter(|header| self.may_come_next(header, next)) {
                Some(header) if header.last_offset() >= target => {
                    return Ok(Some(Located { position, header: header.reaching_back_to(next) }));
                }
                Some(header) => {
                    is_old = header.is_legacy();
                    position += header.size_bytes();
                    next = header.next_offset().unwrap_or(Offset::MAX);
                }
                None => match self.pass_damage(opened, Place { position, next }, is_old, target)? {
                    Some(after) => position = after,
                    None => return Ok(None),
                },
            }
        }
    }

    /// The position behind damaged bytes; `None` where no record is missing and only zeros follow. An error where `target` may lie in them.
    fn pass_damage(&self, opened: &Opened, at: Place, is_old: bool, target: Offset) -> Result<Option<u32>> {
        let end = u64::from(self.end().position);
        let position = u64::from(at.position);
        // Zeros behind the last record are blocks that were not trimmed; zeros in the place of records are damage.
        if at.next >= self.end().next && is_zero(&opened.log, &mut Window::new(WALK_BYTES), position, end)? {
            return Ok(None);
        }
        let damage = || corruption(&opened.log, position, Some(at.next), "no batch can be read here");
        let mut scan = Scan::new(&opened.log, self.base(), position, at.next)?
            .until(end)
            .of_offsets_below(self.end().next)
            .behind_old(is_old);
        if !scan.resync()? {
            return Err(damage().into());
        }
        match scan.next_batch()? {
            Ok(found) if found.header.base_offset() <= target => Ok(u32::try_from(found.position).ok()),
            _ => Err(damage().into()),
        }
    }

    /// Where the offsets of the first good batch behind damage begin; `None` where there is none.
    pub(crate) fn behind_damage(&self, position: u64) -> Result<Option<Offset>> {
        let opened = self.open()?;
        // More old messages may follow anywhere where the first is one.
        let first = Scan::new(&opened.log, self.base(), 0, self.base())?.next_batch()?;
        let mut scan = Scan::new(&opened.log, self.base(), position, self.base())?
            .until(u64::from(self.end().position))
            .of_offsets_below(self.end().next)
            .behind_old(first.is_ok_and(|first| first.header.is_legacy()));
        let found = if scan.resync()? { scan.next_batch()?.ok() } else { None };
        Ok(found.map(|batch| batch.header.base_offset()))
    }

    /// The first record at `from` or later whose timestamp is `at` or later.
    pub(crate) fn find_timestamp(
        &self,
        at: Timestamp,
        from: Offset,
        (window, scratch): (&mut Window, &mut Scratch),
    ) -> Result<Option<(Offset, Timestamp)>> {
        let begin = self.time_floor(at, window)?.max(from);
        let Some(located) = self.locate(begin, window)? else { return Ok(None) };
        let opened = self.open()?;
        let mut position = located.position;
        window.set_block(WALK_BYTES);
        let mut next = located.header.base_offset();
        loop {
            let end = self.end().position;
            let Some(located) = self.walk(&opened, Place { position, next }, next, window)? else {
                return Ok(None);
            };
            position = located.position;
            let header = located.header;
            if header.max_timestamp() >= at {
                let size = usize::try_from(header.size_bytes()).unwrap_or(usize::MAX);
                let bytes = window.bytes(&opened.log, u64::from(position), size, u64::from(end))?;
                let found = first_at(&header, bytes, at, from, scratch);
                let found = found.map_err(|reason| {
                    corruption(&opened.log, u64::from(position), Some(header.base_offset()), reason)
                })?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            position += header.size_bytes();
            next = header.next_offset().unwrap_or(Offset::MAX);
        }
    }

    /// The largest timestamp of `value` and of the batches from `position` on, and how far they go.
    pub(super) fn largest_behind(
        &self,
        position: u32,
        mut value: Option<(Timestamp, Offset)>,
    ) -> Result<(Option<(Timestamp, Offset)>, u32)> {
        let end = self.visit_headers(position, |header| {
            let at = header.max_timestamp();
            if at > value.map_or(Timestamp::NONE, |(largest, _)| largest) {
                value = Some((at, header.last_offset()));
            }
        })?;
        Ok((value, end))
    }

    /// Shows the headers of all batches from `position` on and returns how far they go. Damage is passed over.
    pub(crate) fn visit_headers(&self, position: u32, mut visit: impl FnMut(&BatchHeader)) -> Result<u32> {
        let mut at = Place { position, next: self.base() };
        self.visit_batches(&mut at, |batch| {
            visit(batch.header);
            Ok(Step::Next)
        })?;
        Ok(at.position)
    }

    /// Shows all batches from a place on to the published end, and moves the place along. Damage is passed over: whoever
    /// reads it is told. False where it was stopped.
    ///
    /// Only headers are read, so a batch is believed until what follows it makes no sense: then its checksum decides
    /// where to go on.
    pub(crate) fn visit_batches(
        &self,
        at: &mut Place,
        mut visit: impl FnMut(&mut Visited<'_>) -> Result<Step>,
    ) -> Result<bool> {
        let end = self.end().position;
        if at.position >= end {
            return Ok(true);
        }
        let opened = self.open()?;
        let mut window = Window::new(WALK_BYTES);
        let mut before = None;
        while at.position < end {
            let found = self.header_at(&opened, at.position, &mut window)?;
            let found = found
                .filter(|header| {
                    self.may_come_next(header, at.next) && header.size_bytes() <= end - at.position
                })
                .map(|header| header.reaching_back_to(at.next));
            let step = match &found {
                Some(header) => {
                    let (log, position) = (&*opened.log, at.position);
                    visit(&mut Visited { header, log, position, window: &mut window })?
                }
                None => Step::Damaged,
            };
            match (step, found) {
                (Step::Stop, _) => return Ok(false),
                (Step::Next, Some(header)) => {
                    before = Some(*at);
                    at.position += header.size_bytes();
                    at.next = header.next_offset().unwrap_or(Offset::MAX);
                }
                _ => *at = self.place_behind_damage(&opened.log, before.take(), *at, end)?,
            }
        }
        Ok(true)
    }

    /// Where to go on when no batch can be at `at`: the batch before may have led there wrongly.
    fn place_behind_damage(&self, log: &File, before: Option<Place>, at: Place, end: u32) -> Result<Place> {
        let begin = before.unwrap_or(at);
        let mut scan = Scan::new(log, self.base(), u64::from(begin.position), begin.next)?
            .until(u64::from(end))
            .of_offsets_below(self.end().next);
        loop {
            match scan.next_batch()? {
                Ok(_) if scan.position() > u64::from(at.position) => break,
                Ok(_) => {}
                Err(Tail::Bad(_)) if scan.resync()? => break,
                Err(_) => return Ok(Place { position: end, next: scan.next_offset() }),
            }
        }
        Ok(Place { position: u32::try_from(scan.position()).unwrap_or(end), next: scan.next_offset() })
    }

    /// An offset before which no record is as late as `at`: what the time index says, where it may be believed.
    fn time_floor(&self, at: Timestamp, window: &mut Window) -> Result<Offset> {
        self.largest()?;
        let opened = self.open()?;
        let entry = opened.times.lookup(at);
        if entry.timestamp == Timestamp::NONE {
            return Ok(self.base());
        }
        // The batch that the entry names has the timestamp that the entry has, or the index is another log's.
        let named = self.locate(entry.offset, window)?;
        let fits = named.is_some_and(|named| {
            named.header.last_offset() == entry.offset && named.header.max_timestamp() == entry.timestamp
        });
        if fits {
            return Ok(entry.offset);
        }
        let opened = self.rebuild("a time entry does not match the batch it names")?;
        Ok(opened.times.lookup(at).offset)
    }
}

enum Begin {
    Found(Located),
    Walk(Place),
}

/// How much to read from one entry's batch on, to have the batch of `target`, which lies before the next entry's: as much
/// as the batches between them take on average, and some.
fn block_to(entry: OffsetEntry, after: OffsetEntry, target: Offset) -> usize {
    let gap = u64::from(after.position.saturating_sub(entry.position));
    let offsets = after.offset.since(entry.offset).max(1);
    let wanted = target.since(entry.offset).saturating_add(1);
    let share = gap.saturating_mul(wanted.min(offsets)) / offsets;
    usize::try_from(share.min(2 * WALK_BYTES as u64)).unwrap_or(WALK_BYTES) + AHEAD_BYTES
}

fn first_at(
    header: &BatchHeader,
    bytes: &[u8],
    at: Timestamp,
    from: Offset,
    scratch: &mut Scratch,
) -> Result<Option<(Offset, Timestamp)>, String> {
    check_stored(header, bytes).map_err(|error| error.to_string())?;
    let (_, records) = stored_records(header, bytes, scratch).map_err(|error| error.to_string())?;
    for record in records {
        let record = record.map_err(|error| error.to_string())?;
        if record.timestamp() >= at && record.offset() >= from {
            return Ok(Some((record.offset(), record.timestamp())));
        }
    }
    Ok(None)
}
