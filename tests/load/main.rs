//! The server under load, as a process of its own: producers and consumers while it is killed over and over, thousands of
//! clients that wait, clients that come and go.
//!
//! Plain `cargo test` runs a short form of each; `STRATALOG_LEVEL=full` the long one, best in a release build.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod churn;
mod connection;
mod consumer;
mod history;
mod idle;
mod kills;
mod limits;
mod producer;
mod served;

/// True where the long forms are asked for.
fn is_full() -> bool {
    std::env::var("STRATALOG_LEVEL").is_ok_and(|level| level == "full")
}
