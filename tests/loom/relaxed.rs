//! The source file with orders that are too weak: every exchange is relaxed.

mod atomics {
    pub(super) use loom::sync::atomic::Ordering;

    #[derive(Debug)]
    pub(crate) struct AtomicU32(loom::sync::atomic::AtomicU32);

    impl AtomicU32 {
        pub(crate) fn new(value: u32) -> Self {
            Self(loom::sync::atomic::AtomicU32::new(value))
        }
        pub(crate) fn load(&self, _: Ordering) -> u32 {
            self.0.load(Ordering::Relaxed)
        }
        pub(crate) fn swap(&self, value: u32, _: Ordering) -> u32 {
            self.0.swap(value, Ordering::Relaxed)
        }
        pub(crate) fn fetch_add(&self, value: u32, _: Ordering) -> u32 {
            self.0.fetch_add(value, Ordering::Relaxed)
        }
    }
}
#[path = "../../src/log/wake.rs"]
pub(crate) mod wake;
pub(crate) use atomics::AtomicU32;
