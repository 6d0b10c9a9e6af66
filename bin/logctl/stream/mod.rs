//! What `export` writes and `import` reads: a stream of batches or of records, packed as a whole or not.
//!
//! Lives here: the three formats as they are read (`items.rs`), packing (`pack.rs`, `lz4.rs`). Not here: where a stream
//! comes from or goes, and what a row of CSV is (`csv`). Holds always: no length that a stream claims is believed before so many bytes have
//! come; what is wrong is told with its place; and nothing is guessed, for bytes that are no record are refused.

mod items;
mod lz4;
mod pack;

pub(crate) use items::{Item, Items, Limits, Opened};
pub(crate) use pack::Packer;

use clap::ValueEnum;

use crate::{csv::Columns, json::BOM};

/// `--format` of `export` and `import`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The stored batches one after the other, byte for byte
    Raw,
    /// A record for each JSON line, as `cat -J` prints them
    Jsonl,
    /// A record for each row, under a row of names
    Csv,
}

/// The columns of CSV: all that can be read again.
pub(crate) fn csv_columns() -> Columns {
    Columns::parse("offset,timestamp,key,value,headers").unwrap_or_default()
}

impl Format {
    /// What a stream is that begins so. No log has offsets that look like letters.
    fn of(head: &[u8]) -> Self {
        match head.strip_prefix(BOM).unwrap_or(head).first() {
            Some(b'{') => Self::Jsonl,
            Some(b'a'..=b'z') => Self::Csv,
            _ => Self::Raw,
        }
    }
}
