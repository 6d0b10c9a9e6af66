//! The small files beside the segments and in a data directory, read whole and told line by line.

use std::path::Path;

use super::sidecar::{EpochCheckpoint, LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, PartitionMetadata};
use crate::{
    error::Result,
    log::{Described, describe, parse_lock_note, parse_text_checkpoint},
    sys::{Dir, DirLock, LOCK_NAME},
};

/// Larger ones are not read.
const MAX_BYTES: usize = 64 << 20;

/// Kafka's files of offsets by partition, in a data directory.
pub(super) const OFFSET_CHECKPOINTS: [&str; 4] = [
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
];
pub(super) const META_PROPERTIES: &str = "meta.properties";

/// Reads a small file by its name: Kafka's `.txnindex`, `leader-epoch-checkpoint`, `partition.metadata`,
/// `meta.properties` and the checkpoints of a data directory, and this crate's own (`.stratalog-*`), and `.lock`, with whether it is held. `None` for any other
/// name.
///
/// Nothing is changed, no link is followed, and what cannot be read is part of the answer; an error only where the file
/// itself cannot be ([`Error::NotFound`](crate::Error::NotFound) where there is none).
pub fn small_file(path: impl AsRef<Path>) -> Result<Option<Described>> {
    let path = path.as_ref();
    let Some(name) = path.file_name() else { return Ok(None) };
    if name == LOCK_NAME {
        return lock(path).map(Some);
    }
    // By name first: a large file of another kind is not read to find that out.
    if text(path, &[]).or_else(|| describe(path, &[])).is_none() {
        return Ok(None);
    }
    let dir = Dir::open(path.parent().unwrap_or(Path::new("")))?;
    let Some(bytes) = dir.read_small(name, MAX_BYTES)? else {
        return Err(crate::Error::NotFound { path: path.to_owned() });
    };
    Ok(text(path, &bytes).or_else(|| describe(path, &bytes)))
}

/// The lock file: its note, which is nobody's word once the lock is free, and whether it is held now.
fn lock(path: &Path) -> Result<Described> {
    let above = path.parent().unwrap_or(Path::new(""));
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    let dir = Dir::open(above)?;
    let Some(bytes) = dir.read_small(LOCK_NAME, MAX_BYTES)? else {
        return Err(crate::Error::NotFound { path: path.to_owned() });
    };
    // The file of a data directory as well, which a broker takes as a whole.
    let held = DirLock::holder(&dir)?;
    let text = String::from_utf8_lossy(&bytes);
    let note = parse_lock_note(&text);
    let mut found = Described::default();
    found.push(
        "lock",
        [
            ("held", held.is_some().into()),
            ("pid", held.and_then(|held| held.process).or(note.map(|note| note.0)).into()),
            ("since", note.map(|note| note.1).into()),
        ],
    );
    if note.is_none() && !text.trim().is_empty() {
        found.wrong = Some("the note in it is not of the form `pid N since TIME`".to_owned());
    }
    Ok(found)
}

/// One of Kafka's files of text.
fn text(path: &Path, bytes: &[u8]) -> Option<Described> {
    let name = path.file_name()?.to_str()?;
    Some(match name {
        LEADER_EPOCH_CHECKPOINT => epochs(bytes),
        PARTITION_METADATA => metadata(bytes),
        META_PROPERTIES => properties(bytes),
        name if OFFSET_CHECKPOINTS.contains(&name) => offsets(bytes),
        _ => return None,
    })
}

fn epochs(bytes: &[u8]) -> Described {
    let parsed = match EpochCheckpoint::parse(bytes) {
        Ok(parsed) => parsed,
        Err(what) => return Described::wrong(what),
    };
    let mut found = Described::default();
    for (epoch, start) in parsed.entries {
        found.push("epoch", [("epoch", epoch.into()), ("startOffset", start.into())]);
    }
    found
}

fn metadata(bytes: &[u8]) -> Described {
    let parsed = match PartitionMetadata::parse(bytes) {
        Ok(parsed) => parsed,
        Err(what) => return Described::wrong(what),
    };
    let mut found = Described::default();
    found.push("partition-metadata", [("version", 0.into()), ("topicId", parsed.topic_id.as_str().into())]);
    found
}

/// By topic and partition, whatever order the file has.
fn offsets(bytes: &[u8]) -> Described {
    let lines = match parse_text_checkpoint(bytes) {
        Ok(lines) => lines,
        Err(what) => return Described::wrong(what),
    };
    let mut found = Described::default();
    for ((topic, partition), offset) in lines {
        found.push(
            "offset",
            [("topic", topic.as_str().into()), ("partition", partition.into()), ("offset", offset.into())],
        );
    }
    found
}

/// Java's properties, as far as Kafka uses them here: a key, `=` and a value on each line; `#` begins a comment.
fn properties(bytes: &[u8]) -> Described {
    let Ok(text) = std::str::from_utf8(bytes) else { return Described::wrong("not text") };
    let mut found = Described::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!'])) {
        let Some((key, value)) = line.split_once('=') else {
            found.wrong = Some(format!("{line:?} is no property"));
            break;
        };
        // Colons are escaped, which a value of Kafka's may have.
        let value = value.trim().replace('\\', "");
        found.push("property", [("key", key.trim().into()), ("value", value.as_str().into())]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str, bytes: &[u8]) -> String {
        let found = text(Path::new(name), bytes).or_else(|| describe(Path::new(name), bytes)).unwrap();
        let lines = found.lines.iter().map(|line| format!("{}{:?}", line.kind, line.fields));
        lines.chain(found.wrong.clone()).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn kafkas_text_files_are_told_line_by_line() {
        assert_eq!(
            told("leader-epoch-checkpoint", b"0\n1\n2 900\n"),
            r#"epoch[("epoch", Number(2)), ("startOffset", Number(900))]"#
        );
        assert_eq!(
            told("replication-offset-checkpoint", b"0\n1\na-b 3 -1\n"),
            r#"offset[("topic", Text("a-b")), ("partition", Number(3)), ("offset", Number(-1))]"#
        );
        assert_eq!(
            told("meta.properties", b"#c\n\nnode.id=1\nx=a\\:b\nrest"),
            r#"property[("key", Text("node.id")), ("value", Text("1"))]; property[("key", Text("x")), ("value", Text("a:b"))]; "rest" is no property"#
        );
        assert!(told("partition.metadata", b"version: 1").contains("version"));
        assert_eq!(text(Path::new("notes.txt"), b""), None);
        assert_eq!(describe(Path::new("a.txnindex"), b""), None);
    }

    #[test]
    fn noise_for_each_kind_is_told_and_nothing_else() {
        let names = [
            "leader-epoch-checkpoint",
            "partition.metadata",
            "meta.properties",
            "log-start-offset-checkpoint",
            ".stratalog-checkpoint",
            ".stratalog-summary",
            ".stratalog-control",
            ".stratalog-waiters",
            ".stratalog-cursor-x",
            "00000000000000000008.txnindex",
        ];
        for name in names {
            for noise in [&b"\xff\xfe\x00\x01 = 7 noise"[..], &[7; 5000]] {
                let found =
                    text(Path::new(name), noise).or_else(|| describe(Path::new(name), noise)).unwrap();
                assert!(found.wrong.is_some(), "{name}: {found:?}");
            }
        }
    }
}
