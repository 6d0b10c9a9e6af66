//! Copies a partition that a Kafka broker wrote into a new log, every batch byte for byte, and compares.
//!
//! The source is opened read-only: no lock, nothing in it is changed. Offsets, leader epochs, producer ids, compression
//! and control batches are kept (`Offsets::Preserve`). Where nothing but the same log is wanted, a copy of the directory
//! does it as well (`docs/LEAVING.md`); this is for when batches are to be looked at, filtered or joined on the way.
//!
//! ```text
//! cargo run --example import_kafka_dir [FROM [TO]]
//! ```
//! FROM is a broker's partition directory (default: one that is kept for tests), TO a directory that is missing or empty
//! (default: a temporary one). Do not copy from a broker that runs: stop it, or take a snapshot of its disk.

use std::{error::Error, path::Path};

use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogReader, LogWriter, Offsets, OpenMode, ReadOptions,
};

/// Ten segments that a Kafka 4.4 broker wrote.
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0/plain/plain-0");
/// How much goes into one append.
const CALL_BYTES: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let from = args.next().unwrap_or_else(|| SAMPLE.into());
    let (from, temp) = (Path::new(&from), tempfile::tempdir()?);
    let to = args.next().map_or_else(|| temp.path().join(from.file_name().unwrap_or_default()), Into::into);
    let batches = import(from, &to)?;
    println!("{batches} batches are the same in {} and {}", from.display(), to.display());
    Ok(())
}

/// Copies all batches of the log in `from` into a new log in `to`, and compares. Returns how many there are.
pub fn import(from: &Path, to: &Path) -> Result<u64, Box<dyn Error>> {
    let source = LogReader::open(from, ReadOptions::default())?;
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    // One sync at the end covers everything.
    config.fsync = FsyncPolicy::Never;
    let mut log = LogWriter::open(to, config)?;
    if !log.reader().segments().iter().all(|segment| segment.size_bytes == 0) {
        return Err(format!("{} already holds records", to.display()).into());
    }

    let options = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
    let mut batches = source.batches(source.start());
    let mut together = Vec::new();
    // The CRC of each batch is checked as it is read, and once more as it is appended.
    while let Some(batch) = batches.next_batch()? {
        if !together.is_empty() && together.len() + batch.as_bytes().len() > CALL_BYTES {
            log.append(&together, options)?;
            together.clear();
        }
        together.extend_from_slice(batch.as_bytes());
    }
    if !together.is_empty() {
        log.append(&together, options)?;
    }
    // Records below the source's start were deleted; where a batch holds some of them, it came along whole.
    log.advance_start(source.start().min(log.end()))?;
    log.close()?;
    compare(&source, &LogReader::open(to, ReadOptions::default())?)
}

fn compare(source: &LogReader, copy: &LogReader) -> Result<u64, Box<dyn Error>> {
    let mut ours = copy.batches(copy.start());
    let mut theirs = source.batches(source.start());
    let mut count = 0;
    loop {
        match (theirs.next_batch()?, ours.next_batch()?) {
            (None, None) => return Ok(count),
            (Some(theirs), Some(ours)) if theirs.as_bytes() == ours.as_bytes() => count += 1,
            (theirs, ours) => return Err(format!("not the same: {theirs:?}, {ours:?}").into()),
        }
    }
}
