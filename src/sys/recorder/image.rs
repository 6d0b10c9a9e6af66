//! What a disk may hold after a crash: the durable part, and a choice of the rest.
//!
//! The model. Of a file, every write, mapped store, change of length and reservation since the last sync that covers it may
//! be there or not, each for itself; a write may be there in part, by sectors of 512 bytes, and its length without its
//! bytes. Of a directory, the name changes since its last sync may be there as a prefix, or, stricter than real file
//! systems, as any subset. A sync of a file says nothing about its name.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::record::{Baseline, Event, FileId};

const SECTOR_BYTES: usize = 512;

/// The disk at one moment of a recording.
#[derive(Debug)]
pub struct Image {
    /// What each file held, durably, and what was done to it since, in order.
    files: BTreeMap<FileId, FileState>,
    /// By number: a directory stays the same one when it is renamed. The root is the first.
    dirs: Vec<DirState>,
    /// Files that others put into a directory which is made only in the recording, by their paths.
    homeless: Vec<(PathBuf, Node)>,
    /// How many events it has seen.
    event_count: usize,
}

#[derive(Debug, Default)]
struct FileState {
    durable: Vec<u8>,
    /// With the number of the event.
    effects: Vec<(usize, Effect)>,
}

#[derive(Debug, Default)]
struct DirState {
    durable: BTreeMap<OsString, Node>,
    pending: Vec<(usize, NameChange)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    File(FileId),
    Dir(usize),
}

/// A change of names: what gets (and what loses) a name.
#[derive(Debug, Clone)]
enum NameChange {
    Set(OsString, Node),
    Move { from: OsString, to: OsString, node: Node },
    Unset(OsString),
}

/// A change of a file's bytes or length that is not known to be durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the event of that name")]
pub enum Effect {
    Write { position: u64, bytes: Vec<u8>, is_store: bool },
    SetLen(u64),
    ExtendTo(u64),
}

/// What becomes of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It reached the disk.
    Kept,
    /// It did not.
    Lost,
    /// The length did, the bytes did not.
    LengthOnly,
    /// Of a write, the sectors (counted from the file's start) whose bit is set in this mask, repeated; the length did too.
    Sectors(u64),
    /// Of a write, this many bytes from its front, and no more length.
    Front(usize),
}

/// Decides what a crash leaves.
pub trait Survival {
    /// What becomes of an effect on a file.
    fn effect(&mut self, file: FileId, effect: &Effect) -> Fate;
    /// Which of the `pending` name changes of a directory, oldest first, reached the disk.
    fn names(&mut self, dir: &Path, pending: usize) -> Vec<bool>;
}

/// All of it reached the disk: the death of the process alone.
#[derive(Debug, Clone, Copy)]
pub struct Everything;

/// Only what was synced.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

/// By lot, from a seed.
#[derive(Debug, Clone, Copy)]
pub struct Chance {
    state: u64,
    keep_percent: u64,
    names_in_order: bool,
}

impl Chance {
    /// `keep_percent` of the effects are kept; the others are lost, torn or reduced to their length. With
    /// `names_in_order` the name changes of a directory survive as a prefix, as on a journalled file system.
    pub fn new(seed: u64, keep_percent: u64, names_in_order: bool) -> Self {
        Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, keep_percent, names_in_order }
    }

    fn next(&mut self) -> u64 {
        // xorshift64*, Vigna 2014
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8
    }
}

impl Survival for Everything {
    fn effect(&mut self, _: FileId, _: &Effect) -> Fate {
        Fate::Kept
    }
    fn names(&mut self, _: &Path, pending: usize) -> Vec<bool> {
        vec![true; pending]
    }
}

impl Survival for Nothing {
    fn effect(&mut self, _: FileId, _: &Effect) -> Fate {
        Fate::Lost
    }
    fn names(&mut self, _: &Path, pending: usize) -> Vec<bool> {
        vec![false; pending]
    }
}

impl Survival for Chance {
    fn effect(&mut self, _: FileId, effect: &Effect) -> Fate {
        if self.next() % 100 < self.keep_percent {
            return Fate::Kept;
        }
        let Effect::Write { bytes, is_store: false, .. } = effect else { return Fate::Lost };
        match self.next() % 4 {
            0 => Fate::LengthOnly,
            1 => Fate::Sectors(self.next() ^ (self.next() << 32)),
            2 => Fate::Front(usize::try_from(self.next()).unwrap_or(0) % bytes.len().max(1)),
            _ => Fate::Lost,
        }
    }

    fn names(&mut self, _: &Path, pending: usize) -> Vec<bool> {
        if self.names_in_order {
            let kept = usize::try_from(self.next()).unwrap_or(0) % (pending + 1);
            (0..pending).map(|at| at < kept).collect()
        } else {
            (0..pending).map(|_| self.next() % 100 < self.keep_percent).collect()
        }
    }
}

impl Image {
    pub(super) fn new(baseline: &Baseline, events: &[Event]) -> Self {
        let mut image = Self {
            files: BTreeMap::new(),
            dirs: vec![DirState::default()],
            homeless: Vec::new(),
            event_count: 0,
        };
        // A directory comes before those in it.
        for dir in &baseline.dirs {
            let node = image.new_dir();
            image.put_durable(dir, node);
        }
        for (id, bytes) in &baseline.bytes {
            image.files.entry(*id).or_default().durable.clone_from(bytes);
        }
        for (path, id) in &baseline.names {
            image.put_durable(path, Node::File(*id));
        }
        for event in events {
            image.advance(event);
        }
        image
    }

    /// The disk one event later: the events of a recording have to be given in their order, each once.
    pub fn advance(&mut self, event: &Event) {
        self.apply(self.event_count, event);
        self.event_count += 1;
    }

    /// How many effects and name changes may or may not survive.
    pub fn pending_count(&self) -> usize {
        let effects: usize = self.files.values().map(|file| file.effects.len()).sum();
        let names: usize = self.dirs.iter().map(|dir| dir.pending.len()).sum();
        effects + names
    }

    /// Writes what the disk holds if `survival` decides so into an empty or missing directory.
    ///
    /// # Errors
    /// Where `into` cannot be written.
    pub fn materialize(&self, survival: &mut dyn Survival, into: &Path) -> io::Result<()> {
        fs::create_dir_all(into)?;
        let mut contents: BTreeMap<FileId, Vec<u8>> = BTreeMap::new();
        for (id, file) in &self.files {
            let mut bytes = file.durable.clone();
            for (_, effect) in &file.effects {
                effect.survive(survival.effect(*id, effect), &mut bytes);
            }
            contents.insert(*id, bytes);
        }
        let mut open = vec![(PathBuf::new(), 0)];
        while let Some((path, dir)) = open.pop() {
            let Some(state) = self.dirs.get(dir) else { continue };
            fs::create_dir_all(into.join(&path))?;
            let kept = survival.names(&path, state.pending.len());
            let mut names = state.durable.clone();
            for ((_, change), kept) in state.pending.iter().zip(kept) {
                if kept {
                    change.apply(&mut names);
                }
            }
            for (name, node) in names {
                match node {
                    Node::Dir(inner) => open.push((path.join(name), inner)),
                    Node::File(id) => {
                        let bytes = contents.get(&id).map_or(&[][..], Vec::as_slice);
                        fs::write(into.join(&path).join(name), bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn new_dir(&mut self) -> Node {
        self.dirs.push(DirState::default());
        Node::Dir(self.dirs.len() - 1)
    }

    /// The directory that a path under the root leads to in the running system.
    fn dir_at(&self, path: &Path) -> Option<usize> {
        path.iter().try_fold(0, |dir, name| match self.present(dir).get(name) {
            Some(Node::Dir(inner)) => Some(*inner),
            _ => None,
        })
    }

    fn put_durable(&mut self, path: &Path, node: Node) {
        if let Some(name) = path.file_name() {
            let dir = self.dir_at(path.parent().unwrap_or(Path::new("")));
            if let Some(state) = dir.and_then(|dir| self.dirs.get_mut(dir)) {
                state.durable.insert(name.to_os_string(), node);
            } else {
                self.homeless.push((path.to_path_buf(), node));
            }
        }
    }

    fn apply(&mut self, number: usize, event: &Event) {
        match event {
            Event::CreateDir { dir, name } => {
                let node = self.new_dir();
                self.change_name(number, dir, NameChange::Set(name.clone(), node));
                let homeless = std::mem::take(&mut self.homeless);
                for (path, node) in homeless {
                    // What still has no home stays so.
                    self.put_durable(&path, node);
                }
            }
            Event::Create { dir, name, file } => {
                self.files.entry(*file).or_default();
                self.change_name(number, dir, NameChange::Set(name.clone(), Node::File(*file)));
            }
            Event::Rename { dir, from, to } => {
                let present = self.dir_at(dir).map(|dir| self.present(dir)).unwrap_or_default();
                if let Some(node) = present.get(from).copied() {
                    let change = NameChange::Move { from: from.clone(), to: to.clone(), node };
                    self.change_name(number, dir, change);
                }
            }
            Event::Remove { dir, name } => self.change_name(number, dir, NameChange::Unset(name.clone())),
            Event::Write { file, position, bytes } => self.change_file(
                number,
                *file,
                Effect::Write { position: *position, bytes: bytes.clone(), is_store: false },
            ),
            Event::Store { file, position, bytes } => self.change_file(
                number,
                *file,
                Effect::Write { position: *position, bytes: bytes.clone(), is_store: true },
            ),
            Event::SetLen { file, len } => self.change_file(number, *file, Effect::SetLen(*len)),
            Event::Preallocate { keep_size: true, .. } => {}
            Event::Preallocate { file, end, keep_size: false } => {
                self.change_file(number, *file, Effect::ExtendTo(*end));
            }
            Event::Sync { file, began } => {
                let file = self.files.entry(*file).or_default();
                for (_, effect) in file.effects.extract_if(.., |(at, _)| *at < *began) {
                    effect.survive(Fate::Kept, &mut file.durable);
                }
            }
            Event::SyncDir { dir, began } => {
                let Some(dir) = self.dir_at(dir).and_then(|dir| self.dirs.get_mut(dir)) else { return };
                for (_, change) in dir.pending.extract_if(.., |(at, _)| *at < *began) {
                    change.apply(&mut dir.durable);
                }
            }
        }
    }

    /// The names as the running system sees them.
    fn present(&self, dir: usize) -> BTreeMap<OsString, Node> {
        let Some(state) = self.dirs.get(dir) else { return BTreeMap::new() };
        let mut names = state.durable.clone();
        for (_, change) in &state.pending {
            change.apply(&mut names);
        }
        names
    }

    fn change_name(&mut self, number: usize, dir: &Path, change: NameChange) {
        if let Some(state) = self.dir_at(dir).and_then(|dir| self.dirs.get_mut(dir)) {
            state.pending.push((number, change));
        }
    }

    fn change_file(&mut self, number: usize, file: FileId, effect: Effect) {
        self.files.entry(file).or_default().effects.push((number, effect));
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<OsString, Node>) {
        match self {
            Self::Set(name, node) => {
                names.insert(name.clone(), *node);
            }
            Self::Move { from, to, node } => {
                // Where the old name was never durable there is nothing to take away; where it was given anew to
                // another file since, it stays with that one.
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
            Self::Unset(name) => {
                names.remove(name);
            }
        }
    }
}

impl Effect {
    fn survive(&self, fate: Fate, bytes: &mut Vec<u8>) {
        match (self, fate) {
            (_, Fate::Lost) => {}
            (Self::SetLen(len), _) => bytes.resize(size(*len), 0),
            (Self::ExtendTo(end), _) => grow(bytes, size(*end)),
            (Self::Write { position, bytes: new, is_store }, fate) => {
                let start = size(*position);
                let end = start.saturating_add(new.len());
                if *is_store {
                    // A store never lengthens a file; where its block is gone, so is the store.
                    if let (Fate::Kept, Some(room)) = (fate, bytes.get_mut(start..end)) {
                        room.copy_from_slice(new);
                    }
                    return;
                }
                let visible = if let Fate::Front(front) = fate { front.min(new.len()) } else { new.len() };
                grow(bytes, start.saturating_add(visible));
                for (at, byte) in new.iter().enumerate().take(visible) {
                    let survives = match fate {
                        Fate::Kept | Fate::Front(_) => true,
                        Fate::Sectors(mask) => mask >> (((start + at) / SECTOR_BYTES) % 64) & 1 == 1,
                        Fate::LengthOnly | Fate::Lost => false,
                    };
                    if let (true, Some(room)) = (survives, bytes.get_mut(start + at)) {
                        *room = *byte;
                    }
                }
            }
        }
    }
}

fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

fn grow(bytes: &mut Vec<u8>, len: usize) {
    if bytes.len() < len {
        bytes.resize(len, 0);
    }
}
