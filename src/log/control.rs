//! `.stratalog-control`: the writer's ends in a page that other processes can see while it is being written.
//!
//! 4096 bytes, created at full size by written zeros, never truncated or replaced. Little-endian u64 words:
//!
//! ```text
//!  0 magic   1 version   2,3 boot id   4 state   5 generation   6 set generation
//!  7 start   8 durable end   9 written end   10 syncing   11 process id of the writer
//! ```
//!
//! The page is never synced: with another boot's id, or none, its values mean nothing. Within one boot the page cache
//! keeps them past the death of the writer, which is how an open learns what a killed writer knew.
//!
//! Orders: `opening` is the first store of an open; the values come next, `open` last. Ends are published written,
//! durable, start, so that a reader that loads start, durable, written finds `start <= durable <= written`.

use std::sync::atomic::Ordering;

use crate::{
    offset::Offset,
    sys::{self, Dir, File, MappedWords},
};

/// The file's name.
pub(crate) const CONTROL_NAME: &str = ".stratalog-control";

const PAGE_BYTES: usize = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"STRTLGCT");
const VERSION: u64 = 1;

const W_MAGIC: usize = 0;
const W_VERSION: usize = 1;
const W_BOOT: usize = 2;
const W_STATE: usize = 4;
const W_GENERATION: usize = 5;
const W_SET_GENERATION: usize = 6;
const W_START: usize = 7;
const W_DURABLE: usize = 8;
const W_WRITTEN: usize = 9;
const W_SYNCING: usize = 10;
const W_PID: usize = 11;
const WORDS: usize = 12;

/// What the writer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum ControlState {
    /// The ends are not to be believed: a reader keeps its last view.
    Opening = 1,
    Open = 2,
    Closed = 3,
    /// A sync failed: what the page cache holds above the durable end may not be on the disk.
    Poisoned = 4,
}

impl ControlState {
    fn from_word(word: u64) -> Option<Self> {
        [Self::Opening, Self::Open, Self::Closed, Self::Poisoned]
            .into_iter()
            .find(|state| *state as u64 == word)
    }
}

/// What the page says of this boot's last writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ControlView {
    pub(crate) state: ControlState,
    pub(crate) generation: u64,
    pub(crate) set_generation: u64,
    pub(crate) start: Offset,
    pub(crate) durable: Offset,
    pub(crate) written: Offset,
    /// A sync was begun and did not come back successful.
    pub(crate) syncing: bool,
}

impl ControlView {
    /// Reads the page as it is now; `None` where there is none, or none of this boot.
    pub(crate) fn read(dir: &Dir) -> Option<Self> {
        // A page and no more, however long the file was made.
        let mut bytes = [0; WORDS * size_of::<u64>()];
        let file = dir.open_file(CONTROL_NAME, sys::Open::Read).ok()?;
        if file.read_at(&mut bytes, 0).ok()? < bytes.len() {
            return None;
        }
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Self::decode(&words)
    }

    fn decode(words: &[u64; WORDS]) -> Option<Self> {
        let boot = boot_words()?;
        if words[W_MAGIC] != MAGIC || words[W_VERSION] != VERSION || words[W_BOOT..W_BOOT + 2] != boot {
            return None;
        }
        let (start, durable, written) = (
            Offset::from_u64(words[W_START])?,
            Offset::from_u64(words[W_DURABLE])?,
            Offset::from_u64(words[W_WRITTEN])?,
        );
        if start > durable || durable > written {
            return None;
        }
        Some(Self {
            state: ControlState::from_word(words[W_STATE])?,
            generation: words[W_GENERATION],
            set_generation: words[W_SET_GENERATION],
            start,
            durable,
            written,
            syncing: words[W_SYNCING] != 0,
        })
    }

    /// The same view of a log that was cut at `end`.
    pub(crate) fn cut_at(self, end: Offset) -> Self {
        Self {
            start: self.start.min(end),
            durable: self.durable.min(end),
            written: self.written.min(end),
            ..self
        }
    }

    /// True where the last writer of this boot left without knowing whether its last sync succeeded, so that the page
    /// cache may hold what the disk does not.
    pub(crate) fn doubts_page_cache(&self) -> bool {
        self.syncing || self.state == ControlState::Poisoned
    }
}

fn boot_words() -> Option<[u64; 2]> {
    let id = sys::boot_id()?;
    let (high, low) = (id.first_chunk()?, id.last_chunk()?);
    Some([u64::from_le_bytes(*high), u64::from_le_bytes(*low)])
}

/// The writer's hand on the page. Where the page cannot be had (a full disk, a file system without shared maps) it
/// does nothing: readers then find the ends in the files themselves.
#[derive(Debug)]
pub(crate) struct ControlPage(Option<MappedWords>);

impl ControlPage {
    /// Opens or creates the page and says `opening` in it.
    pub(crate) fn open(dir: &Dir, mode: u32) -> Self {
        match Self::map(dir, mode) {
            Ok(words) => {
                let page = Self(Some(words));
                page.begin();
                page
            }
            Err(error) => {
                tracing::warn!(%error, "no control page: readers of other processes will poll the files");
                Self(None)
            }
        }
    }

    /// No page: for readers, which have nothing to say.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    fn map(dir: &Dir, mode: u32) -> sys::Result<MappedWords> {
        let file = dir.open_file(CONTROL_NAME, sys::Open::CreateOrOpen { mode })?;
        if file.len()? < PAGE_BYTES as u64 {
            create_full(&file)?;
        }
        MappedWords::map(&file, PAGE_BYTES, PAGE_BYTES, true)
    }

    fn begin(&self) {
        let valid = self.load(W_MAGIC) == MAGIC && self.load(W_VERSION) == VERSION;
        self.set_state(ControlState::Opening);
        let generation = if valid { self.load(W_GENERATION).wrapping_add(1) } else { 1 };
        self.store(W_MAGIC, MAGIC);
        self.store(W_VERSION, VERSION);
        self.store(W_GENERATION, generation);
        self.store(W_PID, u64::from(std::process::id()));
    }

    /// Says, before recovery makes durable what it found, that the page cache is not to be believed until that is done:
    /// after a sync that failed, or that nobody lived to see, the next open of this boot reads the disk from `durable` on.
    pub(crate) fn doubt(&self, durable: Offset, written: Offset) {
        self.store(W_SYNCING, 1);
        self.set_start(Offset::ZERO);
        self.set_written(written.max(durable));
        self.set_durable(durable);
        self.store_boot();
    }

    /// Takes the ends back to `end`: what is cut was published, and the next open must not miss it. Said while the
    /// state is `opening`, so nobody looks. A page that could not be mapped and says more goes.
    pub(crate) fn lower(&self, dir: &Dir, end: Offset) -> sys::Result<()> {
        if self.0.is_none() {
            dir.remove(CONTROL_NAME)?;
        }
        self.set_start(Offset::ZERO);
        self.set_durable(end);
        self.set_written(end);
        Ok(())
    }

    fn store_boot(&self) {
        let [high, low] = boot_words().unwrap_or_default();
        self.store(W_BOOT, high);
        self.store(W_BOOT + 1, low);
    }

    /// Values first, `open` last.
    pub(crate) fn finish_opening(&self, start: Offset, durable: Offset, written: Offset) {
        self.store(W_SYNCING, 0);
        self.set_written(written);
        self.set_durable(durable);
        self.set_start(start);
        self.store_boot();
        self.set_state(ControlState::Open);
    }

    pub(crate) fn set_state(&self, state: ControlState) {
        self.store(W_STATE, state as u64);
    }

    pub(crate) fn set_start(&self, start: Offset) {
        self.store(W_START, start.to_u64());
    }

    pub(crate) fn set_durable(&self, durable: Offset) {
        self.store(W_DURABLE, durable.to_u64());
    }

    pub(crate) fn set_written(&self, written: Offset) {
        self.store(W_WRITTEN, written.to_u64());
    }

    pub(crate) fn set_syncing(&self, syncing: bool) {
        self.store(W_SYNCING, u64::from(syncing));
    }

    /// Segments came or went.
    pub(crate) fn bump_set_generation(&self) {
        self.store(W_SET_GENERATION, self.load(W_SET_GENERATION).wrapping_add(1));
    }

    fn load(&self, word: usize) -> u64 {
        self.0.as_ref().and_then(|words| words.load64(word)).map_or(0, u64::from_le)
    }

    fn store(&self, word: usize, value: u64) {
        if let Some(words) = &self.0 {
            let stored = words.store64(word, value.to_le(), Ordering::Release);
            debug_assert!(stored, "the page is mapped whole");
        }
    }
}

/// Written zeros, not a hole: a store into the mapped page must never need a block that a full disk cannot give.
fn create_full(file: &File) -> sys::Result<()> {
    file.set_no_cow();
    file.write_all_at(&[0; PAGE_BYTES], 0)
}
