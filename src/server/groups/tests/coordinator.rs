//! Groups over a directory.

use std::{path::Path, sync::Arc};

use super::super::{Groups, Outcome};
use super::*;
use crate::{
    Clock, Store,
    server::{
        committed_offsets::{Commit, CommittedOffsets},
        settings::Layers,
        topics::Topics,
    },
};

fn open(dir: &Path, clock: &Clock) -> (Groups, Arc<CommittedOffsets>) {
    let mut layers = Layers::new();
    layers.flag("--dir", "log.dirs", dir.to_str().unwrap());
    let text =
        "offsets.topic.num.partitions=4\noffsets.retention.minutes=1\ngroup.initial.rebalance.delay.ms=0\n";
    layers.properties("f", text);
    let mut settings = layers.resolve().unwrap();
    settings.log.clock = clock.clone();
    let settings = Arc::new(settings);
    let store = Store::open(dir, settings.store_config()).unwrap();
    let topics = Arc::new(Topics::open(store, Arc::clone(&settings)).unwrap());
    let offsets = Arc::new(CommittedOffsets::load(topics).unwrap());
    (Groups::start(&settings, Arc::clone(&offsets)).unwrap(), offsets)
}

fn commit() -> Commit<'static> {
    Commit { topic: "t", partition: 0, offset: 5, leader_epoch: 0, metadata: "" }
}

/// A group of one, in its first generation.
fn form(groups: &Groups, id: &str) {
    let Outcome::Answer(Answer::Join(joined)) = groups.coordinator().join(id, consumer("m")) else {
        panic!("there is nobody to wait for")
    };
    assert_eq!(joined.code, ErrorCode::NONE);
    let synced = groups.coordinator().sync(id, assign("m", joined.generation, &["m"]));
    assert!(matches!(synced, Outcome::Answer(Answer::Sync(synced)) if synced.code.is_none()));
}

const M: Identity<'_> = Identity { member_id: "m", instance_id: None };
const NOBODY: Identity<'_> = Identity { member_id: "", instance_id: None };

#[test]
fn groups_are_there_again_and_go_when_nothing_is_left_of_them() {
    let temp = tempfile::tempdir().unwrap();
    let clock = Clock::manual(Timestamp::from_millis(1_000_000));
    let (groups, offsets) = open(temp.path(), &clock);
    form(&groups, "g");
    let missing = ErrorCode::ILLEGAL_GENERATION;
    let commits = [commit()];
    groups.coordinator().commit("g", M, 1, &commits, missing).unwrap().unwrap().wait().unwrap();
    groups.coordinator().commit("plain", NOBODY, -1, &commits, missing).unwrap();
    let refused = groups.coordinator().commit("absent", M, 1, &commits, missing).unwrap_err();
    assert_eq!(refused.code, missing);
    let refused = groups.coordinator().commit("g", NOBODY, -1, &commits, missing).unwrap_err();
    assert_eq!(refused.code, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(groups.coordinator().ids(), ["g", "plain"]);
    drop((groups, offsets));

    let (groups, offsets) = open(temp.path(), &clock);
    let coordinator = Arc::clone(groups.coordinator());
    assert_eq!(coordinator.heartbeat("g", M, 1), ErrorCode::NONE);
    assert_eq!(coordinator.delete("g").unwrap_err().code, ErrorCode::NON_EMPTY_GROUP);
    // Offsets of a group with members do not age.
    clock.advance(Duration::from_secs(9));
    clock.set_wall(Timestamp::from_millis(2_000_000));
    assert_eq!(coordinator.heartbeat("g", M, 1), ErrorCode::NONE);
    coordinator.expire().unwrap();
    assert_eq!(coordinator.ids(), ["g"]);
    assert_eq!(coordinator.leave("g", &[M]), [ErrorCode::NONE]);
    coordinator.expire().unwrap();
    assert!(offsets.has_any("g"), "it has been without members for no time at all");
    clock.set_wall(Timestamp::from_millis(2_060_001));
    coordinator.expire().unwrap();
    assert_eq!(coordinator.ids(), Vec::<String>::new());
    assert_eq!(coordinator.delete("g").unwrap_err().code, ErrorCode::GROUP_ID_NOT_FOUND);
    drop((groups, offsets, coordinator));

    let (groups, _still_open) = open(temp.path(), &clock);
    assert_eq!(groups.coordinator().ids(), Vec::<String>::new());
}

#[test]
fn offsets_that_nobody_reads_on_from_can_be_forgotten() {
    let temp = tempfile::tempdir().unwrap();
    let clock = Clock::manual(Timestamp::from_millis(1_000_000));
    let (groups, offsets) = open(temp.path(), &clock);
    let coordinator = groups.coordinator();
    let subscription = b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff".to_vec();
    let join = Join { protocols: vec![("range".to_owned(), subscription)], ..consumer("m") };
    drop(coordinator.join("g", join));
    drop(coordinator.sync("g", assign("m", 1, &["m"])));
    let commits = [commit(), Commit { topic: "u", ..commit() }];
    coordinator.commit("g", M, 1, &commits, ErrorCode::ILLEGAL_GENERATION).unwrap();
    let (codes, _) = coordinator.forget("g", &[("t", 0), ("u", 0)]).unwrap();
    assert_eq!(codes, [ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode::NONE]);
    assert!(offsets.of("g", "t", 0).is_some() && offsets.of("g", "u", 0).is_none());
    assert_eq!(coordinator.forget("x", &[]).unwrap_err().code, ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(coordinator.leave("g", &[M]), [ErrorCode::NONE]);
    coordinator.delete("g").unwrap().unwrap().wait().unwrap();
    assert_eq!(coordinator.ids(), Vec::<String>::new());
    assert!(!offsets.has_any("g"));
    // Its name is free.
    form(&groups, "g");
}

/// What a real broker left: a group of the newer protocol becomes one of ours without a trace of what it was.
#[test]
fn a_brokers_groups_are_taken_over() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kafka/4.4.0/store-clean/data");
    let temp = tempfile::tempdir().unwrap();
    for partition in 0..4 {
        let name = format!("__consumer_offsets-{partition}");
        let to = temp.path().join(&name);
        std::fs::create_dir(&to).unwrap();
        for entry in std::fs::read_dir(from.join(&name)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    let clock = Clock::system();
    let (groups, offsets) = open(temp.path(), &clock);
    let state = |groups: &Groups, id: &str| {
        groups.coordinator().look(id, |group| (group.state(), group.generation()))
    };
    assert!(state(&groups, "group-classic").is_some());
    assert_eq!(state(&groups, "group-consumer"), None);
    form(&groups, "group-consumer");
    assert_eq!(offsets.all_of("group-consumer").len(), 3);
    drop((groups, offsets));
    let (groups, offsets) = open(temp.path(), &clock);
    assert_eq!(state(&groups, "group-consumer"), Some((State::Stable, 1)));
    assert!(!offsets.has_newer("group-consumer"));
}

/// 10,000 groups with 100,000 offsets: run with `--ignored --nocapture`, which says how long and how much.
#[test]
#[ignore = "a measurement"]
fn many_groups() {
    let temp = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    let (groups, offsets) = open(temp.path(), &clock);
    let started = std::time::Instant::now();
    let mut halves = Vec::new();
    for group in 0..10_000 {
        let id = format!("group-{group}");
        let commits: Vec<_> = (0..10).map(|partition| Commit { partition, ..commit() }).collect();
        groups.coordinator().commit(&id, NOBODY, -1, &commits, ErrorCode::ILLEGAL_GENERATION).unwrap();
        if group % 5_000 == 4_999 {
            halves.push(started.elapsed());
        }
    }
    drop((groups, offsets));
    let started = std::time::Instant::now();
    let (groups, offsets) = open(temp.path(), &clock);
    println!("commits by halves {halves:?}, open {:?}", started.elapsed());
    assert_eq!(groups.coordinator().ids().len(), 10_000);
    assert_eq!(offsets.all_of("group-9999").len(), 10);
}
