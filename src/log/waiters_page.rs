//! `.stratalog-waiters`: where readers of other processes say that they sleep, and on what.
//!
//! 4096 bytes, created at full size by written zeros, never truncated or replaced. Words of 4 bytes:
//!
//! ```text
//!  0,1 magic   2 version (little-endian)   16 flag: 1 while a reader may be asleep   32 the word they sleep on
//! ```
//!
//! Flag and word are in the machine's own order, and mean nothing beyond it: a flag that an earlier boot left up costs one
//! wake-up for nobody, and any value of the word is as good as any other. So nothing is done at a boot.
//!
//! Readers store here and nowhere else, and only the flag; one that may not write to the file looks from time to time.
//! What they do with the words stands in `wake.rs`.

use std::sync::atomic::Ordering;

use super::{control::create_full, wake::WakeWords};
use crate::sys::{self, Dir, File, MappedWords, Open, futex_wake_all};

/// The file's name.
pub(crate) const WAITERS_NAME: &str = ".stratalog-waiters";

const PAGE_BYTES: usize = 4096;
const MAGIC: [u32; 2] = [u32::from_le_bytes(*b"STRT"), u32::from_le_bytes(*b"LGWT")];
const VERSION: u32 = 1;

const W_MAGIC: usize = 0;
const W_VERSION: usize = 2;
/// Each in a cache line of its own: the writer exchanges the flag at each publish.
const W_FLAG: usize = 16;
const W_WORD: usize = 32;

/// The page, mapped to be written to.
#[derive(Debug)]
pub(crate) struct WaitersPage {
    words: MappedWords,
    identity: (u64, u64),
}

impl WaitersPage {
    /// The writer's: opened, or made.
    pub(crate) fn create(dir: &Dir, mode: u32) -> sys::Result<Self> {
        let file = dir.open_file(WAITERS_NAME, Open::CreateOrOpen { mode })?;
        if file.len()? < PAGE_BYTES as u64 {
            create_full(&file)?;
        }
        let page = Self::map(&file)?;
        if !page.is_ours() {
            for (word, value) in [(W_MAGIC, MAGIC[0]), (W_MAGIC + 1, MAGIC[1]), (W_VERSION, VERSION)] {
                if let Some(cell) = page.words.words32().get(word) {
                    cell.store(value.to_le(), Ordering::Release);
                }
            }
        }
        Ok(page)
    }

    /// A reader's; `None` where there is none that it may write to and knows. Changes nothing.
    pub(crate) fn attach(dir: &Dir) -> Option<Self> {
        let file = dir.open_file(WAITERS_NAME, Open::ReadWrite).ok()?;
        Some(Self::map(&file).ok()?).filter(Self::is_ours)
    }

    fn map(file: &File) -> sys::Result<Self> {
        let stat = file.stat()?;
        let words = MappedWords::map(file, PAGE_BYTES, PAGE_BYTES, true)?;
        Ok(Self { words, identity: (stat.device, stat.inode) })
    }

    fn is_ours(&self) -> bool {
        let load = |word| self.words.load32(word).map(u32::from_le);
        [load(W_MAGIC), load(W_MAGIC + 1), load(W_VERSION)] == [Some(MAGIC[0]), Some(MAGIC[1]), Some(VERSION)]
    }

    /// True where the name still leads to the mapped file, and that has not become shorter.
    pub(crate) fn is_current(&self, dir: &Dir) -> bool {
        let stat = dir.stat(WAITERS_NAME).ok().flatten();
        stat.is_some_and(|stat| (stat.device, stat.inode) == self.identity && stat.len >= PAGE_BYTES as u64)
    }

    pub(crate) fn wake_words(&self) -> Option<WakeWords<'_>> {
        let words = self.words.words32();
        Some(WakeWords { flag: words.get(W_FLAG)?, word: words.get(W_WORD)? })
    }

    /// Wakes readers that sleep: after the writer has published. Costs one exchange where none does.
    pub(crate) fn wake(&self) {
        if let Some(words) = self.wake_words() {
            words.published(futex_wake_all);
        }
    }
}
