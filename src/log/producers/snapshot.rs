//! `.snapshot`: the producers as of the offset in the name, as Kafka 4.4 writes them (`ProducerStateManager`). Big-endian.
//!
//! | at | field | type |
//! | ---: | --- | --- |
//! | 0 | version, 1 | i16 |
//! | 2 | CRC-32C of all that follows | u32 |
//! | 6 | count | i32 |
//! | 10 | entries of 46 bytes | |
//!
//! An entry: producer id i64, epoch i16, last sequence i32 (-1 none), last offset i64 (-1 none), last offset less the
//! batch's first i32, timestamp i64, coordinator epoch i32 (-1 none), first offset of the open transaction i64 (-1 none).
//! Kafka writes the entries in the order of its hash table and reads them in any; here they rise by producer id. Bytes
//! after the last entry are let pass where the CRC covers them, as Kafka does.

use super::state::{Entry, SentBatch, State};
use crate::{
    error::Result,
    offset::{Offset, Timestamp},
    record::crc32c,
    segment::{FileKind, file_name},
    sys::Dir,
};

const VERSION: i16 = 1;
const CRC_AT: usize = 2;
const BODY_AT: usize = 6;
const HEAD_BYTES: usize = 10;
const ENTRY_BYTES: usize = 46;
/// Larger files are not read: more producers than are remembered.
const MAX_BYTES: usize = 64 << 20;
/// What a snapshot is written under before it has its name. An open takes away what a crash left of it.
const TEMPORARY_NAME: &str = ".stratalog-snapshot.tmp";

/// The bytes of a file, and the CRC in them.
pub(crate) fn encode(state: &State) -> (Vec<u8>, u32) {
    let entries = state.sorted();
    let mut out = Vec::with_capacity(HEAD_BYTES + entries.len() * ENTRY_BYTES);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&i32::try_from(entries.len()).unwrap_or(i32::MAX).to_be_bytes());
    for (id, entry) in entries {
        let last = entry.last();
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&entry.epoch.to_be_bytes());
        out.extend_from_slice(&entry.last_sequence().to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |last| last.last_offset.value()).to_be_bytes());
        out.extend_from_slice(&last.map_or(0, |last| last.offset_delta).to_be_bytes());
        out.extend_from_slice(&entry.last_timestamp.millis().to_be_bytes());
        out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
        out.extend_from_slice(&entry.transaction_start.map_or(-1, Offset::value).to_be_bytes());
    }
    let crc = crc32c(&out[BODY_AT..]);
    out[CRC_AT..BODY_AT].copy_from_slice(&crc.to_be_bytes());
    (out, crc)
}

/// Reads a file's bytes: the producers and the CRC. The error is a sentence that says what is wrong.
pub(crate) fn parse(bytes: &[u8]) -> Result<(State, u32), String> {
    let mut fields = Fields(bytes);
    let version = fields.take().map(i16::from_be_bytes).ok_or("too short")?;
    if version != VERSION {
        return Err(format!("version {version} where {VERSION} is known"));
    }
    let crc = fields.take().map(u32::from_be_bytes).ok_or("too short")?;
    let computed = crc32c(fields.0);
    if crc != computed {
        return Err(format!("the stored CRC is {crc:#010x}, the bytes give {computed:#010x}"));
    }
    let count = fields.take().map(i32::from_be_bytes).ok_or("too short")?;
    let room = fields.0.len() / ENTRY_BYTES;
    let count = usize::try_from(count).ok().filter(|count| *count <= room);
    let Some(count) = count else { return Err("more entries are declared than there are".to_owned()) };
    let mut state = State::default();
    for index in 0..count {
        let (id, entry) = fields.entry().ok_or_else(|| format!("entry {index} makes no sense"))?;
        if !state.insert(id, entry) {
            return Err(format!("producer {id} is there twice"));
        }
    }
    Ok((state, crc))
}

/// What is left to read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn entry(&mut self) -> Option<(i64, Entry)> {
        let id = self.take().map(i64::from_be_bytes).filter(|id| *id >= 0)?;
        let mut entry = Entry::unknown();
        entry.epoch = self.take().map(i16::from_be_bytes).filter(|epoch| *epoch >= -1)?;
        let last_sequence = self.take().map(i32::from_be_bytes).filter(|last| *last >= -1)?;
        let last_offset = self.take().map(i64::from_be_bytes).filter(|last| *last >= -1)?;
        let offset_delta = self.take().map(i32::from_be_bytes).filter(|delta| *delta >= 0)?;
        let timestamp = self.take().map(i64::from_be_bytes).map(Timestamp::from_millis)?;
        entry.coordinator_epoch = self.take().map(i32::from_be_bytes)?;
        let start = self.take().map(i64::from_be_bytes).filter(|start| *start >= -1)?;
        entry.last_timestamp = timestamp;
        entry.transaction_start = Offset::new(start);
        if let Some(last_offset) = Offset::new(last_offset) {
            if i64::from(offset_delta) > last_offset.value() {
                return None;
            }
            entry.push(SentBatch { last_sequence, last_offset, offset_delta, timestamp });
            entry.is_partial = true;
        }
        Some((id, entry))
    }
}

/// Reads the snapshot of `offset`; `None` where there is none. The inner error says why it is not to be believed.
pub(crate) fn load(dir: &Dir, offset: Offset) -> Option<Result<(State, u32), String>> {
    let name = file_name(offset, FileKind::Snapshot);
    let read = dir.read_small(&name, MAX_BYTES).map_err(|error| error.to_string());
    let parsed = match read {
        Ok(None) => return None,
        Ok(Some(bytes)) => parse(&bytes).map_err(|what| format!("{}: {what}", dir.path_of(&name).display())),
        Err(error) => Err(error),
    };
    Some(parsed)
}

/// Writes the snapshot of `offset`, whole and then by name, and returns its CRC. Not synced.
pub(crate) fn store(dir: &Dir, offset: Offset, state: &State, mode: u32) -> Result<u32> {
    let (bytes, crc) = encode(state);
    let name = file_name(offset, FileKind::Snapshot);
    dir.replace(name.as_ref(), TEMPORARY_NAME.as_ref(), &bytes, mode, false)?;
    Ok(crc)
}
