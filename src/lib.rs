//! An embeddable append-only segmented log in Apache Kafka's own on-disk format.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "stratalog runs on Linux only: it relies on fallocate, open-file-description locks and sendfile"
);

mod error;
#[expect(dead_code, unused_imports, reason = "the rooms above are being built")]
mod index;
pub mod inspect;
mod offset;
pub mod record;
#[expect(dead_code, unused_imports, reason = "the rooms above are being built")]
mod sys;

pub use error::{Corruption, Error, Result};
pub use offset::{Offset, Timestamp};
pub use sys::FileSlice;

/// What this crate does to the disk, recorded, and the disks that a crash may leave. For its own tests.
#[cfg(feature = "sim")]
#[doc(hidden)]
pub mod sim {
    pub use crate::sys::recorder::{
        Call, Chance, Effect, Event, Everything, Fate, Fault, FileId, Image, Nothing, Recording, Survival,
    };
}
