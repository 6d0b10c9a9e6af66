//! The order in which the ends are published into the control page and read from it, and nothing else, so that a model can
//! run it with other atomics.
//!
//! A store is a release, a load is relaxed and followed by an acquire fence: through a read-only map nothing stronger may
//! be loaded. What a reader gets by it:
//!
//! - *One writer's.* An open stores `opening`, then its generation, then values; `open` last. A reader takes the generation
//!   first and again at the end: whatever value of a later writer it saw, it then sees that writer's generation too.
//! - *`start <= durable <= written`.* They are raised written, durable, start, and loaded in the opposite order.
//! - *A segment and the end in it belong together.* The base is hidden while both change, and loaded before and after.

use super::atomics::{Ordering, fence};

/// The words of the page that this order is about.
pub(crate) const STATE: usize = 4;
pub(crate) const GENERATION: usize = 5;
pub(crate) const SET_GENERATION: usize = 6;
pub(crate) const START: usize = 7;
pub(crate) const DURABLE: usize = 8;
pub(crate) const WRITTEN: usize = 9;
pub(crate) const ACTIVE_BASE: usize = 12;
pub(crate) const ACTIVE_END: usize = 13;

/// In place of a base: no segment is named, or not yet.
pub(crate) const NO_BASE: u64 = u64::MAX;

/// How often a reader tries again because the page changed under it.
const TRIES: usize = 16;

/// Words that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) state: u64,
    pub(crate) generation: u64,
    pub(crate) set_generation: u64,
    pub(crate) start: u64,
    pub(crate) durable: u64,
    pub(crate) written: u64,
    /// The active segment's base, and its end: the offsets in it in the upper half, the position in the lower.
    pub(crate) active: Option<(u64, u64)>,
}

/// The written end: in the active segment, and as an offset. `store` is a release.
pub(crate) fn store_written(
    mut store: impl FnMut(usize, u64),
    (base, end): (u64, u64),
    is_other_base: bool,
    written: u64,
) {
    if is_other_base {
        store(ACTIVE_BASE, NO_BASE);
    }
    store(ACTIVE_END, end);
    if is_other_base {
        store(ACTIVE_BASE, base);
    }
    store(WRITTEN, written);
}

/// The first stores of an open: from here on no value is to be believed.
pub(crate) fn store_opening(mut store: impl FnMut(usize, u64), opening: u64, generation: u64) {
    store(STATE, opening);
    store(GENERATION, generation);
}

/// All of a moment, or `None` where the page kept changing. `load` is relaxed.
pub(crate) fn load(load: impl Fn(usize) -> u64) -> Option<Seen> {
    let load = |word| {
        let value = load(word);
        // Whatever was stored before the value is seen by every load after this.
        fence(Ordering::Acquire);
        value
    };
    for _ in 0..TRIES {
        let generation = load(GENERATION);
        let state = load(STATE);
        let set_generation = load(SET_GENERATION);
        let start = load(START);
        let durable = load(DURABLE);
        let base = load(ACTIVE_BASE);
        let end = load(ACTIVE_END);
        let written = load(WRITTEN);
        if load(ACTIVE_BASE) != base || load(GENERATION) != generation {
            continue;
        }
        let active = (base != NO_BASE).then_some((base, end));
        return Some(Seen { state, generation, set_generation, start, durable, written, active });
    }
    None
}
