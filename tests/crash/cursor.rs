//! A cursor at every prefix of what was done to its file: what was committed is there, or what was being committed, and
//! never nothing and never an error.

use std::fs;

use stratalog::{
    Cursor, Position,
    sim::{Chance, Everything, Fault, Nothing, Recording, Survival},
};

use super::run::{at, scratch};

fn place(offset: i64) -> Position {
    Position { offset: at(offset), leader_epoch: Some(3) }
}

/// From this event on: what was certain, and what was on its way.
type Known = (usize, Option<i64>, Option<i64>);

/// Commits 1, 2, 3 and so on, with openings in between.
fn recorded(root: &std::path::Path) -> (Recording, Vec<Known>) {
    let recording = Recording::install(root).unwrap();
    let mut known = vec![];
    let mut certain = None;
    for round in 0..3 {
        let mut cursor = Cursor::open(root, "c").unwrap();
        assert_eq!(cursor.position(), certain.map(place));
        known.push((recording.event_count(), certain, certain));
        for step in 1..=4 {
            let next = round * 4 + step;
            known.push((recording.event_count(), certain, Some(next)));
            cursor.commit(place(next)).unwrap();
            certain = Some(next);
            known.push((recording.event_count(), certain, certain));
        }
    }
    (recording, known)
}

#[test]
fn no_crash_loses_a_committed_position() {
    let root = scratch();
    let (recording, known) = recorded(root.path());
    let events = recording.events();
    let mut image = recording.image(0);
    let mut states = 0;
    for prefix in 0..=events.len() {
        if let Some(last) = prefix.checked_sub(1) {
            image.advance(&events[last]);
        }
        let is_open = known.first().is_some_and(|(events, ..)| *events <= prefix);
        let (_, certain, coming) =
            known.iter().rfind(|(events, ..)| *events <= prefix).copied().unwrap_or((0, None, None));
        // A commit that began later than the last note is on its way too.
        let coming = known.iter().find(|(events, ..)| *events > prefix).map_or(coming, |(.., next)| *next);
        let mut survivals: Vec<Box<dyn Survival>> = vec![Box::new(Nothing), Box::new(Everything)];
        for seed in 0..12 {
            let keep = [50, 85, 15][usize::try_from(seed % 3).unwrap()];
            survivals.push(Box::new(Chance::new(prefix as u64 * 100 + seed, keep, seed % 2 == 0)));
        }
        for (nth, mut survival) in survivals.into_iter().enumerate() {
            let disk = scratch();
            image.materialize(&mut *survival, disk.path()).unwrap();
            let found = Cursor::open(disk.path(), "c");
            let mut found = found.unwrap_or_else(|error| panic!("prefix {prefix}, survival {nth}: {error}"));
            let position = found.position();
            assert!(
                position == certain.map(place) || position == coming.map(place),
                "prefix {prefix}, survival {nth}: {position:?} is neither {certain:?} nor {coming:?}"
            );
            assert!(is_open || position.is_none());
            // And it goes on.
            found.commit(place(1000)).unwrap();
            drop(found);
            assert_eq!(Cursor::open(disk.path(), "c").unwrap().position(), Some(place(1000)));
            states += 1;
        }
    }
    println!("cursor: {} events, {states} states", events.len());
}

#[test]
fn a_refused_call_loses_nothing_and_the_next_try_succeeds() {
    for errno in [5, 28] {
        for is_there in [true, false] {
            let mut nth = 0;
            while refuse(nth, errno, is_there) {
                nth += 1;
            }
            assert!(nth > 5, "only {nth} calls were refused");
        }
    }
}

/// Two commits of which the `nth` call that changes something is refused; false where there are fewer.
fn refuse(nth: usize, errno: i32, is_there: bool) -> bool {
    let root = scratch();
    let mut certain = is_there.then(|| place(1));
    if is_there {
        Cursor::open(root.path(), "c").unwrap().commit(place(1)).unwrap();
    }
    let recording = Recording::install(root.path()).unwrap();
    recording.fail(Fault::nth(nth, errno));
    let mut cursor = Cursor::open(root.path(), "c");
    if cursor.is_err() {
        recording.heal();
        cursor = Cursor::open(root.path(), "c");
    }
    let mut cursor = cursor.unwrap();
    for next in [2, 3] {
        assert_eq!(cursor.position(), certain, "call {nth}");
        if cursor.commit(place(next)).is_err() {
            assert_eq!(cursor.position(), certain, "call {nth}");
            recording.heal();
            cursor.commit(place(next)).unwrap();
        }
        certain = Some(place(next));
    }
    let was_refused = !recording.is_failing();
    recording.heal();
    drop(cursor);
    assert_eq!(Cursor::open(root.path(), "c").unwrap().position(), certain);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "call {nth} left something");
    was_refused
}
