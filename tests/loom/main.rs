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

#[path = "../../src/log/ends.rs"]
mod ends;
#[path = "../../src/log/group.rs"]
mod group;
#[path = "../../src/segment/published.rs"]
mod published;
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

/// Runs a model that must fail without a deadlock, and says how it did.
fn failure(model: impl Fn() + Send + Sync + 'static) -> String {
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| loom::model(model)));
    let why = failed.expect_err("the model holds without what it is there for");
    let text = why.downcast_ref::<String>().cloned();
    text.or_else(|| why.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
