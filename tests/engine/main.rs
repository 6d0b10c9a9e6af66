//! The engine through its public API, on real directories.

#[path = "../support/mod.rs"]
mod support;

mod append_read;
