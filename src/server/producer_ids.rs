//! Ids for `InitProducerId`: taken from the store in blocks, given out one by one.

use std::ops::Range;

use parking_lot::Mutex;

use crate::{Result, Store};

/// Ids taken at a time, each time with a sync: as many as a broker takes.
const BLOCK: u32 = 1000;

/// Gives out producer ids, each once.
#[derive(Debug)]
pub(crate) struct ProducerIds {
    store: Store,
    free: Mutex<Range<i64>>,
}

impl ProducerIds {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, free: Mutex::new(0..0) }
    }

    /// An id that nobody has. A crash loses what is left of a block; nobody gets it then.
    pub(crate) fn next(&self) -> Result<i64> {
        let mut free = self.free.lock();
        if let Some(id) = free.next() {
            return Ok(id);
        }
        *free = self.store.reserve_producer_ids(BLOCK)?;
        // A block is never empty.
        free.next().ok_or(crate::Error::Closed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{OpenMode, StoreConfig};

    #[test]
    fn ids_are_given_once_over_blocks_threads_and_kills() {
        let temp = tempfile::tempdir().unwrap();
        let mut given = BTreeSet::new();
        for _ in 0..3 {
            let mut config = StoreConfig::default();
            config.log.open = OpenMode::CreateIfMissing;
            let ids = ProducerIds::new(Store::open(temp.path(), config).unwrap());
            let take = || (0..700).map(|_| ids.next().unwrap()).collect::<Vec<_>>();
            let taken = std::thread::scope(|scope| {
                let threads = [scope.spawn(take), scope.spawn(take)];
                threads.map(|thread| thread.join().unwrap())
            });
            assert!(taken.into_iter().flatten().all(|id| given.insert(id)));
        }
        assert_eq!(given.len(), 3 * 1400);
    }
}
