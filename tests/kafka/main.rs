//! Kafka both ways: what we write before Kafka's own tools and broker, what a broker wrote before us, and the locks that
//! both take.
//!
//! Lives here: tests that run the built `logctl` (or the one that `STRATALOG_LOGCTL` names) beside a real Apache Kafka,
//! which the script `kafka` in this directory brings and runs on loopback. Not here: directories that a broker wrote
//! earlier; they are fixtures.
//!
//! Holds always: without a JDK or Maven the tests pass over with a word on standard error, and so they do in a debug
//! build, for they are about the release binary (`cargo test --release --test kafka`). `STRATALOG_KAFKA=require` turns
//! either into a failure or a run. Every wait is bounded, and a broker ends with the value that started it.
#![expect(clippy::unwrap_used, reason = "a test ends where its own calls fail")]

mod command;
mod corpus;
mod data_dir;
mod dump_log;
mod hand_over;
mod in_place;
mod locks;
mod logctl_b;
mod node;
mod ours;
mod record;
mod served;
mod tools;
mod wire;

/// The codecs, in the order of their numbers. Where a topic has one partition for each, this is their order too.
pub(crate) const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
