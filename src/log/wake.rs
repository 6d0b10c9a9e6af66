//! Waking readers of other processes: the protocol over two shared words, and nothing else, so that a model can run it with
//! other atomics.
//!
//! Why no wake-up is lost. Both sides *exchange* the flag, and exchanges of one word have one order. If the reader's comes
//! first, the writer finds 1 and wakes. If the writer's comes first, the reader's takes from it, and sees at its look
//! everything that the writer published before. A plain load or store on either side would break this: it may be
//! answered from before the other's. The sleep begins only while the word is what it was before all that, so a wake-up
//! between look and sleep ends it at once.

use super::atomics::{AtomicU32, Ordering};

/// The flag (1 while a reader may be asleep) and the word that they sleep on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeWords<'a> {
    pub(crate) flag: &'a AtomicU32,
    pub(crate) word: &'a AtomicU32,
}

impl<'a> WakeWords<'a> {
    /// A reader's one wait: `look` again once the flag is set, then `sleep` while the word is what it was. `None` where the
    /// look found something. Said anew before each sleep: the writer takes the flag down.
    pub(crate) fn wait<T>(
        self,
        look: impl FnOnce() -> bool,
        sleep: impl FnOnce(&'a AtomicU32, u32) -> T,
    ) -> Option<T> {
        let before = self.word.load(Ordering::SeqCst);
        self.flag.swap(1, Ordering::SeqCst);
        if look() {
            return None;
        }
        Some(sleep(self.word, before))
    }

    /// After the writer has published: takes the flag down, and has sleepers woken if it was up.
    pub(crate) fn published(self, wake: impl FnOnce(&'a AtomicU32)) {
        if self.flag.swap(0, Ordering::SeqCst) != 0 {
            self.word.fetch_add(1, Ordering::SeqCst);
            wake(self.word);
        }
    }
}
