//! The source file where the writer looks at the flag before it exchanges it, to spare the exchange.

mod atomics {
    pub(super) use loom::sync::atomic::Ordering;

    #[derive(Debug)]
    pub(crate) struct AtomicU32(loom::sync::atomic::AtomicU32);

    impl AtomicU32 {
        pub(crate) fn new(value: u32) -> Self {
            Self(loom::sync::atomic::AtomicU32::new(value))
        }
        pub(crate) fn load(&self, order: Ordering) -> u32 {
            self.0.load(order)
        }
        pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
            if value == 0 && self.0.load(Ordering::Acquire) == 0 { 0 } else { self.0.swap(value, order) }
        }
        pub(crate) fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
            self.0.fetch_add(value, order)
        }
    }
}
#[path = "../../src/log/wake.rs"]
pub(crate) mod wake;
pub(crate) use atomics::AtomicU32;
