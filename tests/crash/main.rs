//! Crash states by replay: what the engine does to the disk is recorded, and at every prefix of the recorded calls the
//! disk is rebuilt with unsynced effects dropped, kept and torn. Each such disk must open, hold what was acknowledged,
//! hold nothing else, and go on. And every call is made to fail once.
//!
//! A failing state prints its workload, prefix and survival, and the directory that keeps it as it was before the open.
//! `STRATALOG_CRASH_STATE="appends-commit 117 chance:3:50:ordered"` checks that one state alone.

#![expect(
    clippy::unwrap_used,
    reason = "all of it is a test; clippy knows only the functions that are marked as one"
)]

mod cursor;
mod faults;
mod found;
mod model;
mod repair;
mod run;
mod states;
mod stores;
mod told;
mod workloads;
