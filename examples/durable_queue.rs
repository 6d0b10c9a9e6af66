//! A durable queue: jobs are appended to a log, and a worker with a `Cursor` does each at least once, whatever crashes.
//!
//! ```text
//! cargo run --example durable_queue [DIRECTORY]
//! ```
//! Without a directory it works in a temporary one. The program starts itself as the worker, which dies twice in the
//! worst moment: a job is done and its commit has not happened yet.

use std::{
    collections::BTreeMap,
    error::Error,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use stratalog::{
    AppendOptions, Cursor, LogConfig, LogReader, LogWriter, OpenMode, Position, ReadOptions, record::Record,
};

const JOBS: usize = 20;
/// After so many jobs the worker's run ends by force; the last run has no such end.
const CRASHES: [Option<usize>; 3] = [Some(7), Some(5), None];

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    match &args[..] {
        [word, dir, crash] if word == "work" => {
            work(Path::new(dir), crash.to_str().and_then(|n| n.parse().ok()))
        }
        [dir] => run(Path::new(dir), &worker).map(drop),
        _ => run(tempfile::tempdir()?.path(), &worker).map(drop),
    }
}

/// This program again, as the worker.
fn worker(dir: &Path, crash: Option<usize>) -> Outcome<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("work").arg(dir).arg(crash.map_or("never".to_owned(), |jobs| jobs.to_string()));
    Ok(command)
}

/// Fills the queue, lets workers run until it is empty, and looks how often each job was done.
pub fn run(
    dir: &Path,
    worker: &dyn Fn(&Path, Option<usize>) -> Outcome<Command>,
) -> Outcome<BTreeMap<String, usize>> {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    let mut log = LogWriter::open(queue(dir), config)?;
    let done_before = done(dir)?;
    for _ in 0..JOBS {
        let job = format!("job {}", log.end());
        // Durable once it returns: whoever handed in the job may forget it now.
        log.append_records(&[Record::value_only(job.as_bytes())], AppendOptions::default())?;
    }
    println!("{JOBS} jobs are in the queue");
    // The writer stays open meanwhile: the worker is another process and needs no lock of the log's.
    for crash in CRASHES {
        let status = worker(dir, crash)?.status()?;
        println!("the worker ended: {status}");
        assert_eq!(status.success(), crash.is_none());
    }
    log.close()?;

    let mut done = done(dir)?;
    for (job, times) in done_before {
        done.entry(job).and_modify(|all| *all -= times);
    }
    done.retain(|_, times| *times > 0);
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times > 1).map(|(job, _)| job.as_str()).collect();
    println!("{} of {JOBS} jobs were done, twice: {twice:?}", done.len());
    assert_eq!(done.len(), JOBS, "a job was lost");
    assert_eq!(twice.len(), 2, "only the job at hand is done again after a crash");
    Ok(done)
}

/// How often each job was done.
fn done(dir: &Path) -> Outcome<BTreeMap<String, usize>> {
    let text = if results(dir).exists() { fs::read_to_string(results(dir))? } else { String::new() };
    let mut done = BTreeMap::new();
    for line in text.lines() {
        *done.entry(line.to_owned()).or_insert(0) += 1;
    }
    Ok(done)
}

/// The worker: goes on where the cursor stands, and moves it only once a job is done.
pub fn work(dir: &Path, crash: Option<usize>) -> Outcome<()> {
    let reader = LogReader::open(queue(dir), ReadOptions::default())?;
    let mut cursor = Cursor::open(queue(dir), "worker")?;
    let from = cursor.position().unwrap_or_else(|| reader.start().into());
    println!("  worker {} begins at offset {}", std::process::id(), from.offset);
    for (count, record) in reader.owned_records(from).enumerate() {
        let record = record?;
        do_job(dir, record.value.as_deref().unwrap_or_default())?;
        if crash == Some(count) {
            println!(
                "  worker {} crashes: offset {} is done, not committed",
                std::process::id(),
                record.offset
            );
            std::process::abort();
        }
        // Durable once it returns. For cheap jobs, commit after every hundredth: so many are then done again.
        cursor.commit(Position::after(&record))?;
    }
    println!("  worker {} has emptied the queue", std::process::id());
    Ok(())
}

/// What the outside world sees of a job; here, a line in a file. Jobs that must not be done twice need to be recognised
/// there, by their offset for example.
fn do_job(dir: &Path, job: &[u8]) -> Outcome<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(results(dir))?;
    file.write_all(&[job, b"\n"].concat())?;
    Ok(file.sync_data()?)
}

fn queue(dir: &Path) -> PathBuf {
    dir.join("jobs-0")
}

fn results(dir: &Path) -> PathBuf {
    dir.join("done.txt")
}
