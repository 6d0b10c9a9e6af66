//! The two small text files beside the segments, as Kafka writes them. Parsing only: pure, bounded by the bytes at hand.

use crate::offset::Offset;

/// The name of the file that [`EpochCheckpoint`] parses.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
/// The name of the file that [`PartitionMetadata`] parses.
pub const PARTITION_METADATA: &str = "partition.metadata";

/// `leader-epoch-checkpoint`: which leader epoch began at which offset.
///
/// Three or more lines: the format version `0`, the number of entries, and one line `epoch start-offset` for each. An empty
/// file stands for no entries (Kafka writes one so, `CheckpointFile.read`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EpochCheckpoint {
    /// Epochs with their first offsets, as the file has them. Not checked for order: see [`EpochCheckpoint::disorder`].
    pub entries: Vec<(i32, Offset)>,
}

impl EpochCheckpoint {
    /// Parses the file's text. The error is a sentence that says what is wrong and where.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let text = std::str::from_utf8(text).map_err(|_| "not text".to_owned())?;
        let mut lines = text.lines();
        match lines.next().map(str::trim) {
            Some("0") => {}
            Some(other) => return Err(format!("format version {other:?} where 0 is known")),
            None => return Err("no format version".to_owned()),
        }
        let count = lines.next().map(str::trim).ok_or("no number of entries")?;
        let count: usize = count.parse().map_err(|_| format!("number of entries is {count:?}"))?;
        let mut entries = Vec::new();
        for (line, number) in lines.zip(3_usize..) {
            let mut words = line.split_whitespace();
            let (Some(epoch), Some(start), None) = (words.next(), words.next(), words.next()) else {
                return Err(format!("line {number} is {line:?}, not an epoch and an offset"));
            };
            let epoch: i32 = epoch.parse().map_err(|_| format!("line {number}: epoch is {epoch:?}"))?;
            let start: i64 = start.parse().map_err(|_| format!("line {number}: offset is {start:?}"))?;
            match Offset::new(start) {
                Some(start) if epoch >= 0 => entries.push((epoch, start)),
                _ => {
                    return Err(format!("line {number}: neither epoch nor offset can be negative: {line:?}"));
                }
            }
        }
        if entries.len() != count {
            return Err(format!("{count} entries announced, {} found", entries.len()));
        }
        Ok(Self { entries })
    }

    /// The first entry that is not above the one before it in both epoch and offset, and that one.
    pub fn disorder(&self) -> Option<[(i32, Offset); 2]> {
        self.entries.windows(2).find_map(|pair| match pair {
            [a, b] if a.0 >= b.0 || a.1 >= b.1 => Some([*a, *b]),
            _ => None,
        })
    }
}

/// `partition.metadata`: the id of the topic that the partition belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// The topic's id, a UUID in URL-safe base64 without padding: 22 characters.
    pub topic_id: String,
}

impl PartitionMetadata {
    /// Parses the file's text. The error is a sentence that says what is wrong.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "not text".to_owned())?;
        let mut lines = text.lines();
        let mut field = |name: &str| {
            let line = lines.next().ok_or_else(|| format!("no line {name:?}"))?;
            let (key, value) = line.split_once(':').ok_or_else(|| format!("{line:?} is no {name:?}"))?;
            if key.trim() == name {
                Ok(value.trim().to_owned())
            } else {
                Err(format!("{line:?} is no {name:?}"))
            }
        };
        let version = field("version")?;
        if version != "0" {
            return Err(format!("format version {version:?} where 0 is known"));
        }
        let topic_id = field("topic_id")?;
        let well_formed = topic_id.len() == 22
            && topic_id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !well_formed {
            return Err(format!("topic id {topic_id:?} is no UUID in base64"));
        }
        if topic_id.bytes().all(|b| b == b'A') {
            return Err("the topic id is all zeros".to_owned());
        }
        Ok(Self { topic_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_checkpoint_of_kafka() {
        let parsed = EpochCheckpoint::parse(b"0\n2\n0 0\n2 200\n").unwrap();
        assert_eq!(parsed.entries, [(0, Offset::ZERO), (2, Offset::new(200).unwrap())]);
        assert_eq!(parsed.disorder(), None);
        assert_eq!(EpochCheckpoint::parse(b"").unwrap().entries, []);
        assert_eq!(EpochCheckpoint::parse(b"0\n0\n").unwrap().entries, []);
    }

    #[test]
    fn a_garbled_epoch_checkpoint_is_an_error_and_no_panic() {
        for text in [
            &b"aa"[..],
            b"1\n0\n",
            b"0\n",
            b"0\n5\n0 0\n2 200\n",
            b"0\n-1\n",
            b"0\n1\n0\n",
            b"0\n1\n0 0 0\n",
            b"0\n1\n-1 0\n",
            b"0\n1\n0 -1\n",
            b"0\n1\n0 99999999999999999999\n",
            b"0\n99999999999999999999\n",
            b"\xff\xfe",
            &[0; 4096],
        ] {
            assert!(EpochCheckpoint::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn epochs_and_offsets_must_both_rise() {
        for text in ["0\n2\n2 0\n1 5\n", "0\n2\n1 5\n2 5\n", "0\n2\n1 5\n1 6\n", "0\n2\n1 5\n2 4\n"] {
            assert!(EpochCheckpoint::parse(text.as_bytes()).unwrap().disorder().is_some(), "{text:?}");
        }
    }

    #[test]
    fn partition_metadata() {
        let good = b"version: 0\ntopic_id: FnI-xAbqTlaHRHYXvyGgBg";
        assert_eq!(PartitionMetadata::parse(good).unwrap().topic_id, "FnI-xAbqTlaHRHYXvyGgBg");
        for text in [
            &b""[..],
            b"version: 1\ntopic_id: FnI-xAbqTlaHRHYXvyGgBg",
            b"version: 0\n",
            b"version: 0\ntopic_id: short",
            b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
            b"topic_id: FnI-xAbqTlaHRHYXvyGgBg\nversion: 0\n",
            b"\xff",
        ] {
            assert!(PartitionMetadata::parse(text).is_err(), "{text:?}");
        }
    }
}
