//! Records as comma-separated values, by RFC 4180 but for the newline, which is the one of this system unless asked.
//!
//! Lives here: a row for a record, written and read. Not here: which records. Holds always: null is a field without
//! anything and empty is `""`, as PostgreSQL has it, so that what was written is read again as it was; bytes are never
//! replaced.

mod read;
mod write;

pub(crate) use read::{CsvReader, Row};
pub(crate) use write::{Columns, push_header, push_row};
