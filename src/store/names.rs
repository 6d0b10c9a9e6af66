//! Names in a data directory: what a topic may be called, and what a directory's name says. Pure.

use std::ffi::OsStr;

use super::identity::Uuid;
use crate::{
    error::{Error, Result},
    log::topic_partition,
};

/// The longest topic name, as in Kafka (`Topic.MAX_NAME_LENGTH`): its directories' names fit a file system.
const MAX_TOPIC_BYTES: usize = 249;
/// The longest name of a directory.
const MAX_DIR_BYTES: usize = 255;
/// The log of a broker's own metadata, which is no topic.
pub(super) const CLUSTER_METADATA: &str = "__cluster_metadata";
/// A broker keeps fetched indexes of remote storage there.
const REMOTE_INDEXES: &str = "remote-log-index-cache";

const DELETED: &str = "-delete";

/// What a directory of a data directory is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    Partition(&'a str, i32),
    /// Deleted, or not yet created: to be removed.
    Deleted,
    /// Known to a broker and not for us: a partition set aside, one being moved here, the broker's own.
    Others(&'static str),
    /// A broker does not start over it.
    Unknown,
}

pub(super) fn place_of(dir_name: &OsStr) -> Place<'_> {
    let Some(name) = dir_name.to_str() else { return Place::Unknown };
    if name == REMOTE_INDEXES {
        return Place::Others("a broker's cache");
    }
    if let Some(of) = name.strip_suffix(DELETED).and_then(with_unique_id) {
        return if topic_partition(OsStr::new(of)).is_some() { Place::Deleted } else { Place::Unknown };
    }
    if name.strip_suffix("-stray").and_then(with_unique_id).is_some() {
        return Place::Others("a partition that a broker has set aside");
    }
    if name.strip_suffix("-future").and_then(with_unique_id).is_some() {
        return Place::Others("a partition that a broker is moving here");
    }
    match topic_partition(dir_name) {
        Some((CLUSTER_METADATA, _)) => Place::Others("a broker's metadata"),
        // `t-007` is not where partition 7 of `t` is looked for.
        Some((topic, partition)) if check_topic(topic).is_ok() && name == dir_of(topic, partition) => {
            Place::Partition(topic, partition)
        }
        _ => Place::Unknown,
    }
}

/// `topic-partition` of `topic-partition.32 hex digits`.
fn with_unique_id(name: &str) -> Option<&str> {
    let (of, id) = name.rsplit_once('.')?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(of)
}

/// The name of a partition's directory.
pub(super) fn dir_of(topic: &str, partition: i32) -> String {
    format!("{topic}-{partition}")
}

/// The name that a partition's directory has from the moment it is deleted, as a broker gives it: both remove it at their
/// next start. The topic is cut so that the name fits.
pub(super) fn deleted_dir_of(topic: &str, partition: i32, unique: Uuid) -> String {
    let suffix = format!("-{partition}.{}{DELETED}", unique.hex());
    let kept = topic.len().min(MAX_DIR_BYTES.saturating_sub(suffix.len()));
    // Topic names are ASCII, so any length is a boundary.
    format!("{}{suffix}", topic.get(..kept).unwrap_or("t"))
}

/// Kafka's rules for a topic's name.
pub(super) fn check_topic(topic: &str) -> Result<()> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let reason = if topic.is_empty() {
        "a topic's name cannot be empty"
    } else if matches!(topic, "." | "..") {
        "a topic cannot be named '.' or '..'"
    } else if topic.len() > MAX_TOPIC_BYTES {
        "a topic's name has at most 249 characters"
    } else if !topic.bytes().all(is_allowed) {
        "a topic's name has ASCII letters, digits, '.', '_' and '-' only"
    } else {
        return Ok(());
    };
    Err(Error::InvalidTopic { topic: topic.to_owned(), reason: reason.to_owned() })
}

/// The same for a topic to be made with so many partitions beside those that are there.
pub(super) fn check_new_topic<'a>(
    topic: &str,
    partition_count: i32,
    mut existing: impl Iterator<Item = &'a str>,
) -> Result<()> {
    check_topic(topic)?;
    let invalid = |reason: String| Err(Error::InvalidTopic { topic: topic.to_owned(), reason });
    if topic == CLUSTER_METADATA {
        return invalid("the name belongs to brokers' metadata".to_owned());
    }
    if partition_count < 1 {
        return invalid(format!("{partition_count} partitions; a topic has at least one"));
    }
    if dir_of(topic, partition_count - 1).len() > MAX_DIR_BYTES {
        return invalid("with the number of a partition the name is too long for a directory".to_owned());
    }
    if let Some(other) = existing.find(|other| *other != topic && unified(other) == unified(topic)) {
        return invalid(format!(
            "it differs from {other} in '.' and '_' alone, which share names in metrics"
        ));
    }
    Ok(())
}

fn unified(topic: &str) -> String {
    topic.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_named_by_kafkas_rules() {
        for good in ["a", "a-0", "x.deleted", "_", "A.b_C-9", "...", "-", &"x".repeat(249)] {
            assert!(check_topic(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a b", "\u{e4}", "a\0", "a\n", &"x".repeat(250), &"x".repeat(255)] {
            assert!(matches!(check_topic(bad), Err(Error::InvalidTopic { .. })), "{bad}");
        }
    }

    #[test]
    fn new_topics_must_differ_in_more_than_dots() {
        let existing = || ["a.b", "c"].into_iter();
        assert!(check_new_topic("a_b", 1, existing()).is_err());
        assert!(check_new_topic("a.b", 1, existing()).is_ok(), "whether it exists is asked elsewhere");
        assert!(check_new_topic("a-b", 1, existing()).is_ok());
        assert!(check_new_topic("d", 0, existing()).is_err());
        assert!(check_new_topic("d", -1, existing()).is_err());
        assert!(check_new_topic(CLUSTER_METADATA, 1, existing()).is_err());
        assert!(check_new_topic(&"x".repeat(249), 100_000, existing()).is_ok());
        assert!(check_new_topic(&"x".repeat(249), 1_000_000, existing()).is_err());
    }

    #[test]
    fn a_directorys_name_says_what_it_is() {
        let of = |name: &'static str| place_of(OsStr::new(name));
        assert_eq!(of("a-b-12"), Place::Partition("a-b", 12));
        assert_eq!(of("a-0.0123456789abcdef0123456789abcdef-delete"), Place::Deleted);
        assert!(matches!(of("a-0.0123456789abcdef0123456789abcdef-stray"), Place::Others(_)));
        assert!(matches!(of("a-0.0123456789abcdef0123456789abcdef-future"), Place::Others(_)));
        assert!(matches!(of("__cluster_metadata-0"), Place::Others(_)));
        assert!(matches!(of("remote-log-index-cache"), Place::Others(_)));
        for unknown in [
            "lost+found",
            "foo",
            "foo-bar",
            "foo-delete",
            ".stratalog",
            "a-0.x-delete",
            "a.0123456789abcdef0123456789abcdef-delete",
            "a-007",
            "a b-0",
            "-1",
        ] {
            assert_eq!(of(unknown), Place::Unknown, "{unknown}");
        }
    }

    #[test]
    fn a_deleted_directorys_name_fits_whatever_the_topic() {
        let unique = Uuid::random().unwrap();
        for topic in ["t", &"x".repeat(249)] {
            let name = deleted_dir_of(topic, i32::MAX, unique);
            assert!(name.len() <= 255, "{name}");
            assert_eq!(place_of(OsStr::new(&name)), Place::Deleted);
        }
    }
}
