//! Whole files from one place to another: what copies of logs are made with.
//!
//! Lives here: names only; the calls are in `sys/copy.rs`. Not here: which files make a log, and in what order they are to
//! be copied so that the copy is one (`logctl copy` does that). Holds always: the source is only read.

pub use crate::sys::{CopyOutcome, UNFINISHED_COPY, copy_file, drop_cached};
