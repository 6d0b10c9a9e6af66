//! The source files, with loom's own atomics.

mod atomics {
    pub(super) use loom::sync::atomic::{AtomicU32, Ordering, fence};
}
#[path = "../../src/log/publish.rs"]
pub(crate) mod publish;
#[path = "../../src/log/wake.rs"]
pub(crate) mod wake;
