//! Who a data directory and its topics are: `meta.properties`, `partition.metadata`, and the ids in them.

use std::{collections::BTreeMap, fmt};

use crate::{
    error::{Error, Result},
    sys::{self, Dir},
};

/// The file's name; a directory that has it is a data directory.
pub(super) const META_PROPERTIES: &str = "meta.properties";
const MAX_BYTES: usize = 1 << 20;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// An id of 16 bytes, as topics and data directories have them (UUID, version 4). Its text is Kafka's: base64 for URLs,
/// 22 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// A new one. As Kafka's, its text never begins with `-`, which tools would take for an option.
    pub fn random() -> Result<Self> {
        loop {
            let mut bytes: [u8; 16] = sys::random_bytes()?;
            bytes[6] = bytes[6] & 0x0f | 0x40;
            bytes[8] = bytes[8] & 0x3f | 0x80;
            let id = Self(bytes);
            if !id.to_string().starts_with('-') {
                return Ok(id);
            }
        }
    }

    /// The id of these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// The id that [`fmt::Display`] writes so; `None` where the text is not 22 characters of base64 for URLs.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 22 {
            return None;
        }
        let mut bits = 0_u128;
        for (at, char) in text.bytes().enumerate() {
            let six = u128::try_from(ALPHABET.iter().position(|known| *known == char)?).ok()?;
            // Of the last character the first two bits count.
            bits = if at < 21 { bits << 6 | six } else { bits << 2 | six >> 4 };
        }
        Some(Self(bits.to_be_bytes()))
    }

    /// 32 hexadecimal digits, as in the name of a deleted directory.
    pub(super) fn hex(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for Uuid {
    /// Base64 for URLs, without padding: 22 characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        for at in 0..22 {
            // The last character has two bits only, in its front.
            let six = if at < 21 { bits >> (122 - 6 * at) } else { bits << 4 } & 63;
            let six = usize::try_from(six).unwrap_or(0);
            write!(f, "{}", char::from(ALPHABET[six]))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `partition.metadata` of a partition of this topic: no line end behind it, as Kafka writes it.
pub(super) fn partition_metadata(topic_id: Uuid) -> String {
    format!("version: 0\ntopic_id: {topic_id}")
}

/// What `meta.properties` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the names of the properties")]
pub(super) struct Identity {
    pub(super) cluster_id: Option<String>,
    pub(super) node_id: Option<i32>,
    pub(super) directory_id: Option<String>,
}

impl Identity {
    /// Reads the file; `None` where there is none. One that makes no sense says nothing, with a warning; one of a newer
    /// version is refused: its writer knew more.
    pub(super) fn load(dir: &Dir, warnings: &mut Vec<String>) -> Result<Option<Self>> {
        let path = dir.path_of(META_PROPERTIES);
        let read = match dir.read_small(META_PROPERTIES, MAX_BYTES) {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => String::from_utf8(bytes).map_err(|_| "not text".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let parsed = read.and_then(|text| Self::parse(&text));
        match parsed {
            Ok(Ok(identity)) => Ok(Some(identity)),
            Ok(Err(version)) => {
                Err(Error::UnsupportedVersion { path, what: format!("data directory version {version}") })
            }
            Err(what) => {
                warnings.push(format!("{}: {what}; taken as saying nothing", path.display()));
                Ok(Some(Self::default()))
            }
        }
    }

    /// The inner error is a version that is not known here.
    fn parse(text: &str) -> Result<Result<Self, i64>, String> {
        let properties = properties(text);
        let number = |name: &str| properties.get(name).and_then(|value| value.parse::<i64>().ok());
        let node_key = match number("version") {
            Some(1) => "node.id",
            // Of brokers without KRaft.
            Some(0) => "broker.id",
            Some(version) => return Ok(Err(version)),
            None => return Err("no version".to_owned()),
        };
        Ok(Ok(Self {
            cluster_id: properties.get("cluster.id").cloned(),
            node_id: number(node_key).and_then(|id| i32::try_from(id).ok()),
            directory_id: properties.get("directory.id").cloned(),
        }))
    }

    /// The file for a new data directory. Without a directory id a broker leaves every partition without a leader.
    pub(super) fn create(dir: &Dir, cluster_id: Option<&str>, node_id: i32, file_mode: u32) -> Result<Self> {
        let cluster_id = match cluster_id {
            Some(given) => given.to_owned(),
            None => Uuid::random()?.to_string(),
        };
        let directory_id = Uuid::random()?.to_string();
        let text = format!(
            "node.id={node_id}\ndirectory.id={directory_id}\nversion=1\ncluster.id={}\n",
            cluster_id.replace('\\', "\\\\")
        );
        dir.write_replace(META_PROPERTIES, text.as_bytes(), file_mode)?;
        Ok(Self { cluster_id: Some(cluster_id), node_id: Some(node_id), directory_id: Some(directory_id) })
    }
}

/// Java's properties, as far as these files go: comments, `key=value` or `key:value`, backslashes before a character.
fn properties(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines().map(str::trim_start) {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let (mut key, mut value, mut in_key) = (String::new(), String::new(), true);
        let mut chars = line.chars();
        while let Some(char) = chars.next() {
            let (char, is_escaped) = match char {
                '\\' => (chars.next().unwrap_or('\\'), true),
                other => (other, false),
            };
            match in_key {
                true if !is_escaped && matches!(char, '=' | ':') => in_key = false,
                true => key.push(char),
                false => value.push(char),
            }
        }
        found.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::PartitionMetadata;

    #[test]
    fn a_broker_s_file_is_read() {
        let text = "#\n#Mon Nov 30 13:30:18 UTC 2026\nnode.id=1\ndirectory.id=N2e_BHOiu8ThF79r8rUUTA\nversion=1\ncluster.id=c3RyYXRhbG9nLXRlc3QtMQ\n";
        let identity = Identity::parse(text).unwrap().unwrap();
        assert_eq!(identity.node_id, Some(1));
        assert_eq!(identity.cluster_id.as_deref(), Some("c3RyYXRhbG9nLXRlc3QtMQ"));
        assert_eq!(identity.directory_id.as_deref(), Some("N2e_BHOiu8ThF79r8rUUTA"));
        let old = Identity::parse("version=0\nbroker.id=7\ncluster.id=a\\:b\n").unwrap().unwrap();
        assert_eq!((old.node_id, old.cluster_id.as_deref()), (Some(7), Some("a:b")));
        assert_eq!(Identity::parse("version=2\n").unwrap(), Err(2));
        for garbage in ["", "aa", "version=x", "node.id=1\n", "\0\0\0"] {
            assert!(Identity::parse(garbage).is_err(), "{garbage:?}");
        }
    }

    #[test]
    fn what_is_made_is_read() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::open(temp.path()).unwrap();
        assert_eq!(Identity::load(&dir, &mut Vec::new()).unwrap(), None);
        let made = Identity::create(&dir, Some("my\\cluster"), 3, 0o644).unwrap();
        let mut warnings = Vec::new();
        assert_eq!(Identity::load(&dir, &mut warnings).unwrap(), Some(made.clone()));
        assert_eq!(made.cluster_id.as_deref(), Some("my\\cluster"));
        assert!(warnings.is_empty());
    }

    #[test]
    fn an_id_is_22_characters_of_base64_and_32_of_hex() {
        let id = Uuid([
            0x17, 0x83, 0x63, 0xb1, 0x8b, 0x43, 0x4f, 0xa8, 0x8e, 0xf0, 0xa5, 0x47, 0xc0, 0x39, 0xde, 0x6a,
        ]);
        assert_eq!(id.to_string(), "F4NjsYtDT6iO8KVHwDneag");
        assert_eq!(id.hex(), "178363b18b434fa88ef0a547c039de6a");
        for _ in 0..200 {
            let id = Uuid::random().unwrap();
            assert_eq!(Uuid::parse(&id.to_string()), Some(id));
            assert_eq!(Uuid::from_bytes(id.bytes()), id);
            let metadata = PartitionMetadata::parse(partition_metadata(id).as_bytes()).unwrap();
            assert_eq!(metadata.topic_id, id.to_string());
            assert_eq!(id.hex().as_bytes()[12], b'4');
        }
        for wrong in ["", "F4NjsYtDT6iO8KVHwDneagA", "F4NjsYtDT6iO8KVHwDnea", "F4NjsYtDT6iO8KVHwDnea="] {
            assert_eq!(Uuid::parse(wrong), None, "{wrong}");
        }
    }
}
