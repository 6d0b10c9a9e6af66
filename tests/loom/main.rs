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

// The words that processes share, with loom's atomics and with some that are too weak.
mod looking;
mod real;
mod relaxed;
mod unfenced;

mod group_commit;
mod publish;
mod wake;

/// Runs a model that must fail, and says how it did.
fn failure(model: impl Fn() + Send + Sync + 'static) -> String {
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| loom::model(model)));
    let why = failed.expect_err("the model holds without what it is there for");
    let text = why.downcast_ref::<String>().cloned();
    text.or_else(|| why.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
