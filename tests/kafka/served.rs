//! A broker takes over what we wrote, after a clean close and after SIGKILL, and serves exactly that.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::Stdio,
    sync::mpsc,
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    CODECS,
    command::{kafka_is_here, logctl, ok},
    corpus,
    node::Node,
    record::{Told, assert_same, difference},
};

#[test]
fn a_broker_serves_what_was_closed_and_what_was_killed() {
    if !kafka_is_here() {
        return;
    }
    let place = TempDir::new().unwrap();
    let mut node = Node::new();
    node.create("closed", CODECS.len(), &[]);
    node.create("killed", CODECS.len(), &[]);
    node.stop();

    let records = corpus::records(0, 1500);
    let closed: Vec<PathBuf> = CODECS.iter().map(|codec| place.path().join(format!("{codec}-0"))).collect();
    for (dir, codec) in closed.iter().zip(CODECS) {
        corpus::write(dir, codec, &records);
        // Places of consumers lie in the directory; a broker neither reads nor minds them.
        ok(&["tail", dir.to_str().unwrap(), "-n", "0", "--cursor", "billing.eu"], b"");
    }
    let adopt_closed = |node: &Node| {
        for (number, dir) in closed.iter().enumerate() {
            node.adopt("closed", number, dir);
        }
    };

    // With the marker a broker believes everything it finds.
    adopt_closed(&node);
    assert!(node.has_clean_marker());
    node.start();
    compare("closed, with marker", &node.consume("closed", CODECS.len()), &[&records; CODECS.len()]);
    node.stop();
    assert_eq!(node.complaints("closed", &["recover", "truncat", "corrupt", "rebuil"]), [""; 0]);

    // Without it, it looks at every batch and builds the indexes anew.
    adopt_closed(&node);
    let mut killed = Vec::new();
    for (number, codec) in CODECS.iter().enumerate() {
        let left = Killed::new(&place.path().join(format!("killed-{number}")), codec, number);
        node.adopt("killed", number, &left.dir);
        killed.push(left);
    }
    node.forget_clean_stop();
    node.start();
    compare("closed, no marker", &node.consume("closed", CODECS.len()), &[&records; CODECS.len()]);
    assert!(node.partition("closed", 0).join(".stratalog-cursor-billing.eu").exists());
    let left: Vec<&[Told]> = killed.iter().map(|killed| killed.records.as_slice()).collect();
    let served = node.consume("killed", CODECS.len());
    compare("killed", &served, &left);
    node.stop();
    let complaints = node.complaints("closed", &["truncat", "corrupt"]);
    assert_eq!(complaints, [""; 0]);
    assert!(!node.complaints("closed", &["recover"]).is_empty(), "it was to recover");

    // Another directory in the place of one would not have passed.
    for (number, codec) in CODECS.iter().enumerate() {
        let other = &served[(number + 1) % CODECS.len()];
        assert!(difference(&killed[number].records, other).is_some(), "{codec}: served as its neighbour");
        assert!(difference(&records, &served[number]).is_some(), "{codec}: killed as closed");
    }
    // Our own recovery keeps the same records.
    for killed in &killed {
        ok(&["append", killed.dir.to_str().unwrap(), "-q"], b"");
        assert_same("recovered by us", &corpus::read(&killed.dir), &killed.records);
    }
}

#[track_caller]
fn compare<T: AsRef<[Told]>>(what: &str, served: &[Vec<Told>], ours: &[T]) {
    assert_eq!(served.len(), ours.len());
    for ((served, ours), codec) in served.iter().zip(ours).zip(CODECS) {
        assert_same(&format!("{what}, {codec}"), ours.as_ref(), served);
    }
}

/// What `logctl append` left behind when it was killed in the middle.
struct Killed {
    dir: PathBuf,
    /// What `cat` finds in a copy.
    records: Vec<Told>,
}

impl Killed {
    /// `variant` chooses how blocks are reserved and when records are durable, and how far the writer comes.
    #[track_caller]
    fn new(dir: &Path, codec: &str, variant: usize) -> Self {
        let (reserve, sync) = [
            ("stepped", "batch"),
            ("whole", "never"),
            ("off", "every:100"),
            ("stepped", "never"),
            ("whole", "every:16KiB"),
        ][variant];
        let enough = 1100 + 37 * i64::try_from(variant).unwrap();
        // Other records for each: two that were killed at the same end are to be told apart.
        let first = 100_000 * (1 + i64::try_from(variant).unwrap());
        let options = ["-z", codec, "--preallocate", reserve, "--sync", sync];
        let acknowledged = append_until(dir, &options, first, enough);
        let copy = dir.with_extension("copy");
        corpus::copy(dir, &copy);
        let records = corpus::read(&copy);
        fs::remove_dir_all(copy).unwrap();

        let end = i64::try_from(records.len()).unwrap();
        assert!(end > acknowledged, "{codec}: {acknowledged} was acknowledged, the log ends at {end}");
        assert_same(codec, &corpus::records_from(first, end), &records);
        assert!(corpus::segments(dir) > 3, "{codec}: {} segments prove little", corpus::segments(dir));
        Self { dir: dir.to_owned(), records }
    }
}

/// Appends the records from `first` on without end and kills the writer once it has acknowledged this offset; gives the
/// last one acknowledged.
#[track_caller]
fn append_until(dir: &Path, options: &[&str], first: i64, enough: i64) -> i64 {
    let start = ["append", dir.to_str().unwrap(), "--create", "--report", "%o\n", "-q"];
    let mut child = logctl(&[&start, corpus::SMALL, options].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeding = thread::spawn(move || {
        // Ends when the reader of the pipe does.
        let mut from = first;
        while stdin.write_all(&corpus::lines(&corpus::records(from, from + 100))).is_ok() {
            from += 100;
        }
    });
    let reports = BufReader::new(child.stdout.take().unwrap());
    let (tell, told) = mpsc::channel();
    let listening = thread::spawn(move || {
        let mut last = -1;
        // A line that the kill cut short tells nothing.
        for line in reports.split(b'\n').map_while(Result::ok) {
            let Ok(offset) = String::from_utf8(line).unwrap().parse() else { break };
            last = last.max(offset);
            if last >= enough {
                // Nobody listens any more once it was enough.
                let _ = tell.send(());
            }
        }
        last
    });
    let came_so_far = told.recv_timeout(Duration::from_secs(60));
    child.kill().unwrap();
    let status = child.wait().unwrap();
    feeding.join().unwrap();
    let last = listening.join().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(came_so_far.is_ok(), "stopped at {last}, {status}: {err}");
    assert_eq!(status.code(), None, "it was to die of the signal: {err}");
    last
}
