//! The wire codec from outside: held against Kafka's own layouts, against another codec, and given bytes that lie.
//!
//! A binary of its own, since what is allocated is counted here by an allocator for the whole program.

mod declarations;
mod hostile;
mod layout;
mod oracle;
mod random;
mod text;
