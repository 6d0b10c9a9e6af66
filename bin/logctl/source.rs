//! Where records are read from: a partition directory, one segment file by itself, or a partition of a broker.
//!
//! A file has no index that is trusted and no neighbour: it is read from its front, once to see what it holds and once
//! to give it.

use std::{collections::VecDeque, ops::ControlFlow};

use stratalog::{
    Access, Batches, Isolation, LogReader, Offset, ReadOptions, Timestamp,
    inspect::{LogFile, Piece, Tail},
    record::{BatchRef, Scratch},
};

use crate::{
    broker::Partition,
    damage::Damage,
    failure::{Code, Failure},
    globals::Globals,
    grammar::OffsetRange,
    stop::Stop,
    target::Target,
};

/// Something to read.
pub(crate) enum Source {
    Log(LogReader),
    File(SegmentFile),
    Broker(Partition),
}

/// A `.log` file and what it was found to hold.
pub(crate) struct SegmentFile {
    file: LogFile,
    start: Offset,
    end: Offset,
}

/// What to do with each batch.
pub(crate) type Visit<'v> = dyn FnMut(&BatchRef<'_>) -> Result<ControlFlow<()>, Failure> + 'v;

impl Source {
    /// Opens the target; changes nothing.
    pub(crate) fn open(target: &Target, access: Access, isolation: Isolation) -> Result<Self, Failure> {
        if !target.is_file {
            let mut options = ReadOptions::default();
            (options.access, options.isolation) = (access, isolation);
            return Ok(Self::Log(LogReader::open(&target.path, options)?));
        }
        if isolation == Isolation::Committed {
            return Err(Failure::usage(
                "a single segment file does not tell which transactions were committed",
            )
            .hint("name the partition directory that it lies in"));
        }
        let file = LogFile::open(&target.path)?;
        let is_log = target.path.extension().is_some_and(|suffix| suffix == "log");
        // What was cut from a log, or exported, has batches in it too.
        if !is_log && file.first_offset(u64::MAX)?.is_none() {
            return Err(Failure::usage(format!("{}: there is no whole batch in it", target.path.display()))
                .hint("`logctl dump` reads indexes and other files"));
        }
        SegmentFile::open(file).map(Self::File)
    }

    /// The first offset there is.
    pub(crate) fn start(&self) -> Offset {
        match self {
            Self::Log(reader) => reader.start(),
            Self::File(file) => file.start,
            Self::Broker(partition) => partition.start(),
        }
    }

    /// The offset after the last.
    pub(crate) fn end(&self) -> Offset {
        match self {
            Self::Log(reader) => reader.end(),
            Self::File(file) => file.end,
            Self::Broker(partition) => partition.end(),
        }
    }

    /// The first record that is not older than `at`.
    pub(crate) fn first_not_before(&self, at: Timestamp) -> Result<Option<Offset>, Failure> {
        match self {
            Self::Log(reader) => Ok(reader.offset_for_timestamp(at)?.map(|(offset, _)| offset)),
            Self::File(file) => {
                let mut found = None;
                let mut scratch = Scratch::new();
                file.visit(file.start, &mut |batch| {
                    if batch.max_timestamp() < at {
                        return Ok(ControlFlow::Continue(()));
                    }
                    for record in batch.records(&mut scratch).map_err(|e| Failure::other(e.to_string()))? {
                        let record = record.map_err(|e| Failure::other(e.to_string()))?;
                        if record.timestamp() >= at {
                            found = Some(record.offset());
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok(found)
            }
            Self::Broker(partition) => partition.first_not_before(at),
        }
    }

    /// Where the last `count` records begin that are not control records; all of them where there are fewer.
    pub(crate) fn last_records_from(&self, count: u64, stop: &Stop) -> Result<Offset, Failure> {
        match self {
            Self::Log(reader) => {
                let mut wanted = count;
                loop {
                    let from = reader.last_records_from(wanted)?;
                    if from <= reader.start() {
                        return Ok(from);
                    }
                    // The log counts control records too, so that it need not read: as many more are asked for.
                    let found = self.count_data_records(from, stop)?;
                    if found >= count {
                        return Ok(from);
                    }
                    wanted = wanted.saturating_add(count - found);
                }
            }
            Self::File(file) => {
                let total = file.count_records()?;
                let mut skip = total.saturating_sub(count);
                let mut from = file.end;
                let mut scratch = Scratch::new();
                file.visit_over(&mut Damage::ignored(), file.start, &mut |batch| {
                    if batch.is_control() {
                        return Ok(ControlFlow::Continue(()));
                    }
                    let here = u64::from(batch.record_count().max(0).unsigned_abs());
                    if skip >= here {
                        skip -= here;
                        return Ok(ControlFlow::Continue(()));
                    }
                    let mut records =
                        batch.records(&mut scratch).map_err(|e| Failure::other(e.to_string()))?;
                    let at = usize::try_from(skip).unwrap_or(usize::MAX);
                    if let Some(Ok(record)) = records.nth(at) {
                        from = record.offset();
                    }
                    Ok(ControlFlow::Break(()))
                })?;
                Ok(from)
            }
            Self::Broker(partition) => self.last_of_broker(partition, count, stop),
        }
    }

    /// A broker counts nothing: the end is looked at, and more of it where offsets are missing there.
    fn last_of_broker(&self, partition: &Partition, count: u64, stop: &Stop) -> Result<Offset, Failure> {
        let kept = usize::try_from(count).unwrap_or(usize::MAX);
        let mut looked_at = count;
        let mut scratch = Scratch::new();
        loop {
            let from = partition.end().saturating_sub(looked_at).max(partition.start());
            if from <= partition.start() || count == 0 {
                return Ok(from);
            }
            let mut last = VecDeque::new();
            // What is damaged is met again when it is printed.
            self.visit_over(&mut Damage::ignored(), from, stop, &mut |batch| {
                if batch.is_control() {
                    return Ok(ControlFlow::Continue(()));
                }
                for record in batch.records(&mut scratch).map_err(|e| Failure::other(e.to_string()))? {
                    let offset = record.map_err(|e| Failure::other(e.to_string()))?.offset();
                    if offset >= from {
                        last.push_back(offset);
                    }
                    if last.len() > kept {
                        last.pop_front();
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if last.len() >= kept {
                return Ok(last.front().copied().unwrap_or(from));
            }
            looked_at = looked_at.saturating_mul(4);
        }
    }

    /// How many records there are from `from` on, control records left out.
    fn count_data_records(&self, from: Offset, stop: &Stop) -> Result<u64, Failure> {
        let mut count = 0_u64;
        let mut scratch = Scratch::new();
        // What is damaged is met again when it is printed.
        self.visit_over(&mut Damage::ignored(), from, stop, &mut |batch| {
            if batch.is_control() {
                return Ok(ControlFlow::Continue(()));
            }
            if batch.base_offset() >= from {
                count += u64::from(batch.record_count().max(0).unsigned_abs());
                return Ok(ControlFlow::Continue(()));
            }
            for record in batch.records(&mut scratch).map_err(|e| Failure::other(e.to_string()))? {
                let record = record.map_err(|e| Failure::other(e.to_string()))?;
                count += u64::from(record.offset() >= from);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// The offsets that a range stands for.
    pub(crate) fn resolve(&self, range: &OffsetRange) -> Result<(Offset, Offset), Failure> {
        let resolved = range.resolve(self.start(), self.end(), |at| self.first_not_before(at));
        match self {
            Self::Broker(partition) => resolved.map_err(|failure: Failure| match failure.code {
                Code::NotFound => crate::broker::told_at(partition, failure),
                _ => failure,
            }),
            _ => resolved,
        }
    }

    /// Gives each batch from the one that holds `from` on, up to the end. Damage is a failure.
    pub(crate) fn visit(&self, from: Offset, stop: &Stop, visit: &mut Visit<'_>) -> Result<(), Failure> {
        self.visit_over(&mut Damage::new(false), from, stop, visit)
    }

    /// The same, with what is to be done about damage.
    pub(crate) fn visit_over(
        &self,
        damage: &mut Damage,
        from: Offset,
        stop: &Stop,
        visit: &mut Visit<'_>,
    ) -> Result<(), Failure> {
        match self {
            Self::Log(reader) => {
                // Who prints leaves control records out.
                let mut batches = reader.batches(from).include_control(true);
                loop {
                    let at = batches.position().offset;
                    let batch = match batches.next_batch() {
                        Ok(Some(batch)) => batch,
                        Ok(None) => {
                            damage.ends_at(reader.end());
                            return Ok(());
                        }
                        Err(error) => {
                            if let Err(failure) = damage.met(at, error.into()) {
                                return Err(with_way_on(failure, &mut batches));
                            }
                            continue;
                        }
                    };
                    stop.check()?;
                    damage.ends_at(batch.base_offset());
                    let (base, next) = (batch.base_offset(), batch.next_offset().unwrap_or(Offset::MAX));
                    match visit(&batch) {
                        Ok(ControlFlow::Continue(())) => {}
                        Ok(ControlFlow::Break(())) => return Ok(()),
                        Err(failure) => {
                            damage.met(base, failure)?;
                            damage.ends_at(next);
                        }
                    }
                }
            }
            Self::File(file) => file.visit_over(damage, from, &mut |batch| {
                stop.check()?;
                visit(batch)
            }),
            Self::Broker(partition) => partition.visit_over(damage, from, stop, visit),
        }
    }
}

/// Asked again after damage, a walk goes on with the next batch that checks: that is where to read on.
fn with_way_on(failure: Failure, batches: &mut Batches) -> Failure {
    if failure.code != Code::Corrupt {
        return failure;
    }
    match batches.next_batch() {
        Ok(Some(next)) => failure.hint(format!(
            "`-o {}` reads on behind it, --skip-damaged over all there is; `logctl verify` lists everything that is damaged",
            next.base_offset()
        )),
        _ => failure,
    }
}

impl SegmentFile {
    fn open(file: LogFile) -> Result<Self, Failure> {
        // Without one in its name a file says nothing of offsets before its first whole batch.
        let named = match stratalog::inspect::base_offset_of(file.path()) {
            None => file.first_offset(u64::MAX)?,
            named => named,
        };
        let mut found =
            Self { file, start: named.unwrap_or(Offset::ZERO), end: named.unwrap_or(Offset::ZERO) };
        let mut first = named;
        let mut end = found.end;
        let seen = found.visit(Offset::ZERO, &mut |batch| {
            first.get_or_insert(batch.base_offset());
            end = batch.next_offset().unwrap_or(Offset::MAX);
            Ok(ControlFlow::Continue(()))
        });
        match seen {
            // It is told when what lies before it has been printed.
            Err(failure) if failure.code == Code::Corrupt => end = Offset::MAX,
            seen => seen?,
        }
        found.start = first.unwrap_or(found.start);
        found.end = end;
        Ok(found)
    }

    /// The newest timestamp; `None` where there are no records.
    pub(crate) fn max_timestamp(&self) -> Result<Option<Timestamp>, Failure> {
        let mut newest = None;
        self.visit(self.start, &mut |batch| {
            newest = newest.max(Some(batch.max_timestamp()));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(newest)
    }

    fn count_records(&self) -> Result<u64, Failure> {
        let mut count = 0;
        self.visit_over(&mut Damage::ignored(), self.start, &mut |batch| {
            if batch.is_control() {
                return Ok(ControlFlow::Continue(()));
            }
            count += u64::from(batch.record_count().max(0).unsigned_abs());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    fn visit(&self, from: Offset, visit: &mut Visit<'_>) -> Result<(), Failure> {
        self.visit_over(&mut Damage::new(false), from, visit)
    }

    fn visit_over(&self, damage: &mut Damage, from: Offset, visit: &mut Visit<'_>) -> Result<(), Failure> {
        let path = self.file.path().display();
        let corrupt = |position: u64, reason: &dyn std::fmt::Display| {
            Failure::new(Code::Corrupt, format!("{path} at byte {position}: {reason}"))
                .hint("--skip-damaged reads on behind it; `logctl verify` and `logctl dump` show more")
        };
        let mut pieces = self.file.pieces();
        // What the next batch is expected to begin with.
        let mut next = self.start;
        let (mut made, mut scratch) = (Vec::new(), Scratch::new());
        while let Some(piece) = pieces.next_piece()? {
            let batch = match piece {
                Piece::Batch(entry) => {
                    let sound = entry.crc_ok();
                    let Some(batch) = entry.batch.filter(|_| sound) else {
                        damage.met(next, corrupt(entry.position, &"the CRC does not fit"))?;
                        continue;
                    };
                    batch
                }
                // Of format 0 or 1: given as the batch of format 2 with the same records, as a log's reader does.
                Piece::Old(entry) => {
                    let batch = entry.message.to_batch(&mut scratch, &mut made);
                    match batch.and_then(|()| BatchRef::parse(&made)) {
                        Ok(batch) => batch,
                        Err(error) => {
                            damage.met(next, corrupt(entry.position, &error))?;
                            continue;
                        }
                    }
                }
                Piece::Bad { position, reason, .. } => {
                    damage.met(next, corrupt(position, &reason))?;
                    continue;
                }
                _ => {
                    return Err(Failure::other(format!("{path}: something that this version does not know")));
                }
            };
            damage.ends_at(batch.base_offset());
            next = batch.next_offset().unwrap_or(Offset::MAX);
            if batch.last_offset() < from {
                continue;
            }
            match visit(&batch) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(failure) => {
                    damage.met(batch.base_offset(), failure)?;
                    damage.ends_at(next);
                }
            }
        }
        damage.ends_at(next);
        Ok(())
    }

    /// What lies behind the last batch, where it is not what a running or killed writer leaves.
    fn odd_tail(&self) -> Result<Option<String>, Failure> {
        let mut pieces = self.file.pieces();
        while pieces.next_piece()?.is_some() {}
        Ok(match pieces.tail() {
            Some(Tail::Partial { position, size_bytes }) => {
                Some(format!("the last {size_bytes} bytes, from {position} on, are the beginning of a batch"))
            }
            Some(Tail::Bad { position, size_bytes, reason }) => {
                Some(format!("the last {size_bytes} bytes, from {position} on, are no batch: {reason}"))
            }
            _ => None,
        })
    }
}

/// Says on standard error what a single file's end is made of, if it is odd.
pub(crate) fn tell_tail(source: &Source, globals: &Globals) -> Result<(), Failure> {
    if let Source::File(file) = source
        && let Some(tail) = file.odd_tail()?
    {
        globals.note(format!("warning: {}: {tail}", file.file.path().display()));
    }
    Ok(())
}
