//! What happened to one partition, as its clients were told, and what is wrong with that.
//!
//! Each producer numbers what it sends to a partition: 0, 1, 2.. Then a history tells on its own whether a record was lost,
//! came twice, came from nowhere, changed its place, or was shown and then taken back.

use std::collections::{BTreeMap, BTreeSet};

/// One record: who sent it, and its number among all that he sent to this partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sent {
    pub(crate) producer: u16,
    pub(crate) number: u32,
}

/// What a consumer was told, in the order in which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The high watermark and the first offset, of any response.
    Bounds { end: i64, start: i64 },
    /// That its place is below the first offset, which is this one: it goes on there.
    Skipped(i64),
    /// A record.
    Record(i64, Sent),
}

#[derive(Debug, Default)]
pub(crate) struct History {
    /// How many records each producer sent.
    pub(crate) sent: BTreeMap<u16, u32>,
    /// The offsets that were acknowledged.
    pub(crate) acknowledged: Vec<(i64, Sent)>,
    pub(crate) consumers: Vec<Vec<Told>>,
    /// The first offset in the end, and all that is there.
    pub(crate) start: i64,
    pub(crate) stored: Vec<(i64, Sent)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Acknowledged at an offset where nothing is, or something else.
    Lost { offset: i64, sent: Sent, there: Option<Sent> },
    /// Nobody sent it.
    Phantom { offset: i64, sent: Sent },
    /// It is there twice.
    Duplicate { first: i64, second: i64, sent: Sent },
    /// It lies behind a later one of the same producer.
    Reordered { offset: i64, sent: Sent, behind: u32 },
    /// Offsets, ends or starts that a consumer was told went back.
    WentBack { consumer: usize, told: Told, had: i64 },
    /// A consumer was not shown what lies between.
    Hole { consumer: usize, from: i64, to: i64 },
    /// A consumer was shown something at or above the high watermark of the same answer.
    AboveEnd { consumer: usize, offset: i64, end: i64 },
    /// Shown once, and then something else or nothing.
    Changed { consumer: usize, offset: i64, shown: Sent, there: Option<Sent> },
    /// The log itself has offsets that go back or leave some out.
    Gap { from: i64, to: i64 },
}

impl History {
    /// All that is wrong, nothing where all is well. What is deleted by now is known by what consumers saw of it.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut log: BTreeMap<i64, Sent> = BTreeMap::new();
        let mut next = self.start;
        for (offset, sent) in &self.stored {
            if *offset != next {
                faults.push(Fault::Gap { from: next, to: *offset });
            }
            next = offset + 1;
            log.insert(*offset, *sent);
        }
        for (consumer, told) in self.consumers.iter().enumerate() {
            self.see(consumer, told, &mut log, &mut faults);
        }
        for (offset, sent) in &self.acknowledged {
            match log.get(offset) {
                Some(there) if there == sent => {}
                None if *offset < self.start => {}
                there => {
                    faults.push(Fault::Lost { offset: *offset, sent: *sent, there: there.copied() });
                }
            }
        }
        let mut seen: BTreeMap<Sent, i64> = BTreeMap::new();
        let mut newest: BTreeMap<u16, u32> = BTreeMap::new();
        for (offset, sent) in &log {
            let (offset, sent) = (*offset, *sent);
            if self.sent.get(&sent.producer).is_none_or(|count| sent.number >= *count) {
                faults.push(Fault::Phantom { offset, sent });
            } else if let Some(first) = seen.get(&sent) {
                faults.push(Fault::Duplicate { first: *first, second: offset, sent });
            } else {
                let newest = newest.entry(sent.producer).or_insert(sent.number);
                if *newest > sent.number {
                    faults.push(Fault::Reordered { offset, sent, behind: *newest });
                }
                *newest = sent.number.max(*newest);
                seen.insert(sent, offset);
            }
        }
        faults
    }

    /// What one consumer was told. Adds to the log what is deleted by now.
    fn see(&self, consumer: usize, told: &[Told], log: &mut BTreeMap<i64, Sent>, faults: &mut Vec<Fault>) {
        let (mut last_end, mut last_start, mut next) = (0, 0, None);
        for told in told {
            match *told {
                Told::Bounds { end, start } => {
                    for (value, last) in [(end, &mut last_end), (start, &mut last_start)] {
                        if value < *last {
                            faults.push(Fault::WentBack { consumer, told: *told, had: *last });
                        }
                        *last = value;
                    }
                }
                Told::Skipped(to) => {
                    if next.is_some_and(|next| to < next) {
                        faults.push(Fault::WentBack { consumer, told: *told, had: next.unwrap_or(0) });
                    }
                    next = Some(to);
                }
                Told::Record(offset, shown) => {
                    let expected = next.unwrap_or(offset);
                    if offset < expected {
                        faults.push(Fault::WentBack { consumer, told: *told, had: expected });
                    } else if offset > expected {
                        faults.push(Fault::Hole { consumer, from: expected, to: offset });
                    }
                    if offset >= last_end {
                        faults.push(Fault::AboveEnd { consumer, offset, end: last_end });
                    }
                    next = Some(offset + 1);
                    let there = match log.get(&offset) {
                        None if offset < self.start => Some(*log.entry(offset).or_insert(shown)),
                        there => there.copied(),
                    };
                    if there != Some(shown) {
                        faults.push(Fault::Changed { consumer, offset, shown, there });
                    }
                }
            }
        }
    }

    /// Records that were acknowledged, and how many of them were seen to be there.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let mut known: BTreeSet<i64> = self.stored.iter().map(|(offset, _)| *offset).collect();
        known.extend(self.consumers.iter().flatten().filter_map(|told| match told {
            Told::Record(offset, _) => Some(*offset),
            _ => None,
        }));
        let found = self.acknowledged.iter().filter(|(offset, _)| known.contains(offset)).count();
        (self.acknowledged.len(), found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sent(producer: u16, number: u32) -> Sent {
        Sent { producer, number }
    }

    /// Two producers, five records, of which the first two were deleted after one of two consumers had seen them.
    fn good() -> History {
        let records = [(0, sent(1, 0)), (1, sent(2, 0)), (2, sent(1, 1)), (3, sent(1, 2)), (4, sent(2, 1))];
        let record = |at: usize| Told::Record(records[at].0, records[at].1);
        let bounds = |start, end| Told::Bounds { end, start };
        let early =
            vec![bounds(0, 2), record(0), record(1), bounds(0, 4), record(2), bounds(2, 5), record(3)];
        let late =
            vec![bounds(0, 1), record(0), Told::Skipped(2), bounds(2, 5), record(2), record(3), record(4)];
        History {
            sent: [(1, 3), (2, 3)].into(),
            acknowledged: records.to_vec(),
            consumers: vec![early, late],
            start: 2,
            stored: records[2..].to_vec(),
        }
    }

    fn faults(change: impl FnOnce(&mut History)) -> Vec<Fault> {
        let mut history = good();
        change(&mut history);
        history.faults()
    }

    #[test]
    fn a_good_history_has_no_fault() {
        assert_eq!(good().faults(), []);
        assert_eq!(good().counts(), (5, 5));
    }

    #[test]
    fn what_was_acknowledged_and_is_not_there_is_lost() {
        let (offset, sent) = (4, sent(2, 1));
        let cut = |history: &mut History| {
            history.stored.pop();
            history.consumers[1].pop();
        };
        assert_eq!(faults(cut), [Fault::Lost { offset, sent, there: None }]);
        let elsewhere = |history: &mut History| history.acknowledged[4].0 = 3;
        assert_eq!(
            faults(elsewhere),
            [Fault::Lost { offset: 3, sent, there: Some(Sent { producer: 1, number: 2 }) }]
        );
        // Where nobody saw it before it was deleted nothing can be said.
        assert_eq!(faults(|history| history.consumers.clear()), []);
    }

    #[test]
    fn what_nobody_sent_is_a_phantom() {
        assert_eq!(
            faults(|history| history.sent = [(1, 3), (2, 1)].into()),
            [Fault::Phantom { offset: 4, sent: sent(2, 1) }]
        );
        // A consumer's word is enough, also for what is deleted by now.
        let foreign = |history: &mut History| {
            history.consumers.truncate(1);
            history.consumers[0][1] = Told::Record(0, sent(9, 0));
            history.acknowledged.remove(0);
        };
        assert_eq!(faults(foreign), [Fault::Phantom { offset: 0, sent: sent(9, 0) }]);
    }

    #[test]
    fn what_is_there_twice_is_a_duplicate() {
        let again = |history: &mut History| history.stored.push((5, sent(1, 2)));
        assert_eq!(faults(again), [Fault::Duplicate { first: 3, second: 5, sent: sent(1, 2) }]);
        // The first of them deleted by now.
        let again = |history: &mut History| history.stored.push((5, sent(2, 0)));
        assert_eq!(faults(again), [Fault::Duplicate { first: 1, second: 5, sent: sent(2, 0) }]);
    }

    #[test]
    fn what_lies_behind_a_later_one_is_reordered() {
        let swapped = |history: &mut History| {
            history.consumers.clear();
            history.acknowledged.clear();
            (history.stored[0].1, history.stored[1].1) = (history.stored[1].1, history.stored[0].1);
        };
        assert_eq!(faults(swapped), [Fault::Reordered { offset: 3, sent: sent(1, 1), behind: 2 }]);
    }

    #[test]
    fn what_goes_back_for_a_consumer_is_told() {
        let record = Told::Record(2, sent(1, 1));
        assert_eq!(
            faults(|history| history.consumers[0].push(record)),
            [Fault::WentBack { consumer: 0, told: record, had: 4 }]
        );
        for told in [Told::Bounds { end: 4, start: 2 }, Told::Bounds { end: 5, start: 1 }] {
            let found = faults(|history| history.consumers[0].push(told));
            assert!(matches!(found[..], [Fault::WentBack { consumer: 0, .. }]), "{found:?}");
        }
        let skipped = Told::Skipped(1);
        assert_eq!(
            faults(|history| history.consumers[0].push(skipped)),
            [Fault::WentBack { consumer: 0, told: skipped, had: 4 }]
        );
    }

    #[test]
    fn what_a_consumer_is_not_shown_is_a_hole() {
        let skip = |history: &mut History| {
            history.consumers[1].remove(4);
        };
        assert_eq!(faults(skip), [Fault::Hole { consumer: 1, from: 2, to: 3 }]);
        assert_eq!(
            faults(|history| {
                history.stored.remove(1);
            }),
            [
                Fault::Gap { from: 3, to: 4 },
                Fault::Changed { consumer: 0, offset: 3, shown: sent(1, 2), there: None },
                Fault::Changed { consumer: 1, offset: 3, shown: sent(1, 2), there: None },
                Fault::Lost { offset: 3, sent: sent(1, 2), there: None }
            ]
        );
    }

    #[test]
    fn what_is_shown_and_is_something_else_later_is_told() {
        let other = |history: &mut History| history.consumers[0][6] = Told::Record(3, sent(2, 1));
        let found = faults(other);
        let there = Some(sent(1, 2));
        assert_eq!(found, [Fault::Changed { consumer: 0, offset: 3, shown: sent(2, 1), there }]);
        // What one consumer saw and another saw otherwise, deleted by now.
        let other = |history: &mut History| history.consumers[1][1] = Told::Record(0, sent(2, 0));
        let there = Some(sent(1, 0));
        assert_eq!(faults(other), [Fault::Changed { consumer: 1, offset: 0, shown: sent(2, 0), there }]);
        // Shown above the end, which is taken back by a crash.
        let above = |history: &mut History| history.consumers[0].push(Told::Record(4, sent(2, 1)));
        assert_eq!(faults(above), []);
        let gone = |history: &mut History| {
            history.consumers[0].extend([Told::Record(4, sent(2, 1)), Told::Record(5, sent(2, 2))]);
        };
        assert_eq!(
            faults(gone),
            [
                Fault::AboveEnd { consumer: 0, offset: 5, end: 5 },
                Fault::Changed { consumer: 0, offset: 5, shown: sent(2, 2), there: None }
            ]
        );
    }
}
