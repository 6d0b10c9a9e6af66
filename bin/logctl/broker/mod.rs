//! A client of Kafka's brokers, ours among them: what `-b` stands for.
//!
//! Lives here: which brokers are meant (`place.rs`), one connection and the versions that both ends speak
//! (`connection.rs`), how long to wait (`patience.rs`), the cluster with its leaders (`client.rs`), what error codes mean
//! for a user (`error_code.rs`), the offsets and records of partitions (`partition.rs`, `fetch.rs`, `aborted.rs`), batches
//! sent once (`produce.rs`), topics and their settings (`admin.rs`).
//! Not here: how bytes become messages (the library's `protocol`); what is printed (the verbs).
//! Holds always: no thread but for the time of a connect; every wait has an end, and ends at a signal or `--timeout`;
//! what a broker says is bounded before it is kept; a batch of a numbered producer is in the log once, however often it
//! was sent.

mod aborted;
pub(crate) mod admin;
mod client;
mod connection;
mod error_code;
mod fetch;
mod partition;
mod patience;
mod place;
mod produce;

pub(crate) use client::{Client, EARLIEST, LATEST, NEWEST, TopicTold, asked};
pub(crate) use fetch::{Fetched, Wanted};
pub(crate) use partition::{Partition, Walk, told_at};
pub(crate) use patience::Patience;
pub(crate) use place::{BrokerArgs, Place, check_topic, may_be_broker};
pub(crate) use produce::{Acks, ProducerId};

/// What the client calls itself.
const NAME: &str = "logctl";
