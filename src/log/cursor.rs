//! `Cursor`: a consumer's place in a log, kept in a file of its own: atomic, checksummed, many by name.
//!
//! The file holds the place twice, in two blocks that are written in turn, so that a write that a crash tears leaves the
//! place before it. Nothing is renamed when a place is kept: one write and one `fdatasync` of blocks that are there, a
//! fifth of what a new file renamed over the old one costs; and the lock stays on the file that has the name. All
//! integers are big-endian; a CRC-32 (IEEE) covers everything after itself. A block of zeros was never written.
//!
//! ```text
//! at 0 and at 4096:
//!   0  magic        8   "STRTLGCU"
//!   8  version      u32 1
//!  12  crc          u32 of the 24 bytes that follow
//!  16  sequence     u64 the larger one is the newer
//!  24  flags        u32 bit 0 a position, bit 1 with a leader epoch
//!  28  leader epoch i32 of the batch before the position
//!  32  offset       i64 of the next record to be read
//! ```

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::open::refuse_unfinished_copy;
use super::{described::Described, view::Position};
use crate::{
    error::{Corruption, Error, Result},
    offset::Offset,
    sys::{self, Dir, EntryKind, File, FileLock, LockError, Open},
};

/// What the name of each cursor's file begins with.
pub(super) const NAME_PREFIX: &str = ".stratalog-cursor-";
/// So that the file's name stays one, with what is added to it while it is made.
const NAME_BYTES: usize = 200;
/// Endings that Kafka or this crate gives a meaning to: a broker dies over a `next.log` that is no segment.
const MEANINGS: [&str; 10] = [
    ".log",
    ".index",
    ".timeindex",
    ".txnindex",
    ".snapshot",
    ".deleted",
    ".cleaned",
    ".swap",
    ".tmp",
    TEMPORARY_SUFFIX,
];
/// A file that is being made ends in it: the next writer to open the log removes it.
const TEMPORARY_SUFFIX: &str = ".new";

const MAGIC: &[u8; 8] = b"STRTLGCU";
const VERSION: u32 = 1;
const CRC_AT: usize = 12;
const BODY_AT: usize = CRC_AT + 4;
const SLOT_BYTES: usize = 40;
/// A block of every file system: what tears one does not touch the other.
const STRIDE_BYTES: usize = 4096;
const FILE_BYTES: usize = 2 * STRIDE_BYTES;
const FILE_MODE: u32 = 0o644;

const PLACE: u32 = 1;
const EPOCH: u32 = 1 << 1;

/// How often something is tried again that another process came between.
const TRIES: usize = 16;

/// A consumer's place in a log: the position to go on from, durably kept under a name.
///
/// The holder reads, works, and commits. What it commits survives a crash of the process and of the machine once
/// [`commit`](Self::commit) has returned; what it had read since then it reads again after a crash. So *commit after the
/// work is done* and each record is worked on at least once.
///
/// A log has as many cursors as it has consumers. Each is a file `.stratalog-cursor-NAME` in the log's directory, which
/// opening makes if it is missing; writers, brokers and `logctl verify` leave these files alone, and a copy of the
/// directory has them too. [`Cursor::at_file`] keeps one elsewhere. Neither needs the log's lock, so a reader in another
/// process has its cursors as well as one beside the writer. One holder at a time: a second one is refused with
/// [`Error::CursorInUse`] until the first is dropped or its process ends.
///
/// What a log may have done meanwhile, reading from [`position`](Self::position) tells:
///
/// - **Retention waits for no cursor.** If it overtook one, [`Error::OffsetOutOfRange`] says so: the offsets from
///   `requested` up to `start` are gone, and `start` is where to go on.
/// - **A cut**, after a crash of the writer, takes records back that were never durable. [`Error::Truncated`] says from
///   where on the records are others than those read, also where new ones have the old offsets: the position keeps the
///   leader epoch of what was read before it.
///
/// ```
/// use stratalog::{AppendOptions, Cursor, LogConfig, LogWriter, OpenMode, Position, record::Record};
///
/// # let temp = tempfile::tempdir().unwrap();
/// # let dir = temp.path().join("jobs-0");
/// # let mut config = LogConfig::default();
/// # config.open = OpenMode::CreateIfMissing;
/// # let mut log = LogWriter::open(&dir, config)?;
/// # log.append_records(&[Record::value_only(b"a")], AppendOptions::default())?;
/// # let reader = log.reader();
/// let mut cursor = Cursor::open(&dir, "mailer")?;
/// let from = cursor.position().unwrap_or_else(|| reader.start().into());
/// for record in reader.owned_records(from) {
///     let record = record?;
///     // ... work on it, then:
///     cursor.commit(Position::after(&record))?;
/// }
/// # assert_eq!(cursor.position().map(|position| position.offset), Some(log.end()));
/// # Ok::<(), stratalog::Error>(())
/// ```
#[derive(Debug)]
pub struct Cursor {
    dir: Dir,
    file_name: OsString,
    file: File,
    _lock: FileLock,
    /// What the file holds for certain.
    kept: Slot,
    /// Which of the two blocks has it.
    block: usize,
}

/// A cursor as [`Cursor::list`] found it.
#[derive(Debug)]
#[non_exhaustive]
pub struct CursorInfo {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Its position; `None` where none was committed yet. An error where its file cannot be read.
    pub position: Result<Option<Position>>,
    /// True while somebody holds it.
    pub in_use: bool,
}

impl Cursor {
    /// Takes the cursor of this name of the log in `dir`; makes it, without a position, where there is none.
    ///
    /// A name has 1 to 200 letters, digits, `.`, `_` and `-` (ASCII) and does not end like one of Kafka's files
    /// (`.log`, `.index`, ...), in `.tmp` or in `.new`.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] for a name that breaks these rules, [`Error::NotFound`] without the directory,
    /// [`Error::CursorInUse`] while another holds it, [`Error::UnfinishedCopy`] where it would be written over, [`Error::Corrupt`] where the file cannot be read (it is never taken
    /// for an empty one), [`Error::UnsupportedVersion`] where a newer version of this crate wrote it.
    pub fn open(dir: impl AsRef<Path>, name: &str) -> Result<Self> {
        check_name(name)?;
        let dir = open_dir(dir.as_ref())?;
        refuse_unfinished_copy(&dir)?;
        Self::take(dir, OsString::from(format!("{NAME_PREFIX}{name}")))
    }

    /// Takes the cursor that is kept in this file, which may lie anywhere; makes it where there is none, in a directory
    /// that there is.
    ///
    /// The same file must not be used for two logs: nothing in it tells them apart.
    ///
    /// # Errors
    /// As for [`Cursor::open`].
    pub fn at_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let named = matches!(path.components().next_back(), Some(Component::Normal(_)));
        let (Some(parent), Some(name), true) = (path.parent(), path.file_name(), named) else {
            let reason = format!("`{}` does not name a file", path.display());
            return Err(Error::InvalidConfig { name: "cursor file", reason });
        };
        Self::take(open_dir(parent)?, name.to_owned())
    }

    /// Where to go on; `None` where nothing was committed yet, or since [`Cursor::reset`].
    pub fn position(&self) -> Option<Position> {
        self.kept.position
    }

    /// The file that it is kept in.
    pub fn path(&self) -> PathBuf {
        self.dir.path_of(&self.file_name)
    }

    /// Keeps a position. Durable when it returns: one write and one `fdatasync`; nothing at all where it is the position
    /// that is kept already. It may lie before the last one.
    ///
    /// # Errors
    /// After an error [`Cursor::position`] is still the last one that is certain, and the call may be made again. A
    /// file that was removed or replaced meanwhile is one: its new place would be in no directory.
    pub fn commit(&mut self, position: impl Into<Position>) -> Result<()> {
        self.keep(Some(position.into()))
    }

    /// Forgets the position, as durably as [`Cursor::commit`] keeps one.
    ///
    /// # Errors
    /// As for [`Cursor::commit`].
    pub fn reset(&mut self) -> Result<()> {
        self.keep(None)
    }

    /// Removes the cursor and its file, durably.
    ///
    /// # Errors
    /// [`Error::Io`] where the system refused it.
    pub fn remove(self) -> Result<()> {
        if self.is_current()? {
            self.dir.remove(&self.file_name)?;
        }
        Ok(self.dir.sync()?)
    }

    /// The cursors in a log's directory, by name. Takes no lock and changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] without the directory. A cursor that cannot be read is no error: its entry says so.
    pub fn list(dir: impl AsRef<Path>) -> Result<Vec<CursorInfo>> {
        let dir = open_dir(dir.as_ref())?;
        let mut cursors = Vec::new();
        for entry in dir.list()?.into_iter().filter(|entry| entry.kind == EntryKind::File) {
            let Some(name) = entry.name.to_str().and_then(|name| name.strip_prefix(NAME_PREFIX)) else {
                continue;
            };
            if check_name(name).is_err() {
                continue;
            }
            let file = match dir.open_file(&entry.name, Open::Read) {
                Err(error) if error.is_not_found() => continue,
                other => other,
            };
            let in_use = file.as_ref().is_ok_and(FileLock::is_held);
            let position = file.map_err(Error::from).and_then(|file| peek(&file));
            cursors.push(CursorInfo {
                name: name.to_owned(),
                path: dir.path_of(&entry.name),
                position: position.map(|slot| slot.position),
                in_use,
            });
        }
        cursors.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(cursors)
    }

    fn take(dir: Dir, file_name: OsString) -> Result<Self> {
        for _ in 0..TRIES {
            let file = match dir.open_file(&file_name, Open::ReadWrite) {
                Err(error) if error.is_not_found() => {
                    create(&dir, &file_name)?;
                    continue;
                }
                other => other?,
            };
            let lock = FileLock::try_exclusive(&file).map_err(|error| match error {
                LockError::Held { holder } => Error::CursorInUse { path: file.path().to_owned(), holder },
                LockError::Cannot(error) => Error::CannotLock { path: error.path, source: error.source },
            })?;
            if !has_name(&dir, &file_name, &file)? {
                continue;
            }
            let (kept, block) = read(&file)?;
            // A predecessor may have been killed before its sync, or its sync may have failed: only what is written and
            // synced here is known to be on the disk when the other block is written over. The name too.
            file.write_all_at(&kept.encode(), position_of(block))?;
            file.sync_data()?;
            dir.sync()?;
            return Ok(Self { dir, file_name, file, _lock: lock, kept, block });
        }
        let reason = std::io::Error::new(std::io::ErrorKind::ResourceBusy, "it is replaced all the time");
        Err(sys::Error::new("open", dir.path_of(&file_name), reason).into())
    }

    fn keep(&mut self, position: Option<Position>) -> Result<()> {
        if !self.is_current()? {
            let reason = std::io::Error::new(
                std::io::ErrorKind::NotFound,
                "the cursor's file was removed or replaced while it was in use",
            );
            return Err(sys::Error::new("write", self.path(), reason).into());
        }
        if position == self.kept.position {
            return Ok(());
        }
        let slot = Slot { sequence: self.kept.sequence.saturating_add(1), position };
        let block = 1 - self.block;
        // Until both have succeeded the other block is the one that counts, and a next try writes this one again.
        self.file.write_all_at(&slot.encode(), position_of(block))?;
        self.file.sync_data()?;
        (self.kept, self.block) = (slot, block);
        Ok(())
    }

    fn is_current(&self) -> Result<bool> {
        has_name(&self.dir, &self.file_name, &self.file)
    }
}

impl fmt::Display for CursorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.position {
            Ok(Some(position)) => write!(f, "{} at {}", self.name, position.offset),
            Ok(None) => write!(f, "{} without a position", self.name),
            Err(error) => write!(f, "{}: {error}", self.name),
        }
    }
}

/// What one of the two blocks says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    sequence: u64,
    position: Option<Position>,
}

/// What reading a block found.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Valid(Slot),
    /// Zeros: never written.
    Empty,
    Damaged(&'static str),
    Newer(u32),
}

impl Slot {
    fn encode(&self) -> [u8; SLOT_BYTES] {
        let epoch = self.position.and_then(|position| position.leader_epoch);
        let flags = u32::from(self.position.is_some()) * PLACE + u32::from(epoch.is_some()) * EPOCH;
        let offset = self.position.map_or(Offset::ZERO, |position| position.offset);
        let mut out = [0; SLOT_BYTES];
        let fields: [&[u8]; 7] = [
            MAGIC,
            &VERSION.to_be_bytes(),
            &[0; 4],
            &self.sequence.to_be_bytes(),
            &flags.to_be_bytes(),
            &epoch.unwrap_or(0).to_be_bytes(),
            &offset.value().to_be_bytes(),
        ];
        for (into, byte) in out.iter_mut().zip(fields.concat()) {
            *into = byte;
        }
        let crc = crc32fast::hash(&out[BODY_AT..]);
        out[CRC_AT..BODY_AT].copy_from_slice(&crc.to_be_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Found {
        if bytes.iter().all(|byte| *byte == 0) {
            return Found::Empty;
        }
        let mut rest = bytes;
        if take::<8>(&mut rest) != Some(*MAGIC) {
            return Found::Damaged("not a cursor");
        }
        match take(&mut rest).map(u32::from_be_bytes) {
            Some(VERSION) => {}
            Some(version) if version > VERSION => return Found::Newer(version),
            _ => return Found::Damaged("no version"),
        }
        if take(&mut rest).map(u32::from_be_bytes) != Some(crc32fast::hash(rest)) {
            return Found::Damaged("its checksum does not match");
        }
        Self::decode_body(rest).map_or(Found::Damaged("its fields make no sense"), Found::Valid)
    }

    fn decode_body(mut rest: &[u8]) -> Option<Self> {
        let sequence = take(&mut rest).map(u64::from_be_bytes)?;
        let flags = take(&mut rest).map(u32::from_be_bytes)?;
        let epoch = take(&mut rest).map(i32::from_be_bytes)?;
        let offset = take(&mut rest).map(i64::from_be_bytes).and_then(Offset::new)?;
        let leader_epoch = (flags & EPOCH != 0).then_some(epoch);
        let position = (flags & PLACE != 0).then_some(Position { offset, leader_epoch });
        Some(Self { sequence, position })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

fn position_of(block: usize) -> u64 {
    if block == 0 { 0 } else { STRIDE_BYTES as u64 }
}

/// The newer of the two places in the file, and which block has it.
fn read(file: &File) -> Result<(Slot, usize)> {
    let mut bytes = vec![0; FILE_BYTES];
    let len = file.read_at(&mut bytes, 0)?;
    let mut newest: Option<(Slot, usize)> = None;
    let mut faults = Vec::new();
    for block in [0, 1] {
        let at = block * STRIDE_BYTES;
        let slot = bytes.get(at..at + SLOT_BYTES).filter(|_| at + SLOT_BYTES <= len);
        match slot.map_or(Found::Damaged("the file is too short"), Slot::decode) {
            Found::Valid(slot) if newest.is_none_or(|(known, _)| slot.sequence > known.sequence) => {
                newest = Some((slot, block));
            }
            Found::Valid(_) => {}
            Found::Newer(version) => {
                let what = format!("cursor version {version}");
                return Err(Error::UnsupportedVersion { path: file.path().to_owned(), what });
            }
            Found::Empty => faults.push("nothing but zeros"),
            Found::Damaged(fault) => faults.push(fault),
        }
    }
    if let Some(found) = newest {
        // One is what a crash in the middle of a commit leaves; a cursor that was never committed to has zeros.
        if let Some(fault) = faults.first().filter(|fault| **fault != "nothing but zeros") {
            tracing::warn!(path = %file.path().display(), fault, "one of a cursor's two places is unreadable; the other is used");
        }
        return Ok(found);
    }
    let reason = format!(
        "neither of the two places that it keeps can be read ({}); restore the file, or remove it to begin anew",
        faults.join("; ")
    );
    Err(Corruption { path: file.path().to_owned(), position: 0, offset: None, reason }.into())
}

/// The same while its holder may be writing: both blocks are unreadable only if two commits came in between.
fn peek(file: &File) -> Result<Slot> {
    for _ in 1..TRIES {
        if let Ok((slot, _)) = read(file) {
            return Ok(slot);
        }
    }
    read(file).map(|(slot, _)| slot)
}

/// Makes a cursor without a position, complete before it has its name. Whoever comes second finds it there.
fn create(dir: &Dir, file_name: &OsStr) -> Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut bytes = vec![0; FILE_BYTES];
    bytes[..SLOT_BYTES].copy_from_slice(&Slot { sequence: 0, position: None }.encode());
    for _ in 0..TRIES {
        let mut temporary = file_name.to_os_string();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        temporary.push(format!(".{}-{count}{TEMPORARY_SUFFIX}", std::process::id()));
        let file = match dir.open_file(&temporary, Open::CreateNew { mode: FILE_MODE }) {
            // Another machine's, or another container's, with the same number.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            other => other?,
        };
        let made = file
            .write_all_at(&bytes, 0)
            .and_then(|()| file.sync_all())
            .and_then(|()| dir.rename_new(&temporary, file_name));
        match made {
            Ok(()) => return Ok(()),
            // A writer that opened the log just now took it for what a killed process left.
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                let _ = dir.remove(&temporary);
                let is_there = error.kind() == std::io::ErrorKind::AlreadyExists;
                return if is_there { Ok(()) } else { Err(error.into()) };
            }
        }
    }
    let reason = std::io::Error::from(std::io::ErrorKind::ResourceBusy);
    Err(sys::Error::new("create", dir.path_of(file_name), reason).into())
}

/// True where the name leads to this very file.
fn has_name(dir: &Dir, file_name: &OsStr, file: &File) -> Result<bool> {
    let (ours, named) = (file.stat()?, dir.stat(file_name)?);
    Ok(named.is_some_and(|named| (named.device, named.inode) == (ours.device, ours.inode)))
}

fn open_dir(path: &Path) -> Result<Dir> {
    Dir::open(path).map_err(|error| {
        if error.is_not_found() { Error::NotFound { path: path.to_owned() } } else { error.into() }
    })
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let reason = if name.is_empty() || name.len() > NAME_BYTES {
        format!("a name has 1 to {NAME_BYTES} characters")
    } else if !name.bytes().all(is_plain) {
        format!("`{}`: only letters, digits, `.`, `_` and `-`", name.escape_default())
    } else if let Some(ending) = MEANINGS.iter().find(|ending| name.ends_with(**ending)) {
        format!("`{name}` must not end in `{ending}`, which means something in a log's directory")
    } else {
        return Ok(());
    };
    Err(Error::InvalidConfig { name: "cursor name", reason })
}

/// What the file's bytes say, for people: both places, the newer of which counts.
pub(super) fn describe(bytes: &[u8]) -> Described {
    let mut found = Described::default();
    let mut faults = Vec::new();
    for block in [0_u64, 1] {
        let at = if block == 0 { 0 } else { STRIDE_BYTES };
        match bytes.get(at..at + SLOT_BYTES).map_or(Found::Damaged("the file is too short"), Slot::decode) {
            Found::Valid(Slot { sequence, position }) => found.push(
                "cursor",
                [
                    ("block", block.into()),
                    ("sequence", sequence.into()),
                    ("offset", position.map(|position| position.offset).into()),
                    ("leaderEpoch", position.and_then(|position| position.leader_epoch).into()),
                ],
            ),
            Found::Empty => {}
            Found::Damaged(what) => faults.push(format!("block {block}: {what}")),
            Found::Newer(version) => faults.push(format!("block {block}: cursor version {version}")),
        }
    }
    if !faults.is_empty() || found.lines.is_empty() {
        found.wrong =
            Some(if faults.is_empty() { "nothing but zeros".to_owned() } else { faults.join("; ") });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> [Slot; 3] {
        let at = |offset, leader_epoch| {
            let offset = Offset::new(offset).unwrap();
            Slot { sequence: 7, position: Some(Position { offset, leader_epoch }) }
        };
        [Slot { sequence: u64::MAX, position: None }, at(i64::MAX, None), at(1 << 40, Some(-1))]
    }

    #[test]
    fn what_is_written_is_read() {
        for slot in slots() {
            assert_eq!(Slot::decode(&slot.encode()), Found::Valid(slot));
        }
        assert_eq!(Slot::decode(&[0; SLOT_BYTES]), Found::Empty);
    }

    #[test]
    fn any_changed_byte_and_any_cut_is_noticed() {
        for slot in slots() {
            let good = slot.encode();
            for at in 0..good.len() {
                let mut bytes = good;
                bytes[at] ^= 0x20;
                assert!(!matches!(Slot::decode(&bytes), Found::Valid(_)), "byte {at}");
                assert!(!matches!(Slot::decode(&good[..at]), Found::Valid(_)), "cut at {at}");
                bytes = good;
                bytes[at..].fill(0);
                assert!(
                    at == SLOT_BYTES || !matches!(Slot::decode(&bytes), Found::Valid(found) if found != slot)
                );
            }
        }
    }

    #[test]
    fn names_lead_nowhere_else_and_mean_nothing_to_a_broker() {
        for name in ["a", "billing.eu-1_x", "-", ".", "log", "a.log.b", &"x".repeat(NAME_BYTES)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "x".repeat(NAME_BYTES + 1);
        for name in ["", "a/b", "a b", "a\0", "\u{e4}", "next.log", "a.index", "a.tmp", "a.1-2.new", &long] {
            assert!(matches!(check_name(name), Err(Error::InvalidConfig { .. })), "{name}");
        }
    }
}
