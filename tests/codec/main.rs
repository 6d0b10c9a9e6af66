//! The wire codec from outside: held against Kafka's own layouts, against another codec, and given bytes that lie.
//!
//! A binary of its own, since what is allocated is counted here by an allocator for the whole program.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod declarations;
mod document;
mod hostile;
mod layout;
mod oracle;
mod random;
mod seeds;
mod text;
