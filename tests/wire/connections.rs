//! What connections may do to the server: nothing.

use std::{fs, io::Write, net::TcpStream, thread, time::Duration};

use stratalog::server::{Layers, Server};

use crate::client::{Client, Wanted, batch};

#[test]
fn bytes_that_are_no_request_close_their_own_connection() {
    let server = Server::ephemeral().unwrap();
    let mut steady = Client::new(server.address());
    steady.topic("t");
    let garbage: [&[u8]; 8] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3],
        &[0xFF; 64],
        &[0x7F, 0xFF, 0xFF, 0xFF, 0, 0],
        &[0, 0, 0, 0],
        &[0, 0, 0, 3, 0, 3, 0],
        // A request for metadata whose array is longer than the frame.
        &[0, 0, 0, 14, 0, 3, 0, 5, 0, 0, 0, 1, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF],
        &[0, 0, 0, 10, 0x12, 0x34, 0, 0, 0, 0, 0, 1, 0xFF, 0xFF],
    ];
    for bytes in garbage {
        let mut client = Client::new(server.address());
        client.stream.write_all(bytes).unwrap();
        assert!(client.is_closed(), "{bytes:?}");
    }
    assert_eq!(steady.produce("t", &batch(&[b"v"])).base_offset, 0);
}

#[test]
fn half_frames_hold_nobody_up_and_end_with_their_connection() {
    let server = Server::ephemeral().unwrap();
    let mut halves: Vec<_> = (0..20).map(|_| Client::new(server.address())).collect();
    for (count, half) in (1..).zip(&mut halves) {
        let frame = [&1000_u32.to_be_bytes()[..], &[0; 50]].concat();
        half.stream.write_all(&frame[..count]).unwrap();
    }
    Client::new(server.address()).topic("t");
    for half in &mut halves {
        half.finish();
        assert!(half.is_closed());
    }
}

#[test]
fn a_slow_reader_holds_nobody_up() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    for _ in 0..8 {
        assert_eq!(client.produce("t", &batch(&[&vec![1; 900_000]])).code, 0);
    }
    // More than the buffers of a socket hold, and nobody reads it.
    let mut slow = Client::new(server.address());
    let wanted = Wanted { max_bytes: 40 << 20, ..Wanted::new("t", 0) };
    let ids = [(); 4].map(|()| slow.send_fetch(11, &wanted));
    assert_eq!(client.produce("t", &batch(&[b"v"])).base_offset, 8);
    assert_eq!(client.fetch(&Wanted::new("t", 8)).records().len(), 1);
    for id in ids {
        assert!(slow.fetched(id, 11).records().len() >= 8);
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_thousand_connections_leave_nothing_behind() {
    let server = Server::ephemeral().unwrap();
    let mut steady = Client::new(server.address());
    steady.topic("t");
    for round in 0..1000 {
        let mut client = Client::new(server.address());
        match round % 4 {
            0 => {}
            1 => client.stream.write_all(&[0, 0]).unwrap(),
            2 => drop(client.send_fetch(11, &Wanted { max_wait_ms: 600_000, ..Wanted::new("t", 0) })),
            _ => assert_eq!(client.produce("t", &batch(&[b"v"])).code, 0),
        }
    }
    while server.connection_count() > 1 {
        thread::sleep(Duration::from_millis(1));
    }
    // Other tests of this process open descriptors as well: not many hundreds of them.
    assert!(descriptors() < 500, "{}", descriptors());
}

#[test]
fn limits_on_connections_and_requests_hold() {
    let temp = tempfile::tempdir().unwrap();
    let mut layers = Layers::new();
    layers.flag("--dir", "log.dirs", temp.path().to_str().unwrap());
    layers.flag("--listen", "listeners", "PLAINTEXT://127.0.0.1:0");
    for setting in
        ["max.connections.per.ip=2", "socket.request.max.bytes=10000", "connections.max.idle.ms=300"]
    {
        layers.set_override(setting);
    }
    let server = Server::bind(layers.resolve().unwrap()).unwrap();
    let mut first = Client::new(server.address());
    let mut second = Client::new(server.address());
    first.topic("t");
    second.topic("t");
    assert!(Client::new(server.address()).is_closed());
    second.send_produce((9, 1), "t", &batch(&[&vec![0; 20_000]]));
    assert!(second.is_closed());
    // Idle for too long.
    assert!(first.is_closed());
    while server.connection_count() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    Client::new(server.address()).topic("t");
}

#[test]
fn a_directory_and_a_port_have_one_server() {
    let temp = tempfile::tempdir().unwrap();
    let settings = || stratalog::server::Settings::for_dir(temp.path()).unwrap();
    let server = Server::bind(settings()).unwrap();
    assert!(matches!(Server::bind(settings()), Err(stratalog::Error::Locked { .. })));
    let address = server.address();
    let mut client = Client::new(address);
    client.topic("t");
    assert_eq!(client.produce("t", &batch(&[b"v"])).code, 0);
    assert!(server.shutdown().unwrap(), "clean");
    assert!(TcpStream::connect(address).is_err());
    let again = Server::bind(settings()).unwrap();
    let mut client = Client::new(again.address());
    assert_eq!(client.fetch(&Wanted::new("t", 0)).records(), [(0, b"v".to_vec())]);
}
