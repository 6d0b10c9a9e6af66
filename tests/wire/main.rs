//! The server over real sockets, asked in raw frames.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod admin;
mod apis;
mod client;
mod connections;
mod faults;
mod fetch;
#[cfg(feature = "cli")]
mod kills;
mod order;
mod produce;
#[cfg(feature = "cli")]
mod serve;
mod settings;
