//! Models of the lock-free pieces: their real source files, with loom's atomics in the place of the real ones, run through
//! every order of steps that the memory model allows.
//!
//! RUSTFLAGS='--cfg loom' cargo test --no-default-features --test loom --target-dir target/loom
#![cfg(loom)]
#![expect(unreachable_pub, reason = "its modules are one binary")]

mod publish;
mod wake;

/// Runs a model that must fail, and says how it did.
fn failure(model: impl Fn() + Send + Sync + 'static) -> String {
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| loom::model(model)));
    let why = failed.expect_err("the model holds without what it is there for");
    let text = why.downcast_ref::<String>().cloned();
    text.or_else(|| why.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
