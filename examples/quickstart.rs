//! Appends records, reads them back by offset and by time, and follows the log from another thread.
//!
//! ```text
//! cargo run --example quickstart [DIRECTORY]
//! ```
//! Without a directory it works in a temporary one.

use std::{
    error::Error,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use stratalog::{
    AppendOptions, Durability, FsyncPolicy, LogConfig, LogReader, LogWriter, Offset, OpenMode, Wait,
    record::{Header, Record},
};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(dir) = std::env::args_os().nth(1) {
        return run(Path::new(&dir));
    }
    let temp = tempfile::tempdir()?;
    run(&temp.path().join("greetings-0"))
}

/// The whole example, on the log in `dir`, which is created where it is missing.
pub fn run(dir: &Path) -> Result<(), Box<dyn Error>> {
    // The defaults are Kafka's, but for two: an append returns once it is durable, and nothing is ever deleted.
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.fsync = FsyncPolicy::Commit;
    let mut log = LogWriter::open(dir, config)?;
    println!("{}: offsets {} to {}", dir.display(), log.start(), log.end());

    // Any number of records in one call: all of them become visible, or none, and one sync covers them.
    let records = [
        Record::new().key(b"en").value(b"hello"),
        Record::new().key(b"fr").value(b"bonjour").headers(&[Header { key: "tone", value: Some(b"warm") }]),
        Record::tombstone(b"en"),
    ];
    let appended = log.append_records(&records, AppendOptions::default())?;
    assert_eq!(appended.durability, Durability::Durable);
    println!("appended {} to {}, durable", appended.base_offset, appended.last_offset);

    // A reader is a cheap clone that never stands in the writer's way. An iterator for ease ...
    let reader = log.reader();
    for record in reader.owned_records(appended.base_offset) {
        let record = record?;
        println!("{} {:?} = {:?}", record.offset, record.key, record.value);
    }
    // ... a walk that lends each record from one reused buffer, for speed ...
    let mut walk = reader.records(reader.start());
    let mut bytes = 0;
    while let Some(record) = walk.next_record()? {
        bytes += record.value().map_or(0, <[u8]>::len);
    }
    println!("{bytes} bytes of values in all");
    // ... one record by its offset, or the first one of a time.
    let last = reader.record(appended.last_offset)?.ok_or("the record is there")?;
    assert_eq!((last.key.as_deref(), last.value), (Some(&b"en"[..]), None));
    let found = reader.offset_for_timestamp(last.timestamp)?;
    println!("first record at or after {} ms: {found:?}", last.timestamp);

    // Another thread sleeps until there is more. Another process does the same with `LogReader::open`.
    let end = log.end();
    let follower = thread::spawn(move || follow(&reader, end));
    log.append_records(&[Record::value_only(b"and goodbye")], AppendOptions::default())?;
    let heard = follower.join().map_err(|_| "the follower panicked")??;
    println!("the follower read {heard:?}");

    // After a close the next open believes the files without reading them.
    log.close()?;
    Ok(())
}

fn follow(reader: &LogReader, from: Offset) -> stratalog::Result<String> {
    let deadline = Instant::now() + Duration::from_secs(30);
    if reader.wait_past(from, deadline) != Wait::Advanced {
        return Ok("nothing".to_owned());
    }
    let value = reader.record(from)?.and_then(|record| record.value).unwrap_or_default();
    Ok(String::from_utf8_lossy(&value).into_owned())
}
