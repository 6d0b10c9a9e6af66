//! A store: topics made and removed, logs appended to, closed; the power cut at every step of it.

use std::{collections::BTreeMap, fs, path::Path};

use stratalog::{
    AppendOptions, Error, FsyncPolicy, Store, StoreConfig,
    record::Record,
    sim::{Chance, Everything, Fault, Nothing, Recording, Survival},
};

use super::run::{config, scratch};

/// The records of each partition of each topic.
type Contents = BTreeMap<String, Vec<Vec<String>>>;

/// What a step made of the store, and between which events.
struct Step {
    began: usize,
    ended: usize,
    after: Contents,
}

struct StoreRun {
    recording: Recording,
    store: Store,
    contents: Contents,
    steps: Vec<Step>,
}

fn settings() -> StoreConfig {
    let mut settings = StoreConfig::default();
    settings.log = config(FsyncPolicy::Commit);
    settings
}

impl StoreRun {
    fn step(&mut self, act: impl FnOnce(&Store, &mut Contents)) {
        let began = self.recording.event_count();
        act(&self.store, &mut self.contents);
        let ended = self.recording.event_count();
        self.steps.push(Step { began, ended, after: self.contents.clone() });
    }

    fn create(&mut self, topic: &str, partitions: i32) {
        self.step(|store, contents| {
            store.create_topic(topic, partitions).unwrap();
            contents.insert(topic.to_owned(), (0..partitions).map(|_| Vec::new()).collect());
        });
    }

    fn delete(&mut self, topic: &str) {
        self.step(|store, contents| {
            store.delete_topic(topic).unwrap();
            contents.remove(topic);
        });
    }

    fn append(&mut self, topic: &str, partition: i32, value: &str) {
        self.step(|store, contents| {
            let log = store.log(topic, partition).unwrap();
            log.append_records(&[Record::value_only(value.as_bytes())], AppendOptions::default()).unwrap();
            let partitions = contents.get_mut(topic).unwrap();
            partitions[usize::try_from(partition).unwrap()].push(value.to_owned());
        });
    }
}

fn found(store: &Store) -> Contents {
    let mut found = Contents::new();
    for topic in store.topics() {
        assert_eq!(topic.partitions, (0..).take(topic.partitions.len()).collect::<Vec<_>>(), "{topic:?}");
        let logs = topic.partitions.iter().map(|partition| {
            let log = store.log(&topic.name, *partition).unwrap();
            let reader = log.reader().unwrap();
            let value = |record: stratalog::record::OwnedRecord| {
                String::from_utf8(record.value.unwrap_or_default().to_vec()).unwrap()
            };
            reader.owned_records(reader.start()).map(|record| value(record.unwrap())).collect()
        });
        found.insert(topic.name.clone(), logs.collect());
    }
    found
}

/// A broker does not start over a directory that is neither a partition nor one that was deleted.
fn assert_broker_starts(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let is_deleted = name.ends_with("-delete") && name.len() > 40;
            let number = name.rsplit_once('-').map_or("", |(_, number)| number);
            assert!(is_deleted || number.parse::<u32>().is_ok(), "{name}");
        }
    }
}

/// What is found must be what a step that was done left, or one that was begun.
fn check(into: &Path, steps: &[Step], now: usize, what: &str) {
    if into.join("data").exists() {
        assert_broker_starts(&into.join("data"));
    }
    let mut done = Contents::new();
    let mut allowed = Vec::new();
    for step in steps {
        if step.ended <= now {
            done.clone_from(&step.after);
        } else if step.began <= now {
            allowed.push(step.after.clone());
        }
    }
    allowed.push(done);
    for round in 0..2 {
        let store = Store::open(into.join("data"), settings()).unwrap();
        let found = found(&store);
        assert!(allowed.contains(&found), "{what}, open {round}: {found:?}, not one of {allowed:?}");
        // What is there now stays.
        allowed = vec![found];
        let mut left = fs::read_dir(into.join("data")).unwrap();
        let is_left = |entry: std::io::Result<fs::DirEntry>| {
            entry.unwrap().file_name().to_str().is_some_and(|name| name.ends_with("-delete"))
        };
        assert!(!left.any(is_left), "{what}: a deleted directory is left");
        if round == 0 {
            assert!(store.close().unwrap(), "{what}: every log was opened and is clean");
            assert!(into.join("data/.kafka_cleanshutdown").exists());
        }
    }
}

#[test]
fn topics_are_whole_or_not_there_wherever_the_power_is_cut() {
    let root = scratch();
    let recording = Recording::install(root.path()).unwrap();
    let store = Store::open(root.path().join("data"), settings()).unwrap();
    let mut run = StoreRun { recording, store, contents: Contents::new(), steps: Vec::new() };
    run.create("a", 2);
    run.append("a", 0, "one");
    run.create("b", 3);
    run.append("b", 2, "two");
    run.append("a", 1, "three");
    run.step(|store, _| drop(store.maintain().unwrap()));
    run.delete("a");
    run.create("a", 1);
    run.append("a", 0, "four");
    run.step(|store, _| assert!(store.clone().close().unwrap()));
    let store = Store::open(root.path().join("data"), settings()).unwrap();
    run.store = store;
    run.append("b", 0, "five");
    run.delete("b");
    let events = run.recording.events();
    println!("{} events", events.len());
    let mut image = run.recording.image(0);
    for (now, event) in std::iter::once(None).chain(events.iter().map(Some)).enumerate() {
        if let Some(event) = event {
            image.advance(event);
        }
        let mut cuts: Vec<(&str, Box<dyn Survival>)> =
            vec![("nothing", Box::new(Nothing)), ("everything", Box::new(Everything))];
        for seed in 0..3 {
            let seed = seed * 7919 + now as u64;
            cuts.push(("some", Box::new(Chance::new(seed, 50, seed.is_multiple_of(2)))));
        }
        for (name, mut survival) in cuts {
            let into = scratch();
            image.materialize(&mut *survival, into.path()).unwrap();
            check(into.path(), &run.steps, now, &format!("event {now} {event:?}, {name} survives"));
        }
    }
}

/// Every call that changes the disk fails once, and once for good: the store says so, goes on, and what it said of the
/// topic is what the next open finds.
#[test]
fn a_creation_or_deletion_that_fails_leaves_the_topic_or_nothing() {
    for (is_deletion, is_for_good) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut reached = 0;
        while fail_once(is_deletion, is_for_good, reached) {
            reached += 1;
        }
        assert!(reached > 10, "deletion {is_deletion}: {reached} calls");
    }
}

/// False where there was no such call.
fn fail_once(is_deletion: bool, is_for_good: bool, after: usize) -> bool {
    const EIO: i32 = 5;
    let root = scratch();
    let recording = Recording::install(root.path()).unwrap();
    let dir = root.path().join("data");
    let store = Store::open(&dir, settings()).unwrap();
    store.create_topic("t", 2).unwrap();
    let append = |store: &Store, value: &str| {
        let log = store.log("t", 1)?;
        log.append_records(&[Record::value_only(value.as_bytes())], AppendOptions::default())
    };
    append(&store, "one").unwrap();
    let mut fault = Fault::nth(after, EIO);
    if is_for_good {
        fault.times = usize::MAX;
    }
    recording.fail(fault);
    let done = if is_deletion { store.delete_topic("t") } else { store.create_topic("new", 3).map(|_| ()) };
    let was_reached = done.is_err() || !recording.is_failing();
    recording.heal();
    let what = format!("deletion {is_deletion}, for good {is_for_good}, call {after}: {done:?}");
    let is_usable = match append(&store, "two") {
        Ok(_) => true,
        Err(Error::NotFound { .. }) => false,
        Err(error) => panic!("{what}: {error}"),
    };
    assert!(is_usable || is_deletion, "{what}");
    if done.is_ok() {
        assert_eq!(is_usable, !is_deletion, "{what}");
    }
    let reopened = |store: Store| {
        drop(store);
        found(&Store::open(&dir, settings()).unwrap())
    };
    if is_deletion && !is_usable {
        // Begun is begun: ended by another call, or by the next open.
        let is_again = after.is_multiple_of(2) && done.is_err();
        if is_again {
            match store.delete_topic("t") {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => panic!("{what}: {error}"),
            }
        }
        let found = reopened(store);
        let is_whole =
            found.get("t").is_some_and(|partitions| *partitions == [vec![], vec!["one".to_owned()]]);
        assert!(found.is_empty() || is_whole && !is_again && done.is_err(), "{what}: {found:?}");
    } else if is_deletion {
        assert_eq!(found(&store)["t"][1], ["one", "two"], "{what}");
        store.delete_topic("t").unwrap();
    } else if done.is_err() && !is_for_good {
        assert!(store.log("new", 0).is_err(), "{what}");
        store.create_topic("new", 1).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = reopened(store);
        assert_eq!(found["new"], [[""; 0]], "{what}");
        assert_eq!(found["t"][1], ["one", "two"], "{what}");
    } else {
        let found = reopened(store);
        assert_eq!(found["t"][1], ["one", "two"], "{what}");
        assert!(found.get("new").is_none_or(|new| new.len() == 3), "{what}: {found:?}");
    }
    was_reached
}
