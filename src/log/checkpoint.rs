//! `.stratalog-checkpoint`: what is known to be durable, in a fixed, checksummed layout.
//!
//! A hint like every file but `.log`: lost or damaged it costs a longer scan, never a record. It is rewritten whole, as
//! temporary file, sync, rename, sync of the directory. All integers are big-endian; a CRC-32 (IEEE) covers everything
//! after itself.
//!
//! ```text
//!   0  magic        8   "STRTLGCP"
//!   8  version      u32 2; 1 has no producer points
//!  12  crc          u32 of all that follows
//!  16  flags        u32 bit 0 clean, bit 1 a recovery point, bit 2 it names a batch, bit 3 a cut that was begun, bit 4 it replaces
//!                   the file, bit 5 a cut was finished just before
//!  20  start        i64 the first readable offset
//!  28  known end    i64 no offset below it may be given to another record
//!  36  point        i64 offset, i64 segment base, u64 position, i64 batch base, i32 batch epoch, u32 batch crc,
//!                   u32 batch size
//!  80  cut          i64 offset, i32 new epoch, i64 segment base, u64 position
//! 108  count        u32, then as many sealed segments: i64 base, u64 length
//!      count        u32, then as many producer points: i64 offset, u32 1 where the snapshot of that offset holds the
//!                   producers, 0 where nobody is known there, u32 the CRC in the snapshot
//! ```

use std::{ffi::OsStr, path::Path};

use super::{described::Described, producers::ProducerPoint};
use crate::{
    error::{Error, Result},
    offset::Offset,
    sys::{Dir, Open},
};

/// The file's name.
pub(crate) const CHECKPOINT_NAME: &str = ".stratalog-checkpoint";

const MAGIC: &[u8; 8] = b"STRTLGCP";
const VERSION: u32 = 2;
const VERSION_WITHOUT_PRODUCERS: u32 = 1;
const VERSION_AT: usize = 8;
const CRC_AT: usize = 12;
const BODY_AT: usize = CRC_AT + 4;
const START_AT: usize = BODY_AT + 4;
const START_END: usize = START_AT + 8;
const SEALED_AT: usize = 112;
const SEALED_BYTES: usize = 16;
const PRODUCER_POINT_BYTES: usize = 16;
/// A million segments and more: what a log can hold long before its directory becomes unusable.
const MAX_BYTES: usize = 64 << 20;

const CLEAN: u32 = 1;
const POINT: u32 = 1 << 1;
const BATCH: u32 = 1 << 2;
const CUT: u32 = 1 << 3;
const REPLACES: u32 = 1 << 4;
const AFTER_CUT: u32 = 1 << 5;

/// What is known to be durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// The log was closed, and nothing was written since.
    pub(crate) clean: bool,
    /// The first readable offset.
    pub(crate) start: Offset,
    /// The largest end that was ever known durable.
    pub(crate) known_end: Offset,
    /// Everything below it was synced, sidecars too.
    pub(crate) point: Option<Point>,
    /// A cut that was begun and must be finished first.
    pub(crate) cut: Option<CutRecord>,
    /// A cut was finished and this says so first. Where its writer did not live to see it durable, the record of the cut
    /// may come back in a power cut, and with it the cut, over whatever was appended since: who finds this makes the
    /// directory durable before anything else.
    pub(crate) is_after_cut: bool,
    /// Base offset and length of each sealed segment below the point.
    pub(crate) sealed: Vec<(Offset, u64)>,
    /// From where on the producers' batches have to be read; `None` where that is not known.
    pub(crate) producers: Option<Vec<ProducerPoint>>,
}

/// A place between two batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) offset: Offset,
    /// The segment that holds it.
    pub(crate) base: Offset,
    /// Where in that segment's `.log`.
    pub(crate) position: u64,
    /// The batch that ends there; `None` where the segment holds none yet.
    pub(crate) batch: Option<BatchMark>,
}

/// Enough of a batch to recognise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchMark {
    pub(crate) base_offset: Offset,
    pub(crate) epoch: i32,
    pub(crate) crc: u32,
    pub(crate) size: u32,
}

/// A cut that was begun: the log ends at `offset`, which is `position` in the segment `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CutRecord {
    pub(crate) offset: Offset,
    pub(crate) epoch: i32,
    pub(crate) base: Offset,
    pub(crate) position: u64,
    /// Records that were published go: another file takes the place of the `.log`, which readers may have open, and the
    /// rest of this checkpoint speaks of the log as it is after the cut.
    pub(crate) replaces: bool,
}

/// What reading the file found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Absent,
    /// Unreadable: as good as absent, but worth a warning that names the file.
    Damaged(String),
    Valid(Checkpoint),
}

impl Checkpoint {
    /// The checkpoint of a log that has nothing in it.
    pub(crate) fn empty(start: Offset) -> Self {
        Self {
            clean: false,
            start,
            known_end: start,
            point: None,
            cut: None,
            is_after_cut: false,
            sealed: Vec::new(),
            producers: None,
        }
    }

    /// Reads the directory's checkpoint. Only a newer version is an error: its writer knew more than this one.
    pub(crate) fn load(dir: &Dir) -> Result<Found> {
        match dir.read_small(CHECKPOINT_NAME, MAX_BYTES) {
            Ok(None) => Ok(Found::Absent),
            Ok(Some(bytes)) => Self::decode(&bytes, &dir.path().join(CHECKPOINT_NAME)),
            Err(error) => Ok(Found::Damaged(error.to_string())),
        }
    }

    /// Rewrites the directory's checkpoint, durably.
    pub(crate) fn store(&self, dir: &Dir, mode: u32) -> Result<()> {
        Ok(dir.write_replace(CHECKPOINT_NAME, &self.encode(), mode)?)
    }

    /// The same without the sync of the directory.
    pub(crate) fn store_unsynced(&self, dir: &Dir, mode: u32) -> Result<()> {
        let temporary = format!("{CHECKPOINT_NAME}.tmp");
        let (name, temporary) = (OsStr::new(CHECKPOINT_NAME), OsStr::new(&temporary));
        Ok(dir.replace(name, temporary, &self.encode(), mode, true)?)
    }

    /// Takes the clean flag out of the directory's checkpoint where it stands, and raises the start, which needs no room.
    /// False where there is no checkpoint.
    ///
    /// The checksum, the flags and the start lie side by side in the file's first sector, which a disk writes whole or not
    /// at all; and one that did not would leave a checkpoint that says of itself that it is damaged.
    pub(crate) fn amend_in_place(dir: &Dir, start: Offset) -> Result<bool> {
        let Some(mut bytes) = dir.read_small(CHECKPOINT_NAME, MAX_BYTES)? else { return Ok(false) };
        let Found::Valid(stored) = Self::decode(&bytes, &dir.path_of(CHECKPOINT_NAME))? else {
            return Ok(false);
        };
        // What could be read has all its fields.
        bytes[START_AT - 1] &= !CLEAN.to_be_bytes()[3];
        bytes[START_AT..START_END].copy_from_slice(&stored.start.max(start).value().to_be_bytes());
        let crc = crc32fast::hash(&bytes[BODY_AT..]);
        bytes[CRC_AT..BODY_AT].copy_from_slice(&crc.to_be_bytes());
        let file = dir.open_file(CHECKPOINT_NAME, Open::ReadWrite)?;
        file.write_all_at(&bytes[CRC_AT..START_END], CRC_AT as u64)?;
        file.sync_data()?;
        Ok(true)
    }

    fn encode(&self) -> Vec<u8> {
        let batch = self.point.and_then(|point| point.batch);
        let mut flags = 0;
        for (set, flag) in [
            (self.clean, CLEAN),
            (self.point.is_some(), POINT),
            (batch.is_some(), BATCH),
            (self.cut.is_some(), CUT),
            (self.cut.is_some_and(|cut| cut.replaces), REPLACES),
            (self.is_after_cut, AFTER_CUT),
        ] {
            if set {
                flags |= flag;
            }
        }
        let mut out = Vec::with_capacity(SEALED_AT + self.sealed.len() * SEALED_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&self.start.value().to_be_bytes());
        out.extend_from_slice(&self.known_end.value().to_be_bytes());
        let point = self.point.unwrap_or(Point {
            offset: Offset::ZERO,
            base: Offset::ZERO,
            position: 0,
            batch: None,
        });
        out.extend_from_slice(&point.offset.value().to_be_bytes());
        out.extend_from_slice(&point.base.value().to_be_bytes());
        out.extend_from_slice(&point.position.to_be_bytes());
        let batch = batch.unwrap_or(BatchMark { base_offset: Offset::ZERO, epoch: 0, crc: 0, size: 0 });
        out.extend_from_slice(&batch.base_offset.value().to_be_bytes());
        out.extend_from_slice(&batch.epoch.to_be_bytes());
        out.extend_from_slice(&batch.crc.to_be_bytes());
        out.extend_from_slice(&batch.size.to_be_bytes());
        let cut = self.cut.unwrap_or(CutRecord {
            offset: Offset::ZERO,
            epoch: 0,
            base: Offset::ZERO,
            position: 0,
            replaces: false,
        });
        out.extend_from_slice(&cut.offset.value().to_be_bytes());
        out.extend_from_slice(&cut.epoch.to_be_bytes());
        out.extend_from_slice(&cut.base.value().to_be_bytes());
        out.extend_from_slice(&cut.position.to_be_bytes());
        out.extend_from_slice(&u32::try_from(self.sealed.len()).unwrap_or(u32::MAX).to_be_bytes());
        for (base, length) in &self.sealed {
            out.extend_from_slice(&base.value().to_be_bytes());
            out.extend_from_slice(&length.to_be_bytes());
        }
        // One that came from a file without them stays without.
        if let Some(points) = &self.producers {
            out.extend_from_slice(&u32::try_from(points.len()).unwrap_or(u32::MAX).to_be_bytes());
            for point in points {
                out.extend_from_slice(&point.offset.value().to_be_bytes());
                out.extend_from_slice(&u32::from(point.snapshot_crc.is_some()).to_be_bytes());
                out.extend_from_slice(&point.snapshot_crc.unwrap_or(0).to_be_bytes());
            }
        } else {
            out[VERSION_AT..CRC_AT].copy_from_slice(&VERSION_WITHOUT_PRODUCERS.to_be_bytes());
        }
        let crc = crc32fast::hash(&out[BODY_AT..]);
        out[CRC_AT..BODY_AT].copy_from_slice(&crc.to_be_bytes());
        out
    }

    fn decode(bytes: &[u8], path: &Path) -> Result<Found> {
        let damaged = |what: &str| Ok(Found::Damaged(format!("{}: {what}", path.display())));
        let mut fields = Fields(bytes);
        if fields.take::<8>() != Some(*MAGIC) {
            return damaged("not a checkpoint");
        }
        let version = match fields.u32() {
            Some(version @ (VERSION_WITHOUT_PRODUCERS | VERSION)) => version,
            Some(version) if version > VERSION => {
                let what = format!("checkpoint version {version}");
                return Err(Error::UnsupportedVersion { path: path.to_owned(), what });
            }
            _ => return damaged("no version"),
        };
        let Some(crc) = fields.u32() else { return damaged("too short") };
        if crc32fast::hash(fields.0) != crc {
            return damaged("its checksum does not match");
        }
        match Self::decode_body(&mut fields, version) {
            Some(checkpoint) => Ok(Found::Valid(checkpoint)),
            None => damaged("its fields make no sense"),
        }
    }

    fn decode_body(fields: &mut Fields<'_>, version: u32) -> Option<Self> {
        let flags = fields.u32()?;
        let start = fields.offset()?;
        let known_end = fields.offset()?;
        let (offset, base, position) = (fields.offset()?, fields.offset()?, fields.u64()?);
        let batch = BatchMark {
            base_offset: fields.offset()?,
            epoch: fields.u32()?.cast_signed(),
            crc: fields.u32()?,
            size: fields.u32()?,
        };
        let cut = CutRecord {
            offset: fields.offset()?,
            epoch: fields.u32()?.cast_signed(),
            base: fields.offset()?,
            position: fields.u64()?,
            replaces: flags & REPLACES != 0,
        };
        let count = usize::try_from(fields.u32()?).ok()?;
        if fields.0.len() < count.checked_mul(SEALED_BYTES)? {
            return None;
        }
        let mut sealed = Vec::with_capacity(count);
        for _ in 0..count {
            sealed.push((fields.offset()?, fields.u64()?));
        }
        let producers = if version == VERSION { Some(fields.producer_points()?) } else { None };
        if !fields.0.is_empty() {
            return None;
        }
        let batch = (flags & BATCH != 0).then_some(batch);
        Some(Self {
            clean: flags & CLEAN != 0,
            start,
            known_end,
            point: (flags & POINT != 0).then_some(Point { offset, base, position, batch }),
            cut: (flags & CUT != 0).then_some(cut),
            is_after_cut: flags & AFTER_CUT != 0,
            sealed,
            producers,
        })
    }
}

/// What is left to read of the file.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn offset(&mut self) -> Option<Offset> {
        self.take().map(i64::from_be_bytes).and_then(Offset::new)
    }

    fn producer_points(&mut self) -> Option<Vec<ProducerPoint>> {
        let count = usize::try_from(self.u32()?).ok()?;
        if self.0.len() != count.checked_mul(PRODUCER_POINT_BYTES)? {
            return None;
        }
        let mut points = Vec::with_capacity(count);
        for _ in 0..count {
            let (offset, has_snapshot, crc) = (self.offset()?, self.u32()?, self.u32()?);
            points.push(ProducerPoint { offset, snapshot_crc: (has_snapshot == 1).then_some(crc) });
        }
        Some(points)
    }
}

/// What the file's bytes say, for people.
pub(super) fn describe(bytes: &[u8]) -> Described {
    let checkpoint = match Checkpoint::decode(bytes, Path::new(CHECKPOINT_NAME)) {
        Ok(Found::Valid(checkpoint)) => checkpoint,
        Ok(Found::Damaged(what)) => return Described::wrong(what),
        Ok(Found::Absent) => return Described::default(),
        Err(error) => return Described::wrong(error.to_string()),
    };
    let mut found = Described::default();
    let Checkpoint { clean, start, known_end, .. } = checkpoint;
    found.push(
        "checkpoint",
        [("clean", clean.into()), ("startOffset", start.into()), ("knownEndOffset", known_end.into())],
    );
    if let Some(Point { offset, base, position, batch }) = checkpoint.point {
        found.push(
            "recovery-point",
            [
                ("recoveryPoint", offset.into()),
                ("baseOffset", base.into()),
                ("position", position.into()),
                ("batchBaseOffset", batch.map(|batch| batch.base_offset).into()),
                ("batchEpoch", batch.map(|batch| batch.epoch).into()),
                ("batchCrc", batch.map(|batch| batch.crc).into()),
                ("batchSize", batch.map(|batch| batch.size).into()),
            ],
        );
    }
    if let Some(CutRecord { offset, epoch, base, position, replaces }) = checkpoint.cut {
        found.push(
            "cut",
            [
                ("cutOffset", offset.into()),
                ("newEpoch", epoch.into()),
                ("baseOffset", base.into()),
                ("position", position.into()),
                ("replaces", replaces.into()),
            ],
        );
    }
    for point in checkpoint.producers.into_iter().flatten() {
        found.push(
            "producer-point",
            [("producersAt", point.offset.into()), ("snapshotCrc", point.snapshot_crc.into())],
        );
    }
    for (base, length) in checkpoint.sealed {
        found.push("sealed-segment", [("sealedBaseOffset", base.into()), ("size", length.into())]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(value: i64) -> Offset {
        Offset::new(value).unwrap()
    }

    fn full() -> Checkpoint {
        Checkpoint {
            clean: true,
            start: at(7),
            known_end: at(1000),
            point: Some(Point {
                offset: at(900),
                base: at(800),
                position: 4242,
                batch: Some(BatchMark { base_offset: at(890), epoch: -1, crc: 0xdead_beef, size: 77 }),
            }),
            cut: Some(CutRecord { offset: at(850), epoch: 3, base: at(800), position: 99, replaces: true }),
            is_after_cut: true,
            sealed: vec![(at(0), 10), (at(400), u64::MAX)],
            producers: Some(vec![
                ProducerPoint { offset: at(800), snapshot_crc: Some(0xdead_beef) },
                ProducerPoint::nobody(at(900)),
            ]),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Found> {
        Checkpoint::decode(bytes, Path::new("x"))
    }

    #[test]
    fn what_is_written_is_read() {
        for checkpoint in [full(), Checkpoint::empty(Offset::ZERO)] {
            assert_eq!(decode(&checkpoint.encode()).unwrap(), Found::Valid(checkpoint));
        }
        assert_eq!(full().encode().len(), SEALED_AT + 2 * SEALED_BYTES + 4 + 2 * PRODUCER_POINT_BYTES);
    }

    #[test]
    fn flag_and_start_are_changed_in_place() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open(temp.path()).unwrap();
        assert!(!Checkpoint::amend_in_place(&dir, at(9)).unwrap());
        for mut checkpoint in [full(), Checkpoint { clean: false, producers: None, ..full() }] {
            checkpoint.store(&dir, 0o644).unwrap();
            let before = std::fs::metadata(temp.path().join(CHECKPOINT_NAME)).unwrap();
            for start in [0, 9] {
                assert!(Checkpoint::amend_in_place(&dir, at(start)).unwrap());
                (checkpoint.clean, checkpoint.start) = (false, at(start.max(7)));
                assert_eq!(Checkpoint::load(&dir).unwrap(), Found::Valid(checkpoint.clone()));
            }
            let after = std::fs::metadata(temp.path().join(CHECKPOINT_NAME)).unwrap();
            let inode = |found: std::fs::Metadata| std::os::unix::fs::MetadataExt::ino(&found);
            assert_eq!(inode(before), inode(after));
        }
    }

    #[test]
    fn one_of_the_first_version_is_read_and_knows_no_producers() {
        let old = Checkpoint { producers: None, ..full() };
        let bytes = old.encode();
        assert_eq!((bytes.len(), bytes[11]), (SEALED_AT + 2 * SEALED_BYTES, 1));
        assert_eq!(decode(&bytes).unwrap(), Found::Valid(old));
    }

    #[test]
    fn any_changed_byte_and_any_cut_is_noticed() {
        let good = full().encode();
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0x40;
            match decode(&bytes) {
                Ok(Found::Valid(found)) => panic!("byte {at}: {found:?}"),
                Ok(_) | Err(Error::UnsupportedVersion { .. }) => {}
                Err(error) => panic!("byte {at}: {error}"),
            }
            assert!(!matches!(decode(&good[..at]), Ok(Found::Valid(_))), "cut at {at}");
        }
    }

    #[test]
    fn a_newer_version_is_refused_not_guessed() {
        let mut bytes = full().encode();
        bytes[11] = 3;
        assert!(matches!(decode(&bytes), Err(Error::UnsupportedVersion { .. })));
    }
}
