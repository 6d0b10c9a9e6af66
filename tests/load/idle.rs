//! Thousands of consumers that wait, beside some that are busy.

use std::time::{Duration, Instant};

use crate::{
    connection::{Connection, Wanted, batch},
    is_full,
    served::{Served, raise_descriptor_limit},
};

/// The goal for the server's memory.
const RESIDENT_MIB: u64 = 150;
const PARTITIONS: i32 = 16;

fn wanted(topic: &str, partition: i32, offset: i64) -> Wanted<'_> {
    // Long enough that nobody is answered for the time alone.
    Wanted { topic, partition, offset, max_bytes: 1 << 20, max_wait_ms: 3_600_000, is_committed: false }
}

#[test]
fn thousands_wait_and_the_busy_are_served() {
    let (idle_count, active_count, rounds) = if is_full() { (5000, 100, 200) } else { (500, 50, 10) };
    // Two for each connection of the server, one for each of ours.
    assert!(raise_descriptor_limit() > 2 * idle_count + 1000, "more descriptors are needed");
    let temp = tempfile::tempdir().unwrap();
    let served = Served::start(&temp.path().join("data"), &[]);
    let alone = served.held();
    let mut producer = Connection::new(served.address).unwrap();
    producer.create_topic("idle", PARTITIONS, &[]).unwrap();
    producer.create_topic("busy", 1, &[]).unwrap();

    let mut idle = Vec::new();
    for partition in (0..PARTITIONS).cycle().take(usize::try_from(idle_count).unwrap()) {
        let mut connection = Connection::new(served.address).unwrap();
        let id = connection.send_fetch(&wanted("idle", partition, 0)).unwrap();
        idle.push((connection, id));
    }
    let mut active: Vec<_> = (0..active_count)
        .map(|_| {
            let mut connection = Connection::new(served.address).unwrap();
            let id = connection.send_fetch(&wanted("busy", 0, 0)).unwrap();
            (connection, id)
        })
        .collect();
    let begun = Instant::now();
    for round in 0..rounds {
        let id = producer.send_produce("busy", 0, &batch(None, &[vec![7; 200]])).unwrap();
        assert_eq!(producer.produced(id).unwrap(), (0, round));
        for (connection, id) in &mut active {
            let fetched = connection.fetched(*id).unwrap();
            assert_eq!((fetched.code, fetched.high_watermark), (0, round + 1));
            assert!(!fetched.bytes.is_empty());
            *id = connection.send_fetch(&wanted("busy", 0, round + 1)).unwrap();
        }
    }
    let took = begun.elapsed();
    // All of them are at rest: what is held now is held for them.
    let held = loop {
        let held = served.held();
        if held.threads > idle_count + active_count {
            break held;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    println!(
        "{idle_count} idle and {active_count} active consumers: {} MiB resident ({} MiB without), {} threads, {} descriptors; {rounds} records to each active one in {took:.1?}",
        held.resident_kib >> 10,
        alone.resident_kib >> 10,
        held.threads,
        held.descriptors
    );
    assert!(held.resident_kib >> 10 <= RESIDENT_MIB, "{held:?}");

    // None was dropped, and one record wakes all who wait for it.
    for partition in 0..PARTITIONS {
        let id = producer.send_produce("idle", partition, &batch(None, &[b"v".to_vec()])).unwrap();
        assert_eq!(producer.produced(id).unwrap(), (0, 0));
    }
    for (connection, id) in &mut idle {
        let fetched = connection.fetched(*id).unwrap();
        assert_eq!((fetched.code, fetched.high_watermark), (0, 1));
    }
    drop((idle, active));
    while served.held().threads > alone.threads + 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(served.stop(), Some(0));
}
