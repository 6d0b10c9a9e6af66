//! Every interleaving of the small concurrent parts, tried by a model checker.
//!
//! Each module of `src` named here is the real file: what it takes from `crate::sys::sync` is the checker's own here, so
//! that every lock, wait and atomic access is a point where another thread may go on. A deadlock, a lost wake-up or a
//! failed assertion in any of them fails the test. All models: `cargo test --test loom`.

#[path = "sync.rs"]
mod checked;

/// The part of the crate that the included files see.
mod sys {
    pub(crate) use super::checked as sync;
}

#[path = "../../src/log/group.rs"]
mod group;
#[path = "../../src/log/quota.rs"]
mod quota;

mod group_commit;
