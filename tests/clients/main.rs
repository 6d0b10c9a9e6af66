//! Kafka's clients, as they are published, against `logctl serve`: what one produces, every other reads the same.
//!
//! Lives here: the programs that drive each client, the script `clients` that installs and runs them, and the test that
//! sets them at each other. Not here: Kafka's own command-line tools (`tests/kafka`); the protocol in raw frames
//! (`tests/wire`).
//!
//! Holds always: unless `STRATALOG_CLIENTS` names clients nothing is installed and the test passes over with a word on
//! standard error. `STRATALOG_CLIENTS=require` wants all that the level has (`rdkafka`, compiled for minutes, only where
//! `STRATALOG_LEVEL=full`), `found` those that can be installed here, and `kcat,java` these. Every wait is bounded.
#![expect(clippy::unwrap_used, reason = "a test ends where its own calls fail")]

mod client;
mod matrix;
mod record;
mod served;
