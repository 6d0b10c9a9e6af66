//! The plain list: every answer is found by looking at all batches again.

use std::collections::BTreeSet;

use stratalog::{Isolation, LogReader, Offset};

use super::{filtered_as_by_a_client, offsets};
use crate::support::at;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Plain,
    Of(i64),
    Commit(i64),
    Abort(i64),
}

/// First offset, last offset, what it is.
type Batch = (i64, i64, What);

/// Producer, first offset, offset of the marker and whether it commits, if there is one.
type Transaction = (i64, i64, Option<(i64, bool)>);

#[derive(Clone, Debug, Default)]
pub struct Model {
    batches: Vec<Batch>,
}

impl Model {
    pub fn end_offset(&self) -> i64 {
        self.batches.last().map_or(0, |batch| batch.1 + 1)
    }

    /// Where the batches begin that lie at or past an offset.
    pub fn bases_from(&self, offset: i64) -> Vec<i64> {
        self.batches.iter().map(|batch| batch.0).filter(|base| *base >= offset).collect()
    }

    pub fn truncate(&mut self, end: i64) {
        self.batches.retain(|batch| batch.0 < end);
    }

    /// First offsets and producers of the transactions that are open in what is left from `start` on.
    pub fn open(&self, start: i64) -> Vec<(i64, i64)> {
        let transactions = Self::transactions(&self.seen(start, self.end_offset()));
        transactions.iter().filter(|found| found.2.is_none()).map(|open| (open.1, open.0)).collect()
    }

    pub fn data(&mut self, producer: Option<i64>, records: i64) {
        let base = self.end_offset();
        self.batches.push((base, base + records - 1, producer.map_or(What::Plain, What::Of)));
    }

    pub fn end(&mut self, producer: i64, commit: bool) {
        let base = self.end_offset();
        let what = if commit { What::Commit(producer) } else { What::Abort(producer) };
        self.batches.push((base, base, what));
    }

    /// What of the list a log from `start` to `hw` holds.
    fn seen(&self, start: i64, hw: i64) -> Vec<Batch> {
        self.batches.iter().copied().filter(|batch| batch.1 >= start && batch.1 < hw).collect()
    }

    /// Each transaction.
    fn transactions(batches: &[Batch]) -> Vec<Transaction> {
        let mut found = Vec::new();
        let producers: BTreeSet<i64> = batches
            .iter()
            .filter_map(|batch| if let What::Of(producer) = batch.2 { Some(producer) } else { None })
            .collect();
        for producer in producers {
            let mut first = None;
            for (base, _, what) in batches {
                match what {
                    What::Of(of) if *of == producer => first = first.or(Some(*base)),
                    What::Commit(of) | What::Abort(of) if *of == producer => {
                        if let Some(first) = first.take() {
                            found.push((producer, first, Some((*base, *what == What::Commit(producer)))));
                        }
                    }
                    _ => {}
                }
            }
            found.extend(first.map(|first| (producer, first, None)));
        }
        found
    }

    pub fn stable(&self, start: i64, hw: i64) -> i64 {
        let transactions = Self::transactions(&self.seen(start, hw));
        let open = transactions.iter().filter(|transaction| transaction.2.is_none()).map(|open| open.1);
        open.min().map_or(hw, |first| first.min(hw)).max(start)
    }

    fn visible(&self, start: i64, hw: i64, isolation: Isolation) -> Vec<i64> {
        let batches = self.seen(start, hw);
        let transactions = Self::transactions(&batches);
        let end = if isolation == Isolation::Committed { self.stable(start, hw) } else { hw };
        let mut visible = Vec::new();
        for (base, last, what) in batches {
            let is_left_out = match what {
                What::Plain => false,
                What::Commit(_) | What::Abort(_) => true,
                What::Of(producer) => {
                    isolation == Isolation::Committed
                        && transactions.iter().any(|(of, first, marker)| {
                            *of == producer
                                && *first <= base
                                && marker.is_some_and(|(marker, commit)| base < marker && !commit)
                        })
                }
            };
            if !is_left_out {
                visible.extend((base..=last).filter(|offset| (start..end).contains(offset)));
            }
        }
        visible
    }

    /// Every answer of a reader.
    pub fn check(&self, reader: &LogReader, start: i64, hw: i64) {
        let isolation = reader.options().isolation;
        let stable = self.stable(start, hw);
        assert_eq!(reader.last_stable_offset().unwrap().value(), stable, "{start}..{hw}: {self:?}");
        let end = if isolation == Isolation::Committed { stable } else { hw };
        assert_eq!(reader.end().value(), end, "{self:?}");
        let visible = self.visible(start, hw, isolation);
        assert_eq!(offsets(reader), visible, "{start}..{hw} {isolation:?}: {self:?}");
        if isolation == Isolation::Committed {
            assert_eq!(filtered_as_by_a_client(reader), visible, "{start}..{hw}: {self:?}");
        }
        for offset in start..end {
            let record = reader.record(at(offset)).unwrap();
            assert_eq!(record.is_some(), visible.contains(&offset), "record {offset}: {self:?}");
        }
        let open: Vec<(i64, i64)> = reader
            .open_transactions()
            .unwrap()
            .iter()
            .map(|open| (open.first_offset.value(), open.producer_id))
            .collect();
        let mut expected: Vec<(i64, i64)> = Self::transactions(&self.seen(start, hw))
            .iter()
            .filter(|transaction| transaction.2.is_none())
            .map(|open| (open.1, open.0))
            .collect();
        expected.sort_unstable();
        assert_eq!(open, expected, "{start}..{hw}: {self:?}");
        let step = usize::try_from((hw - start) / 5).unwrap().max(1);
        for from in (start..=hw).step_by(step) {
            for to in (from..=hw).step_by(step) {
                self.check_aborted(reader, (start, hw), (from, to));
            }
        }
    }

    fn check_aborted(&self, reader: &LogReader, (start, hw): (i64, i64), (from, to): (i64, i64)) {
        let aborted = |batches: &[Batch]| -> Vec<(i64, i64, i64)> {
            let ended = Self::transactions(batches).into_iter().filter_map(|(producer, first, marker)| {
                let (marker, commit) = marker?;
                (!commit).then_some((marker, producer, first))
            });
            ended.filter(|(marker, _, first)| *marker >= from && *first < to).collect()
        };
        let listed = reader.aborted_transactions(at(from)..at(to)).unwrap();
        let found: Vec<_> = listed
            .iter()
            .map(|aborted| (aborted.last_offset.value(), aborted.producer_id, aborted.first_offset.value()))
            .collect();
        assert!(found.is_sorted(), "{found:?}");
        // Of what lies below the start, some may be known yet, and is of no harm.
        let (mut least, most) = (aborted(&self.seen(start, hw)), aborted(&self.seen(0, hw)));
        least.sort_unstable();
        let what = format!("{from}..{to} of {start}..{hw}: {found:?}: {self:?}");
        for (marker, producer, _) in &least {
            assert!(found.iter().any(|found| (found.0, found.1) == (*marker, *producer)), "{what}");
        }
        for (marker, producer, first) in &found {
            let known = most.iter().find(|known| (known.0, known.1) == (*marker, *producer));
            let left = least.iter().find(|known| (known.0, known.1) == (*marker, *producer));
            assert!(known.is_some_and(|known| known.2 <= *first), "{what}");
            assert!(left.is_none_or(|left| *first <= left.2), "{what}");
        }
        if start == 0 {
            assert_eq!(found, least, "{what}");
            for aborted in &listed {
                // What was open once the marker was there.
                let after = aborted.last_offset.value() + 1;
                assert_eq!(aborted.last_stable_offset, at(self.stable(0, after)), "{what}");
            }
        }
    }

    /// The list without the batches from `end` on.
    pub fn cut(&mut self, end: Offset) {
        self.batches.retain(|batch| batch.0 < end.value());
    }
}
