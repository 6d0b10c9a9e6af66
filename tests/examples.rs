//! The examples do what they say: each is run as it stands, and what it leaves on the disk is looked at.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use stratalog::{LogReader, Offset, ReadOptions};

#[path = "../examples/durable_queue.rs"]
#[expect(dead_code, reason = "its `main` is not run here")]
pub mod durable_queue;
#[path = "../examples/event_sourcing.rs"]
#[expect(dead_code, reason = "its `main` is not run here")]
pub mod event_sourcing;
#[path = "../examples/import_kafka_dir.rs"]
#[expect(dead_code, reason = "its `main` is not run here")]
pub mod import_kafka_dir;
#[path = "../examples/multi_producer.rs"]
#[expect(dead_code, reason = "its `main` is not run here")]
pub mod multi_producer;
#[path = "../examples/quickstart.rs"]
#[expect(dead_code, reason = "its `main` is not run here")]
pub mod quickstart;
#[path = "../examples/tail_from_another_process.rs"]
#[expect(dead_code, reason = "its `main` is not run here")]
pub mod tail_from_another_process;

/// Where a child of a test finds the directory, and what else it is to know.
const CHILD_DIR: &str = "STRATALOG_EXAMPLE_DIR";
const CHILD_CRASH: &str = "STRATALOG_EXAMPLE_CRASH";

/// This test binary again, as the process that an example starts: it runs one test alone, which does the child's work.
fn child(test: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env(CHILD_DIR, dir);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[expect(clippy::unwrap_used, reason = "a failure is the test's")]
fn values(dir: &Path) -> Vec<String> {
    let reader = LogReader::open(dir, ReadOptions::default()).unwrap();
    let values = reader.owned_records(reader.start()).map(|record| record.unwrap().value);
    values.map(|value| value.map_or("null".into(), |value| String::from_utf8_lossy(&value).into())).collect()
}

#[test]
fn quickstart_appends_and_can_be_run_again() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("greetings-0");
    let once = ["hello", "bonjour", "null", "and goodbye"];
    quickstart::run(&dir).unwrap();
    assert_eq!(values(&dir), once);
    quickstart::run(&dir).unwrap();
    assert_eq!(values(&dir), [once, once].concat());
}

#[test]
fn a_durable_queue_loses_no_job_over_crashes() {
    let temp = tempfile::tempdir().unwrap();
    let worker = |dir: &Path, crash: Option<usize>| {
        let mut command = child("a_worker_of_the_durable_queue", dir);
        command.env(CHILD_CRASH, crash.map_or("never".to_owned(), |jobs| jobs.to_string()));
        Ok(command)
    };
    for _ in 0..2 {
        let done = durable_queue::run(temp.path(), &worker).unwrap();
        assert_eq!(done.len(), 20);
        assert_eq!(done.values().sum::<usize>(), 22);
    }
}

#[test]
#[ignore = "the other process of a_durable_queue_loses_no_job_over_crashes"]
fn a_worker_of_the_durable_queue() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let crash = std::env::var(CHILD_CRASH).unwrap().parse().ok();
    durable_queue::work(Path::new(&dir), crash).unwrap();
}

#[test]
fn a_reader_sees_every_record_of_another_process() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("ticks-0");
    let writer = |dir: &Path| Ok(child("a_writer_that_is_followed", dir));
    assert_eq!(tail_from_another_process::run(&dir, &writer).unwrap().len(), 200);
    assert_eq!(values(&dir).len(), 200);
}

#[test]
#[ignore = "the other process of a_reader_sees_every_record_of_another_process"]
fn a_writer_that_is_followed() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    tail_from_another_process::write(Path::new(&dir)).unwrap();
}

#[test]
fn event_sourcing_never_overdraws() {
    let temp = tempfile::tempdir().unwrap();
    for round in 1..=3 {
        let account = event_sourcing::run(temp.path()).unwrap();
        assert_eq!(account.next, Offset::new(3 * round).unwrap());
        assert_eq!(account.balance, 35, "30 were left and 5 came");
    }
    assert_eq!(values(&temp.path().join("account-0"))[..3], ["100", "70", "5"]);
}

#[test]
fn an_import_has_every_batch_of_a_brokers_directory() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kafka/4.4.0");
    for case in ["plain", "odd", "transactions", "compacted", "trimmed"] {
        let temp = tempfile::tempdir().unwrap();
        let name = format!("{case}-0");
        let expected =
            std::fs::read_to_string(cases.join(case).join(format!("{name}.expected.jsonl"))).unwrap();
        let expected = expected.lines().filter(|line| line.starts_with(r#"{"batch""#)).count();
        let batches = import_kafka_dir::import(&cases.join(case).join(&name), &temp.path().join(&name));
        assert_eq!(usize::try_from(batches.unwrap()).unwrap(), expected, "{case}");
    }
}

#[test]
fn an_import_goes_into_no_log_that_holds_records() {
    let temp = tempfile::tempdir().unwrap();
    quickstart::run(temp.path()).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kafka/4.4.0/plain/plain-0");
    let refused = import_kafka_dir::import(&from, temp.path()).unwrap_err();
    assert!(refused.to_string().contains("already holds records"), "{refused}");
}

#[test]
fn many_producers_lose_nothing_and_keep_their_order() {
    let temp = tempfile::tempdir().unwrap();
    for round in 1..=2 {
        let summary = multi_producer::run(temp.path()).unwrap();
        assert_eq!(summary.records, 400 * round);
        let stored = values(temp.path());
        for (shop, offsets) in summary.offsets.iter().enumerate() {
            assert!(offsets.is_sorted());
            for (order, offset) in offsets.iter().enumerate() {
                assert_eq!(
                    stored[usize::try_from(*offset).unwrap()],
                    format!("order {order} of shop {shop}")
                );
            }
        }
    }
}
