//! Follows a log that another process writes, and shows how long a record takes from one to the other.
//!
//! ```text
//! cargo run --release --example tail_from_another_process [DIRECTORY]
//! ```
//! Without a directory it works in a temporary one. The program starts itself as the writer.

use std::{
    error::Error,
    path::Path,
    process::{Child, Command},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use stratalog::{
    AppendOptions, FsyncPolicy, LogConfig, LogReader, LogWriter, OpenMode, ReadOptions, Wait, record::Record,
};

const RECORDS: usize = 200;
/// Long enough that the reader sleeps before each record.
const PAUSE: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    match &args[..] {
        [word, dir] if word == "write" => write(Path::new(dir)),
        [dir] => run(Path::new(dir), &writer).map(drop),
        _ => run(&tempfile::tempdir()?.path().join("ticks-0"), &writer).map(drop),
    }
}

/// This program again, as the writer.
fn writer(dir: &Path) -> Outcome<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("write").arg(dir);
    Ok(command)
}

/// The writer: records that say when they were appended.
pub fn write(dir: &Path) -> Outcome<()> {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    // Visible at once, and durable with the close: so that the way to the reader is measured and not the disk.
    config.fsync = FsyncPolicy::Never;
    let mut log = LogWriter::open(dir, config)?;
    for _ in 0..RECORDS {
        thread::sleep(PAUSE);
        let now = nanoseconds()?.to_be_bytes();
        log.append_records(&[Record::value_only(&now)], AppendOptions::default())?;
    }
    Ok(log.close()?)
}

/// Starts the writer and reads what it writes while it does; the sorted times between the two, in nanoseconds.
pub fn run(dir: &Path, writer: &dyn Fn(&Path) -> Outcome<Command>) -> Outcome<Vec<u64>> {
    let mut child = Writer(writer(dir)?.spawn()?);
    let give_up = Instant::now() + PATIENCE;
    // No lock is taken and nothing of the log is changed: any number of processes may do the same.
    let reader = loop {
        match LogReader::open(dir, ReadOptions::default()) {
            // The writer has not made it yet.
            Err(stratalog::Error::NotFound { .. }) if Instant::now() < give_up => thread::sleep(PAUSE),
            opened => break opened?,
        }
    };
    let mut took = Vec::with_capacity(RECORDS);
    let mut walk = reader.records(reader.start());
    loop {
        // A walk that has come to the end goes on once there is more.
        while let Some(record) = walk.next_record()? {
            let sent = record.value().and_then(|value| value.try_into().ok()).map(u64::from_be_bytes);
            took.push(nanoseconds()?.saturating_sub(sent.ok_or("not the writer's record")?));
        }
        if took.len() == RECORDS {
            break;
        }
        match reader.wait_past(walk.position(), give_up) {
            Wait::Advanced => {}
            other => return Err(format!("after {} records: {other:?}", took.len()).into()),
        }
    }
    assert!(child.0.wait()?.success());
    took.sort_unstable();
    let micros = |nth: usize| took.get(nth).map_or(0, |nanoseconds| nanoseconds / 1000);
    println!(
        "{} records from one process to the other: median {} us, 99 of 100 within {} us, slowest {} us",
        took.len(),
        micros(RECORDS / 2),
        micros(RECORDS * 99 / 100),
        micros(RECORDS - 1)
    );
    Ok(took)
}

/// Ends with whoever started it.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        // Both fail for a child that has ended, which is the usual case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn nanoseconds() -> Outcome<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?)
}
