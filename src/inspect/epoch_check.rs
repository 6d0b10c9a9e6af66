//! `leader-epoch-checkpoint` held against the epochs that the batches carry.

use crate::offset::Offset;

/// Which epochs a log's batches carry, and where. Where epochs go back, those above the lower one are left out: a broker
/// forgets them too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EpochRuns {
    /// Rising in both.
    runs: Vec<Run>,
}

/// Batches of one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    epoch: i32,
    /// Where the first batch begins, and the last.
    first: Offset,
    last: Offset,
}

/// A batch, and what the file says of its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contradiction {
    pub(super) batch: Offset,
    pub(super) epoch: i32,
    pub(super) named: (i32, Offset),
}

impl EpochRuns {
    /// The next batch, or several of one epoch. One without an epoch (-1) tells nothing.
    pub(super) fn note(&mut self, epoch: i32, first: Offset, last: Offset) {
        if epoch < 0 {
            return;
        }
        while self.runs.last().is_some_and(|run| run.epoch > epoch) {
            self.runs.pop();
        }
        match self.runs.last_mut() {
            Some(run) if run.epoch == epoch => run.last = last,
            _ => self.runs.push(Run { epoch, first, last }),
        }
    }

    /// The batches of the segment that follows.
    pub(super) fn extend(&mut self, next: &Self) {
        for run in &next.runs {
            self.note(run.epoch, run.first, run.last);
        }
    }

    /// The first batch whose epoch is not the one that the file names there. Offsets before its first entry it says
    /// nothing of.
    pub(super) fn contradiction(&self, entries: &[(i32, Offset)]) -> Option<Contradiction> {
        let places = self.runs.iter().flat_map(|run| [(run.first, run.epoch), (run.last, run.epoch)]);
        places.into_iter().find_map(|(batch, epoch)| {
            let named = *entries.iter().rfind(|entry| entry.1 <= batch)?;
            (named.0 != epoch).then_some(Contradiction { batch, epoch, named })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(value: i64) -> Offset {
        Offset::new(value).unwrap()
    }

    fn runs(batches: &[(i32, i64)]) -> EpochRuns {
        let mut runs = EpochRuns::default();
        for (epoch, base) in batches {
            runs.note(*epoch, at(*base), at(*base));
        }
        runs
    }

    fn fits(batches: &[(i32, i64)], entries: &[(i32, i64)]) -> bool {
        let entries: Vec<_> = entries.iter().map(|(epoch, start)| (*epoch, at(*start))).collect();
        runs(batches).contradiction(&entries).is_none()
    }

    #[test]
    fn a_file_fits_whose_entries_name_each_batchs_epoch() {
        let log = [(0, 0), (0, 10), (-1, 20), (1, 30), (1, 40)];
        assert!(fits(&log, &[(0, 0), (1, 30)]));
        assert!(
            fits(&log, &[(0, 0), (1, 25), (2, 50)]),
            "an epoch without batches yet, one whose first are compacted"
        );
        assert!(fits(&log, &[(1, 30)]), "what is not noted is not contradicted");
        assert!(fits(&log, &[]));
        assert!(!fits(&log, &[(0, 0), (1, 30), (2, 35)]));
        assert!(!fits(&log, &[(0, 0), (1, 5)]));
        assert!(!fits(&log, &[(0, 0)]));
        assert!(!fits(&log, &[(2, 0)]));
    }

    #[test]
    fn where_epochs_go_back_the_lower_ones_count() {
        let log = [(0, 0), (5, 10), (2, 20), (2, 30)];
        assert!(fits(&log, &[(0, 0), (2, 20)]) && fits(&log, &[(0, 0), (2, 10)]));
        assert!(!fits(&log, &[(0, 0), (5, 10)]));
        let mut first = runs(&log[..2]);
        first.extend(&runs(&log[2..]));
        assert_eq!(first, runs(&log));
    }
}
