//! The engine through its public API, on real directories.
#![allow(unreachable_pub, reason = "modules of one test binary")]

#[path = "../support/mod.rs"]
mod support;

mod append_read;
mod faults;
mod fsync_policy;
mod kafka_dirs;
mod lock;
mod properties;
mod retention;
mod roll;
mod space;
mod taken_over;
