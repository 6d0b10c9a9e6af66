//! An embeddable append-only segmented log in Apache Kafka's own on-disk format.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "stratalog runs on Linux only: it relies on fallocate, open-file-description locks and sendfile"
);

mod offset;
pub mod record;

pub use offset::{Offset, Timestamp};
