//! Clients that come and go, politely and not: nothing is left of them.

use std::{
    io::{Read, Write},
    net::Shutdown,
    time::{Duration, Instant},
};

use rustix::net::sockopt::set_socket_linger;

use crate::{
    connection::{Connection, PATIENCE, Wanted, batch},
    is_full,
    served::{Held, Served},
};

/// How much more memory there may be at the end than after the first part of the clients.
const GROWTH_KIB: u64 = 8 << 10;
/// Of what is not read by those who leave in the middle of a response.
const LARGE: usize = 900_000;

/// Closing now sends RST, as a process that is killed with unread input does.
fn abort(connection: Connection) {
    set_socket_linger(&connection.stream, Some(Duration::ZERO)).unwrap();
    drop(connection);
}

fn wanted(topic: &str, max_wait_ms: i32) -> Wanted<'_> {
    Wanted { topic, partition: 0, offset: 0, max_bytes: 8 << 20, max_wait_ms, is_committed: false }
}

/// One client, of the kind that this round has.
fn come_and_go(served: &Served, round: usize) -> std::io::Result<()> {
    let mut client = Connection::new(served.address)?;
    match round % 10 {
        // Says nothing.
        0 => drop(client),
        1 => abort(client),
        // Half a length, and half a frame that announces the largest.
        2 => client.stream.write_all(&[0, 0])?,
        3 => {
            client.stream.write_all(&[5, 0, 0, 0, 0, 1, 0, 11])?;
            abort(client);
        }
        // Has its answer, and is done with speaking: the server hangs up.
        4 => {
            client.start("small", 0)?;
            client.stream.shutdown(Shutdown::Write)?;
            assert_eq!(client.stream.read(&mut [0])?, 0);
        }
        // Waits for records that do not come.
        5 => drop(client.send_fetch(&wanted("empty", 3_600_000))?),
        6 => {
            client.send_fetch(&wanted("empty", 3_600_000))?;
            abort(client);
        }
        // Leaves in the middle of a response that is larger than the buffers between.
        7 => {
            client.send_fetch(&wanted("large", 0))?;
            client.stream.read_exact(&mut [0; 1000])?;
            abort(client);
        }
        // Does not wait for the acknowledgement.
        8 => drop(client.send_produce("small", 0, &batch(None, &[b"v".to_vec()]))?),
        _ => {
            client.send_produce("small", 0, &batch(None, &[b"v".to_vec()]))?;
            abort(client);
        }
    }
    Ok(())
}

/// What is held when all of them are gone. Only `steady` is left.
fn at_rest(served: &Served, threads: u64) -> Held {
    let begun = Instant::now();
    loop {
        let held = served.held();
        if held.threads <= threads {
            return held;
        }
        assert!(begun.elapsed() < PATIENCE, "connections are left behind: {held:?}, of {threads} threads");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn clients_that_come_and_go_leave_nothing() {
    let (count, warm) = if is_full() { (10_000, 2000) } else { (1000, 300) };
    let temp = tempfile::tempdir().unwrap();
    let served = Served::start(&temp.path().join("data"), &[]);
    let mut steady = Connection::new(served.address).unwrap();
    for topic in ["small", "large", "empty"] {
        steady.create_topic(topic, 1, &[]).unwrap();
    }
    for _ in 0..8 {
        let id = steady.send_produce("large", 0, &batch(None, &[vec![7; LARGE]])).unwrap();
        assert_eq!(steady.produced(id).unwrap().0, 0);
    }
    let id = steady.send_produce("small", 0, &batch(None, &[b"v".to_vec()])).unwrap();
    assert_eq!(steady.produced(id).unwrap(), (0, 0));
    let threads = served.held().threads;
    let mut rounds = 0..count;
    for round in rounds.by_ref().take(warm) {
        come_and_go(&served, round).unwrap();
    }
    let before = at_rest(&served, threads);
    for round in rounds {
        come_and_go(&served, round).unwrap();
    }
    let after = at_rest(&served, threads);
    println!("after {warm} clients {before:?}, after {count} {after:?}");
    assert_eq!(after.descriptors, before.descriptors);
    assert!(after.resident_kib <= before.resident_kib + GROWTH_KIB, "{before:?} {after:?}");

    // Nobody was harmed.
    let id = steady.send_produce("empty", 0, &batch(None, &[b"v".to_vec()])).unwrap();
    assert_eq!(steady.produced(id).unwrap(), (0, 0));
    let all = steady.fetch(&wanted("large", 0)).unwrap();
    assert_eq!((all.code, all.high_watermark), (0, 8));
    assert!(all.bytes.len() > 8 * LARGE);
    assert_eq!(served.stop(), Some(0));
}
