//! A reader that attaches to a log whose transactions another process writes: this test program again.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use stratalog::{FsyncPolicy, LogReader, LogWriter, Wait};

use super::{Written, committed, committed_durable, offsets};
use crate::support::{TempLog, at};

const DIR: &str = "STRATALOG_TEST_TRANSACTIONS_DIR";

/// A transaction of one, two or three records for each round, every third aborted, over rolls; one of its own between.
const ROUNDS: i64 = 60;

fn round(written: &mut Written, round: i64) {
    written.data(Some(round % 4), 1 + usize::try_from(round % 3).unwrap());
    written.data(None, 1);
    if round % 5 == 0 {
        written.log.roll().unwrap();
    }
    written.end(round % 4, round % 3 != 0);
    written.log.sync().unwrap();
}

#[test]
#[ignore = "the other process of the test here"]
fn the_other_process() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let mut config = TempLog::small().config;
    config.fsync = FsyncPolicy::EveryBytes(1 << 40);
    let mut written = Written::new(LogWriter::open(dir, config).unwrap());
    println!("#");
    for (line, number) in std::io::stdin().lines().zip(0..) {
        line.unwrap();
        round(&mut written, number);
    }
}

#[test]
fn a_reader_follows_what_another_process_commits() {
    let log = TempLog::in_memory(|config| config.fsync = FsyncPolicy::EveryBytes(1 << 40));
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "transactions::elsewhere::the_other_process", "--ignored", "--nocapture"])
        .env(DIR, log.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with('#') {
        line.clear();
        assert!(answers.read_line(&mut line).unwrap() > 0, "the writer ended");
    }
    // What it will have written, here.
    let twin = TempLog::in_memory(|config| config.fsync = FsyncPolicy::EveryBytes(1 << 40));
    let mut expected = Written::new(twin.open());
    (0..ROUNDS).for_each(|number| round(&mut expected, number));
    let end = expected.log.end();
    let readers = [committed(), committed_durable()].map(|options| {
        let reader = LogReader::open(log.path(), options).unwrap();
        std::thread::spawn(move || {
            let deadline = Instant::now() + Duration::from_secs(60);
            let mut walk = reader.records(at(0));
            let mut seen = Vec::new();
            while walk.position().offset < end {
                assert_eq!(reader.wait_past(walk.position(), deadline), Wait::Advanced, "{seen:?}");
                while let Some(record) = walk.next_record().unwrap() {
                    seen.push(record.offset().value());
                }
            }
            seen
        })
    });
    let mut orders = process.stdin.take().unwrap();
    (0..ROUNDS).for_each(|_| writeln!(orders, "round").unwrap());
    let expected = offsets(&expected.log.reader().with_options(committed()));
    for reader in readers {
        assert_eq!(reader.join().unwrap(), expected);
    }
    let reader = LogReader::open(log.path(), committed()).unwrap();
    assert_eq!((offsets(&reader), reader.end()), (expected, end));
    drop(orders);
    process.wait().unwrap();
}
