//! One writer that is killed every few seconds, and eight readers of other processes that follow it.
//!
//! No reader may see a record that is torn, out of order, invented or left out: what it reads must go on where it was,
//! unless it was told that the log was cut or that retention overtook it, and every offset must hold the same for all
//! readers and for who reads the log in the end. Those that follow the durable end must never be told of a cut, never
//! see that end go back, and never see it pass what the writer had at least begun to make durable.
//!
//! `STRATALOG_SECONDS`: how long, 12 by default.
#![expect(
    clippy::unwrap_used,
    reason = "all of it is a test; clippy knows only the functions that are marked as one"
)]

mod reader;
mod record;
mod writer;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use stratalog::{LogReader, ReadOptions};

/// Processes with readers, and readers in each.
const READER_PROCESSES: u64 = 4;

const ROLE: &str = "STRATALOG_ATTACH_ROLE";
const DIR: &str = "STRATALOG_ATTACH_DIR";
const NUMBER: &str = "STRATALOG_ATTACH_NUMBER";

fn main() {
    let place = || PathBuf::from(std::env::var_os(DIR).unwrap());
    let number = || std::env::var(NUMBER).unwrap().parse().unwrap();
    match std::env::var(ROLE).as_deref() {
        Ok("writer") => return writer::run(&place(), number()),
        Ok("reader") => return reader::run(&place(), number()),
        _ => {}
    }
    // What `cargo test` passes on to every binary.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    let seconds = std::env::var("STRATALOG_SECONDS").map_or(12, |text| text.parse().unwrap());
    run(Duration::from_secs(seconds));
}

fn start(role: &str, place: &Path, number: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .env(ROLE, role)
        .env(DIR, place)
        .env(NUMBER, number.to_string())
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kept for who wants to see why it failed.
fn keep(place: &Path) -> PathBuf {
    let kept = std::env::temp_dir().join(format!("stratalog-attach-failed-{}", std::process::id()));
    let _ = Command::new("cp").arg("-a").arg(place).arg(&kept).status();
    kept
}

fn run(length: Duration) {
    let temp = tempfile::tempdir().unwrap();
    let place = temp.path();
    let mut dice = record::Dice::new(u64::from(std::process::id()));
    let mut runs = 1;
    let mut writer = start("writer", place, runs);
    while !place.join("t-0").join(".stratalog-control").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut readers: Vec<_> = (0..READER_PROCESSES).map(|number| start("reader", place, number)).collect();
    let until = Instant::now() + length;
    let mut fault = None;
    while Instant::now() < until && fault.is_none() {
        // Every few seconds, and often enough in a short run.
        std::thread::sleep(Duration::from_millis(200 + dice.below(2500)).min(length / 6));
        fault = fault_of(&mut readers);
        if let Some(status) = writer.try_wait().unwrap() {
            fault = Some(format!("the writer ended by itself: {status}"));
            break;
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        if dice.below(3) == 0 {
            // Long enough for readers to find that nobody writes.
            std::thread::sleep(Duration::from_millis(dice.below(600)));
        }
        runs += 1;
        writer = start("writer", place, runs);
    }
    if fault.is_none() {
        std::fs::write(place.join("stop"), "").unwrap();
        let status = writer.wait().unwrap();
        if !status.success() {
            fault = Some(format!("the last writer: {status}"));
        }
    } else {
        let _ = writer.kill();
        let _ = writer.wait();
    }
    // What a reader was told of when the writer had ended, it has to come to.
    let patience = Instant::now() + Duration::from_secs(120);
    for reader in &mut readers {
        let mut status = None;
        while fault.is_none() && status.is_none() && Instant::now() < patience {
            status = reader.try_wait().unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        match status {
            Some(status) if status.success() => {}
            Some(status) => fault = fault.or(Some(format!("a reader: {status}"))),
            None => {
                fault = fault.or(Some("a reader never came to the end".to_owned()));
                let _ = reader.kill();
                let _ = reader.wait();
            }
        }
    }
    let agreed = fault.map_or_else(|| agree(place), Err);
    match agreed {
        Ok(records) => println!("attach: ok: {runs} writers, {records} records, 8 readers that agree"),
        Err(fault) => panic!("attach: {fault}; kept in {}", keep(place).display()),
    }
}

/// A reader that has ended already found a fault.
fn fault_of(readers: &mut [Child]) -> Option<String> {
    readers.iter_mut().find_map(|reader| {
        let status = reader.try_wait().unwrap()?;
        Some(format!("a reader ended early: {status}"))
    })
}

/// All readers, and who reads the log now, have seen the same at every offset.
fn agree(place: &Path) -> Result<usize, String> {
    let mut agreed: BTreeMap<usize, (u64, String)> = BTreeMap::new();
    let mut note = |offset: usize, hash: u64, who: String| match agreed.get(&offset) {
        Some((other, whose)) if *other != hash => Err(format!("{who} and {whose} differ at {offset}")),
        _ => {
            agreed.insert(offset, (hash, who));
            Ok(())
        }
    };
    let log =
        LogReader::open(place.join("t-0"), ReadOptions::default()).map_err(|error| error.to_string())?;
    for record in log.owned_records(log.start()) {
        let record = record.map_err(|error| error.to_string())?;
        let value = record.value.unwrap_or_default();
        note(usize::try_from(record.offset.value()).unwrap(), record::hash(&value), "the log".to_owned())?;
    }
    for entry in std::fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("seen-") {
            continue;
        }
        for (offset, hash) in std::fs::read(&path).unwrap().as_chunks::<8>().0.iter().enumerate() {
            // Zero: passed over, as retention had it.
            if *hash != [0; 8] {
                note(offset, u64::from_le_bytes(*hash), name.clone())?;
            }
        }
    }
    Ok(agreed.len())
}
