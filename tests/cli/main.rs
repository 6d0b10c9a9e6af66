//! Runs the built `logctl`: what a shell sees of it.
#![expect(clippy::unwrap_used, reason = "a test ends where its own calls fail")]

mod append;
mod change;
mod copy;
mod cursors;
mod diff;
mod export;
mod follow;
mod kafka;
mod list;
mod lossless;
mod pipes;
mod read;
mod repair;
mod run;
mod signals;
