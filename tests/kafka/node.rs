//! A broker on loopback, which ends with the value.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{
    command::{kafka, run},
    corpus,
    record::Told,
};

/// What the broker would otherwise rewrite every few seconds stays still, so that a look at its files is about us.
const STILL: [&str; 4] = [
    "replica.high.watermark.checkpoint.interval.ms=3600000",
    "log.flush.offset.checkpoint.interval.ms=3600000",
    "log.flush.start.offset.checkpoint.interval.ms=3600000",
    "log.retention.check.interval.ms=3600000",
];

/// One node and its data directory.
pub(crate) struct Node {
    place: TempDir,
    /// Where it answers while it runs.
    address: Option<String>,
}

impl Node {
    /// A new data directory, and a node that runs on it.
    #[track_caller]
    pub(crate) fn new() -> Self {
        let mut node = Self { place: TempDir::new().unwrap(), address: None };
        node.start();
        node
    }

    fn dir(&self) -> &str {
        self.place.path().to_str().unwrap()
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// The directory of a partition.
    pub(crate) fn partition(&self, topic: &str, number: usize) -> PathBuf {
        self.data().join(format!("{topic}-{number}"))
    }

    #[track_caller]
    pub(crate) fn start(&mut self) {
        let started = script(&[&["start", self.dir()], STILL.as_slice()].concat());
        self.address = Some(started.trim().to_owned());
    }

    /// Ends it as an operator would.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        script(&["stop", self.dir()]);
        self.address = None;
        assert!(self.has_clean_marker(), "a clean stop leaves the marker");
    }

    /// Ends it with SIGKILL.
    #[track_caller]
    pub(crate) fn kill(&mut self) {
        script(&["kill", self.dir()]);
        self.address = None;
        assert!(!self.has_clean_marker(), "a killed broker leaves no marker");
    }

    pub(crate) fn has_clean_marker(&self) -> bool {
        self.data().join(".kafka_cleanshutdown").exists()
    }

    /// Takes the clean marker away, so that the next start recovers.
    pub(crate) fn forget_clean_stop(&self) {
        script(&["unclean", self.dir()]);
    }

    /// Makes a topic whose records may be of any age.
    #[track_caller]
    pub(crate) fn create(&self, topic: &str, partitions: usize, settings: &[&str]) {
        let partitions = partitions.to_string();
        let mut args =
            vec!["tool", "topics", "--bootstrap-server", self.address(), "--create", "--topic", topic];
        args.extend(["--partitions", &partitions, "--config", "retention.ms=-1"]);
        args.extend(settings.iter().flat_map(|setting| ["--config", setting]));
        script(&args);
    }

    /// Puts another directory's files in the place of a partition's, which keeps its identity.
    #[track_caller]
    pub(crate) fn adopt(&self, topic: &str, number: usize, from: &Path) {
        script(&["adopt", self.dir(), &format!("{topic}-{number}"), from.to_str().unwrap()]);
    }

    /// Fills partitions 0 and up with records `from` up to `from + count`, a codec for each.
    #[track_caller]
    pub(crate) fn produce(&self, topic: &str, from: usize, count: usize, codecs: &[&str]) {
        self.produce_at(topic, from, count, codecs, corpus::FIRST_TIMESTAMP);
    }

    /// The same with the record at `from` 0 of this time. A broker forgets a producer a day after its last record's time.
    #[track_caller]
    pub(crate) fn produce_at(
        &self,
        topic: &str,
        from: usize,
        count: usize,
        codecs: &[&str],
        first_timestamp: i64,
    ) {
        produce(self.address(), topic, (from, count), codecs, first_timestamp);
    }

    /// What it serves of partitions 0 and up, each from its first offset to its end.
    #[track_caller]
    pub(crate) fn consume(&self, topic: &str, partitions: usize) -> Vec<Vec<Told>> {
        consume_from(self.address(), topic, partitions)
    }

    /// Lines of its log since the last start that tell of trouble with partitions of this topic.
    pub(crate) fn complaints(&self, topic: &str, words: &[&str]) -> Vec<String> {
        complaints(&fs::read_to_string(self.place.path().join("broker.log")).unwrap(), topic, words)
    }

    /// HOST:PORT of the running node.
    pub(crate) fn address(&self) -> &str {
        self.address.as_deref().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.place.path().join("pid").exists() {
            let _ = kafka(&["kill", self.dir()]).status();
        }
    }
}

/// Fills partitions 0 and up with records `from` up to `from + count`, a codec for each, by the Java client.
#[track_caller]
pub(crate) fn produce_to(address: &str, topic: &str, from: usize, count: usize, codecs: &[&str]) {
    produce(address, topic, (from, count), codecs, corpus::FIRST_TIMESTAMP);
}

#[track_caller]
fn produce(address: &str, topic: &str, (from, count): (usize, usize), codecs: &[&str], first_timestamp: i64) {
    let (from, count, codecs) = (from.to_string(), count.to_string(), codecs.join(","));
    java("Produce.java", &[address, topic, &from, &count, &codecs, &first_timestamp.to_string()]);
}

/// What is served of partitions 0 and up, each from its first offset to its end.
#[track_caller]
pub(crate) fn consume_from(address: &str, topic: &str, partitions: usize) -> Vec<Vec<Told>> {
    let numbers: Vec<_> = (0..partitions).map(|number| number.to_string()).collect();
    let lines = java("Consume.java", &[address, topic, &numbers.join(",")]);
    let mut served = vec![Vec::new(); partitions];
    for (partition, told) in lines.lines().map(Told::by_broker) {
        served[partition].push(told);
    }
    served
}

#[track_caller]
fn script(args: &[&str]) -> String {
    let ran = run(&mut kafka(args), b"");
    assert_eq!(ran.code, Some(0), "kafka {args:?}:\n{}{}", String::from_utf8_lossy(&ran.out), ran.err);
    ran.text().to_owned()
}

#[track_caller]
fn java(program: &str, args: &[&str]) -> String {
    let program = crate::command::here().join(program);
    script(&[&["java", program.to_str().unwrap()], args].concat())
}

/// Lines about partitions of a topic that are warnings, errors or hold one of `words`, but for what a broker says at
/// every start or because it has a leader epoch of its own now.
fn complaints(log: &str, topic: &str, words: &[&str]) -> Vec<String> {
    let name = format!("{topic}-");
    let is_about = |line: &str| {
        line.match_indices(&name)
            .any(|(at, _)| line[at + name.len()..].starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_harmless = |line: &str| {
        let mut rest = line.split("ebuilding producer state from offset ").skip(1);
        line.contains("truncation of conflicting entries")
            || rest.any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_trouble = |line: &str| {
        // How a controller describes every partition, and the name of the thread that loads them.
        let lower =
            line.to_lowercase().replace("leaderrecoverystate=recovered", "").replace("[log-recovery-/", "[/");
        line.contains("] WARN ") || line.contains("] ERROR ") || words.iter().any(|word| lower.contains(word))
    };
    log.lines()
        .filter(|line| is_about(line) && is_trouble(line) && !is_harmless(line))
        .map(str::to_owned)
        .collect()
}

#[test]
fn complaints_are_found() {
    let words = ["recover", "truncat"];
    let trouble = [
        "[main] INFO a.b - [LogLoader partition=t-0, dir=/d] Recovering unflushed segment 0.",
        "[main] WARN a.b - something about /d/t-12/00000000000000000000.index",
        "[main] INFO a.b - [UnifiedLog partition=t-1, dir=/d] Truncating to 5",
    ];
    assert_eq!(complaints(&trouble.join("\n"), "t", &words), trouble);
    let harmless = [
        "[main] INFO a.b - [LogLoader partition=other-0, dir=/d] Recovering unflushed segment 0.",
        "[main] INFO a.b - recover t-x",
        "[main] INFO a.b - Replayed PartitionRecord for t-0 and (leaderRecoveryState=RECOVERED, leaderEpoch=0)",
        "[main] WARN a.b - New epoch entry caused truncation of conflicting entries. Partition: t-0",
        "[main] INFO a.b - [UnifiedLog partition=t-0, dir=/d] Rebuilding producer state from offset 7",
        "[log-recovery-/d-0] INFO a.b - [UnifiedLog partition=t-0, dir=/d] Loading producer state till offset 7",
    ];
    assert_eq!(complaints(&harmless.join("\n"), "t", &["recover", "truncat", "rebuild"]), [""; 0]);
}
