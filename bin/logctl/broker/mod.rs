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

/// The partitions that brokers tell of within this time, for who is writing a command line: topic and number.
pub(crate) fn names(servers: &str, limit: std::time::Duration) -> Vec<(String, u32)> {
    let Ok(servers) = crate::config::servers(servers) else { return Vec::new() };
    let stop = crate::stop::Stop::watch(Some(limit));
    let told = Client::new(&servers, NAME, Patience::new(&stop)).look(None).unwrap_or_default();
    let of = |topic: TopicTold| {
        let numbers =
            topic.partitions.into_iter().filter_map(|told| u32::try_from(told.partition_index).ok());
        numbers.map(|number| (topic.name.clone(), number)).collect::<Vec<_>>()
    };
    told.into_iter().filter(|topic| !topic.is_internal).flat_map(of).collect()
}

/// What the client calls itself.
const NAME: &str = "logctl";
