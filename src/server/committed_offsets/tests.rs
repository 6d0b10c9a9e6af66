use std::path::Path;

use super::*;
use crate::{
    Store,
    server::settings::{Layers, Settings},
};

fn settings(dir: &Path) -> Arc<Settings> {
    let mut layers = Layers::new();
    layers.flag("--dir", "log.dirs", dir.to_str().unwrap());
    layers.properties(
        "f",
        "offsets.topic.num.partitions=4\noffsets.retention.minutes=1\noffset.metadata.max.bytes=10\n",
    );
    Arc::new(layers.resolve().unwrap())
}

fn open(dir: &Path) -> CommittedOffsets {
    let settings = settings(dir);
    let store = Store::open(dir, settings.store_config()).unwrap();
    CommittedOffsets::load(Arc::new(Topics::open(store, settings).unwrap())).unwrap()
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn commit(topic: &str, partition: i32, offset: i64) -> Commit<'_> {
    Commit { topic, partition, offset, leader_epoch: 3, metadata: "note" }
}

fn offsets(of: &CommittedOffsets, group: &str) -> Vec<(String, i32, i64)> {
    of.all_of(group).into_iter().map(|(topic, partition, found)| (topic, partition, found.offset)).collect()
}

#[test]
fn a_groups_partition_is_where_a_broker_looks_for_it() {
    // What Java's String.hashCode gives.
    assert_eq!(partition_of("", 50), 0);
    assert_eq!(partition_of("a", 50), 97 % 50);
    assert_eq!(partition_of("my-group", 50), 36);
    assert_eq!(partition_of("polygenelubricants", 50), 0, "its hash is the least number there is");
    assert_eq!(partition_of("g", 0), 0);
}

#[test]
fn commits_are_there_after_a_kill() {
    let temp = tempfile::tempdir().unwrap();
    let live = open(temp.path());
    assert!(live.topic().unwrap().settings().is_compacted);
    let pending = live.commit("g", &[commit("t", 0, 5), commit("t", 1, 6)], at(1000)).unwrap();
    pending.unwrap().wait().unwrap();
    live.commit("g", &[commit("t", 0, 7)], at(2000)).unwrap().unwrap().wait().unwrap();
    live.commit("other", &[commit("u", 9, 1)], at(3000)).unwrap().unwrap().wait().unwrap();
    live.commit("gone", &[commit("u", 9, 1)], at(3000)).unwrap().unwrap().wait().unwrap();
    live.forget("g", &[("t", 1), ("absent", 0)], at(4000)).unwrap().unwrap().wait().unwrap();
    live.forget_group("gone", at(4000)).unwrap().unwrap().wait().unwrap();
    assert!(live.forget("g", &[("absent", 0)], at(4000)).unwrap().is_none());
    assert!(live.commit("g", &[], at(0)).unwrap().is_none());
    let check = |of: &CommittedOffsets| {
        assert_eq!(of.groups(), ["g", "other"]);
        assert_eq!(offsets(of, "g"), [("t".to_owned(), 0, 7)]);
        let found = of.of("g", "t", 0).unwrap();
        assert_eq!((found.leader_epoch, found.metadata.as_str(), found.commit_ms), (3, "note", 2000));
        assert_eq!(of.of("g", "t", 1), None);
        assert_eq!(of.of("absent", "t", 1), None);
    };
    check(&live);
    // Without a close.
    drop(live);
    check(&open(temp.path()));
}

#[test]
fn many_offsets_at_once_take_more_than_a_batch() {
    let temp = tempfile::tempdir().unwrap();
    let live = open(temp.path());
    let topic = "t".repeat(200);
    let commits: Vec<_> =
        (0..3000).map(|partition| commit(&topic, partition, i64::from(partition))).collect();
    live.commit("g", &commits, at(0)).unwrap().unwrap().wait().unwrap();
    assert_eq!(live.all_of("g").len(), 3000);
    drop(live);
    let again = open(temp.path());
    assert_eq!(again.all_of("g").len(), 3000);
    assert_eq!(again.of("g", &topic, 2999).unwrap().offset, 2999);
}

#[test]
fn the_last_of_many_threads_commits_counts_before_and_after_a_restart() {
    let temp = tempfile::tempdir().unwrap();
    let live = open(temp.path());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let live = &live;
            scope.spawn(move || {
                for round in 0..50 {
                    live.commit("g", &[commit("t", 0, thread * 1000 + round)], at(round)).unwrap();
                }
            });
        }
    });
    let before = live.of("g", "t", 0).unwrap();
    assert_eq!(before.log_offset, 199);
    drop(live);
    assert_eq!(open(temp.path()).of("g", "t", 0).unwrap(), before);
}

#[test]
fn a_log_that_says_the_same_over_and_over_is_compacted() {
    let temp = tempfile::tempdir().unwrap();
    let live = open(temp.path());
    let group = KeptGroup { generation: 3, protocol_type: "consumer".to_owned(), ..KeptGroup::default() };
    let partition = || live.topic().unwrap().partition(partition_of("g", 4)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let live = &live;
            scope.spawn(move || {
                for round in 0..300 {
                    let commits = [commit("t", thread, i64::from(round)), commit("u", round % 3, 7)];
                    live.commit("g", &commits, at(i64::from(round))).unwrap();
                }
            });
        }
        live.keep_group("g", Some(&group), at(0)).unwrap().wait().unwrap();
        live.keep_group("gone", Some(&group), at(0)).unwrap().wait().unwrap();
        live.keep_group("gone", None, at(0)).unwrap().wait().unwrap();
        for _ in 0..20 {
            live.compact(50, at(0));
        }
    });
    live.compact(0, at(0));
    let start = partition().log().start().unwrap().value();
    assert!(start > 0, "what is said again goes");
    let before =
        live.all_of("g").into_iter().map(|(topic, partition, found)| (topic, partition, found.offset));
    let before: Vec<_> = before.collect();
    assert_eq!(before.len(), 5);
    assert_eq!((&before[0], &before[1]), (&("t".to_owned(), 0, 299), &("t".to_owned(), 1, 299)));
    // What counts is not said again for nothing.
    live.compact(0, at(0));
    assert_eq!(partition().log().start().unwrap().value(), start);
    let records = partition().log().end().unwrap().value() - start;
    assert!(records < 40, "{records}");
    drop(live);
    let again = open(temp.path());
    assert_eq!(offsets(&again, "g"), before);
    let groups = again.take_groups();
    assert_eq!((groups.len(), groups.get("g")), (1, Some(&group)));
    again.commit("g", &[commit("t", 0, 300)], at(0)).unwrap().unwrap().wait().unwrap();
    assert_eq!(again.of("g", "t", 0).unwrap().offset, 300);
}

#[test]
fn old_offsets_and_those_of_deleted_topics_go() {
    let temp = tempfile::tempdir().unwrap();
    let live = open(temp.path());
    for group in ["old", "alive"] {
        live.commit(group, &[commit("t", 0, 1)], at(0)).unwrap();
    }
    live.commit("young", &[commit("t", 0, 1), commit("u", 0, 2)], at(60_000)).unwrap();
    let oldest_ms = live.oldest_ms(at(60_001));
    assert_eq!(oldest_ms, 1);
    let mut old = live.with_old(oldest_ms);
    old.sort_unstable();
    assert_eq!(old, ["alive", "old"]);
    live.expire("alive", oldest_ms, at(60_001), |_| Aging::Never).unwrap();
    live.expire("alive", oldest_ms, at(60_001), |_| Aging::Since(1)).unwrap();
    live.expire("old", oldest_ms, at(60_001), |_| Aging::Since(0)).unwrap();
    live.expire("young", oldest_ms, at(60_001), |_| Aging::SinceCommit).unwrap();
    assert_eq!(live.groups(), ["alive", "young"]);
    live.forget_topic("t", at(60_001)).unwrap();
    assert_eq!(live.groups(), ["young"]);
    assert_eq!(offsets(&live, "young"), [("u".to_owned(), 0, 2)]);
    drop(live);
    assert_eq!(open(temp.path()).groups(), ["young"]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let live = open(temp.path());
    assert!(live.takes_metadata("0123456789") && !live.takes_metadata("0123456789a"));
    let long = "x".repeat(40_000);
    let refused = live.commit(&long, &[commit("t", 0, 1)], at(0)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::INVALID_REQUEST);
    assert_eq!(live.commit("g", &[commit(&long, 0, 1)], at(0)).unwrap_err().code, ErrorCode::INVALID_REQUEST);
    assert_eq!(live.groups(), Vec::<String>::new());
}

/// What a real broker left, with every kind of group in it.
#[test]
fn a_brokers_own_topic_is_read() {
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
    let live = open(temp.path());
    // group-offsets.json, beside it.
    let found = |group| {
        let all = live.all_of(group).into_iter();
        all.map(|(topic, partition, found)| (topic, partition, found.offset, found.metadata))
            .collect::<Vec<_>>()
    };
    let grouped = |partition, offset, note: &str| ("grouped".to_owned(), partition, offset, note.to_owned());
    let both = [grouped(0, 10, "note 12"), grouped(1, 6, "note 14"), grouped(2, 10, "note 10")];
    assert_eq!(found("group-classic"), both);
    assert_eq!(found("group-consumer"), both);
    assert_eq!(found("group-plain"), [grouped(1, 7, "by hand")]);
    assert_eq!(live.groups().len(), 3);
    // And written on.
    live.commit("group-plain", &[commit("grouped", 1, 8)], at(0)).unwrap().unwrap().wait().unwrap();
    assert_eq!(live.of("group-plain", "grouped", 1).unwrap().offset, 8);
    // A group of the newer protocol becomes another one: what there was of it goes, members before the group.
    live.keep_group("group-consumer", Some(&KeptGroup::default()), at(0)).unwrap().wait().unwrap();
    let partition = live.topic().unwrap().partition(partition_of("group-consumer", 4)).unwrap();
    let reader = partition.reader().unwrap();
    let mut records = reader.records(reader.start());
    let mut types = Vec::new();
    while let Some(found) = records.next_record().unwrap() {
        if found.key().unwrap()[2..].starts_with(b"\0\x0egroup-consumer") {
            types.push((found.key().unwrap()[1], found.value().is_some()));
        }
    }
    let gone: Vec<_> = types.iter().rev().skip(1).take_while(|(_, has_value)| !has_value).collect();
    assert_eq!(types.last(), Some(&(2, true)));
    assert!(gone.len() >= 2 && gone.is_sorted(), "{types:?}");
}
