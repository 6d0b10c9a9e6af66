//! The source file without its fence.

mod atomics {
    pub(super) use loom::sync::atomic::Ordering;

    pub(super) fn fence(_: Ordering) {}
}
#[path = "../../src/log/publish.rs"]
#[expect(dead_code, reason = "only the reader's half has a fence")]
pub(crate) mod publish;
