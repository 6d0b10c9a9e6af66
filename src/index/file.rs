//! What both indexes are: an array of entries in a file, mapped, of which a published count is visible.

use std::{
    ffi::{OsStr, OsString},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;

use super::Append;
use crate::sys::{Dir, Error, File, FileSystem, MappedWords, Open, Preallocated, Result};

/// What is reserved first; doubled from there.
const FIRST_STEP_BYTES: usize = 4096;
/// How far from the guessed entry a look-up searches first, in entries.
const GUESS_REACH: u32 = 16;
/// The part of a file name that keeps a half-written index from being taken for one.
const TEMPORARY_PREFIX: &str = ".stratalog-";
const TEMPORARY_SUFFIX: &str = ".new";

/// An index file of entries of `WORDS` 4-byte words.
///
/// Why reading without a lock is right:
/// 1. one writer appends (it holds the directory's lock and `&mut` on the log);
/// 2. it stores the words of an entry first and then the count, with release;
/// 3. a reader loads the count with acquire and never looks at or past it;
/// 4. the words of a published entry never change, and a map lives as long as this value.
#[derive(Debug)]
pub(super) struct IndexFile<const WORDS: usize> {
    dir: Arc<Dir>,
    name: OsString,
    mode: u32,
    max_entries: u32,
    /// Entries found in the file, mapped read-only when first asked for.
    stored: OnceLock<Stored>,
    /// The same and new entries, for the writer: mapped, or memory where the file cannot be.
    active: OnceLock<MappedWords>,
    /// How many entries of `active` are visible.
    published: AtomicU32,
    /// True where `active` is memory only: the file gets its entries at the seal.
    is_memory: AtomicBool,
    /// The open file; a sealed index gives it back.
    file: Mutex<Option<Arc<File>>>,
}

#[derive(Debug)]
struct Stored {
    words: MappedWords,
    entries: u32,
}

impl<const WORDS: usize> IndexFile<WORDS> {
    const ENTRY_BYTES: usize = WORDS * 4;
    /// The time index keeps one slot for the entry that ends it.
    const SPARE_ENTRIES: u32 = if WORDS == 3 { 1 } else { 0 };

    /// A new, empty file. Reserves nothing.
    pub(super) fn create(dir: &Arc<Dir>, name: &OsStr, max_bytes: u32, mode: u32) -> Result<Self> {
        let file = dir.open_file(name, Open::CreateNew { mode })?;
        if dir.file_system()? == FileSystem::Btrfs {
            // Only an empty file takes it; without it the index is kept in memory (see `activate`).
            file.set_no_cow();
        }
        let index = Self::with(dir, name, max_bytes, mode, Some(file));
        // Known to be empty: a reader that looked into the file later could meet an entry half written.
        let _ = index.stored.set(Stored { words: MappedWords::anonymous(0)?, entries: 0 });
        Ok(index)
    }

    /// An existing file, to append to. Changes nothing yet.
    pub(super) fn open_active(dir: &Arc<Dir>, name: &OsStr, max_bytes: u32, mode: u32) -> Result<Self> {
        let file = dir.open_file(name, Open::ReadWrite)?;
        let index = Self::with(dir, name, max_bytes, mode, Some(file));
        index.stored()?;
        Ok(index)
    }

    /// A file that is read only, opened and mapped when first used.
    pub(super) fn open_sealed(dir: &Arc<Dir>, name: &OsStr) -> Self {
        Self::with(dir, name, 0, 0, None)
    }

    /// A copy, in memory, of a file that another process may be appending to: as many entries as `follows` accepts, each
    /// after the one before.
    pub(super) fn read_copy(
        dir: &Arc<Dir>,
        name: &OsStr,
        follows: impl Fn(Option<[u32; WORDS]>, [u32; WORDS]) -> bool,
    ) -> Result<Self> {
        let index = Self::with(dir, name, 0, 0, None);
        let words = read_words(&*dir.open_file(name, Open::Read).map(Arc::new)?, Self::ENTRY_BYTES)?;
        let mut before = None;
        let mut entries = 0;
        while let Some(entry) = Self::entry_in(&words, entries) {
            if !follows(before, entry) {
                break;
            }
            before = Some(entry);
            entries += 1;
        }
        let _ = index.stored.set(Stored { words, entries });
        Ok(index)
    }

    /// Entries without a file: where rebuilding found the disk full. Sealing writes the file.
    pub(super) fn in_memory(
        dir: &Arc<Dir>,
        name: &OsStr,
        max_bytes: u32,
        mode: u32,
        entries: &[[u32; WORDS]],
    ) -> Result<Self> {
        let index = Self::with(dir, name, max_bytes, mode, None);
        let len = index.max_bytes().max(entries.len() * Self::ENTRY_BYTES);
        let words = MappedWords::anonymous(len)?;
        for (at, word) in entries.iter().flatten().enumerate() {
            let _ = words.store32(at, word.to_be());
        }
        index.is_memory.store(true, Ordering::Relaxed);
        index.published.store(u32::try_from(entries.len()).unwrap_or(u32::MAX), Ordering::Release);
        let _ = index.active.set(words);
        Ok(index)
    }

    fn with(dir: &Arc<Dir>, name: &OsStr, max_bytes: u32, mode: u32, file: Option<File>) -> Self {
        Self {
            dir: Arc::clone(dir),
            name: name.to_os_string(),
            mode,
            max_entries: max_bytes / u32::try_from(Self::ENTRY_BYTES).unwrap_or(u32::MAX),
            stored: OnceLock::new(),
            active: OnceLock::new(),
            published: AtomicU32::new(0),
            is_memory: AtomicBool::new(false),
            file: Mutex::new(file.map(Arc::new)),
        }
    }

    /// How many entries are visible. 0 too where the file cannot be read: a hint that is not there.
    pub(super) fn entries(&self) -> u32 {
        self.view().map_or(0, |(_, entries)| entries)
    }

    /// An entry, in host order; `None` at or past the published count.
    pub(super) fn entry(&self, at: u32) -> Option<[u32; WORDS]> {
        let (words, entries) = self.view()?;
        if at < entries { Self::entry_in(words, at) } else { None }
    }

    /// How many of the visible entries, from the first on, satisfy `is_before`, if those that do come first. On entries
    /// in any other order the answer is some number of entries all the same, found in as few steps.
    pub(super) fn partition_point(&self, is_before: impl Fn([u32; WORDS]) -> bool) -> u32 {
        let Some((words, entries)) = self.view() else { return 0 };
        partition(0, entries, |at| Self::entry_in(words, at).is_some_and(&is_before))
    }

    /// The same for words that rise about evenly: first looked for near where `key` would then lie, which spares most of
    /// the steps, each of which may miss the cache. `key` is compared with the first word of an entry.
    pub(super) fn partition_point_near(&self, key: u32) -> u32 {
        let Some((words, entries)) = self.view() else { return 0 };
        let word = |at: u32| Self::entry_in(words, at).map_or(u32::MAX, |entry| entry[0]);
        let is_before = |at: u32| word(at) <= key;
        let Some(last) = entries.checked_sub(1).filter(|last| *last > 2 * GUESS_REACH) else {
            return partition(0, entries, is_before);
        };
        let (low, high) = (u64::from(word(0)), u64::from(word(last)));
        let above = u64::from(key).saturating_sub(low).min(high.saturating_sub(low));
        let guess = u64::from(last) * above / high.saturating_sub(low).max(1);
        let guess = u32::try_from(guess).unwrap_or(last);
        let (from, to) = (guess.saturating_sub(GUESS_REACH), guess.saturating_add(GUESS_REACH).min(last));
        match (is_before(from), is_before(to)) {
            (true, false) => partition(from, to, is_before),
            (true, true) => partition(to, entries, is_before),
            (false, _) => partition(0, from, is_before),
        }
    }

    /// True where only the spare slot, or none, is left.
    pub(super) fn is_full(&self) -> bool {
        self.entries() >= self.max_entries.saturating_sub(Self::SPARE_ENTRIES)
    }

    /// Makes room for this many more entries (as far as the file may grow at all) and the final one, so that adding them
    /// cannot fail. The only step that needs the disk.
    pub(super) fn reserve(&self, more_entries: u32) -> Result<()> {
        let entries = self.entries();
        let wanted = entries.saturating_add(more_entries).saturating_add(Self::SPARE_ENTRIES);
        let wanted = wanted.min(self.max_entries);
        if wanted <= entries {
            // It is full, or sealed and not for writing.
            return Ok(());
        }
        let wanted_bytes = bytes_of(wanted, Self::ENTRY_BYTES);
        let Some(words) = self.active.get() else { return self.activate(entries, wanted_bytes) };
        let reserved = words.reserved_bytes();
        if reserved >= wanted_bytes {
            return Ok(());
        }
        let file = self.file()?;
        // What was reserved before a seal cut it off again is asked for anew.
        let step = reserved.saturating_mul(2).max(FIRST_STEP_BYTES);
        let reserved = Self::reserve_blocks(&file, reserved, step, wanted_bytes, words.len_bytes())?;
        words.extend_reserved(&file, reserved)
    }

    /// Adds an entry and publishes it. `is_final` may take the spare slot.
    pub(super) fn push(&self, entry: [u32; WORDS], is_final: bool) -> Append {
        let entries = self.entries();
        let spare = if is_final { 0 } else { Self::SPARE_ENTRIES };
        if entries >= self.max_entries.saturating_sub(spare) {
            return Append::Full;
        }
        let Some(words) = self.active.get() else { return Append::Unreserved };
        let first = word_at::<WORDS>(entries);
        for (k, word) in entry.iter().enumerate() {
            if !words.store32(first + k, word.to_be()) {
                return Append::Unreserved;
            }
        }
        self.published.store(entries + 1, Ordering::Release);
        Append::Stored
    }

    /// Gives the file its final size: what is published and nothing else. Not durable before [`IndexFile::sync`].
    ///
    /// Appending can go on afterwards (a roll may fail after its seal): the next `reserve` asks for blocks again.
    pub(super) fn seal(&self) -> Result<()> {
        let entries = self.entries();
        let len = bytes_of(entries, Self::ENTRY_BYTES);
        if self.is_memory.load(Ordering::Relaxed) {
            let bytes = self.to_bytes(entries);
            replace(&self.dir, &self.name, &bytes, self.mode, false)?;
            *self.file.lock() = None;
            return Ok(());
        }
        let file = self.file()?;
        if file.len()? != len as u64 {
            if let Some(words) = self.active.get() {
                words.shrink_reserved(len);
            }
            file.set_len(len as u64)?;
        }
        Ok(())
    }

    /// Makes the file durable as it is.
    pub(super) fn sync(&self) -> Result<()> {
        self.file()?.sync_all()
    }

    /// Gives the descriptor back; it is opened again if needed.
    pub(super) fn release_file(&self) {
        *self.file.lock() = None;
    }

    /// Says why there are no entries, where the file cannot be read.
    pub(super) fn load(&self) -> Result<()> {
        if self.active.get().is_none() {
            self.stored()?;
        }
        Ok(())
    }

    /// What readers see.
    fn view(&self) -> Option<(&MappedWords, u32)> {
        if let Some(words) = self.active.get() {
            return Some((words, self.published.load(Ordering::Acquire)));
        }
        match self.stored() {
            Ok(stored) => Some((&stored.words, stored.entries)),
            Err(error) => {
                tracing::debug!(%error, "an index is not used");
                None
            }
        }
    }

    fn stored(&self) -> Result<&Stored> {
        if let Some(stored) = self.stored.get() {
            return Ok(stored);
        }
        let file = self.file.lock().clone();
        let file = match file {
            Some(file) => file,
            None => Arc::new(self.dir.open_file(&self.name, Open::Read)?),
        };
        let len = whole_entries(file.len()?, Self::ENTRY_BYTES);
        let words =
            MappedWords::map(&file, len, len, false).or_else(|_| read_words(&file, Self::ENTRY_BYTES))?;
        let entries = Self::used_entries(&words);
        Ok(self.stored.get_or_init(|| Stored { words, entries }))
    }

    /// How many entries of a file are entries: a tail of zeros is what was reserved and never written.
    ///
    /// In a file of nothing but zeros none was ever written, with one exception: a time index of exactly one entry can mean
    /// it (the only record has timestamp 0). An offset entry of zeros says nothing that no entry does not say.
    fn used_entries(words: &MappedWords) -> u32 {
        let slots = u32::try_from(words.reserved_bytes() / Self::ENTRY_BYTES).unwrap_or(u32::MAX);
        let is_used = |at| Self::entry_in(words, at).is_some_and(|entry| entry != [0; WORDS]);
        if slots == 0 || is_used(slots - 1) || (slots == 1 && Self::SPARE_ENTRIES == 1) {
            return slots;
        }
        match partition(1, slots, is_used) {
            1 if !is_used(0) => 0,
            used => used,
        }
    }

    fn entry_in(words: &MappedWords, at: u32) -> Option<[u32; WORDS]> {
        let first = word_at::<WORDS>(at);
        let mut entry = [0; WORDS];
        for (k, word) in entry.iter_mut().enumerate() {
            *word = u32::from_be(words.load32(first + k)?);
        }
        Some(entry)
    }

    /// The first reservation: maps the file for the whole of its possible length, once.
    fn activate(&self, entries: u32, wanted_bytes: usize) -> Result<()> {
        let len = bytes_of(entries, Self::ENTRY_BYTES);
        let map_len = self.max_bytes().max(len);
        let file = self.file()?;
        let words = if let Some(words) = self.map_active(&file, len, wanted_bytes, map_len)? {
            words
        } else {
            let words = MappedWords::anonymous(map_len)?;
            let stored = (0..entries).filter_map(|at| self.entry(at));
            for (at, word) in stored.flatten().enumerate() {
                let _ = words.store32(at, word.to_be());
            }
            self.is_memory.store(true, Ordering::Relaxed);
            words
        };
        self.published.store(entries, Ordering::Release);
        let _ = self.active.set(words);
        Ok(())
    }

    /// `None` where stores into a map could meet a full disk, or the file cannot be mapped at all.
    fn map_active(
        &self,
        file: &File,
        used_bytes: usize,
        wanted_bytes: usize,
        map_len: usize,
    ) -> Result<Option<MappedWords>> {
        let in_place = match self.dir.file_system()? {
            FileSystem::Ext | FileSystem::Xfs | FileSystem::Tmpfs => true,
            FileSystem::Btrfs => file.is_no_cow(),
            FileSystem::Other(_) => false,
        };
        if !in_place {
            return Ok(None);
        }
        // A tail of zeros, or a file that some other program left sparse. Nobody else maps an active index, and nothing
        // here has looked past `used_bytes`.
        if file.len()? > used_bytes as u64 {
            file.set_len(used_bytes as u64)?;
        }
        // From the front: what is there may be sparse too.
        let Some(reserved) = Self::try_reserve_blocks(file, 0, FIRST_STEP_BYTES, wanted_bytes, map_len)?
        else {
            return Ok(None);
        };
        match MappedWords::map(file, map_len, reserved, true) {
            Ok(words) => Ok(Some(words)),
            Err(error) => {
                tracing::debug!(%error, "an index is kept in memory");
                Ok(None)
            }
        }
    }

    /// As [`IndexFile::try_reserve_blocks`], writing zeros where the file system does not reserve.
    fn reserve_blocks(file: &File, from: usize, step: usize, wanted: usize, limit: usize) -> Result<usize> {
        if let Some(reserved) = Self::try_reserve_blocks(file, from, step, wanted, limit)? {
            return Ok(reserved);
        }
        file.zero_fill(from as u64, wanted.saturating_sub(from) as u64)?;
        Ok(wanted)
    }

    /// Reserves up to `step` bytes (at least up to `wanted`, never past `limit`); where the disk has no room for the step,
    /// no more than is wanted. Returns how many bytes are reserved from the front.
    fn try_reserve_blocks(
        file: &File,
        from: usize,
        step: usize,
        wanted: usize,
        limit: usize,
    ) -> Result<Option<usize>> {
        let generous = step.max(wanted).min(limit);
        let done = match file.preallocate(from as u64, generous.saturating_sub(from) as u64, false) {
            Err(error) if error.is_storage_full() && generous > wanted => file
                .preallocate(from as u64, wanted.saturating_sub(from) as u64, false)
                .map(|done| (done, wanted))?,
            done => (done?, generous),
        };
        Ok(match done {
            (Preallocated::Done, reserved) => Some(reserved),
            (Preallocated::Unsupported, _) => None,
        })
    }

    fn max_bytes(&self) -> usize {
        bytes_of(self.max_entries, Self::ENTRY_BYTES)
    }

    fn file(&self) -> Result<Arc<File>> {
        let mut file = self.file.lock();
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        let opened = Arc::new(self.dir.open_file(&self.name, Open::ReadWrite)?);
        *file = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn to_bytes(&self, entries: u32) -> Vec<u8> {
        (0..entries).filter_map(|at| self.entry(at)).flatten().flat_map(u32::to_be_bytes).collect()
    }
}

/// Writes an index file as a whole and renames it over the old one, which is never shortened in place: a reader that has
/// it mapped keeps it. Without `sync` its bytes are durable only after a later sync; its name never before the
/// directory's.
pub(super) fn replace(dir: &Dir, name: &OsStr, bytes: &[u8], mode: u32, sync: bool) -> Result<()> {
    let mut temporary = OsString::from(TEMPORARY_PREFIX);
    temporary.push(name);
    temporary.push(TEMPORARY_SUFFIX);
    dir.replace(name, &temporary, bytes, mode, sync)
}

/// All whole entries of a file, in memory.
fn read_words(file: &File, entry_bytes: usize) -> Result<MappedWords> {
    let len = whole_entries(file.len()?, entry_bytes);
    let mut bytes = vec![0_u8; len];
    let read = file.read_at(&mut bytes, 0)?;
    let words = MappedWords::anonymous(read / entry_bytes * entry_bytes)?;
    for (at, word) in bytes.get(..read).unwrap_or_default().as_chunks::<4>().0.iter().enumerate() {
        let _ = words.store32(at, u32::from_be_bytes(*word).to_be());
    }
    Ok(words)
}

/// The length without what is no whole entry; entries past `u32::MAX` bytes are of no use to a segment of 2 GiB.
fn whole_entries(len: u64, entry_bytes: usize) -> usize {
    usize::try_from(len.min(u64::from(u32::MAX))).unwrap_or(0) / entry_bytes * entry_bytes
}

fn bytes_of(entries: u32, entry_bytes: usize) -> usize {
    usize::try_from(entries).unwrap_or(usize::MAX).saturating_mul(entry_bytes)
}

fn word_at<const WORDS: usize>(entry: u32) -> usize {
    usize::try_from(entry).unwrap_or(usize::MAX).saturating_mul(WORDS)
}

/// The first number from `low` on, below `high`, that is not before; `high` where all are.
fn partition(mut low: u32, mut high: u32, is_before: impl Fn(u32) -> bool) -> u32 {
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl From<Error> for super::IndexProblem {
    fn from(error: Error) -> Self {
        Self { entry: None, reason: error.to_string() }
    }
}
