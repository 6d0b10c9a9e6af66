//! Topics: which there are, what they were told, making and removing them.
//!
//! Lives here: the set of a data directory's topics over a store, by name and by id; every setting of a topic with its
//! default, its check and its effect; the answers to who asks for, changes or describes them.
//! Not here: the files of topics (the engine's store), requests and answers as bytes (protocol), records (the other rooms).
//! Holds always: what is listed is in the store; a topic's logs go by the settings that are shown; a change that was
//! answered survives a crash.

mod alter;
mod config;
mod keys;
mod registry;
#[cfg(test)]
mod tests;

pub(crate) use alter::Change;
pub(crate) use config::{Overrides, Shown, Source, Synonym, TopicSettings, checked};
pub(crate) use keys::{Effect, TOPIC_KEYS};
pub(crate) use registry::{Made, NewTopic, Partition, Topic, Topics};
