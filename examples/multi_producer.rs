//! Many threads append to one log, and each of their records is durable when its call returns: one sync does for many.
//!
//! ```text
//! cargo run --example multi_producer [DIRECTORY]
//! ```
//! Eight threads place orders, all of them in one log; a ninth asks for maintenance, as a program does about once a
//! second. Without a directory it works in a temporary one.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use stratalog::{
    AppendOptions, Durability, LogConfig, OpenMode, Result, Retention, SharedWriter, record::Record,
};

const SHOPS: usize = 8;
const ORDERS: usize = 50;

/// What was appended, and how it is found again.
pub struct Summary {
    /// How many records the log holds now.
    pub records: u64,
    /// The offsets that each shop was told, in the order of its calls.
    pub offsets: Vec<Vec<i64>>,
}

/// Appends from many threads; every record is durable when this returns.
pub fn run(dir: &Path) -> Result<Summary> {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    // A shop that is faster than the disk waits, rather than filling the memory.
    config.max_queued_bytes = 1 << 20;
    config.retention = Retention { bytes: Some(1 << 30), age: None };
    let log = SharedWriter::open(dir, config)?;
    let is_over = AtomicBool::new(false);
    let offsets = thread::scope(|scope| {
        let maintenance = scope.spawn(|| -> Result<()> {
            while !is_over.load(Ordering::Relaxed) {
                log.maintain()?;
                thread::park_timeout(Duration::from_secs(1));
            }
            Ok(())
        });
        // Each thread has a clone; all of them are the same log.
        let shops: Vec<_> = (0..SHOPS)
            .map(|shop| {
                let log = log.clone();
                scope.spawn(move || place_orders(&log, shop))
            })
            .collect();
        let offsets: Result<Vec<_>> = shops.into_iter().map(|shop| shop.join().expect("a shop")).collect();
        is_over.store(true, Ordering::Relaxed);
        maintenance.thread().unpark();
        maintenance.join().expect("maintenance")?;
        offsets
    })?;
    let records = log.end().since(log.start());
    log.close()?;
    Ok(Summary { records, offsets })
}

fn place_orders(log: &SharedWriter, shop: usize) -> Result<Vec<i64>> {
    let key = format!("shop-{shop}");
    let mut offsets = Vec::new();
    for order in 0..ORDERS {
        let value = format!("order {order} of shop {shop}");
        let record = Record::new().key(key.as_bytes()).value(value.as_bytes());
        let appended = log.append_records(&[record], AppendOptions::default())?;
        assert_eq!(appended.durability, Durability::Durable);
        offsets.push(appended.base_offset.value());
    }
    Ok(offsets)
}

fn main() -> Result<()> {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let dir = std::env::args_os().nth(1).map_or_else(|| temp.path().join("orders-0"), Into::into);
    let summary = run(&dir)?;
    println!("{} records in {}", summary.records, dir.display());
    for (shop, offsets) in summary.offsets.iter().enumerate() {
        println!("shop {shop}: {} orders, the last at offset {:?}", offsets.len(), offsets.last());
    }
    Ok(())
}
