//! By batches or by records: two logs walked side by side, wherever their segments begin.

use std::{collections::VecDeque, path::PathBuf};

use stratalog::{
    Access, Batches, LogReader, Offset, ReadOptions,
    inspect::{LogFile, Piece, Pieces, Tail},
    record::{BatchRef, OwnedRecord, Scratch},
};

use super::{Compared, Difference, Place, Watch};
use crate::{
    failure::{Code, Failure},
    globals::Globals,
    output::counted,
    target::Target,
};

/// Where a batch has its leader epoch, which lies outside its CRC.
const EPOCH_BYTES: std::ops::Range<usize> = 12..16;

/// One of the two, opened.
enum Side {
    Log(LogReader),
    File(LogFile),
}

/// A walk over its batches.
enum Walk<'s> {
    Log(&'s LogReader, Box<Batches>),
    File(&'s LogFile, Box<Pieces<'s>>, u64, Box<Made>),
}

/// The batch of format 2 that was made of a message of format 0 or 1, as a log's reader makes it.
#[derive(Default)]
struct Made {
    bytes: Vec<u8>,
    scratch: Scratch,
}

impl Side {
    fn open(target: &Target) -> Result<Self, Failure> {
        if target.is_file {
            let file = LogFile::open(&target.path)?;
            let is_log = target.path.extension().is_some_and(|suffix| suffix == "log");
            if !is_log && file.first_offset(u64::MAX)?.is_none() {
                return Err(Failure::usage(format!(
                    "{}: there is no whole batch in it",
                    target.path.display()
                ))
                .hint("files of other kinds are compared with --by bytes"));
            }
            return Ok(Self::File(file));
        }
        let mut options = ReadOptions::default();
        options.access = Access::Sequential;
        Ok(Self::Log(LogReader::open(&target.path, options)?))
    }

    fn total_bytes(&self) -> u64 {
        match self {
            Self::Log(reader) => reader.stats().bytes,
            Self::File(file) => file.len_bytes(),
        }
    }

    fn start(&self) -> Option<Offset> {
        match self {
            Self::Log(reader) => Some(reader.start()),
            Self::File(_) => None,
        }
    }

    fn walk(&self) -> Walk<'_> {
        match self {
            Self::Log(reader) => Walk::Log(reader, Box::new(reader.batches(reader.start()))),
            Self::File(file) => Walk::File(file, Box::new(file.pieces()), 0, Box::default()),
        }
    }
}

impl Walk<'_> {
    fn next_batch(&mut self) -> Result<Option<BatchRef<'_>>, Failure> {
        match self {
            Self::Log(_, batches) => Ok(batches.next_batch()?),
            Self::File(file, pieces, at, made) => {
                *at = pieces.position();
                let path = file.path().display();
                match pieces.next_piece()? {
                    None => Ok(None),
                    Some(Piece::Batch(entry)) => {
                        let (position, is_sound) = (entry.position, entry.crc_ok());
                        entry.batch.filter(|_| is_sound).map(Some).ok_or_else(|| {
                            damaged(&format!("{path} at byte {position}: the CRC does not fit"))
                        })
                    }
                    Some(Piece::Bad { position, reason, .. }) => {
                        Err(damaged(&format!("{path} at byte {position}: {reason}")))
                    }
                    Some(Piece::Old(entry)) => {
                        let position = entry.position;
                        entry
                            .message
                            .to_batch(&mut made.scratch, &mut made.bytes)
                            .and_then(|()| BatchRef::parse(&made.bytes))
                            .map(Some)
                            .map_err(|error| damaged(&format!("{path} at byte {position}: {error}")))
                    }
                    Some(_) => Err(Failure::other(format!("{path} at byte {at}: not known here"))),
                }
            }
        }
    }

    /// Where the batch last given lies.
    fn place(&self, offset: Option<Offset>) -> Place {
        match self {
            Self::Log(reader, batches) => match batches.position_of_last() {
                Some((base, position)) => {
                    Place { file: log_path(reader, base), position: Some(position), offset }
                }
                None => Place { file: reader.path().to_owned(), position: None, offset },
            },
            Self::File(file, _, at, _) => Place { file: file.path().to_owned(), position: Some(*at), offset },
        }
    }

    /// To be asked at the end: bytes that are no batch cannot be compared as one.
    fn check_end(&self) -> Result<(), Failure> {
        match self {
            Self::File(file, pieces, ..) => match pieces.tail() {
                Some(Tail::Partial { position, .. } | Tail::Bad { position, .. }) => {
                    let path = file.path().display();
                    Err(damaged(&format!("{path} at byte {position}: no whole batch")))
                }
                _ => Ok(()),
            },
            Self::Log(..) => Ok(()),
        }
    }

    /// Where a log ends that has nothing more.
    fn end(&self) -> Place {
        match self {
            Self::Log(reader, _) => {
                Place { file: reader.path().to_owned(), position: None, offset: Some(reader.end()) }
            }
            Self::File(file, pieces, ..) => {
                Place { file: file.path().to_owned(), position: Some(pieces.position()), offset: None }
            }
        }
    }
}

fn log_path(reader: &LogReader, base: Offset) -> PathBuf {
    let found = reader.segments().into_iter().find(|segment| segment.base_offset == base);
    found.map_or_else(|| reader.path().to_owned(), |segment| segment.path)
}

/// Says which side cannot be read: that is no difference, and nothing is told about the other.
fn of_side<T>(side: &str, read: Result<T, Failure>) -> Result<T, Failure> {
    read.map_err(|failure| {
        if failure.code == Code::Corrupt { failure.at(format!("{side} is damaged")) } else { failure }
    })
}

fn damaged(what: &str) -> Failure {
    Failure::new(Code::Corrupt, what)
        .hint("`logctl verify` lists everything that is damaged; --by bytes compares it as it is")
}

pub(super) fn compare_batches(
    a: &Target,
    b: &Target,
    ignore_epoch: bool,
    globals: &Globals,
) -> Result<Compared, Failure> {
    let (side_a, side_b) = (Side::open(a)?, Side::open(b)?);
    let mut watch = Watch::new(globals, "diff", side_a.total_bytes());
    let mut done = Compared::default();
    if side_a.start() != side_b.start() {
        let place = |side: &Side, target: &Target| Place {
            file: target.path.clone(),
            position: None,
            offset: side.start(),
        };
        let (a, b) = (place(&side_a, a), place(&side_b, b));
        let detail = "the first readable offsets differ".to_owned();
        done.difference = Some(Difference { kind: "start", detail, a, b });
        return Ok(done);
    }
    let (mut walk_a, mut walk_b) = (side_a.walk(), side_b.walk());
    loop {
        let found = match (of_side("A", walk_a.next_batch())?, of_side("B", walk_b.next_batch())?) {
            (Some(one), Some(other)) => {
                let detail = batches_differ(&one, &other, ignore_epoch);
                if detail.is_none() {
                    done.batches += 1;
                    done.records += u64::from(one.record_count().max(0).unsigned_abs());
                    done.bytes += u64::from(one.size_bytes());
                }
                detail.map(|detail| ("batch", detail, Some(one.base_offset()), Some(other.base_offset())))
            }
            (Some(one), None) => {
                Some(("end", "B ends before this batch".to_owned(), Some(one.base_offset()), None))
            }
            (None, Some(other)) => {
                Some(("end", "A ends before this batch".to_owned(), None, Some(other.base_offset())))
            }
            (None, None) => break,
        };
        if let Some((kind, detail, in_a, in_b)) = found {
            let place = |walk: &Walk<'_>, offset: Option<Offset>| {
                offset.map_or_else(|| walk.end(), |offset| walk.place(Some(offset)))
            };
            let (a, b) = (place(&walk_a, in_a), place(&walk_b, in_b));
            done.difference = Some(Difference { kind, detail, a, b });
            return Ok(done);
        }
        watch.tick(done.bytes)?;
    }
    of_side("A", walk_a.check_end())?;
    of_side("B", walk_b.check_end())?;
    if let (Side::Log(one), Side::Log(other)) = (&side_a, &side_b)
        && one.end() != other.end()
    {
        // No record has these offsets any more, but the next one will have another.
        let detail = "the next record gets another offset".to_owned();
        done.difference = Some(Difference { kind: "end", detail, a: walk_a.end(), b: walk_b.end() });
    }
    Ok(done)
}

/// What is not the same in two batches.
fn batches_differ(a: &BatchRef<'_>, b: &BatchRef<'_>, ignore_epoch: bool) -> Option<String> {
    let (bytes_a, bytes_b) = (a.as_bytes(), b.as_bytes());
    let mut pairs = bytes_a.iter().zip(bytes_b).enumerate();
    let first = pairs.find(|(at, (a, b))| a != b && !(ignore_epoch && EPOCH_BYTES.contains(at)));
    if first.is_none() && bytes_a.len() == bytes_b.len() {
        return None;
    }
    let (head_a, head_b) = (a.header(), b.header());
    let fields = [
        ("base offset", head_a.base_offset().value(), head_b.base_offset().value()),
        ("last offset", head_a.last_offset().value(), head_b.last_offset().value()),
        ("size", i64::from(head_a.size_bytes()), i64::from(head_b.size_bytes())),
        ("record count", i64::from(a.record_count()), i64::from(b.record_count())),
        ("attributes", i64::from(head_a.attributes()), i64::from(head_b.attributes())),
        ("largest timestamp", a.max_timestamp().millis(), b.max_timestamp().millis()),
        ("producer id", a.producer_id(), b.producer_id()),
        ("producer epoch", i64::from(a.producer_epoch()), i64::from(b.producer_epoch())),
        ("base sequence", i64::from(a.base_sequence()), i64::from(b.base_sequence())),
        ("CRC", i64::from(head_a.crc()), i64::from(head_b.crc())),
        ("leader epoch", i64::from(head_a.leader_epoch()), i64::from(head_b.leader_epoch())),
    ];
    let told = fields.into_iter().find(|(_, a, b)| a != b);
    Some(told.map_or_else(
        || format!("byte {} of the batch differs", first.map_or(0, |(at, _)| at)),
        |(name, a, b)| match name {
            "CRC" => format!("{name} {a:#010x} in A, {b:#010x} in B"),
            _ => format!("{name} {a} in A, {b} in B"),
        },
    ))
}

/// The records of one side, a batch of them at a time.
struct Records<'s> {
    walk: Walk<'s>,
    from: Offset,
    scratch: Scratch,
    ready: VecDeque<OwnedRecord>,
    bytes: u64,
}

impl<'s> Records<'s> {
    fn new(side: &'s Side) -> Self {
        let from = side.start().unwrap_or(Offset::ZERO);
        Self { walk: side.walk(), from, scratch: Scratch::new(), ready: VecDeque::new(), bytes: 0 }
    }

    fn next(&mut self) -> Result<Option<OwnedRecord>, Failure> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(record));
            }
            let Some(batch) = self.walk.next_batch()? else { return Ok(None) };
            self.bytes += u64::from(batch.size_bytes());
            if batch.is_control() {
                continue;
            }
            let fail = |error: &dyn std::fmt::Display| {
                damaged(&format!("the records of the batch at offset {}: {error}", batch.base_offset()))
            };
            for record in batch.records(&mut self.scratch).map_err(|error| fail(&error))? {
                let record = record.map_err(|error| fail(&error))?;
                if record.offset() >= self.from {
                    self.ready.push_back(OwnedRecord::new(&record, batch.header()));
                }
            }
        }
    }

    fn place(&self, record: Option<&OwnedRecord>) -> Place {
        record.map_or_else(|| self.walk.end(), |record| self.walk.place(Some(record.offset)))
    }
}

pub(super) fn compare_records(a: &Target, b: &Target, globals: &Globals) -> Result<Compared, Failure> {
    let (side_a, side_b) = (Side::open(a)?, Side::open(b)?);
    let mut watch = Watch::new(globals, "diff", side_a.total_bytes());
    let mut done = Compared::default();
    let (mut records_a, mut records_b) = (Records::new(&side_a), Records::new(&side_b));
    loop {
        let (one, other) = (of_side("A", records_a.next())?, of_side("B", records_b.next())?);
        let found = match (&one, &other) {
            (Some(one), Some(other)) => records_differ(one, other).map(|detail| ("record", detail)),
            (Some(_), None) => Some(("end", "B ends before this record".to_owned())),
            (None, Some(_)) => Some(("end", "A ends before this record".to_owned())),
            (None, None) => {
                of_side("A", records_a.walk.check_end())?;
                of_side("B", records_b.walk.check_end())?;
                return Ok(done);
            }
        };
        if let Some((kind, detail)) = found {
            let (a, b) = (records_a.place(one.as_ref()), records_b.place(other.as_ref()));
            done.difference = Some(Difference { kind, detail, a, b });
            return Ok(done);
        }
        done.records += 1;
        if records_a.bytes != done.bytes {
            done.bytes = records_a.bytes;
            watch.tick(done.bytes)?;
        }
    }
}

/// What is not the same in two records.
fn records_differ(a: &OwnedRecord, b: &OwnedRecord) -> Option<String> {
    if a.offset != b.offset {
        return Some(format!("offset {} in A, {} in B", a.offset, b.offset));
    }
    if a.timestamp != b.timestamp {
        return Some(format!("timestamp {} in A, {} in B", a.timestamp.millis(), b.timestamp.millis()));
    }
    for (name, one, other) in [("keys", &a.key, &b.key), ("values", &a.value, &b.value)] {
        if one != other {
            let (one, other) = (one.as_deref(), other.as_deref());
            let at = first_difference(one.unwrap_or_default(), other.unwrap_or_default());
            return Some(format!(
                "the {name} differ from byte {at} on: {} in A, {} in B",
                shown(one, at),
                shown(other, at)
            ));
        }
    }
    (a.headers != b.headers)
        .then(|| format!("the headers differ: {} in A, {} in B", a.headers.len(), b.headers.len()))
}

fn first_difference(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A field around the byte at which it differs, with what is no plain text escaped, and its size.
fn shown(bytes: Option<&[u8]>, at: usize) -> String {
    const BEFORE: usize = 8;
    const MOST: usize = 32;
    let Some(bytes) = bytes else { return "null".to_owned() };
    let from = at.saturating_sub(BEFORE);
    let to = bytes.len().min(from.saturating_add(MOST));
    let part = bytes.get(from..to).unwrap_or_default().escape_ascii();
    let dots = |is_cut: bool| if is_cut { "..." } else { "" };
    let size = counted(bytes.len() as u64, "byte");
    format!("{}\"{part}\"{} ({size})", dots(from > 0), dots(to < bytes.len()))
}
