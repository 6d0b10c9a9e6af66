//! The server: a data directory for Kafka's clients.
//!
//! Lives here: settings, topics and what they were told, and what the answers to clients are made of.
//! Not here: the bytes of requests and answers (protocol), the logs (the engine, by its public names only), printing and the
//! environment (`logctl`).
//! Holds always: whatever this room can do an embedder can do too; nothing is acknowledged before it is what the topic's
//! settings say it must be.
#![expect(dead_code, unused_imports, reason = "connections, which call all this, are not built yet")]

mod committed_offsets;
mod error_code;
mod housekeeping;
mod partition_offsets;
mod producer_ids;
mod settings;
mod topics;
mod value;

pub use settings::{Layers, Listener, Origin, Settings, SettingsError};
