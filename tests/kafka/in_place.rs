//! A broker's own data directory: refused while it runs, read and appended to when it does not, and given back.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{
    CODECS,
    command::{kafka_is_here, logctl, ok, run},
    corpus,
    node::Node,
    record::{Told, assert_same, difference},
};

const COUNT: usize = CODECS.len();

#[test]
fn a_brokers_log_is_read_appended_to_in_place_and_given_back() {
    if !kafka_is_here() {
        return;
    }
    let mut node = Node::new();
    // Records are a second apart: some seven segments by age.
    node.create("own", COUNT, &["segment.ms=60000"]);
    node.produce("own", 0, 400, &CODECS);
    let first = node.consume("own", COUNT);
    for (number, served) in first.iter().enumerate() {
        assert_eq!(served.len(), 400);
        assert!(corpus::segments(&node.partition("own", number)) > 4);
    }
    assert!(difference(&first[0], &first[1]).is_some(), "the partitions are to be told apart");

    every_writer_is_refused(&node);
    assert_as_served(&node, &first, "the broker runs");
    node.stop();
    assert_as_served(&node, &first, "stopped");
    verify(&node);

    let second = append_in_place(&node, 1);
    assert!(!node.has_clean_marker(), "who changes a partition takes the marker away");
    for (before, after) in first.iter().zip(&second) {
        assert_same("what was there stays", before, &after[..before.len()]);
    }
    node.start();
    for (served, ours) in node.consume("own", COUNT).iter().zip(&second) {
        assert_same("old and new", ours, served);
    }
    assert_eq!(node.complaints("own", &["truncat", "corrupt"]), [""; 0]);

    // The broker goes on behind ours, and is killed.
    node.produce("own", 400, 90, &CODECS);
    let third = node.consume("own", COUNT);
    for (before, after) in second.iter().zip(&third) {
        assert_same("ours stays", before, &after[..before.len()]);
        assert_eq!(after.len(), before.len() + 90);
    }
    node.kill();
    assert_as_served(&node, &third, "killed");
    verify(&node);

    let fourth = append_in_place(&node, 2);
    node.start();
    for (served, ours) in node.consume("own", COUNT).iter().zip(&fourth) {
        assert_same("after a kill", ours, served);
    }
    node.stop();
    assert_as_served(&node, &fourth, "at last");
    assert_eq!(node.complaints("own", &["truncat", "corrupt"]), [""; 0]);
}

/// Writing is refused with exit code 5 and without a trace while the broker runs.
#[track_caller]
fn every_writer_is_refused(node: &Node) {
    let before = state(&node.data());
    assert!(before.len() > 5 * 4 * COUNT, "{} files prove little", before.len());
    for number in 0..COUNT {
        let dir = node.partition("own", number);
        for more in [&[][..], &["--create"], &["--refuse-damage"]] {
            let append = ["append", dir.to_str().unwrap()];
            let ran = run(&mut logctl(&[&append, more].concat()), b"a line\n");
            assert_eq!(ran.code, Some(5), "{}", ran.err);
        }
    }
    let absent = node.partition("absent", 0);
    let ran = run(&mut logctl(&["append", absent.to_str().unwrap(), "--create"]), b"a line\n");
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    let after = state(&node.data());
    let changed: Vec<_> = before.iter().filter(|(path, state)| after.get(*path) != Some(state)).collect();
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(changed.is_empty() && new.is_empty(), "changed: {changed:?}, new: {new:?}");
}

/// Everything about every file and directory that a writer could change. The broker's own log of itself grows while it
/// runs, so that one is left out.
fn state(data: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, u64, String)> {
    let mut all = BTreeMap::new();
    let mut left = vec![data.to_owned()];
    while let Some(path) = left.pop() {
        if path.ends_with("__cluster_metadata-0") {
            continue;
        }
        let metadata = fs::metadata(&path).unwrap();
        let sum = if metadata.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            String::new()
        } else {
            format!("{:x}", Sha256::digest(fs::read(&path).unwrap()))
        };
        all.insert(path, (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.len(), sum));
    }
    all
}

/// Appends to each partition, each with a codec that the broker did not use there; gives what it holds then.
#[track_caller]
fn append_in_place(node: &Node, turn: usize) -> Vec<Vec<Told>> {
    let added = corpus::records(0, 300);
    let append = |number: usize| {
        let dir = node.partition("own", number);
        let before = corpus::read(&dir);
        let options = ["append", dir.to_str().unwrap(), "-q", "-z", CODECS[(number + turn) % COUNT]];
        ok(&[&options, corpus::SMALL].concat(), &corpus::lines(&added));
        let after = corpus::read(&dir);
        assert_same("what was there stays", &before, &after[..before.len()]);
        let expected: Vec<Told> = added
            .iter()
            .zip(before.len()..)
            .map(|(told, offset)| Told {
                offset: i64::try_from(offset).unwrap(),
                // An append carries the epoch that the log is in.
                leader_epoch: after.last().unwrap().leader_epoch,
                ..told.clone()
            })
            .collect();
        assert_same("what was added", &expected, &after[before.len()..]);
        assert!(expected[0].leader_epoch >= before.last().unwrap().leader_epoch);
        after
    };
    (0..COUNT).map(append).collect()
}

#[track_caller]
fn assert_as_served(node: &Node, served: &[Vec<Told>], when: &str) {
    for (number, served) in served.iter().enumerate() {
        let what = format!("{when}, {}", CODECS[number]);
        assert_same(&what, served, &corpus::read(&node.partition("own", number)));
    }
}

#[track_caller]
fn verify(node: &Node) {
    for number in 0..COUNT {
        let said = ok(&["verify", "--deep", node.partition("own", number).to_str().unwrap()], b"");
        assert!(said.contains(": no damage: "), "{said}");
    }
}
