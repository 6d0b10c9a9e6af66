//! The engine through its public API, on real directories.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    unreachable_pub,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "a test that panics has failed, its numbers are small, and its modules are one binary"
)]

#[path = "../support/mod.rs"]
mod support;

mod append_read;
mod attach;
mod borders;
mod cursor;
mod cut;
mod epochs;
mod faults;
mod fsync_policy;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod kafka_dirs;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod legacy;
mod lock;
mod open_cut;
mod producers;
mod properties;
mod retention;
mod roll;
mod shared_writer;
mod space;
mod store;
mod taken_over;
mod transactions;
