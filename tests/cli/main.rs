//! Runs the built `logctl`: what a shell sees of it.
#![expect(clippy::unwrap_used, reason = "a test ends where its own calls fail")]

mod append;
mod brokers;
mod change;
mod completions;
mod copy;
mod cursors;
mod diff;
mod epochs;
mod examples;
mod exit_codes;
mod export;
mod follow;
mod fresh_eyes;
mod full_disk;
mod kafka;
mod list;
mod lossless;
mod manual;
mod pipes;
mod read;
mod records;
mod repair;
mod run;
mod settings;
mod signals;
#[path = "../support/small_disk.rs"]
mod small_disk;
mod streams;
mod tools;
mod unfinished_copy;
mod verify;
