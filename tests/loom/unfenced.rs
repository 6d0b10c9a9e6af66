//! The source file without its fence.

mod atomics {
    pub(super) use loom::sync::atomic::Ordering;

    pub(super) fn fence(_: Ordering) {}
}
#[path = "../../src/log/publish.rs"]
pub(crate) mod publish;
