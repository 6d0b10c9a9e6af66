//! The engine through its public API, on real directories.
#![allow(unreachable_pub, reason = "modules of one test binary")]
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "a test that panics has failed, its numbers are small, and settings can only be made by changing the default"
)]

#[path = "../support/mod.rs"]
mod support;

mod append_read;
mod cut;
mod faults;
mod fsync_policy;
mod kafka_dirs;
mod lock;
mod properties;
mod retention;
mod roll;
mod space;
mod taken_over;
