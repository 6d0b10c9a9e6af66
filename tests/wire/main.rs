//! The server over real sockets, asked in raw frames.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod admin;
mod apis;
mod client;
mod connections;
mod faults;
mod fetch;
mod groups;
#[cfg(feature = "cli")]
mod kills;
mod order;
mod probes;
mod produce;
#[cfg(feature = "cli")]
mod serve;
mod settings;
