//! Walking the batches that lie one after the other in memory.

use super::{BatchError, BatchRef, probe};

/// The whole batches in a run of bytes, in order.
///
/// A last batch that is cut (the bytes end inside it) is not an item and no error: [`Batches::remainder`] has its
/// bytes. What is not a batch at all is an error, after which there is nothing more; [`Batches::position`] then tells
/// where it begins.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    bytes: &'a [u8],
    position: usize,
    failed: bool,
}

impl<'a> Batches<'a> {
    /// The batches in `bytes`, whose first byte is a batch's first.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, failed: false }
    }

    /// How many bytes the batches so far took; after an error, where the thing begins that is no batch.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The bytes after the batches so far: when the walk is over, those of a batch that is cut, or of none.
    pub fn remainder(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<BatchRef<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let rest = self.remainder();
        let batch = match probe(rest) {
            Ok(None) => return None,
            Ok(Some(probe)) if probe.magic == 2 && u64::from(probe.size_bytes) > rest.len() as u64 => {
                return None;
            }
            Ok(Some(_)) => BatchRef::parse(rest),
            Err(error) => Err(error),
        };
        match &batch {
            Ok(batch) => self.position += batch.as_bytes().len(),
            Err(_) => self.failed = true,
        }
        Some(batch)
    }
}

impl std::iter::FusedIterator for Batches<'_> {}
