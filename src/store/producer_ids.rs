//! Ids for producers: none is given twice, over any crash.
//!
//! Blocks of ids are taken from a counter in the data directory, which is moved on, durably, before the block is handed
//! out. What a crash leaves unused is never used.

use std::ops::Range;

use super::{
    Store,
    identity::Uuid,
    private_file::{self, Unreadable, Words},
};
use crate::error::{Error, Result};

/// The counter, in the data directory: a broker passes over plain files there.
pub(super) const PRODUCER_IDS_FILE: &str = ".stratalog-producer-ids";
const KIND: &str = "producer-ids";
const NEXT: &str = "next";
/// Brokers count from 0, and their ids and ours meet in one directory: ours begin far above.
const FIRST: i64 = 1 << 40;
/// Where there is no counter (yet, or any more), one begins at a random multiple of this: ids that another counter gave
/// are met with a chance of one in four thousand million. All stay below 2^53, which every language's numbers can hold.
const STRIDE: i64 = 1 << 20;

impl Store {
    /// Takes so many producer ids (at least 1) that nobody was given before. When it returns, that is durable: after a
    /// crash others are given.
    pub fn reserve_producer_ids(&self, count: u32) -> Result<Range<i64>> {
        let inner = &self.inner;
        let mut next = inner.next_producer_id.lock();
        inner.check_open()?;
        let first = match *next {
            Some(known) => known,
            None => self.read_counter()?,
        };
        let end = first.checked_add(i64::from(count.max(1))).ok_or_else(|| Error::InvalidConfig {
            name: "producer ids",
            reason: "all have been given".to_owned(),
        })?;
        let words = Words::from([(NEXT.to_owned(), end.to_string())]);
        let text = private_file::render(KIND, &words);
        inner.dir.write_replace(PRODUCER_IDS_FILE, text.as_bytes(), inner.config.log.file_mode)?;
        *next = Some(end);
        Ok(first..end)
    }

    fn read_counter(&self) -> Result<i64> {
        let dir = &self.inner.dir;
        let bytes = dir.read_small(PRODUCER_IDS_FILE, private_file::MAX_BYTES)?;
        let parsed = bytes.map(|bytes| private_file::parse(KIND, &bytes));
        match parsed {
            Some(Err(Unreadable::Newer(what))) => {
                return Err(Error::UnsupportedVersion { path: dir.path_of(PRODUCER_IDS_FILE), what });
            }
            Some(Ok(words)) => {
                let next = words.get(NEXT).and_then(|next| next.parse::<i64>().ok());
                if let Some(next) = next.filter(|next| *next >= 0) {
                    return Ok(next);
                }
            }
            Some(Err(Unreadable::Damaged(what))) => {
                let path = dir.path_of(PRODUCER_IDS_FILE);
                tracing::warn!(path = %path.display(), what, "producer ids begin anew, at a random number");
            }
            None => {}
        }
        let random = u128::from_str_radix(&Uuid::random()?.hex()[..8], 16).unwrap_or(0);
        Ok(FIRST + i64::try_from(random).unwrap_or(0) * STRIDE)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{config::OpenMode, store::StoreConfig};

    fn open(path: &std::path::Path) -> Store {
        let mut config = StoreConfig::default();
        config.log.open = OpenMode::CreateIfMissing;
        Store::open(path, config).unwrap()
    }

    #[test]
    fn no_id_is_given_twice() {
        let temp = tempfile::tempdir().unwrap();
        let mut end = 0;
        for round in 0..4 {
            // Dropped without a close, as a kill leaves it.
            let store = open(temp.path());
            for count in [1, 1000, 0] {
                let block = store.reserve_producer_ids(count).unwrap();
                assert!(block.start >= FIRST && block.end < 1 << 53, "{block:?}");
                assert!(round == 0 && count == 1 || block.start == end, "{block:?} after {end}");
                assert_eq!(block.end - block.start, i64::from(count.max(1)));
                end = block.end;
            }
        }
    }

    #[test]
    fn a_damaged_counter_is_not_believed_and_a_newer_one_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join(PRODUCER_IDS_FILE);
        let before = open(temp.path()).reserve_producer_ids(10).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 3]).unwrap();
        let after = open(temp.path()).reserve_producer_ids(10).unwrap();
        assert!(after.start >= before.end || after.end <= before.start);
        fs::write(&path, text.replace("ids 1", "ids 2")).unwrap();
        let refused = open(temp.path()).reserve_producer_ids(1);
        assert!(matches!(refused, Err(Error::UnsupportedVersion { .. })));
        assert!(fs::read_to_string(&path).unwrap().contains("ids 2"), "and left as it is");
    }
}
