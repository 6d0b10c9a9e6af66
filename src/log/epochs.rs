//! `leader-epoch-checkpoint`: which leader epoch began where (Kafka: `LeaderEpochFileCache`).
//!
//! Every cut begins a new epoch. A reader that keeps the epoch of the last batch it read learns from this file whether
//! the records it read are still the log's.

use std::ffi::OsStr;

use crate::{error::Result, offset::Offset, sys::Dir};

/// The file's name, Kafka's.
pub(crate) const EPOCHS_NAME: &str = "leader-epoch-checkpoint";
const VERSION: &str = "0";
const MAX_BYTES: usize = 16 << 20;

/// The epochs of a log, oldest first; epochs and start offsets both rise strictly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epochs {
    entries: Vec<(i32, Offset)>,
}

impl Epochs {
    /// Reads the directory's file. `Err` has what is wrong with it; an absent or empty file has no entries.
    pub(crate) fn load(dir: &Dir) -> Result<Self, String> {
        match dir.read_small(EPOCHS_NAME, MAX_BYTES) {
            Ok(None) => Ok(Self::default()),
            Ok(Some(bytes)) => Self::parse(&bytes),
            Err(error) => Err(error.to_string()),
        }
    }

    /// True where the directory has a file of them that can be read, even one without entries.
    pub(crate) fn are_stored(dir: &Dir) -> bool {
        dir.exists(EPOCHS_NAME).unwrap_or(false) && Self::load(dir).is_ok()
    }

    /// Rewrites the directory's file, durably.
    pub(crate) fn store(&self, dir: &Dir, mode: u32) -> Result<()> {
        Ok(dir.write_replace(EPOCHS_NAME, self.render().as_bytes(), mode)?)
    }

    /// The same without the sync of the directory.
    pub(crate) fn store_unsynced(&self, dir: &Dir, mode: u32) -> Result<()> {
        let temporary = format!("{EPOCHS_NAME}.tmp");
        let (name, temporary) = (OsStr::new(EPOCHS_NAME), OsStr::new(&temporary));
        Ok(dir.replace(name, temporary, self.render().as_bytes(), mode, true)?)
    }

    fn render(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!("{VERSION}\n{}\n", self.entries.len());
        for (epoch, start) in &self.entries {
            let _ = writeln!(text, "{epoch} {start}");
        }
        text
    }

    /// Reads the text of the file. Strict, as Kafka is: version, count, and as many lines of two numbers.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| format!("{EPOCHS_NAME}: not text"))?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        let wrong = |what: &str| format!("{EPOCHS_NAME}: {what}");
        // The last number of a file that was cut in it is another number.
        if !text.ends_with('\n') {
            return Err(wrong("cut short"));
        }
        let mut lines = text.lines();
        if lines.next().map(str::trim) != Some(VERSION) {
            return Err(wrong("unknown version"));
        }
        let count: usize =
            lines.next().and_then(|line| line.trim().parse().ok()).ok_or_else(|| wrong("no count"))?;
        let mut epochs = Self::default();
        for line in lines.filter(|line| !line.trim().is_empty()) {
            let mut words = line.split_ascii_whitespace();
            let entry = (|| {
                let epoch: i32 = words.next()?.parse().ok().filter(|epoch| *epoch >= 0)?;
                let start = Offset::new(words.next()?.parse().ok()?)?;
                words.next().is_none().then_some((epoch, start))
            })();
            let Some((epoch, start)) = entry else { return Err(wrong("malformed line")) };
            if epochs.entries.last().is_some_and(|last| epoch <= last.0 || start < last.1) {
                return Err(wrong("epochs or offsets go back"));
            }
            epochs.entries.push((epoch, start));
        }
        if epochs.entries.len() == count { Ok(epochs) } else { Err(wrong("the count does not match")) }
    }

    /// The epoch that the next batch gets, if one is known.
    pub(crate) fn latest(&self) -> Option<i32> {
        self.entries.last().map(|entry| entry.0)
    }

    /// All entries, oldest first.
    pub(crate) fn entries(&self) -> &[(i32, Offset)] {
        &self.entries
    }

    /// Notes that `epoch` begins at `start`; what is noted from there on is dropped. True where anything changed.
    pub(crate) fn assign(&mut self, epoch: i32, start: Offset) -> bool {
        if epoch < 0 || self.entries.last().is_some_and(|last| last.0 == epoch && start >= last.1) {
            return false;
        }
        self.entries.retain(|entry| entry.0 < epoch && entry.1 < start);
        self.entries.push((epoch, start));
        true
    }

    /// Notes that batches of `epoch` begin at `start`, or go on there. Epochs above it that began before go, carried by
    /// batches or by none: else `epoch` would seem to have ended where they begin, and whoever reads these batches would
    /// be told of a cut. True where anything changed.
    pub(crate) fn follow(&mut self, epoch: i32, start: Offset) -> bool {
        if epoch < 0 || self.latest() == Some(epoch) {
            return false;
        }
        self.entries.retain(|entry| entry.0 <= epoch && entry.1 < start);
        if self.latest() != Some(epoch) {
            self.entries.push((epoch, start));
        }
        true
    }

    /// Drops what begins at `end` or later. True where anything changed.
    pub(crate) fn truncate_from_end(&mut self, end: Offset) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.1 < end);
        self.entries.len() != before
    }

    /// Drops what ended at or before `start`; the epoch that holds it begins there now. True where anything changed.
    pub(crate) fn truncate_from_start(&mut self, start: Offset) -> bool {
        let passed = self.entries.iter().take_while(|entry| entry.1 <= start).count();
        let Some(holder) = passed.checked_sub(1) else { return false };
        if holder == 0 && self.entries[0].1 == start {
            return false;
        }
        self.entries.drain(..holder);
        self.entries[0].1 = start;
        true
    }

    /// The largest epoch not above `epoch`, and where it ends; `None` where that cannot be said (Kafka: -1, -1).
    pub(crate) fn end_offset_for(&self, epoch: i32, end: Offset) -> Option<(i32, Offset)> {
        let latest = self.latest()?;
        if epoch == latest {
            return Some((epoch, end));
        }
        let next = self.entries.iter().position(|entry| entry.0 > epoch)?;
        let found = next.checked_sub(1).map_or(epoch, |before| self.entries[before].0);
        Some((found, self.entries[next].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(value: i64) -> Offset {
        Offset::new(value).unwrap()
    }

    fn epochs(entries: &[(i32, i64)]) -> Epochs {
        Epochs { entries: entries.iter().map(|(epoch, start)| (*epoch, at(*start))).collect() }
    }

    #[test]
    fn the_text_is_kafkas() {
        let two = epochs(&[(0, 0), (2, 900)]);
        assert_eq!(two.render(), "0\n2\n0 0\n2 900\n");
        assert_eq!(Epochs::parse(two.render().as_bytes()), Ok(two));
        assert_eq!(Epochs::parse(b""), Ok(Epochs::default()));
        assert_eq!(Epochs::parse(b"0\n0\n"), Ok(Epochs::default()));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "1\n0\n",
            "aa",
            "0\n",
            "0\n5\n0 0\n1 4\n",
            "0\n-1\n",
            "0\n1\n0\n",
            "0\n1\n0 0 0\n",
            "0\n1\n-1 0\n",
            "0\n1\n0 -4\n",
            "0\n2\n3 0\n2 5\n",
            "0\n2\n1 9\n2 5\n",
            "\0\0\0\0",
        ] {
            assert!(Epochs::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn assigning_drops_what_it_overrides() {
        let mut log = epochs(&[(0, 0), (1, 10), (2, 20)]);
        assert!(!log.assign(2, at(25)));
        assert!(log.assign(3, at(15)));
        assert_eq!(log, epochs(&[(0, 0), (1, 10), (3, 15)]));
        assert!(log.assign(1, at(12)));
        assert_eq!(log, epochs(&[(0, 0), (1, 12)]));
        assert!(!log.assign(-1, at(99)));
    }

    #[test]
    fn batches_of_lower_epochs_take_the_place_of_what_none_carries() {
        let mut log = epochs(&[(0, 0), (1, 10)]);
        assert!(log.follow(0, at(10)), "nothing had begun with 1");
        assert_eq!(log, epochs(&[(0, 0)]));
        assert!(!log.follow(0, at(15)) && !log.follow(-1, at(15)));
        assert!(log.follow(3, at(20)) && log.follow(2, at(30)));
        assert_eq!(log, epochs(&[(0, 0), (2, 30)]), "2 did not end where 3 began");
        assert!(log.follow(4, at(40)));
        assert_eq!(log, epochs(&[(0, 0), (2, 30), (4, 40)]));
    }

    #[test]
    fn the_ends_can_be_cut_off() {
        let mut log = epochs(&[(0, 0), (1, 10), (2, 20)]);
        assert!(log.truncate_from_end(at(20)));
        assert!(log.truncate_from_start(at(12)));
        assert_eq!(log, epochs(&[(1, 12)]));
        assert!(!log.truncate_from_start(at(5)));
        assert!(!log.truncate_from_start(at(12)));
    }

    #[test]
    fn an_epoch_ends_where_the_next_begins() {
        let log = epochs(&[(1, 10), (4, 20)]);
        assert_eq!(log.end_offset_for(4, at(30)), Some((4, at(30))));
        assert_eq!(log.end_offset_for(2, at(30)), Some((1, at(20))));
        assert_eq!(log.end_offset_for(0, at(30)), Some((0, at(10))));
        assert_eq!(log.end_offset_for(9, at(30)), None);
        assert_eq!(Epochs::default().end_offset_for(0, at(30)), None);
    }
}
