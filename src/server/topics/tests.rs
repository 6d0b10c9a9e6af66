use std::{sync::Arc, time::Duration};

use super::{
    super::{
        error_code::ErrorCode,
        settings::{Layers, Settings},
    },
    *,
};
use crate::{AppendOptions, Follow, FsyncPolicy, Preallocate, Retention, Store, record::Record};

fn settings(dir: &std::path::Path, text: &str) -> Arc<Settings> {
    let mut layers = Layers::new();
    layers.properties("server.properties", text);
    layers.flag("--dir", "log.dirs", dir.to_str().unwrap());
    Arc::new(layers.resolve().unwrap())
}

fn open(dir: &std::path::Path, text: &str) -> Topics {
    let settings = settings(dir, text);
    let store = Store::open(dir, settings.store_config()).unwrap();
    Topics::open(store, settings).unwrap()
}

fn new<'a>(name: &'a str, partition_count: i32, settings: &[(&'a str, &'a str)]) -> NewTopic<'a> {
    let settings = settings.iter().map(|(name, value)| (*name, Some(*value))).collect();
    NewTopic { name, partition_count, replication_factor: -1, settings }
}

fn code<T: std::fmt::Debug>(result: Result<T, super::super::error_code::Refusal>) -> ErrorCode {
    result.unwrap_err().code
}

fn shown(topics: &Topics, topic: &str, name: &str) -> Shown {
    let topic = topics.by_name(topic).unwrap();
    topics.describe(&topic).into_iter().find(|shown| shown.name == name).unwrap()
}

#[test]
fn a_topic_is_made_found_changed_and_deleted_over_restarts() {
    let temp = tempfile::tempdir().unwrap();
    let topics = open(temp.path(), "num.partitions=3\n");
    let made = topics.create(&new("a.b", 2, &[("retention.ms", " 1000 ")]), false).unwrap();
    let topic = made.topic.unwrap();
    assert_eq!((made.partition_count, topic.partition_count(), topic.name()), (2, 2, "a.b"));
    assert_eq!(topics.by_id(topic.id()).unwrap().name(), "a.b");
    assert_eq!(topics.create(&new("defaults", -1, &[]), false).unwrap().partition_count, 3);
    topics.create_partitions("a.b", 4, true).unwrap();
    assert_eq!(topic.partition_count(), 2);
    topics.create_partitions("a.b", 4, false).unwrap();
    assert_eq!(topic.partition_count(), 4);
    topics.change_settings("a.b", &[("cleanup.policy", Change::Append, Some("compact"))], false).unwrap();
    assert_eq!(shown(&topics, "a.b", "cleanup.policy").value.as_deref(), Some("delete,compact"));
    let id = topic.id();
    topics.store().clone().close().unwrap();
    let topics = open(temp.path(), "");
    let topic = topics.by_id(id).unwrap();
    assert_eq!((topic.name(), topic.partition_count()), ("a.b", 4));
    assert!(topic.settings().is_compacted);
    assert_eq!(topic.settings().log.retention.age, Some(Duration::from_secs(1)));
    topics.delete("a.b").unwrap();
    assert!(topics.by_name("a.b").is_none() && topics.by_id(id).is_none());
    let log = topic.partition(0).unwrap();
    assert_eq!(
        super::super::error_code::code_of(&log.log().end().unwrap_err()),
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
    let again = topics.create(&new("a.b", 1, &[]), false).unwrap().topic.unwrap();
    assert_ne!(again.id(), id);
    assert!(again.settings().overrides.is_empty());
}

#[test]
fn refusals_have_a_brokers_codes() {
    let temp = tempfile::tempdir().unwrap();
    let topics = open(temp.path(), "");
    topics.create(&new("t", 2, &[]), false).unwrap();
    topics.create(&new("a.b", 1, &[]), false).unwrap();
    let create =
        |name: &str, count, config: &[(&str, &str)]| code(topics.create(&new(name, count, config), true));
    assert_eq!(create("t", 0, &[("nope", "1")]), ErrorCode::TOPIC_ALREADY_EXISTS);
    for bad in ["", "..", "x y", "a_b"] {
        assert_eq!(create(bad, 0, &[]), ErrorCode::INVALID_TOPIC_EXCEPTION, "{bad}");
    }
    assert_eq!(create("u", 0, &[]), ErrorCode::INVALID_PARTITIONS);
    assert_eq!(create("u", -2, &[]), ErrorCode::INVALID_PARTITIONS);
    assert_eq!(create("u", 1, &[("segment.bytes", "1")]), ErrorCode::INVALID_CONFIG);
    let copies = NewTopic { replication_factor: 2, ..new("u", 1, &[]) };
    assert_eq!(code(topics.create(&copies, true)), ErrorCode::INVALID_REPLICATION_FACTOR);
    assert!(topics.create(&new("u", 1, &[]), true).unwrap().topic.is_none());
    assert!(topics.by_name("u").is_none());
    assert_eq!(code(topics.create_partitions("t", 2, false)), ErrorCode::INVALID_PARTITIONS);
    assert_eq!(code(topics.create_partitions("t", 0, false)), ErrorCode::INVALID_PARTITIONS);
    assert_eq!(code(topics.create_partitions("x", 2, false)), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(code(topics.delete("x")), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(code(topics.replace_settings("x", &[], false)), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(code(topics.find_or_create("x y")), ErrorCode::INVALID_TOPIC_EXCEPTION);
    let strict = tempfile::tempdir().unwrap();
    let topics = open(strict.path(), "auto.create.topics.enable=false\ndelete.topic.enable=false\n");
    assert_eq!(code(topics.find_or_create("t")), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(code(topics.find_or_create("")), ErrorCode::INVALID_TOPIC_EXCEPTION);
    assert_eq!(code(topics.delete("t")), ErrorCode::TOPIC_DELETION_DISABLED);
}

#[test]
fn a_topic_asked_for_is_made_once() {
    let temp = tempfile::tempdir().unwrap();
    let topics = open(temp.path(), "num.partitions=2\n");
    let ids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| topics.find_or_create("t").unwrap().id())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(topics.by_name("t").unwrap().partition_count(), 2);
    assert!(topics.find_or_create("__consumer_offsets").is_err(), "not as a topic like others");
}

#[test]
fn settings_show_where_they_come_from() {
    let temp = tempfile::tempdir().unwrap();
    let topics = open(temp.path(), "log.segment.bytes=2097152\nlog.retention.hours=24\n");
    topics.create(&new("t", 1, &[("segment.bytes", "3145728"), ("flush.ms", "5")]), false).unwrap();
    let synonym =
        |name: &str, value: &str, source| Synonym { name: name.into(), value: value.into(), source };
    let segment = shown(&topics, "t", "segment.bytes");
    assert_eq!((segment.value.as_deref(), segment.source.wire()), (Some("3145728"), 1));
    let expected = [
        synonym("segment.bytes", "3145728", Source::Topic),
        synonym("log.segment.bytes", "2097152", Source::Server),
        synonym("log.segment.bytes", "1073741824", Source::Default),
    ];
    assert_eq!(segment.synonyms, expected);
    let age = shown(&topics, "t", "retention.ms");
    assert_eq!((age.value.as_deref(), age.source.wire()), (Some("86400000"), 4));
    assert_eq!(age.synonyms, [synonym("log.retention.hours", "24", Source::Server)]);
    // As a broker shows them: nothing stands behind the default of a time in milliseconds.
    assert_eq!(shown(&topics, "t", "segment.ms").synonyms, []);
    assert_eq!(shown(&topics, "t", "flush.ms").synonyms, [synonym("flush.ms", "5", Source::Topic)]);
    let policy = shown(&topics, "t", "cleanup.policy");
    assert_eq!((policy.kind.wire(), policy.source.wire()), (7, 5));
    assert_eq!(topics.describe(&topics.by_name("t").unwrap()).len(), TOPIC_KEYS.len());
}

#[test]
fn settings_come_to_what_the_log_goes_by_and_change_it_live() {
    let temp = tempfile::tempdir().unwrap();
    let topics = open(temp.path(), "");
    let topic = topics.create(&new("t", 1, &[]), false).unwrap().topic.unwrap();
    let partition = topic.partition(0).unwrap();
    let plain = topic.settings();
    assert_eq!(plain.log.fsync, FsyncPolicy::Commit);
    assert_eq!(plain.log.retention, Retention { bytes: None, age: Some(Duration::from_secs(7 * 24 * 3600)) });
    assert_eq!((plain.before_max_ms, plain.after_max_ms), (None, Some(3_600_000)));
    assert_eq!(plain.compression, None);
    assert_eq!(partition.reader().unwrap().options().follow, Follow::Durable);
    let append = |size: usize| {
        // Not a compressor's friend.
        let mut state = 1_u32;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        let value: Vec<u8> = std::iter::repeat_with(next).take(size).collect();
        partition.log().append_records(&[Record::value_only(&value)], AppendOptions::default())
    };
    append(100).unwrap();
    // Held over the change: the log stays open, and goes by the new settings all the same.
    let reader = partition.reader().unwrap();
    topics
        .replace_settings(
            "t",
            &[
                ("max.message.bytes", Some("500")),
                ("stratalog.acknowledge.at", Some("written")),
                ("flush.ms", Some("250")),
                ("flush.messages", Some("10")),
                ("preallocate", Some("true")),
                ("retention.bytes", Some("1000")),
                ("retention.ms", Some("0")),
                ("compression.type", Some("zstd")),
                ("compression.zstd.level", Some("7")),
                ("segment.index.bytes", Some("4")),
                ("message.timestamp.after.max.ms", Some("9223372036854775807")),
            ],
            false,
        )
        .unwrap();
    let told = topic.settings();
    assert_eq!(told.log.fsync, FsyncPolicy::Interval(Duration::from_millis(250)));
    assert_eq!((told.flush_records, told.flush_age), (Some(10), Duration::from_millis(250)));
    assert_eq!(told.log.preallocate, Preallocate::Whole);
    assert_eq!(told.log.retention, Retention { bytes: Some(1000), age: Some(Duration::from_millis(1)) });
    assert_eq!(told.compression.map(|found| found.to_string()).as_deref(), Some("zstd:7"));
    assert_eq!(told.after_max_ms, None);
    assert_eq!(partition.reader().unwrap().options().follow, Follow::Written);
    assert_eq!(super::super::error_code::code_of(&append(600).unwrap_err()), ErrorCode::MESSAGE_TOO_LARGE);
    append(10).unwrap();
    assert_eq!(reader.written_end().value(), 2);
    assert_eq!(partition.high_watermark().unwrap().value(), 2);
    topics
        .replace_settings("t", &[("cleanup.policy", Some("compact")), ("flush.messages", Some("1"))], false)
        .unwrap();
    assert!(topic.settings().is_compacted && topic.settings().is_durable);
    assert_eq!(topic.settings().log.retention, Retention::default());
    assert!(append(600).is_ok());
    // Refused or only checked: nothing changes.
    topics.replace_settings("t", &[("flush.ms", Some("9"))], true).unwrap();
    topics.replace_settings("t", &[("flush.ms", Some("x"))], false).unwrap_err();
    assert!(topic.settings().is_compacted);
}

#[test]
fn unreadable_settings_of_a_topic_delete_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let topics = open(temp.path(), "");
    topics.create(&new("t", 1, &[("retention.ms", "-1")]), false).unwrap();
    drop(topics);
    let path = temp.path().join("t-0/.stratalog-topic");
    std::fs::write(&path, "garbage").unwrap();
    let topics = open(temp.path(), "log.retention.ms=1\n");
    assert_eq!(topics.by_name("t").unwrap().settings().log.retention, Retention::default());
    topics.change_settings("t", &[("retention.ms", Change::Set, Some("5"))], false).unwrap();
    drop(topics);
    let topics = open(temp.path(), "");
    let age = topics.by_name("t").unwrap().settings().log.retention.age;
    assert_eq!(age, Some(Duration::from_millis(5)));
}
