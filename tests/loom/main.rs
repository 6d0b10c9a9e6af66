//! Every interleaving of the small concurrent parts, tried by a model checker.
//!
//! Each module of `src` named here is the real file: what it takes from `crate::sys::sync` is the checker's own here, so
//! that every lock, wait and atomic access is a point where another thread may go on. A deadlock, a lost wake-up or a
//! failed assertion in any of them fails the test. All models: `cargo test --test loom`.

#![expect(clippy::duplicate_mod, reason = "the same file with other atomics")]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "sync.rs"]
mod checked;

/// The part of the crate that the included files see.
mod sys {
    pub(crate) use super::checked as sync;
}

#[expect(dead_code, reason = "the models use part of it")]
#[path = "../../src/log/ends.rs"]
mod ends;
#[path = "../../src/log/group.rs"]
mod group;
#[path = "../../src/segment/published.rs"]
mod published;
#[expect(dead_code, reason = "the models use part of it")]
#[path = "../../src/log/quota.rs"]
mod quota;

// The words that processes share, with loom's atomics and with some that are too weak.
mod looking;
mod real;
mod relaxed;
mod unfenced;

mod group_commit;
mod order_of_ends;
mod publish;
mod wake;

/// Set where a model that must fail is to be run.
const FAIL: &str = "STRATALOG_TEST_MODEL_FAILS";

/// False where a model that must fail is only passed by.
fn is_to_fail() -> bool {
    std::env::var_os(FAIL).is_some()
}

/// Runs a test whose model must fail, and returns what it says. In a process of its own: after a deadlock the checker
/// cannot take down what the model holds, and aborts.
fn failure_of(test: &str) -> String {
    let this = std::env::current_exe().expect("this program's path");
    let mut command = std::process::Command::new(this);
    let run =
        command.args(["--exact", test, "--nocapture"]).env(FAIL, "1").env("RUST_BACKTRACE", "0").output();
    let run = run.expect("this program");
    assert!(!run.status.success(), "{test} holds without what it is there for");
    String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned()
}
