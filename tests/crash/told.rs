//! What a store keeps besides records: topics' own settings, more partitions, producer ids; the power cut at every step.

use std::{collections::BTreeMap, ops::Range, path::Path};

use stratalog::{
    AppendOptions, FsyncPolicy, Store, StoreConfig,
    record::Record,
    sim::{Chance, Everything, Nothing, Recording, Survival},
};

use super::run::{config, scratch};

type Told = BTreeMap<String, String>;

/// What the store has of the topic: its settings and how many partitions; `None` where it is not there.
type Topic = Option<(Told, usize)>;

struct Step {
    began: usize,
    ended: usize,
    after: Topic,
    ids: Vec<Range<i64>>,
}

fn settings() -> StoreConfig {
    let mut settings = StoreConfig::default();
    settings.log = config(FsyncPolicy::Commit);
    settings
}

fn told(pairs: &[(&str, &str)]) -> Told {
    pairs.iter().map(|(word, value)| ((*word).to_owned(), (*value).to_owned())).collect()
}

fn found(store: &Store) -> Topic {
    let topic = store.topics().into_iter().find(|topic| topic.name == "t")?;
    assert_eq!(topic.partitions, (0..).take(topic.partitions.len()).collect::<Vec<_>>(), "no gap");
    Some((store.topic_settings("t").unwrap(), topic.partitions.len()))
}

fn check(into: &Path, steps: &[Step], now: usize, what: &str) {
    let store = Store::open(into.join("data"), settings()).unwrap();
    let before: Vec<_> = steps.iter().filter(|step| step.ended <= now).collect();
    let begun = steps.iter().find(|step| step.began <= now && now < step.ended);
    let done = before.last().and_then(|step| step.after.clone());
    let found = found(&store);
    let between = match (&found, &done, begun.map(|step| &step.after)) {
        // Of new partitions the first so many may be there.
        (Some((told, count)), Some((was, least)), Some(Some((will, most)))) => {
            (told == was || told == will) && (least..=most).contains(&count)
        }
        (found, done, after) => *found == *done || after.is_some_and(|after| *found == *after),
    };
    assert!(between, "{what}: {found:?}, after {done:?}");
    let next = store.reserve_producer_ids(10).unwrap();
    for given in before.iter().flat_map(|step| &step.ids) {
        assert!(next.end <= given.start || given.end <= next.start, "{what}: {next:?} was given: {given:?}");
    }
    // What was made is as usable as any.
    if let Some((_, count)) = found {
        let last = i32::try_from(count).unwrap() - 1;
        let log = store.log("t", last).unwrap();
        log.append_records(&[Record::value_only(b"v")], AppendOptions::default()).unwrap();
    }
}

#[test]
fn what_was_told_and_given_holds_wherever_the_power_is_cut() {
    let root = scratch();
    let recording = Recording::install(root.path()).unwrap();
    let store = Store::open(root.path().join("data"), settings()).unwrap();
    let mut steps = Vec::new();
    let mut step = |act: &dyn Fn(&Store) -> Vec<Range<i64>>| {
        let began = recording.event_count();
        let ids = act(&store);
        steps.push(Step { began, ended: recording.event_count(), after: found(&store), ids });
    };
    let nothing = Vec::new;
    step(&|store| vec![store.reserve_producer_ids(1000).unwrap()]);
    step(&|store| {
        store.create_topic_with("t", 1, &told(&[("retention.ms", "-1")])).unwrap();
        nothing()
    });
    step(&|store| vec![store.reserve_producer_ids(1000).unwrap(), store.reserve_producer_ids(5).unwrap()]);
    step(&|store| {
        store
            .set_topic_settings("t", &told(&[("retention.ms", "5"), ("cleanup.policy", "compact")]))
            .unwrap();
        nothing()
    });
    step(&|store| {
        store.create_partitions("t", 4).unwrap();
        nothing()
    });
    step(&|store| {
        store.set_topic_settings("t", &told(&[])).unwrap();
        nothing()
    });
    let events = recording.events();
    println!("{} events", events.len());
    let mut image = recording.image(0);
    for (now, event) in std::iter::once(None).chain(events.iter().map(Some)).enumerate() {
        if let Some(event) = event {
            image.advance(event);
        }
        let mut cuts: Vec<(&str, Box<dyn Survival>)> =
            vec![("nothing", Box::new(Nothing)), ("everything", Box::new(Everything))];
        for seed in 0..2 {
            let seed = seed * 7919 + now as u64;
            cuts.push(("some", Box::new(Chance::new(seed, 50, seed.is_multiple_of(2)))));
        }
        for (name, mut survival) in cuts {
            let into = scratch();
            image.materialize(&mut *survival, into.path()).unwrap();
            check(into.path(), &steps, now, &format!("event {now} {event:?}, {name} survives"));
        }
    }
}
