//! The records of Kafka's own topics, in the text of Kafka's dump tool: what `--offsets-decoder`,
//! `--transaction-log-decoder`, `--share-group-state-decoder` and `--cluster-metadata-decoder` print of
//! `__consumer_offsets`, `__transaction_state`, `__share_group_state` and `__cluster_metadata`.
//!
//! In the first three a key begins with its type, which is that of its value too; a value begins with its version (Kafka:
//! `CoordinatorRecordSerde`).

mod control;
mod messages;
mod metadata;
mod schema;
mod states;

use messages::RecordType;

pub(super) use control::{KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE, SNAPSHOT_FOOTER, SNAPSHOT_HEADER};
pub(super) use schema::{Message, Reader};

/// Which topic's records are to be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoder {
    Offsets,
    Transactions,
    ShareState,
    Metadata,
}

/// What a record says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    /// The key, or why there is none; `None` where records have no key.
    pub(super) key: Option<String>,
    /// The value, or why there is none; `None` where the key says why.
    pub(super) value: Option<String>,
    /// What there is of the two is JSON.
    pub(super) is_json: bool,
}

impl Decoder {
    /// Kafka's texts for a record, those for what cannot be read included. A record without a key, over which Kafka's tool
    /// ends, is one of these here.
    pub(super) fn decode(self, offset: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Decoded {
        let unreadable = |key: String| Decoded { key: Some(key), value: None, is_json: false };
        let failed = |reason: String| unreadable(format!("Error at offset {offset}, skipping. {reason}"));
        if self == Self::Metadata {
            return metadata::decode(offset, value);
        }
        let Some(key) = key else { return failed("message had a missing key".to_owned()) };
        let mut reader = Reader::new(key);
        let Some(number) = reader.version() else {
            return failed("Could not read version from key's buffer.".to_owned());
        };
        let Some(found) = self.types().iter().find(|found| found.number == number) else {
            return unreadable(format!("Unknown record type {number} at offset {offset}, skipping."));
        };
        let key = match found.key.to_json(&mut reader, 0) {
            Ok(json) => json,
            // The tool names the type here, not the version, which is always 0.
            Err(reason) => return failed(not_read(number, "key", &reason)),
        };
        let value = match value {
            None => "<DELETE>".to_owned(),
            Some(value) => match found.value_json(value) {
                Ok(json) => json,
                Err(reason) => return failed(reason),
            },
        };
        Decoded {
            key: Some(format!("{{\"type\":\"{number}\",\"data\":{key}}}")),
            value: Some(value),
            is_json: true,
        }
    }

    const fn types(self) -> &'static [RecordType] {
        match self {
            Self::Offsets => messages::GROUP_RECORDS,
            Self::Transactions => messages::TRANSACTION_RECORDS,
            Self::ShareState => messages::SHARE_RECORDS,
            // Of another form.
            Self::Metadata => &[],
        }
    }
}

impl RecordType {
    fn value_json(&self, value: &[u8]) -> Result<String, String> {
        let mut reader = Reader::new(value);
        let version = reader.version().ok_or("Could not read version from value's buffer.")?;
        if version < 0 || version > self.value.last_version {
            return Err(format!("Found an unknown record version {version} for {} type", self.number));
        }
        let json = self.value.to_json(&mut reader, version);
        let json = json.map_err(|reason| not_read(version, "value", &reason))?;
        Ok(format!("{{\"version\":\"{version}\",\"data\":{json}}}"))
    }
}

fn not_read(version: i16, what: &str, reason: &str) -> String {
    format!("Could not read record with version {version} from {what}'s buffer due to: {reason}.")
}

/// Bytes of a classic group's member as the message that they hold where the group is one of consumers; they follow the
/// version with which they were written, which may be newer than what is known here.
fn member_json(message: &Message, bytes: &[u8]) -> Option<String> {
    let mut reader = Reader::new(bytes);
    let version = reader.version()?;
    message.to_json(&mut reader, version).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Option<Vec<u8>> {
        let digit = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    /// Random records of every type, whole and broken, with what Kafka's own parsers made of them.
    #[test]
    fn every_type_of_record_is_printed_as_kafkas_tool_does() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0/store-clean/coordinator-records.tsv");
        let mut seen = std::collections::BTreeSet::new();
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let &[parser, key, value, want_key, want_value] = fields.as_slice() else { panic!("{line}") };
            let decoder = match parser {
                "OffsetsMessageParser" => Decoder::Offsets,
                "TransactionLogMessageParser" => Decoder::Transactions,
                "ShareGroupStateMessageParser" => Decoder::ShareState,
                "ClusterMetadataLogMessageParser" => Decoder::Metadata,
                other => panic!("{other}"),
            };
            let (key, value) = (bytes(key).unwrap_or_default(), bytes(value));
            let got = decoder.decode(0, Some(&key), value.as_deref());
            assert_eq!(got.key.as_deref().unwrap_or("-"), want_key, "{line}");
            assert_eq!(got.value.as_deref().unwrap_or("-"), want_value, "{line}");
            if got.is_json {
                let kind = if decoder == Decoder::Metadata { value.as_ref().unwrap() } else { &key };
                seen.insert((parser.to_owned(), kind[1]));
                let json = got.key.or(got.value).unwrap();
                assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{line}");
            }
            // Cut anywhere, it is told and nothing else happens.
            for end in 0..key.len() {
                decoder.decode(0, Some(&key[..end]), value.as_deref());
            }
            for end in 0..value.as_ref().map_or(0, Vec::len) {
                decoder.decode(0, Some(&key), value.as_ref().map(|value| &value[..end]));
            }
        }
        assert_eq!(seen.len(), 25 + 27, "{seen:?}");
    }

    #[test]
    fn a_length_out_of_nowhere_is_an_error() {
        // A count of two thousand million where nothing follows.
        let key = [0, 2, 0, 1, b'g'];
        let value =
            [0, 3, 0, 0, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF];
        let got = Decoder::Offsets.decode(7, Some(&key), Some(&value));
        let told = got.key.unwrap();
        assert!(!got.is_json && told.starts_with("Error at offset 7, skipping. "), "{told}");
        assert!(told.contains("2147483647"), "{told}");
    }
}
