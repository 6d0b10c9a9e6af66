//! Many requests on one connection.

use std::io::Write;
use stratalog::{
    protocol::{self, ApiKey, messages::metadata::MetadataRequest, wire::Writer},
    server::Server,
};

use crate::client::{Client, Wanted, batch};

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    let sent = batch(&[b"v"]);
    let mut ids = Vec::new();
    for round in 0..200_i64 {
        ids.push((client.send_produce((9, -1), "t", &sent), ApiKey::Produce, round));
        ids.push((client.send(9, &MetadataRequest::default()), ApiKey::Metadata, round));
        if round % 10 == 0 {
            // Sees what was acknowledged before it.
            ids.push((client.send_fetch(11, &Wanted::new("t", round)), ApiKey::Fetch, round));
        }
    }
    for (id, api, round) in ids {
        match api {
            ApiKey::Produce => assert_eq!(client.produced(id, 9).base_offset, round),
            ApiKey::Fetch => assert_eq!(client.fetched(id, 11).records()[0].0, round),
            _ => drop(client.frame_for(id, ApiKey::Metadata, 9)),
        }
    }
}

#[test]
fn frames_may_come_in_any_pieces() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    let mut writer = Writer::new();
    for id in 0..5 {
        protocol::write_request(&mut writer, id, Some("wire"), 9, &MetadataRequest::default()).unwrap();
    }
    for byte in writer.bytes() {
        client.stream.write_all(&[*byte]).unwrap();
    }
    for id in 0..5 {
        client.frame_for(id, ApiKey::Metadata, 9);
    }
}

#[test]
fn what_came_before_the_end_is_answered() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    let ids = [(); 3].map(|()| client.send_produce((9, -1), "t", &batch(&[b"v"])));
    client.finish();
    for (id, offset) in ids.into_iter().zip(0..) {
        assert_eq!(client.produced(id, 9).base_offset, offset);
    }
    assert!(client.is_closed());
}
