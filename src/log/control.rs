//! `.stratalog-control`: the writer's ends in a page that other processes can see while it is being written.
//!
//! 4096 bytes, created at full size by written zeros, never truncated or replaced. Little-endian u64 words:
//!
//! ```text
//!  0 magic   1 version   2,3 boot id   4 state   5 generation   6 set generation
//!  7 start   8 durable end   9 written end   10 syncing   11 process id of the writer
//! 12 active segment's base   13 its end (offsets in the upper half, position in the lower)
//! ```
//!
//! The page is never synced: with another boot's id, or none, its values mean nothing. Within one boot the page cache
//! keeps them past the death of the writer, which is how an open learns what a killed writer knew.
//!
//! In which order values are stored and loaded, and what follows from it, stands in `publish.rs`.

use std::sync::atomic::{Ordering, fence};

use super::{
    checkpoint::Point,
    described::Described,
    publish::{self, Seen},
    waiters_page::WaitersPage,
};
use crate::{
    offset::Offset,
    segment::SegmentEnd,
    sys::{self, Dir, File, MappedWords},
};

/// The file's name.
pub(crate) const CONTROL_NAME: &str = ".stratalog-control";

const PAGE_BYTES: usize = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"STRTLGCT");
/// Version 1 had no active segment.
const VERSION: u64 = 2;

const W_MAGIC: usize = 0;
const W_VERSION: usize = 1;
const W_BOOT: usize = 2;
const W_SYNCING: usize = 10;
const W_PID: usize = 11;
const WORDS: usize = 14;

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
    /// The segment that is being written, and the written end in it; `None` where the page does not say.
    pub(crate) active: Option<(Offset, SegmentEnd)>,
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
        Self::decode(|word| words[word], boot_words()?).ok()
    }

    fn decode(load: impl Fn(usize) -> u64, boot: [u64; 2]) -> Result<Self, NoView> {
        let version = load(W_VERSION);
        let is_ours = load(W_MAGIC) == MAGIC && (1..=VERSION).contains(&version);
        if !is_ours || [load(W_BOOT), load(W_BOOT + 1)] != boot {
            return Err(NoView::NotOurs);
        }
        // A boot id is stored behind values of that boot.
        fence(Ordering::Acquire);
        let seen = publish::load(&load).ok_or(NoView::Changing)?;
        Self::of(seen, version == VERSION, load(W_SYNCING) != 0).ok_or(NoView::NotOurs)
    }

    fn of(seen: Seen, knows_active: bool, syncing: bool) -> Option<Self> {
        let (start, durable) = (Offset::from_u64(seen.start)?, Offset::from_u64(seen.durable)?);
        let mut written = Offset::from_u64(seen.written)?;
        let active = seen.active.filter(|_| knows_active).and_then(|(base, end)| {
            let base = Offset::from_u64(base)?;
            Some((base, SegmentEnd::from_word(base, end))).filter(|(_, end)| end.next >= durable)
        });
        if let Some((_, end)) = active {
            // Stored together with its position.
            written = end.next;
        }
        if start > durable || durable > written {
            return None;
        }
        let state = ControlState::from_word(seen.state)?;
        let Seen { generation, set_generation, .. } = seen;
        Some(Self { state, generation, set_generation, start, durable, written, active, syncing })
    }

    /// True where the ends are those of a writer that was appending when it last said anything.
    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.state, ControlState::Open | ControlState::Poisoned)
    }

    /// The same view of a log that was cut at `end`.
    pub(crate) fn cut_at(self, end: Offset) -> Self {
        Self {
            start: self.start.min(end),
            durable: self.durable.min(end),
            written: self.written.min(end),
            active: None,
            ..self
        }
    }

    /// True where the last writer of this boot left without knowing whether its last sync succeeded, so that the page
    /// cache may hold what the disk does not.
    pub(crate) fn doubts_page_cache(&self) -> bool {
        self.syncing || self.state == ControlState::Poisoned
    }
}

/// Why a page tells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoView {
    /// It is none, or of another boot, or of a version that is not known here.
    NotOurs,
    /// It kept changing while it was read.
    Changing,
}

/// A reader's eye on the page: mapped, read-only.
#[derive(Debug)]
pub(crate) struct AttachedPage {
    words: MappedWords,
    boot: [u64; 2],
    identity: (u64, u64),
}

impl AttachedPage {
    /// Maps the page; `None` where there is none that could tell anything.
    pub(crate) fn open(dir: &Dir) -> Option<Self> {
        let boot = boot_words()?;
        let file = dir.open_file(CONTROL_NAME, sys::Open::Read).ok()?;
        let stat = file.stat().ok()?;
        // Shorter than a page it is none of ours; it is made whole before anything is stored in it.
        let words = MappedWords::map(&file, PAGE_BYTES, PAGE_BYTES, false).ok()?;
        Some(Self { words, boot, identity: (stat.device, stat.inode) })
    }

    /// True where the name still leads to the mapped file, and that has not become shorter.
    pub(crate) fn is_current(&self, dir: &Dir) -> bool {
        let stat = dir.stat(CONTROL_NAME).ok().flatten();
        stat.is_some_and(|stat| (stat.device, stat.inode) == self.identity && stat.len >= PAGE_BYTES as u64)
    }

    /// What the page says now. Costs no system call.
    pub(crate) fn view(&self) -> Result<ControlView, NoView> {
        let load = |word| self.words.load64(word).map_or(0, u64::from_le);
        ControlView::decode(load, self.boot)
    }
}

/// What a new page counts its writers from: not what another page counted them from, which a reader may have seen.
fn first_generation() -> u64 {
    sys::random_bytes().map_or(1, |bytes| u64::from(u32::from_le_bytes(bytes)) + 1)
}

fn boot_words() -> Option<[u64; 2]> {
    let id = sys::boot_id()?;
    let (high, low) = (id.first_chunk()?, id.last_chunk()?);
    Some([u64::from_le_bytes(*high), u64::from_le_bytes(*low)])
}

/// The writer's hand on the page, and on the page of those who wait for it to change. Where one cannot be had (a full
/// disk, a file system without shared maps) it does nothing: readers then find the ends in the files, or look at the page
/// from time to time.
#[derive(Debug, Default)]
pub(crate) struct ControlPage {
    words: Option<MappedWords>,
    waiters: Option<WaitersPage>,
}

impl ControlPage {
    /// Opens or creates the page and says `opening` in it.
    pub(crate) fn open(dir: &Dir, mode: u32) -> Self {
        let words = Self::map(dir, mode);
        if let Err(error) = &words {
            tracing::warn!(%error, "no control page: readers of other processes will poll the files");
        }
        let waiters = WaitersPage::create(dir, mode);
        if let Err(error) = &waiters {
            tracing::warn!(%error, "no page of waiters: readers of other processes will poll");
        }
        let page = Self { words: words.ok(), waiters: waiters.ok() };
        page.begin();
        page
    }

    /// No page: for readers, which have nothing to say.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Wakes readers of other processes: after everything that was published.
    pub(crate) fn wake(&self) {
        if let Some(waiters) = &self.waiters {
            waiters.wake();
        }
    }

    fn map(dir: &Dir, mode: u32) -> sys::Result<MappedWords> {
        let file = dir.open_file(CONTROL_NAME, sys::Open::CreateOrOpen { mode })?;
        if file.len()? < PAGE_BYTES as u64 {
            create_full(&file)?;
        }
        MappedWords::map(&file, PAGE_BYTES, PAGE_BYTES, true)
    }

    fn begin(&self) {
        let valid = self.load(W_MAGIC) == MAGIC && (1..=VERSION).contains(&self.load(W_VERSION));
        let generation =
            if valid { self.load(publish::GENERATION).wrapping_add(1) } else { first_generation() };
        publish::store_opening(self.storing(), ControlState::Opening as u64, generation);
        if !valid || self.load(W_VERSION) < VERSION {
            self.store(publish::ACTIVE_BASE, publish::NO_BASE);
        }
        self.store(W_MAGIC, MAGIC);
        self.store(W_VERSION, VERSION);
        self.store(W_PID, u64::from(std::process::id()));
    }

    /// Says, before recovery makes durable what it found, that the page cache is not to be believed until that is done:
    /// after a sync that failed, or that nobody lived to see, the next open of this boot reads the disk from `durable` on.
    pub(crate) fn doubt(&self, durable: Offset, written: Offset) {
        self.store(W_SYNCING, 1);
        self.set_start(Offset::ZERO);
        self.store(publish::ACTIVE_BASE, publish::NO_BASE);
        self.store(publish::WRITTEN, written.max(durable).to_u64());
        self.set_durable(durable);
        self.store_boot();
    }

    /// Takes the ends back to `end`: what is cut was published, and the next open must not miss it. Said while the
    /// state is `opening`, so nobody looks. A page that could not be mapped and says more goes.
    pub(crate) fn lower(&self, dir: &Dir, end: Offset) -> sys::Result<()> {
        if self.words.is_none() {
            dir.remove(CONTROL_NAME)?;
        }
        self.set_start(Offset::ZERO);
        self.store(publish::ACTIVE_BASE, publish::NO_BASE);
        self.set_durable(end);
        self.store(publish::WRITTEN, end.to_u64());
        Ok(())
    }

    fn store_boot(&self) {
        let [high, low] = boot_words().unwrap_or_default();
        self.store(W_BOOT, high);
        self.store(W_BOOT + 1, low);
    }

    /// Values first, `open` last.
    pub(crate) fn finish_opening(&self, start: Offset, durable: Offset, written: &Point) {
        self.store(W_SYNCING, 0);
        self.set_written(written);
        self.set_durable(durable);
        self.set_start(start);
        self.store_boot();
        self.set_state(ControlState::Open);
        self.wake();
    }

    pub(crate) fn set_state(&self, state: ControlState) {
        self.store(publish::STATE, state as u64);
    }

    pub(crate) fn set_start(&self, start: Offset) {
        self.store(publish::START, start.to_u64());
    }

    pub(crate) fn set_durable(&self, durable: Offset) {
        self.store(publish::DURABLE, durable.to_u64());
    }

    /// How far the log is written: an offset, and where in the active segment that is.
    pub(crate) fn set_written(&self, written: &Point) {
        let base = written.base.to_u64();
        let position = u32::try_from(written.position).unwrap_or(u32::MAX);
        let end = SegmentEnd { position, next: written.offset }.to_word(written.base);
        let is_other = self.load(publish::ACTIVE_BASE) != base;
        publish::store_written(self.storing(), (base, end), is_other, written.offset.to_u64());
    }

    pub(crate) fn set_syncing(&self, syncing: bool) {
        self.store(W_SYNCING, u64::from(syncing));
    }

    /// Segments came or went, or a leader epoch did.
    pub(crate) fn bump_set_generation(&self) {
        self.store(publish::SET_GENERATION, self.load(publish::SET_GENERATION).wrapping_add(1));
    }

    fn storing(&self) -> impl FnMut(usize, u64) {
        |word, value| self.store(word, value)
    }

    fn load(&self, word: usize) -> u64 {
        self.words.as_ref().and_then(|words| words.load64(word)).map_or(0, u64::from_le)
    }

    fn store(&self, word: usize, value: u64) {
        if let Some(words) = &self.words {
            let stored = words.store64(word, value.to_le(), Ordering::Release);
            debug_assert!(stored, "the page is mapped whole");
        }
    }
}

/// Written zeros, not a hole: a store into the mapped page must never need a block that a full disk cannot give.
pub(super) fn create_full(file: &File) -> sys::Result<()> {
    file.set_no_cow();
    file.write_all_at(&[0; PAGE_BYTES], 0)
}

/// What the page's bytes say, for people: of whichever boot, and not all of one moment while it is written to.
pub(super) fn describe(bytes: &[u8]) -> Described {
    let words = bytes.as_chunks::<8>().0;
    let load = |word: usize| words.get(word).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if load(W_MAGIC) != MAGIC {
        return Described::wrong("no control page");
    }
    let state = match ControlState::from_word(load(publish::STATE)) {
        Some(ControlState::Opening) => "opening",
        Some(ControlState::Open) => "open",
        Some(ControlState::Closed) => "closed",
        Some(ControlState::Poisoned) => "poisoned",
        None => "unknown",
    };
    let boot = [load(W_BOOT), load(W_BOOT + 1)];
    let is_active_known = load(W_VERSION) >= 2 && load(publish::ACTIVE_BASE) != publish::NO_BASE;
    let active_end = load(publish::ACTIVE_END);
    let mut found = Described::default();
    found.push(
        "control",
        [
            ("version", load(W_VERSION).into()),
            ("thisBoot", boot_words().map(|this| this == boot).into()),
            ("state", state.into()),
            ("generation", load(publish::GENERATION).into()),
            ("setGeneration", load(publish::SET_GENERATION).into()),
            ("startOffset", load(publish::START).into()),
            ("durableEndOffset", load(publish::DURABLE).into()),
            ("writtenEndOffset", load(publish::WRITTEN).into()),
            ("syncing", (load(W_SYNCING) != 0).into()),
            ("processId", load(W_PID).into()),
            ("activeBaseOffset", is_active_known.then(|| load(publish::ACTIVE_BASE)).into()),
            ("activePosition", is_active_known.then_some(active_end & u64::from(u32::MAX)).into()),
        ],
    );
    found
}
