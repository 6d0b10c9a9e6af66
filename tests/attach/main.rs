//! One writer that is killed every few seconds, and eight readers of other processes that follow it.
//!
//! No reader may see a record that is torn, out of order, invented or left out: what it reads must go on where it was,
//! unless it was told that the log was cut or that retention overtook it, and every offset must hold the same for all
//! readers and for who reads the log in the end. Those that follow the durable end must never be told of a cut, never
//! see that end go back, and never see it pass what the writer had at least begun to make durable.
//!
//! After some kills the log is damaged above its durable end, as a power cut may leave it, and the next writer cuts it. The
//! readers stand still meanwhile: a power cut would have ended them too, and damage in a dead log is damage.
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
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use stratalog::{LogReader, Offset, ReadOptions};

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
    let (mut runs, mut losses) = (1, 0);
    let mut writer = start("writer", place, runs);
    while LogReader::open(place.join("t-0"), ReadOptions::default()).is_err() {
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
        runs += 1;
        if dice.below(3) == 0 {
            // Long enough for readers to find that nobody writes.
            std::thread::sleep(Duration::from_millis(dice.below(600)));
            writer = start("writer", place, runs);
        } else if dice.below(2) == 0 {
            signal(&readers, Signal::STOP);
            losses += u32::from(lose_some(&place.join("t-0"), &mut dice));
            writer = start("writer", place, runs);
            while begun(place).is_none_or(|end| end == i64::MAX) && writer.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            signal(&readers, Signal::CONT);
        } else {
            writer = start("writer", place, runs);
        }
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
        Ok(records) => println!(
            "attach: ok: {runs} writers, {losses} of them after a loss, {records} records, 8 readers that agree"
        ),
        Err(fault) => panic!("attach: {fault}; kept in {}", keep(place).display()),
    }
}

fn signal(readers: &[Child], signal: Signal) {
    for reader in readers {
        let process = Pid::from_raw(i32::try_from(reader.id()).unwrap()).unwrap();
        kill_process(process, signal).unwrap();
    }
}

/// How far a sync of the writer may get, as it said itself; nothing before it said so.
fn begun(place: &Path) -> Option<i64> {
    let mut end = [0; 8];
    let read = File::open(place.join(writer::BEGUN)).and_then(|file| file.read_exact_at(&mut end, 0));
    read.ok().map(|()| i64::from_le_bytes(end))
}

/// Does to a log that nobody writes what a power cut may: somewhere above its durable end a batch is not what was written,
/// or only its header is there and nothing behind it. False where all of it is durable.
fn lose_some(dir: &Path, dice: &mut record::Dice) -> bool {
    std::fs::write(dir.parent().unwrap().join(writer::BEGUN), i64::MAX.to_le_bytes()).unwrap();
    let reader = LogReader::open(dir, ReadOptions::default()).unwrap();
    let (durable, end) = (reader.durable_end().value(), reader.end().value());
    if durable == end {
        return false;
    }
    let from = durable + i64::try_from(dice.below((end - durable).unsigned_abs())).unwrap();
    let mut batches = reader.batches(Offset::new(from).unwrap());
    batches.next_batch().unwrap().unwrap();
    let (base, position) = batches.position_of_last().unwrap();
    let path = dir.join(format!("{:020}.log", base.value()));
    let file = File::options().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    if dice.below(2) == 0 {
        file.write_all_at(&[0xAA; 3], position + 62).unwrap();
    } else {
        // The header stays: zeros from a batch's beginning on look like blocks that were reserved and never written.
        let from = position + 61;
        file.write_all_at(&vec![0; usize::try_from(length - from).unwrap()], from).unwrap();
    }
    true
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
