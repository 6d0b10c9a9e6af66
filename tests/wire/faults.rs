//! Faults that other servers of this protocol had, each as a test with its number: `docs/TESTING.md` has the table.

mod answers;
mod fetch;
mod handshake;
mod sendfile;

use std::path::Path;

use stratalog::{
    protocol::{
        Request,
        messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic},
    },
    server::{Layers, Server},
};

use crate::client::{Client, decode};

/// A server with settings of its own, on any free port of these addresses.
fn server_with(dir: &Path, host: &str, settings: &[&str]) -> Server {
    let mut layers = Layers::new();
    layers.flag("--dir", "log.dirs", dir.to_str().unwrap());
    layers.flag("--listen", "listeners", &format!("PLAINTEXT://{host}:0"));
    for setting in settings {
        layers.set_override(setting);
    }
    Server::bind(layers.resolve().unwrap()).unwrap()
}

/// Asks and waits; the body of the answer.
fn ask<'a, R: Request<'a>>(client: &mut Client, version: i16, request: &R) -> Vec<u8> {
    let id = client.send(version, request);
    client.frame_for(id, R::API, version)
}

/// Partitions of topics, each with an offset.
fn topics<'a>(wanted: &[(&'a str, &[(i32, i64)])]) -> Vec<FetchTopic<'a>> {
    let partition = |(partition, fetch_offset): &(i32, i64)| FetchPartition {
        partition: *partition,
        fetch_offset: *fetch_offset,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = |(topic, partitions): &(&'a str, &[(i32, i64)])| FetchTopic {
        topic,
        partitions: partitions.iter().map(partition).collect(),
        ..Default::default()
    };
    wanted.iter().map(topic).collect()
}

/// Of each partition: code and number of bytes.
fn fetch(client: &mut Client, request: &FetchRequest<'_>) -> Vec<(i16, usize)> {
    let body = ask(client, 11, request);
    let told: FetchResponse<'_> = decode(&body, 11);
    assert_eq!(told.error_code, 0);
    let partitions = told.responses.iter().flat_map(|topic| &topic.partitions);
    let bytes = partitions.map(|data| {
        (data.error_code, data.records.and_then(|records| records.bytes()).unwrap_or_default().len())
    });
    bytes.collect()
}
