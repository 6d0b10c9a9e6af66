//! What was done to the disk, noted call by call, so that tests can cut the power at any moment (feature `sim`).
//!
//! Lives here: `Tap`, which every handle of this room carries and reports to (nothing and free without the feature); the
//! recorder behind it, which can also refuse the n-th call; the image that rebuilds what a disk may hold after a crash.
//! Not here: what a log should make of such a disk (tests/crash).
//! Holds always: with or without the feature, recorded or not, the same system calls are made on the same files; a
//! sync covers only what was noted before it began.

#[cfg(feature = "sim")]
mod image;
#[cfg(feature = "sim")]
mod record;
mod tap;

#[cfg(feature = "sim")]
pub use image::{Chance, Effect, Everything, Fate, Image, Nothing, Survival};
#[cfg(feature = "sim")]
pub use record::{Call, Event, Fault, FileId, Recording};

pub(super) use tap::{Admitted, Tap};
